"""`ctxbench show`: what became of each message, and what the strategy did at the step."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.builders import answering, calling, talk
from tests.harness.command import CTXBENCH, ctxbench, forked

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
    def start(self, services):
        def view(context):
            said = list(context.messages)
            tools = (*context.tools, Tool("look"))
            if len(said) == 6:
                services.record(Summarised(("m1",), "they said first " * 20))
            if len(said) < 6:
                return context
            if len(said) == 8:
                services.record(Dropped(("m4",)))
            short = msgspec.structs.replace(said[3], text="…")
            note = Message("shows:0", "system", "they said first")
            return Context(context.sending([said[0], note, said[2], short, *said[5:]]).messages, (3,), tools)
        return view

@dataclass(frozen=True, slots=True)
class Moves:
    head: int = 1
    def start(self, services):
        def view(context):
            said = list(context.messages)
            notes = [Message(f"moves:{len(said)}", "system", f"{len(said)} were said")]
            return context.sending([*said[:self.head], *notes, *said[self.head:]])
        return view

def fails(messages):
    if len(messages) > 4:
        raise RuntimeError("no more\\x1b than four")
    return messages
"""

STRATEGIES = ("shows.py:Shows", "shows.py:Moves", "shows.py:Moves(head=2)", "shows.py:fails", "window(max_tokens=90)")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run `r` of the conversation, and of one that all strategies finish."""
    folder = tmp_path_factory.mktemp("show")
    (folder / "shows.py").write_text(PLUGIN)
    short = talk(("user", "hi"), ("assistant", "hello"), name="short")
    (folder / "talk.jsonl").write_bytes(SAID.to_json() + b"\n" + short.to_json() + b"\n")
    ctxbench("run", "talk.jsonl", *(word for each in STRATEGIES for word in ("-s", each)), "-o", "r", cwd=folder)
    return folder


def lines(here: Path, *words: object) -> list[str]:
    """Return what `ctxbench show r 1 …` prints below the line with its conversation and file."""
    first, *rest = ctxbench("show", "r", "1", *words, cwd=here).stdout.splitlines()
    assert first == "conversation talk, from talk.jsonl:1"
    return rest


def shown(here: Path, *words: object) -> dict[str, Any]:
    """What `ctxbench show r 1 … --json` prints."""
    found: dict[str, Any] = json.loads(ctxbench("show", "r", "1", *words, "--json", cwd=here).stdout)
    return found


def test_each_message_once_and_what_was_done(here: Path) -> None:
    """At the last of four calls, worked by hand: every message once, in the order it was said, and one event."""
    found = lines(here)
    assert "step 3 of 0 to 3" in found[0]
    counts = "8 messages in the history · 7 sent: 5 same, 2 new · 1 replaced, 1 written · 1 summarised, 1 dropped"
    assert found[1] == counts
    assert [line.replace("▮", "").split()[:4] for line in found[3:12]] == [
        ["same", "m0", "system", "You"],
        ["same", "shows:0", "system", "written"],
        ["summarised", "m1", "user", "first"],
        ["same", "c", "assistant", "→"],
        ["same", "r", "tool", "replaced"],
        ["dropped", "m4", "assistant", "one"],
        ["same", "m5", "user", "second"],
        ["new", "m6", "assistant", "two"],
        ["new", "m7", "user", "third"],
    ]
    assert [line.split()[2] for line in found if "▮" in line] == ["r"]
    assert [" ".join(line.split()) for line in found[12:]] == ["", "tools look", "dropped messages=m4"]


def test_again_is_what_a_cache_has_no_more(here: Path) -> None:
    """What was sent at the step before is `same` only as far as nothing before it has changed, other tools included."""
    rows = shown(here, "2", "-s", "shows.py:Moves(head=2)")["messages"]
    assert [(each["status"], each["message"]["id"]) for each in rows] == [
        ("same", "m0"),
        ("same", "m1"),
        ("new", "moves:6"),
        ("again", "c"),
        ("again", "r"),
        ("new", "m4"),
        ("new", "m5"),
    ]
    other_tools = shown(here, "2")
    assert other_tools["tokens_kept"] == 0
    assert [each["status"] for each in other_tools["messages"][:2]] == ["again", "new"]


@pytest.mark.parametrize("step", ["3", "-1"])
def test_a_step_may_be_counted_from_the_end(here: Path, step: str) -> None:
    """-1 is the last step, wherever among the options it stands."""
    words = ("show", "r", "1", step, "--json", "-s", "window")
    assert json.loads(ctxbench(*words, cwd=here).stdout)["step"] == 3
    assert shown(here, "-s", "window", step)["step"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("4",), "'talk' has 4 steps: give 0 to 3, or -1 to -4 from the end, not 4"),
        (("-s", "shows.py:fails"), "failed: RuntimeError: no more· than four (shows.py:"),
        (("-s", "none"), "'none' was not run here; these were: shows.py:Shows@"),
        (("-s", "shows.py:Moves(head=3)"), "was not run here; these were: "),
    ],
)
def test_what_is_not_there_is_said(here: Path, words: tuple[str, ...], said: str) -> None:
    """A step or a strategy that the run has not: which there are. A cell that failed: why."""
    assert said in ctxbench("show", "r", "1", *words, cwd=here, code=2).stderr


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("window", "window(max_tokens=90)"),
        ("window( max_tokens = 90, reserve=0.1)", "window(max_tokens=90)"),
        ("shows.py:Moves", "shows.py:Moves@"),
        ("shows.py:Moves(head=2)", "(head=2)"),
    ],
)
def test_a_strategy_is_meant_by_part_of_its_text(here: Path, text: str, meant: str) -> None:
    """The text of a strategy, however it is written, or its name alone if no other strategy of the run has it."""
    assert meant in shown(here, "-s", text)["strategy"]


def test_a_file_that_has_changed_does_not_matter(tmp_path: Path) -> None:
    """A run is shown whatever has become of a strategy's file; of two that are meant, both are named."""
    (tmp_path / "shows.py").write_text(PLUGIN)
    (tmp_path / "talk.jsonl").write_bytes(SAID.to_json() + b"\n")
    given = ("-s", "shows.py:Moves(head=2)", "-s", "shows.py:Moves(head=3)")
    ctxbench("run", "talk.jsonl", *given, "-o", "r", cwd=tmp_path)
    (tmp_path / "shows.py").write_text("1 / 0")
    assert shown(tmp_path, "-s", "shows.py:Moves(head=3)")["strategy"].endswith("(head=3)")
    told = ctxbench("show", "r", "1", "-s", "shows.py:Moves", cwd=tmp_path, code=2).stderr
    assert "'shows.py:Moves' may be shows.py:Moves@" in told
    assert told.endswith("(head=3): write more of it\n")


