"""The requests of one cell (a conversation under a strategy), as caches see them, from its context log alone.

Which messages stood in each request, numbered as in the log; how many tokens each has; when it was asked. Prefixes are
equal where these numbers are. A cell has a cache of its own, which begins empty, unless its conversation shares one
with others: then prefixes are equal where messages are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..tokens import PRIMING
from .prefixes import START, CacheMark, CacheRequest, Prefixes

TOOLS = 2
"""Blocks before the messages: the recorded tools, and those that the strategy offers beside them."""


class RequestStep(NamedTuple):
    """One request of a cell, as the context log has it."""

    kept: int
    """First messages that are those of the request before, under the same tools."""
    added: Sequence[tuple[int, int]]
    """Stretches of message numbers after them."""
    tools: tuple[str, ...]
    """Tools that the strategy offers beside the recorded ones."""
    tokens: int
    """Of the whole request."""
    marks: Sequence[int]
    """Places of messages with a breakpoint after them."""
    started: float
    answered: float
    answer: int
    """The number of the recorded answer's message."""
    output: int
    """Its tokens."""


class MessageSizes(NamedTuple):
    """All messages of a cell by their numbers: those of the recording, then those that the strategy wrote."""

    tokens: Sequence[int]
    roles: Sequence[str]
    tools: int
    """Tokens of the recorded tools."""
    keys: Sequence[Hashable] | None = None
    """What is equal in another conversation has an equal key; None where no other one shares the cache."""
    tools_key: Hashable = None
    """The same of the recorded tools."""
    blocks: Sequence[int] | None = None
    """Content blocks of each; None = one each."""


def requests(
    steps: Iterable[RequestStep], messages: MessageSizes, prefixes: Prefixes | None = None
) -> Iterator[CacheRequest]:
    """What a cache sees of each step. All of them share their lists: each is gone when the next is asked for.

    `prefixes` are those of all conversations that share a cache.
    """
    prefixes = prefixes or Prefixes()
    after, alike, tokens = prefixes.after, prefixes.alike, messages.tokens
    keys: Sequence[Hashable] = messages.keys or range(len(tokens))
    path, ends, places, blocks = list[int](), list[int](), list[int](), messages.blocks
    boundaries = _Boundaries(messages.roles)
    offered: tuple[str, ...] | None = None
    for step in steps:
        if step.tools != offered:
            offered = step.tools
            sent = sum(tokens[number] for start, stop in step.added for number in range(start, stop))
            tools = step.tokens - PRIMING - sent
            own = min(messages.tools, tools)
            path, ends = [after(START, (own, messages.tools_key))], [own, tools]
            path.append(after(path[0], (offered, tools)))
            places = [1, 1 + bool(offered)]
            boundaries.clear()
        del path[TOOLS + step.kept :], ends[TOOLS + step.kept :], places[TOOLS + step.kept :]
        boundaries.keep(step.kept)
        prefix, end = path[-1], ends[-1]
        for start, stop in step.added:
            for number in range(start, stop):
                prefix = after(prefix, keys[number])
                end += tokens[number]
                path.append(prefix)
                ends.append(end)
                if blocks is not None:
                    places.append(places[-1] + blocks[number])
            boundaries.add(start, stop)
        yield CacheRequest(
            path,
            ends,
            step.tokens,
            step.started,
            step.answered,
            tuple([CacheMark(place + TOOLS) for place in step.marks]),
            after(prefix, keys[step.answer]),
            boundaries.eligible,
            boundaries.system,
            alike,
            places if blocks is not None else None,
        )


def system_first(steps: Iterable[RequestStep], messages: MessageSizes) -> list[RequestStep]:
    """The same requests as providers see them that put system messages before all others, wherever they stand."""
    made, sent, before = list[RequestStep](), list[int](), list[int]()
    for step in steps:
        del sent[step.kept :]
        sent += [number for start, stop in step.added for number in range(start, stop)]
        order = sorted(range(len(sent)), key=lambda place: messages.roles[sent[place]] != "system")
        now = [sent[place] for place in order]
        same = made and step.tools == made[-1].tools
        kept = next((at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), None)
        kept = (min(len(before), len(now)) if kept is None else kept) if same else 0
        marks = sorted(order.index(place) for place in step.marks)
        made.append(step._replace(kept=kept, added=[(number, number + 1) for number in now[kept:]], marks=marks))
        before = now
    return made


def is_system_first(steps: Iterable[RequestStep], messages: MessageSizes) -> bool:
    """Whether no request has a system message behind one of another role."""
    roles, sent = messages.roles, list[str]()
    for step in steps:
        del sent[step.kept :]
        for start, stop in step.added:
            for role in roles[start:stop]:
                if role == "system" and sent and sent[-1] != "system":
                    return False
                sent.append(role)
    return True


class _Boundaries:
    """The blocks of the present request at whose end a provider may place a breakpoint of its own.

    They are the ends of the user's messages, of rows of tool results, and of the system messages at the start.
    """

    __slots__ = ("_roles", "_said", "eligible", "system")

    def __init__(self, roles: Sequence[str]) -> None:
        self._roles = roles
        self._said: list[str] = []
        self.eligible: list[int] = []
        self.system = TOOLS - 1

    def clear(self) -> None:
        """There are other tools."""
        self.keep(0)

    def keep(self, kept: int) -> None:
        """Only so many of the messages stay."""
        said, eligible = self._said, self.eligible
        if kept == len(said):
            return
        del said[kept:]
        self.system = min(self.system, kept + TOOLS - 1)
        while eligible and eligible[-1] >= kept + TOOLS:
            eligible.pop()
        if said and said[-1] == "tool" and eligible[-1:] != [kept + TOOLS - 1]:
            eligible.append(kept + TOOLS - 1)  # it ends a row of results now
        if said and not eligible and self.system == kept + TOOLS - 1:
            eligible.append(self.system)

    def add(self, start: int, stop: int) -> None:
        """These messages come after the others."""
        said, eligible = self._said, self.eligible
        for role in self._roles[start:stop]:
            block = len(said) + TOOLS
            if role == "system" and self.system == block - 1:
                if self.system in eligible:
                    eligible.remove(self.system)
                self.system = block
                eligible.append(block)
            elif role == "user" or role == "tool":
                if role == "tool" and said and said[-1] == "tool":
                    eligible.pop()
                eligible.append(block)
            said.append(role)
