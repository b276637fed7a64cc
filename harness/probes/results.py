"""A probe of a stored run, with the context that would have been sent for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ...metrics.probes import State, placed
from ...scenarios.model import Conversation, Message, Probe, Tool
from ...scenarios.view import Messages, Span
from ...strategies.base import Context
from ...strategies.events import Event
from ..folder.run import Run
from .ask import questions

QUESTION = -1
"""The number of the question in a probe's context. What the strategy wrote for this probe alone has those below."""


class StoredProbe(NamedTuple):
    """One probe under one strategy."""

    number: int
    """In the conversation's list, from 0."""
    probe: Probe
    said: int
    """Recorded messages before it."""
    question: Message
    """The newest message of what the strategy was given. It is in the context as well, if the strategy sends it."""
    context: Context | None
    """What would be sent; None if nothing was, for the reason in `failed`."""
    failed: str
    step: int | None
    """The newest step at or before it."""
    kept: int
    """Messages that the context starts with as that step's does."""
    written: dict[Message, int]
    """What the strategy wrote for this probe alone, with its tokens."""
    evidence: dict[str, State]
    """Of each message that it rests on and that had been said."""
    loadable: dict[str, str]
    """What is in an archive or a lower tier, and what the model has to ask for; empty if it is offered no tool."""
    events: tuple[Event, ...]
    place: float | None
    """Where in what is sent the evidence is that is sent: 0 = at the start, 1 = at the end."""
    answer: bool | None
    """Whether an accepted answer is there; None if none had been said."""
    tokens_full: int
    tokens_sent: int
    tokens_evidence: int


def stored(
    row: dict[str, Any],
    conversation: Conversation,
    question: Message,
    steps: Sequence[Messages],
    written: tuple[Message, ...],
) -> StoredProbe:
    """A row of the table `probes`. `steps` are the contexts of the cell, `written` what the strategy wrote for them."""
    probe, failed = conversation.probes[row["number"]], bool(row["failed"])
    own = () if failed else tuple(msgspec.json.decode(each, type=Message) for each in row["written"])
    return StoredProbe(
        number=row["number"],
        probe=probe,
        said=row["at"],
        question=question,
        context=None if failed else _context(row, conversation, (question, *own), steps, written),
        failed=row["failed"],
        step=row["step"],
        kept=row["kept"] or 0,
        written=dict(zip(own, row["written_tokens"] or (), strict=True)),
        evidence=dict(zip(row["evidence"], row["evidence_state"] or (), strict=not failed)),
        loadable=dict(zip(row["loadable"] or (), row["loadable_by"] or (), strict=True)),
        events=tuple(msgspec.json.decode(each, type=Event) for each in row["events"] or ()),
        place=row["evidence_place"],
        answer=row["answer"],
        tokens_full=row["tokens_full"] or 0,
        tokens_sent=row["tokens_sent"] or 0,
        tokens_evidence=row["evidence_tokens"] or 0,
    )


def _context(
    row: dict[str, Any],
    conversation: Conversation,
    own: tuple[Message, ...],
    steps: Sequence[Messages],
    written: tuple[Message, ...],
) -> Context:
    """`own`: the question, then what was written for it alone."""
    recording, size = conversation.messages, len(conversation.messages)
    messages = steps[row["step"]][: row["kept"]] if row["step"] is not None else Messages()
    for start, stop in zip(row["added_from"], row["added_to"], strict=True):
        if start <= QUESTION:
            span = Span(own, QUESTION - start, QUESTION - start + 1)
        elif start < size:
            span = Span(recording, start, stop)
        else:
            span = Span(written, start - size, stop - size)
        messages = messages + Messages((span,))
    offered = row["tools"]
    tools = conversation.tools if offered is None else tuple(msgspec.json.decode(each, type=Tool) for each in offered)
    return Context(messages, tuple(row["marks"]), tools)


def asked_probes(run: Run, conversation: Conversation, strategy: str) -> Iterator[StoredProbe]:
    """Yield what a strategy, or a bound, was to send for each probe of a conversation, in the order they were asked."""
    ran = strategy in run.manifest["plan"]["strategies"]
    written = tuple(message for message, _ in run.written(conversation.id, strategy)) if ran else ()
    steps = list(run.contexts(conversation, strategy)) if ran else []
    order = placed(conversation)
    asked = questions(order, {message.id for message in conversation.messages})
    by_number = {probe.number: question for probe, question in zip(order, asked, strict=True)}
    with run.readable():
        for row in run.rows("probes", conversation.id, strategy):
            yield stored(row, conversation, by_number[row["number"]], steps, written)
