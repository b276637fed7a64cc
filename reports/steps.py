"""Figures of the steps of a run, made of some shards at a time.

They are those of `metrics.figures` over all steps, to the last digit. What is in memory beside some shards is a row for
each conversation and strategy, and three numbers for each turn of these.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import pandas as pd

from ctxbench.harness.folder.contexts import Floats, Ints
from ctxbench.harness.folder.run import KEYS, Run
from ctxbench.harness.folder.steps import steps_of
from ctxbench.metrics.figures import METRICS, NO_STEPS, OF_STEPS, growth_of, turn_means
from ctxbench.metrics.tokens import encoding_of
from ctxbench.metrics.value import Column, Missing, Ratio, Summed, Value

SUMMED = ("tokens_full", "tokens_sent", "own_tokens", "demands", "demands_kept")
"""Columns of steps whose sums a report shows by conversation."""


class StepFigures(NamedTuple):
    """Figures of the steps of a run."""

    by_conversation: pd.DataFrame
    """By conversation and strategy: `steps`, their number, and the sums of the columns SUMMED, over all conversations.
    Names are categories in the order of the run."""
    by_turn: pd.DataFrame
    """By strategy and turn: the sums of `demands` and `demands_kept`, over the compared conversations."""
    strategies: dict[str, dict[str, Value]]
    """Every metric over steps by strategy, over the compared conversations."""
    growth: pd.DataFrame
    """The rows of `metrics.figures.growth`, over the compared conversations."""
    counter: list[dict[str, Value | str]]
    """The rows of `CounterErrors.rows`, over all conversations."""


def step_figures(run: Run, uneven: frozenset[str]) -> StepFigures:
    """Return the figures of a run's steps; those of the `uneven` conversations are not compared."""
    names = run.manifest.plan.strategies
    figures = {name: _StrategyFigures() for name in names}
    errors = CounterErrors()
    by_conversation, by_turn, means = [], [], []
    for piece in run.pieces():
        steps = steps_of(piece)
        sums = steps.groupby(KEYS, observed=True)[[*SUMMED]].sum()
        sums.insert(0, "steps", steps.groupby(KEYS, observed=True).size())
        by_conversation.append(_plain(sums))
        errors.add(piece.arrow("messages", REPORTED).to_pandas(), steps)
        common = steps[~steps.conversation.isin(uneven)] if uneven else steps
        for name in names:
            figures[name].add(common[common.strategy == name])
        means.append(turn_means(common)[[*_GROWN]])
        by_turn.append(_plain(common.groupby(["strategy", "turn"], observed=True)[["demands", "demands_kept"]].sum()))
        del steps, common
    rows = pd.concat(by_conversation, ignore_index=True)
    # Strategies as planned and not as they come: one that failed in the first conversation would be put last.
    in_order = {"conversation": list(dict.fromkeys(rows.conversation)), "strategy": list(names)}
    kinds = {key: pd.CategoricalDtype(values) for key, values in in_order.items()}
    return StepFigures(
        rows.astype(kinds).sort_values(KEYS, kind="stable", ignore_index=True),
        pd.concat(by_turn, ignore_index=True).groupby(["strategy", "turn"]).sum().reset_index(),
        {name: figures[name].values() for name in names},
        growth_of(pd.concat([rows.astype({"strategy": kinds["strategy"]}) for rows in means], ignore_index=True)),
        errors.rows(run.manifest.plan.encoding),
    )


def _plain(sums: pd.DataFrame) -> pd.DataFrame:
    """Return sums with their keys as columns, and names as text: categories of two pieces differ."""
    rows = sums.reset_index()
    return rows.astype({key: str for key in KEYS if key in rows})


# A row for each turn of each conversation: without its name, which takes as much as the rest.
_GROWN = ("strategy", "turn", "tokens_full", "tokens_sent", "without_newest")


class _StrategyFigures:
    """Every metric over the steps of a strategy, which come in pieces."""

    def __init__(self) -> None:
        self._sums = {key: MetricSums(of) for key, of in _SUMMED.items()}
        self._latency = ValueCounts()

    def add(self, steps: pd.DataFrame) -> None:
        for sums in self._sums.values():
            sums.add(steps)
        self._latency.add(steps.latency_ns.to_numpy())

    def values(self) -> dict[str, Value]:
        return {
            key: self._sums[key].value() if key in self._sums else self._latency_at(_PERCENTILES[key])
            for key in OF_STEPS
        }

    def _latency_at(self, percent: float) -> Value:
        return self._latency.percentile(percent) / 1000 if self._latency.size else Missing("undefined", NO_STEPS)


_SUMMED: dict[str, Summed] = {key: of for key in OF_STEPS if isinstance(of := METRICS[key].of, get_args(Summed))}
_PERCENTILES = {"latency_p50": 50.0, "latency_p99": 99.0}


