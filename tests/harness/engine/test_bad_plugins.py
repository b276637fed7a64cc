"""Plug-ins that do what a strategy must not: each loses its cells, with a sentence, and nothing else is lost."""

import json
import os
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.engine.shard import _exit_raises, _replayed
from ctxbench.harness.folder.run import load
from ctxbench.harness.models import OFFLINE
from ctxbench.harness.replay import ConversationIndex
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import Stopped
from ctxbench.strategies.base import StrategyContext, View
from tests.builders import talk
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

START = """
import sys
from dataclasses import dataclass
from ctxbench.scenarios.model import Message, Tool
from ctxbench.scenarios.view import Messages, Span
from ctxbench.strategies.base import Context
from ctxbench.strategies.events import Dropped

@dataclass(frozen=True, slots=True)
class Bad:
    {more}
    def start(self, services):
        def view(context):
            {body}
        return view
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("services.record('x'); return context", "services.record was given a str, an event is wanted"),
        (
            "services.record(Dropped((1,))); return context",
            "a Dropped of the strategy is not well formed: Expected `str`",
        ),
        ("services.complete('hi'); return context", "services.complete was given a str, a Prompt is wanted"),
        ("return Context(context.messages, (99,))", "the marks of the Context are (99,), and it has 2 messages"),
        ("return Context(context.messages, None)", "the marks of the Context are None, a tuple of places"),
        ("return Context(context.messages, (), ('t',))", "a str is among the tools of the Context"),
        ("return Context(context.messages, (), (Tool(5),))", "a Tool of the strategy is not well formed"),
        ("return None", "the strategy returned None, a Context is wanted"),
        ("return Context(list(context.messages))", "the messages of the Context are a list"),
        ("return context.sending([{'role': 'user'}])", "a dict is among the messages of the Context"),
        ("return context.sending([Message('m', 'user', None)])", "a Message of the strategy is not well formed"),
        ("return Context(Messages([Span((), 0, 9)]))", "have a span 0:9 of 0"),
        ("sys.exit(3)", "SystemExit: 3 (bad.py:14)"),
        ("__import__('json').loads('{')", "line 1 column 2 (char 1) (bad.py:14)"),  # the user's line, not the library's
    ],
)
def test_a_bad_step_loses_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str) -> None:
    """What a view does wrong is the sentence of its cell; the other strategy is measured."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(START.format(more="", body=body))
    execute(plan(recording(tmp_path, conversations=1), strategies=("bad.py:Bad", "none")), tmp_path / "run")
    cells = load(tmp_path / "run").table("results")
    assert list(cells.status) == ["failed", "ok"]
    assert why in cells.detail[0]


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (bad.py:13)"),
        ("'many'", "the strategy's budget is 'many', a whole number of tokens (or None) is wanted"),
        ("-1", "the strategy's budget is -1"),
    ],
)
def test_a_bad_budget_loses_the_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str, why: str) -> None:
    """A budget that raises, or is no number of tokens, loses the strategy's cells, in a chain as alone."""
    monkeypatch.chdir(tmp_path)
    more = f"@property\n    def budget(self):\n        return {budget}"
    (tmp_path / "bad.py").write_text(START.format(more=more, body="return context"))
    chosen = ("bad.py:Bad", "none | bad.py:Bad", "none")
    execute(plan(recording(tmp_path, conversations=2), strategies=chosen), tmp_path / "run")
    cells = load(tmp_path / "run").table("results")
    assert list(cells.status) == ["failed"] * 4 + ["ok"] * 2
    assert all(why in detail for detail in cells.detail[cells.strategy != "none"])


