"""How often the gate alarms when nothing changed, and how often it finds what did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.compare.figures import MeasuredRun, SumGrid, measured
from ctxbench.harness.compare.gate import GatePolicy, MetricPolicy, gate
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.contexts import Floats
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.steps import rows_of
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.statistics.comparison import Difference, Margin, Pairs, difference, holm, judge
from tests.harness.compare.builders import Steps
from tests.harness.runs import plan

POLICY = GatePolicy(
    {"tokens_sent": MetricPolicy(relative=0.05), "grounding": MetricPolicy(absolute=0.03), "*": MetricPolicy()}
)
STRATEGIES = ("none", "window(max_tokens=1000)", "summary(every=2)", "archive")


def alarms(samples: int, strategies: int = 4, **planted: float) -> float:
    """The share of comparisons of two samples of the same steps that fail."""
    steps, random = Steps(seed=1, strategies=strategies), np.random.default_rng(2)
    found = [gate(steps.sample(random), steps.sample(random, **planted), POLICY) for _ in range(samples)]
    return sum(each.result == "fails" for each in found) / samples


def test_no_false_alarms() -> None:
    """Of 20 comparisons of what is the same, at most one alarms; with twice a margin more tokens or fewer values, all
    do but one."""
    assert alarms(20, 2) <= 0.05
    assert alarms(20, 2, dearer=0.1) >= 0.95
    assert alarms(20, 2, lost=0.06) >= 0.95


@pytest.mark.slow
def test_false_alarms() -> None:
    """The same of 200 comparisons each."""
    assert alarms(200) <= 0.05
    assert alarms(200, dearer=0.1) >= 0.95
    assert alarms(200, lost=0.06) >= 0.95


def heavy_tails(conversations: int, effect: float, samples: int, metrics: int = 8) -> tuple[float, float]:
    """The share of comparisons of totals with any alarm, and with the one metric caught that grew by `effect`.

    Sizes of conversations are log-normal (σ = 1.2), the noise of each is 10 %, and p-values are adjusted for all.
    """
    random = np.random.default_rng(4)
    any_alarm = caught = 0
    for _ in range(samples):
        sizes, changes = np.exp(random.normal(9, 1.2, conversations)), list[Difference]()
        for metric in range(metrics):
            after = sizes * np.exp(random.normal(0, 0.1, conversations)) * (1 + effect * (not metric))
            sums = [np.column_stack([side, np.zeros(conversations)]) for side in (sizes, after)]
            changes.append(difference(Pairs("total", *sums), relative=True, draws=1000))
        adjusted = holm([float(change.p) for change in changes])  # type: ignore[arg-type]
        words = [
            judge(change, Margin(0.01, relative=True), "lower", p).word
            for change, p in zip(changes, adjusted, strict=True)
        ]
        any_alarm += any(word in ("better", "worse") for word in words)
        caught += words[0] == "worse"
    return any_alarm / samples, caught / samples


@pytest.mark.slow
@pytest.mark.parametrize(("conversations", "power"), [(5, 0.0), (10, 0.05), (24, 0.2), (100, 0.9)])
def test_heavy_tails(conversations: int, power: float) -> None:
    """Totals that a few conversations dominate: at most 5 % of false alarms, and power that grows with their number."""
    samples = 300
    chance = 2 * (0.05 * 0.95 / samples) ** 0.5
    assert heavy_tails(conversations, 0.0, samples)[0] <= 0.05 + chance
    assert heavy_tails(conversations, 0.05, samples)[1] >= power


@pytest.mark.slow
def test_false_alarms_on_a_run(tmp_path: Path) -> None:
    """Of 200 pairs of samples of a run's steps, with everything guarded by the usual margins, at most 5 % alarm."""
    execute(plan("smoke", strategies=STRATEGIES), tmp_path / "run")
    run = load(tmp_path / "run")
    known: dict[str, pd.DataFrame] = {}
    random = np.random.default_rng(3)

    def drawn(table: str) -> pd.DataFrame:
        rows = known.setdefault(table, rows_of(run, table).reset_index(drop=True))
        cells = rows.groupby(["conversation", "strategy"], observed=True, sort=False).indices.values()
        picked = [random.choice(cell, len(cell)) for cell in cells]
        return rows.iloc[np.concatenate(picked)] if picked else rows

    whole = measured(run)
    grid = SumGrid(list(whole.digests), list(whole.sums))

    def sample() -> MeasuredRun:
        tables: dict[str, Floats] = {}
        for table in ("steps", "survival", "probes"):
            of_table = {name: metric for name, metric in METRICS.items() if metric.table == table}
            tables |= grid.sums(of_table, drawn(table))
        sums = {
            strategy: {name: tables[name][at] if name in tables else figures[name] for name in figures}
            for at, (strategy, figures) in enumerate(whole.sums.items())
        }
        return replace(whole, sums=sums)

    failed = sum(gate(sample(), sample(), GatePolicy()).result == "fails" for _ in range(200))
    assert failed <= 10
