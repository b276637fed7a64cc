"""Grounding recall: are the values that the recorded model used next still in the context that a strategy sends?

A **demand** is a value that the recorded answer of a model call repeats from an earlier message of a user or a tool:

- of a *call*: every leaf of its tool calls' arguments, as a whole or, if the whole does not stand there, the values in
  it (`values.py`). Its kind is the value's, or `text` for any other short string.
- of an *answer* (an assistant message without calls): its identifiers, numbers, dates and paths.

These are no demands: booleans and nulls, also as words; single characters and numbers of one digit; strings over
`LONGEST` characters, which are written and not looked up; values that the system prompt has first; and values that no
user and no tool gave, the agent's own. A number is looked for without its currency and unit, with and without its
thousands separators; all else verbatim, between word boundaries (`values.py`). JSON arguments are decoded, so their
escapes do not matter.

A demand is **retained** if any message sent has the value, in its text or in the arguments of its calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import Conversation, Message

from .language import is_name
from .measure import Stretches, distinct
from .values import NOTHING, Ints, Lines, Spellings, Value, exact_values, finder, places, spellings, values

LONGEST = 200  # characters of the longest argument that can be a demand

Of = Literal["call", "answer"]

_ANSWERED = frozenset(["identifier", "number", "date", "path"])
_TRIVIAL = frozenset(["true", "false", "null", "none", "yes", "no"])
# A value and a message in one number, so that one sorted array and one binary search serve both.
_STRIDE = 1 << 32
# Numbers stay as the model wrote them: 1.50 is not 1.5.
_decode = msgspec.json.Decoder(float_hook=str).decode


class _Wanted(NamedTuple):
    kind: str
    spellings: Spellings


class _Leaf(NamedTuple):
    """A repeated argument: wanted as a whole, or in parts where the whole was not said before."""

    whole: _Wanted | None
    parts: tuple[_Wanted, ...] = ()

    @property
    def all(self) -> tuple[_Wanted, ...]:
        return self.parts if self.whole is None else (self.whole, *self.parts)


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of one conversation. A row counts those of one step, source (`of`) and kind."""

    step: Ints  # number of the model call of each row, from 0; ascending
    of: list[Of]
    kind: list[str]
    values: Ints  # number of demands in each row; never 0
    size: int  # number of messages of the recording
    spellings: list[Spellings]  # the different values, each with its spellings
    row: Ints  # row of each demand
    value: Ints  # value of each demand
    source: Ints  # place of the message that last gave the value of each demand before the call: a user's or a tool's
    found: Ints  # occurrences of the values in the recording, as value · 2³² + message, ascending
    find: Callable[[str], set[int]]  # tells which values a line has; several strategies write the same lines


def demands(conversation: Conversation) -> Demands:
    """Return all demands of a conversation, in one pass over its text."""
    messages = conversation.messages
    leaves = [(step, at, leaf) for step, at in enumerate(conversation.calls()) for leaf in _leaves_of(messages[at])]
    numbers: dict[Spellings, int] = {}
    for _, _, leaf in leaves:
        for wanted in leaf.all:
            numbers.setdefault(wanted.spellings, len(numbers))
    find = finder(list(numbers))
    which, where = places(find, map(said, messages) if numbers else ())
    # Where a user or a tool first says each value: past the end if none does, or the system says it earlier.
    roles = np.array([message.role for message in messages], np.str_)[where]
    given = (roles == "user") | (roles == "tool")
    first, system = (np.full(len(numbers), len(messages)) for _ in range(2))
    for place, chosen in ((first, given), (system, roles == "system")):
        np.minimum.at(place, which[chosen], where[chosen])
    first[system < first] = len(messages)
    rows: dict[tuple[int, Of, str], int] = {}
    row_values: dict[tuple[int, int], int] = {}
    for step, at, leaf in leaves:
        of: Of = "call" if messages[at].calls else "answer"
        # Said before as a whole, its parts are not demanded again.
        whole = leaf.whole is not None and first[numbers[leaf.whole.spellings]] < at
        for kind, written in [leaf.whole] if whole and leaf.whole else leaf.parts:
            value = numbers[written]
            if first[value] < at:
                # A value counts once in a row, however often the call repeats it.
                row_values.setdefault((rows.setdefault((step, of, kind), len(rows)), value), at)
    pairs = np.array(list(row_values), np.int64).reshape(-1, 2)
    # Ascending by value, then by message. The entry before (value, call) is the last time that the value was given
    # before the call, and is of the same value, since `first` has shown that there is one.
    sources = which[given] * _STRIDE + where[given]
    calls = np.array(list(row_values.values()), np.int64)
    return Demands(
        step=np.array([step for step, _, _ in rows], np.int64),
        of=[of for _, of, _ in rows],
        kind=[kind for _, _, kind in rows],
        values=np.bincount(pairs[:, 0], minlength=len(rows)),
        size=len(messages),
        spellings=list(numbers),
        row=pairs[:, 0],
        value=pairs[:, 1],
        source=sources[np.searchsorted(sources, pairs[:, 1] * _STRIDE + calls) - 1] % _STRIDE if len(pairs) else calls,
        found=which * _STRIDE + where,
        find=cache(find),
    )


def retained(demands: Demands, sent: Stretches, written: Lines = NOTHING) -> NDArray[np.bool_]:
    """Return which demands are retained in the context of their step, from when everything is sent (`stretches`)."""
    value, place = demands.found >> 32, demands.found & _STRIDE - 1
    if len(demands.row):
        more, where = written.places(demands.find, demands.spellings)
        value, place = np.append(value, more), np.append(place, where + demands.size)
    step = demands.step[demands.row]
    return np.asarray(sent.having(value, place).until(demands.value, step) > step)


