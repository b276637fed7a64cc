"""Explicit breakpoints: the provider's published examples, lifetimes, and what is billed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.mechanisms import ExplicitCache, ExplicitRules
from ctxbench.metrics.cache.prefixes import CacheMark, CacheRequest, CacheUsage, ContentBlocks, Prefixes
from ctxbench.metrics.cache.requests import Boundaries

HOUR = 3600.0


class Talk:
    """Requests of blocks of 1 000 tokens each, by their names; the same names are the same blocks."""

    def __init__(self) -> None:
        self.prefixes = Prefixes()

    def request(
        self, names: str, *marks: CacheMark | int, at: float = 0.0, lasts: float = 1.0, tail: int = 0
    ) -> CacheRequest:
        ends = [1000 * count for count in range(1, len(names) + 1)]
        made = tuple(mark if isinstance(mark, CacheMark) else CacheMark(mark) for mark in marks)
        return CacheRequest(self.prefixes.of(names), ends, ends[-1] + tail, at, at + lasts, made)


def letters(size: int) -> str:
    return "".join(chr(ord("a") + at) for at in range(size))


def test_the_provider_s_examples() -> None:
    """Ten blocks are written; fifteen read ten and write five; of thirty-five, twenty places are looked at."""
    talk, cache = Talk(), ExplicitCache()
    assert cache.request(talk.request(letters(10), 9)) == CacheUsage(0, 10_000, 0, 0)
    assert cache.request(talk.request(letters(15), 14, at=10)) == CacheUsage(10_000, 5_000, 0, 0, 9)
    assert cache.request(talk.request(letters(35), 34, at=20)) == CacheUsage(0, 35_000, 0, 0)


def test_an_earlier_mark_is_looked_at_next() -> None:
    """Where the last mark finds nothing, the one before it may."""
    talk, cache = Talk(), ExplicitCache(ExplicitRules(least=0, look_back=1))
    cache.request(talk.request("abc", 0, 2))
    assert cache.request(talk.request("axyz", 0, 3, at=10)) == CacheUsage(1000, 3000, 0, 0, 0)


def test_the_prompt_after_a_compaction() -> None:
    """The provider's example (C7): five blocks of system prompt that have a mark of their own are read after a
    compaction, and the summary is written; without that mark nothing is read."""
    for marks, used in (((4,), CacheUsage(5000, 1000, 0, 0, 4)), ((), CacheUsage(0, 6000, 0, 0))):
        talk, cache = Talk(), ExplicitCache(ExplicitRules(least=0, look_back=1))
        cache.request(talk.request("SSSSSabcd", *marks, 8))
        assert cache.request(talk.request("SSSSSz", *marks, 5, at=10)) == used


def test_short_prefixes_are_plain_input() -> None:
    """Under the model's least size nothing is read or written, and nothing is said."""
    talk, cache = Talk(), ExplicitCache(ExplicitRules(least=2001))
    assert cache.request(talk.request("ab", 1)) == CacheUsage(0, 0, 0, 2000)
    assert cache.request(talk.request("abc", 1, 2, at=1)) == CacheUsage(0, 3000, 0, 0)


def test_a_lifetime_begins_with_the_start_of_a_request_and_is_renewed_by_reading() -> None:
    """Five minutes from the start: 299 s later it is read, which renews it; 300 s after that it is gone."""
    talk, cache = Talk(), ExplicitCache()
    used = [cache.request(talk.request("abc", 2, at=at, lasts=100)).read for at in (0, 299, 598, 898)]
    assert used == [0, 3000, 3000, 0]


def test_two_lifetimes() -> None:
    """What was read, then up to the last hour mark written for an hour, then up to the last for five minutes."""
    talk, cache = Talk(), ExplicitCache()
    first = cache.request(talk.request("abcd", CacheMark(1, HOUR), 3))
    assert first == CacheUsage(0, 2000, 2000, 0)
    later = cache.request(talk.request("abcdef", CacheMark(1, HOUR), CacheMark(2, HOUR), 5, at=1000))
    assert later == CacheUsage(2000, 3000, 1000, 0, 1)  # the five minutes of d are over, the hour of b is not


