"""The tables of a run where strategies fail, where nothing is wrong, and where a figure cannot be had."""

import json
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.metrics.survival import Survival
from ctxbench.metrics.value import Missing
from ctxbench.reports.render import markdown
from ctxbench.reports.results import as_json, summarise
from ctxbench.reports.tables import survival_tables, tables
from ctxbench.strategies.base import Context, StrategyContext, View
from ctxbench.strategies.bounds import LastTurn
from ctxbench.strategies.events import Failed
from ctxbench.strategies.window import Window
from tests.harness.runs import STRATEGIES, fail, plan, recording

WINDOW = STRATEGIES[1]


def ran(folder: Path, *names: object, strategies: tuple[str, ...] = STRATEGIES) -> Run:
    execute(plan(*names, strategies=strategies), folder / "run")
    return load(folder / "run")


def test_strategies_are_compared_over_what_all_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one strategy fails in a conversation, no strategy's sums hold it, and the note under the table says so."""
    fail(monkeypatch, Window, "question 2 ")
    run = ran(tmp_path, recording(tmp_path, conversations=4))
    summary = summarise(run)
    steps = run.table("steps")
    both = steps[steps.conversation != "c2"]
    for name in STRATEGIES:
        assert summary.strategies[name]["tokens_sent"] == both[both.strategy == name].tokens_sent.sum()
        assert summary.strategies[name]["steps"] == 3 * 24
    assert set(summary.steps.growth.conversations) == {3}
    assert (summary.compared, summary.failed_conversations) == (3, {"none": 0, WINDOW: 1, "last_turn": 0})
    said = f"All figures are over the 3 of 4 conversations that every strategy finished. Failed: {WINDOW} in 1."
    found = list(tables(summary))
    assert found[0].notes[0] == said
    assert said in markdown(found)
    printed = json.loads(msgspec.json.encode(as_json(summary)))
    assert (printed["conversations"], printed["compared"], printed["failed_conversations"][WINDOW]) == (4, 3, 1)