def by_row(demands: Demands, kept: NDArray[np.bool_]) -> Ints:
    """Return how many demands of each row are retained."""
    return np.bincount(demands.row[kept], minlength=len(demands.step))


def refetched(demands: Demands, kept: NDArray[np.bool_], tokens: Ints, steps: int) -> Ints:
    """Return for each of the steps the tokens of the messages that would have to be read again, each message once.

    They are the sources of the demands that are not retained. `tokens` are those of the recorded messages.
    """
    # Several demands of one step may have one source, which is read again once.
    step = demands.step[demands.row[~kept]]
    pairs = distinct(step * _STRIDE + demands.source[~kept])
    return np.bincount(pairs // _STRIDE, tokens[pairs % _STRIDE], steps).astype(np.int64)


def lines_of(messages: Iterable[Message]) -> Lines:
    """Return the lines of the texts and arguments that messages add to a context."""
    return Lines(map(said, messages))


def said(message: Message) -> str:
    """Return the text that a message adds to a context, and the arguments of its calls with the JSON decoded."""
    if not message.calls:
        return message.text
    return "\n".join([message.text, *(leaf for call in message.calls for leaf in _leaves(call.arguments))])


def named(message: Message) -> list[Spellings]:
    """Return the values that a message names: the arguments of its calls, as a whole where they are short, and their
    parts; or the identifiers, numbers, dates and paths of its text."""
    return list(dict.fromkeys(item.spellings for leaf in _leaves_of(message) for item in leaf.all))


def _leaves_of(message: Message) -> list[_Leaf]:
    if message.calls:
        return [_leaf(text) for call in message.calls for text in _leaves(call.arguments)]
    leaves = [_wanted(value) for value in exact_values(message.text) if value.kind in _ANSWERED]
    return [_Leaf(wanted) for wanted in leaves if wanted is not None]


@lru_cache(1 << 16)
def _leaf(text: str) -> _Leaf:
    text = text.strip()
    if not 1 < len(text) <= LONGEST or text.lower() in _TRIVIAL or not any(map(str.isalnum, text)):
        return _Leaf(None)
    text_values = values(text)
    if len(text_values) == 1 and text_values[0].text == text:
        return _Leaf(_wanted(text_values[0]))
    parts = tuple(wanted for value in text_values if (wanted := _wanted(value)) is not None)
    return _Leaf(_Wanted("name" if is_name(text) else "text", (text,)), parts)


def _wanted(value: Value) -> _Wanted | None:
    """Return the spellings to look for; None for a number of one digit."""
    forms = spellings(value)
    return _Wanted(value.kind, forms) if value.kind != "number" or len(forms[0]) > 1 else None


def _leaves(arguments: str) -> list[str]:
    """Return the leaf values of JSON text, as texts, without booleans and nulls. Text that is no JSON is one leaf."""
    try:
        # A stack and no recursion: arguments nest as deep as a model writes them. Reversed, leaves come in the order
        # written.
        stack = [_decode(arguments)]
    except (msgspec.DecodeError, RecursionError):
        return [arguments]
    leaves = []
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += reversed(value.values())
        elif isinstance(value, list):
            stack += reversed(value)
        elif value is not None and not isinstance(value, bool):
            leaves.append(str(value))
    return leaves


QUOTED, OFTEN = 8, 2

Kind = Literal["call", "quote", "probe"]

_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W_]+")


class Reference(NamedTuple):
    """Message `at` (or a probe asked after it) refers to message `to`, both by their places from 0."""

    at: int
    to: int
    kind: Kind


def references(conversation: Conversation) -> list[Reference]:
    """Return all references of a conversation in order of `at`, one per pair: a call before a quote before a probe.

        call    an argument of a tool call, or an identifier, number, date or path of an answer, that a user or a tool
                said before (the demands of this module): the latest of those messages
        quote   at least `QUOTED` words in a row that an earlier message has; the latest of those messages
        probe   the messages that a probe names as its evidence, when it is asked

    Words that more than `OFTEN` earlier messages have in a row are a form, not a quote. Nothing refers to system
    messages, which are always there. A message refers to another once, however often it repeats it.
    """
    wanted, calls = demands(conversation), list(conversation.calls())
    steps = wanted.step[wanted.row].tolist()
    found = [
        *(Reference(calls[step], to, "call") for step, to in zip(steps, wanted.source.tolist(), strict=True)),
        *_of_quotes(conversation),
        *_of_probes(conversation),
    ]
    # From the last kind on, so that of one pair the first kind stays.
    return sorted({reference[:2]: reference for reference in reversed(found)}.values())


def _of_quotes(conversation: Conversation) -> Iterator[Reference]:
    having: dict[int, list[int]] = defaultdict(list)
    for at, message in enumerate(conversation.messages):
        if message.role == "system":
            continue
        words = [word.lower() for word in _WORD.findall(message.text)]
        # Hashes stand for the words: they are compared within one conversation alone.
        rows = {hash(tuple(words[start : start + QUOTED])) for start in range(len(words) - QUOTED + 1)}
        if message.role != "tool":
            quoted = {having[row][-1] for row in rows if row in having and len(having[row]) <= OFTEN}
            yield from (Reference(at, to, "quote") for to in sorted(quoted))
        for row in rows:
            having[row].append(at)


def _of_probes(conversation: Conversation) -> Iterator[Reference]:
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    for probe in conversation.probes:
        at = place.get(probe.after, len(conversation.messages) - 1)
        for evidence in probe.evidence:
            to = place.get(evidence)
            if to is not None and to <= at and conversation.messages[to].role != "system":
                yield Reference(at, to, "probe")
