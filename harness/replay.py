"""replay(): show a strategy only the past, at every point where the recorded model was called."""

from __future__ import annotations

import sysconfig
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, cached_property
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.aftermath import Repeated, repeated
from ctxbench.metrics.constraints import Constraints, constraints
from ctxbench.metrics.grounding import Demands, demands, said
from ctxbench.metrics.measure import Runs
from ctxbench.metrics.probes import PlacedProbe, placed_probes
from ctxbench.metrics.structure import Structure
from ctxbench.metrics.survival import FollowedFact, FollowedFacts, facts_in, shown
from ctxbench.metrics.tokens import Ledger, TokenCounter
from ctxbench.metrics.values import Ints
from ctxbench.metrics.visibility import GivenValues, given_values
from ctxbench.scenarios.errors import Stopped, UserError
from ctxbench.scenarios.model import (
    Compaction,
    ContextEdit,
    Conversation,
    Fact,
    Message,
    PlacedCompaction,
    Tool,
    placed_compactions,
)
from ctxbench.scenarios.secrets import without_values
from ctxbench.scenarios.view import Messages, Span, joined, shared_prefix
from ctxbench.strategies import base
from ctxbench.strategies.base import Context, Prompt, Strategy, StrategyTypeError, View, describe_type, require_context
from ctxbench.strategies.events import Called, Event

from .models import OFFLINE, Embedded, Reply, Unusable

T = TypeVar("T")


class Step(NamedTuple):
    """One model call of a replay: the context that would have been sent after the first `at` recorded messages."""

    at: int
    context: Context
    latency_ns: int
    """Wall-clock time that the strategy took, in nanoseconds, without models, embedders and counting the recording."""
    model_wait_ns: int = 0  # wall-clock time that it waited for models and embedders
    events: tuple[Event, ...] = ()


def replay(conversation: Conversation, strategy: Strategy, services: RecordedContext) -> Iterator[Step]:
    """Replay a conversation through a strategy, and yield what it would send at each recorded model call.

    Before each call the strategy is shown the messages recorded until then, never more. All measurements but time are
    arithmetic over what was sent (`metrics.measure`); the budget is the only thing taken on the strategy's word. Raises
    StrategyTypeError for what cannot be measured, and whatever the strategy raises.
    """
    return replay_view(conversation, start_view(strategy, services), services)


def start_view(strategy: Strategy, services: RecordedContext) -> View:
    """Have the strategy open a conversation. Raises what it raises, and StrategyTypeError if it returns no function."""
    services.index.advance(len(services.index.conversation.messages))
    view = strategy.start(services)
    if not callable(view):
        raise StrategyTypeError(f"start returned {describe_type(view)}, a function from Context to Context is wanted")
    return view


def replay_view(
    conversation: Conversation, view: View, services: RecordedContext, until: int | None = None
) -> Iterator[Step]:
    """Yield the steps of `replay` for a view that is open already, up to the last call at or before message `until`."""
    checked: dict[int, Event] = {}  # by identity; the objects are kept, so that no other gets an identity of theirs
    for at in conversation.calls():
        if until is not None and at > until:
            return
        services.move_to(at)
        history = Context(Messages.prefix(conversation.messages, at), (), conversation.tools)
        began = perf_counter_ns()
        context = view(history)
        spent = perf_counter_ns() - began
        events, waited = services.drain()
        for event in events:
            # The facts that a turn recalls are the same at each of its calls, and so is the event that reports them.
            if id(event) not in checked:
                check_well_formed(event, Event)
        checked = {id(event): event for event in events}
        yield Step(at, check_context(context, conversation), spent - waited, waited, events)


_decoder = cache(msgspec.json.Decoder)  # made anew for each value, that of the events takes 17 times as long


def check_well_formed(value: object, kind: Any) -> None:
    """Raise StrategyTypeError for a message, tool or event with a field of a wrong type, or that JSON cannot hold."""
    try:
        # A Struct does not check its fields when it is made; only decoding does.
        _decoder(kind).decode(msgspec.json.encode(value))
    except (TypeError, ValueError) as error:  # msgspec's own and lone surrogates among them
        raise StrategyTypeError(f"{describe_type(value)} of the strategy is not well formed: {error}") from None


