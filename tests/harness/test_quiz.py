"""Questions in a run: made where a recording has none, or read from a file that somebody edited."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ctxbench.harness.answers.store import answered_by
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.quiz import MADE
from ctxbench.scenarios.errors import RunError, UserError
from ctxbench.scenarios.model import Conversation, Probe
from ctxbench.scenarios.source import Problems
from tests.harness.command import ctxbench
from tests.metrics.test_quiz import session

OWN = Probe("own", "Which?", ("Python",))


def written(folder: Path, *conversations: Conversation) -> Path:
    """A file of recordings."""
    file = folder / "said.jsonl"
    file.write_bytes(b"".join(each.to_json() + b"\n" for each in conversations))
    return file


def plain() -> Conversation:
    return session(({"command": "python --version"}, "Python 3.11.5"))


def probes(file: Path, source: str) -> tuple[list[list[str]], Problems]:
    """The questions of each conversation, and what was wrong."""
    problems = Problems()
    read = RunInputs((str(file),), probes=source).read(problems)
    return [[probe.question for probe in each.probes] for each in read], problems


def test_a_set_with_questions_stays_as_it_is(tmp_path: Path) -> None:
    """None is made for a conversation that has one, nor of an embedded scenario."""
    file = written(tmp_path, plain(), replace(plain(), id="asked", probes=(OWN,)))
    made, problems = probes(file, "made")
    assert made == [["What did `python --version` print?"], ["Which?"]]
    assert "questions made by rules for 1 recording without any: 1 (`ctxbench probe`" in problems.notes[-1]
    assert probes(file, "recorded")[0] == [[], ["Which?"]]
    demo = RunInputs(("demo",)).conversations(Problems())
    assert RunInputs(("demo",), probes="made").conversations(Problems()) == demo


def test_a_file_of_questions_is_written_edited_and_read(tmp_path: Path) -> None:
    """`ctxbench probe` writes it, prints what it made, and never over what may have been edited; a run reads it."""
    file = written(tmp_path, plain())
    shown = ctxbench("probe", file, "--to", "q.jsonl", cwd=tmp_path)
    assert "Python 3.11.5" in shown.stdout
    assert "--probes q.jsonl" in shown.stderr
    assert ctxbench("probe", file, "--to", "q.jsonl", cwd=tmp_path).stdout == shown.stdout, "it may have been stopped"
    figures = msgspec.json.decode(ctxbench("probe", file, "--json", cwd=tmp_path).stdout)
    assert figures["examples"] == [
        {"kind": "output", "question": "What did `python --version` print?", "answer": "Python 3.11.5"}
        | {"conversation": "s", "evidence": "t0", "after": "x4"}
    ]
    line = msgspec.json.decode((tmp_path / "q.jsonl").read_bytes())
    assert (line["conversation"], line["evidence"], line["category"]) == ("s", ["t0"], f"{MADE}output")
    lines = [
        line | {"question": "Which Python?"},
        line | {"id": "two", "answers": ["Python 9"]},
        line | {"id": "three", "answers": ["yes"], "question": "Is it 3.11?"},
        line | {"conversation": "gone"},
    ]
    (tmp_path / "q.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    assert "may have been edited" in ctxbench("probe", file, "--to", "q.jsonl", cwd=tmp_path, code=2).stderr
    read, problems = probes(file, str(tmp_path / "q.jsonl"))
    assert read == [["Which Python?", "Is it 3.11?"]]
    unsaid, gone = map(str, problems.errors)
    assert "q.jsonl:2: answers: nobody says 'Python 9'" in unsaid
    assert "q.jsonl:4: conversation: 'gone' names no conversation" in gone
    with pytest.raises(RunError, match="no such file"):
        RunInputs((str(file),), probes="nowhere.jsonl")
    asked = written(tmp_path, replace(plain(), probes=(OWN,)))
    assert "no question was made" in ctxbench("probe", asked, cwd=tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        ({"answers": []}, "answers: no answer is accepted"),
        ({"answers": ["Python 9"]}, "answers: nobody says 'Python 9'"),
        ({"after": "u"}, "after: 'u' comes before the evidence 't0'"),
        ({"after": "nowhere"}, "after: 'nowhere' names no message of 's'"),
        ({"evidence": ["t0", "nowhere"]}, "evidence[1]: 'nowhere' names no message of 's'"),
        ({"conversation": 3}, "conversation: expected str"),
        ({"conversation": "gone"}, "conversation: 'gone' names no conversation"),
        ({"wrong": 1}, "wrong"),
        ("}", "id: 'made1' is the id of another question"),
        ("},", "a comma follows"),
        (",}", "a comma follows"),
        ("", "q.jsonl:1: the JSON ends in the middle"),
    ],
)
def test_a_line_that_cannot_be_asked_ends_the_run(tmp_path: Path, edit: dict[str, object] | str, error: str) -> None:
    """The error names file, line and field, and no run is made without the question. `edit` is a change, or an end."""
    file = written(tmp_path, plain())
    (good,) = RunInputs((str(file),), probes="made").conversations(Problems())[0].probes
    fields = {"conversation": "s"} | msgspec.to_builtins(good)
    text = msgspec.json.encode(fields | (edit if isinstance(edit, dict) else {})).decode()
    lines = [text] if isinstance(edit, dict) else [text[:-1] + edit] * 2
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    with pytest.raises(UserError) as raised:
        RunInputs((str(file),), probes=str(tmp_path / "q.jsonl")).conversations(Problems())
    assert error in str(raised.value)
    assert "q.jsonl:" in str(raised.value)


def test_masked_results_are_missed_where_grounding_recall_sees_nothing(recordings: Path, tmp_path: Path) -> None:
    """OpenHands with tool results masked after 5 events: no value that the agent used next is lost, and yet the answers
    are."""
    masked = "openhands.masking"
    inputs = RunInputs((str(recordings / "openhands"),), probes="made")
    execute(Plan(inputs, ("none", masked)), tmp_path / "run")
    run = load(tmp_path / "run")
    asked = run.table("probes")
    for strategy, least, most in (("none", 1.0, 1.0), (masked, 0.0, 0.6)):
        share = asked[asked.strategy == strategy].answer.mean()
        assert least <= share <= most
        kept = run.table("grounding")
        own = kept[kept.strategy == strategy]
        assert own.kept.sum() == own["values"].sum() > 0
    assert asked.category.astype(str).str.startswith(MADE).all()
    assert answered_by(run, "offline", "rules") is None
