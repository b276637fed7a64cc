"""Measure what truncations of the Focus tier keep of recordings: `ctxbench lab tiers focus`.

The whole history and the strategies are replayed into a run folder, and their figures are read from it. One row is
added, a bound: the most evidence that fits beside what is never cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
import numpy as np

from ctxbench.metrics.figures import METRICS, recall_interval
from ctxbench.metrics.probes import latency, placed_probes
from ctxbench.metrics.statistics.intervals import share_interval
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.tiers.focus import TruncationMode

from ..answers.tally import Tally, run_tallies
from ..folder.run import Run, steps_of, uneven
from ..replay import ConversationIndex
from .bench import BenchSetup

WHOLE, BOUND = "none", "bound (evidence first)"


class FocusMeasurement(NamedTuple):
    """The figures of all strategies within one limit."""

    limit: int
    conversations: int
    rows: list[dict[str, Any]]
    failed: list[dict[str, str]]  # conversations in which a strategy failed, and why: they count in no figure
    replies: list[Tally]  # replies of the models that strategies name for themselves


@dataclass(frozen=True, slots=True)
class FocusBench:
    """Put recorded calls and probes through the Focus tier, and measure what it keeps within its limit."""

    recordings: str | tuple[str, ...] = "standard"
    format: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10**12)] = 8192
    truncations: tuple[TruncationMode, ...] = get_args(TruncationMode)
    beside: tuple[str, ...] | None = None
    """Strategies to compare with; None = window, summary and retrieval under the same limit."""

    def measure(self, bench: BenchSetup) -> FocusMeasurement:
        """Replay the strategies. Raises UserError as `ctxbench run` does."""
        ours = [f"focus(limit={self.limit}, truncation={name!r})" for name in dict.fromkeys(self.truncations)]
        # These count neither tool schemas nor the tokens that start the reply.
        usual = (
            f"window(max_tokens={self.limit}, reserve=0)",
            f"summary(threshold=1000000, max_tokens={self.limit})",
            f"retrieval(max_tokens={self.limit})",
        )
        conversations = bench.read(self.recordings, self.format)
        run = bench.run(conversations, [WHOLE, *ours, *(usual if self.beside is None else self.beside)])
        failed = [
            {"conversation": name, "strategy": strategy, "why": why}
            for strategy, names in run.failures.items()
            for name, why in names.items()
        ]
        return FocusMeasurement(self.limit, len(conversations), rows(run, self.limit), failed, run_tallies(run))


def rows(run: Run, limit: int) -> list[dict[str, Any]]:
    """Return figures of the whole history, the bound, and every other strategy, where all finished the conversation.

    `probes` rest on an earlier message, `share` is of the tokens of the whole history, `over` counts requests over the
    limit, and `over_budget` calls at which the strategy reports that its own limit cannot be met. The bound is for
    probes: it has no calls.
    """
    left_out = uneven(run.failures, run.manifest.conversations)
    steps, probes, events = (
        table[~table.conversation.isin(left_out)] for table in (steps_of(run), run.table("probes"), run.table("events"))
    )
    over = events[events.kind == "over_budget"][["strategy", "conversation", "step"]].astype({"strategy": str})
    calls_over_budget = over.drop_duplicates().strategy.value_counts()

    def row(strategy: str) -> dict[str, Any]:
        asked, sent = probes[probes.strategy == strategy], steps[steps.strategy == strategy]
        tokens, full = int(sent.tokens_sent.sum()), int(sent.tokens_full.sum())
        return {
            "strategy": strategy,
            "context_recall": recall_interval(asked, strategy, run.units),
            "probes": int(asked.evidence.map(len).gt(0).sum()),
            "calls": len(sent),
            "tokens": tokens,
            "share": tokens / full if full else Missing("undefined", "no calls"),
            "over": int((sent.tokens_sent > limit).sum()),
            "over_budget": int(calls_over_budget.get(strategy, 0)),
            "answer_in_context": METRICS["answer_in_context"].of(asked),
            "grounding": METRICS["grounding"].of(sent),
            "latency_us": latency(sent.latency_ns.to_numpy() / 1000),
        }

    whole, *others = map(row, run.manifest.plan.strategies)
    counter, shares, units = TokenCounter(run.manifest.plan.encoding), list[float](), list[str]()
    for conversation in run.conversations():
        if conversation.id not in left_out:
            shares += fitting_shares(conversation, limit, counter)
            units += [run.units[conversation.id]] * (len(shares) - len(units))
    return [whole, {"strategy": BOUND, "context_recall": share_interval(shares, units), "probes": len(units)}, *others]


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
