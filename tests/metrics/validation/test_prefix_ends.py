"""The ends of prefixes, computed as arrays, are those of plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.cache.prefixes import Prefixes
from ctxbench.metrics.cache.requests import Boundaries
from ctxbench.metrics.thinking import KeptThinking
from ctxbench.metrics.validation.comparison import KnownEnds
from ctxbench.metrics.validation.requests import RecordedPrompt


def ends_of(blocks: list[int], counts: list[int], tokens: int, learned: dict[int, int]) -> list[int]:
    """The end of every block, the obvious way: forwards for the offsets, backwards for the bounds."""
    offset, ends = tokens - counts[-1], list[int]()
    for number, count in zip(blocks, counts, strict=True):
        offset = learned[number] - count if number in learned else offset
        ends.append(min(max(count + offset, 0), tokens))
    last = next((at for at in range(len(blocks) - 1, -1, -1) if blocks[at] in learned), None)
    if last is not None and counts[-1] > counts[last]:
        scale = max(0, tokens - ends[last]) / (counts[-1] - counts[last])
        for at in range(last + 1, len(ends)):
            ends[at] = ends[last] + round((counts[at] - counts[last]) * scale)
    least = tokens
    for at in range(len(ends) - 1, -1, -1):
        least = ends[at] = min(ends[at], least)
    return ends


def prompt(prefixes: Prefixes, contents: list[int], sizes: list[int]) -> RecordedPrompt:
    """A prompt whose blocks are numbered like those of other prompts that begin with the same contents."""
    return RecordedPrompt(
        np.array(prefixes.of(contents)), np.cumsum(sizes), Boundaries([], 1), 0, -1, {}, KeptThinking(None, ())
    )


BLOCKS = st.integers(0, 1)  # contents so alike that prompts share their starts

CALLS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.floats(0, 1),
        st.integers(-3, 120),
        st.lists(st.tuples(st.floats(0, 1), st.integers(-5, 120)), max_size=3),
    ),
    max_size=12,
)
"""Calls: which prompt, how much of it, its tokens, and which of its prefixes then become known."""


@given(st.lists(st.lists(BLOCKS, min_size=1, max_size=9), min_size=3, max_size=3), st.data(), CALLS)
def test_each_end_is_that_of_the_list_computed_anew(
    contents: list[list[int]], data: st.DataObject, calls: list[tuple[int, float, int, list[tuple[float, int]]]]
) -> None:
    """Prompts share starts, and what becomes known comes out of order, smaller or larger than before."""
    prefixes, known, learned = Prefixes(), KnownEnds(), dict[int, int]()
    sizes = data.draw(st.lists(st.integers(0, 12), min_size=9, max_size=9))
    prompts = [prompt(prefixes, each, sizes[: len(each)]) for each in contents]
    for which, share, tokens, news in calls:
        sent = prompts[which]
        size = 1 + round(share * (len(sent.blocks) - 1))
        ends = known.of(sent, size, max(tokens, 0))
        assert list(ends) == ends_of(sent.blocks[:size].tolist(), sent.counts[:size].tolist(), max(tokens, 0), learned)
        for place, told in news:
            number = int(sent.blocks[round(place * (len(sent.blocks) - 1))])
            learned[number] = told
            known.learn(number, told)
