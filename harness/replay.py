"""replay(): show a strategy only the past, at every point where the recorded model was called."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..metrics.grounding import Demands, demands, said
from ..metrics.measure import Runs
from ..metrics.probes import PlacedProbe, asked
from ..metrics.structure import Structure
from ..metrics.survival import FollowedFact, facts_in, shown
from ..metrics.tokens import Ledger, TokenCounter
from ..scenarios.errors import UserError
from ..scenarios.model import Conversation, Fact, Message, Tool
from ..scenarios.view import Messages, Span, shared
from ..strategies import base
from ..strategies.base import Context, Misfit, Prompt, Strategy, View, described, returned
from ..strategies.events import Called, Event
from .models import OFFLINE, Embedded, Reply, Unusable


class Step(NamedTuple):
    """One model call: after `at` messages had been said, this context would have been sent."""

    at: int
    context: Context
    latency_ns: int
    """Wall-clock time that the strategy took, in nanoseconds, without models, embedders and counting the recording."""
    model_wait_ns: int = 0
    """Wall-clock time that it waited for models and embedders."""
    events: tuple[Event, ...] = ()


def replay(conversation: Conversation, strategy: Strategy, desk: RecordedContext) -> Iterator[Step]:
    """Show the strategy only the past, and keep what it would send.

    Before each recorded model call the strategy is given what had been said, never more. Everything that is measured
    of a step but its time is arithmetic over what was sent (`metrics.measure`): nothing is taken on the strategy's
    own word but the budget that it promises. Raises Misfit for what cannot be measured, and what the strategy raises.
    """
    return proceed(conversation, started(strategy, desk), desk)


def started(strategy: Strategy, desk: RecordedContext) -> View:
    """What the strategy opens a conversation with. Raises Misfit if that is no function, and what it raises."""
    desk.books.advance(len(desk.books.conversation.messages))
    view = strategy.start(desk)
    if not callable(view):
        raise Misfit(f"start returned {described(view)}, a function from Context to Context is wanted")
    return view


def proceed(conversation: Conversation, view: View, desk: RecordedContext, until: int | None = None) -> Iterator[Step]:
    """The steps of `replay`, for a view that is started already; those after `until` said messages left out."""
    for at in conversation.calls():
        if until is not None and at > until:
            return
        desk.turn_to(at)
        history = Context(Messages.prefix(conversation.messages, at), (), conversation.tools)
        context, spent = _timed(view, history)
        events, waited = desk.taken()
        for event in events:
            well_formed(event, Event)
        yield Step(at, checked(context, conversation), spent - waited, waited, events)


def well_formed(value: object, kind: Any) -> None:
    """Raise Misfit for a message, tool or event whose fields are not what they should be, or cannot be written."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except (TypeError, ValueError) as error:  # msgspec's own and lone surrogates among them
        raise Misfit(f"{described(value)} of the strategy is not well formed: {error}") from None


def _timed(view: Callable[[Context], Context], history: Context) -> tuple[Context, int]:
    began = perf_counter_ns()
    context = view(history)
    return context, perf_counter_ns() - began


def checked(found: object, conversation: Conversation) -> Context:
    """What a view returned, if it can be measured. What it sends of the recording is not looked at."""
    context = returned(found)
    if not isinstance(context.messages, Messages):
        raise Misfit(
            f"the messages of the Context are {described(context.messages)}: context.sending(messages) takes any list"
        )
    for store, start, stop in context.messages.spans:
        if not 0 <= start < stop <= len(store):
            raise Misfit(
                f"the messages of the Context have a stretch {start}:{stop} of {len(store)}: slice and add them"
            )
        if store is not conversation.messages and not all(isinstance(each, Message) for each in store[start:stop]):
            other = next(each for each in store[start:stop] if not isinstance(each, Message))
            raise Misfit(f"{described(other)} is among the messages of the Context, a Message is wanted")
    marks = context.marks
    if not isinstance(marks, tuple) or not all(type(mark) is int for mark in marks):
        raise Misfit(f"the marks of the Context are {repr(marks)[:80]}, a tuple of places (int) is wanted")
    if context.tools is not conversation.tools:
        if not isinstance(context.tools, tuple):
            raise Misfit(f"the tools of the Context are {described(context.tools)}, a tuple of Tools is wanted")
        recorded = set(map(id, conversation.tools))
        for tool in context.tools:
            if id(tool) not in recorded:
                if not isinstance(tool, Tool):
                    raise Misfit(f"{described(tool)} is among the tools of the Context, a Tool is wanted")
                well_formed(tool, Tool)
    return context


class ConversationIndex:
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
    def asked(self) -> list[PlacedProbe]:
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


