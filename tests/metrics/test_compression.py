"""Ratios, savings, and what a model of a few bytes could make of a text."""

import math
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.compression import adaptive_bits, adaptive_bytes, ratio, saving
from ctxbench.metrics.value import Missing


def slow_bits(data: bytes, order: int) -> float:
    """Compute the same model one byte after the other, with a table for each order."""
    tables: list[defaultdict[bytes, Counter[int]]] = [defaultdict(Counter) for _ in range(order + 1)]
    bits = 0.0
    for at, symbol in enumerate(data):
        p = 1 / 256
        for n in range(min(order, at) + 1):
            seen = tables[n][data[at - n : at]]
            if seen:
                p = (seen[symbol] + len(seen) * p) / (sum(seen.values()) + len(seen))
            seen[symbol] += 1
        bits -= math.log2(p)
    return bits


@given(st.binary(max_size=60) | st.text("ab", max_size=60).map(str.encode), st.integers(0, 4))
def test_bits_are_those_of_the_slow_model(data: bytes, order: int) -> None:
    """All at once or byte after byte: the same bits."""
    assert adaptive_bits(data, order) == pytest.approx(slow_bits(data, order))


def test_bits_by_hand() -> None:
    """aa under order 0: the first a is 1 of 256; then it was 1 of 1, with 1 kind: (1 + 1/256) / 2."""
    assert adaptive_bits(b"aa", 0) == pytest.approx(8 - math.log2((1 + 1 / 256) / 2))
    assert adaptive_bytes(b"aa", 0) == 2
    assert adaptive_bits(b"") == 0


def test_ratio_and_saving() -> None:
    """100 to 25 is 4:1 and saves 75 %; beside a peer's 50 it is half."""
    assert (ratio(100, 25), saving(100, 25)) == (4.0, 0.75)
    assert saving(10, 12) == pytest.approx(-0.2)
    assert all(isinstance(each, Missing) for each in (ratio(0, 0), saving(0, 5)))