class MetricSums:
    """The two sums of a metric over rows that come in pieces."""

    def __init__(self, of: Summed) -> None:
        self._of = of
        self._has = not isinstance(of, Ratio) or of.has is None
        self._top, self._bottom = _ColumnSum(), _ColumnSum()

    def add(self, rows: pd.DataFrame) -> None:
        if not self._has:
            assert isinstance(self._of, Ratio)
            assert self._of.has is not None
            self._has = bool(np.any(self._of.has(rows)))
        top, bottom = self._of.parts(rows)
        self._top.add(top, is_whole=isinstance(self._of, Ratio))
        self._bottom.add(bottom, is_whole=True)

    def value(self) -> Value:
        if not isinstance(self._of, Ratio):
            return self._of.of_column(self._top.column())
        if not self._has:
            return Missing("unsupported", self._of.lacking)
        return self._of.over(self._top.column(), self._bottom.column())


class _ColumnSum:
    """The sum of a column that comes in pieces, to the last digit that of the whole.

    Sums of whole numbers are the same in any order. Others (dollars) are kept with their places in the column.
    """

    def __init__(self) -> None:
        self._whole: Column | None = None
        self._size = 0
        self._places: list[Ints] = []
        self._numbers: list[Floats] = []

    def add(self, column: Column, is_whole: bool) -> None:
        if is_whole or column.dtype.kind != "f":
            total = column.sum(keepdims=True)
            self._whole = total if self._whole is None else self._whole + total
            return
        places = np.flatnonzero(column)
        self._places.append(places + self._size)
        self._numbers.append(column[places])
        self._size += len(column)

    def column(self) -> Column:
        """Return a column with the same sum."""
        if self._whole is not None:
            return self._whole
        column = np.zeros(self._size)
        if self._places:
            column[np.concatenate(self._places)] = np.concatenate(self._numbers)
        return column


class ValueCounts:
    """How often each value of a column of whole numbers came: there are far fewer values than rows."""

    def __init__(self) -> None:
        self._values: Ints = np.empty(0, np.int64)
        self._counts: Ints = np.empty(0, np.int64)

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self._counts.sum())

    def add(self, column: Ints) -> None:
        """Count the values of more rows."""
        values, counts = np.unique(column, return_counts=True)
        self._values, places = np.unique(np.concatenate((self._values, values)), return_inverse=True)
        before, self._counts = self._counts, np.zeros(len(self._values), np.int64)
        np.add.at(self._counts, places, np.concatenate((before, counts)))

    def percentile(self, percent: float) -> float:
        """Return what `np.percentile` does of the column."""
        place = (self.size - 1) * (percent / 100)
        below = int(place)
        ends = np.cumsum(self._counts)
        at = np.searchsorted(ends, [below, min(below + 1, self.size - 1)], side="right")
        (one, other), part = self._values[at].tolist(), place - below
        between = other - one
        return float(one + between * part if part < 0.5 else other - between * (1 - part))


REPORTED = ("conversation", "at", "model", "usage_input", "compacted")
"""Columns of the table `messages` that `CounterErrors` needs."""


class CounterErrors:
    """Our count of the whole prompt against the one that the provider reported, by recorded model.

    Calls after a recorded compaction are left out: what was sent there is not the history.
    """

    def __init__(self) -> None:
        # By model, in the order of the run: calls, tokens of ours, tokens reported, and the errors of the growth.
        self._models: dict[str, tuple[list[int], list[Floats]]] = {}

    def add(self, messages: pd.DataFrame, steps: pd.DataFrame) -> None:
        """Compare the calls of some conversations."""
        for model in messages.model.cat.categories:
            self._models.setdefault(str(model), ([0, 0, 0], []))
        known = messages.dropna(subset=["usage_input"])
        known = known[(known.usage_input > 0) & ~known.compacted]
        if known.empty:
            return
        full = steps[["conversation", "at", "tokens_full"]].drop_duplicates(["conversation", "at"])
        both = known.astype({"conversation": str}).merge(full.astype({"conversation": str}), on=["conversation", "at"])
        for model, calls in both.groupby("model", observed=True):
            grown = calls.groupby("conversation", observed=True)[["usage_input", "tokens_full"]].diff()
            grown = grown[grown.usage_input > 0]
            totals, errors = self._models[str(model)]
            for at, number in enumerate((len(calls), calls.tokens_full.sum(), calls.usage_input.sum())):
                totals[at] += int(number)
            errors.append(((grown.tokens_full - grown.usage_input) / grown.usage_input).to_numpy())

    def rows(self, encoding: str) -> list[dict[str, Value | str]]:
        """Return a row for each model.

        `total` is (counted − reported) / reported over all calls: what is not in a recording (a system prompt, tool
        schemas) is in it. `growth_p10`, `growth_p50`, `growth_p90` are of the growth from one call to the next, in
        which what is constant cancels; calls where the reported prompt shrank are left out of it.
        """
        rows: list[dict[str, Value | str]] = []
        for model, ((calls, ours, reported), errors) in self._models.items():
            if not calls:
                continue
            every = np.concatenate(errors)
            points: list[Value] = [Missing("undefined", "one call only")] * 3
            if len(every):
                points = [float(point) for point in np.percentile(every, [10, 50, 90])]
            rows.append(
                {
                    "model": model,
                    "encoding": encoding,
                    "published": encoding_of(model) or "none",
                    "calls": calls,
                    "total": ours / reported - 1,
                    **{f"growth_p{at}": value for at, value in zip((10, 50, 90), points, strict=True)},
                }
            )
        return rows
