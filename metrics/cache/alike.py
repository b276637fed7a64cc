"""Messages that begin alike: for caches that count tokens within a message, where a prefix breaks in the middle of one.

A summary that grows at its end, facts that change after the first, a tool result of which the start stays: the text up
to the first difference is read from the cache too.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator, Sequence

Said = Callable[[Hashable], tuple[str, str] | None]
"""Role and text of a block; None for one that is nothing like another."""

EDGE = 48
"""Characters after the first difference that are read too: a token may reach over it."""


class Alike:
    """Of each prefix, the blocks that came after it, by their texts.

    `frame`: the tokens that a message has before its text.
    """

    __slots__ = ("_after", "_encode", "_first", "_frame", "_keys", "_made", "_more", "_of", "_said")

    def __init__(self, said: Said, encode: Callable[[str], Sequence[int]], frame: int) -> None:
        self._said = said
        self._encode = encode
        self._frame = frame
        self._first: dict[int, tuple[Hashable, int]] = {}
        """Of each prefix, the first block that came after it, and the prefix that it makes: mostly the only one."""
        self._after: dict[int, list[tuple[str, int]]] = {}
        """Where there are several, their roles and texts with the prefixes that they make, in this order."""
        self._keys: dict[int, str] = {}
        """Role and text of the last block of each such prefix."""
        self._of = -1
        self._made: list[tuple[int, int]] = []
        self._more: Iterator[tuple[int, int]] = iter(())
        """What `to` said and can still say of this prefix: caches ask one after the other."""

    def add(self, before: int, block: Hashable, prefix: int) -> None:
        """A block came after the prefix `before` for the first time, which makes `prefix`."""
        first = self._first.setdefault(before, (block, prefix))
        if first[1] == prefix:
            return
        after = self._after.get(before)
        if after is None:
            after = self._after[before] = []
            self._insert(after, *first)
        self._insert(after, block, prefix)

    def to(self, before: int, prefix: int) -> Iterator[tuple[int, int]]:
        """The other prefixes after `before` whose last block begins as that of `prefix` does, and for how many tokens;
        the most first."""
        if before not in self._after:
            return
        if self._of != prefix:
            self._of, self._made, self._more = prefix, [], self._like(self._after[before], prefix)
        yield from self._made
        for each in self._more:
            self._made.append(each)
            yield each

    def _like(self, after: list[tuple[str, int]], prefix: int) -> Iterator[tuple[int, int]]:
        key = self._keys.get(prefix)
        if key is None:
            return
        role = key.index("\0") + 1
        at = bisect_left(after, (key, prefix))
        left, right = at - 1, at + 1  # neighbours in this order share the most, those beyond them no more
        below = _shared(key, after[left][0]) if left >= 0 else 0
        above = _shared(key, after[right][0]) if right < len(after) else 0
        while max(below, above) >= role:
            if below >= above:
                yield after[left][1], self._tokens(key[role:], after[left][0][role:], below - role)
                left -= 1
                below = min(below, _shared(key, after[left][0])) if left >= 0 else 0
            else:
                yield after[right][1], self._tokens(key[role:], after[right][0][role:], above - role)
                right += 1
                above = min(above, _shared(key, after[right][0])) if right < len(after) else 0

    def _insert(self, after: list[tuple[str, int]], block: Hashable, prefix: int) -> None:
        said = self._said(block)
        if said is not None:
            key = self._keys[prefix] = "\0".join(said)
            insort(after, (key, prefix))

    def _tokens(self, one: str, other: str, shared: int) -> int:
        """Tokens that two messages have in common, of whose texts so many characters are the same."""
        if not shared:
            return self._frame
        return self._frame + _shared(self._encode(one[: shared + EDGE]), self._encode(other[: shared + EDGE]))


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How many leading characters, or tokens, two texts share."""
    low, high = 0, min(len(one), len(other))
    if not high or one[0] != other[0]:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
