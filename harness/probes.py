"""Ask a strategy the probes of a conversation at their places, without a trace in what it does next.

Where the strategy is `copyable`, its view is asked, and then put back into the state that it had before. Any other is
started anew for each question, and shown every recorded call up to its place: exact whatever it keeps, and as slow as
that. The invariant `a_question_leaves_no_trace` checks what `copyable` promises. Probes are written to a run, and read
back.
"""

from __future__ import annotations

import re
import types
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, count, repeat
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from ctxbench.metrics.probes import PlacedProbe, SentText, State, placed
from ctxbench.metrics.structure import Structure
from ctxbench.metrics.tokens import PRIMING, Ledger, TokenCounter
from ctxbench.scenarios.model import Conversation, Message, Probe, Tool
from ctxbench.scenarios.view import Messages, shared_prefix
from ctxbench.strategies.base import (
    Context,
    ModelError,
    Prompt,
    Strategy,
    StrategyTypeError,
    View,
    is_copyable,
)
from ctxbench.strategies.bounds import EvidenceOnly
from ctxbench.strategies.events import Archived, Deleted, Event, Moved, Recalled, Summarised
from ctxbench.strategies.parts.units import Dialogue

from .folder.run import QUESTION, NumberedMessages, Run
from .folder.schema import SCHEMAS
from .folder.store import table_of
from .models import Embedded, Reply
from .replay import (
    ContextLog,
    ConversationIndex,
    ModelCalls,
    RecordedContext,
    attempted,
    check_context,
    check_well_formed,
    replay_view,
    start_view,
)

T = TypeVar("T")
FLOOR, CEILING = "last_turn", "evidence_only"
"""Bounds of every strategy. Every run asks them its probes."""


class ProbeReply(NamedTuple):
    """The context that would be sent for a question, and the events on the way to it, model calls among them."""

    context: Context
    events: tuple[Event, ...]


Ask = Callable[[PlacedProbe, Message], ProbeReply]
"""Asks one strategy a question in one conversation. Raises what the strategy raises, and StrategyTypeError."""


def ask_here(view: View, services: RecordedContext) -> Ask:
    """Return how to ask a view at this moment. After each question it is as it was."""
    restore = checkpoint(view, services)

    def ask(placed: PlacedProbe, question: Message) -> ProbeReply:
        try:
            return put(view, services, placed, question)
        finally:
            services.drain()  # events of a question that failed
            restore()

    return ask


def ask_replays(strategy: Strategy, index: ConversationIndex, models: RememberedModels) -> Ask:
    """Return how to ask a strategy that is started anew for each question, and replayed up to it."""

    return lambda placed, question: replayed(strategy, index, models.again(), placed, question)[1]


def replayed(
    strategy: Strategy, index: ConversationIndex, models: ModelCalls, placed: PlacedProbe, question: Message
) -> tuple[RecordedContext, ProbeReply]:
    """Replay a conversation up to a probe and ask it. Return the services, which have the strategy's tools as well."""
    services = RecordedContext(index, models)
    view = start_view(strategy, services)
    for _ in replay_view(index.conversation, view, services, until=placed.stop):
        pass
    return services, put(view, services, placed, question)


def put(view: View, services: RecordedContext, placed: PlacedProbe, question: Message) -> ProbeReply:
    """Put a question to a view that has been shown what came before it."""
    conversation = services.index.conversation
    services.drain()
    services.move_to_question(placed.stop, placed.probe.time)
    history = Messages.prefix(conversation.messages, placed.stop) + Messages.of((question,))
    context = check_context(view(Context(history, (), conversation.tools)), conversation)
    events, _ = services.drain()
    for event in events:
        check_well_formed(event, Event)
    return ProbeReply(context, events)


def questions(probes: Sequence[PlacedProbe], ids: Collection[str]) -> list[Message]:
    """Return the message of each question, under an id that is not among `ids`, those of the recording."""
    messages: list[Message] = []
    seen = set(ids)
    for probe in probes:
        first = f"probe:{probe.probe.id}"
        others = (f"{first}#{again}" for again in count(2))
        name = next(name for name in chain([first], others) if name not in seen)
        seen.add(name)
        messages.append(Message(name, "user", probe.probe.question, time=probe.probe.time))
    return messages


