"""What of each context is the strategy's own, and whether it has the newest message."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, steps_of
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.model import Message, Role, Tool
from ctxbench.strategies.base import Context, StrategyContext, View
from ctxbench.strategies.bounds import LastTurn
from ctxbench.strategies.events import Summarised
from tests.harness.runs import plan, recording

COUNTER = TokenCounter("o200k_base")
STRATEGIES = (
    "none",
    "window(max_tokens=60)",
    "summary(threshold=4)",
    "facts",
    "archive(threshold=20, fresh=False)",
    "archive(threshold=20) | window(max_tokens=300)",
)


def ran(folder: Path, *strategies: str) -> Run:
    execute(plan(recording(folder, conversations=2, turns=4, size=200), strategies=strategies), folder / "run")
    return load(folder / "run")


def in_plain_words(run: Run, name: str, strategy: str) -> list[tuple[int, bool]]:
    """`tokens_added` and `newest` of each step, message by message, for a recording without tools."""
    said = run.conversation(name)
    steps = run.table("steps")
    totals = steps.tokens_sent[(steps.conversation == name) & (steps.strategy == strategy)].tolist()
    found = []
    for at, context, total in zip(said.calls(), run.contexts(said, strategy), totals, strict=True):
        recorded = sum(COUNTER.message(each) for each in context if each in said.messages)
        newest = any(each.id == said.messages[at - 1].id for each in context)
        found.append((total - PRIMING - recorded, newest))
    return found


def test_as_in_plain_words(tmp_path: Path) -> None:
    """Read from the log it is what reading every message of every context gives, whatever the strategy."""
    run = ran(tmp_path, *STRATEGIES)
    assert {"archived", "summarised"} <= set(run.table("events").kind)
    steps, lacking = steps_of(run), 0
    for name in ("c0", "c1"):
        for strategy in STRATEGIES:
            cell = steps[(steps.conversation == name) & (steps.strategy == strategy)]
            wanted = in_plain_words(run, name, strategy)
            assert list(zip(cell.tokens_added, cell.newest, strict=True)) == wanted
            lacking += sum(not newest for _, newest in wanted)
    assert lacking  # the first window is too small for the results


def sending(monkeypatch: pytest.MonkeyPatch, chosen: Any, tools: Sequence[Tool] = ()) -> None:
    """Have `last_turn` send what is chosen of the history, and these tools."""

    def start(self: object, services: StrategyContext) -> View:
        return lambda context: msgspec.structs.replace(
            context.sending(chosen(context.messages)), tools=(*context.tools, *tools)
        )

    monkeypatch.setattr(LastTurn, "start", start)


def test_tools_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that the strategy offers is charged at every call, and nothing else of the whole history is."""
    tool = Tool("look", "looks things up", '{"type": "object", "properties": {}}')
    sending(monkeypatch, lambda messages: messages, (tool,))
    steps = steps_of(ran(tmp_path, "last_turn"))
    assert set(steps.tokens_added) == {COUNTER.tools((tool,))}
    assert set(steps.tokens_sent - steps.tokens_full) == {COUNTER.tools((tool,))}
    assert steps.newest.all()


@pytest.mark.parametrize(("written", "there"), [("its own", True), ("another", False)])
def test_what_stands_for_the_newest_message(
    written: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message written under the id of the newest stands for it; one under another id does not."""

    def chosen(messages: Sequence[Message]) -> list[Message]:
        name = messages[-1].id if written == "its own" else "note"
        return [*messages[:-1], Message(name, "user", "so it goes")]

    sending(monkeypatch, chosen)
    steps = steps_of(ran(tmp_path, "last_turn"))
    assert set(steps.newest) == {there}
    assert (steps.tokens_added > 0).all()


@pytest.mark.parametrize(("role", "there"), [("user", True), ("system", False)])
def test_a_summary_that_covers_the_newest_message(
    role: Role, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a message of the user it is answered in its place; behind a system message alone nothing is asked."""

    def start(self: object, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            services.record(Summarised(tuple(message.id for message in context.messages), "in short", by="note"))
            return context.sending([Message("note:1", role, "in short")])

        return view

    monkeypatch.setattr(LastTurn, "start", start)
    assert set(steps_of(ran(tmp_path, "last_turn")).newest) == {there}


def test_a_run_without_calls(tmp_path: Path) -> None:
    """Where no model was called there are no steps, and the columns are there."""
    said = {"ctxbench": "1", "id": "x", "messages": [{"id": "m", "role": "user", "text": "hi"}]}
    (tmp_path / "x.jsonl").write_bytes(msgspec.json.encode(said))
    execute(plan(tmp_path / "x.jsonl", strategies=("none",)), tmp_path / "run")
    steps = steps_of(load(tmp_path / "run"))
    assert len(steps[~steps.newest]) == 0
