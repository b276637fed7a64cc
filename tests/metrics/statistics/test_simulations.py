"""How often an interval holds what it should, and how often a verdict is wrong; a few samples always, many if slow."""

import pytest

from tests.metrics.statistics.simulations import ALIKE, CHANGES, SKEWED, coverage, rate

FALSE = [change for change in CHANGES if change.startswith("false")]


def test_in_short() -> None:
    """Of 100 samples: intervals of lopsided ratios hold, lopsided sums of few have none, and no loss is the same."""
    some, held = coverage("ratio, 0.5, 0.1", 15, 100)
    assert some >= 0.95
    assert held >= 0.9
    assert coverage("log-normal, 1.2", 10, 20)[0] == 0
    assert rate("false same: 16 points lost", 3, 20) == rate("false same: 16 points lost", 10, 100) == 0
    assert rate("false alarm: costs", 15, 100) <= 0.1
    assert rate("found: 5 % more costs", 30, 50) >= 0.4


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 15, 24, 30, 100])
@pytest.mark.parametrize("kind", ["rare", *ALIKE, *SKEWED])
def test_coverage(kind: str, size: int) -> None:
    """Of 1,000 samples those with an interval hold 94 %, or of skewed values 90 %, but for twice the error of that."""
    some, held = coverage(kind, size)
    least = 0.9 if kind in SKEWED else 0.94
    assert not some or held >= least - 2 * (least * (1 - least) / (1000 * some)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("change", FALSE)
def test_false_words(change: str) -> None:
    """At most 5 % of samples of 2 to 30 conversations, and of 59 and 100, but for twice the error of that."""
    assert max(rate(change, size, 500) for size in (*range(2, 31, 2), 59, 100)) <= 0.05 + 0.02
