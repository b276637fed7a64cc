"""Sums by conversation and strategy: the rows that comparisons add up.

    sums_of(load("runs/standard"), METRICS)     # both sums of every metric, by strategy and conversation

Nearly all metrics are made of two sums over rows (`metrics/value.py`), so whoever compares runs needs a row per
conversation and metric, not one per model call. The sums are made of some shards at a time, and are stored beside the
run (`derived.py`), so that no later command reads its steps for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.figures import Metric
from ctxbench.metrics.value import Summed

from .contexts import Floats, Ints
from .derived import origin_of, read_derived, write_derived
from .run import KEYS, Run
from .steps import rows_of


class SumGrid:
    """The places of conversations and strategies in a table of sums."""

    def __init__(self, conversations: Sequence[str], strategies: Sequence[str]) -> None:
        self.conversations = {name: at for at, name in enumerate(conversations)}
        self.strategies = {name: at for at, name in enumerate(strategies)}
        self.shape = (len(strategies), len(conversations), 2)

    def sums(self, metrics: Mapping[str, Metric], rows: pd.DataFrame) -> dict[str, Floats]:
        """Return both sums of some figures, by strategy and conversation. Rows of bounds (not run) are left out."""
        rows = rows[rows.strategy.isin(self.strategies.keys())]
        strategies, conversations, _ = self.shape
        # One number for a place in a strategies × conversations table, so that one pass of `bincount` adds all rows up.
        at = _numbers(rows.strategy, self.strategies) * conversations + _numbers(rows.conversation, self.conversations)
        tables: dict[str, Floats] = {}
        for name, metric in metrics.items():
            if isinstance(metric.of, get_args(Summed)):
                columns = (column.astype(np.float64) for column in metric.of.parts(rows))
                sums = [np.bincount(at, column, strategies * conversations) for column in columns]
                tables[name] = np.stack(sums, axis=-1).reshape(self.shape).astype(np.float64)
            else:
                tables[name] = self._values(metric, rows)
        return tables

    def _values(self, metric: Metric, rows: pd.DataFrame) -> Floats:
        """Return the value of a figure that no two sums make, with 1 as the lower sum where there is a value."""
        sums = np.zeros(self.shape)
        for (name, strategy), rows_of_result in rows.groupby(KEYS, observed=True, sort=False):
            value = metric.of(rows_of_result)
            if isinstance(value, (int, float)):
                sums[self.strategies[str(strategy)], self.conversations[str(name)]] = value, 1
        return sums


def _numbers(names: pd.Series[str], places: Mapping[str, int]) -> Ints:
    # By category, of which there are few: the tables have a row for every model call.
    categories = names.astype("category").cat.remove_unused_categories().cat
    numbers = np.array([places[str(name)] for name in categories.categories], np.int64)
    codes: Ints = numbers[categories.codes.to_numpy()]
    return codes


def sums_of(run: Run, metrics: Mapping[str, Metric]) -> dict[str, Floats]:
    """Return both sums of some metrics, by strategy and conversation, in the order of the run's tables."""
    grid = SumGrid(list(run.table("conversations").conversation), list(run.manifest.plan.strategies))
    summed = {name: metric for name, metric in metrics.items() if isinstance(metric.of, get_args(Summed))}
    rest = {name: metric for name, metric in metrics.items() if name not in summed}
    origin = origin_of(run)
    stored = read_derived(run, _NAME, [*summed], origin)
    if stored is None:
        tables = added_up(run, metrics, grid)
        write_derived(run, _NAME, pa.table({name: tables[name].ravel() for name in summed}), origin)
        return tables
    sums = {name: stored.column(name).to_numpy().reshape(grid.shape).copy() for name in summed}
    values = added_up(run, rest, grid) if rest else {}
    return {name: sums[name] if name in sums else values[name] for name in metrics}


_NAME = "sums"


def added_up(run: Run, metrics: Mapping[str, Metric], grid: SumGrid) -> dict[str, Floats]:
    """Add up some metrics over the rows of a run, some shards at a time."""
    tables = {name: np.zeros(grid.shape) for name in metrics}
    by_table = groupby(sorted(metrics, key=lambda name: metrics[name].table), key=lambda name: metrics[name].table)
    names_of = {table: list(names) for table, names in by_table}
    for piece in run.pieces():
        conversations = list(piece.table("conversations").conversation)
        columns = [grid.conversations[name] for name in conversations]
        piece_grid = SumGrid(conversations, list(grid.strategies))
        for table, names in names_of.items():
            for name, sums in piece_grid.sums({name: metrics[name] for name in names}, rows_of(piece, table)).items():
                # Assigned and not added: a conversation is in one shard, and a shard in one piece.
                tables[name][:, columns] = sums
    return tables
