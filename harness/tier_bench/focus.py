"""Measure what truncations of the Focus tier keep of recordings: `ctxbench lab bench-tier focus`.

A preset of `ctxbench run`: the whole history and the strategies are replayed into a run folder, and their figures are
read from it. One row is added, a bound: the most evidence that fits beside what is never cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ctxbench.metrics.figures import METRICS, recall_interval
from ctxbench.metrics.probes import Latency, latency, placed_probes
from ctxbench.metrics.statistics.intervals import Interval, share_interval
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages

from ..engine.plan import Plan, RunInputs, Watcher, execute
from ..folder.run import Run, load, uneven
from ..folder.steps import steps_of
from ..models import Settings
from ..replay import ConversationIndex

WHOLE, BOUND = "none", "bound (evidence first)"


class FocusRow(NamedTuple):
    """The figures of one strategy over the conversations that every strategy finished."""

    strategy: str
    calls: int
    tokens: int
    share: Value
    """Share of the tokens of the whole history."""
    over: int
    """Requests over the limit."""
    over_budget: int
    """Calls at which the strategy reports that its own limit cannot be met."""
    context_recall: Interval | Missing
    answer_in_context: Value
    grounding: Value
    latency: Latency | Missing
    """Of building a context, in microseconds."""
    probes: int
    """Probes that rest on an earlier message."""


def bench(
    inputs: RunInputs,
    strategies: Sequence[str],
    encoding: str,
    folder: Path,
    models: Settings = Settings(),  # noqa: B008
    watcher: Watcher | None = None,
) -> Run:
    """Replay the whole history and some strategies into a folder, and return the run.

    Raises UserError as `ctxbench run` does.
    """
    plan = Plan(inputs, (WHOLE, *strategies), encoding, models=models, answers=False)
    execute(plan, folder, watcher=watcher)
    return load(folder)


def rows(run: Run, limit: int) -> list[FocusRow]:
    """Return a row for the whole history, the bound, and then every other strategy."""
    left_out = uneven(run.failures, run.manifest.conversations)
    steps, probes = steps_of(run), run.table("probes")
    steps, probes = steps[~steps.conversation.isin(left_out)], probes[~probes.conversation.isin(left_out)]
    over_budget = _calls_over_budget(run, left_out)
    whole, *others = (
        _row(
            strategy,
            steps[steps.strategy == strategy],
            probes[probes.strategy == strategy],
            limit,
            over_budget.get(strategy, 0),
            run.units,
        )
        for strategy in run.manifest.plan.strategies
    )
    counter = TokenCounter(run.manifest.plan.encoding)
    shares = {
        conversation.id: fitting_shares(conversation, limit, counter)
        for conversation in run.conversations()
        if conversation.id not in left_out
    }
    return [whole, _bound(shares, run.units), *others]


def _row(
    strategy: str, steps: pd.DataFrame, probes: pd.DataFrame, limit: int, over_budget: int, units: Mapping[str, str]
) -> FocusRow:
    sent, full = int(steps.tokens_sent.sum()), int(steps.tokens_full.sum())
    return FocusRow(
        strategy,
        calls=len(steps),
        tokens=sent,
        share=sent / full if full else Missing("undefined", "no calls"),
        over=int((steps.tokens_sent > limit).sum()),
        over_budget=over_budget,
        context_recall=recall_interval(probes, strategy, units),
        answer_in_context=METRICS["answer_in_context"].of(probes),
        grounding=METRICS["grounding"].of(steps),
        latency=latency(steps.latency_ns.to_numpy() / 1000),
        probes=int(probes.evidence.map(len).gt(0).sum()),
    )


def _calls_over_budget(run: Run, left_out: Collection[str]) -> dict[str, int]:
    events = run.table("events")
    events = events[(events.kind == "over_budget") & ~events.conversation.isin(left_out)]
    calls = events[["strategy", "conversation", "step"]].astype({"strategy": str}).drop_duplicates()
    return {str(strategy): len(rows) for strategy, rows in calls.groupby("strategy")}


def _bound(shares: dict[str, list[float]], units: Mapping[str, str]) -> FocusRow:
    nothing = Missing("undefined", "the bound is for probes")
    names = [units[name] for name, values in shares.items() for _ in values]
    recall = share_interval([share for values in shares.values() for share in values], names)
    return FocusRow(BOUND, 0, 0, nothing, 0, 0, recall, nothing, nothing, nothing, len(names))


def fitting_shares(conversation: Conversation, limit: int, counter: TokenCounter) -> list[float]:
    """Return for each probe how much of its evidence fits beside system messages, tool schemas and the question.

    The shortest evidence goes first. Calls and results may be separated here, and nothing else is sent: no strategy
    within the limit keeps more.
    """
    index = ConversationIndex(conversation, counter)
    shares = []
    for placed in placed_probes(conversation):
        history = Messages.prefix(conversation.messages, placed.stop)
        left = limit - PRIMING - index.tools(conversation.tools)
        left -= counter.message(Message("question", "user", placed.probe.question))
        left -= index.ledger.total(index.structure.systems(history))
        # System messages are never cut, so evidence in them costs nothing more.
        evidence = [history[item.at] for item in placed.evidence]
        sizes = [0 if message.role == "system" else counter.message(message) for message in evidence]
        if sizes:
            shares.append(float((np.cumsum(sorted(sizes)) <= left).mean()))
    return shares
