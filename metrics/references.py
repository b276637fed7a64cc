"""Which earlier message each message refers to: what an agent goes back to, as recorded.

    call    an argument of a tool call, or an identifier, number, date or path of an answer, that a user or a tool said
            before (the demands of `grounding.py`): the latest of those messages
    quote   at least `QUOTED` words in a row that an earlier message has; the latest of those messages
    probe   the messages that a probe names as its evidence, when it is asked

Words that more than `OFTEN` earlier messages have in a row are a form, not a quote. System messages are never referred
to: they are always there. A message refers to another once, however often it repeats it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from ..scenarios.model import Conversation, Message
from .grounding import demands

QUOTED, OFTEN = 8, 2
Kind = Literal["call", "quote", "probe"]
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W_]+")


class Reference(NamedTuple):
    """Message `at` (or a probe asked after it) refers to message `to`, both by their places from 0."""

    at: int
    to: int
    kind: Kind


def references(conversation: Conversation) -> list[Reference]:
    """All references of a conversation, in the order of `at`; one a pair, a call before a quote before a probe."""
    found: dict[tuple[int, int], Reference] = {}
    for make in (_of_calls, _of_quotes, _of_probes):
        for reference in make(conversation):
            found.setdefault((reference.at, reference.to), reference)
    return sorted(found.values())


def _of_calls(conversation: Conversation) -> Iterator[Reference]:
    wanted = demands(conversation)
    calls, said_by = list(conversation.calls()), [message.role for message in conversation.messages]
    values, places = wanted.found >> 32, wanted.found & 0xFFFFFFFF
    for row, value in zip(wanted.row, wanted.value, strict=True):
        at = calls[wanted.step[row]]
        low, high = np.searchsorted(values, [value, value + 1])
        before = [int(to) for to in places[low:high] if to < at and said_by[to] in ("user", "tool")]
        if before:
            yield Reference(at, before[-1], "call")


def _of_quotes(conversation: Conversation) -> Iterator[Reference]:
    having: dict[int, list[int]] = defaultdict(list)
    for at, message in enumerate(conversation.messages):
        if message.role == "system":
            continue
        rows = _rows_of_words(message)
        if message.role != "tool":
            yield from (
                Reference(at, to, "quote")
                for to in sorted({having[row][-1] for row in rows if row in having and len(having[row]) <= OFTEN})
            )
        for row in rows:
            having[row].append(at)


def _rows_of_words(message: Message) -> set[int]:
    words = [word.lower() for word in _WORD.findall(message.text)]
    return {hash(tuple(words[at : at + QUOTED])) for at in range(len(words) - QUOTED + 1)}


def _of_probes(conversation: Conversation) -> Iterator[Reference]:
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    for probe in conversation.probes:
        at = place.get(probe.after, len(conversation.messages) - 1)
        for evidence in probe.evidence:
            to = place.get(evidence)
            if to is not None and to <= at and conversation.messages[to].role != "system":
                yield Reference(at, to, "probe")
