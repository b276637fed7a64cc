"""Requests of one result (a conversation under a strategy), as caches see them, and the placement of cache marks.

Requests follow from the context log alone: the numbers of the messages in each, their tokens, and the times. Prefixes
are equal where these numbers are. A result has a cache of its own, which begins empty.

Placements, for providers that want the caller to mark what is cached:

    marked      only where the strategy itself marks
    automatic   the strategy's marks; where it has none, the end of the prompt, as the provider's own placement does.
                Before the look-back a prompt's end was never found again: then as `tail`, as callers had to do it
    hour        the end of the prompt, for an hour, at twice the input price
    document    design document 000: each system message at the start that is long enough by itself, at most four
    system      the end of the system messages at the start
    tail        that, and the last two messages of the user or the tools
    anchor      that, and before what the strategy will rewrite: the end of the unchanged prefix, where it rewrote the
                prompt at the last two requests; else the end of the prompt

A placement knows the request and those before it, never later ones; `offline_optimum.py` bounds the best of all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ..tokens import PRIMING
from .mechanisms import HOUR, MOST_MARKS
from .prefixes import START, CacheMark, CacheRequest, ContentBlocks, Prefixes, common, shared_start

TOOLS = 2  # blocks before the messages: the recorded tools, and those that the strategy offers beside them


class RequestStep(NamedTuple):
    """One request of a cell, as the context log has it."""

    kept: int  # first messages that are those of the request before, under the same tools
    added: Sequence[tuple[int, int]]  # stretches of message numbers after them
    tools: tuple[str, ...]  # tools that the strategy offers beside the recorded ones
    tokens: int
    marks: Sequence[int]  # places of messages with a breakpoint after them
    started: float
    answered: float
    answer: int  # the number of the recorded answer's message
    output: int


class MessageSizes(NamedTuple):
    """All messages of a cell by their numbers: those of the recording, then those that the strategy wrote."""

    tokens: Sequence[int]
    roles: Sequence[str]
    tools: int  # tokens of the recorded tools
    blocks: Sequence[ContentBlocks] | None = None  # content blocks of each; None = one each


def requests(
    steps: Iterable[RequestStep], messages: MessageSizes, prefixes: Prefixes | None = None
) -> Iterator[CacheRequest]:
    """Yield the request of each step, as a cache sees it. They share their lists: use each before the next."""
    prefixes = prefixes or Prefixes()
    after, alike, tokens = prefixes.after, prefixes.alike, messages.tokens
    keys = range(len(tokens))
    path, ends, boundaries = list[int](), list[int](), Boundaries(messages.roles, TOOLS, messages.blocks)
    places, run_places = (None, None) if messages.blocks is None else (boundaries.places, boundaries.run_places)
    offered: tuple[str, ...] | None = None
    for step in steps:
        if step.tools != offered:
            offered = step.tools
            # Other tools come before all messages, so nothing is kept (`kept` is 0, `added` the whole prompt). The log
            # has no size for tools: they are what the request has beyond its messages and the priming of the reply.
            sent = sum(tokens[number] for start, stop in step.added for number in range(start, stop))
            tools = step.tokens - PRIMING - sent
            own = min(messages.tools, tools)
            # Two blocks: the recorded tools stay cached where the strategy adds its own behind them.
            path, ends = [after(START, (own,))], [own, tools]
            path.append(after(path[0], (offered, tools)))
            boundaries.keep(0)
            boundaries.places[:] = boundaries.run_places[:] = 1, 1 + bool(offered)
        # The lists are those of the request before, cut and added to: a step costs what it changes, not its length.
        del path[TOOLS + step.kept :], ends[TOOLS + step.kept :]
        boundaries.keep(step.kept)
        for start, stop in step.added:
            prefixes.extend(path, keys[start:stop])
            ends[-1:] = accumulate(tokens[start:stop], initial=ends[-1])
            boundaries.add(start, stop)
        yield CacheRequest(
            path,
            ends,
            step.tokens,
            step.started,
            step.answered,
            tuple([CacheMark(place + TOOLS) for place in step.marks]),
            after(path[-1], keys[step.answer]),
            boundaries.eligible,
            boundaries.system,
            alike,
            places,
            run_places,
        )


def system_first(steps: Iterable[RequestStep], messages: MessageSizes) -> list[RequestStep]:
    """Return the requests as providers see them that move system messages before all others."""
    reordered, sent, before = list[RequestStep](), list[int](), list[int]()
    for step in steps:
        del sent[step.kept :]
        sent += [number for start, stop in step.added for number in range(start, stop)]
        order = sorted(range(len(sent)), key=lambda place: messages.roles[sent[place]] != "system")
        now = [sent[place] for place in order]
        same = reordered and step.tools == reordered[-1].tools
        # Not `common`: that bisects, which is right for numbers of prefixes and wrong for those of messages.
        kept = shared_start(before, now) if same else 0
        marks = sorted(order.index(place) for place in step.marks)
        reordered.append(step._replace(kept=kept, added=[(number, number + 1) for number in now[kept:]], marks=marks))
        before = now
    return reordered


def is_system_first(steps: Iterable[RequestStep], messages: MessageSizes) -> bool:
    """Return whether no request has a system message behind one of another role."""
    systems = [number for number, role in enumerate(messages.roles) if role == "system"]
    size = leading = 0
    for step in steps:
        size, leading = step.kept, min(leading, step.kept)
        for start, stop in step.added:
            among = systems[bisect_left(systems, start) : bisect_left(systems, stop)]
            if among:
                if leading < size or among[-1] != start + len(among) - 1:
                    return False
                leading += len(among)
            size += stop - start
    return True


class Boundaries:
    """Blocks of the present request at whose end a provider may place a breakpoint of its own.

    They are the ends of the user's messages, of rows of tool results, and of the system messages at the start. Without
    system messages `system` is the last of the `tools` blocks, which come before the messages.
    """

    def __init__(self, roles: Sequence[str], tools: int, blocks: Sequence[ContentBlocks] | None = None) -> None:
        """`roles` are those of all messages, `blocks` their content blocks."""
        self._roles, self._tools, self._blocks = roles, tools, blocks
        # A run of tool results counts as one.
        joined = (False, *(one == "tool" == other for one, other in pairwise(roles)))
        self._each = [block.each for block in blocks or ()]
        self._runs = [0 if joins else block.runs for block, joins in zip(blocks or (), joined, strict=False)]
        self.places = [1] * tools
        """Content blocks up to the end of each block."""
        self.run_places = [1] * tools
        """The same where a run of tool calls, or of tool results, counts as one."""
        # Messages that end something wherever they are sent, but for a row of results that is cut off.
        self._ends = [
            number
            for number, (role, after) in enumerate(pairwise((*roles, "")))
            if role == "user" or (role == "tool" != after)
        ]
        self._sent_roles: list[str] = []
        self.eligible: list[int] = []
        self.system = tools - 1

    def reach(self, size: int) -> None:
        """Go on to the first `size` messages of all, from what is sent of them."""
        self.keep(min(size, len(self._sent_roles)))
        self.add(len(self._sent_roles), size)

    def keep(self, kept: int) -> None:
        sent_roles, eligible, tools = self._sent_roles, self.eligible, self._tools
        if kept == len(sent_roles):
            return
        del sent_roles[kept:], self.places[kept + tools :], self.run_places[kept + tools :]
        self.system = min(self.system, kept + tools - 1)
        while eligible and eligible[-1] >= kept + tools:
            eligible.pop()
        if sent_roles and sent_roles[-1] == "tool" and eligible[-1:] != [kept + tools - 1]:
            # system, user, assistant, tool, tool are blocks 2 to 6 with boundaries [2, 3, 6]. Of its first four
            # messages the row of results ends with block 5, which was no boundary: [2, 3, 5].
            eligible.append(kept + tools - 1)  # it ends a row of results now
        # Cut within the system messages at the start: the last one that is left ends them now.
        if sent_roles and not eligible and self.system == kept + tools - 1:
            eligible.append(self.system)

    def add(self, start: int, stop: int) -> None:
        roles, sent_roles, eligible, tools = self._roles, self._sent_roles, self.eligible, self._tools
        if start >= stop:
            return
        if self._blocks is not None:
            first = 0 if roles[start] == "tool" and sent_roles[-1:] == ["tool"] else self._blocks[start].runs
            self.places[-1:] = accumulate(self._each[start:stop], initial=self.places[-1])
            self.run_places[-1:] = accumulate((first, *self._runs[start + 1 : stop]), initial=self.run_places[-1])
        # Only system messages that follow the tools, or each other, from the start on. Later ones are no boundary.
        while start < stop and roles[start] == "system" and self.system == len(sent_roles) + tools - 1:
            if self.system in eligible:
                eligible.remove(self.system)
            self.system += 1
            eligible.append(self.system)
            sent_roles.append("system")
            start += 1
        if start >= stop:
            return
        # A row of tool messages goes on, so its boundary moves on.
        if roles[start] == "tool" and sent_roles and sent_roles[-1] == "tool":
            eligible.pop()
        shift = len(sent_roles) + tools - start
        ends = self._ends[bisect_left(self._ends, start) : bisect_left(self._ends, stop)]
        if roles[stop - 1] == "tool" and ends[-1:] != [stop - 1]:
            ends.append(stop - 1)
        eligible += [number + shift for number in ends]
        sent_roles += roles[start:stop]


Placement = Callable[[CacheRequest], tuple[CacheMark, ...]]
"""Function from a request to its marks, called in the order of the requests of one result."""

TAIL = 2  # number of messages of the user or the tools at the end that are marked

DOCUMENT_LEAST = 1024
"""Least tokens of a message that design document 000 marks (it says 4 096 characters, at 4 a token)."""


def _tail(request: CacheRequest) -> tuple[CacheMark, ...]:
    return _marks(request.system, *request.eligible[-TAIL:])


def by_hand(request: CacheRequest) -> tuple[CacheMark, ...]:
    """Use the strategy's marks, or those of `tail`: this replaces `automatic` where there is no look-back."""
    return request.marks[-MOST_MARKS:] or _tail(request)


