"""Panels: where values stand, which ticks there are, and figures of next to nothing."""

import math
from functools import partial

import numpy as np
import pytest

from ctxbench.reports.figures.charts import Line, from_nothing, linear, logarithmic, panels
from ctxbench.reports.figures.style import share, short, times, written

NONE = np.empty(0)


def test_scales() -> None:
    """Worked by hand: ends at 0 and 1, powers of ten, what cannot be shown is nowhere."""
    plain = linear(np.array([3.0, 40.0]), short, low=0)
    assert (plain.low, plain.high) == (0, 40)
    assert plain.place(np.array([0.0, 10, 40])).tolist() == [0, 0.25, 1]
    log = logarithmic(np.array([1.0, 1000, 0, np.nan]), short)
    assert log.ticks == (1, 10, 100, 1000)
    assert log.place(np.array([1.0, 10, 1000])).tolist() == pytest.approx([0, 1 / 3, 1])
    assert np.isnan(log.place(np.array([0.0, -1, np.nan]))).all()
    assert logarithmic(np.array([0.4, 3.0]), times).ticks == (0.5, 1, 2)
    counts = from_nothing(np.array([0.0, 99]), short)
    assert counts.ticks == (0, 1, 10)
    assert counts.place(np.array([0.0, 9, 99])).tolist() == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("values", [NONE, np.array([np.nan]), np.array([5.0]), np.array([0.0])])
def test_of_next_to_nothing(values: np.ndarray) -> None:  # type: ignore[type-arg]
    """No value, one, or none that can be shown: there is a scale, and a figure."""
    makers = (linear, partial(linear, low=0), partial(linear, low=0, high=1), logarithmic, from_nothing)
    for scale in (maker(values, share) for maker in makers):  # type: ignore[operator]
        assert scale.low < scale.high
        assert all(math.isfinite(each) for each in scale.ticks)
    line = Line(values, values, "one", {"color": "black"})
    x, y = partial(logarithmic, text=short), partial(linear, text=short)
    assert written(panels({"a": [line], "b": []}, "x", "y", x, y, rule=0.5), ".svg")
    assert written(panels({}, "x", "y", y, y), ".png")