class Ends:
    """Raises what it is given, as a user's Ctrl-C would be raised within it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def start(self, services: StrategyContext) -> View:
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Stopped(130)])
def test_a_user_who_stops_the_run_is_heard(error: BaseException) -> None:
    """Only sys.exit itself is a strategy's failure: Ctrl-C and Stopped go through."""
    books = ConversationIndex(talk(("user", "a"), ("assistant", "b")), TokenCounter())
    with pytest.raises(type(error)):
        _replayed(books, Ends(error), OFFLINE, True)
    assert "SystemExit: 4" in str(_replayed(books, Ends(SystemExit(4)), OFFLINE, True))


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_plug_in_prints_is_no_output_of_ours(tmp_path: Path, jobs: int) -> None:
    """Figures on standard output stay JSON, whatever a plug-in prints when it is loaded and when it is asked."""
    text = START.format(more="", body="print('asked')\n            return context")
    (tmp_path / "loud.py").write_text(text + "print('loaded')\n")
    path = recording(tmp_path, conversations=2, turns=2)
    ran = ctxbench("run", path, "-s", "loud.py:Bad", "-o", "r", "-j", jobs, "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["strategies"]
    assert "asked" in ran.stderr
    assert "loaded" in ran.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_strategy_that_ends_the_process_fails(tmp_path: Path, jobs: int) -> None:
    """A strategy that calls os._exit loses its conversations, and the command goes on, however many workers it has."""
    (tmp_path / "bad.py").write_text(START.format(more="", body="import os; os._exit(3)"))
    path = recording(tmp_path, conversations=2)
    ran = ctxbench("run", path, "-s", "none", "-s", "bad.py:Bad", "-o", "r", "-j", jobs, cwd=tmp_path, code=2)
    assert "error: bad.py:Bad finished no conversation: SystemExit: os._exit(3) (bad.py:" in ran.stderr
    assert ran.stdout


def test_ending_the_process_is_given_back() -> None:
    """Where threads make runs side by side, os._exit raises until the last of them is done, and ends it again then."""
    ends, one, other = os._exit, _exit_raises(), _exit_raises()
    for step in (one.__enter__, other.__enter__, lambda: one.__exit__(None, None, None)):
        step()
        with pytest.raises(SystemExit, match="3"):
            os._exit(3)
    other.__exit__(None, None, None)
    assert os._exit is ends


def test_failures_are_grouped_and_the_exit_code_says_that_all_failed(tmp_path: Path) -> None:
    """One row a reason with how often it came; a strategy that finished nothing makes it exit code 2, after tables."""
    (tmp_path / "bad.py").write_text(START.format(more="", body="return None"))
    some = "if '2 0' in context.messages[1].text: sys.exit(1)\n            return context"
    (tmp_path / "some.py").write_text(START.format(more="", body=some))
    path = recording(tmp_path, conversations=3)
    words = ("run", path, "-s", "none", "-s", "some.py:Bad", "-o", "r")
    ran = ctxbench(*words, cwd=tmp_path)
    assert "finished no conversation" not in ran.stderr
    ran = ctxbench(*words[:-1], "s", "-s", "bad.py:Bad", cwd=tmp_path, code=2)
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("failed       bad.py:Bad")]
    assert "bad.py:Bad in 3 of 3 conversations, first c0: " in line
    assert "results: s/" in ran.stdout
    (said,) = [line for line in ran.stderr.splitlines() if line.startswith("error:")]
    assert said.startswith("error: bad.py:Bad finished no conversation: ")
    assert "some.py" not in said


def test_a_strategy_that_does_not_repeat_itself_is_marked(tmp_path: Path) -> None:
    """One conversation is replayed twice: a strategy that sends something else is struck out with the conversation."""
    body = "NUMBERS.append(0)\n            return context.sending(context.messages[len(NUMBERS) % 7 and -1 :])"
    (tmp_path / "odd.py").write_text("NUMBERS = []\n" + START.format(more="", body=body))
    ran = ctxbench("run", "traps", "-s", "none", "-s", "last_turn", "-s", "odd.py:Bad", "-o", "r", cwd=tmp_path)
    results = load(tmp_path / "r").table("results")
    checked = results.dropna(subset=["repeats"])
    assert checked.groupby("strategy", observed=True).size().tolist() == [1, 1, 1]
    assert checked.repeats.tolist() == [True, True, False]
    assert "repeated_identical (sends something else when it is replayed again)" in " ".join(ran.stdout.split())
