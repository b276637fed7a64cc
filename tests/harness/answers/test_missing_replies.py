"""Commands whose models fail: the exit code, the count on the last line, and what the same command asks for again."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.folder.run import load
from ctxbench.harness.models.cassette import Cassette
from tests.harness.answers.builders import talks
from tests.harness.command import ctxbench, said
from tests.harness.graders.test_calibrate_command import written
from tests.harness.models.server import Server
from tests.harness.runs import bytes_of, recording

VERDICT = '{"reason": "same", "verdict": "CORRECT"}'
AGAIN = "Once that is mended, the same command asks for what failed, and for nothing else"
SUMMARISED = ("-s", "summary(threshold=8, every=8, language='en')", "--summariser", "openai/m")
EMBEDDED = ("-s", "retrieval(limit=2, recent=1)", "--embedder", "openai/m")
DOWN = ["status 400 try later"] * 999


@pytest.fixture(scope="module")
def unanswered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of one conversation with questions, which nobody has answered."""
    folder = tmp_path_factory.mktemp("unanswered")
    talks(folder, 1)
    words = ("run", "talks.jsonl", "-s", "none", "-s", "last_turn", "--answerer", "none", "-o", "run")
    ctxbench(*words, cwd=folder)
    return folder


@pytest.fixture(autouse=True)
def _one_call_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_MODELS", "parallel=1")


