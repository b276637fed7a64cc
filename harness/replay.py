"""replay(): show a strategy only the past, at every point where the recorded model was called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any, NamedTuple

import msgspec

from ..scenarios.model import Conversation, Message, Tool
from ..scenarios.view import Messages
from ..strategies.base import Context, Misfit, Strategy, View, described, returned
from ..strategies.events import Event
from .desk import RecordedDesk


class Step(NamedTuple):
    """One model call: after `at` messages had been said, this context would have been sent."""

    at: int
    context: Context
    decide_ns: int
    """Wall-clock time that the strategy took, in nanoseconds, without models, embedders and counting the recording."""
    wait_ns: int = 0
    """Wall-clock time that it waited for models and embedders."""
    events: tuple[Event, ...] = ()


def replay(conversation: Conversation, strategy: Strategy, desk: RecordedDesk) -> Iterator[Step]:
    """Show the strategy only the past, and keep what it would send.

    Before each recorded model call the strategy is given what had been said, never more. Everything that is measured
    of a step but its time is arithmetic over what was sent (`metrics.measure`): nothing is taken on the strategy's
    own word but the budget that it promises. Raises Misfit for what cannot be measured, and what the strategy raises.
    """
    return proceed(conversation, started(strategy, desk), desk)


def started(strategy: Strategy, desk: RecordedDesk) -> View:
    """What the strategy opens a conversation with. Raises Misfit if that is no function, and what it raises."""
    desk.books.advance(len(desk.books.conversation.messages))
    view = strategy.start(desk)
    if not callable(view):
        raise Misfit(f"start returned {described(view)}, a function from Context to Context is wanted")
    return view


def proceed(conversation: Conversation, view: View, desk: RecordedDesk, until: int | None = None) -> Iterator[Step]:
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
