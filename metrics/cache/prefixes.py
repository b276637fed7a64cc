"""Requests as numbered prefixes: two requests share a cached prefix exactly if they have a number in common."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from ctxbench.scenarios.model import Media, Message, ToolCall

from ..tokens import FRAME, ROLE, text_encoder

START = 0  # the number of the empty prefix


class Prefixes:
    """Numbering of prefixes: equal blocks after an equal prefix make an equal prefix, without any digest.

    With `alike`, blocks that follow the same prefix and begin with the same text can be found.
    """

    def __init__(self, alike: SharedStarts | None = None) -> None:
        # A context that is new from some block on gets numbers that follow one another: they need no table of pairs.
        self._blocks: list[Hashable] = [None]  # the last block of each prefix
        self._continues = bytearray(1)  # whether each prefix goes on from the one numbered before it
        self._branches: dict[tuple[int, Hashable], int] = {}  # the others, by the prefix before and their last block
        self.alike = alike

    def after(self, prefix: int, block: Hashable) -> int:
        """Return the number of a prefix extended by one block."""
        return self._known(prefix, block) or self._add(prefix, block)

    def extend(self, path: list[int], blocks: Sequence[Hashable]) -> None:
        """Append to a path, which is not empty, the number of the prefix at the end of each further block."""
        size, prefix = len(path), path[-1]
        for block in blocks:
            known = self._known(prefix, block)
            prefix = known or self._add(prefix, block)
            path.append(prefix)
            if not known:
                break
        # Nothing has come after a new prefix yet: all the rest is new.
        rest = blocks[len(path) - size :]
        self._blocks += rest
        self._continues += b"\1" * len(rest)
        path += range(prefix + 1, prefix + 1 + len(rest))

    def of(self, blocks: Iterable[Hashable], prefix: int = START) -> list[int]:
        """Return the number of the prefix at the end of each block."""
        path = [prefix]
        self.extend(path, list(blocks))
        return path[1:]

    def _known(self, prefix: int, block: Hashable) -> int:
        """Return the number of a prefix extended by one block, or 0 if it has none yet."""
        following = prefix + 1
        if following < len(self._blocks) and self._continues[following] and self._blocks[following] == block:
            return following
        return self._branches.get((prefix, block), 0)

    def _add(self, prefix: int, block: Hashable) -> int:
        """Give a new prefix a number, and return it."""
        blocks, continues, following = self._blocks, self._continues, prefix + 1
        number = len(blocks)
        blocks.append(block)
        continues.append(number == following)
        if number != following:
            self._branches[prefix, block] = number
            if self.alike is not None:
                if continues[following]:
                    self.alike.add(prefix, blocks[following], following)
                self.alike.add(prefix, block, number)
        return number


class SentPrefix(NamedTuple):
    """Part of a message that a provider is sent: equal parts make equal prefixes, in different conversations too."""

    role: str
    text: str
    calls: tuple[ToolCall, ...]
    answers: str | None
    name: str
    media: tuple[Media, ...]
    effort: str = ""  # reasoning effort, set on the first message after the system's
    thinking: str = ""  # the reasoning, where it is in the prompt: its text, or what else tells one from another

    @classmethod
    def of(cls, message: Message, effort: str = "", thinking: str = "") -> SentPrefix:
        """Return the part of a message that is sent, without its id, its time and its provenance."""
        said = (message.role, message.text, message.calls, message.answers, message.name, message.media)
        return cls(*said, effort, thinking)


class CacheMark(NamedTuple):
    """A breakpoint of a request: the prefix up to the end of this block is to be cached."""

    block: int
    lifetime: float = 300.0  # seconds


@dataclass(slots=True)
class CacheRequest:
    """One request, as a cache sees it: the tools as block 0, the tools that a strategy adds, then the messages.

    The caller may go on changing the lists: a cache copies what it needs later.
    """

    prefixes: Sequence[int]  # the number of the prefix that ends with each block (`Prefixes`)
    ends: Sequence[int]  # tokens up to the end of each block; never falling
    tokens: int  # tokens of the whole prompt: at least the last of `ends`
    started: float  # start in seconds; lifetimes count from here
    answered: float
    """Seconds at which the answer began or, if unknown, was complete: what it wrote can be read from then on."""
    marks: tuple[CacheMark, ...] = ()  # in the order of their blocks
    answer: int | None = None
    """The number of the prefix with the answer as one block more, if the next request may go on from it."""
    eligible: Sequence[int] = ()
    """Blocks at whose end a provider that places breakpoints itself may place one, in order."""
    system: int = -1
    """The last block of the tools and system messages that the prompt begins with; -1 if there are none."""
    alike: SharedStarts | None = None  # blocks that begin alike, for caches that read part of a block
    places: Sequence[int] | None = None
    """Content blocks up to the end of each block, where a message may hold several; None = one each."""
    run_places: Sequence[int] | None = None  # the same where a run of tool calls, or of tool results, counts as one
    implicit: bool = True  # whether the provider may place breakpoints of its own beside the marks


class ContentBlocks(NamedTuple):
    """Content blocks of a message at Anthropic."""

    each: int  # its text and each tool call, at least one
    runs: int  # the same where a run of tool calls is one

    @classmethod
    def of(cls, message: Message) -> ContentBlocks:
        text, calls = bool(message.text), len(message.calls)
        return cls(max(1, text + calls), max(1, text + bool(calls)))


class CacheUsage(NamedTuple):
    """Tokens of one prompt by how they are billed; read, written, written_1h and fresh add up to the prompt."""

    read: int
    written: int  # tokens written to the cache for less than an hour
    written_1h: int  # tokens written to the cache for an hour or more
    fresh: int  # tokens neither read nor written
    hit: int = -1  # last block that was read whole; -1 if none was
    created: int = 0  # tokens stored outside of the prompt, by caches of content that the caller creates
    token_seconds: float = 0.0  # storage since the request before: tokens times seconds

    def with_read(self, read: int) -> CacheUsage:
        """Return the usage with another number of tokens read; what is written, if anything, ends at the same place."""
        read = min(read, self.prompt)
        end = max(read, self.prompt - self.fresh) if self.written or self.written_1h else read
        hour = end - read if self.written_1h > self.written else 0
        return self._replace(read=read, written=end - read - hour, written_1h=hour, fresh=self.prompt - end)

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.read + self.written + self.written_1h + self.fresh


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many leading prefixes two paths share, by bisection: equal prefixes have equal starts."""
    low, high = 0, min(len(one), len(other))
    # Mostly one goes on where the other ends. Where not, they are equal up to a place and different from there on,
    # since a number stands for all blocks before it: that is what makes bisection right, and only for prefixes.
    if high and one[high - 1] == other[high - 1]:
        return high
    while low < high:
        middle = (low + high) // 2
        if one[middle] == other[middle]:
            low = middle + 1
        else:
            high = middle
    return low


