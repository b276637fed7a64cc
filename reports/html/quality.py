"""Which measure of quality a run has: the best that it can say of whether a context still does its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from ...metrics.figures import METRICS
from ...metrics.sums import Ratio
from ...metrics.value import Missing, Value
from ..results import Results


@dataclass(frozen=True)
class Quality:
    """One measure, for every strategy."""

    name: str
    """Over a column."""
    about: str
    values: Mapping[str, Value]
    """By strategy, over the conversations that all of them finished."""
    sums: pd.DataFrame
    """What they are made of: conversation, strategy, got, wanted."""


def grounding(results: Results) -> Quality | None:
    """Every run has it: what the recorded model used next, was it still there."""
    return Quality(
        "grounded",
        "of the values that the recorded model used next, the share still in the context",
        {name: figures["grounding"] for name, figures in results.summary.strategies.items()},
        _sums("grounding", results.common),
    )


def evidence(results: Results) -> Quality | None:
    """Where questions were asked: is what their answers rest on still sent, word for word?"""
    found = results.summary.probes
    if found is None or not found.compared:
        return None
    rows = results.run.arrow("probes").select(["conversation", "strategy", "failed", "evidence_state"]).to_pandas()
    rows = rows[rows.strategy.isin(found.strategies)]
    out = set(rows.conversation[rows.failed != ""].astype(str)) | results.summary.uneven
    known = {name: figures.values["evidence_sent"] for name, figures in found.strategies.items()}
    nothing = Missing("undefined", "nothing was sent for any probe")
    return Quality(
        "evidence sent",
        "of the messages that the answers to the recordings' questions rest on, the share that is sent word for word",
        {name: known.get(name, nothing) for name in results.strategies},
        _sums("evidence_sent", rows[~rows.conversation.isin(out)]),
    )


def _sums(metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What a share is made of, by conversation and strategy."""
    share = METRICS[metric].of
    assert isinstance(share, Ratio)
    got, wanted = share.parts(rows)
    keys = [rows.conversation.astype(str), rows.strategy.astype(str)]
    return pd.DataFrame({"got": got, "wanted": wanted}, rows.index).groupby(keys).sum().reset_index()


SOURCES: tuple[Callable[[Results], Quality | None], ...] = (evidence, grounding)
"""Of these the first that the run has data for counts: what is nearest to a right answer stands first."""


def quality(results: Results) -> Quality:
    """The best measure that the run has."""
    return next(found for source in SOURCES if (found := source(results)) is not None)
