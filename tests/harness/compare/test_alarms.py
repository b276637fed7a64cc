"""How often the gate alarms when nothing changed, and how often it finds what did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.compare.figures import measured
from ctxbench.harness.compare.gate import GatePolicy, MetricPolicy, gate
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, rows_of
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


@pytest.mark.slow
def test_false_alarms_on_a_run(tmp_path: Path) -> None:
    """Of 200 pairs of samples of a run's steps, with everything guarded by the usual margins, at most 5 % alarm."""
    execute(plan("smoke", strategies=STRATEGIES), tmp_path / "run")
    run = load(tmp_path / "run")
    known: dict[str, pd.DataFrame] = {}
    random = np.random.default_rng(3)

    def drawn(run: Run, table: str) -> pd.DataFrame:
        rows = known.setdefault(table, rows_of(run, table).reset_index(drop=True))
        cells = rows.groupby(["conversation", "strategy"], observed=True, sort=False).indices.values()
        picked = [random.choice(cell, len(cell)) for cell in cells]
        return rows.iloc[np.concatenate(picked)] if picked else rows

    failed = sum(gate(measured(run, drawn), measured(run, drawn), GatePolicy()).result == "fails" for _ in range(200))
    assert failed <= 10
