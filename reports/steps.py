"""Figures of the steps of a run, made of some shards at a time.

They are those of `metrics.figures` over all steps, to the last digit. What is in memory beside some shards is a row for
each conversation and strategy, three numbers for each turn of these, and the latency of each step.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import pandas as pd

from ctxbench.harness.folder.run import KEYS, Ints, Run, steps_of
from ctxbench.metrics.figures import METRICS, OF_STEPS, growth, turn_means
from ctxbench.metrics.tokens import encoding_of
from ctxbench.metrics.value import Column, Missing, Ratio, Summed, Value

SUMMED = ("tokens_full", "tokens_sent", "own_tokens", "demands", "demands_kept")
"""Columns of steps whose sums a report shows by conversation."""
REJECTED = ("rejected_openai", "rejected_anthropic")


class StepFigures(NamedTuple):
    """Figures of the steps of a run."""

    by_conversation: pd.DataFrame
    """By conversation and strategy: `steps`, their number, the sums of the columns SUMMED, and calls that a provider
    rejects (REJECTED), over all conversations. Names are categories in the order of the run."""
    by_turn: pd.DataFrame
    """By strategy and turn: the sums of `demands` and `demands_kept`, over the compared conversations."""
    strategies: dict[str, dict[str, Value]]  # every metric over steps by strategy, over the compared conversations
    growth: pd.DataFrame  # the rows of `metrics.figures.growth`, over the compared conversations
    counter: list[dict[str, Value | str]]  # the rows of `_counter_rows`, over all conversations


def step_figures(run: Run, uneven: frozenset[str]) -> StepFigures:
    """Return the figures of a run's steps; those of the `uneven` conversations are not compared."""
    names = run.manifest.plan.strategies
    sums = {name: {key: MetricSums(of) for key, of in _SUMMED.items()} for name in names}
    latency: dict[str, list[Ints]] = {name: [] for name in names}
    by_conversation, by_turn, means, reported = [], [], [], []
    for piece in run.pieces():
        steps = steps_of(piece)
        steps = steps.assign(**{key: _SUMMED[key].parts(steps)[0] for key in REJECTED})
        groups = steps.groupby(KEYS, observed=True)
        counts = groups[[*SUMMED, *REJECTED]].sum()
        counts.insert(0, "steps", groups.size())
        by_conversation.append(_plain(counts))
        reported.append(_reported_calls(piece, steps))
        common = steps[~steps.conversation.isin(uneven)] if uneven else steps
        for name in names:
            own = common[common.strategy == name]
            latency[name].append(own.latency_ns.to_numpy(copy=True))  # a view would keep all columns
            for metric in sums[name].values():
                metric.add(own)
        means.append(turn_means(common)[[*_GROWN]])
        by_turn.append(_plain(common.groupby(["strategy", "turn"], observed=True)[["demands", "demands_kept"]].sum()))
        del steps, common, groups
    rows = pd.concat(by_conversation, ignore_index=True)
    # Strategies as planned and not as they come: one that failed in the first conversation would be put last.
    in_order = {"conversation": list(dict.fromkeys(rows.conversation)), "strategy": list(names)}
    kinds = {key: pd.CategoricalDtype(values) for key, values in in_order.items()}
    timings = {name: pd.DataFrame({"latency_ns": np.concatenate(parts)}) for name, parts in latency.items()}
    return StepFigures(
        rows.astype(kinds).sort_values(KEYS, kind="stable", ignore_index=True),
        pd.concat(by_turn, ignore_index=True).groupby(["strategy", "turn"]).sum().reset_index(),
        {
            name: {key: own[key].value() if key in own else METRICS[key].of(timings[name]) for key in OF_STEPS}
            for name, own in sums.items()
        },
        growth(pd.concat([rows.astype({"strategy": kinds["strategy"]}) for rows in means], ignore_index=True)),
        _counter_rows(pd.concat(reported, ignore_index=True), run.manifest.plan.encoding),
    )


