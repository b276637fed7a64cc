"""Where the caller marks what is to be cached, for providers that want marks: policies to compare.

    marked      only where the strategy itself marks
    automatic   the strategy's marks; where it has none, the end of the prompt, as the provider's own placement does.
                Before the look-back a prompt's end was never found again: then as `tail`, as callers had to do it
    hour        the end of the prompt, for an hour, at twice the input price
    document    design document 000: each system message at the start that is long enough by itself, at most four
    system      the end of the system messages at the start
    tail        that, and the last two messages of the user or the tools
    anchor      that, and before what the strategy will rewrite: the end of what it left as it was, where it rewrote the
                prompt at the last two requests; else the end of the prompt

A policy knows the request and those before it, never those to come; what would have been best is `hindsight.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .explicit import HOUR, MOST_MARKS
from .prefixes import CacheMark, CacheRequest, common
from .requests import TOOLS

Placement = Callable[[CacheRequest], tuple[CacheMark, ...]]
"""The marks of each request of a cell, asked for in order."""

TAIL = 2
"""Messages of the user or the tools at the end that are marked."""
DOCUMENT_LEAST = 1024
"""Tokens of a message that the document marks (it says 4 096 characters, at 4 a token)."""


def marked() -> Placement:
    """Only where the strategy itself marks."""
    return lambda asked: asked.marks[-MOST_MARKS:]


def automatic() -> Placement:
    """The strategy's marks, or the end of the prompt."""
    return lambda asked: asked.marks[-MOST_MARKS:] or (CacheMark(len(asked.prefixes) - 1),)


def by_hand() -> Placement:
    """The strategy's marks, or those of `tail`: what `automatic` is where there is no look-back."""
    otherwise = tail()
    return lambda asked: asked.marks[-MOST_MARKS:] or otherwise(asked)


def hour() -> Placement:
    """The end of the prompt, for an hour."""
    return lambda asked: (CacheMark(len(asked.prefixes) - 1, HOUR),)


def system() -> Placement:
    """The end of the system messages at the start."""
    return lambda asked: (CacheMark(asked.system),) if asked.system >= 0 else ()


def tail() -> Placement:
    """The end of the system messages, and the last messages of the user or the tools."""
    return lambda asked: _marks(asked.system, *asked.eligible[-TAIL:])


def document() -> Placement:
    """Each system message at the start that is long enough by itself."""

    def place(asked: CacheRequest) -> tuple[CacheMark, ...]:
        ends, blocks = asked.ends, range(TOOLS, asked.system + 1)
        long = [block for block in blocks if ends[block] - ends[block - 1] >= DOCUMENT_LEAST]
        return _marks(*long[:MOST_MARKS])

    return place


def anchor() -> Placement:
    """The end of the system messages, and the end of what is expected to stay."""
    before: list[int] = []
    again = False

    def place(asked: CacheRequest) -> tuple[CacheMark, ...]:
        nonlocal again
        now = asked.prefixes
        shared = common(before, now)
        rewrote = shared < len(before)
        expected, again = rewrote and again, rewrote
        before[shared:] = now[shared:]
        return _marks(asked.system, shared - 1 if expected else len(now) - 1)

    return place


PLACEMENTS: Mapping[str, Callable[[], Placement]] = {
    "automatic": automatic,
    "marked": marked,
    "hour": hour,
    "document": document,
    "system": system,
    "tail": tail,
    "anchor": anchor,
}
BY_HAND = "by hand"
"""What becomes of `automatic` under rules without a look-back."""


def _marks(*blocks: int) -> tuple[CacheMark, ...]:
    return tuple(map(CacheMark, sorted({block for block in blocks if block >= 0})))
