"""Kept values: how much of what users and tools had given is still visible in the context of each call.

A **given value** is a word, path, identifier or number of six characters, or of three digits, that a user or a tool
says first. It counts from the call on before which `RECENT` more messages stand, since all strategies send the newest.
It is visible if any message sent has it, whoever says it there.

Masking of tool results in OpenHands lowers this where grounding recall stays at 100 %: docs/validity.md has figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from ctxbench.scenarios.model import Conversation, Message

from .grounding import Demands, said
from .measure import Stretches
from .values import NOTHING, Ints, Lines, places

RECENT = 6  # messages after that of a value before which it does not count
_LONG, _DIGITS = 6, 3

_MARKS, _BEFORE = "./@:-", "_./@:-"  # which may stand in a word: what none ends with, and none begins with
_WORD = re.compile(rf"[^\W_][\w{_MARKS}]*+")
_BLANKS = {at: " " for at in range(128) if not (chr(at).isalnum() or chr(at) in _BEFORE)}


class GivenValues(NamedTuple):
    """The given values of one conversation."""

    first: Ints  # place of the message that gave each of them, ascending
    value: Ints  # a row for each message that has a value: its number, and the place of the message
    message: Ints
    find: Callable[[str], list[int]]  # tells which values a line has; several strategies write the same lines


def given_values(messages: Sequence[Message]) -> GivenValues:
    """Return the given values of a conversation, in one pass over its text."""
    numbers, first, values = _Numbers(), list[int](), list[set[int]]()
    for at, message in enumerate(messages):
        values.append(numbers.of(said(message)))
        first += [at] * (numbers.size - len(first))
    given_by = np.array([message.role in ("user", "tool") for message in messages], bool)
    first_at, sizes = np.array(first, np.int64), list(map(len, values))
    is_given = np.append(given_by[first_at], False)  # and -1, which is no value, is not
    value, place = np.fromiter(chain.from_iterable(values), np.int64), np.repeat(np.arange(len(values)), sizes)
    among, row = is_given[value], np.cumsum(is_given) - 1
    rows = {number: at for at, number in enumerate(np.flatnonzero(is_given).tolist())}
    find = cache(lambda line: [rows[number] for number in numbers.of(line) & rows.keys()])
    return GivenValues(first_at[is_given[:-1]], row[value[among]], place[among], find)


def counted(given: GivenValues, at: Ints) -> Ints:
    """Return how many values count at each step, which comes after `at` of the recorded messages."""
    return np.searchsorted(given.first + RECENT, at)


def visible(given: GivenValues, at: Ints, size: int, sent: Stretches, written: Lines = NOTHING) -> Ints:
    """Return how many of the values that count each step has in its context.

    A step comes after `at` of the `size` recorded messages. `sent` tells when each is in the context.
    """
    value, line = places(given.find, written.different)
    message = np.append(given.message, size + len(written.texts) + line)
    has_value = sent.having(np.append(given.value, value), message)
    return has_value.count(np.searchsorted(at, given.first + RECENT, "right"))


def used_results(conversation: Conversation, demands: Demands) -> list[list[int]]:
    """Return, by message, the places of the results that its tool calls use (the last with a value), newest first."""
    used: list[list[int]] = [[] for _ in conversation.messages]
    calls, is_call = list(conversation.calls()), np.array([of == "call" for of in demands.of], bool)
    of_call = is_call[demands.row]
    pairs = zip(demands.step[demands.row[of_call]].tolist(), demands.source[of_call].tolist(), strict=True)
    for step, source in sorted(set(pairs), reverse=True):
        if conversation.messages[source].role == "tool":
            used[calls[step]].append(source)
    return used


class _Numbers(dict[str, int]):
    """Numbers of values in the order in which they are first asked for, by words that have them; -1 = none."""

    size = 0

    def of(self, text: str) -> set[int]:
        """Return the numbers of the values of a text. Words of ASCII, as most have, are found in half of the time."""
        words = text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)
        return set(map(self.__getitem__, set(words)))

    def __missing__(self, word: str) -> int:
        value = word.lstrip(_BEFORE).rstrip(_MARKS)
        if value != word:
            number = self[value]
        elif len(value) >= _LONG or (len(value) >= _DIGITS and value.isdecimal()):
            number, self.size = self.size, self.size + 1
        else:
            number = -1
        self[word] = number
        return number
