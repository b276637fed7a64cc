"""Requests as numbered prefixes: two requests share a cached prefix exactly if they have a number in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

START = 0
"""The number of the empty prefix."""


class Prefixes:
    """Numbers for prefixes: equal blocks after an equal prefix make an equal prefix. Nothing is hashed to a digest, so
    two different prefixes never share a number."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hashable], int] = {}

    def after(self, prefix: int, block: Hashable) -> int:
        """The number of a prefix with one block more."""
        return self._known.setdefault((prefix, block), len(self._known) + 1)

    def of(self, blocks: Iterable[Hashable], prefix: int = START) -> list[int]:
        """The number at the end of each block."""
        made = []
        for block in blocks:
            prefix = self.after(prefix, block)
            made.append(prefix)
        return made


class Mark(NamedTuple):
    """A breakpoint of a request: the prefix up to the end of this block is to be cached."""

    block: int
    lifetime: float = 300.0
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as a cache sees it. Block 0 is the tools; the messages follow."""

    prefixes: Sequence[int]
    """The number of the prefix that ends with each block (`Prefixes`)."""
    ends: Sequence[int]
    """Tokens up to the end of each block; never falling."""
    tokens: int
    """Of the whole prompt: at least the last of `ends`."""
    started: float
    """Seconds; of a lifetime the beginning."""
    answered: float
    """Seconds, when the answer began or, where that is not known, was there: what it wrote can be read from then on."""
    marks: tuple[Mark, ...] = ()
    """In the order of their blocks."""
    answer: int | None = None
    """The number of the prefix with the answer as one block more, if the next request may go on from it."""
    eligible: Sequence[int] = ()
    """Blocks at whose end a provider that places breakpoints itself may place one, in order."""
    system: int = -1
    """The last block of the tools and system messages that the prompt begins with; -1 if there are none."""


class Used(NamedTuple):
    """How the tokens of one prompt were billed; together they are all of it."""

    read: int
    """From the cache."""
    written: int
    """To the cache, for less than an hour."""
    written_1h: int
    """To the cache, for an hour or more."""
    fresh: int
    """Neither."""
    hit: int = -1
    """The last block that was read; -1 if none was, or if it ends within a block."""
