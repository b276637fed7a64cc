"""Columns of the step table from the context log: token sums and faults are subtractions in running totals.

A context is a list of runs [start, stop) over one numbering of messages: the recording's, then those that the strategy
wrote. Many results are measured at once, as NumPy arrays over all their runs. The tests compare the outcome with a
plain reading of each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message

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
    """The contexts of one result, step by step: the runs of messages sent, and the prefix reused each time."""

    at: list[int] = field(default_factory=list)  # number of recorded messages before each step
    size: list[int] = field(default_factory=list)
    """Number of runs of each step. The runs themselves are in `start` and `stop`, all steps in one list."""
    start: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    """Leading messages shared with the step before; 0 if the tools differ, since they stand before all messages."""
    same_tools: list[int] = field(default_factory=list)  # 1 if the tools are those of the step before


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
        size_of = len(result.recording)
        spans = (start[first[where] : first[where + 1]], stop[first[where] : first[where + 1]]) - base[where]
        sent = (
            result.recording[begin:end] if begin < size_of else result.written[begin - size_of : end - size_of]
            for begin, end in spans.T.tolist()
        )
        orphans[where], unanswered[where] = calls_and_results(chain.from_iterable(sent))
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
    return np.fromiter(chain.from_iterable(parts), np.int64)
