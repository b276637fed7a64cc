"""`ctxbench lab answer`, as a user meets it: offline, by a model with a tool loop, resumed, and with bad input."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.harness.answers.store import folder_of
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.strategies.events import Archived
from tests.harness.command import ctxbench, said
from tests.harness.models.server import UNCLOSED, Server

pytestmark = UNCLOSED

ARCHIVE = "archive(threshold=500, fresh=False, language='en')"
LONG = "The staging port is 9680.\n" + "\n".join(f"line {at}: nothing of note happens here" for at in range(60))


def conversation(name: str = "c") -> Conversation:
    """A tool result of 60 lines, and what is asked about it, each with another kind of gold."""
    messages = (
        Message("m1", "user", "Which settings are there? The deploy is on 14 March 2026."),
        Message("m2", "assistant", "I look.", (ToolCall("c1", "read_file", '{"path": "a.toml"}'),)),
        Message("m3", "tool", LONG, answers="c1", name="read_file"),
        Message("m4", "assistant", "Many lines, as you see."),
        Message("m5", "user", "Thanks. What is the weather like?"),
        Message("m6", "assistant", "I cannot know."),
    )
    probes = (
        Probe("port", "What is the staging port?", ("9680",), ("m3",), "single_hop"),
        Probe("none", "Who repaired the elevator?", (), (), "unanswerable", answerable=False),
        Probe("open", "What was said of the deploy?", (), ("m1",), "no_gold"),
    )
    return Conversation(name, messages, probes=probes)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two conversations."""
    folder = tmp_path_factory.mktemp("made")
    lines = b"\n".join(conversation(name).to_json() for name in "ab")
    (folder / "talks.jsonl").write_bytes(lines + b"\n")
    execute(Plan(RunInputs((str(folder / "talks.jsonl"),)), ("none", ARCHIVE), answers=False), folder / "run")
    return folder


