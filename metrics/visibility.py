"""Kept values: how much of what users and tools had given is still visible in the context of each call.

A **given value** is a word, path, identifier or number of six characters, or of three digits, that a user or a tool
says first. It counts from the call on before which `RECENT` more messages stand, since all strategies send the newest.
It is visible if any message sent has it, whoever says it there.

Masking of tool results in OpenHands lowers this where grounding recall stays at 100 %: docs/validity.md has figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Conversation, Message

from .grounding import NOTHING, Demands, said
from .measure import Ints, Runs
from .values import Lines

RECENT = 6  # messages after that of a value before which it does not count
_LONG, _DIGITS = 6, 3

_WORD = re.compile(r"[^\W_][\w./@:-]*+")


class GivenValues(NamedTuple):
    """The given values of one conversation."""

    numbers: dict[str, int]  # number of each value, in the order in which they were given
    first: Ints  # place of the message that gave each of them
    value: Ints  # a row for each message that has a value: its number, and the place of the message
    message: Ints


def given_values(messages: Sequence[Message]) -> GivenValues:
    """Return the given values of a conversation, in one pass over its text."""
    numbers, others, first = dict[str, int](), set[str](), list[int]()
    pairs = list[tuple[int, int]]()
    for at, message in enumerate(messages):
        words = _values(said(message))
        if message.role in ("user", "tool"):
            new = sorted(words - numbers.keys() - others)
            numbers.update(zip(new, range(len(first), len(first) + len(new)), strict=True))
            first += [at] * len(new)
        else:
            others |= words - numbers.keys()
        pairs += [(numbers[word], at) for word in words if word in numbers]
    return GivenValues(numbers, np.array(first, np.int64), *np.array(pairs, np.int64).reshape(-1, 2).T)


def visible(given: GivenValues, size: int, runs: Runs, written: Lines = NOTHING) -> tuple[Ints, Ints]:
    """Return for each step how many values count, and how many of them its context has.

    `runs` are the messages sent at each step, numbered over the `size` recorded ones and then over what was `written`.
    The cost is one pass over the messages for each step, and a sort of the stretches of steps with each message.
    """
    steps, at = len(runs.at), np.array(runs.at, np.int64)
    numbers = given.numbers
    more = [
        (numbers[word], at) for at, line in enumerate(written.different) for word in _values(line) if word in numbers
    ]
    among, places = written.of_texts(*np.array(more, np.int64).reshape(-1, 2).T)
    value, message = np.append(given.value, among), np.append(given.message, size + places)
    # For each value and message that has it the stretches of steps in which that message is sent.
    of, begin, end = _stretches(runs, size + len(written.texts))
    low, high = (np.searchsorted(of, message, side) for side in ("left", "right"))
    count = high - low
    rows = np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())
    owner = np.repeat(value, count)
    counts_from = np.searchsorted(at, given.first + RECENT, "right")
    start, stop = np.maximum(begin[rows], counts_from[owner]), end[rows]
    # Their union for each value: a stretch adds what is behind all that began before it. Shifted by the value, all
    # stretches stand one after the other on one line.
    order = np.lexsort((start, owner))
    shift = owner[order] * (steps + 1)
    start, stop = start[order] + shift, stop[order] + shift
    reach = np.maximum.accumulate(np.concatenate([[-1], stop]))[:-1]
    start = np.maximum(start, reach)
    is_new = stop > start
    change = np.bincount((start - shift)[is_new], minlength=steps + 1)
    change -= np.bincount((stop - shift)[is_new], minlength=steps + 1)
    return np.searchsorted(np.sort(counts_from), np.arange(steps), "right"), np.cumsum(change[:steps])


def used_results(conversation: Conversation, demands: Demands) -> list[list[int]]:
    """Return for each message the places of the tool results that its tool calls use, newest first.

    A call uses the result that last gave a value in its arguments.
    """
    used: list[list[int]] = [[] for _ in conversation.messages]
    calls, is_call = list(conversation.calls()), np.array([of == "call" for of in demands.of], bool)
    of_call = is_call[demands.row]
    pairs = zip(demands.step[demands.row[of_call]].tolist(), demands.source[of_call].tolist(), strict=True)
    for step, source in sorted(set(pairs), reverse=True):
        if conversation.messages[source].role == "tool":
            used[calls[step]].append(source)
    return used


def is_sent(runs: Runs, step: Ints, place: Ints) -> NDArray[np.bool_]:
    """Return for each pair of a step and a message's place whether that message is sent at it."""
    first = np.cumsum(runs.size) - runs.size
    start, stop = np.array(runs.start, np.int64), np.array(runs.stop, np.int64)
    found = (
        bool(((start[low:high] <= where) & (where < stop[low:high])).any())
        for low, high, where in zip(first[step], first[step] + np.array(runs.size)[step], place, strict=True)
    )
    return np.fromiter(found, bool, len(step))


def _stretches(runs: Runs, size: int) -> tuple[Ints, Ints, Ints]:
    """Return messages, each with a step from which and the step up to which it is sent, ascending by message."""
    before, now, since = np.zeros(size, bool), np.zeros(size, bool), np.zeros(size, np.int64)
    parts, end, run = list[tuple[Ints, Ints]](), list[int](), 0
    for step, count in enumerate((*runs.size, 0)):
        now[:] = False
        for start, stop in zip(runs.start[run : run + count], runs.stop[run : run + count], strict=True):
            now[start:stop] = True
        run += count
        changed = np.flatnonzero(now != before)
        gone = changed[before[changed]]
        parts.append((gone, since[gone]))
        end += [step] * len(gone)
        since[changed] = step
        before, now = now, before
    of, begin = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((begin, of))
    return of[order], begin[order], np.array(end, np.int64)[order]


def _values(text: str) -> set[str]:
    found = (word.rstrip("./@:-") for word in _WORD.findall(text))
    return {word for word in found if len(word) >= _LONG or (len(word) >= _DIGITS and word.isdecimal())}
