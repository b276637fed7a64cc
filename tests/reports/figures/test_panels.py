"""Panels: where values stand, which ticks there are, and figures of next to nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ctxbench.reports.figures.panels import Line, from_nothing, linear, logarithmic, panels
from ctxbench.reports.figures.style import share, short, times, written

NONE = np.empty(0)


def test_scales() -> None:
    """Worked by hand: ends at 0 and 1, powers of ten, what cannot be shown is nowhere."""
    plain = linear(short, low=0)(np.array([3.0, 40.0]))
    assert (plain.low, plain.high) == (0, 40)
    assert plain.place(np.array([0.0, 10, 40])).tolist() == [0, 0.25, 1]
    log = logarithmic(short)(np.array([1.0, 1000, 0, np.nan]))
    assert log.ticks == (1, 10, 100, 1000)
    assert log.place(np.array([1.0, 10, 1000])).tolist() == pytest.approx([0, 1 / 3, 1])
    assert np.isnan(log.place(np.array([0.0, -1, np.nan]))).all()
    assert logarithmic(times)(np.array([0.4, 3.0])).ticks == (0.5, 1, 2)
    counts = from_nothing(short)(np.array([0.0, 99]))
    assert counts.ticks == (0, 1, 10)
    assert counts.place(np.array([0.0, 9, 99])).tolist() == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("values", [NONE, np.array([np.nan]), np.array([5.0]), np.array([0.0])])
def test_of_next_to_nothing(values: np.ndarray) -> None:  # type: ignore[type-arg]
    """No value, one, or none that can be shown: there is a scale, and a figure."""
    for maker in (linear(short), linear(short, low=0), linear(share, 0, 1), logarithmic(short), from_nothing(short)):
        scale = maker(values)
        assert scale.low < scale.high
        assert all(math.isfinite(each) for each in scale.ticks)
    line = Line(values, values, "one", {"color": "black"})
    drawn = panels({"a": [line], "b": []}, "x", "y", logarithmic(short), linear(short), rule=0.5)
    assert written(drawn, ".svg")
    assert written(panels({}, "x", "y", linear(short), linear(short)), ".png")
