"""The desk that the harness gives a strategy: one conversation's token ledger and structure, models, clock, events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter_ns
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..metrics.grounding import Demands, demands, said
from ..metrics.ledger import Ledger
from ..metrics.probing import Asked, asked
from ..metrics.structure import Structure
from ..metrics.survival import FollowedFact, facts_in, shown
from ..metrics.tokens import TokenCounter
from ..scenarios.model import Conversation, Fact, Message, Tool
from ..scenarios.view import Messages
from ..strategies.base import Misfit, Prompt, described
from ..strategies.events import Called, Event
from .models import OFFLINE, Embedded, Reply, Unusable


class Books:
    """What is known of a conversation before any strategy, for all its cells: token sums, structure, demands, facts."""

    def __init__(self, conversation: Conversation, counter: TokenCounter) -> None:
        self.conversation, self.counter = conversation, counter
        self.ledger = Ledger(counter, conversation.messages)
        self.structure = Structure(conversation.messages)
        self._tools: tuple[tuple[Tool, ...], int] = ((), 0)
        self._facts_in: dict[str, tuple[FollowedFact, ...]] = {}
        self.facts: dict[str, tuple[Fact, ...]] = {}
        """What the recording states of each message, by its id."""
        for fact in conversation.facts:
            self.facts[fact.source] = (*self.facts.get(fact.source, ()), fact)

    def advance(self, at: int) -> None:
        """Enter what was said before message `at`, so that no strategy is timed for it."""
        self.ledger.advance(at)
        self.structure.advance(at)

    def tools(self, tools: tuple[Tool, ...]) -> int:
        """Tokens of the tool schemas of a request."""
        if tools is not self._tools[0]:
            self._tools = (tools, self.counter.tools(tools))
        return self._tools[1]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of the recorded messages."""
        return frozenset(self._said)

    @cached_property
    def asked(self) -> list[Asked]:
        """The conversation's probes, in the order in which they are asked."""
        return asked(self.conversation)

    @cached_property
    def demands(self) -> Demands:
        """What the recorded model used of what had been said, at each of its calls."""
        return demands(self.conversation)

    def facts_in(self, name: str) -> tuple[FollowedFact, ...]:
        """The facts in a recorded message, by its id; none if there is no such message."""
        if name not in self._facts_in:
            self._facts_in[name] = facts_in(self._said.get(name, ""))
        return self._facts_in[name]

    @cached_property
    def _said(self) -> dict[str, str]:
        return {message.id: said(message) for message in self.conversation.messages}


class Answering(Protocol):
    """Models as a desk asks them: those of a run, or what they answered before."""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """A reply. Raises ModelError."""
        ...

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """A unit vector a text. Raises ModelError."""
        ...


class RecordedDesk:
    """What one cell's strategy is given while a conversation is replayed (`strategies.base.Desk`)."""

    __slots__ = ("_events", "_models", "_waited", "books", "conversation", "ledger", "now", "structure", "tools")

    def __init__(self, books: Books, models: Answering = OFFLINE) -> None:
        self.books, self.ledger, self.structure = books, books.ledger, books.structure
        self.conversation = books.conversation.id
        self.now: float | None = None
        self.tools: dict[str, tuple[Tool, Callable[[str], str]]] = {}
        """What the strategy answers when the model calls it, by the tool's name."""
        self._models = models
        self._events: list[Event] = []
        self._waited = 0

    def turn_to(self, at: int) -> None:
        """Set the clock to the model call that was answered with message `at`."""
        messages = self.books.conversation.messages
        started = messages[at].call.started if messages[at].call is not None else None  # type: ignore[union-attr]
        self.now = started if started is not None else messages[at - 1].time

    def taken(self) -> tuple[tuple[Event, ...], int]:
        """The events since the last time, and the nanoseconds that models and embedders took."""
        events, waited = tuple(self._events), self._waited
        self._events, self._waited = [], 0
        return events, waited

    def record(self, event: Event) -> None:
        if not isinstance(event, Event):
            raise Misfit(f"desk.record was given {described(event)}, an event is wanted (ctxbench.strategies.events)")
        self._events.append(event)

    def complete(self, prompt: Prompt) -> str:
        if not isinstance(prompt, Prompt):
            raise Misfit(f"desk.complete was given {described(prompt)}, a Prompt is wanted (ctxbench.strategies.base)")
        began, count = perf_counter_ns(), self.books.counter.text
        try:
            reply = self._models.complete(prompt, self.books.counter)
            about = [part for message in prompt.about for part in self._recorded(message)]
            self._charge(reply, sum(map(count, about)), shown(about, prompt.material, count))
        except Unusable as error:
            self._charge(error.reply)
            raise
        finally:
            self._waited += perf_counter_ns() - began
        return reply.text

    def _recorded(self, message: Message) -> list[str]:
        """The texts of a message of the recording. An earlier summary is none: what it stands for was counted once."""
        return [] if message.id not in self.books.ids else [message.text, *(call.arguments for call in message.calls)]

    def _charge(self, reply: Reply, about: int = 0, shown: int = 0) -> None:
        used = (reply.input_tokens, reply.output_tokens, reply.cost)
        self.record(Called("summariser", reply.model, *used, about=about, shown=shown))

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        began = perf_counter_ns()
        try:
            found = self._models.embed(texts, query, self.books.counter)
        finally:
            self._waited += perf_counter_ns() - began
        if found.called is not None:
            self.record(found.called)
        return found.vectors

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        self.tools[tool.name] = (tool, answer)

    def facts(self, message: Message) -> tuple[Fact, ...] | None:
        return self.books.facts.get(message.id, ()) if self.books.facts else None

    def text_tokens(self, text: str) -> int:
        return self.books.counter.text(text)

    def tokens(self, message: Message) -> int:
        return self.ledger.tokens(message)

    def total(self, messages: Messages) -> int:
        return self.ledger.total(messages)

    def schemas(self, tools: tuple[Tool, ...]) -> int:
        return self.books.tools(tools)

    def fit(self, messages: Messages, budget: int) -> int:
        return self.ledger.fit(messages, budget)

    def systems(self, messages: Messages) -> Messages:
        return self.structure.systems(messages)

    def opening(self, messages: Messages, start: int) -> int | None:
        return self.structure.opening(messages, start)

    def whole(self, messages: Messages) -> Messages:
        return self.structure.whole(messages)
