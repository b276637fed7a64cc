"""The conversations that are in the page for its inspector, packed: as many as there is room for.

Each is JSON, deflated, in base64: the page unpacks what is looked at. A conversation that does not fit has its texts
cut shorter; one that still does not fit is left to `ctxbench show`.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import msgspec

from ...harness.loading import Run
from ...scenarios.errors import RunError
from ...scenarios.spec import nearest
from ..results import Results
from ..words import printable
from .cells import Key, Tables, plain

ROOM = 3_000_000
"""Characters in the page for all of them."""
MOST_STEPS = 150_000
"""Steps that are looked at for it."""
CUTS = (2000, 200, 40)
"""Characters of a message's text: more, if there is room."""


@dataclass(frozen=True)
class Packed:
    """One conversation."""

    name: str
    steps: int
    cut: int
    """Characters of a text that are here."""
    data: str


@dataclass(frozen=True)
class Inspected:
    """What the inspector has."""

    conversations: Sequence[Packed]
    of: int
    """Conversations that the run has."""
    model: str
    """Whose cache is meant by cached."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The conversations that it has."""
        return frozenset(each.name for each in self.conversations)


def check(run: Run, named: Sequence[str]) -> None:
    """Raise a RunError for a conversation that is not in the run: before work is done for it."""
    known = dict.fromkeys(run.table("conversations").conversation)
    for name in named:
        if name not in known:
            raise RunError(f"{run.folder}: no conversation {name!r} is in this run{nearest(name, known) or ''}")


def inspected(results: Results, named: Sequence[str] = ()) -> Inspected:
    """The named conversations first, then the others in the order of the run, as many as fit."""
    check(results.run, named)
    table = results.run.table("conversations")
    steps = dict(zip(table.conversation, table.calls, strict=True))
    chosen: dict[str, None] = {}
    budget = MOST_STEPS
    for name in dict.fromkeys((*named, *steps)):
        budget -= steps[name] * len(results.strategies)
        if budget < 0 and chosen:
            break
        chosen[name] = None
    tools = dict(zip(table.conversation, table.tools_tokens, strict=True))
    packed = list(_packed(results, list(chosen), tools))
    return Inspected(packed, len(steps), results.models[0])


def _packed(results: Results, names: Sequence[str], tools: dict[str, int]) -> Iterator[Packed]:
    confined = Run(results.run.folder, frozenset(names))
    tables, read = Tables.of(confined), _reads(results)
    found = {each.id: each for each in confined.conversations()}
    left = ROOM
    for name in names:
        for cut in CUTS:
            made = plain(found[name], results.strategies, tables, read, int(tools[name]), cut)
            data = b64encode(zlib.compress(msgspec.json.encode(made), 6)).decode()
            if len(data) <= left:
                left -= len(data)
                yield Packed(printable(name), max(len(each.get("at", ())) for each in made["strategies"]), cut, data)
                break


def _reads(results: Results) -> Callable[[Key], list[int] | None]:
    """Of the steps of a cell, the tokens that the first model's cache would have; None where that was not reckoned."""
    billed = results.billed
    usage, cells = billed.usages[billed.schemes[0]], billed.cells
    names, strategies = cells.steps.conversation, cells.steps.strategy
    rows = {(names.iloc[start], strategies.iloc[start]): slice(start, stop) for start, stop in pairwise(cells.bounds)}
    return lambda key: usage.read[rows[key]].tolist() if key in rows else None
