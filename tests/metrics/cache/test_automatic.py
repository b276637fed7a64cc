"""Automatic prefix caches: worked examples of two providers, and an obvious version of the same."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.mechanisms import AutomaticCache, AutomaticRules
from ctxbench.metrics.cache.prefixes import CacheRequest, CacheUsage, Prefixes

OPENAI = AutomaticRules(1024, 128, 600.0)


def request(
    prefixes: Prefixes, names: str, sizes: dict[str, int], at: float = 0.0, answer: str = "", lasts: float = 0.0
) -> CacheRequest:
    """Blocks by their names, each of its size."""
    ends, total = [], 0
    for name in names:
        total += sizes[name]
        ends.append(total)
    numbers = prefixes.of(names)
    after = prefixes.after(numbers[-1], answer) if answer else None
    return CacheRequest(numbers, ends, total, at, at + lasts, (), after)


def test_units_of_128_from_1024() -> None:
    """A shared prefix of 1 500 tokens is read as 1 408; one of 1 023 not at all."""
    sizes = {"s": 1500, "t": 1023, "a": 50, "b": 70}
    for first, other, read in (("sa", "sb", 1408), ("ta", "tb", 0)):
        prefixes, cache = Prefixes(), AutomaticCache(OPENAI)
        assert cache.request(request(prefixes, first, sizes)).read == 0
        used = cache.request(request(prefixes, other, sizes, at=1))
        assert used == CacheUsage(read, 0, 0, sizes[first[0]] + 70 - read, 0 if read else -1)


@pytest.mark.parametrize(
    ("rules", "shared", "read"),
    [
        (AutomaticRules(64, 64, 7200.0, hidden=-1), 6400, 6336),
        (AutomaticRules(64, 64, 7200.0, hidden=-1), 6401, 6400),
        (AutomaticRules(512, 128, 1800.0, block=512, hidden=128), 2431, 1920),
        (AutomaticRules(512, 128, 1800.0, block=512, hidden=128), 2432, 2432),
        (AutomaticRules(1024, 128, 1800.0, block=1024, hidden=139), 20 * 1024 - 139 - 1, 19 * 1024 - 256),
        (AutomaticRules(1024, 128, 1800.0, block=1024, hidden=139), 20 * 1024 - 139, 20 * 1024 - 256),
        (AutomaticRules(2048, 128, 1800.0, block=2048), 4095, 2048),
    ],
)
def test_blocks_are_counted_with_what_the_provider_hides(rules: AutomaticRules, shared: int, read: int) -> None:
    """DeepSeek Reasoner, GPT-5.5 and 5.6 in Codex, GPT-5.5: one token below the end of a block, and the end itself."""
    assert rules.read(shared) == read


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=6), st.sampled_from(["", "a", "b"]), st.integers(0, 9)), max_size=9
    ),
    st.integers(1, 20),
    st.booleans(),
    st.integers(0, 6),
)
def test_equals_looking_at_every_request(
    asked: list[tuple[str, str, int]], lifetime: int, answers: bool, lasts: int
) -> None:
    """The longest prefix shared with any request, or its answer, that is answered and not too old."""
    sizes, prefixes, now = {"a": 10, "b": 10}, Prefixes(), 0.0
    cache = AutomaticCache(AutomaticRules(1, 1, float(lifetime), answers=answers))
    seen: list[tuple[float, str]] = []
    for names, answer, gap in asked:
        now += gap
        used = cache.request(request(prefixes, names, sizes, now, answer, lasts))
        expected = 0
        for size in range(1, len(names) + 1):
            written, last = 0.0, -math.inf  # anew when it had gone
            for when in (when for when, path in seen if path.startswith(names[:size])):
                written, last = (when if when - last >= lifetime else written), when
            if last > now - lifetime and written + lasts <= now:
                expected = size
        assert used.read == 10 * expected
        seen.append((now, names + (answer if answers else "")))
