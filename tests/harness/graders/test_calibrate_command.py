"""`ctxbench lab calibrate`: from labelled answers to the tables, the profile, and what it says of bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.harness.graders.profiles import Profile, Profiles
from ctxbench.scenarios.errors import UserError
from tests.harness.command import ctxbench
from tests.harness.graders.stub_graders import labelled


class Done(NamedTuple):
    """What a command printed, and its error."""

    stdout: str
    stderr: str
    error: str


@pytest.fixture
def calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """The command in this process, in the test's folder. Anything but a user's error is raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def run(*words: object) -> Done:
        made = CliRunner().invoke(app, ["lab", "calibrate", *map(str, words)], env={"COLUMNS": "200", "NO_COLOR": "1"})
        if made.exception is not None and not isinstance(made.exception, (UserError, SystemExit)):
            raise made.exception
        error = str(made.exception) if isinstance(made.exception, UserError) else ""
        assert (made.exit_code == 0) == (made.exception is None)
        return Done(made.stdout, made.stderr, error or str(made.exit_code or ""))

    return run


def written(folder: Path, questions: int = 80, name: str = "mine.jsonl", **changed: object) -> Path:
    """A labelled set as a file of the user's own."""
    path = folder / name
    keep = ("id", "question", "accepted", "candidate", "correct", "group", "system", "kind", "labelled_by", "votes")
    with path.open("w") as file:
        for each in labelled(questions):
            row = msgspec.to_builtins(msgspec.structs.replace(each, **changed))
            file.write(json.dumps({key: row[key] for key in keep if key in row}) + "\n")
    return path


def test_from_a_file_to_a_profile(tmp_path: Path) -> None:
    """The tables show the grader; the profile has the same figures; --json has both."""
    path = written(tmp_path)
    done = ctxbench("lab", "calibrate", path, "-o", "kept", cwd=tmp_path)
    assert "mine: 240 answers to 80 questions" in done.stdout
    for title in ("mine: labels and verdicts", "mine: by system", "mine: time and cost"):
        assert title in done.stdout
    assert "written: kept/rules-mine-" in done.stderr
    found = json.loads(ctxbench("lab", "calibrate", path, "-o", "kept", "--json", cwd=tmp_path).stdout)
    [grader] = found[0]["graders"]
    [file] = (tmp_path / "kept").iterdir()
    profile = msgspec.json.decode(file.read_bytes(), type=Profile)
    assert profile.whole.kappa.value == grader["whole"]["kappa"]["value"]
    assert profile.grader.startswith("rules")
    [quoted] = Profiles([tmp_path / "kept"]).of(profile.grader)
    assert quoted.profile == profile


