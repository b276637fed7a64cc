"""`ctxbench show`: what became of each message, and what the strategy did at the step."""

from __future__ import annotations

from pathlib import Path

from tests.harness.command import ctxbench
from tests.making import answering, calling, talk

SAID = talk(
    ("system", "You help."),
    ("user", "first"),
    calling("c", "x"),
    answering("r", "x", "a long result"),
    ("assistant", "one"),
    ("user", "second"),
    ("assistant", "two"),
    ("user", "third"),
    ("assistant", "three"),
    name="talk",
)

PLUGIN = """
from dataclasses import dataclass
import msgspec
from ctxbench.scenarios.model import Message, Tool
from ctxbench.strategies.base import Context
from ctxbench.strategies.events import Dropped, Summarised

@dataclass(frozen=True, slots=True)
class Shows:
    def start(self, desk):
        def view(context):
            said = list(context.messages)
            tools = (*context.tools, Tool("look"))
            if len(said) == 6:
                desk.record(Summarised(("m1",), "they said first " * 20))
            if len(said) < 6:
                return context
            if len(said) == 8:
                desk.record(Dropped(("m4",)))
            short = msgspec.structs.replace(said[3], text="…")
            note = Message("shows:0", "system", "they said first")
            return Context(context.sending([said[0], note, said[2], short, *said[5:]]).messages, (3,), tools)
        return view
"""


def test_each_message_once_and_what_was_done(tmp_path: Path) -> None:
    """At the last of four calls, worked by hand: every message once, in the order it was said, and one event."""
    (tmp_path / "shows.py").write_text(PLUGIN)
    (tmp_path / "talk.jsonl").write_bytes(SAID.to_json() + b"\n")
    ctxbench("run", "talk.jsonl", "-s", "shows.py:Shows", "-o", "r", cwd=tmp_path)
    shown = ctxbench("show", "r", "1", cwd=tmp_path).stdout.splitlines()
    assert "step 3 of 4  8 messages said, 7 sent, 5 of them the same prefix" in shown[0]
    assert shown[0].endswith(", 1 replaced, 1 summarised, 1 dropped")
    assert [line.replace("▮", "").split()[:2] for line in shown[2:11]] == [
        ["same", "m0"],
        ["same", "shows:0"],
        ["summarised", "m1"],
        ["same", "c"],
        ["replaced", "r"],
        ["dropped", "m4"],
        ["same", "m5"],
        ["new", "m6"],
        ["new", "m7"],
    ]
    assert [line.split()[2] for line in shown if "▮" in line] == ["r"]
    assert [" ".join(line.split()) for line in shown[11:]] == ["", "tools look", "dropped messages=m4"]


def test_a_long_field_is_shortened(tmp_path: Path) -> None:
    """An event's long text is cut in a line, and whole with --full; other steps' events are not shown."""
    (tmp_path / "shows.py").write_text(PLUGIN)
    (tmp_path / "talk.jsonl").write_bytes(SAID.to_json() + b"\n")
    ctxbench("run", "talk.jsonl", "-s", "shows.py:Shows", "-o", "r", cwd=tmp_path)
    last = ctxbench("show", "r", "1", "2", cwd=tmp_path).stdout.splitlines()[-1]
    assert last.startswith("summarised   replaced=m1  summary=they said first they")
    assert "…  level=1" in last
    whole = " ".join(ctxbench("show", "r", "1", "2", "--full", cwd=tmp_path).stdout.split())
    assert "they said first " * 20 + " level=1" in whole.replace("first level", "first  level")
    first = ctxbench("show", "r", "1", "0", cwd=tmp_path).stdout
    assert "look" not in first
    assert "summar" not in first