def test_more_than_four_marks() -> None:
    """The provider refuses them."""
    with pytest.raises(ValueError, match="5 cache breakpoints, 4 are the most"):
        ExplicitCache().request(Talk().request("abcdef", 0, 1, 2, 3, 4))


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=8), st.sets(st.integers(0, 7), max_size=4), st.integers(0, 400)),
        max_size=8,
    ),
    st.integers(1, 5),
)
def test_laws(asked: list[tuple[str, set[int], int]], look_back: int) -> None:
    """All tokens are billed once; what is read was marked by an earlier request with the same start."""
    talk, cache, now = Talk(), ExplicitCache(ExplicitRules(least=0, look_back=look_back)), 0.0
    marked: list[tuple[float, str]] = []
    for names, places, gap in asked:
        now += gap
        marks = sorted(place for place in places if place < len(names))
        used = cache.request(talk.request(names, *marks, at=now, lasts=0))
        assert used.read + used.written + used.written_1h + used.fresh == 1000 * len(names)
        assert used.read == 1000 * (used.hit + 1)
        if used.hit >= 0:
            assert any(each == names[: used.hit + 1] for _, each in marked)
            assert any(mark - look_back < used.hit <= mark for mark in marks)
        marked += [(now, names[: place + 1]) for place in marks]


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=6), st.lists(st.integers(0, 5), max_size=4), st.integers(0, 400)),
        max_size=8,
    ),
    st.integers(0, 6000),
    st.integers(1, 6),
    st.booleans(),
)
def test_the_least_size_can_be_left_out_afterwards(
    asked: list[tuple[str, list[int], int]], least: int, look_back: int, hour: bool
) -> None:
    """A cache with a least size says what one without it says, but for what ends before that size."""
    talk, one, all_of_it, now = (
        Talk(),
        ExplicitCache(ExplicitRules(least, look_back)),
        ExplicitCache(ExplicitRules(0, look_back)),
        0,
    )
    for names, places, gap in asked:
        now += gap
        blocks = sorted({place for place in places if place < len(names)})
        marks = [CacheMark(block, HOUR if hour and at == 0 else 300.0) for at, block in enumerate(blocks)]
        request = talk.request(names, *marks, at=now)
        found, whole = one.request(request), all_of_it.request(request)
        ends = [whole.read, whole.read + whole.written_1h, whole.read + whole.written_1h + whole.written]
        first, second, third = (end if end >= least else 0 for end in ends)
        second, third = max(first, second), max(first, second, third)
        assert found[:4] == (first, third - second, second - first, request.tokens - third)


def test_the_look_back_counts_content_blocks() -> None:
    """An answer with eighteen tool calls and their results are 36 blocks: the prefix before them is not found."""
    talk, cache = Talk(), ExplicitCache()
    cache.request(talk.request("ab", 1))
    many = talk.request("ab" + letters(19)[1:], 19, at=10)
    many.places = [1, 2, *range(20, 38)]
    assert cache.request(many).hit == -1
    talk, cache = Talk(), ExplicitCache()
    cache.request(talk.request("ab", 1))
    assert cache.request(talk.request("ab" + letters(19)[1:], 19, at=10)).hit == 1


@pytest.mark.parametrize(("runs", "read"), [(True, 4000), (False, 0)])
def test_a_run_of_parallel_calls_is_one_place(runs: bool, read: int) -> None:
    """25 calls side by side and their 25 results: found again where each run is one place, not where each call is one
    (provider's page of 2026-09-26)."""
    sent = Boundaries(
        ["user", "assistant", *["tool"] * 25],
        1,
        [ContentBlocks(1, 1), ContentBlocks(25, 1), *[ContentBlocks(1, 1)] * 25],
    )
    sent.add(0, 27)
    names = ["S", "U", "calls", *(f"result {at}" for at in range(25))]
    prefixes, cache = Prefixes(), ExplicitCache(ExplicitRules(runs=runs))
    numbers, ends = prefixes.of(names), [2000, 4000, *(4000 + 100 * at for at in range(1, 27))]
    first = CacheRequest(numbers[:2], ends[:2], 4000, 0.0, 1.0, (CacheMark(1),))
    assert cache.request(first) == CacheUsage(0, 4000, 0, 0)
    last = CacheRequest(
        numbers, ends, ends[-1], 9.0, 10.0, (CacheMark(27),), places=sent.places, run_places=sent.run_places
    )
    assert cache.request(last).read == read
