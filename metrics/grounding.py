"""Grounding retention: is what the recorded agent used next still in the context that a strategy would have sent?

A **demand** is a value that the recorded answer of a model call repeats from what a user or a tool had said before:

- of a *call*: every leaf of its tool calls' arguments, as a whole or, if the whole was not said before, the values in
  it (`values.py`). Its kind is the value's, or `text` for any other short string.
- of an *answer* (an assistant message without calls): its identifiers, numbers, dates and paths.

No demands are: booleans and nulls, also as words; single characters and numbers of one digit; strings over `LONGEST`
characters, which are written and not looked up; values that the system prompt said first, and those that no user and
no tool had said: the agent's own. A number is looked for without its currency and unit, as it is written and without
its thousands separators; all else verbatim, between word boundaries (`occurrences.py`). JSON arguments are read, so
their escapes do not matter.

A demand is **kept** if any message sent has the value, in its text or in the arguments of its calls.

    wanted = demands(conversation)                       # once a conversation
    kept = retained(wanted, runs, written)               # once a strategy: of each row, how many are kept
    wanted.step, wanted.of, wanted.kind, wanted.values   # the rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from ..scenarios.model import Conversation, Message
from .language import is_name
from .measure import Runs
from .values import Ints, Spellings, Value, exact_values, places, spellings, values

LONGEST = 200
"""Characters of the longest argument that can be a demand."""

Of = Literal["call", "answer"]

_ANSWERED = frozenset(["identifier", "number", "date", "path"])
_TRIVIAL = frozenset(["true", "false", "null", "none", "yes", "no"])
_STRIDE = 1 << 32
_PAIRS = 1 << 20
_decode = msgspec.json.Decoder(float_hook=str).decode


class _Wanted(NamedTuple):
    kind: str
    spellings: Spellings


class _Leaf(NamedTuple):
    """Something repeated: wanted as a whole, or where that was not said before, in parts."""

    whole: _Wanted | None
    parts: tuple[_Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of one conversation. A row counts those of one step, what they are of, and kind."""

    step: Ints
    """Of each row, the number of the model call, from 0; ascending."""
    of: list[Of]
    kind: list[str]
    values: Ints
    """Of each row, how many demands it counts; never 0."""
    size: int
    """Messages of the recording."""
    spellings: list[Spellings]
    """The different values."""
    row: Ints
    """Of each demand, its row."""
    value: Ints
    """Of each demand, its value."""
    found: Ints
    """Where the values are in the recording, as value · 2³² + message, ascending."""


def demands(conversation: Conversation) -> Demands:
    """All demands of a conversation. Costs one pass over its text."""
    messages = conversation.messages
    asked = [(step, at, leaf) for step, at in enumerate(conversation.calls()) for leaf in _asked(messages[at])]
    numbers: dict[Spellings, int] = {}
    for _, _, leaf in asked:
        for wanted in (leaf.whole, *leaf.parts) if leaf.whole else leaf.parts:
            numbers.setdefault(wanted.spellings, len(numbers))
    which, where = places(list(numbers), [said(message) for message in messages] if numbers else [])
    first = _first_said(messages, len(numbers), which, where)
    rows: dict[tuple[int, Of, str], int] = {}
    made: dict[tuple[int, int], None] = {}
    for step, at, leaf in asked:
        of: Of = "call" if messages[at].calls else "answer"
        whole = leaf.whole is not None and first[numbers[leaf.whole.spellings]] < at
        for kind, written in [leaf.whole] if whole and leaf.whole else leaf.parts:
            value = numbers[written]
            if first[value] < at:
                made.setdefault((rows.setdefault((step, of, kind), len(rows)), value))
    pairs = np.array(list(made), np.int64).reshape(-1, 2)
    return Demands(
        step=np.array([step for step, _, _ in rows], np.int64),
        of=[of for _, of, _ in rows],
        kind=[kind for _, _, kind in rows],
        values=np.bincount(pairs[:, 0], minlength=len(rows)),
        size=len(messages),
        spellings=list(numbers),
        row=pairs[:, 0],
        value=pairs[:, 1],
        found=which * _STRIDE + where,
    )


