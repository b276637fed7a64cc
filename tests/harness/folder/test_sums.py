"""The sums of a run by conversation and strategy, and how they are stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder import derived, sums
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.folder.steps import rows_of
from ctxbench.harness.folder.sums import SumGrid, added_up, sums_of
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Ratio, Total
from tests.harness.runs import plan, recording

STRATEGIES = (
    "none",
    "window(max_tokens=400)",
    "summary(every=2)",
    "tiered(limit=160, working=60, archive=80, recall=50, k=2)",
)
SUMMED = {
    name: metric
    for name, metric in METRICS.items()
    if metric.table != "answers" and isinstance(metric.of, Total | Ratio)
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of several shards, whose strategies summarise, archive and look up."""
    folder = tmp_path_factory.mktemp("sums")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        execute(plan(recording(folder, conversations=5, turns=8), strategies=STRATEGIES), folder / "run")
    return load(folder / "run")


def obvious(run: Run) -> dict[str, np.ndarray]:
    """Add up the rows of each conversation under each strategy, one after the other."""
    names, strategies = run.table("conversations").conversation.tolist(), run.manifest.plan.strategies
    tables = {name: np.zeros((len(strategies), len(names), 2)) for name in SUMMED}
    frames: dict[str, pd.DataFrame] = {}
    for key, metric in SUMMED.items():
        rows = frames.setdefault(metric.table, rows_of(run, metric.table))
        for row, strategy in enumerate(strategies):
            for column, name in enumerate(names):
                here = rows[(rows.strategy == strategy) & (rows.conversation == name)]
                for at, values in enumerate(metric.of.parts(here)):
                    for number in values.tolist():
                        tables[key][row, column, at] += number
    return tables


def test_sums_are_those_of_the_rows(run: Run) -> None:
    """To the digit, whether they are made of all shards at once, of one at a time, or were stored before."""
    expected = obvious(run)
    grid = SumGrid(run.table("conversations").conversation.tolist(), list(run.manifest.plan.strategies))
    assert len(list(run.pieces(steps=1))) == 3
    assert len(list(run.pieces())) == 1
    for _ in range(2):
        stored = sums_of(run, SUMMED)
        whole = added_up(run, SUMMED, grid)
        for name in SUMMED:
            np.testing.assert_array_equal(stored[name], expected[name], name)
            np.testing.assert_array_equal(whole[name], expected[name], name)
    assert expected["lru_k_hit_rate"].any()
    assert expected["compression_ratio"].any()


def test_stored_sums_need_no_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored sums are read without a row of the run, until the code or the wanted metrics change."""
    expected = sums_of(run, SUMMED)

    def unread(run: Run, table: str) -> pd.DataFrame:
        raise AssertionError(f"{table} is read")

    monkeypatch.setattr(sums, "rows_of", unread)
    for name, table in sums_of(run, SUMMED).items():
        np.testing.assert_array_equal(table, expected[name])
    with pytest.raises(AssertionError, match="is read"):
        sums_of(run, {**SUMMED, "new": METRICS["steps"]})
    monkeypatch.setattr(derived, "_code", lambda: b"another")
    with pytest.raises(AssertionError, match="is read"):
        sums_of(run, SUMMED)


def test_times_are_not_stored(run: Run) -> None:
    """Percentiles of wall-clock times have no sums: they are computed each time, and come beside the others."""
    both = {name: METRICS[name] for name in ("tokens_sent", "latency_p50")}
    for _ in range(2):
        found = sums_of(run, both)
        assert (found["latency_p50"][..., 1] == 1).all()
        assert (found["latency_p50"][..., 0] > 0).all()
