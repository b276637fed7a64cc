"""What requests would have cost under a model's cache rules and prices.

A cell is billed from its context log alone: which messages stood in each request, numbered as in the log, how many
tokens each has, and when it was asked. Prefixes are equal where these numbers are. Each cell has a cache of its own,
which begins empty. Where the caller has to mark and the strategy does not, the mark is where the provider's automatic
placement puts it, at the end of the prompt; with the placement "marked" such a request is not cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ..prices import Price, Usage
from .explicit import MOST_MARKS
from .prefixes import START, Mark, Prefixes, Request, Used
from .rules import Cache

Placement = Literal["automatic", "marked"]
ENDS = 21
"""Eligible ends that any provider looks at."""


class Step(NamedTuple):
    """One request of a cell, as the context log has it."""

    kept: int
    """First messages that are those of the request before, under the same tools."""
    added: Sequence[tuple[int, int]]
    """Stretches of message numbers after them."""
    tools: tuple[str, ...]
    """Tools that the strategy offers beside the recorded ones."""
    tools_tokens: int
    """Of all tool schemas, and what else stands before the messages."""
    marks: Sequence[int]
    """Places of messages with a breakpoint after them; of more than four the last four count."""
    started: float
    answered: float
    answer: int
    """The number of the recorded answer's message."""
    output: int
    """Its tokens."""


class Charge(NamedTuple):
    """One request billed."""

    used: Used
    output: int
    cost: float
    """US dollars."""
    uncached: float
    """What it would have cost without a cache."""


def requests(steps: Iterable[Step], tokens: Sequence[int], roles: Sequence[str]) -> Iterator[Request]:
    """What a cache sees of each request. `tokens` and `roles` are of the messages, by their numbers."""
    prefixes = Prefixes()
    path, ends, said = list[int](), list[int](), list[str]()
    for step in steps:
        first = prefixes.after(START, (step.tools, step.tools_tokens))
        if path[:1] != [first]:
            path, ends, said = [first], [step.tools_tokens], []
        del path[1 + step.kept :], ends[1 + step.kept :], said[step.kept :]
        for start, stop in step.added:
            for number in range(start, stop):
                path.append(prefixes.after(path[-1], number))
                ends.append(ends[-1] + tokens[number])
            said += roles[start:stop]
        marks = tuple(Mark(place + 1) for place in list(step.marks)[-MOST_MARKS:])
        answer = prefixes.after(path[-1], step.answer)
        eligible, system = _eligible(said)
        yield Request(list(path), list(ends), ends[-1], step.started, step.answered, marks, answer, eligible, system)


def charged(request: Request, output: int, cache: Cache | None, price: Price) -> Charge:
    """A request through a cache, and its price."""
    used = cache.request(request) if cache is not None else Used(0, 0, 0, request.tokens)
    cost = price.of(Usage(request.tokens, output, used.read, used.written + used.written_1h, used.written_1h))
    return Charge(used, output, cost, price.of(Usage(request.tokens, output)))


def placed(request: Request, placement: Placement) -> Request:
    """The request as it is sent to a provider that wants marks, where the strategy sets none."""
    if request.marks or placement == "marked":
        return request
    return replace(request, marks=(Mark(len(request.prefixes) - 1),))


def _eligible(roles: Sequence[str]) -> tuple[list[int], int]:
    """The latest blocks at whose end a provider may place a breakpoint of its own, and the last of the system's."""
    system = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
    found: list[int] = []
    after = ""
    for at in range(len(roles) - 1, system - 1, -1):
        role = roles[at]
        if role == "user" or (role == "tool" and after != "tool"):
            found.append(at + 1)
            if len(found) == ENDS:
                break
        after = role
    return [*([system] if system and len(found) < ENDS else []), *reversed(found)], system or -1
