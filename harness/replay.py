"""replay(): show a strategy only the past, at every point where the recorded model was called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import NamedTuple

from ..scenarios.model import Conversation
from ..scenarios.view import Messages
from ..strategies.base import Context, Strategy
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
    own word but the budget that it promises.
    """
    desk.books.advance(len(conversation.messages))
    view = strategy.start(desk)
    for at in conversation.calls():
        desk.turn_to(at)
        history = Context(Messages.prefix(conversation.messages, at), (), conversation.tools)
        context, spent = _timed(view, history)
        events, waited = desk.taken()
        yield Step(at, context, spent - waited, waited, events)


def _timed(view: Callable[[Context], Context], history: Context) -> tuple[Context, int]:
    began = perf_counter_ns()
    context = view(history)
    return context, perf_counter_ns() - began
