"""Columns of the step table from the context log: token sums and faults are subtractions in running totals.

A context is a list of runs [start, stop) over one numbering of messages: the recording's, then those that the strategy
wrote. Many results are measured at once, as NumPy arrays over all their runs. The tests compare the outcome with a
plain reading of each message.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message

from .structure import Structure, is_blank, step
from .tokens import PRIMING, Ledger
from .values import NOTHING, Ints, Lines

NONE = np.iinfo(np.int64).max


class RaggedArray(NamedTuple):
    """A column of lists: row i has values[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    values: Ints


_integers = partial(array, "q")  # which NumPy takes as they are


@dataclass(slots=True)
class Runs:
    """The contexts of one result, step by step: the runs of messages sent, and the prefix reused each time."""

    at: array[int] = field(default_factory=_integers)  # number of recorded messages before each step
    size: array[int] = field(default_factory=_integers)
    """Number of runs of each step. The runs themselves are in `start` and `stop`, all steps in one list."""
    start: array[int] = field(default_factory=_integers)
    stop: array[int] = field(default_factory=_integers)
    kept: array[int] = field(default_factory=_integers)
    """Leading messages shared with the step before; 0 if the tools differ, since they stand before all messages."""
    same_tools: array[int] = field(default_factory=_integers)  # 1 if the tools are those of the step before


@dataclass(frozen=True, slots=True)
class Stretches:
    """The steps at which each of some things is in the context, from `begin` on and before `end`.

    A thing has some stretches, which do not touch each other. All are ascending, by thing and then by step.
    """

    of: Ints
    begin: Ints
    end: Ints
    steps: int  # of the conversation

    def having(self, thing: Ints, place: Ints) -> Stretches:
        """Return when any of the places is there that has each thing, from pairs of a thing and such a place."""
        low, high = (np.searchsorted(self.of, place, side) for side in ("left", "right"))
        row, count = ranges(low, high)
        return _united(np.repeat(thing, count), self.begin[row], self.end[row], self.steps)

    def with_lines(self, written: Lines, at: int) -> Stretches:
        """Return the same, and when each different line is there of the texts that are numbered from `at` on, as last
        of all things. The lines are numbered behind them.
        """
        lines = self.having(written.line, at + written.text)
        of = np.append(self.of, at + len(written.texts) + lines.of)
        return Stretches(of, np.append(self.begin, lines.begin), np.append(self.end, lines.end), self.steps)

    def until(self, thing: Ints, step: Ints) -> Ints:
        """Return the step until which a thing stays, for each pair of a thing and a step; that step if it is absent."""
        # On one line on which the steps of each thing follow those of the one before.
        width = self.steps + 1
        found = np.searchsorted(self.of * width + self.begin, thing * width + step, "right")
        ends = np.concatenate([[-1], self.of * width + self.end])
        return np.maximum(ends[found] - thing * width, step)

    def within(self, owner: Ints, thing: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the stretches of each owner's things between the owner's `begin` and `end`: owners, begins, ends."""
        width = self.steps + 1
        low = np.searchsorted(self.of * width + self.end, thing * width + begin[owner], "right")
        high = np.searchsorted(self.of * width + self.begin, thing * width + end[owner], "left")
        row, count = ranges(low, high)
        owner = np.repeat(owner, count)
        return owner, np.maximum(self.begin[row], begin[owner]), np.minimum(self.end[row], end[owner])

    def count(self, counts_from: Ints) -> Ints:
        """Return for each step how many things are in the context, each counted from a step of its own on."""
        begin = np.maximum(self.begin, counts_from[self.of])
        is_counted = begin < self.end
        change = np.bincount(begin[is_counted], minlength=self.steps + 1)
        change -= np.bincount(self.end[is_counted], minlength=self.steps + 1)
        return np.cumsum(change[: self.steps])


def stretches(runs: Runs, size: int, written: Lines = NOTHING) -> Stretches:
    """Return when each message is sent, from the runs of each step, and when each line of what was written is.

    Things are the `size` recorded messages, the texts written, and their different lines, numbered in this order. The
    cost is that of what a step adds or drops, beside some operations on arrays for each run.
    """
    steps, count = len(runs.size), np.array(runs.size, np.int64)
    owner, start, stop = np.repeat(np.arange(steps), count), *(np.array(of, np.int64) for of in (runs.start, runs.stop))
    # Runs that the step before has as well, as many from its first one or its last one on, change nothing.
    first, before = np.cumsum(count) - count, np.concatenate([[0], count[:-1]])[owner]
    place = np.arange(len(owner)) - first[owner]
    begins, ends = np.ones((2, len(owner)), bool)
    for from_end in (False, True):
        other = np.arange(len(owner)) - (count[owner] if from_end else before)
        is_there = (place >= count[owner] - before) if from_end else (place < before)
        at = np.flatnonzero(is_there & begins)
        same = (start[at] == start[other[at]]) & (stop[at] == stop[other[at]]) & ends[other[at]]
        begins[at[same]], ends[other[at[same]]] = False, False
    # Between two such places of the numbering messages come to be in one run more, or less.
    gone = owner[ends] + 1
    step = np.concatenate([owner[begins], owner[begins], gone, gone])
    point = np.concatenate([start[begins], stop[begins], start[ends], stop[ends]])
    change = np.repeat([1, -1, -1, 1], [begins.sum(), begins.sum(), len(gone), len(gone)])
    order = np.argsort(step * (int(point.max(initial=0)) + 1) + point)
    step, point, change = step[order], point[order], np.cumsum(change[order])
    kept = np.flatnonzero(change[:-1])  # the changes of a step add up to 0
    message, length = ranges(point[kept], point[kept + 1])
    step, change = np.repeat(step[kept], length), np.repeat(change[kept], length)
    order = np.argsort(message * (steps + 1) + step)  # a step changes each message once
    message, step, change = message[order], step[order], change[order]
    times = np.cumsum(change)
    is_first, is_last = (times == change) & (times > 0), times == 0
    return Stretches(message[is_first], step[is_first], step[is_last], steps).with_lines(written, size)


def ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers from each low one on and before the high one, one range after the other, and how many each."""
    count = high - low
    return np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum()), count


def distinct(values: Ints) -> Ints:
    """Return the different values of some that are not negative, in order; `np.unique` takes ten times as long."""
    values = np.sort(values)
    return np.asarray(values[np.diff(values, prepend=-1) != 0])


def _united(of: Ints, begin: Ints, end: Ints, steps: int) -> Stretches:
    """Return stretches of which some of one thing may overlap as stretches that do not touch."""
    # On one line on which the steps of each thing follow those of the one before, begins and ends are sorted apart,
    # since numbers alone are sorted ten times faster. A stretch is a new one if as many end before it as begin.
    width = steps + 1
    begins, ends = np.sort(of * width + begin), np.sort(of * width + end)
    at = np.flatnonzero(np.concatenate([[True] * bool(len(of)), begins[1:] > ends[:-1]]))
    begins, ends = begins[at], ends[np.append(at[1:], len(of))[: len(at)] - 1]
    of = begins // width
    return Stretches(of, begins - of * width, ends - of * width, steps)


@dataclass(frozen=True, slots=True)
class MeasuredResult:
    """One conversation under one strategy, ready to be measured."""

    recording: Sequence[Message]
    written: Sequence[Message]
    ledger: Ledger
    structure: Structure
    runs: Runs
    tools: Sequence[int]  # tokens of the tool schemas at each step
    tools_full: int  # tokens of the recording's own tools
    budget: int | None


def measure(results: Sequence[MeasuredResult]) -> dict[str, Ints | RaggedArray]:
    """Return the columns of the step table for all steps of the results, in order.

    `tokens_*` count whole requests: messages, tool schemas and the priming of the reply. `tokens_kept` is the part of
    `tokens_sent` that any prefix cache could reuse at most: the tools and the shared leading messages, 0 at a result's
    first step.
    """
    totals, runs = _Totals.of(results), [result.runs for result in results]
    at, size, kept, same_tools = (
        _all(getattr(of, name) for of in runs) for name in ("at", "size", "kept", "same_tools")
    )
    steps, tools = [len(of.at) for of in runs], _all(result.tools for result in results)

    def each(values: Sequence[int] | Ints) -> Ints:
        """Return a value of each result for each of its steps."""
        return np.repeat(np.array(values, np.int64), steps)

    base = each(totals.base)
    # Runs of all steps stand in one array: those of step i from first[i] to first[i + 1], and `owner` is the step of
    # each. Places are shifted to the numbering of all results together, in which `_Totals` counts.
    first = np.concatenate([[0], np.cumsum(size)])
    owner = np.repeat(np.arange(len(size)), size)
    shift = base[owner]
    start, stop = (_all(getattr(of, name) for of in runs) + shift for name in ("start", "stop"))
    length = stop - start
    # Messages of the same step before each run. With lengths 3 2 | 4 of two steps that is 0 3 5 less 0 0 5, so 0 3 0;
    # with 4 and 1 messages kept, 3, 1 and 1 messages of these runs are reused.
    before = np.cumsum(length) - length
    # A step without runs at the end has its first one past the end: it is clipped, and then repeated 0 times.
    before -= np.repeat(before[first[:-1].clip(max=max(len(before) - 1, 0))], size) if len(before) else before
    reused = np.clip(kept[owner] - before, 0, length)  # messages of each run that are in the reused prefix

    def total(values: Ints) -> Ints:
        """Return the sum over each step's runs."""
        running = np.concatenate([[0], np.cumsum(values)])
        return np.asarray(running[first[1:]] - running[first[:-1]])

    def within(values: Ints) -> Ints:
        """Return what running totals rise by over the runs of each step."""
        return total(values[stop] - values[start])

    messages = within(totals.tokens)
    budgets = each([NONE if result.budget is None else result.budget for result in results])
    added = reused < length
    # Where each step's list of added runs starts, and the end of the last list.
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner[added], minlength=len(size)))])
    # Of a step without runs the end of its last run is another step's, which `filled` leaves out.
    filled, last = first[1:] > first[:-1], stop[first[1:] - 1] if len(stop) else np.zeros(len(at), np.int64)
    orphans = within(totals.orphans)
    unanswered = within(totals.unanswered) + np.where(filled, totals.opened[last] if len(stop) else 0, 0)
    # These differences are right where every run begins with no open call, both in the recording and in the context:
    # the run before it in the context may end with a call that is still open.
    odd = totals.opened[start] > 0
    odd[1:] |= (owner[1:] == owner[:-1]) & (totals.opened[stop[:-1]] > 0)
    places = np.concatenate([[0], np.cumsum(steps)])
    for where in np.unique(owner[odd]):
        result = results[int(np.searchsorted(places, where, side="right")) - 1]
        spans = (start[first[where] : first[where + 1]], stop[first[where] : first[where + 1]]) - base[where]
        orphans[where], unanswered[where] = result.structure.calls_and_results(spans.T.tolist(), result.written)
    recorded = totals.recorded[start]
    # Neighbours among the recorded runs: what the strategy wrote between them is in no order with the recording.
    behind = np.flatnonzero(recorded)
    back = behind[1:][(owner[behind[:-1]] == owner[behind[1:]]) & (start[behind[1:]] < stop[behind[:-1]])]
    systems = total(np.where(recorded, totals.systems[stop] - totals.systems[start], 0))
    # The number of each run that has a message that is not the system's. The next such message may be behind the run,
    # or in another result: hence the comparison with its end.
    spoken = np.where(totals.spoken[start] < stop, np.arange(len(start)), NONE)
    opening = np.full(len(at), NONE)
    if len(start):
        # `reduceat` gives an empty part the value of the next one, so steps without runs are left out of it.
        opening[filled] = np.minimum.reduceat(spoken, first[:-1][filled])
    empty = opening == NONE
    user_first = np.ones(len(at), bool)
    user_first[~empty] = totals.is_user[totals.spoken[start[opening[~empty]]]]
    return {
        "step": np.concatenate([np.arange(count) for count in steps]) if steps else np.zeros(0, np.int64),
        "at": at,
        "turn": totals.users[base + at] - totals.users[base],
        "kept": kept,
        "added_from": RaggedArray(offsets, (start - shift + reused)[added]),
        "added_to": RaggedArray(offsets, (stop - shift)[added]),
        "messages_sent": total(length),
        "tokens_full": totals.tokens[base + at] + each([result.tools_full for result in results]) + PRIMING,
        "tokens_sent": messages + tools + PRIMING,
        "tokens_kept": (total(totals.tokens[start + reused] - totals.tokens[start]) + tools) * same_tools,
        "over_budget": np.maximum(messages - budgets, 0),
        "orphan_results": orphans,
        "unanswered_calls": unanswered,
        "misordered": np.bincount(owner[back], minlength=len(at)),
        "blank_messages": within(totals.blank),
        "dropped_system": np.maximum(totals.systems[base + at] - totals.systems[base] - systems, 0),
        "no_user": (within(totals.users) == 0).astype(np.int64),
        "not_user_first": (~user_first).astype(np.int64),
        "empty": empty.astype(np.int64),
    }


