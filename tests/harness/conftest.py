"""What the tests of runs share."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of three conversations, so that small runs have many parts."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 3)
