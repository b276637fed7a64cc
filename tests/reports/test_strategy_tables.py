"""The main table's marks: a saving that is none, a strategy that no model answered."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.metrics.value import Missing
from ctxbench.reports.render import Table, markdown
from ctxbench.reports.results import as_json, by_conversation, summarise
from ctxbench.reports.tables import conversation_table, tables
from ctxbench.strategies.base import Context, StrategyContext, View
from ctxbench.strategies.bounds import LastTurn
from ctxbench.strategies.events import Failed
from tests.harness.runs import plan


def ran(folder: Path, *strategies: str, texts: tuple[str, ...] = ("hi", "yo", "word " * 500, "yo", "hi", "yo")) -> Run:
    """A run on one conversation of a user and an assistant in turn."""
    messages = [
        {"id": f"m{at}", "role": "assistant" if at % 2 else "user", "text": text} for at, text in enumerate(texts)
    ]
    (folder / "one.jsonl").write_text(json.dumps({"ctxbench": "1", "id": "one", "messages": messages}))
    execute(plan(folder / "one.jsonl", strategies=strategies), folder / "run")
    return load(folder / "run")


def named(found: list[Table], title: str) -> Table:
    return next(table for table in found if table.title == title)


def test_a_call_that_asks_nothing_saves_nothing(tmp_path: Path) -> None:
    """Worked by hand: the second of three calls cannot send its message of 500 words. What it saves is marked, and the
    saving without it has a table of its own. The first sends all it has, "hi": 1 token, 4 of the frame, 3 of the reply.
    """
    window = "window(max_tokens=40)"
    summary = summarise(run := ran(tmp_path, "none", window))
    values = summary.strategies[window]
    steps = run.table("steps")
    mine = steps[steps.strategy == window]
    first, _, third = mine.tokens_full.tolist()
    assert (mine.tokens_sent.tolist()[0], first) == (8, 8)
    assert values["without_newest"] == 1
    assert values["saving_with_newest"] == 1 - (8 + mine.tokens_sent.tolist()[2]) / (first + third)
    found = list(tables(summary))
    assert [row[1].endswith("*") for row in found[0].rows] == [False, True]
    assert "* Part of this saving comes from calls that lack the newest message: see the next table." in found[0].notes
    assert found[1].title == "Which calls lack the newest message?"
    [row] = found[1].rows
    assert row[:3] == (window, "1", "3")
    assert row[3] + "*" == found[0].rows[1][1]
    assert "\n\\* Part of this" in markdown(found)
    turn = named(found, "How many tokens does a call take, by turn?")
    assert [cell.endswith("*") for cell in turn.rows[1]] == [False, False, True]
    assert turn.notes[1] == "* Part of this saving comes from calls that lack the newest message."
    cells = conversation_table(by_conversation(run))
    assert [row[3].endswith("*") for row in cells.rows] == [False, True]


def test_nothing_was_ever_asked(tmp_path: Path) -> None:
    """Where every call lacks its message there is no saving to speak of, and that is said."""
    summary = summarise(ran(tmp_path, "window(max_tokens=1)", texts=("hi", "yo")))
    missing = Missing("undefined", "no call has the newest message")
    assert summary.strategies["window(max_tokens=1)"]["saving_with_newest"] == missing
    [row] = named(list(tables(summary)), "Which calls lack the newest message?").rows
    assert row == ("window(max_tokens=1)", "1", "1", "62.5 %", "(undefined)")


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: object, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            services.record(Failed("summary", "openai/x: there is no key", "all is sent"))
            return context

        return view

    monkeypatch.setattr(LastTurn, "start", start)


def test_a_strategy_that_no_model_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row is marked, the mark is explained, and the JSON names it."""
    failing(monkeypatch)
    summary = summarise(ran(tmp_path, "none", "last_turn", "summary(threshold=1)"))
    main = next(tables(summary))
    assert [row[0] for row in main.rows] == ["none", "last_turn †", "summary(threshold=1)"]
    assert any(note.startswith("† No call of its models succeeded") for note in main.notes)
    assert json.loads(msgspec.json.encode(as_json(summary)))["unanswered"] == ["last_turn"]
