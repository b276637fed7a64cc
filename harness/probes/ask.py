"""Ask a strategy a probe at its place in the conversation, without a trace in what the strategy does next.

Where the strategy is `copyable`, a copy of its view answers, and is gone with the answer. Any other is started anew for
each question, and shown every recorded call up to its place: exact whatever it keeps, and as slow as that.

A view is a function or an object that keeps what it knows in closures and attributes. A copy has its own of everything
that can change, and shares what cannot: messages, texts, numbers, classes, functions without a closure whose arguments
have no default that can. The copier rejects what it cannot see into (a lock, a connection, an iterator). A type with
`__deepcopy__` copies itself. A strategy with a state that can be copied so declares `copyable`; the invariant
`a_question_leaves_no_trace` checks it.
"""

from __future__ import annotations

import gc
import re
import types
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from enum import Enum
from functools import _lru_cache_wrapper, cache, partial
from operator import attrgetter, is_, itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from ctxbench.metrics.probes import Placed, PlacedProbe
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
LEFT = 50_000
"""Objects that may be left of copies before they are collected: what refers to itself is not gone with the answer."""


class ProbeReply(NamedTuple):
    """The context that would be sent for a question, and the events on the way to it, model calls among them."""

    context: Context
    events: tuple[Event, ...]


class Asker(Protocol):
    """Asks one strategy questions in one conversation."""

    def ask(self, placed: PlacedProbe, question: Message) -> ProbeReply:
        """Ask a question. Raises what the strategy raises, and StrategyTypeError."""
        ...


class OfCopies:
    """Asks copies of a view, in the state that it is in at that moment."""

    def __init__(self, view: View, services: RecordedContext, models: ModelCalls) -> None:
        self._view, self._services, self._models, self._copier = view, services, models, Copier()

    def ask(self, placed: PlacedProbe, question: Message) -> ProbeReply:
        """Ask a copy of the view."""
        if gc.get_count()[0] > LEFT:
            gc.collect(0)  # nobody else does while a shard is worked on (`work.no_cycles`)
        services = RecordedContext(self._services.index, self._models)
        return put(self._copier.copied(self._view, {id(self._services): services}), services, placed, question)


class OfReplays:
    """Starts the strategy anew for each question, and replays the conversation up to it."""

    def __init__(self, strategy: Strategy, index: ConversationIndex, models: ReplayedModels) -> None:
        self._strategy, self._index, self._models = strategy, index, models

    def ask(self, placed: PlacedProbe, question: Message) -> ProbeReply:
        """Replay the conversation up to the question, and ask it."""
        services = RecordedContext(self._index, Again(self._models))
        view = start_view(self._strategy, services)
        for _ in replay_view(self._index.conversation, view, services, until=placed.stop):
            pass
        return put(view, services, placed, question)


class OfBound:
    """Asks a bound, which has no state: only the history counts, and for the ceiling the probe's evidence."""

    def __init__(self, bound: Strategy, index: ConversationIndex, models: ModelCalls) -> None:
        self._bound, self._index, self._models = bound, index, models

    def ask(self, placed: PlacedProbe, question: Message) -> ProbeReply:
        """Ask the bound."""
        bound = self._bound
        if isinstance(bound, EvidenceOnly):
            bound = EvidenceOnly(tuple(message.id for message in placed.evidence))
        services = RecordedContext(self._index, self._models)
        return put(start_view(bound, services), services, placed, question)


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


def questions(probes: Sequence[PlacedProbe | Placed], ids: Collection[str]) -> list[Message]:
    """Return the message of each question, under an id that no other message has; `ids` are those of the recording."""
    messages: list[Message] = []
    seen = set(ids)
    for probe in probes:
        name = first = f"probe:{probe.probe.id}"
        again = 1
        while name in seen:
            again += 1
            name = f"{first}#{again}"
        seen.add(name)
        messages.append(Message(name, "user", probe.probe.question, time=probe.probe.time))
    return messages


