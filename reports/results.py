"""All that is reckoned of a run to be shown, each once and when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ..harness.bill.bill import Billed, bill
from ..harness.bill.prefix_breaks import breaks
from ..harness.bill.simulation import Scheme
from ..harness.folder.contexts import ListColumn, steps_of
from ..harness.folder.run import Run
from ..harness.tier_bench.working import miss_ratios
from ..metrics.figures import METRICS
from .answers import all_json
from .bill import totals
from .probes import as_json as probes_as_json
from .summary import RunSummary, growth_table, summarise
from .tier_actions import tier_actions_json as tiers_as_json

MOST_WORK = 3_000_000
"""Messages put into requests up to which all conversations are billed: a quarter of a minute or so."""
A_STEP = 5
"""What a step costs beside its messages, as messages."""


@dataclass(frozen=True)
class Results:
    """A run, what its tables and figures show, and the models that it is billed under, the first of them first."""

    run: Run
    models: Sequence[str]

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The columns of `steps_of`."""
        return steps_of(self.run)

    @cached_property
    def summary(self) -> RunSummary:
        """The figures of every strategy."""
        return summarise(self.run, self.steps)

    @property
    def common(self) -> pd.DataFrame:
        """The steps of the conversations that every strategy finished: what strategies are compared by."""
        uneven = self.summary.uneven
        return self.steps[~self.steps.conversation.isin(uneven)] if uneven else self.steps

    @property
    def strategies(self) -> list[str]:
        """As they were named, in that order."""
        return list(self.summary.strategies)

    @cached_property
    def billed_conversations(self) -> list[str]:
        """Those whose requests are billed: all, or of a large run as many as there is time for, evenly chosen."""
        names = self.run.table("conversations").conversation.tolist()
        table = self.run.arrow("steps").select(["conversation", "added_from", "added_to"])
        messages = ListColumn(table.column("added_to")).sums() - ListColumn(table.column("added_from")).sums()
        work = float(messages.sum()) + A_STEP * len(table)
        if work <= MOST_WORK:
            return names
        wanted = max(1, int(len(names) * MOST_WORK / work))
        return [names[at] for at in np.unique(np.linspace(0, len(names) - 1, wanted).round().astype(int))]

    @cached_property
    def is_sampled(self) -> bool:
        """Whether not all conversations are billed."""
        return len(self.billed_conversations) < self.summary.conversations

    @property
    def sampled(self) -> list[str]:
        """What is to be said of it, where not all are."""
        if not self.is_sampled:
            return []
        billed, whole = len(self.billed_conversations), self.summary.conversations
        return [
            f"The run is large: {billed:,} of its {whole:,} conversations, evenly chosen, are billed here. "
            "`ctxbench bill` bills them all."
        ]

    @cached_property
    def billed(self) -> Billed:
        """The requests of the run under the prices and caches of the models."""
        run = Run(self.run.folder, frozenset(self.billed_conversations)) if self.is_sampled else self.run
        return bill(run, [Scheme(model) for model in self.models])

    @cached_property
    def bills(self) -> pd.DataFrame:
        """A row for each conversation, strategy and model (`Billed.conversations`)."""
        return self.billed.conversations()

    @cached_property
    def totals(self) -> pd.DataFrame:
        """A row for each model and strategy, over the conversations that every strategy finished."""
        return totals(self.bills)

    @cached_property
    def breaks(self) -> pd.DataFrame:
        """Where the prefixes of the billed requests broke."""
        return breaks(self.billed.cells)

    @cached_property
    def miss_ratios(self) -> pd.DataFrame:
        """By policy and size, of a cache of messages, on what the recordings go back to."""
        return miss_ratios(self.run)


def as_json(summary: RunSummary) -> dict[str, object]:
    """The figures for `--json`: exact numbers; a missing one is `{"why": "undefined", "detail": "no second step"}`.

    `strategies` and `growth` are over the `compared` conversations, the numbers before them over all.
    """
    return {
        "complete": summary.manifest["complete"],
        "plan": summary.manifest["plan"],
        "versions": summary.manifest["versions"],
        "digest": summary.manifest["digest"],
        "conversations": summary.conversations,
        "messages": summary.messages,
        "calls": summary.calls,
        "tokens": summary.tokens,
        "metrics": {name: {"unit": each.unit, "version": each.version} for name, each in METRICS.items()},
        "compared": summary.compared,
        "lost": summary.lost,
        "strategies": summary.strategies,
        "did": summary.did,
        "why": summary.why,
        "unanswered": summary.unanswered,
        "shown": summary.shown,
        "tiers": tiers_as_json(summary.tiers),
        "grounding": {
            name: {kind: {"values": values, "kept": kept} for kind, (values, kept) in found.items()}
            for name, found in summary.grounding.items()
        },
        "survival": {name: [row._asdict() for row in found] for name, found in summary.survival.items()},
        "probes": probes_as_json(summary.probes),
        "answers": all_json(summary.answers),
        "growth": growth_table(summary.growth),
        "counter_error": summary.counter,
        "failed": summary.failed,
        "problems": summary.manifest["problems"],
        "ignored": summary.manifest["ignored"],
    }