@pytest.fixture
def ran(unanswered: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(unanswered, tmp_path, dirs_exist_ok=True)


def answering(server: Server, *more: object) -> tuple[object, ...]:
    """The command that has the run answered, one call after the other."""
    return ("lab", "answer", "run", "--cassette", "c", *more)


def bodies(server: Server) -> Counter[str]:
    """How often each request was made."""
    return Counter(
        json.dumps({key: seen[key] for key in sorted(seen) if key in ("messages", "input")}) for seen in server.seen
    )


def replies(stdout: str) -> list[dict[str, Any]]:
    """The counts of a command's `--json`."""
    found: list[dict[str, Any]] = json.loads(stdout)["replies"]
    return found


def recorded(cassette: Path) -> int:
    with Cassette(cassette, read_only=True) as opened:
        number: int = opened._open.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
        return number


@pytest.mark.parametrize(
    ("role", "words"), [("answerer", ("-a", "openai/m")), ("grader", ("-g", "llm(model='openai/m')"))]
)
def test_no_answer_and_no_grade_at_all(ran: Path, server: Server, role: str, words: tuple[str, ...]) -> None:
    """One line says who, why and what to do, after the tables; the exit code is 2, and no failure is recorded."""
    server.acts = list(DOWN)
    done = ctxbench(*answering(server, *words), cwd=ran, code=2)
    assert "How many answers are correct?" in done.stdout
    last = said(done.stderr)[-1]
    assert last.startswith(f"error: the {role} openai/m gave no usable reply, of ")
    assert last.endswith(f" asked for: try later (400). {AGAIN}")
    assert recorded(ran / "c") == 0


@pytest.mark.parametrize(
    ("role", "words", "text"),
    [("answerer", ("-a", "openai/m"), "9680"), ("grader", ("-g", "llm(model='openai/m')"), VERDICT)],
)
def test_one_reply_is_missing(ran: Path, server: Server, role: str, words: tuple[str, ...], text: str) -> None:
    """It is counted on the last line and in the JSON; the same command asks for it alone, and then all are there."""
    server.text, server.acts = text, ["", "status 400 try later"]
    command = answering(server, *words, "--json")
    first = ctxbench(*command, cwd=ran)
    [tally] = replies(first.stdout)
    missing = tally["missing"]  # of a grader two: equal answers are graded by one call
    assert (tally["role"], tally["model"], tally["failed"]) == (role, "openai/m", missing)
    assert missing == (2 if role == "grader" else 1)
    assert said(first.stderr)[-1] == (
        f"missing: {missing} of {tally['asked']} replies of the {role} openai/m (try later (400)). {AGAIN}"
    )
    calls = len(server.seen)
    server.acts = list(DOWN)
    strict = ctxbench(*command, "--strict", cwd=ran, code=2)
    assert replies(strict.stdout) == [tally]
    assert len(server.seen) == calls + 1
    assert f"to ask: openai/m: {missing} call" in strict.stderr
    server.acts = []
    whole = ctxbench(*command, "--strict", cwd=ran)
    assert len(server.seen) == calls + 2
    assert replies(whole.stdout) == [{**tally, "usable": tally["asked"], "failed": 0, "missing": 0, "why": ""}]
    assert "missing: " not in whole.stderr
    assert ctxbench(*command, cwd=ran).stdout == whole.stdout
    assert len(server.seen) == calls + 2


def test_grades_that_were_given_stay(ran: Path, server: Server) -> None:
    """Asking for one answer asks for its grade, and not for those of the others, on a new cassette too."""
    server.text, server.acts = VERDICT, ["status 400 no"]
    command = answering(server, "-a", "openai/m", "-g", "llm(model='openai/g')")
    ctxbench(*command, cwd=ran)
    calls = len(server.seen)
    ctxbench(*command, "--cassette", "new", "--strict", cwd=ran)
    assert [seen["model"] for seen in server.seen[calls:]] == ["m", "g"]


def test_a_reply_that_is_of_no_use_is_not_asked_for_again(ran: Path, server: Server) -> None:
    """An empty answer is recorded, and the same command brings it again without a call; the line says how to renew."""
    server.text = ""
    command = answering(server, "-a", "openai/m")
    done = ctxbench(*command, cwd=ran, code=2)
    calls = len(server.seen)
    assert said(done.stderr)[-1].endswith(
        "answered with an empty text. These replies are recorded as they are: --overwrite with a new --cassette asks "
        "for them anew"
    )
    again = ctxbench(*command, cwd=ran, code=2)
    assert len(server.seen) == calls == recorded(ran / "c")
    assert "to ask" not in again.stderr
    server.text = "9680"
    ctxbench(*command, "--overwrite", "--cassette", "new", "--strict", cwd=ran)


def test_a_run_whose_model_never_replies(tmp_path: Path, server: Server) -> None:
    """The tables are printed, then the strategy and its model are named; the exit code is 2."""
    path = recording(tmp_path, conversations=1, turns=8)
    server.acts = list(DOWN)
    command = ("run", path, *EMBEDDED, "-s", "none", "--cassette", "c", "-o", "r")
    done = ctxbench(*command, cwd=tmp_path, code=2)
    assert "net" in done.stdout
    last = said(done.stderr)[-1]
    assert last.startswith("error: the embedder openai/m gave no usable reply, of ")
    assert f" that {EMBEDDED[1]} asked for: " in last
    assert "try later" in last
    assert last.endswith(AGAIN)
    assert recorded(tmp_path / "c") == 0


def test_a_run_that_lacks_some_replies(tmp_path: Path, server: Server) -> None:
    """They are counted: 0, and 2 with --strict. The same command makes the run as if nothing had failed, and repeats no
    call that was answered."""
    path = recording(tmp_path, conversations=2, turns=8)
    server.text = "The user asked questions and got results."
    command = ("run", path, *SUMMARISED, "-s", "none", "--cassette", "c")
    server.acts = ["", "", *DOWN]
    first = ctxbench(*command, "-o", "r", cwd=tmp_path)
    last = said(first.stderr)[-1]
    assert last.startswith("missing: ")
    assert " replies of the summariser openai/m (" in last
    assert last.endswith(AGAIN)
    answered = list(bodies(server))[:2]
    server.acts = list(DOWN)
    strict = ctxbench(*command, "-o", "r", "--strict", "--json", cwd=tmp_path, code=2)
    [tally] = replies(strict.stdout)
    assert 0 < tally["failed"] == tally["missing"] < tally["asked"]
    assert last.startswith(f"missing: {tally['missing']} of {tally['asked']} replies")
    server.acts = []
    ctxbench(*command, "-o", "r", "--strict", cwd=tmp_path)
    assert not (load(tmp_path / "r").table("events").kind == "failed").any()
    asked = bodies(server)
    assert [asked[body] for body in answered] == [1, 1]
    ctxbench(*command, "-o", "other", cwd=tmp_path)
    assert bodies(server) == asked
    differ = {"manifest.json", ".account"}  # which have what the run cost; so does the key of bills
    one, other = (
        {
            name: digest
            for name, digest in bytes_of(tmp_path / run).items()
            if name not in differ and "bills/" not in name
        }
        for run in ("r", "other")
    )
    assert one == other


def test_a_grader_beside_labels(tmp_path: Path, server: Server) -> None:
    """`lab calibrate` ends the same way: 2 without any verdict, else a count, which --strict makes 2."""
    written(tmp_path, 5)
    server.text, server.acts = VERDICT, list(DOWN)
    command = ("lab", "calibrate", "mine.jsonl", "-o", "kept", "--cassette", "c")
    command = (*command, "-g", "llm(model='openai/m')")
    done = ctxbench(*command, cwd=tmp_path, code=2)
    errors = [line for line in said(done.stderr) if line.startswith("error: ")]
    assert errors == [said(done.stderr)[-1]]
    assert errors[0].startswith("error: the grader openai/m gave no usable reply, of 15 asked for: try later (400)")
    server.acts = ["status 400 try later"]
    some = ctxbench(*command, cwd=tmp_path)
    assert said(some.stderr)[-1] == f"missing: 1 of 15 replies of the grader openai/m (try later (400)). {AGAIN}"
    calls = len(server.seen)
    server.acts = ["status 400 try later"]
    ctxbench(*command, "--strict", cwd=tmp_path, code=2)
    ctxbench(*command, "--strict", cwd=tmp_path)
    assert len(server.seen) == calls + 2


def test_models_that_strategies_name(tmp_path: Path) -> None:
    """A search of settings of strategies ends with 2 too, if a model that one names is away."""
    path = recording(tmp_path, conversations=4)
    done = ctxbench(
        "tune", "summary(threshold=?[8..9], every=8, summariser='openai/m')", path, "-n", 2, cwd=tmp_path, code=2
    )
    assert said(done.stderr)[-1].startswith("error: the summariser openai/m gave no usable reply, of ")
    assert said(done.stderr)[-1].endswith(AGAIN)


def test_calls_that_fail_for_probes_alone(tmp_path: Path, server: Server) -> None:
    """They are counted, told and asked for again like those at the steps, though no bill and no event has them."""
    path = talks(tmp_path, 1)
    command = ("run", path, *EMBEDDED, "--cassette", "c")
    ctxbench(*command, "--probes", "none", "-o", "steps", "--strict", cwd=tmp_path)
    server.acts = list(DOWN)
    first = ctxbench(*command, "-o", "r", "--json", cwd=tmp_path)
    [tally] = replies(first.stdout)
    assert 0 < tally["failed"] == tally["missing"] < tally["asked"]
    assert not (load(tmp_path / "r").table("events").kind == "failed").any()
    assert said(first.stderr)[-1].startswith(f"missing: {tally['missing']} of {tally['asked']} replies of the embedder")
    told = [line for line in said(first.stderr) if line.startswith(f"failed {tally['missing']} times: openai/m: ")]
    assert [line.endswith("; ranked by words in common") for line in told] == [True]
    ctxbench(*command, "-o", "r", "--strict", cwd=tmp_path, code=2)
    server.acts = []
    [whole] = replies(ctxbench(*command, "-o", "r", "--strict", "--json", cwd=tmp_path).stdout)
    assert whole["missing"] == 0
    assert whole["usable"] >= tally["asked"]  # texts and their question are two calls, of which the first failed
