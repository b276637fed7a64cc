"""Ask a strategy a probe at its place in the conversation, without a trace in what the strategy does next.

Where the strategy is `copyable`, a copy of its view answers, and is gone with the answer. Any other is started anew for
each question, and shown every recorded call up to its place: exact whatever it keeps, and as slow as that. The
invariant `a_question_leaves_no_trace` checks what `copyable` promises.
"""

from __future__ import annotations

import gc
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from enum import Enum
from functools import lru_cache
from itertools import chain, count
from operator import is_
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from ctxbench.metrics.probes import PlacedProbe
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, ModelError, Prompt, Strategy, StrategyTypeError, View, describe_type
from ctxbench.strategies.bounds import EvidenceOnly
from ctxbench.strategies.events import Event

from ..models import Embedded, Reply
from ..replay import (
    ConversationIndex,
    ModelCalls,
    RecordedContext,
    check_context,
    check_well_formed,
    replay_view,
    start_view,
)

T = TypeVar("T")
FLOOR, CEILING = "last_turn", "evidence_only"
"""Bounds of every strategy. Every run asks them its probes."""
LEFT = 50_000
"""Objects that may be left of copies before they are collected: what refers to itself is not gone with the answer."""


class ProbeReply(NamedTuple):
    """The context that would be sent for a question, and the events on the way to it, model calls among them."""

    context: Context
    events: tuple[Event, ...]


Ask = Callable[[PlacedProbe, Message], ProbeReply]
"""Asks one strategy a question in one conversation. Raises what the strategy raises, and StrategyTypeError."""


def ask_copies(view: View, services: RecordedContext, models: ModelCalls) -> Ask:
    """Return how to ask copies of a view, in the state that it is in at that moment."""

    fixed: dict[int, object] = {}

    def ask(placed: PlacedProbe, question: Message) -> ProbeReply:
        if gc.get_count()[0] > LEFT:
            gc.collect(0)  # nobody else does while a shard is worked on (`shard.no_cycles`)
        own = RecordedContext(services.index, models)
        return put(copied(view, {id(services): own}, fixed), own, placed, question)

    return ask


def ask_replays(strategy: Strategy, index: ConversationIndex, models: RememberedModels) -> Ask:
    """Return how to ask a strategy that is started anew for each question, and replayed up to it."""

    return lambda placed, question: replayed(strategy, index, models.again(), placed, question)[1]


def ask_bound(bound: Strategy, index: ConversationIndex, models: ModelCalls) -> Ask:
    """Return how to ask a bound, which has no state: only the history counts, and for the ceiling the evidence."""

    def ask(placed: PlacedProbe, question: Message) -> ProbeReply:
        is_ceiling = isinstance(bound, EvidenceOnly)
        asked = EvidenceOnly(tuple(message.id for message in placed.evidence)) if is_ceiling else bound
        services = RecordedContext(index, models)
        return put(start_view(asked, services), services, placed, question)

    return ask


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
    """Return the message of each question, under an id that no other message has; `ids` are those of the recording."""
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
    """Models whose replies are remembered, failures too: a strategy that is started anew gets the same ones.

    So nobody pays twice for a replay, and both replays agree.
    """

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


def copied(view: View, instead: Mapping[int, object], fixed: dict[int, object]) -> View:
    """Return a view that goes on as this one would, with a state of its own.

    Not `copy.deepcopy`: that shares closures, which is wrong, and copies messages, which is slow (decision 22). What
    cannot change is shared: messages, texts, numbers, frozen sets, classes, functions without a closure. A type with
    `__deepcopy__` copies itself. `instead` maps ids of objects to what the copy has in their place; `fixed` notes, from
    a copy to the next, the tuples that need none. Raises StrategyTypeError for what cannot be seen into: a lock, an
    iterator, a `partial`.
    """
    copied_view: View = _Copying(instead, fixed).of(view)
    return copied_view


class _Kinds(dict[type, bool]):
    """Map each type to whether its instances never change."""

    def __missing__(self, kind: type) -> bool:
        frozen = issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen
        self[kind] = frozen or issubclass(kind, _SHARED)
        return self[kind]


