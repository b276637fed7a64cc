"""Messages that begin alike, and what a cache that counts tokens reads of them."""

from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.mechanisms import AutomaticCache, AutomaticRules
from ctxbench.metrics.cache.prefixes import START, CacheRequest, Prefixes, SharedStarts
from ctxbench.metrics.tokens import FRAME, ROLE, TokenCounter, text_encoder

Said = tuple[str, str]


def said(block: Hashable) -> Said:
    assert isinstance(block, tuple)
    return block


def letters(text: str) -> list[int]:
    """Tokenize with one token per character."""
    return list(map(ord, text))


def shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(st.lists(st.tuples(st.sampled_from("us"), st.text("ab", max_size=5)), min_size=1, max_size=8, unique=True))
def test_equals_looking_at_every_pair(blocks: list[Said]) -> None:
    """Each other message of the same role, with the characters that it shares at its start, the most first."""
    alike = SharedStarts(said, letters, frame=4)
    for number, block in enumerate(blocks, 1):
        alike.add(START, block, number)
    for number, block in enumerate(blocks, 1):
        found = [(other, alike.tokens(number, other)) for other in alike.to(START, number)]
        wanted = {
            other: 4 + shared(block[1], text)
            for other, (role, text) in enumerate(blocks, 1)
            if other != number and role == block[0]
        }
        assert dict(found) == wanted
        assert [tokens for _, tokens in found] == sorted(wanted.values(), reverse=True)


def test_tokens_not_characters() -> None:
    """What is shared are whole tokens of the real encoding, also where one reaches over the first difference."""
    counter, alike = TokenCounter(), SharedStarts(said, text_encoder("o200k_base"), FRAME + ROLE)
    texts = ["The order number is 4711, and it was sent.", "The order number is 4712, and it was sent.", "The ordering"]
    for number, text in enumerate(texts, 1):
        alike.add(START, ("user", text), number)
    found = {other: alike.tokens(1, other) for other in alike.to(START, 1)}
    assert found[3] == FRAME + ROLE + 1  # "The"; " order" and " ordering" are different tokens
    assert counter.text("The order number is ") < found[2] - FRAME - ROLE < counter.text(texts[0])


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("us"), st.text("ab", max_size=4)), min_size=1, max_size=4),
            st.integers(0, 9),
        ),
        max_size=7,
    ),
    st.integers(1, 20),
)
def test_an_automatic_cache_reads_parts_of_messages(asked: list[tuple[list[Said], int]], lifetime: int) -> None:
    """As much as the request has in common, token by token, with any request of the lifetime that was not forgotten.

    A message is a token for its role and one a character.
    """
    alike = SharedStarts(said, letters, frame=1)
    prefixes, cache, now = Prefixes(alike), AutomaticCache(AutomaticRules(1, 1, float(lifetime))), 0.0
    seen: list[tuple[float, list[Said]]] = []
    for blocks, gap in asked:
        now += gap
        ends = [sum(1 + len(text) for _, text in blocks[: at + 1]) for at in range(len(blocks))]
        used = cache.request(CacheRequest(prefixes.of(blocks), ends, ends[-1], now, now, alike=alike))
        alive = [path for when, path in seen if when > now - lifetime]
        assert used.read == max((_common(blocks, path) for path in alive), default=0)
        seen.append((now, blocks))


def _common(one: list[Said], other: list[Said]) -> int:
    tokens = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            return tokens + (1 + shared(a[1], b[1]) if a[0] == b[0] else 0)
        tokens += 1 + len(a[1])
    return tokens


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 3), max_size=6)), max_size=12))
def test_prefixes_extended_at_once(contexts: list[tuple[int, list[int]]]) -> None:
    """They have the numbers of a table of all pairs, in which each new prefix gets the next number."""
    prefixes, pairs = Prefixes(), dict[tuple[int, int], int]()
    path = [START]
    for kept, blocks in contexts:
        path = path[: kept + 1]
        expected = [*path]
        for block in blocks:
            expected.append(pairs.setdefault((expected[-1], block), len(pairs) + 1))
        prefixes.extend(path, blocks)
        assert path == expected