def test_a_strategy_that_finished_nothing_takes_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that fails everywhere has no figures, not zeros, and takes none from the others."""
    fail(monkeypatch, LastTurn, "question")
    summary = summarise(ran(tmp_path, recording(tmp_path, conversations=2)))
    assert summary.strategies["last_turn"]["overflows"] == Missing("failed", "in every conversation")
    assert summary.strategies[WINDOW]["steps"] == 2 * 24
    main = next(tables(summary))
    assert [row[0] for row in main.rows] == ["none", WINDOW]
    assert main.notes[0] == "Not shown: last_turn, which failed in every conversation."


def failing(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Have `last_turn` report a reason at each step, with the number of messages in it."""

    def start(self: object, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            services.record(Failed("summary", why.format(len(context.messages)), "cut"))
            return context

        return view

    monkeypatch.setattr(LastTurn, "start", start)


def test_why_something_failed_or_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row each for what a strategy reported, its numbers that differ left out; the same in Markdown and in JSON. What
    a provider would refuse is another thing than a budget that is too small, and has another word."""
    failing(monkeypatch, "the reply has {} tokens, over 1")
    strategies = ("none", "last_turn", "window(max_tokens=10)")
    summary = summarise(ran(tmp_path, recording(tmp_path, conversations=2), strategies=strategies))
    [why] = [table for table in tables(summary) if table.title == "Why did something fail?"]
    assert why.heads == ("strategy", "what", "reason", "instead", "times")
    assert set(why.rows) == {
        ("last_turn", "failed", "the reply has … tokens, over 1", "cut", "48"),
        ("window(max_tokens=10)", "over budget", "the newest message does not fit", "", "48"),
    }
    assert len(why.notes) == 1
    assert "| last_turn | failed | the reply has … tokens, over 1 | cut | 48 |" in markdown([why])
    printed = json.loads(msgspec.json.encode(as_json(summary)))
    assert {
        "strategy": "last_turn",
        "what": "failed",
        "why": "the reply has … tokens, over 1",
        "instead": "cut",
        "times": 48,
    } in printed["reasons"]


def test_the_library_stands_in_the_row_of_its_strategy(tmp_path: Path) -> None:
    """The main table has a column with the package of each strategy and its version, where a strategy has one."""
    run = ran(tmp_path, recording(tmp_path))
    assert "library" not in next(tables(summarise(run))).heads
    versions = run.manifest.versions | {f"strategy {WINDOW.partition('(')[0]}": "langchain 1.5.2"}
    vars(run)["manifest"] = msgspec.structs.replace(run.manifest, versions=versions)
    summary = summarise(run)
    main = next(tables(summary))
    assert main.heads[:2] == ("strategy", "library")
    assert {row[0]: row[1] for row in main.rows} == dict.fromkeys(STRATEGIES, "–") | {WINDOW: "langchain 1.5.2"}
    assert as_json(summary)["libraries"] == {WINDOW: "langchain 1.5.2"}


def test_why_a_figure_is_missing(tmp_path: Path) -> None:
    """A figure that cannot be had prints as its reason, with the details under the table, each kind of reason once."""
    said = [{"id": "a", "role": "user", "text": "hello"}, {"id": "b", "role": "assistant", "text": "hi"}]
    (tmp_path / "one.jsonl").write_text(json.dumps({"ctxbench": "1", "id": "one", "messages": said}))
    main = next(tables(summarise(ran(tmp_path, tmp_path / "one.jsonl", strategies=("none",)))))
    assert "(undefined)" in main.rows[0]
    assert main.notes[-1].startswith("Undefined: no second step; no recorded call or answer uses what was said before;")


def chat(folder: Path, *strategies: str) -> Run:
    """A run on one conversation of a user and an assistant in turn, whose third message is long."""
    texts = ("hi", "yo", "word " * 500, "yo", "hi", "yo")
    messages = [
        {"id": f"m{at}", "role": "assistant" if at % 2 else "user", "text": text} for at, text in enumerate(texts)
    ]
    (folder / "one.jsonl").write_text(json.dumps({"ctxbench": "1", "id": "one", "messages": messages}))
    return ran(folder, folder / "one.jsonl", strategies=strategies)


def test_a_call_that_asks_nothing_saves_nothing(tmp_path: Path) -> None:
    """Worked by hand: the second of three calls cannot send its message of 500 words. What it saves is marked, and the
    saving without it has a table of its own. The first sends all it has, "hi": 1 token, 4 of the frame, 3 of the reply.
    """
    window = "window(max_tokens=40)"
    summary = summarise(run := chat(tmp_path, "none", window))
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
    turn = next(table for table in found if table.title == "How many tokens does a call take, by turn?")
    assert [cell.endswith("*") for cell in turn.rows[1]] == [False, False, True]
    assert turn.notes[1] == "* Part of this saving comes from calls that lack the newest message."


def test_a_strategy_that_no_model_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row is marked, the mark is explained, and the JSON names it."""
    failing(monkeypatch, "openai/x: there is no key")
    summary = summarise(chat(tmp_path, "none", "last_turn", "summary(threshold=1)"))
    main = next(tables(summary))
    assert [row[0] for row in main.rows] == ["none", "last_turn †", "summary(threshold=1)"]
    assert any(note.startswith("† No call of its models succeeded") for note in main.notes)
    assert json.loads(msgspec.json.encode(as_json(summary)))["unanswered"] == ["last_turn"]


@pytest.mark.parametrize(("kept", "told"), [(400, False), (600, True)])
def test_the_cliff_where_it_tells_something(
    kept: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If all strategies lose most facts in the first summary, there is no column that says so of each."""
    summary = summarise(ran(tmp_path, recording(tmp_path, conversations=2), strategies=("none",)))
    rows = [Survival("number", 0, 1000, kept), Survival("number", 1, 1000, 100)]
    monkeypatch.setitem(summary.survival, "none", rows)
    table = next(survival_tables(summary))
    assert ("cliff" in table.heads) == told
    assert table.rows[0][-1] == ("round 1" if told else "")
    assert len(table.heads) == len(table.rows[0])
