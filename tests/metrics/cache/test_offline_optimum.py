"""The bound in hindsight: by hand, against every placement of marks on small traces, and against a slow version."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.mechanisms import HOUR, ExplicitCache, ExplicitRules
from ctxbench.metrics.cache.offline_optimum import LIFETIMES, Bound, lowest
from ctxbench.metrics.cache.prefixes import CacheMark, CacheRequest, CacheUsage, Prefixes
from ctxbench.metrics.prices import Price
from tests.examples import examples

MINUTES = (300.0,)
PRICE = Price(1.0, 0.0, 0.1, 1.25, 2.0)  # a token of plain input costs 1: costs below are in tokens
FREE = ExplicitRules(least=0)
SIZES = {"a": 600, "b": 1000, "c": 0}  # tokens of some blocks; others have 1 000


class Asked(NamedTuple):
    """A request by the names of its blocks; the same names are the same blocks."""

    names: str
    at: float
    lasts: float = 1.0
    tail: int = 0


def traced(rows: Iterable[Asked], sizes: dict[str, int] | None = None) -> list[CacheRequest]:
    prefixes, made = Prefixes(), []
    for names, at, lasts, tail in rows:
        ends = [sum((sizes or {}).get(name, 1000) for name in names[: size + 1]) for size in range(len(names))]
        made.append(CacheRequest(prefixes.of(names), ends, (ends[-1] if ends else 0) + tail, at, at + lasts))
    return made


def bound(
    *rows: Asked, prices: Sequence[Price] = (), least: int = 0, lifetimes: Sequence[float] = LIFETIMES
) -> tuple[float, ...]:
    """Return the bound, its cost to the thousandth of a token."""
    requests = traced(rows)
    found = lowest(zip(requests, prices or [PRICE] * len(rows), strict=True), ExplicitRules(least), lifetimes)
    return round(found.cost, 3), *found[1:]


def paid(used: CacheUsage, price: Price) -> float:
    return sum(
        tokens * each
        for tokens, each in zip(used[:4], (price.read, price.write, price.write_1h, price.input), strict=True)
    )


def times(factor: float) -> Price:
    return Price(*(factor * each for each in PRICE[:5]))


def bill(
    requests: Sequence[CacheRequest], marks: Iterable[tuple[CacheMark, ...]], prices: Sequence[Price], least: int
) -> float:
    """Return what a placement really costs."""
    cache = ExplicitCache(ExplicitRules(least))
    rows = zip(requests, marks, prices, strict=True)
    return math.fsum(paid(cache.request(replace(asked, marks=each)), price) for asked, each, price in rows)


def placements(blocks: int, lifetimes: Sequence[float]) -> list[tuple[CacheMark, ...]]:
    """All marks that a request of so many blocks can have."""
    every = product([None, *lifetimes], repeat=blocks)
    return [tuple(CacheMark(at, each) for at, each in enumerate(one) if each is not None) for one in every]


def best(requests: Sequence[CacheRequest], prices: Sequence[Price], least: int, lifetimes: Sequence[float]) -> float:
    """Return the lowest bill of all placements, by trying each."""
    options = [placements(len(each.prefixes), lifetimes) for each in requests]
    return min(bill(requests, marks, prices, least) for marks in product(*options))


def test_what_is_asked_for_again_is_written_once() -> None:
    """Two requests within five minutes: a and b are written, then read; c, the last, is asked for by one alone."""
    assert bound(Asked("ab", 0), Asked("abc", 60)) == (2 * 1250 + 2 * 100 + 1000, 2000, 2000, 0, 1000)


def test_an_hour_pays_when_it_is_read_often_enough() -> None:
    """Every six minutes: twice for an hour is 2.1, plain 2; three times 2.2, plain 3. Five minutes never help."""
    pauses = [Asked("a", 360.0 * at) for at in range(3)]
    assert bound(*pauses[:2]) == (2000, 0, 0, 0, 2000)
    assert bound(*pauses) == (2200, 2000, 0, 1000, 0)
    assert bound(*pauses, lifetimes=MINUTES) == (3000, 0, 0, 0, 3000)


def test_reading_can_renew_for_an_hour() -> None:
    """A mark of an hour on what is read is free: so written for five minutes, read, and read half an hour later."""
    asked = [Asked("a", at) for at in (0, 60, 1860)]
    marks = [(CacheMark(0),), (CacheMark(0, HOUR),), (CacheMark(0),)]
    assert bound(*asked) == (1450, 2000, 1000, 0, 0)
    assert bill(traced(asked), marks, [PRICE] * 3, 0) == pytest.approx(1450)


def test_requests_side_by_side_cannot_read_each_other() -> None:
    """What the first writes can be read from its answer on: not by the second, by the third."""
    side = [Asked("a", 0, lasts=10), Asked("a", 9, lasts=10)]
    assert bound(*side) == (2000, 0, 0, 0, 2000)
    for at in (10, 20):  # from 19 on it would do as well to let the second write
        assert bound(*side, Asked("a", at)) == (1250 + 1000 + 100, 1000, 1000, 0, 1000)


def test_a_renewal_before_the_answer() -> None:
    """The second request renews for five minutes what the first has not yet made readable: the third reads it. The
    bound does not count what that costs, and so is below what can be reached."""
    asked = [Asked("a", 0, lasts=350), Asked("a", 250, lasts=350), Asked("a", 400)]
    assert bill(traced(asked), [(CacheMark(0),)] * 3, [PRICE] * 3, 0) == pytest.approx(1250 + 1250 + 100)
    assert bound(*asked) == (1250 + 1000 + 100, 1000, 1000, 0, 1000)


def test_prefixes_that_are_too_short() -> None:
    """Of at least 1 500 tokens: a is cached only with b behind it, and what two requests share must be as long."""
    assert bound(Asked("a", 0), Asked("a", 9), least=1500) == (2000, 0, 0, 0, 2000)
    assert bound(Asked("ab", 0), Asked("ac", 9), least=1500) == (4000, 0, 0, 0, 4000)
    assert bound(Asked("ab", 0), Asked("abc", 9), least=1500) == (2500 + 200 + 1000, 2000, 2000, 0, 1000)


def test_it_is_written_where_that_is_cheap() -> None:
    """The first prompt is in a tier of five times the price: the second had better write."""
    asked = [Asked("a", at) for at in (0, 60, 120)]
    assert bound(*asked, prices=[times(5), PRICE, PRICE]) == (5000 + 1250 + 100, 1000, 1000, 0, 1000)


GAPS = st.sampled_from([0.0, 1.0, 60.0, 299.0, 300.0, 400.0, 3599.0, 3600.0])
LEAST = st.sampled_from([0, 700, 1500])
TIERS = st.sampled_from([PRICE, times(2), Price(6.0, 0.0, 0.5, 7.5, 12.0)])


@st.composite
def traces(draw: st.DrawFn, most: int, blocks: int, overlaps: bool = True) -> list[CacheRequest]:
    """Up to so many requests, of blocks that often repeat."""
    rows, now = [], 0.0
    for names in draw(st.lists(st.text("abc", min_size=1, max_size=blocks), min_size=1, max_size=most)):
        gap = draw(GAPS)
        now += gap
        rows.append(Asked(names, now, draw(GAPS) if overlaps else 0.0, draw(st.sampled_from([0, 7]))))
    return traced(rows, SIZES)


def tiers(requests: Sequence[CacheRequest]) -> st.SearchStrategy[list[Price]]:
    return st.lists(TIERS, min_size=len(requests), max_size=len(requests))


def sums(found: Bound, requests: Sequence[CacheRequest]) -> bool:
    return min(found[1:]) >= 0 and sum(found[1:]) == sum(each.tokens for each in requests)


@examples(60)
@given(traces(4, 3, overlaps=False), LEAST)
def test_five_minute_marks_reach_it(requests: list[CacheRequest], least: int) -> None:
    """With one lifetime, answers at once and one price, the best of all placements costs as much."""
    prices = [PRICE] * len(requests)
    found = lowest(zip(requests, prices, strict=True), ExplicitRules(least), MINUTES)
    assert found.cost == pytest.approx(best(requests, prices, least, MINUTES))
    assert sums(found, requests)


@examples(60)
@given(st.data(), traces(4, 3).filter(lambda all: sum(len(each.prefixes) for each in all) <= 7), LEAST)
def test_no_placement_is_below_it(data: st.DataObject, requests: list[CacheRequest], least: int) -> None:
    """Every placement of marks of both lifetimes, with requests side by side and prices by size."""
    prices = data.draw(tiers(requests))
    found = lowest(zip(requests, prices, strict=True), ExplicitRules(least))
    assert found.cost <= best(requests, prices, least, LIFETIMES) * (1 + 1e-9)
    assert sums(found, requests)


@given(st.data(), traces(12, 6), LEAST)
def test_no_placement_is_below_it_on_longer_traces(
    data: st.DataObject, requests: list[CacheRequest], least: int
) -> None:
    """Any four marks, automatic placement at the end, and none at all."""
    prices = data.draw(tiers(requests))
    lengths = [len(each.prefixes) for each in requests]
    drawn = [
        data.draw(st.dictionaries(st.integers(0, size - 1), st.sampled_from(LIFETIMES), max_size=4)) for size in lengths
    ]
    some = [tuple(CacheMark(*each) for each in sorted(marks.items())) for marks in drawn]
    found = lowest(zip(requests, prices, strict=True), ExplicitRules(least)).cost
    for marks in (some, [(CacheMark(size - 1),) for size in lengths], [() for _ in lengths]):
        assert found <= bill(requests, marks, prices, least) * (1 + 1e-9)
