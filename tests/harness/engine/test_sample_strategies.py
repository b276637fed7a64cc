"""Every strategy over every sample recording: what would be sent is no less sound than the recording."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from tests.harness.engine.test_recordings import HELD

BROKEN = ["orphan_results", "unanswered_calls", "misordered", "blank_messages", "dropped_system"]
"""Faults that no strategy may add to those of the history."""

LOST = ["no_user", "not_user_first", "empty", "over_budget"]
"""Faults that a strategy may have only where it says that its budget cannot be kept."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HELD if HELD[name].conversations])
def test_no_strategy_adds_a_fault(recordings: Path, tmp_path: Path, name: str) -> None:
    """No step of any strategy has a fault that the whole history at that step has not, unless it was refused."""
    execute(Plan(RunInputs((str(recordings / name),)), DEFAULT_STRATEGIES), tmp_path / "run", jobs=2)
    run = load(tmp_path / "run")
    assert set(run.table("results").status) == {"ok"}
    steps = run.table("steps").astype({"conversation": str, "strategy": str})
    whole = steps[steps.strategy == "none"].set_index(["conversation", "step"])
    assert len(steps) == len(whole) * len(set(steps.strategy))
    events = run.table("events").astype({"conversation": str, "strategy": str, "kind": str})
    refused = pd.MultiIndex.from_frame(events[events.kind == "over_budget"][["strategy", "conversation", "step"]])
    for strategy, found in steps.groupby("strategy"):
        sent = found.set_index(["conversation", "step"])
        for fault in BROKEN:
            assert (sent[fault] <= whole[fault]).all(), (strategy, fault)
        said = pd.MultiIndex.from_frame(found[["strategy", "conversation", "step"]]).isin(refused)
        for fault in LOST:
            added = (sent[fault] > whole[fault]).to_numpy() & ~said
            assert not added.any(), (strategy, fault, sent[added].index[0])