def test_the_same_bytes(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """Twice the same command, the answers in another order: the same profile, and the same JSON but for the times."""
    path, made = written(tmp_path), []
    for _ in range(2):
        out = json.loads(calibrate(path, "-o", "kept", "--json").stdout)
        del out[0]["seconds"]
        made.append((out, next((tmp_path / "kept").iterdir()).read_bytes()))
        path.write_text("".join(sorted(path.read_text().splitlines(keepends=True), reverse=True)))
    assert made[0] == made[1]


def test_a_sample(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """What the figures are over is said, and stands in the profile."""
    path = written(tmp_path)
    shown = calibrate(path, "--sample", 50, "-o", "kept").stdout
    assert "mine: 50 answers to 50 questions" in shown
    assert "A sample of 50 of 240 answers, by question, seed 0." in shown
    profile = msgspec.json.decode(next((tmp_path / "kept").iterdir()).read_bytes(), type=Profile)
    assert profile.asked == 50


def table(folder: Path) -> Path:
    """A table of two raters: names that both call right, dates that are too vague, of which one is called right."""
    path = folder / "table.csv"
    rows = [
        f"Who is {at}?,Bob{at},It is Bob{at}.,1,1,1\nWhen was {at}?,8 May 2023,In 2023.,{at % 2},0,1"
        for at in range(40)
    ]
    path.write_text("Q,golden,pred,ann,ben,talk\n" + "\n".join(rows) + "\n")
    return path


COLUMNS = "question=Q,gold=golden,answer=pred,label=ann,label=ben"


def test_any_table_by_its_columns(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """People's own agreement stands beside the grader's, as a whole, by language and by kind of answer."""
    done = calibrate(table(tmp_path), "--columns", f"{COLUMNS},exact_dates=talk", "-o", "kept")
    assert "table: 80 answers to 80 questions" in done.stdout
    assert "20 answers whose labels are split in halves" in done.stderr
    assert "table: what people disagree about" in done.stdout
    assert "rules(5) calls 40 answers wrong (50.0 %), whose date fits" in " ".join(done.stdout.split())
    profile = msgspec.json.decode(next((tmp_path / "kept").iterdir()).read_bytes(), type=Profile)
    assert profile.less_exact == 40
    assert profile.whole.wrong_accepted.value == 0
    whole = profile.people["all"][""]
    assert (whole.answers, whole.people_same, whole.grader_same) == (80, 0.75, 0.875)
    assert profile.people["answer"].keys() == profile.by["answer"].keys() == {"date", "code"}
    lax = json.loads(calibrate(table(tmp_path), "--columns", COLUMNS, "-o", "kept", "--json").stdout)
    assert sum(lax[0]["graders"][0]["missing"].values()) == 40  # a year for a day may be enough: ungraded
    assert lax[0]["graders"][0]["less_exact"] == 0


def test_a_table_without_its_columns(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """The error says that there is the option --columns."""
    assert "name the columns by --columns" in calibrate(table(tmp_path)).stderr


def test_bad_records(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """Each is named with file, line and field; the others are compared."""
    path = written(tmp_path)
    bad = ['{"question": "q", "accepted": [], "candidate": "c", "correct": true}', '{"question": 1}', "{"]
    path.write_text(path.read_text() + "\n".join(bad) + "\n")
    done = calibrate(path, "-o", "kept")
    assert "mine.jsonl:241: accepted: no accepted answer" in done.stderr
    assert "mine.jsonl:242" in done.stderr
    assert "mine.jsonl:243" in done.stderr
    assert "mine: 240 answers" in done.stdout
    assert "accepted: no accepted answer" in calibrate(path, "--strict").error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.json"], "nowhere.json"),
        (["text.txt"], "no known format of labelled answers fits"),
        (["mine.jsonl", "-o", "text.txt"], "text.txt: is a file"),
        (["mine.jsonl", "-g", "ruels"], "unknown grader 'ruels'"),
        (["mine.jsonl", "--sample", "many"], "write 300, or 300,by=system"),
        (["mine.jsonl", "-g", "llm(model='no-such-model')"], "no-such-model"),
    ],
)
def test_what_cannot_be(tmp_path: Path, calibrate: Callable[..., Done], words: list[str], said: str) -> None:
    """One clear error, no tables, no profile."""
    written(tmp_path)
    (tmp_path / "text.txt").write_text("no labels here\n")
    done = calibrate("-o", "kept", *words)
    assert done.error
    assert said in done.stderr + done.error
    assert not done.stdout
    assert not (tmp_path / "kept").exists()


def test_nothing_graded(tmp_path: Path, calibrate: Callable[..., Done]) -> None:
    """A grader that can grade nothing is shown with the reason, has no profile, and the exit code is 2."""
    path = tmp_path / "rubrics.jsonl"
    row = {"question": "q", "accepted": [], "candidate": "c", "correct": True, "rubric": ["is kind"]}
    path.write_text("".join(json.dumps({**row, "id": at}) + "\n" for at in range(40)))
    done = calibrate(path, "-o", "kept")
    assert done.error == "2"
    assert "rubrics: without a grade" in done.stdout
    assert "error: nothing was graded by rules" in done.stderr
    assert not (tmp_path / "kept").exists()