def check_context(value: object, conversation: Conversation) -> Context:
    """Return what a view returned. Raises StrategyTypeError if it cannot be measured. The recording is not checked."""
    context = require_context(value)
    messages, marks = context.messages, context.marks
    if not isinstance(messages, Messages):
        what = f"the messages of the Context are {describe_type(messages)}"
        raise StrategyTypeError(f"{what}: context.sending(messages) takes any list")
    for store, start, stop in messages.spans:
        if not 0 <= start < stop <= len(store):
            what = f"the messages of the Context have a span {start}:{stop} of {len(store)}"
            raise StrategyTypeError(f"{what}: slice and add them")
        # The recording's own spans are not looked at: a check of each
        # message at each step would cost the square of its length.
        for message in () if store is conversation.messages else store[start:stop]:
            if not isinstance(message, Message):
                what = f"{describe_type(message)} is among the messages of the Context"
                raise StrategyTypeError(f"{what}, a Message is wanted")
    # Not isinstance: a bool is an int, too.
    if not isinstance(marks, tuple) or not all(type(mark) is int for mark in marks):
        raise StrategyTypeError(f"the marks of the Context are {repr(marks)[:80]}, a tuple of places (int) is wanted")
    if marks and not 0 <= min(marks) <= max(marks) < len(messages):
        raise StrategyTypeError(f"the marks of the Context are {marks}, and it has {len(messages)} messages, from 0")
    if context.tools is not conversation.tools:
        if not isinstance(context.tools, tuple):
            raise StrategyTypeError(
                f"the tools of the Context are {describe_type(context.tools)}, a tuple of Tools is wanted"
            )
        recorded = set(map(id, conversation.tools))
        for tool in (tool for tool in context.tools if id(tool) not in recorded):
            if not isinstance(tool, Tool):
                raise StrategyTypeError(f"{describe_type(tool)} is among the tools of the Context, a Tool is wanted")
            check_well_formed(tool, Tool)
    return context


class ConversationIndex:
    """Facts of a conversation under any strategy: token sums, structure, constraints, demands, stated facts."""

    def __init__(self, conversation: Conversation, counter: TokenCounter) -> None:
        self.conversation, self.counter = conversation, counter
        self.ledger = Ledger(counter, conversation.messages)
        self.structure = Structure(conversation.messages)
        self._tools: tuple[tuple[Tool, ...], int] = ((), 0)
        self._stated: dict[str, tuple[FollowedFact, ...]] = {}
        self._followed = FollowedFacts({})
        self.measured: dict[bytes | None, tuple[Ints, dict[str, NDArray[Any]]]] = {}
        """Measures of the contexts that strategies sent, by the digest of these."""
        self.facts: dict[str, tuple[Fact, ...]] = {}
        """Facts that the recording states, by the id of their message."""
        for fact in conversation.facts:
            self.facts[fact.source] = (*self.facts.get(fact.source, ()), fact)

    def advance(self, at: int) -> None:
        """Index the messages before number `at` beforehand, so that no strategy is timed for it."""
        self.ledger.advance(at)
        self.structure.advance(at)

    def tools(self, tools: tuple[Tool, ...]) -> int:
        """Return the tokens of the tool schemas of a request."""
        # By identity: most strategies pass the recording's own tuple on at every step.
        if tools is not self._tools[0]:
            self._tools = (tools, self.counter.tools(tools))
        return self._tools[1]

    @cached_property
    def compactions(self) -> tuple[PlacedCompaction, ...]:
        """The compactions of the recorded agent, in order."""
        return placed_compactions(self.conversation)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of the recorded messages."""
        return frozenset(message.id for message in self.conversation.messages)

    @cached_property
    def asked(self) -> list[PlacedProbe]:
        """The conversation's probes, in the order in which they are asked."""
        return placed_probes(self.conversation)

    @cached_property
    def constraints(self) -> Constraints:
        """The standing rules of system and user, found once however many strategies are measured."""
        return constraints(self.conversation)

    @cached_property
    def demands(self) -> Demands:
        """Values that the recorded model used of what had been said, at each of its calls."""
        return demands(self.conversation)

    @cached_property
    def given(self) -> GivenValues:
        """Values that users and tools had given, to look for in every context."""
        return given_values(self.conversation.messages)

    @cached_property
    def repeated(self) -> list[Repeated]:
        """The recorded tool calls that were made again, and whose result could not have changed."""
        return [each for each in repeated(self.conversation) if not each.is_changed]

    @cached_property
    def calls(self) -> list[int]:
        """The places of the messages of which a call is recorded."""
        return [at for at, message in enumerate(self.conversation.messages) if message.call is not None]

    def followed(self, names: Set[str]) -> FollowedFacts:
        """Return the facts of the messages with these ids, and of those asked for before: they are followed through
        summaries. Each message is read once, however many strategies summarise it.
        """
        if new := (names & self.ids) - self._stated.keys():
            messages = [message for message in self.conversation.messages if message.id in new]
            self._stated |= {message.id: facts_in(said(message)) for message in messages}
            self._followed = FollowedFacts(self._stated)
        return self._followed