class RememberedModels:
    """Models that repeat earlier replies, failures too: nobody pays twice, and both replays agree."""

    def __init__(self, models: ModelCalls, earlier: Mapping[object, Sequence[Any]] | None = None) -> None:
        """`earlier` has the replies that are repeated, in order; after them the models are called."""
        self._models = models
        self._to_come = {request: deque(replies) for request, replies in (earlier or {}).items()}
        self._replies: defaultdict[object, list[Any]] = defaultdict(list)

    def again(self) -> RememberedModels:
        """Return models that first repeat the replies so far."""
        return RememberedModels(self._models, self._replies)

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the model's reply. Raises ModelError."""
        return self._reply(prompt, lambda: self._models.complete(prompt, counter))

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the vectors. Raises ModelError."""
        return self._reply((tuple(texts), query), lambda: self._models.embed(texts, query, counter))

    def _reply(self, request: object, answer: Callable[[], T]) -> T:
        reply: T | ModelError
        if to_come := self._to_come.get(request):
            reply = to_come.popleft()
        else:
            try:
                reply = answer()
            except ModelError as error:
                reply = error
        self._replies[request].append(reply)
        if isinstance(reply, ModelError):
            raise reply
        return reply


def checkpoint(view: Callable[..., object], services: RecordedContext | None) -> Callable[[], None]:
    """Return a function that puts a view back into the state that it is in now, however often it is called.

    What the view holds is looked into: closures, objects, lists, dictionaries, sets and arrays. What cannot change is
    passed over: messages, texts, numbers, frozen sets, classes. A type with a method `checkpoint` of its own returns
    such a function for itself. Raises StrategyTypeError for what cannot be seen into: a lock, an iterator, a `partial`.
    """
    # The values are kept alive, so that no other gets an id of theirs.
    seen: dict[int, object] = {id(services): services}
    undo: list[Callable[[], object]] = []
    waiting: list[Any] = [view]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if _IS_SHARED[kind] or id(value) in seen:
            continue
        seen[id(value)] = value
        if hasattr(kind, "checkpoint"):
            undo.append(value.checkpoint())
        elif kind is types.FunctionType:
            waiting += value.__closure__ or ()
        elif kind is types.CellType:
            try:
                waiting.append(value.cell_contents)
                undo.append(partial(setattr, value, "cell_contents", waiting[-1]))
            except ValueError:  # a name that has no value yet
                undo.append(partial(_forget, _CELL, value))
        elif kind in (types.MethodType, types.BuiltinMethodType):
            waiting.append(value.__self__)
        elif kind is _Cached and not value.__wrapped__.__closure__:
            pass
        elif issubclass(kind, tuple):
            waiting += value
        elif issubclass(kind, list | array):
            undo.append(partial(value.__setitem__, slice(None), value[:]))
            waiting += _changeable(value)
        elif issubclass(kind, np.ndarray):
            undo.append(partial(value.__setitem__, ..., value.copy()))
        elif kind in _CONTAINERS:
            # An ordered dictionary takes ten times as long to copy as its items do.
            undo.append(partial(_refill, value, list(value.items()) if kind is OrderedDict else value.copy()))
            waiting += _changeable(value)
            waiting += _changeable(value.values()) if isinstance(value, dict) else ()
        else:
            for member in _slots(kind):  # type: ignore[arg-type]
                try:
                    attribute = member.__get__(value)
                    undo.append(partial(member.__set__, value, attribute))
                    if not _IS_SHARED[type(attribute)]:
                        waiting.append(attribute)
                except AttributeError:  # one that has no value yet
                    undo.append(partial(_forget, member, value))
            if kind.__dictoffset__:
                undo.append(partial(_refill, vars(value), dict(vars(value))))
                waiting += [attribute for attribute in vars(value).values() if not _IS_SHARED[type(attribute)]]

    def restore() -> None:
        for action in undo:
            action()

    return restore


class _Kinds(dict[type, bool]):
    """Map each type to whether its instances never change."""

    def __missing__(self, kind: type) -> bool:
        frozen = issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen
        self[kind] = frozen or issubclass(kind, _SHARED)
        return self[kind]


_SHARED = (
    *(int, float, complex, str, bytes, frozenset, type(None), range, slice, type, np.generic, np.dtype, Enum),
    *(types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, re.Pattern, Messages),
    *(Ledger, Structure, TokenCounter, ConversationIndex),
)
# A plain object has nothing that changes: it is a mark, which functions compare by identity with their module's.
_IS_SHARED = _Kinds({object: True})
_Cached = type(lru_cache(len))
_CELL = vars(types.CellType)["cell_contents"]
_CONTAINERS = {deque, set, dict, defaultdict, OrderedDict, Counter}


def _changeable(values: Iterable[Any]) -> Iterable[Any]:
    """Return the values that may change, or hold what may. There are many tuples: those are looked into together."""
    while not all(map(_IS_SHARED.__getitem__, kinds := set(map(type, values)))):
        if not all(issubclass(kind, tuple) for kind in kinds):
            values = [value for value in values if not _IS_SHARED[type(value)]]
            if not all(issubclass(kind, tuple) for kind in kinds if not _IS_SHARED[kind]):
                return values
        values = list(chain.from_iterable(values))
    return ()


@lru_cache(1 << 10)
def _slots(kind: type) -> tuple[types.MemberDescriptorType, ...]:
    """Return the slots of a type. Raises StrategyTypeError if its state is in more than slots and a dictionary."""
    try:
        object.__new__(kind)
    except TypeError:  # a type of C, whose state nobody sees
        what = f"an object of type {kind.__name__} cannot be looked into"
        raise StrategyTypeError(f"{what}: a strategy that holds one is not `copyable`") from None
    members = (member for base in kind.__mro__ for member in vars(base).values())
    return tuple(member for member in members if isinstance(member, types.MemberDescriptorType))


def _refill(value: Any, items: Any) -> None:
    value.clear()
    (value.extend if isinstance(value, deque) else value.update)(items)


def _forget(member: Any, owner: object) -> None:
    with suppress(AttributeError, ValueError):
        member.__delete__(owner)


ProbeRow = dict[str, Any]
"""The context sent for one probe, as what it adds to the context of the step before it: columns of the table `probes`
by name (`folder/data/columns.toml`). One that is not there is null."""


def ask_probes(index: ConversationIndex, strategy: Strategy, models: ModelCalls, log: ContextLog) -> list[ProbeRow]:
    """Replay a conversation into its log, and ask its probes on the way. Raises what the strategy raises."""
    # Started anew `layered` would take some 98 ms a probe (decision 22).
    remembered = None if is_copyable(strategy) else RememberedModels(models)
    services = RecordedContext(index, remembered or models)
    view = start_view(strategy, services)
    anew = None if remembered is None else ask_replays(strategy, index, remembered)
    probing = _ProbeRun(index, lambda: anew or ask_here(view, services), log)
    results = list(probing.after(-1))
    for number, step in enumerate(replay_view(index.conversation, view, services)):
        log.add(step)
        results += probing.after(number)
    return results


def ask_bounds(index: ConversationIndex, bound: Strategy, models: ModelCalls) -> list[ProbeRow]:
    """Ask a bound the probes of a conversation. It has no state: the history counts, for the ceiling the evidence."""

    services = RecordedContext(index, models)
    view, dialogue = start_view(bound, services), Dialogue(services)

    def ask(placed: PlacedProbe, question: Message) -> ProbeReply:
        if not isinstance(bound, EvidenceOnly):
            return put(view, services, placed, question)
        ceiling = EvidenceOnly(tuple(message.id for message in placed.evidence))
        return put(lambda context: ceiling.sent(context, dialogue, services), services, placed, question)

    probing = _ProbeRun(index, lambda: ask, ContextLog(index.conversation.messages))
    return [probing.result(probe, question, None, ask) for due in probing.due.values() for probe, question in due]


class _ProbeRun:
    """The probes of one conversation while they are asked."""

    def __init__(self, index: ConversationIndex, here: Callable[[], Ask], log: ContextLog) -> None:
        """Ask by what `here` returns between two steps."""
        self._index, self._here, self._log = index, here, log
        self._substitutions, self._events_seen = Substitutions(), 0
        self._places = {message.id: at for at, message in enumerate(index.conversation.messages)}
        self.due: dict[int, list[tuple[PlacedProbe, Message]]] = defaultdict(list)
        """Probes with their questions, by the step that they are asked after."""
        calls = list(index.conversation.calls())
        for probe, question in zip(index.asked, questions(index.asked, index.ids), strict=True):
            # With calls at 2, 5 and 9 a probe after 5 messages belongs to step 1: a call at its very place comes before
            # it, as in `replay_view`. One after 1 message belongs to -1, before the first step.
            self.due[bisect_right(calls, probe.stop) - 1].append((probe, question))

    def after(self, step: int) -> Iterator[ProbeRow]:
        """Ask the probes between a step and the next; -1 = before the first step."""
        if due := self.due.get(step):
            self._substitutions.follow(event for _, event in self._log.events[self._events_seen :])
            self._events_seen = len(self._log.events)
            ask = self._here()
            yield from [self.result(probe, question, step if step >= 0 else None, ask) for probe, question in due]

    def result(self, probe: PlacedProbe, question: Message, step: int | None, ask: Ask) -> ProbeRow:
        """Ask one probe after a step, if there is one. If the strategy raises, it loses this probe alone."""
        row = {
            "number": probe.number,
            "probe": probe.probe.id,
            "category": probe.probe.category,
            "answerable": probe.probe.answerable,
            "at": probe.stop,
            "step": step,
            "failed": "",
            "evidence": [message.id for message in probe.evidence],
        }
        sent = attempted(lambda: self._sent(probe, question, step, ask(probe, question)))
        return row | ({"failed": sent} if isinstance(sent, str) else sent)

    def _sent(self, probe: PlacedProbe, question: Message, step: int | None, reply: ProbeReply) -> ProbeRow:
        """Return the columns that are null where the probe failed."""
        index, context, log = self._index, reply.context, self._log
        recording, recorded_tools = index.conversation.messages, index.conversation.tools
        sent = log.as_recorded(context.messages, probe.stop)
        kept = 0 if step is None else shared_prefix(log.sent, sent)
        added: list[tuple[int, int]] = []
        # What was written for this probe alone is numbered -2, -3 …: no number of the log is below 0.
        written: dict[Message, int] = {}
        for store, start, stop in sent[kept:].spans:
            if store is recording:
                added.append((start, stop))
                continue
            for message in store[start:stop]:
                if message == question:
                    place = QUESTION
                elif (number := log.numbers.get(message)) is not None:
                    place = len(recording) + number
                else:
                    place = written.setdefault(message, QUESTION - 1 - len(written))
                added.append((place, place + 1))
        for message in written:
            check_well_formed(message, Message)
        # A copy: what this question recalls or archives must not count for the next one.
        substitutions = self._substitutions.copy()
        substitutions.follow(reply.events)
        what = SentText(sent, recording, index.ledger, question.id)
        # The messages that are not sent as recorded but can be loaded, with the key to load each.
        offers = any(tool not in recorded_tools for tool in context.tools)
        keys = {name: key if offers else "" for key, name in substitutions.archived.items()}
        keys.update((name, "") for name, tier in substitutions.held.items() if tier not in ("", FOCUS))
        places = self._places
        loadable = {name: key for name, key in keys.items() if name in places and not what.has(places[name])}
        stood_for = substitutions.stood_for(what.written)
        evidence = [what.retained(message, stood_for, loadable, index.counter.text) for message in probe.evidence]
        tokens = sum(message.tokens for message in evidence)
        middle = sum(message.tokens * message.place for message in evidence)
        full = index.ledger.upto(probe.stop) + index.ledger.tokens(question)
        return {
            "tools": None if context.tools == recorded_tools else _json(context.tools),
            "recalled": _recalled(reply.events),
            "kept": kept,
            "marks": context.marks,
            "tokens_full": PRIMING + index.tools(recorded_tools) + full,
            "tokens_sent": PRIMING + index.tools(context.tools) + what.tokens,
            "added_from": [start for start, _ in added],
            "added_to": [stop for _, stop in added],
            "written": _json(written),
            "written_tokens": list(map(index.ledger.tokens, written)),
            "events": _json(reply.events),
            "loadable": list(loadable),
            "loadable_by": list(loadable.values()),
            "evidence_state": [message.state for message in evidence],
            "evidence_share": [message.share for message in evidence],
            "evidence_tokens": tokens,
            # Where in the context the evidence is, its tokens together.
            "evidence_place": round(middle / tokens, 6) if tokens else None,
            "answer": what.says(probe, evidence),
        }


def _recalled(events: tuple[Event, ...]) -> tuple[str, ...] | None:
    """Return the recalled messages, best first, each once; those of equal scores in the order they were sent."""
    if not (recalls := [event for event in events if isinstance(event, Recalled)]):
        return None
    scored = (zip(event.scores or repeat(0.0), event.sources, strict=False) for event in recalls)
    best = sorted(chain.from_iterable(scored), key=lambda pair: -pair[0])
    return tuple(dict.fromkeys(name for _, name in best))


FOCUS = "focus"  # the tier that is sent: what leaves it is in one below


@dataclass(slots=True)
class Substitutions:
    """Texts that stand for messages which are not sent, from the events that a strategy has reported so far."""

    archived: dict[str, str] = field(default_factory=dict)
    """The messages in the archive, by what the model asks for them with."""
    held: dict[str, str] = field(default_factory=dict)  # the messages in a tier below what is sent, and in which
    summarised: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each summarised message, with the strategy and the level of the summary that stands for it now."""
    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    recalled: set[str] = field(default_factory=set)

    def copy(self) -> Substitutions:
        """Return a copy to go on from, without what was recalled: that holds for one call only."""
        return Substitutions(dict(self.archived), dict(self.held), dict(self.summarised), dict(self.texts))

    def follow(self, events: Iterable[Event]) -> None:
        """Take the next events into account."""
        for event in events:
            match event:
                case Summarised(replaced, summary, level, by):
                    self.summarised.update(dict.fromkeys(replaced, (by, level)))
                    self.texts[by, level] = summary
                case Recalled(sources):
                    self.recalled.update(sources)
                case Archived(message, uuid):
                    self.archived[uuid] = message
                case Deleted(uuids):
                    for uuid in uuids:
                        self.archived.pop(uuid, None)
                case Moved(sources, source, to):
                    self.held.update((name, to) for name in sources if source == FOCUS or name in self.held)
                case _:
                    pass

    def stood_for(self, written: Iterable[Message]) -> frozenset[str]:
        """Return the ids of the messages of which a summary, or a recalled text, is sent among the written ones."""
        texts = [message.text for message in written]
        sent = {who for who, text in self.texts.items() if any(text in text_sent for text_sent in texts)}
        by_summary = frozenset(name for name, who in self.summarised.items() if who in sent)
        return by_summary | self.recalled if texts else by_summary