def _plain(sums: pd.DataFrame) -> pd.DataFrame:
    """Return sums with their keys as columns, and names as text: categories of two pieces differ."""
    rows = sums.reset_index()
    return rows.astype({key: str for key in KEYS if key in rows})


# A row for each turn of each conversation: without its name, which takes as much as the rest.
_GROWN = ("strategy", "turn", "tokens_full", "tokens_sent", "without_newest")
# The others are percentiles of the latency, for which that of every step is kept.
_SUMMED: dict[str, Summed] = {key: of for key in OF_STEPS if isinstance(of := METRICS[key].of, get_args(Summed))}


class MetricSums:
    """The two sums of a metric over rows that come in pieces."""

    def __init__(self, of: Summed) -> None:
        self._of, self._has = of, not isinstance(of, Ratio) or of.has is None
        self._tops, self._bottoms = list[Column](), list[Column]()

    def add(self, rows: pd.DataFrame) -> None:
        if not len(rows):  # without any call nothing says what a strategy lacks
            return
        if not self._has and isinstance(self._of, Ratio) and self._of.has is not None:
            self._has = bool(np.any(self._of.has(rows)))
        top, bottom = self._of.parts(rows)
        # Whole numbers have the same sum in any order; dollars are added up at the end, which is exact.
        is_whole = isinstance(self._of, Ratio) or top.dtype.kind != "f"
        self._tops.append(top.sum(keepdims=True) if is_whole else top[top != 0])
        self._bottoms.append(bottom.sum(keepdims=True))

    def value(self) -> Value:
        tops = np.concatenate(self._tops or [np.zeros(0)])
        if not isinstance(self._of, Ratio):
            return self._of.of_column(tops)
        if not self._has and self._tops:
            return Missing("unsupported", self._of.lacking)
        return self._of.over(tops, np.concatenate(self._bottoms or [tops]))


def _reported_calls(piece: Run, steps: pd.DataFrame) -> pd.DataFrame:
    """Return our count of the whole prompt and the one that the provider reported, a row for each call.

    Calls after a recorded compaction are left out: what was sent there is not the history. `error` is that of the
    growth since the last call, NaN where the reported prompt shrank.
    """
    messages = piece.arrow("messages", ("conversation", "at", "model", "usage_input", "compacted")).to_pandas()
    known = messages[(messages.usage_input > 0) & ~messages.compacted]
    full = steps[["conversation", "at", "tokens_full"]].drop_duplicates(["conversation", "at"])
    names = {"conversation": str}
    calls = known.astype({**names, "model": str}).merge(full.astype(names), on=["conversation", "at"])
    grown = calls.groupby(["model", "conversation"], sort=False)[["usage_input", "tokens_full"]].diff()
    grown = grown[grown.usage_input > 0]
    errors = (grown.tokens_full - grown.usage_input) / grown.usage_input
    found: pd.DataFrame = calls.assign(error=errors)[["model", "tokens_full", "usage_input", "error"]]
    return found


def _counter_rows(calls: pd.DataFrame, encoding: str) -> list[dict[str, Value | str]]:
    """Return the errors of our token counts, a row for each recorded model.

    `total` is (counted − reported) / reported over all calls: what is not in a recording (a system prompt, tool
    schemas) is in it. `growth_p10`, `growth_p50`, `growth_p90` are of the growth from one call to the next, in which
    what is constant cancels.
    """
    rows: list[dict[str, Value | str]] = []
    none, points = [Missing("undefined", "one call only")] * 3, (10, 50, 90)
    for model, own in calls.groupby("model", sort=False):
        errors = own.error.dropna()
        growth = np.percentile(errors, points).tolist() if len(errors) else none
        rows.append(
            {
                "model": str(model),
                "encoding": encoding,
                "published": encoding_of(str(model)) or "none",
                "calls": len(own),
                "total": int(own.tokens_full.sum()) / int(own.usage_input.sum()) - 1,
                **{f"growth_p{at}": value for at, value in zip(points, growth, strict=True)},
            }
        )
    return rows