def retained(demands: Demands, runs: Runs, written: Sequence[Message] = ()) -> Ints:
    """How many demands of each row are kept in what was sent at their step.

    `runs` are the messages sent at each step, numbered over the recording and then over `written`. Costs a search for
    each pair of a demand and a run of its step, vectorised.
    """
    found = demands.found
    if not len(demands.row):
        return np.zeros(0, np.int64)
    if written:
        which, where = places(demands.spellings, [said(message) for message in written])
        found = np.sort(np.concatenate([found, which * _STRIDE + where + demands.size]))
    size, start, stop = (np.array(column, np.int64) for column in (runs.size, runs.start, runs.stop))
    first, step = np.cumsum(size) - size, demands.step[demands.row]
    count = size[step]
    pairs = np.concatenate([[0], np.cumsum(count)])
    kept = np.zeros(len(count), bool)
    low = 0
    while low < len(count):
        high = max(low + 1, int(np.searchsorted(pairs, pairs[low] + _PAIRS, side="right")) - 1)
        owner = np.repeat(np.arange(low, high), count[low:high])
        run = np.arange(pairs[low], pairs[high]) - pairs[owner] + first[step[owner]]
        base = demands.value[owner] * _STRIDE
        kept[owner[np.searchsorted(found, base + stop[run]) > np.searchsorted(found, base + start[run])]] = True
        low = high
    return np.bincount(demands.row[kept], minlength=len(demands.step))


def said(message: Message) -> str:
    """All that a message puts into a context: its text, and its calls' arguments with the JSON read."""
    if not message.calls:
        return message.text
    return "\n".join([message.text, *(leaf for call in message.calls for leaf in _leaves(call.arguments))])


def named(message: Message) -> list[Spellings]:
    """The values that a message of the user or the assistant names: the arguments of its calls, as a whole where they
    are short, and their parts; or the identifiers, numbers, dates and paths of its text."""
    leaves = _asked(message)
    wanted = [each for leaf in leaves for each in ((leaf.whole, *leaf.parts) if leaf.whole else leaf.parts)]
    return list(dict.fromkeys(each.spellings for each in wanted))


def _first_said(messages: Sequence[Message], count: int, which: Ints, where: Ints) -> Ints:
    """Where a user or a tool first says each value; past the end if none does, or if the system said it before."""
    never = len(messages)
    first, system = np.full(count, never), np.full(count, never)
    roles = np.array([message.role for message in messages], np.str_)[where]
    for place, chosen in ((first, (roles == "user") | (roles == "tool")), (system, roles == "system")):
        np.minimum.at(place, which[chosen], where[chosen])
    return np.where(system < first, never, first)


def _asked(message: Message) -> list[_Leaf]:
    if message.calls:
        return [_leaf(text) for call in message.calls for text in _leaves(call.arguments)]
    found = [_wanted(value) for value in exact_values(message.text) if value.kind in _ANSWERED]
    return [_Leaf(wanted) for wanted in found if wanted is not None]


@lru_cache(1 << 16)
def _leaf(text: str) -> _Leaf:
    text = text.strip()
    if not 1 < len(text) <= LONGEST or text.lower() in _TRIVIAL or not any(map(str.isalnum, text)):
        return _Leaf(None)
    found = values(text)
    if len(found) == 1 and found[0].text == text:
        return _Leaf(_wanted(found[0]))
    parts = tuple(wanted for value in found if (wanted := _wanted(value)) is not None)
    return _Leaf(_Wanted("name" if is_name(text) else "text", (text,)), parts)


def _wanted(value: Value) -> _Wanted | None:
    """What is looked for of a value; nothing if it is a number of one digit."""
    found = spellings(value)
    return _Wanted(value.kind, found) if value.kind != "number" or len(found[0]) > 1 else None


def _leaves(arguments: str) -> list[str]:
    """The leaf values of JSON text, as texts; booleans and nulls left out. Text that is no JSON is one leaf."""
    try:
        left = [_decode(arguments)]
    except (msgspec.DecodeError, RecursionError):
        return [arguments]
    made = []
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += reversed(value.values())
        elif isinstance(value, list):
            left += reversed(value)
        elif value is not None and not isinstance(value, bool):
            made.append(str(value))
    return made