def _document(request: CacheRequest) -> tuple[CacheMark, ...]:
    ends, blocks = request.ends, range(TOOLS, request.system + 1)
    long = [block for block in blocks if ends[block] - ends[block - 1] >= DOCUMENT_LEAST]
    return _marks(*long[:MOST_MARKS])


def anchor() -> Placement:
    """Mark the ends of the system messages and of the prompt; after two rewrites in a row of what both share."""
    before: list[int] = []
    again = False

    def place(request: CacheRequest) -> tuple[CacheMark, ...]:
        nonlocal again
        now = request.prefixes
        shared = common(before, now)
        # Twice in a row: leaving the end unmarked saves 7 points of the bill where every prompt is rewritten, and costs
        # up to 9 where some are (decision 18).
        rewrote = shared < len(before)
        expected, again = rewrote and again, rewrote
        # A copy of what differs: the lists of a request change with the next one (`requests`).
        before[shared:] = now[shared:]
        return _marks(request.system, shared - 1 if expected else len(now) - 1)

    return place


PLACEMENTS: Mapping[str, Callable[[], Placement]] = {
    "automatic": lambda: lambda request: request.marks[-MOST_MARKS:] or (CacheMark(len(request.prefixes) - 1),),
    "marked": lambda: lambda request: request.marks[-MOST_MARKS:],
    "hour": lambda: lambda request: (CacheMark(len(request.prefixes) - 1, HOUR),),
    "document": lambda: _document,
    "system": lambda: lambda request: _marks(request.system),
    "tail": lambda: _tail,
    "anchor": anchor,
}
"""Placements by name, each made anew for every result."""

BY_HAND = "by hand"  # name of the placement that replaces `automatic` under rules without a look-back


def _marks(*blocks: int) -> tuple[CacheMark, ...]:
    return tuple(map(CacheMark, sorted({block for block in blocks if block >= 0})))