def test_a_conversation_without_a_model_call(tmp_path: Path) -> None:
    """A conversation in which no model was called says so."""
    (tmp_path / "talk.jsonl").write_bytes(talk(("user", "hello"), name="talk").to_json() + b"\n")
    ctxbench("run", "talk.jsonl", "-s", "none", "-o", "r", cwd=tmp_path)
    told = ctxbench("show", "r", "talk", cwd=tmp_path, code=2).stderr
    assert told == "error: 'talk': no model was called: it has no steps\n"


def test_nothing_is_cut_where_nobody_asks_for_a_width(tmp_path: Path) -> None:
    """In a pipe a message is a line, whole, and so is an event; COLUMNS cuts them."""
    long = talk(("user", "word " * 500 + "\nlast"), ("assistant", "fine"), name="talk")
    (tmp_path / "talk.jsonl").write_bytes(long.to_json() + b"\n")
    ctxbench("run", "talk.jsonl", "-s", "window(max_tokens=100)", "-o", "r", cwd=tmp_path)
    command = [CTXBENCH, "show", "r", "1"]
    plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    whole = forked("commands", command, tmp_path, plain).stdout
    assert "word word last\n" in whole
    assert any(line.startswith("over_budget") and "budget=90" in line for line in whole.splitlines())
    narrow = forked("commands", command, tmp_path, {**plain, "COLUMNS": "60"}).stdout
    assert max(map(len, narrow.splitlines())) <= 60
    assert "budget=90" in narrow