@dataclass(frozen=True, slots=True)
class _Totals:
    """Running totals over the messages of all results, before each place; each result has one place more, its end."""

    base: Ints  # place where each result's numbering starts
    tokens: Ints
    orphans: Ints
    unanswered: Ints
    opened: Ints  # open calls before each message
    blank: Ints
    systems: Ints
    users: Ints
    is_user: NDArray[np.bool_]
    recorded: NDArray[np.bool_]
    spoken: Ints  # place of the next message, here or later, that is not a system message; NONE if there is none

    @classmethod
    def of(cls, results: Sequence[MeasuredResult]) -> _Totals:
        sizes = [len(result.recording) + len(result.written) + 1 for result in results]
        base = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        # None holds the place behind the last message of each result, where its totals end.
        flat = list(chain.from_iterable((*result.recording, *result.written, None) for result in results))
        roles = np.array([message.role if message is not None else "" for message in flat])
        is_system, is_user = roles == "system", roles == "user"
        ends = base[:-1] + np.array([len(result.recording) for result in results], np.int64)
        places = np.where(is_system | (roles == ""), NONE, np.arange(len(flat)))
        # From the end: the smallest place from here on is the next one.
        spoken = np.minimum.accumulate(places[::-1])[::-1] if len(flat) else places
        passes = [_pass(result) for result in results]
        tokens, orphans, unanswered, opened, blank = (_all(column[at] for column in passes) for at in range(5))
        # The flags set before each place.
        systems, users = (np.cumsum(flags) - flags for flags in (is_system.astype(np.int64), is_user.astype(np.int64)))
        recorded = np.arange(len(flat)) < np.repeat(ends, sizes)
        return cls(*(base[:-1], tokens, orphans, unanswered, opened, blank, systems, users), is_user, recorded, spoken)


def _pass(result: MeasuredResult) -> tuple[list[int], ...]:
    """Return running totals of tokens, orphans, unanswered and open calls, and blanks; written messages count alone."""
    structure, end = result.structure, len(result.recording)
    tokens = result.ledger.running(end)
    orphans, unanswered = structure.orphans[: end + 1], structure.unanswered[: end + 1]
    opened, blank = [len(state) for state in structure.opened[: end + 1]], structure.blank[: end + 1]
    for message in result.written:
        state, orphan, _ = step((), message)
        tokens.append(tokens[-1] + result.ledger.tokens(message))
        orphans.append(orphans[-1] + orphan)
        # Calls of a written message count as open, not as unanswered: the context decides whether results follow.
        unanswered.append(unanswered[-1])
        opened.append(len(state))
        blank.append(blank[-1] + is_blank(message))
    return tokens, orphans, unanswered, opened, blank


def _all(parts: Iterable[Sequence[int]]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])