def _json(values: Iterable[Any]) -> list[str]:
    return [msgspec.json.encode(value).decode() for value in values]


def table_of_probes(strategies: Mapping[str, Sequence[tuple[str, Sequence[ProbeRow]]]]) -> pa.Table:
    """Return the table of probes. `strategies` maps each strategy to its conversations with their probes."""
    rows = [
        row | {"conversation": name, "strategy": spec}
        for spec, conversations in strategies.items()
        for name, probes in conversations
        for row in probes
    ]
    return table_of("probes", {name: [row.get(name) for row in rows] for name in SCHEMAS["probes"].names})


class StoredProbe(NamedTuple):
    """One probe under one strategy, read from a run, with the context that would have been sent for it."""

    probe: Probe
    question: Message
    """The newest message of what the strategy was given. It is in the context as well, if the strategy sends it."""
    context: Context | None  # messages that would be sent; None if nothing was, for the reason in the column `failed`
    written: dict[Message, int]  # messages that the strategy wrote for this probe alone, with their tokens
    evidence: dict[str, State]  # state of each message that it rests on and that had been said
    events: tuple[Event, ...]
    row: ProbeRow  # the columns of the table `probes`


def asked_probes(run: Run, conversation: Conversation, strategy: str) -> Iterator[StoredProbe]:
    """Yield what a strategy, or a bound, was to send for each probe of a conversation, in the order they were asked."""
    if not conversation.probes:
        return
    ran = strategy in run.manifest.plan.strategies
    written = tuple(message for message, _ in run.written(conversation.id, strategy)) if ran else ()
    steps = list(run.contexts(conversation, strategy)) if ran else []
    order = placed(conversation)
    asked = questions(order, {message.id for message in conversation.messages})
    question_of = {probe.number: question for probe, question in zip(order, asked, strict=True)}
    with run.readable():
        for row in run.rows("probes", conversation.id, strategy):
            question = question_of[row["number"]]
            own = tuple(msgspec.json.decode(text, type=Message) for text in row["written"] or ())
            context = None
            if not row["failed"]:
                numbered = NumberedMessages(conversation.messages, written, (question, *own))
                before = steps[row["step"]][: row["kept"]] if row["step"] is not None else Messages()
                added = zip(row["added_from"], row["added_to"], strict=True)
                messages = before + Messages(numbered.span(*span) for span in added)
                tools = conversation.tools
                if row["tools"] is not None:
                    tools = tuple(msgspec.json.decode(text, type=Tool) for text in row["tools"])
                context = Context(messages, tuple(row["marks"]), tools)
            yield StoredProbe(
                conversation.probes[row["number"]],
                question,
                context,
                dict(zip(own, row["written_tokens"] or (), strict=True)),
                dict(zip(row["evidence"], row["evidence_state"] or (), strict=not row["failed"])),
                tuple(msgspec.json.decode(text, type=Event) for text in row["events"] or ()),
                row,
            )
