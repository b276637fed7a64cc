"""`ctxbench lab validate`: from recordings to the tables, and what it says when there is little to compare."""

import json
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Call, Conversation, Mark, Message, Usage
from tests.harness.command import ctxbench


def recorded(tmp_path: Path, *reads: int, model: str = "claude-sonnet-4-5", cost: float | None = None) -> Path:
    """A conversation of calls a minute apart; each writes a prompt of 5 000 tokens more, and reads what is given."""
    said: list[Message] = []
    for at, read in enumerate(reads):
        tokens = 5000 * (at + 1)
        usage = Usage(tokens, 10, read, tokens - read, cost=cost)
        call = Call(model, "", usage, 1.79e9 + 60 * at, (Mark(f"u{at}"),))
        said += [
            Message(f"u{at}", "user", f"question {at}"),
            Message(f"a{at}", "assistant", "yes", time=1.79e9 + 60 * at + 2, call=call),
        ]
    path = tmp_path / "talk.jsonl"
    path.write_bytes(Conversation("talk", tuple(said)).to_json() + b"\n")
    return path


def test_a_recording_that_agrees_but_once(tmp_path: Path) -> None:
    """The tables have the model, its shares and the call that disagrees; the JSON has every call."""
    path = recorded(tmp_path, 0, 5000, 0, 15_000)
    shown = ctxbench("lab", "validate", path, cwd=tmp_path).stdout
    for title in (
        "How well do the cache models predict recorded usage?",
        "Predicted and reported hits",
        "And with our own token counts?",
    ):
        assert title in shown
    assert "claude-sonnet-4-5" in shown
    assert "66.7 %" in shown, "two of the three calls that can read"
    assert "gone before its lifetime, at a user's turn" in shown
    assert "Recorded costs" not in shown
    assert "Pauses longer than" not in shown
    found = json.loads(ctxbench("lab", "validate", path, "--json", cwd=tmp_path).stdout)
    (model,) = found["models"]
    assert (model["calls"], model["exact"], model["later_exact"]) == (4, 3, 2)
    assert [call["read_predicted"] for call in found["calls"]] == [0, 5000, 10_000, 15_000]
    assert model["hits"] == {"hit / hit": 2, "hit / miss": 1, "miss / miss": 1}
    assert model["money"]["reported_usd"] > model["money"]["predicted_usd"]
    assert model["own_counts"]["encoding"] == "o200k_base"


def test_prices_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that no map has is missing from the money, and is told how to be priced; with a file it is there."""
    path = recorded(tmp_path, 0, 5000, model="claude-9-own", cost=0.02)
    shown = ctxbench("lab", "validate", path, cwd=tmp_path).stdout
    assert "Costs are missing: the price of claude-9-own is not known" in shown
    assert "(unsupported)" in shown
    (tmp_path / "my.toml").write_text('[models."claude-9-own"]\ninput = 3.0\noutput = 15.0\ncache_read = 0.3\n')
    monkeypatch.setenv("CTXBENCH_PRICES", "my.toml")
    shown = ctxbench("lab", "validate", path, cwd=tmp_path).stdout
    assert "(unsupported)" not in shown
    assert "1 override from my.toml" in " ".join(shown.split())


def test_models_without_a_rule(tmp_path: Path) -> None:
    """They are named with how many calls are not compared."""
    shown = ctxbench("lab", "validate", recorded(tmp_path, 0, 0, model="nobody/knows"), cwd=tmp_path).stdout
    assert "No cache rule is known for nobody/knows: 2 calls not compared." in shown


def test_more_marks_than_a_provider_takes(tmp_path: Path) -> None:
    """Such a call is named with its place and not compared, and the others are; nothing is lost without a word."""
    marks = tuple(Mark(f"u{at}") for at in range(5))
    said: list[Message] = [Message(f"u{at}", "user", f"q {at}") for at in range(5)]
    call = Call("claude-sonnet-4-5", "", Usage(5000, 10, 0, 5000), 1.79e9, marks)
    said.append(Message("a", "assistant", "yes", time=1.79e9 + 1, call=call))
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", tuple(said)).to_json() + b"\n")
    ran = ctxbench("lab", "validate", "t.jsonl", cwd=tmp_path)
    assert "Calls that cannot be compared are named on standard error" in ran.stdout
    assert ran.stderr == (
        "not compared: t.jsonl:1: messages[5].call.marks: a: 5 cache breakpoints, of which a provider takes 4 "
        "(remove those that were not sent)\n"
    )


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    """Recordings without usage are an error in one line."""
    talk = Conversation("t", (Message("u", "user", "hi"), Message("a", "assistant", "yes")))
    (tmp_path / "t.jsonl").write_bytes(talk.to_json() + b"\n")
    ran = ctxbench("lab", "validate", "t.jsonl", cwd=tmp_path, code=2)
    assert ran.stderr.startswith("error: no recorded call reports its usage")
