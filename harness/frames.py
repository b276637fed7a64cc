"""A run as small tables: its figures by strategy, its growth by turn, its bill. What `Run.summary` and others give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..metrics import figures
from ..metrics.sums import value
from ..metrics.value import Missing, Value
from .billing.bill import bill as billed
from .billing.simulate import Scheme
from .gating.measured import Measured, measured
from .steps import rows_of, steps_of

if TYPE_CHECKING:
    from .loading import Run


def summary(run: Run, models: Sequence[str] = ()) -> pd.DataFrame:
    """A row a strategy, a column a figure (`metrics.figures.METRICS`), NaN where there is none; `cost(MODEL)` too.

    As in the report they are over the conversations that every strategy finished.
    """
    found = overall(measured(run, rows_of, models, clock=True))
    rows = {
        strategy: {name: np.nan if isinstance(each, Missing) else each for name, each in those.items()}
        for strategy, those in found.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("strategy")


def growth(run: Run) -> pd.DataFrame:
    """Tokens of a call by strategy and turn (`metrics.figures.growth`)."""
    steps = steps_of(run)
    cells = run.table("cells")
    failed = {str(name): set(rows.conversation) for name, rows in cells[cells.status == "failed"].groupby("strategy")}
    return figures.growth(steps[~steps.conversation.isin(uneven(failed, cells.conversation.nunique()))])


def bill(run: Run, models: Sequence[str]) -> pd.DataFrame:
    """A row for each conversation, strategy and model (`billing.bill.Billed.conversations`)."""
    return billed(run, [Scheme(model) for model in models]).conversations()


def overall(found: Measured) -> dict[str, dict[str, Value]]:
    """Every figure of each strategy: of the sums that comparisons add up, added up in the same order."""
    apart = uneven(found.failed, len(found.digests))
    common = np.array([name not in apart for name in found.digests], bool)
    there = (name for name in figures.METRICS if name not in figures.OF_ANSWERS)
    names = dict.fromkeys((*found.metrics, *there))
    return {strategy: {name: _figure(found, strategy, name, common) for name in names} for strategy in found.sums}


def uneven(failed: Mapping[str, Any], conversations: int) -> frozenset[str]:
    """Conversations that some strategies finished and some did not. `failed`: by strategy, where it did; one that did
    everywhere does not count."""
    return frozenset(name for each in failed.values() if len(each) < conversations for name in each)


def _figure(found: Measured, strategy: str, metric: str, common: Any) -> Value:
    if len(found.failed.get(strategy, ())) == len(common):
        return Missing("failed", "in every conversation")
    if not common.any():
        return Missing("undefined", "no conversation that every strategy finished")
    sums = found.sums[strategy].get(metric)
    if sums is None:
        return Missing("undefined", "nothing to measure")
    form = found.metrics[metric].form
    top, bottom = (float(each) for each in sums[common].sum(axis=0))
    if np.isnan(top) or np.isnan(bottom):
        return Missing("unsupported", "a conversation has no number")
    if form != "total" and not bottom:
        return Missing("undefined", "nothing to measure")
    return value(form, top, bottom)
