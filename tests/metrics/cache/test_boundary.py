"""Caches that match at boundaries: the providers' examples."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.mechanisms import (
    AutomaticCache,
    AutomaticRules,
    BoundaryCache,
    ExplicitCache,
    UnitCache,
    UnitRules,
)
from ctxbench.metrics.cache.prefixes import CacheMark, CacheRequest, CacheUsage, Prefixes
from ctxbench.metrics.cache.rules import Cache


class Talk:
    """Requests of blocks by name: capitals are the system's, `t` tool results, all others users'; 1 000 tokens each."""

    def __init__(self, **sizes: int) -> None:
        self.prefixes, self.sizes = Prefixes(), sizes

    def request(self, names: str, *marks: int, at: float = 0.0, answer: str = "") -> CacheRequest:
        ends, total = [], 0
        for name in names:
            total += self.sizes.get(name, 1000)
            ends.append(total)
        numbers = self.prefixes.of(names)
        system = len(names) - len(names.lstrip("ABCS")) - 1
        after = self.prefixes.after(numbers[-1], answer) if answer else None
        eligible = [at for at, name in enumerate(names) if at == system or (at > system and name not in "ABCS")]
        return CacheRequest(numbers, ends, total, at, at + 1, tuple(map(CacheMark, marks)), after, eligible, system)


def test_openai_s_example() -> None:
    """12 000 tokens are written; of the next 15 000, 12 000 are read and 3 000 written. No token is billed twice."""
    talk, cache = Talk(u=12_000, v=3_000), BoundaryCache()
    assert cache.request(talk.request("u")) == CacheUsage(0, 12_000, 0, 0)
    assert cache.request(talk.request("uv", at=9)) == CacheUsage(12_000, 3_000, 0, 0, 0)


def test_no_shorter_prefix_is_read_without_a_boundary() -> None:
    """Another last message after the same one: read only if that one's end was written, by itself or by a mark."""
    talk, cache = Talk(), BoundaryCache()
    cache.request(talk.request("uvw"))
    assert cache.request(talk.request("uvx", at=9)).read == 0
    talk, cache = Talk(), BoundaryCache()
    cache.request(talk.request("uvw", 1))
    assert cache.request(talk.request("uvx", 1, at=9)) == CacheUsage(2000, 1000, 0, 0, 1)


def test_static_system_messages_before_another_first_question() -> None:
    """The guide's example (O5): the end of the system messages is not written, but where a mark says so."""
    for marks, read in (((), 0), ((0,), 5000)):
        talk, cache = Talk(S=5000), BoundaryCache()
        cache.request(talk.request("Su", *marks))
        assert cache.request(talk.request("Sv", *marks, at=9)).read == read


def test_requests_that_leave_all_to_their_marks() -> None:
    """The guide's example (O6): what the end of a message wrote is not looked up; where it is marked, it is read."""
    for marks, read in (((2,), 0), ((1, 2), 6000)):
        talk, cache = Talk(S=5000), BoundaryCache()
        cache.request(talk.request("Su"))
        assert cache.request(replace(talk.request("Suf", *marks, at=9), implicit=False)).read == read


def test_a_longer_message_is_another_message() -> None:
    """The guide's example (O7): A is read where B is a message of its own, not where it is added to A."""
    for names, read in (("ub", 1200), ("v", 0)):
        talk, cache = Talk(u=1200, v=2200), BoundaryCache()
        cache.request(talk.request("u"))
        assert cache.request(talk.request(names, at=9)).read == read


def test_system_messages_behind_the_first_are_no_boundary() -> None:
    """The guide's example (O8): a system message among the others ends no prefix, unless it is marked."""
    for marks, read in (((), 0), ((1,), 2000)):
        talk, cache = Talk(), BoundaryCache()
        cache.request(talk.request("uSv", *marks))
        assert cache.request(talk.request("uSw", *marks, at=9)).read == read


def test_a_mark_is_read_to_the_token() -> None:
    """As GPT-5.6 reported it: of 4,020 tokens 4,012 up to the mark, written by the first request and read by the
    second; with ten requests the prompt is paid 2.15 times instead of ten (O9)."""
    talk, cache = Talk(u=4012, v=8), BoundaryCache()
    used = [cache.request(replace(talk.request("uv", 0, at=at), implicit=False)) for at in range(10)]
    assert used[0] == CacheUsage(0, 4012, 0, 8)
    assert set(used[1:]) == {CacheUsage(4012, 0, 0, 8, 0)}
    paid = [sum(1.25 * each.written + 0.1 * each.read for each in used[:count]) / 4012 for count in (2, 10)]
    assert paid == pytest.approx([1.35, 2.15])