class ModelCalls(Protocol):
    """Models that a strategy may call: those of the run, or the replies they gave in an earlier replay."""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the model's reply. Raises ModelError."""

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return one unit vector per text. Raises ModelError."""


class RecordedContext:
    """The services of one strategy while a conversation is replayed (`strategies.base.StrategyContext`)."""

    def __init__(self, index: ConversationIndex, models: ModelCalls = OFFLINE) -> None:
        self.index, self.conversation = index, index.conversation.id
        ledger, structure = index.ledger, index.structure
        self.text_tokens, self.schemas = index.counter.text, index.tools
        self.tokens, self.total, self.fit = ledger.tokens, ledger.total, ledger.fit
        self.systems, self.opening, self.whole = structure.systems, structure.opening, structure.whole
        self.now: float | None = None
        self.tools: dict[str, tuple[Tool, Callable[[str], str]]] = {}
        """Each tool that the strategy offers, with the function that answers its calls, by name."""
        self._models = models
        self._events: list[Event] = []
        self._waited = 0
        # Recorded messages before this model call, and the edits of its prompt.
        self._at = 0
        self._edits: tuple[ContextEdit, ...] = ()

    def move_to(self, at: int) -> None:
        """Go to the model call that was answered with message `at`."""
        messages = self.index.conversation.messages
        call = messages[at].call
        self._at, self._edits = at, () if call is None else call.edits
        self.now = messages[at - 1].time if call is None or call.started is None else call.started

    def move_to_question(self, at: int, time: float | None) -> None:
        """Go to a question that is asked after `at` messages; without a time, at that of the last message."""
        messages, before = self.index.conversation.messages, bisect_left(self.index.calls, at)
        last_call = messages[self.index.calls[before - 1]].call if before else None
        self._at, self._edits = at, () if last_call is None else last_call.edits
        self.now = messages[at - 1].time if time is None else time

    def drain(self) -> tuple[tuple[Event, ...], int]:
        """Return the events since the last call of this, and the nanoseconds that models and embedders took."""
        events, waited = tuple(self._events), self._waited
        self._events, self._waited = [], 0
        return events, waited

    def record(self, event: Event) -> None:
        if not isinstance(event, Event):
            raise StrategyTypeError(
                f"services.record was given {describe_type(event)}, an event is wanted (ctxbench.strategies.events)"
            )
        self._events.append(event)

    def complete(self, prompt: Prompt) -> str:
        if not isinstance(prompt, Prompt):
            raise StrategyTypeError(
                f"services.complete was given {describe_type(prompt)}, a Prompt is wanted (ctxbench.strategies.base)"
            )
        began, count = perf_counter_ns(), self.index.counter.text
        try:
            reply = self._models.complete(prompt, self.index.counter)
            # A summary counts for nothing: the messages it stands for were counted once.
            recorded = [message for message in prompt.about if message.id in self.index.ids]
            about = [text for said in recorded for text in (said.text, *(call.arguments for call in said.calls))]
            self._charge(prompt, reply, sum(map(count, about)), shown(about, prompt.material, count))
        except Unusable as error:
            self._charge(prompt, error.reply, 0, 0)
            raise
        finally:
            self._waited += perf_counter_ns() - began
        return reply.text

    def _charge(self, prompt: Prompt, reply: Reply, about: int, shown: int) -> None:
        used = (reply.input_tokens, reply.output_tokens, reply.cost)
        self.record(Called("summariser", reply.model, *used, about=about, shown=shown, prompt=prompt.kind))

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        began = perf_counter_ns()
        try:
            embedded = self._models.embed(texts, query, self.index.counter)
        finally:
            self._waited += perf_counter_ns() - began
        if embedded.called is not None:
            self.record(embedded.called)
        return embedded.vectors

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        self.tools[tool.name] = (tool, answer)

    def facts(self, message: Message) -> tuple[Fact, ...] | None:
        return self.index.facts.get(message.id, ()) if self.index.facts else None

    def compactions(self) -> tuple[Compaction, ...]:
        return tuple(placed.compaction for placed in self.index.compactions if placed.after < self._at)

    def edits(self) -> tuple[ContextEdit, ...]:
        return self._edits


class ContextLog:
    """The context log of one conversation under one strategy, while it is written."""

    def __init__(self, recording: Sequence[Message]) -> None:
        self.runs = Runs()
        self.marks: list[tuple[int, ...]] = []
        self.tools: list[tuple[Tool, ...]] = []
        self.latency_ns: list[int] = []
        self.model_wait_ns: list[int] = []
        self.events: list[tuple[int, Event]] = []
        """The strategy's events, each with the number of its step."""
        self.written: list[Message] = []
        """The messages that the strategy wrote, in the order they were first sent."""
        self.numbers: dict[Message, int] = {}
        """Their places in that order."""
        self._recording = recording
        self._places: dict[int, int] | None = None
        self.sent = Messages()
        """The context of the newest step."""

    def add(self, step: Step) -> None:
        """Append a step. Raises StrategyTypeError for a message that JSON cannot hold."""
        recording, runs = self._recording, self.runs
        sent, tools = step.context.messages, step.context.tools
        # Only contexts with a foreign span are gone through message by message.
        for span in sent.spans:
            if span.store is not recording:
                sent = self.as_recorded(sent, step.at)
                break
        entries = len(runs.start)
        for store, start, stop in sent.spans:
            if store is recording:
                runs.start.append(start)
                runs.stop.append(stop)
                continue
            for message in store[start:stop]:
                # By value: a message that is made anew at each step, and says the same, is one message of the log.
                number = self.numbers.setdefault(message, len(self.written))
                if number == len(self.written):
                    check_well_formed(message, Message)
                    self.written.append(message)
                runs.start.append(len(recording) + number)
                runs.stop.append(len(recording) + number + 1)
        runs.at.append(step.at)
        runs.size.append(len(runs.start) - entries)
        same_tools = bool(self.tools) and tools == self.tools[-1]
        runs.same_tools.append(same_tools)
        # Providers put the tools first, so with other tools not even the first message follows the same prefix.
        runs.kept.append(shared_prefix(self.sent, sent) if same_tools else 0)
        self.marks.append(step.context.marks)
        self.tools.append(tools)
        self.events += [(len(self.latency_ns), event) for event in step.events]
        self.latency_ns.append(step.latency_ns)
        self.model_wait_ns.append(step.model_wait_ns)
        self.sent = sent

    def sends_as(self, other: ContextLog) -> bool:
        """Return whether both logs have the same contexts, marks and tools at each step."""
        return all(getattr(self, name) == getattr(other, name) for name in ("runs", "written", "marks", "tools"))

    def as_recorded(self, messages: Messages, count: int) -> Messages:
        """Return the same messages as spans of the recording wherever they are its own, however they were passed on.

        Only the first `count` messages of the recording are its own: a strategy cannot send the future.
        """
        recording = self._recording
        if self._places is None:
            self._places = {id(message): at for at, message in enumerate(recording)}
        spans: list[Span] = []
        for span in messages.spans:
            if span.store is recording:
                spans.append(span)
                continue
            for at in range(span.start, span.stop):
                # By identity, as two recorded messages may be equal. An id cannot be another object's while the
                # recording is alive.
                place = self._places.get(id(span.store[at]), count)
                spans.append(Span(recording, place, place + 1) if place < count else Span(span.store, at, at + 1))
        return joined(spans)


_HARNESS = Path(__file__).parent
OURS = {_HARNESS, _HARNESS / "engine", Path(base.__file__).parent}
"""Folders where errors about a strategy are raised: a traceback that ends here does not name the place to mend."""
_LIBRARIES = (str(_HARNESS.parent), "<frozen", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))


def attempted(action: Callable[[], T]) -> T | str:
    """Return what an action of a strategy returns, or, if it raises, why."""
    try:
        return action()
    except Stopped:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise, or exit, as it likes
        return failure_reason(error)


def failure_reason(error: Exception | SystemExit) -> str:
    """Return an error as one line; for a mistake in a strategy's code, with the file and line."""
    is_sentence = isinstance(error, UserError | StrategyTypeError)
    try:
        message = str(error)
    except Exception:  # a strategy's own exception may fail even there
        message = "(its text cannot be had)"
    text = message if is_sentence else f"{type(error).__name__}: {message}"
    frames = [] if isinstance(error, UserError) else traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if not is_sentence or Path(frame.filename).parent not in OURS]
    # The line to mend is the user's, not that of a library that it calls. A library's own strategy has no other.
    frames = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)] or frames
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join(without_values(text + place).split()).encode(errors="replace").decode()
