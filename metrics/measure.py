"""Every figure of a step from the context log: token sums and faults are subtractions in running totals.

A context is runs [start, stop) over one numbering of messages: the recording's, then those that the strategy wrote.
Many cells are measured in one go, as NumPy arrays over all their runs; the tests compare with reading each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..scenarios.model import Message
from .structure import Structure, calls_and_results, is_blank, step
from .tokens import PRIMING, Ledger

Ints = NDArray[np.int64]
NONE = np.iinfo(np.int64).max


class RaggedArray(NamedTuple):
    """A column of lists: row i has values[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    values: Ints


@dataclass(slots=True)
class Runs:
    """The contexts of one cell, step after step: how much was said, the runs of messages sent, and the kept prefix."""

    at: list[int] = field(default_factory=list)
    """Messages said before each step."""
    size: list[int] = field(default_factory=list)
    """Runs of each step; the runs themselves are in `start` and `stop`, all steps together."""
    start: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    """Leading messages shared with the step before; 0 if other tools were offered, which stand before all messages."""
    same_tools: list[int] = field(default_factory=list)
    """1 if the tools are those of the step before."""


@dataclass(frozen=True, slots=True)
class MeasuredResult:
    """One conversation under one strategy, ready to be measured."""

    recording: Sequence[Message]
    written: Sequence[Message]
    ledger: Ledger
    structure: Structure
    runs: Runs
    tools: Sequence[int]
    """Tokens of the tool schemas at each step."""
    tools_full: int
    """Those of the recording's own tools."""
    budget: int | None


def measure(cells: Sequence[MeasuredResult]) -> dict[str, Ints | RaggedArray]:
    """The columns of the step table for all steps of the cells, in order.

    `tokens_*` are of whole requests: messages, tool schemas and the priming of the reply. `tokens_kept` is what of
    `tokens_sent` any prefix cache could reuse at most: the tools and the kept messages, 0 at a cell's first step.
    """
    books = _Books.of(cells)
    steps = [len(cell.runs.at) for cell in cells]
    base = np.repeat(books.base, steps)
    size, kept = _all(cell.runs.size for cell in cells), _all(cell.runs.kept for cell in cells)
    at = _all(cell.runs.at for cell in cells)
    tools, same_tools = _all(cell.tools for cell in cells), _all(cell.runs.same_tools for cell in cells)
    first = np.concatenate([[0], np.cumsum(size)])
    owner = np.repeat(np.arange(len(size)), size)
    shift = base[owner]
    start, stop = _all(c.runs.start for c in cells) + shift, _all(c.runs.stop for c in cells) + shift
    length = stop - start
    before = np.cumsum(length) - length
    before -= np.repeat(before[first[:-1].clip(max=max(len(before) - 1, 0))], size) if len(before) else before
    held = np.clip(kept[owner] - before, 0, length)
    """Of each run, the messages that are in the kept prefix."""

    def total(values: Ints) -> Ints:
        return _sums(values, first)

    messages = total(books.tokens[stop] - books.tokens[start])
    number = np.concatenate([np.arange(count) for count in steps]) if steps else np.zeros(0, np.int64)
    budgets = np.repeat(np.array([NONE if c.budget is None else c.budget for c in cells], np.int64), steps)
    added = held < length
    return {
        "step": number,
        "at": at,
        "turn": books.users[base + at] - books.users[base],
        "kept": kept,
        "added_from": RaggedArray(_offsets(added, owner, len(size)), (start - shift + held)[added]),
        "added_to": RaggedArray(_offsets(added, owner, len(size)), (stop - shift)[added]),
        "messages_sent": total(length),
        "tokens_full": books.tokens[base + at]
        + np.repeat(np.array([c.tools_full for c in cells], np.int64), steps)
        + PRIMING,
        "tokens_sent": messages + tools + PRIMING,
        "tokens_kept": (total(books.tokens[start + held] - books.tokens[start]) + tools) * same_tools,
        "over_budget": np.maximum(messages - budgets, 0),
        **_faults(cells, books, start, stop, base, at, first, owner, steps),
    }


def _faults(
    cells: Sequence[MeasuredResult],
    books: _Books,
    start: Ints,
    stop: Ints,
    base: Ints,
    at: Ints,
    first: Ints,
    owner: Ints,
    steps: list[int],
) -> dict[str, Ints]:
    count = len(at)
    last = stop[first[1:] - 1] if len(stop) else np.zeros(count, np.int64)
    filled = first[1:] > first[:-1]
    orphans = _sums(books.orphans[stop] - books.orphans[start], first)
    unanswered = _sums(books.unanswered[stop] - books.unanswered[start], first)
    unanswered += np.where(filled, books.opened[last] if len(stop) else 0, 0)
    # Right where every run begins with no call open, in the pass over the recording and in the context alike.
    odd = books.opened[start] > 0
    follows = np.zeros(len(start), bool)
    follows[1:] = (owner[1:] == owner[:-1]) & (books.opened[stop[:-1]] > 0)
    odd |= follows
    places = np.concatenate([[0], np.cumsum(steps)])
    for where in np.unique(owner[odd]):
        cell = cells[int(np.searchsorted(places, where, side="right")) - 1]
        orphans[where], unanswered[where] = calls_and_results(
            _sent(
                cell,
                start[first[where] : first[where + 1]] - base[where],
                stop[first[where] : first[where + 1]] - base[where],
            )
        )
    recorded = books.recorded[start]
    before, behind = np.flatnonzero(recorded)[:-1], np.flatnonzero(recorded)[1:]
    back = behind[(owner[before] == owner[behind]) & (start[behind] < stop[before])]
    systems = _sums(np.where(recorded, books.systems[stop] - books.systems[start], 0), first)
    spoken = np.where(books.spoken[start] < stop, np.arange(len(start)), NONE)
    opening = np.full(count, NONE)
    if len(start):
        opening[filled] = np.minimum.reduceat(spoken, first[:-1][filled])
    empty = opening == NONE
    user_first = np.ones(count, bool)
    user_first[~empty] = books.is_user[books.spoken[start[opening[~empty]]]]
    return {
        "orphan_results": orphans,
        "unanswered_calls": unanswered,
        "misordered": np.bincount(owner[back], minlength=count),
        "blank_messages": _sums(books.blank[stop] - books.blank[start], first),
        "dropped_system": np.maximum(books.systems[base + at] - books.systems[base] - systems, 0),
        "no_user": (_sums(books.users[stop] - books.users[start], first) == 0).astype(np.int64),
        "not_user_first": (~user_first).astype(np.int64),
        "empty": empty.astype(np.int64),
    }


def _sent(cell: MeasuredResult, starts: Ints, stops: Ints) -> Iterable[Message]:
    size = len(cell.recording)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield from cell.recording[start:stop] if start < size else cell.written[start - size : stop - size]


@dataclass(frozen=True, slots=True)
class _Books:
    """Running totals over the numbered messages of all cells; each cell has one place more than it has messages.

    A total at a place is of the cell's messages before it.
    """

    base: Ints
    """Where each cell's numbering starts."""
    tokens: Ints
    orphans: Ints
    unanswered: Ints
    opened: Ints
    """How many calls are open before each message."""
    blank: Ints
    systems: Ints
    users: Ints
    is_user: NDArray[np.bool_]
    recorded: NDArray[np.bool_]
    spoken: Ints
    """The next message, here or later, that is not the system's; NONE if there is none."""

    @classmethod
    def of(cls, cells: Sequence[MeasuredResult]) -> _Books:
        sizes = [len(cell.recording) + len(cell.written) + 1 for cell in cells]
        base = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = list(chain.from_iterable((*cell.recording, *cell.written, None) for cell in cells))
        roles = np.array([message.role if message is not None else "" for message in flat])
        is_system, is_user = roles == "system", roles == "user"
        ends = base[:-1] + np.array([len(cell.recording) for cell in cells], np.int64)
        places = np.where(is_system | (roles == ""), NONE, np.arange(len(flat)))
        spoken = np.minimum.accumulate(places[::-1])[::-1] if len(flat) else places
        passes = [_pass(cell) for cell in cells]
        return cls(
            base=base[:-1],
            tokens=_all(each[0] for each in passes),
            orphans=_all(each[1] for each in passes),
            unanswered=_all(each[2] for each in passes),
            opened=_all(each[3] for each in passes),
            blank=_all(each[4] for each in passes),
            systems=_running(is_system),
            users=_running(is_user),
            is_user=is_user,
            recorded=np.arange(len(flat)) < np.repeat(ends, sizes),
            spoken=spoken,
        )


def _pass(cell: MeasuredResult) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Totals over a cell's messages: tokens, orphan results, unanswered calls, open calls at each place, blank ones.

    A written message is judged on its own: whatever stands before it in a context is not what stands before it here.
    """
    structure, end = cell.structure, len(cell.recording)
    tokens = cell.ledger.running(end)
    orphans, unanswered = structure.orphans[: end + 1], structure.unanswered[: end + 1]
    opened, blank = [len(state) for state in structure.opened[: end + 1]], structure.blank[: end + 1]
    for message in cell.written:
        state, orphan, _ = step((), message)
        tokens.append(tokens[-1] + cell.ledger.tokens(message))
        orphans.append(orphans[-1] + orphan)
        unanswered.append(unanswered[-1])
        opened.append(len(state))
        blank.append(blank[-1] + is_blank(message))
    return tokens, orphans, unanswered, opened, blank


def _all(parts: Iterable[Sequence[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(parts), np.int64)


def _running(flags: Sequence[bool] | NDArray[np.bool_]) -> Ints:
    """How many are set before each place."""
    found = np.asarray(flags, np.int64)
    return np.cumsum(found) - found


def _sums(values: Ints, first: Ints) -> Ints:
    """The sum over each step's runs, which are values[first[i]:first[i + 1]]."""
    running = np.concatenate([[0], np.cumsum(values)])
    made: Ints = running[first[1:]] - running[first[:-1]]
    return made


def _offsets(chosen: NDArray[np.bool_], owner: Ints, count: int) -> Ints:
    """Where each step's list starts, and the end of the last, when only the chosen runs are listed."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner[chosen], minlength=count))])