@pytest.mark.parametrize(
    ("tokens", "count", "pays"), [(220, 10, False), (221, 10, True), (103, 1962, False), (103, 1963, True)]
)
def test_a_short_prompt_that_is_padded_to_be_cached(tokens: int, count: int, pays: bool) -> None:
    """The guide's example (O10): a prompt that is padded to 1,024 tokens is cheaper from 221 tokens on over ten
    requests, one of 103 over 1,963. One of 102 never is: a read of 1,024 tokens costs what 102.4 do."""
    paid = {}
    for sent in (tokens, 1024):
        talk, cache = Talk(u=sent), BoundaryCache()
        used = [cache.request(talk.request("u", at=at)) for at in range(count)]
        paid[sent] = sum(each.fresh + 1.25 * each.written + 0.1 * each.read for each in used)
    assert (paid[1024] < paid[tokens]) == pays


def test_twenty_earlier_ends_are_looked_up() -> None:
    """A boundary twenty eligible messages before the last is found, one more is not."""
    for more, read in ((20, 2000), (21, 0)):
        talk, cache = Talk(), BoundaryCache()
        cache.request(talk.request("uv"))
        assert cache.request(talk.request("uv" + "x" * more, at=9)).read == read


def test_short_prompts_and_lifetimes() -> None:
    """Under 1 024 tokens nothing is cached; after half an hour without use what was is gone."""
    talk, cache = Talk(s=900), BoundaryCache()
    assert cache.request(talk.request("s")) == CacheUsage(0, 0, 0, 900)
    reads = [cache.request(talk.request("uv", at=at)).read for at in (0, 1700, 3400, 5300)]
    assert reads == [0, 2000, 2000, 0]


def test_deepseek_s_examples() -> None:
    """AB then ABC reads AB. AB then AC misses, but shows that A is shared: then AD reads A."""
    talk, cache = Talk(), UnitCache()
    assert [cache.request(talk.request(names, at=at)).read for at, names in ((0, "ab"), (9, "abc"))] == [0, 2000]
    talk, cache = Talk(), UnitCache()
    reads = [cache.request(talk.request(names, at=at)).read for at, names in ((0, "ab"), (9, "ac"), (18, "ad"))]
    assert reads == [0, 0, 1000]


MECHANISMS: list[Callable[[], Cache]] = [
    lambda: ExplicitCache(),
    lambda: AutomaticCache(AutomaticRules(1024, 1, 1800.0)),
    lambda: BoundaryCache(),
    lambda: UnitCache(),
]


@pytest.mark.parametrize("cache", MECHANISMS)
@pytest.mark.parametrize("answered", [(10, 100, 60), (100, 10, 60)])
def test_the_first_answer_makes_a_prefix_readable(cache: Callable[[], Cache], answered: tuple[float, ...]) -> None:
    """Of two requests side by side, whichever is answered first, the third reads what both have written."""
    talk, simulated = Talk(), cache()
    requests = zip((0, 1, 50), answered, strict=True)
    used = [simulated.request(replace(talk.request("uvwx", 3, at=at), answered=end)) for at, end in requests]
    assert [each.read for each in used] == [0, 0, 4000]


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=6), st.sampled_from(["", "a", "b"]), st.integers(0, 9)), max_size=9
    ),
    st.integers(1, 20),
    st.integers(0, 6),
)
def test_units_equal_looking_at_every_prefix(asked: list[tuple[str, str, int]], lifetime: int, lasts: int) -> None:
    """The longest start of the prompt that is a unit: a whole prompt, one with its answer, what two requests shared."""
    prefixes, cache, now = Prefixes(), UnitCache(UnitRules(float(lifetime))), 0.0
    units: dict[str, tuple[float, float]] = {}
    last = ""
    for names, answer, gap in asked:
        now += gap
        ends = [10 * count for count in range(1, len(names) + 1)]
        numbers = prefixes.of(names)
        after = prefixes.after(numbers[-1], answer) if answer else None
        used = cache.request(CacheRequest(numbers, ends, ends[-1], now, now + lasts, (), after))

        def alive(path: str, now: float = now) -> bool:
            ready, until = units.get(path, (math.inf, -math.inf))
            return ready <= now < until

        hit = max((size for size in range(1, len(names) + 1) if alive(names[:size])), default=0)
        assert used.read == 10 * hit
        shared = next(
            (at for at, pair in enumerate(zip(last, names, strict=False)) if len(set(pair)) > 1),
            min(len(last), len(names)),
        )
        last = names + answer
        for path in {*(names[:size] for size in (hit, shared, len(names)) if size), *([last] if answer else [])}:
            ready, until = units.get(path, (math.inf, -math.inf))
            units[path] = (min(ready, now + lasts) if now < until else now + lasts, now + lifetime)