@pytest.fixture
def ran(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, and its folder is the working one."""
    shutil.copytree(made / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


class Done(NamedTuple):
    stdout: str
    stderr: str


def answer(*words: object, code: int = 0) -> Done:
    """The command in this process."""
    found = CliRunner().invoke(app, ["lab", "answer", "run", *map(str, words)])
    said = f"error: {found.exception}" if isinstance(found.exception, UserError) else ""
    assert (2 if said else found.exit_code) == code, (found.stdout, found.stderr, found.exc_info)
    return Done(found.stdout, found.stderr + said)


def parts(folder: Path) -> dict[str, bytes]:
    found = [path for table in ("answers", "grades") for path in (folder / table).rglob("*.parquet")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_what_is_answered_is_not_answered_again(ran: Path) -> None:
    """A second command only prints; one part that is lost or damaged is made again, as it was."""
    first = answer().stdout
    before = parts(ran / "run")
    assert len(before) == 2
    for path in before:
        data = (ran / "run" / path).read_bytes()
        for damaged in (b"damaged", data[:4] + bytes(each ^ 255 for each in data[4:60]) + data[60:]):  # its pages only
            (ran / "run" / path).write_bytes(damaged)
            assert answer().stdout == first
            assert parts(ran / "run") == before
    assert answer("--overwrite").stdout == first
    assert parts(ran / "run") == before


def test_a_run_that_is_made_anew_is_answered_anew(made: Path, ran: Path) -> None:
    """Answers to contexts that are gone do not count."""
    answer()
    execute(Plan(RunInputs((str(made / "talks.jsonl"),)), ("last_turn",)), ran / "run", overwrite=True)
    found = json.loads(answer("--json").stdout)
    assert list(found["strategies"]) == ["last_turn", "evidence_only"]


def test_a_model_loads_what_was_archived(ran: Path, server: Server) -> None:
    """It calls the strategy's tool, is given the whole result, and answers; replayed it costs no call."""
    archived = [
        event.uuid for _, event in load(ran / "run").events("a", ARCHIVE) if isinstance(event, Archived)
    ]  # fmt: skip
    call = {"id": "x1", "type": "function"} | {
        "function": {"name": "load_tool_history", "arguments": json.dumps({"uuid": archived[0]})}
    }
    loads = json.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": server.usage}
        | {"choices": [{"index": 0, "finish_reason": "tool_calls",
                        "message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    )  # fmt: skip
    server.text = "9680"
    server.acts = ["", "", "", f"reply {loads}"]  # after the three probes under `none`, the first under `archive`
    words = ("-a", "openai/gpt-4o-mini(parallel=1)", "--cassette", "c.sqlite", "--json")
    first = answer(*words)
    calls = len(server.seen)
    result = server.seen[4]["messages"][-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "x1")
    assert LONG in result["content"]
    assert server.seen[4]["tools"][-1]["function"]["name"] == "load_tool_history"
    shown = json.loads(first.stdout)["strategies"][ARCHIVE]
    assert (shown["loaded"], shown["rounds"]) == (1, 7)
    assert shown["cost"] == pytest.approx(7 * 0.00021)
    assert said(first.stderr)[-1].startswith(f"models: {calls} calls, $0.003")
    spent = json.loads(first.stdout)["spent"]
    assert (spent["calls"], spent["dollars"]) == (calls, pytest.approx(calls * 0.00021))
    again = answer(*words, "--replay", "--overwrite")
    assert again.stdout == first.stdout
    assert len(server.seen) == calls


def test_the_cost_is_said_before_it_is_spent(ran: Path, server: Server) -> None:
    """The calls that are still to be made, at their longest; what is answered is not estimated again."""
    words = ("-a", "openai/gpt-4o-mini", "--cassette", "c.sqlite")
    first = said(answer(*words).stderr)[1]  # behind who is called, and where
    sent = load(ran / "run").table("probes").tokens_sent.sum()
    assert first.startswith(
        f"to ask: openai/gpt-4o-mini: 24 calls, {sent / 1000:.1f}k tokens in, 6.1k out at most: $0.0"
    )
    assert first.endswith(" at most, less what is recorded already")
    assert not [line for line in said(answer(*words).stderr) if line.startswith("to ask")]


def test_what_is_dear_is_asked_for(ran: Path, server: Server) -> None:
    """Above a dollar nothing is called without consent; a spend limit is consent."""
    words = ("-a", "openai/gpt-4o-mini(answer_tokens=100_000)", "--cassette", "c")
    found = answer(*words, code=2)
    assert "models would be called for up to $1.44, so none was: give --spend-limit DOLLARS" in found.stderr
    assert not server.seen
    assert not parts(ran / "run")
    answer(*words, "--spend-limit", 2)
    assert len(server.seen) == 14, "of equal contexts one is asked"


def test_grades_alone_are_estimated(ran: Path, server: Server) -> None:
    """A model that grades answers which are there already costs as well: also those of the extractive baseline."""
    answer()
    server.text = '{"reason": "same", "verdict": "CORRECT"}'
    words = ("-g", "llm(model='openai/gpt-4o-mini')", "--cassette", "c")
    asked = [line for line in said(answer(*words).stderr) if line.startswith("to ask")]
    assert len(asked) == 1
    assert asked[0].startswith("to ask: openai/gpt-4o-mini: 16 calls")
    assert not [line for line in said(answer(*words).stderr) if line.startswith("to ask")]


def test_a_run_has_its_questions_answered(made: Path, tmp_path: Path, server: Server) -> None:
    """`run` takes the same options, and its verdict says who answered."""
    server.text = "9680"
    words = ["run", str(made / "talks.jsonl"), "-s", "none", "-a", "openai/m"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run"), "--cassette", str(tmp_path / "c")])
    assert done.exit_code == 0, done.output
    assert "to ask: openai/m: 18 calls" in done.stderr
    assert load(tmp_path / "run").table("probes").strategy.nunique() == 3
    assert len(list((tmp_path / "run" / "answers").iterdir())) == 2


def test_a_model_that_grades_itself_is_warned_of(ran: Path, server: Server) -> None:
    """And a grader that replies prose gives no grade, rather than a wrong one: exit code 2."""
    words = ("-a", "openai/m", "-g", "llm(model='openai/m')", "--cassette", "c")
    found = answer(*words, code=2)
    assert "graded its own answers" in " ".join(found.stdout.split())
    assert "Why answers or grades are missing" in found.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("-a", "gpt-4o-mine"), "unknown model"),
        (("-g", "rulez"), "grader"),
        (("-a", "openai/m", "--replay", "--cassette", "nowhere"), "there is no such cassette"),
        (("-a", "openai/m", "--spend-limit", "1"), "price"),
        (("-a", "local(gguf='nothing.gguf')"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(ran: Path, words: tuple[str, ...], error: str) -> None:
    """One clear line, exit code 2, and nothing is written."""
    found = answer(*words, code=2)
    assert error in found.stderr
    assert not found.stdout
    assert not parts(ran / "run")


def test_a_run_without_probes_says_so(tmp_path: Path) -> None:
    """There is nothing to answer in recordings without questions."""
    talk = conversation()
    (tmp_path / "talks.jsonl").write_bytes(Conversation(talk.id, talk.messages).to_json() + b"\n")
    execute(Plan(RunInputs((str(tmp_path / "talks.jsonl"),)), ("none",)), tmp_path / "run")
    assert "error: run: no probe was asked" in ctxbench("lab", "answer", "run", cwd=tmp_path, code=2).stderr


def test_folders_of_answerers_are_safe_and_different() -> None:
    """A name cannot leave the folder, nor can two names share one."""
    names = ["offline", "openai/gpt-4o", "openai-gpt-4o", "../../x", "..", "a" * 300, "模型", "llm(model='x')", "LLM"]
    made = [folder_of(name) for name in names]
    assert len(set(made)) == len(names)
    assert all("/" not in each and each not in ("", ".", "..") and len(each) < 80 for each in made)
    assert folder_of("offline") == "offline"
