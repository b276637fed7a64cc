"""Requests as numbered prefixes: two requests share a cached prefix exactly if they have a number in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...scenarios.model import Message, ToolCall
from .alike import Alike

START = 0
"""The number of the empty prefix."""


class Prefixes:
    """Numbers for prefixes: equal blocks after an equal prefix make an equal prefix. Nothing is hashed to a digest, so
    two different prefixes never share a number.

    With `alike`, blocks that follow the same prefix and begin with the same text can be found.
    """

    __slots__ = ("_known", "alike")

    def __init__(self, alike: Alike | None = None) -> None:
        self._known: dict[tuple[int, Hashable], int] = {}
        self.alike = alike

    def after(self, prefix: int, block: Hashable) -> int:
        """The number of a prefix with one block more."""
        known = self._known
        number = known.get((prefix, block))
        if number is None:
            number = known[prefix, block] = len(known) + 1
            if self.alike is not None:
                self.alike.add(prefix, block, number)
        return number

    def of(self, blocks: Iterable[Hashable], prefix: int = START) -> list[int]:
        """The number at the end of each block."""
        made = []
        for block in blocks:
            prefix = self.after(prefix, block)
            made.append(prefix)
        return made


class Sent(NamedTuple):
    """What of a message a provider is sent: where these are equal, prefixes of different conversations are."""

    role: str
    text: str
    calls: tuple[ToolCall, ...]
    answers: str | None
    name: str
    images: int
    effort: str = ""
    """How much the model was to think, with the first message after the system's."""

    @classmethod
    def of(cls, message: Message, effort: str = "") -> Sent:
        """Of a message, without its id, time and how it was made."""
        return cls(message.role, message.text, message.calls, message.answers, message.name, message.images, effort)


class Mark(NamedTuple):
    """A breakpoint of a request: the prefix up to the end of this block is to be cached."""

    block: int
    lifetime: float = 300.0
    """Seconds."""


@dataclass(slots=True)
class Request:
    """One request, as a cache sees it: the tools as block 0, what a strategy adds to them, then the messages.

    Whoever makes requests may go on with the same lists: a cache copies what it keeps.
    """

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
    alike: Alike | None = None
    """Blocks that begin alike, for caches that read part of a block."""
    places: Sequence[int] | None = None
    """Content blocks up to the end of each block, where a message may hold several; None = one each."""


def content_blocks(message: Message) -> int:
    """The content blocks that Anthropic has a message as: its text and each tool call, at least one."""
    return max(1, bool(message.text) + len(message.calls))


class Used(NamedTuple):
    """How the tokens of one prompt were billed; read, written and fresh are together all of it."""

    read: int
    """From the cache."""
    written: int
    """To the cache, for less than an hour."""
    written_1h: int
    """To the cache, for an hour or more."""
    fresh: int
    """Neither."""
    hit: int = -1
    """The last block that was read whole; -1 if none was."""
    created: int = 0
    """Stored outside of the prompt, by caches that keep what the caller creates."""
    token_seconds: float = 0.0
    """Of storage since the request before: tokens times seconds."""


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading prefixes two paths share. Prefixes that are equal have equal starts, so halving finds it."""
    low, high = 0, min(len(one), len(other))
    if high and one[high - 1] == other[high - 1]:
        return high
    while low < high:
        middle = (low + high) // 2
        if one[middle] == other[middle]:
            low = middle + 1
        else:
            high = middle
    return low
