"""The sums of a run by conversation and strategy, which comparisons add up."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.compare.figures import measured
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, steps_of
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Ratio, Total
from tests.harness.runs import plan, recording

STRATEGIES = (
    "none",
    "window(max_tokens=400)",
    "summary(every=2)",
    "tiered(limit=160, working=60, archive=80, recall=50, k=2)",
)


def test_sums_are_those_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the digit what adding up one row after the other gives, by one shard at a time or by all at once."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    execute(plan(recording(tmp_path, conversations=5, turns=8), strategies=STRATEGIES), tmp_path / "run")
    run, frames, seen = load(tmp_path / "run"), dict[str, pd.DataFrame](), set[str]()
    whole = measured(run)
    pieces = Run.pieces
    monkeypatch.setattr(Run, "pieces", lambda self: pieces(self, steps=1))
    assert len(list(run.pieces())) == 3
    by_shard = measured(load(tmp_path / "run"))
    for strategy, sums in whole.sums.items():
        for name, rows in sums.items():
            np.testing.assert_array_equal(by_shard.sums[strategy][name], rows)
            metric = METRICS[name]
            if metric.table == "answers" or not isinstance(metric.of, Total | Ratio):
                continue
            frame = frames.setdefault(
                metric.table, steps_of(run) if metric.table == "steps" else run.table(metric.table)
            )
            for conversation, both in zip(whole.digests, rows, strict=True):
                here = frame[(frame.strategy == strategy) & (frame.conversation == conversation)]
                assert [sum(values.tolist()) for values in metric.of.parts(here)] == both.tolist(), name
            seen |= {name} if rows.any() else set()
    assert {"lru_k_hit_rate", "compression_ratio", "tokens_sent"} <= seen