EDGE = 48  # characters after the first difference that are encoded too, since a token may reach over it


class SharedStarts:
    """Index of the blocks that came after each prefix, by their texts."""

    def __init__(
        self, said: Callable[[Hashable], tuple[str, str] | None], encode: Callable[[str], Sequence[int]], frame: int
    ) -> None:
        """`said` returns the role and text of a block, or None for a block that shares no start with another; `encode`
        the tokens of a text; `frame` are the tokens that a message has before its text."""
        self._said, self._encode, self._frame = said, encode, frame
        # The first block that came after each prefix, mostly the only one, and the prefix that it makes.
        self._first: dict[int, tuple[Hashable, int]] = {}
        # Where there are several, their roles and texts with the prefixes that they make, sorted.
        self._after: dict[int, list[tuple[str, int]]] = {}
        self._keys: dict[int, str] = {}  # role and text of the last block of each such prefix
        # What `to` has yielded and can still yield for the prefix `_of`: caches ask for the same one after the other.
        self._of = -1
        self._yielded: list[int] = []
        self._more: Iterator[int] = iter(())

    @classmethod
    def under(cls, encoding: str, said: Callable[[Hashable], tuple[str, str] | None]) -> SharedStarts | None:
        """Return an empty index for prompts in an encoding; None for `chars4`, which has no tokens to share."""
        return None if encoding == "chars4" else cls(said, text_encoder(encoding), FRAME + ROLE)

    def add(self, before: int, block: Hashable, prefix: int) -> None:
        """Record that a block came after the prefix `before` for the first time, which makes `prefix`."""
        # Texts are taken, compared and sorted only once a second block follows the same prefix, which few prefixes
        # have.
        first = self._first.setdefault(before, (block, prefix))
        if first[1] == prefix:
            return
        known, after = before in self._after, self._after.setdefault(before, [])
        for other, number in ((block, prefix),) if known else (first, (block, prefix)):
            if (content := self._said(other)) is not None:
                key = self._keys[number] = "\0".join(content)
                insort(after, (key, number))

    def to(self, before: int, prefix: int) -> Iterator[int]:
        """Yield the other prefixes after `before` whose last block begins like that of `prefix`, those that share the
        most characters first."""
        if before not in self._after:
            return
        if self._of != prefix:
            self._of, self._yielded, self._more = prefix, [], self._like(self._after[before], prefix)
        yield from self._yielded
        for other in self._more:
            self._yielded.append(other)
            yield other

    def tokens(self, prefix: int, other: int) -> int:
        """Return the tokens that the last blocks of two prefixes share; `other` is one that `to` yields."""
        key, other_key = self._keys[prefix], self._keys[other]
        role, shared = key.index("\0") + 1, shared_start(key, other_key)
        if shared == role:
            return self._frame
        one, two = (self._encode(text[role : shared + EDGE]) for text in (key, other_key))
        return self._frame + shared_start(one, two)

    def _like(self, after: list[tuple[str, int]], prefix: int) -> Iterator[int]:
        key = self._keys.get(prefix)
        if key is None:
            return
        role, at = key.index("\0") + 1, bisect_left(after, (key, prefix))

        def neighbours(places: Iterable[int]) -> Iterator[tuple[int, int]]:
            """Yield what neighbours on one side share, negated, with their prefixes: the first share the most."""
            shared = len(key)
            for place in places:
                shared = min(shared, shared_start(key, after[place][0]))
                # A key is role, NUL, text. Sharing fewer characters than `role` is sharing no role.
                if shared < role:
                    return
                yield -shared, after[place][1]

        sides = map(neighbours, (range(at - 1, -1, -1), range(at + 1, len(after))))
        yield from (other for _, other in merge(*sides, key=itemgetter(0)))


def shared_start(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many leading characters, tokens or other items two sequences share."""
    low, high, step = 0, min(len(one), len(other)), 32
    # Slices are compared at the speed of memory, and only behind what is known to be equal. Most texts part early: the
    # part that is compared grows from a few characters on, and is halved once it is not equal.
    while low < high:
        end = min(low + step, high)
        if one[low:end] == other[low:end]:
            low, step = end, 2 * step
        else:
            high, step = end - 1, max(1, (end - low) // 2)
    return low
