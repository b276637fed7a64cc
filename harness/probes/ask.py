"""A question asked at its place: what a strategy would send for it. It leaves no trace in what the strategy does next.

Where the strategy is `copyable`, a copy of what it opened is asked, and is gone with the answer. Any other is started
anew for each question, and shown every recorded call up to its place: exact whatever it keeps, and as slow as that.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from ...metrics.probes import Placed, PlacedProbe
from ...metrics.tokens import TokenCounter
from ...scenarios.model import Message
from ...scenarios.view import Messages
from ...strategies.base import Context, ModelError, Prompt, Strategy, View
from ...strategies.bounds import EvidenceOnly
from ...strategies.events import Event
from ..models import Embedded, Reply
from ..replay import Answering, ConversationIndex, RecordedContext, checked, proceed, started, well_formed
from .fork import Copier

LEFT = 50_000
"""Objects that may be left of copies before they are collected: what refers to itself is not gone with the answer."""


class ProbeReply(NamedTuple):
    """What would be sent for a question, and what the strategy did for it, models called among it."""

    context: Context
    events: tuple[Event, ...]


class Asker(Protocol):
    """Asks one strategy in one conversation."""

    def ask(self, asked: PlacedProbe, question: Message) -> ProbeReply:
        """Ask. Raises what the strategy raises, and Misfit."""
        ...


class OfCopies:
    """Asks copies of a view, as it is at that moment."""

    def __init__(self, view: View, desk: RecordedContext, models: Answering) -> None:
        self._view, self._desk, self._models, self._copier = view, desk, models, Copier()

    def ask(self, asked: PlacedProbe, question: Message) -> ProbeReply:
        """Ask."""
        if gc.get_count()[0] > LEFT:
            gc.collect(0)  # nobody else does while a shard is worked on (`work.no_cycles`)
        desk = RecordedContext(self._desk.books, self._models)
        return put(self._copier.copied(self._view, {id(self._desk): desk}), desk, asked, question)


class OfReplays:
    """Starts the strategy anew for each question."""

    def __init__(self, strategy: Strategy, books: ConversationIndex, tape: ReplayedModels) -> None:
        self._strategy, self._books, self._tape = strategy, books, tape

    def ask(self, asked: PlacedProbe, question: Message) -> ProbeReply:
        """Ask."""
        desk = RecordedContext(self._books, Again(self._tape))
        view = started(self._strategy, desk)
        for _ in proceed(self._books.conversation, view, desk, until=asked.stop):
            pass
        return put(view, desk, asked, question)


class OfBound:
    """Asks a bound, which keeps nothing: the history alone counts, and for the ceiling what the probe rests on."""

    def __init__(self, bound: Strategy, books: ConversationIndex, models: Answering) -> None:
        self._bound, self._books, self._models = bound, books, models

    def ask(self, asked: PlacedProbe, question: Message) -> ProbeReply:
        """Ask."""
        bound = self._bound
        if isinstance(bound, EvidenceOnly):
            bound = EvidenceOnly(tuple(each.id for each in asked.evidence))
        desk = RecordedContext(self._books, self._models)
        return put(started(bound, desk), desk, asked, question)


def put(view: View, desk: RecordedContext, asked: PlacedProbe, question: Message) -> ProbeReply:
    """Put a question to a view that has been shown what came before it."""
    conversation, probe = desk.books.conversation, asked.probe
    desk.taken()
    desk.now = probe.time if probe.time is not None else conversation.messages[asked.stop - 1].time
    history = Messages.prefix(conversation.messages, asked.stop) + Messages.of((question,))
    context = checked(view(Context(history, (), conversation.tools)), conversation)
    events, _ = desk.taken()
    for event in events:
        well_formed(event, Event)
    return ProbeReply(context, events)


def questions(asked: Sequence[PlacedProbe | Placed], taken: Collection[str]) -> list[Message]:
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


class ReplayedModels:
    """Models (`desk.Asked`) that remember what they answered."""

    def __init__(self, models: Answering) -> None:
        self.models = models
        self.kept: defaultdict[object, list[Any]] = defaultdict(list)

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply. Raises ModelError."""
        made: Reply = self._kept(prompt, lambda: self.models.complete(prompt, counter))
        return made

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """The vectors. Raises ModelError."""
        made: Embedded = self._kept((tuple(texts), query), lambda: self.models.embed(texts, query, counter))
        return made

    def _kept(self, asked: object, answer: Callable[[], object]) -> Any:
        try:
            found = answer()
        except ModelError as error:
            self.kept[asked].append(error)
            raise
        self.kept[asked].append(found)
        return found


class Again:
    """Models that answer as on the tape, as often as it has an answer, and then are asked."""

    def __init__(self, tape: ReplayedModels) -> None:
        self._tape, self._times = tape, Counter[object]()

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply. Raises ModelError."""
        made: Reply = self._again(prompt, lambda: self._tape.models.complete(prompt, counter))
        return made

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """The vectors. Raises ModelError."""
        made: Embedded = self._again((tuple(texts), query), lambda: self._tape.models.embed(texts, query, counter))
        return made

    def _again(self, asked: object, answer: Callable[[], object]) -> Any:
        time, kept = self._times[asked], self._tape.kept.get(asked, [])
        self._times[asked] += 1
        if time >= len(kept):
            return answer()
        if isinstance(kept[time], ModelError):
            raise kept[time]
        return kept[time]


FLOOR, CEILING = "last_turn", "evidence_only"
"""What bounds every strategy. Every run asks them its probes."""