_SHARED = (
    *(int, float, complex, str, bytes, frozenset, type(None), range, slice, type, np.generic, np.dtype, Enum),
    *(types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, re.Pattern, Messages),
)
# A plain object has nothing that changes: it is a mark, which functions compare by identity with their module's.
_IS_SHARED = _Kinds({object: True})
_Cached = type(lru_cache(len))
_CONTAINERS = {list, deque, set, dict, defaultdict, OrderedDict, Counter}


class _Copying:
    """One copy. An object that is met twice is copied once."""

    def __init__(self, instead: Mapping[int, object], fixed: dict[int, object]) -> None:
        self._copies: dict[int, object] = dict(instead)
        self._fixed = fixed
        # The originals are kept alive, so that no other object gets an id of theirs.
        self._originals: list[object] = []

    def of(self, value: Any) -> Any:
        """Return the copy of a value, or the value itself if it cannot change."""
        kind, copies = type(value), self._copies
        if _IS_SHARED[kind]:
            return value
        if (earlier := copies.get(id(value))) is not None:
            return earlier
        if id(value) in self._fixed:
            return value
        self._originals.append(value)
        copied: Any
        if issubclass(kind, tuple):
            items = self._items(value)
            if all(map(is_, items, value)):
                self._fixed[id(value)] = value
                return value
            copied = tuple.__new__(kind, items)
        elif kind in _CONTAINERS:
            # Known before its items are copied: a list that holds itself, or whose items refer to it, ends here.
            copied = copies[id(value)] = copy(value)
            values = value.values() if isinstance(value, dict) else ()
            if not (_are_shared(value) and _are_shared(values)):
                items = self._items(value)
                copied.clear()
                if isinstance(value, dict):
                    copied.update(zip(items, self._items(values), strict=True))
                else:
                    (copied.update if kind is set else copied.extend)(items)
        elif kind is types.FunctionType:
            # Cells, not their contents: two functions that share a variable share it in the copy too.
            cells = tuple(map(self.of, value.__closure__ or ()))
            if not cells:
                return value
            name, defaults = value.__name__, value.__defaults__
            copied = types.FunctionType(value.__code__, value.__globals__, name, defaults, cells)
            copied.__kwdefaults__ = value.__kwdefaults__
        elif kind is types.CellType:
            copied = copies[id(value)] = types.CellType()
            try:
                contents = value.cell_contents
            except ValueError:  # a name that has no value yet
                return copied
            copied.cell_contents = self.of(contents)
        elif kind in (types.MethodType, types.BuiltinMethodType):
            if (owner := self.of(value.__self__)) is value.__self__:
                return value
            # A method by its function: a private or inherited one is no attribute of that name.
            is_own = kind is types.MethodType
            copied = types.MethodType(value.__func__, owner) if is_own else getattr(owner, value.__name__)
        elif kind is _Cached and self.of(value.__wrapped__) is not value.__wrapped__:
            raise _refused(value)
        elif hasattr(kind, "__deepcopy__"):
            copied = value.__deepcopy__({})
        else:
            return self._object(value, kind)
        copies[id(value)] = copied
        return copied

    def _items(self, values: Iterable[object]) -> list[object]:
        """Return the copies of values, most of which are shared: those need no call."""
        of, fixed, is_shared = self.of, self._fixed, _IS_SHARED
        return [value if is_shared[type(value)] or id(value) in fixed else of(value) for value in values]

    def _object(self, value: object, kind: type) -> object:
        # Not the class's own state: attributes, and slots under the names that they are stored by.
        state = object.__getstate__(value)
        is_plain = hasattr(value, "__dict__") or all("__slots__" in base.__dict__ for base in kind.__mro__[:-1])
        if state is None and not is_plain:
            raise _refused(value)  # a type of C, whose state nobody sees
        try:
            copied = self._copies[id(value)] = object.__new__(kind)
        except TypeError:
            raise _refused(value) from None
        for attributes in state if isinstance(state, tuple) else (state,):
            for name, attribute in (attributes or {}).items():
                # A frozen dataclass refuses setattr.
                object.__setattr__(copied, name, attribute if _IS_SHARED[type(attribute)] else self.of(attribute))
        return copied


def _refused(value: object) -> StrategyTypeError:
    return StrategyTypeError(f"{describe_type(value)} cannot be copied: a strategy that holds one is not `copyable`")


def _are_shared(values: Collection[object]) -> bool:
    return all(map(_IS_SHARED.__getitem__, set(map(type, values))))