# A replay for a probe gets the replies of the first replay, failures too: nobody pays twice, and both replays agree.
class ReplayedModels:
    """Models that remember their replies, so that a strategy started anew gets the same ones (`Again`)."""

    def __init__(self, models: ModelCalls) -> None:
        self.models = models
        self.replies: defaultdict[object, list[Any]] = defaultdict(list)

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the model's reply, and remember it. Raises ModelError."""
        return self._remember(prompt, lambda: self.models.complete(prompt, counter))

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the vectors, and remember them. Raises ModelError."""
        return self._remember((tuple(texts), query), lambda: self.models.embed(texts, query, counter))

    def _remember(self, request: object, answer: Callable[[], T]) -> T:
        try:
            reply = answer()
        except ModelError as error:
            self.replies[request].append(error)
            raise
        self.replies[request].append(reply)
        return reply


class Again:
    """Models that repeat the remembered replies, each as often as it was given; after that the models are called."""

    def __init__(self, models: ReplayedModels) -> None:
        self._models, self._times = models, Counter[object]()

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the remembered reply, or a new one. Raises ModelError."""
        return self._again(prompt, lambda: self._models.models.complete(prompt, counter))

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the remembered vectors, or new ones. Raises ModelError."""
        return self._again((tuple(texts), query), lambda: self._models.models.embed(texts, query, counter))

    def _again(self, request: object, answer: Callable[[], T]) -> T:
        time, replies = self._times[request], self._models.replies.get(request, [])
        self._times[request] += 1
        if time >= len(replies):
            return answer()
        if isinstance(replies[time], ModelError):
            raise replies[time]
        reply: T = replies[time]
        return reply


FLOOR, CEILING = "last_turn", "evidence_only"
"""Bounds of every strategy. Every run asks them its probes."""


_SHARED = (
    *(int, float, complex, str, bytes, type(None), type(...), range, slice, type, np.generic, np.dtype, Enum),
    *(types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, re.Pattern, Messages),
    *(itemgetter, attrgetter),
)

_DICTS = (dict, defaultdict, OrderedDict, Counter)


# Not `copy.deepcopy`: that shares closures, which is wrong, and copies messages, which is slow (decision 22).
class Copier:
    """Copies views. Tuples that hold nothing that changes are known to it from one copy to the next."""

    __slots__ = ("_fixed",)

    def __init__(self) -> None:
        self._fixed: dict[int, object] = {}

    def copied(self, view: View, instead: Mapping[int, object]) -> View:
        """Return a view that goes on as this one would. `instead` maps ids of objects to what the copy has instead.

        Raises StrategyTypeError for what cannot be copied.
        """
        copied_view: View = _Copying(instead, self._fixed).of(view)
        return copied_view


class _Copying:
    """One copy. An object that is met twice is copied once."""

    __slots__ = ("_copies", "_fixed", "_originals")

    def __init__(self, instead: Mapping[int, object], fixed: dict[int, object]) -> None:
        self._copies: dict[int, object] = dict(instead)
        # Tuples that need no copy, by their ids. Kept alive, so that no other value gets the id.
        self._fixed = fixed
        # The originals of copies, kept alive for the same reason.
        self._originals: list[object] = []

    def of(self, value: Any) -> Any:
        kind, key = type(value), id(value)
        if _IS_SHARED[kind]:
            return value
        earlier = self._copies.get(key)
        if earlier is not None:
            return earlier
        if key in self._fixed:
            return value
        self._originals.append(value)
        if kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            return self._tuple(value, kind)
        if kind in (list, deque):
            return self._listed(value)
        if kind in _DICTS:
            return self._dict(value)
        if kind in (set, frozenset):
            return self._known(value, kind(value) if self._are_shared(value) else kind(map(self.of, value)))
        if kind is bytearray or kind is array:
            return self._known(value, copy(value))
        return self._behaving(value, kind)

    def _behaving(self, value: Any, kind: type) -> object:
        """Copy a function or an object."""
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return self._known(value, types.MethodType(value.__func__, self.of(value.__self__)))
        if kind in (types.BuiltinFunctionType, types.MethodWrapperType):
            return self._builtin(value)
        if kind is types.CellType:
            return self._cell(value)
        if kind is partial:
            keywords = {name: self.of(argument) for name, argument in value.keywords.items()}
            return self._known(value, partial(self.of(value.func), *map(self.of, value.args), **keywords))
        if kind is _lru_cache_wrapper:
            # A cached function without a state of its own may be shared: its results are the same for all.
            if self.of(value.__wrapped__) is not value.__wrapped__:
                raise _refused(value)
            return value
        if hasattr(kind, "__deepcopy__"):
            return self._known(value, value.__deepcopy__({}))
        return self._object(value, kind)

    def _known(self, value: object, copied: T) -> T:
        self._copies[id(value)] = copied
        return copied

    def _are_shared(self, values: Collection[object]) -> bool:
        """Return whether none of these needs a copy."""
        fixed = self._fixed
        kinds = set(map(type, values))
        changing = [kind for kind in kinds if not _IS_SHARED[kind]]
        if not changing or not fixed:
            return not changing
        candidates = (
            values
            if len(changing) == len(kinds)
            else (candidate for candidate in values if type(candidate) in changing)
        )
        return all(map(fixed.__contains__, map(id, candidates)))

    def _tuple(self, value: tuple[object, ...], kind: type) -> object:
        items = self._items(value)
        if all(map(is_, items, value)):
            self._fixed[id(value)] = value
            return value
        return self._known(value, kind(*items) if kind is not tuple else tuple(items))

    def _listed(self, value: list[object] | deque[object]) -> object:
        # Known before its items are copied: a list that holds itself, or whose items refer to it, ends here.
        copied = self._known(value, copy(value))
        if not self._are_shared(value):
            copied.clear()
            copied.extend(self._items(value))
        return copied

    def _items(self, values: Iterable[object]) -> list[object]:
        """Return the copies of values, most of which are shared: those need no call."""
        of, fixed, is_shared = self.of, self._fixed, _IS_SHARED
        return [value if is_shared[type(value)] or id(value) in fixed else of(value) for value in values]

    def _dict(self, value: dict[object, object]) -> object:
        copied = self._known(value, copy(value))
        if not (self._are_shared(value) and self._are_shared(value.values())):
            copied.clear()
            copied.update(zip(self._items(value), self._items(value.values()), strict=True))
        return copied

    def _function(self, value: types.FunctionType) -> object:
        defaults, keywords = self.of(value.__defaults__), value.__kwdefaults__
        if keywords:
            copies = self._items(keywords.values())
            if not all(map(is_, copies, keywords.values())):
                keywords = dict(zip(keywords, copies, strict=True))
        if not value.__closure__ and defaults is value.__defaults__ and keywords is value.__kwdefaults__:
            return value
        # Cells, not their contents: two functions that share a variable share it in the copy too.
        cells = tuple(self.of(cell) for cell in value.__closure__ or ())
        copied = types.FunctionType(value.__code__, value.__globals__, value.__name__, defaults, cells)
        copied.__kwdefaults__ = keywords
        return self._known(value, copied)

    def _builtin(self, value: types.BuiltinMethodType) -> object:
        """Copy a builtin function, or the method of a list and its like."""
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType) or self.of(owner) is owner:
            return value
        return self._known(value, getattr(self.of(owner), value.__name__))

    def _cell(self, value: types.CellType) -> object:
        copied = self._known(value, types.CellType())
        try:
            contents = value.cell_contents
        except ValueError:  # a name that has no value yet
            return copied
        copied.cell_contents = self.of(contents)
        return copied

    def _object(self, value: object, kind: type) -> object:
        names = _slots(kind)
        if not (names or hasattr(value, "__dict__") or _is_empty(kind)):
            raise _refused(value)
        try:
            copied: object = self._known(value, object.__new__(kind))
        except TypeError:
            raise _refused(value) from None
        for name in names:
            try:
                attribute = getattr(value, name)
            except AttributeError:  # it has none yet
                continue
            # A frozen dataclass refuses setattr.
            object.__setattr__(copied, name, attribute if _IS_SHARED[type(attribute)] else self.of(attribute))
        for name, attribute in getattr(value, "__dict__", {}).items():
            copied.__dict__[name] = self.of(attribute)
        return copied


class _Kinds(dict[type, bool]):
    """Map each type to whether its instances never change."""

    def __missing__(self, kind: type) -> bool:
        frozen = issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen
        self[kind] = frozen or issubclass(kind, _SHARED)
        return self[kind]


# A plain object has nothing that changes: it is a mark, which functions compare by identity with their module's.
_IS_SHARED = _Kinds({object: True})


@cache
def _slots(kind: type) -> tuple[str, ...]:
    """Return the names of all slots, as they are stored."""
    names = []
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                names.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return tuple(names)


def _refused(value: object) -> StrategyTypeError:
    return StrategyTypeError(f"{describe_type(value)} cannot be copied: a strategy that holds one is not `copyable`")


def _is_empty(kind: type) -> bool:
    """Return whether objects of this type hold nothing, because every class that it is made of has slots."""
    return all("__slots__" in base.__dict__ for base in kind.__mro__ if base is not object)