class RecordedContext:
    """What one cell's strategy is given while a conversation is replayed (`strategies.base.Desk`)."""

    __slots__ = ("_events", "_models", "_waited", "books", "conversation", "ledger", "now", "structure", "tools")

    def __init__(self, books: ConversationIndex, models: Answering = OFFLINE) -> None:
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


NOTHING = Messages()


class ContextLog:
    """The log of one cell, as it is written: one conversation under one strategy."""

    __slots__ = (
        "_numbers",
        "_places",
        "_recording",
        "latency_ns",
        "events",
        "marks",
        "runs",
        "sent",
        "tools",
        "model_wait_ns",
        "written",
    )

    def __init__(self, recording: Sequence[Message]) -> None:
        self.runs = Runs()
        self.marks: list[tuple[int, ...]] = []
        self.tools: list[tuple[Tool, ...]] = []
        self.latency_ns: list[int] = []
        self.model_wait_ns: list[int] = []
        self.events: list[tuple[int, Event]] = []
        """What the strategy did, with the number of the step."""
        self.written: list[Message] = []
        """The messages that the strategy wrote, in the order they were first sent."""
        self._recording = recording
        self._numbers: dict[Message, int] = {}
        self._places: dict[int, int] | None = None
        self.sent = NOTHING
        """What was sent at the newest step."""

    def add(self, step: Step) -> None:
        """Enter the next step. Raises Misfit for a message that cannot be written, and marks where no message is."""
        recording, runs, sent = self._recording, self.runs, step.context.messages
        marks = step.context.marks
        if marks and not 0 <= min(marks) <= max(marks) < len(sent):
            raise Misfit(f"the marks of the Context are {marks}, and it has {len(sent)} messages, from 0")
        for span in sent.spans:
            if span.store is not recording:
                sent = self.settled(sent, step.at)
                break
        entries = 0
        for store, start, stop in sent.spans:
            if store is recording:
                runs.start.append(start)
                runs.stop.append(stop)
                entries += 1
                continue
            for message in store[start:stop]:
                number = self._numbers.setdefault(message, len(self.written))
                if number == len(self.written):
                    well_formed(message, Message)
                    self.written.append(message)
                runs.start.append(len(recording) + number)
                runs.stop.append(len(recording) + number + 1)
                entries += 1
        runs.at.append(step.at)
        runs.size.append(entries)
        same_tools = bool(self.tools) and step.context.tools == self.tools[-1]
        runs.same_tools.append(same_tools)
        runs.kept.append(shared(self.sent, sent) if same_tools else 0)
        self.marks.append(marks)
        self.tools.append(step.context.tools)
        self.events += [(len(self.latency_ns), event) for event in step.events]
        self.latency_ns.append(step.latency_ns)
        self.model_wait_ns.append(step.model_wait_ns)
        self.sent = sent

    def number(self, message: Message) -> int | None:
        """The number of a message among those that the strategy wrote; None if it has not sent it at a step."""
        return self._numbers.get(message)

    def settled(self, messages: Messages, said: int) -> Messages:
        """The same messages as stretches of the recording wherever they are its own, however they were passed on.

        Only the first `said` messages of the recording count: a strategy cannot send the future.
        """
        recording = self._recording
        if self._places is None:
            self._places = {id(message): at for at, message in enumerate(recording)}
        made: list[Span] = []
        for span in messages.spans:
            if span.store is recording:
                _join(made, span)
                continue
            for at in range(span.start, span.stop):
                place = self._places.get(id(span.store[at]), said)
                _join(made, Span(recording, place, place + 1) if place < said else Span(span.store, at, at + 1))
        return Messages(made)


def _join(spans: list[Span], more: Span) -> None:
    """Add a span, as part of the last one where it goes on from there."""
    if spans and spans[-1].store is more.store and spans[-1].stop == more.start:
        more = Span(more.store, spans.pop().start, more.stop)
    spans.append(more)


OURS = {Path(__file__).parent, Path(__file__).parent / "probing", Path(base.__file__).parent}
"""Where a sentence on what a strategy did is raised: a place there is not where it is to be mended."""


def why(error: Exception | SystemExit) -> str:
    """The reason; for what is wrong in code, with the place."""
    is_sentence = isinstance(error, UserError | Misfit)
    try:
        said = str(error)
    except Exception:  # a strategy's own exception may fail even there
        said = "(its text cannot be had)"
    text = said if is_sentence else f"{type(error).__name__}: {said}"
    frames = [] if isinstance(error, UserError) else traceback.extract_tb(error.__traceback__)
    frames = [each for each in frames if not is_sentence or Path(each.filename).parent not in OURS]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join((text + place).split()).encode(errors="replace").decode()
