"""The figures of a run, on steps written by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Missing


def test_kept_prefix_by_hand() -> None:
    """Three calls of one conversation send 35, 114 and 229 tokens, and keep 32 + 79 of the second, 109 of the third's.
    The first call is left out above and below: 220 of 343, not of 378."""
    steps = pd.DataFrame({"step": [0, 1, 2], "tokens_sent": [35, 114, 229], "tokens_kept": [0, 111, 109]})
    assert METRICS["prefix_reuse"].of(steps) == pytest.approx(220 / 343)
    assert METRICS["prefix_reuse"].of(steps[:1]) == Missing("undefined", "no second step")
    assert "after each conversation's first step" in METRICS["prefix_reuse"].about


def test_saving_without_calls_that_ask_nothing() -> None:
    """Of 100, 1000 and 100 tokens 50, 5 and 50 are sent; without the second call half is saved."""
    steps = pd.DataFrame(
        {"tokens_full": [100, 1000, 100], "tokens_sent": [50, 5, 50], "newest": [True, False, True], "tokens_added": 6}
    )
    assert METRICS["saving"].of(steps) == pytest.approx(1 - 105 / 1200)
    assert METRICS["saving_with_newest"].of(steps) == pytest.approx(0.5)
    assert METRICS["without_newest"].of(steps) == 1
    assert METRICS["added_share"].of(steps) == pytest.approx(18 / 1200)
