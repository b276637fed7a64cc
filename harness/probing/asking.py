"""A question asked at its place: what a strategy would send for it. It leaves no trace in what the strategy does next.

Where the strategy is `copyable`, a copy of what it opened is asked, and is gone with the answer. Any other is started
anew for each question, and shown every recorded call up to its place: exact whatever it keeps, and as slow as that.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from ...metrics.probing import Asked, Placed
from ...scenarios.model import Message
from ...scenarios.view import Messages
from ...strategies.base import Context, Strategy, View
from ...strategies.events import Event
from ...strategies.evidence_only import EvidenceOnly
from ..desk import Answering, Books, RecordedDesk
from ..replay import checked, proceed, started, well_formed
from .copying import Copier
from .tape import Again, Tape

LEFT = 50_000
"""Objects that may be left of copies before they are collected: what refers to itself is not gone with the answer."""


class Reply(NamedTuple):
    """What would be sent for a question, and what the strategy did for it, models called among it."""

    context: Context
    events: tuple[Event, ...]


class Asker(Protocol):
    """Asks one strategy in one conversation."""

    def ask(self, asked: Asked, question: Message) -> Reply:
        """Ask. Raises what the strategy raises, and Misfit."""
        ...


class OfCopies:
    """Asks copies of a view, as it is at that moment."""

    def __init__(self, view: View, desk: RecordedDesk, models: Answering) -> None:
        self._view, self._desk, self._models, self._copier = view, desk, models, Copier()

    def ask(self, asked: Asked, question: Message) -> Reply:
        """Ask."""
        if gc.get_count()[0] > LEFT:
            gc.collect(0)  # nobody else does while a shard is worked on (`work.no_cycles`)
        desk = RecordedDesk(self._desk.books, self._models)
        return put(self._copier.copied(self._view, {id(self._desk): desk}), desk, asked, question)


class OfReplays:
    """Starts the strategy anew for each question."""

    def __init__(self, strategy: Strategy, books: Books, tape: Tape) -> None:
        self._strategy, self._books, self._tape = strategy, books, tape

    def ask(self, asked: Asked, question: Message) -> Reply:
        """Ask."""
        desk = RecordedDesk(self._books, Again(self._tape))
        view = started(self._strategy, desk)
        for _ in proceed(self._books.conversation, view, desk, until=asked.stop):
            pass
        return put(view, desk, asked, question)


class OfBound:
    """Asks a bound, which keeps nothing: the history alone counts, and for the ceiling what the probe rests on."""

    def __init__(self, bound: Strategy, books: Books, models: Answering) -> None:
        self._bound, self._books, self._models = bound, books, models

    def ask(self, asked: Asked, question: Message) -> Reply:
        """Ask."""
        bound = self._bound
        if isinstance(bound, EvidenceOnly):
            bound = EvidenceOnly(tuple(each.id for each in asked.evidence))
        desk = RecordedDesk(self._books, self._models)
        return put(started(bound, desk), desk, asked, question)


def put(view: View, desk: RecordedDesk, asked: Asked, question: Message) -> Reply:
    """Put a question to a view that has been shown what came before it."""
    conversation, probe = desk.books.conversation, asked.probe
    desk.taken()
    desk.now = probe.time if probe.time is not None else conversation.messages[asked.stop - 1].time
    history = Messages.prefix(conversation.messages, asked.stop) + Messages.of((question,))
    context = checked(view(Context(history, (), conversation.tools)), conversation)
    events, _ = desk.taken()
    for event in events:
        well_formed(event, Event)
    return Reply(context, events)


def questions(asked: Sequence[Asked | Placed], taken: Collection[str]) -> list[Message]:
    """The message of each question, under an id that no other message has."""
    made: list[Message] = []
    seen = set(taken)
    for each in asked:
        name = first = f"probe:{each.probe.id}"
        again = 1
        while name in seen:
            again += 1
            name = f"{first}#{again}"
        seen.add(name)
        made.append(Message(name, "user", each.probe.question, time=each.probe.time))
    return made
