"""`ctxbench validate`: from recordings to the table, and what it says when there is nothing to compare."""

from __future__ import annotations

import json
from pathlib import Path

from ctxbench.scenarios.model import Call, Conversation, Mark, Message, Usage

from tests.harness.command import ctxbench


def recorded(tmp_path: Path, *reads: int, model: str = "claude-sonnet-4-5") -> Path:
    """A conversation of calls a minute apart; each writes a prompt of 5 000 tokens more, and reads what is given."""
    said: list[Message] = []
    for at, read in enumerate(reads):
        tokens = 5000 * (at + 1)
        usage = Usage(tokens, 10, read, tokens - read)
        call = Call(model, "", usage, 1.79e9 + 60 * at, (Mark(f"u{at}"),))
        said += [
            Message(f"u{at}", "user", f"question {at}"),
            Message(f"a{at}", "assistant", "yes", time=1.79e9 + 60 * at + 2, call=call),
        ]
    path = tmp_path / "talk.jsonl"
    path.write_bytes(Conversation("talk", tuple(said)).to_json() + b"\n")
    return path


def test_a_recording_that_agrees_but_once(tmp_path: Path) -> None:
    """The table has the model, its shares and the call that disagrees; the JSON has every call."""
    path = recorded(tmp_path, 0, 5000, 0, 15_000)
    shown = ctxbench("validate", path, cwd=tmp_path).stdout
    assert "claude-sonnet-4-5" in shown
    assert "75.0 %" in shown
    assert "gone before its lifetime, at a user's turn" in shown
    found = json.loads(ctxbench("validate", path, "--json", cwd=tmp_path).stdout)
    (model,) = found["models"]
    assert (model["calls"], model["exact"], model["later_exact"]) == (4, 3, 2)
    assert [call["read_predicted"] for call in found["calls"]] == [0, 5000, 10_000, 15_000]
    assert model["hits"] == {"hit / hit": 2, "hit / miss": 1, "miss / miss": 1}


def test_models_without_a_rule(tmp_path: Path) -> None:
    """They are named with how many calls are not compared."""
    shown = ctxbench("validate", recorded(tmp_path, 0, 0, model="nobody/knows"), cwd=tmp_path).stdout
    assert "No rule is known for nobody/knows: 2 calls are not compared." in shown


def test_more_marks_than_a_provider_takes(tmp_path: Path) -> None:
    """Such a call is counted and not compared, and the others are; nothing is lost without a word."""
    marks = tuple(Mark(f"u{at}") for at in range(5))
    said: list[Message] = [Message(f"u{at}", "user", f"q {at}") for at in range(5)]
    call = Call("claude-sonnet-4-5", "", Usage(5000, 10, 0, 5000), 1.79e9, marks)
    said.append(Message("a", "assistant", "yes", time=1.79e9 + 1, call=call))
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", tuple(said)).to_json() + b"\n")
    shown = ctxbench("validate", "t.jsonl", cwd=tmp_path).stdout
    assert "More than 4 cache breakpoints, which no provider takes: 1 call not compared." in shown


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    """Recordings without usage are an error in one line."""
    talk = Conversation("t", (Message("u", "user", "hi"), Message("a", "assistant", "yes")))
    (tmp_path / "t.jsonl").write_bytes(talk.to_json() + b"\n")
    ran = ctxbench("validate", "t.jsonl", cwd=tmp_path, code=2)
    assert ran.stderr.startswith("error: no recorded call reports its usage")
