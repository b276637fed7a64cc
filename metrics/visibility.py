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
from typing import NamedTuple

import numpy as np

from ctxbench.scenarios.model import Conversation, Message

from .grounding import Demands, said
from .measure import Stretches
from .values import NOTHING, Ints, Lines, places

RECENT = 6  # messages after that of a value before which it does not count
_LONG, _DIGITS = 6, 3

_WORD = re.compile(r"[^\W_][\w./@:-]*+")


class GivenValues(NamedTuple):
    """The given values of one conversation."""

    first: Ints  # place of the message that gave each of them
    value: Ints  # a row for each message that has a value: its number, and the place of the message
    message: Ints
    find: Callable[[str], list[int]]  # tells which values a line has; several strategies write the same lines


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
    value, place = np.array(pairs, np.int64).reshape(-1, 2).T
    find = cache(lambda line: [numbers[word] for word in _values(line) if word in numbers])
    return GivenValues(np.array(first, np.int64), value, place, find)


def visible(given: GivenValues, at: Ints, size: int, sent: Stretches, written: Lines = NOTHING) -> tuple[Ints, Ints]:
    """Return for each step how many values count, and how many of them its context has.

    A step comes after `at` of the `size` recorded messages. `sent` tells when each is in the context.
    """
    value, line = places(given.find, written.different)
    message = np.append(given.message, size + len(written.texts) + line)
    has_value = sent.having(np.append(given.value, value), message)
    counts_from = np.searchsorted(at, given.first + RECENT, "right")
    return np.searchsorted(np.sort(counts_from), np.arange(len(at)), "right"), has_value.count(counts_from)


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


def _values(text: str) -> set[str]:
    found = (word.rstrip("./@:-") for word in _WORD.findall(text))
    return {word for word in found if len(word) >= _LONG or (len(word) >= _DIGITS and word.isdecimal())}
