"""Intervals of shares that are 0 or 1 everywhere, or near it."""

from __future__ import annotations

import pytest

from ctxbench.metrics.statistics.intervals import Ends, of_share, wilson
from ctxbench.metrics.value import Missing


def test_nothing_in_every_conversation_is_not_certain() -> None:
    """0 of 10 conversations may be up to 28 % of all, 10 of 10 down to 72 %; never "0.0 to 0.0"."""
    assert of_share(0.0, Ends(0, 0), 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert of_share(1.0, Ends(1, 1), 10) == pytest.approx((0.7225, 1), abs=1e-4)


def test_no_share_is_below_0_or_above_1() -> None:
    """Student's ends are cut; others stay; what is missing stays missing."""
    assert of_share(0.1, Ends(-0.05, 0.3), 10) == (0, 0.3)
    assert of_share(0.9, Ends(0.7, 1.1), 10) == (0.7, 1)
    none = Missing("undefined", "one conversation")
    assert of_share(0.0, none, 1) == none
    assert isinstance(wilson(0, 0), Missing)
