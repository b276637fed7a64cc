"""replay(): show a strategy only the past, at every point where the recorded model was called, and measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import NamedTuple

from ..metrics.structure import Faults
from ..metrics.tokens import PRIMING
from ..scenarios.model import Conversation
from ..scenarios.view import Messages, shared
from ..strategies.base import Context, Strategy, budget_of
from .desk import RecordedDesk
from .log import Log

NOTHING = Messages()


class Step(NamedTuple):
    """One model call. Tokens are of the whole request: messages, tool schemas and the priming of the reply."""

    step: int
    at: int
    """Messages said before the call."""
    turn: int
    """User messages among them."""
    kept: int
    """Leading messages shared with what was sent at the step before."""
    added_from: list[int]
    """Then these stretches of the recording [from, to), and messages that the strategy wrote (`Log.stretches`)."""
    added_to: list[int]
    marks: tuple[int, ...]
    messages_sent: int
    tokens_full: int
    """The whole history."""
    tokens_sent: int
    tokens_kept: int
    """What of `tokens_sent` any prefix cache could reuse at most: the tools and the kept messages. 0 at step 0."""
    over_budget: int
    """Tokens over what the strategy promised."""
    faults: Faults
    decide_ns: int
    """Wall-clock time that the strategy took, in nanoseconds. Counting what was newly recorded is not in it."""


def replay(conversation: Conversation, strategy: Strategy, desk: RecordedDesk, log: Log) -> Iterator[Step]:
    """Show the strategy only the past; measure what it would send.

    Before each recorded model call the strategy is given what had been said, never more. Nothing is taken on its own
    word but the budget that it promises.
    """
    recording = conversation.messages
    view, before, budget = strategy.start(desk), NOTHING, budget_of(strategy)
    for number, at in enumerate(conversation.calls()):
        desk.advance(at)
        history = Context(Messages.prefix(recording, at), tools=conversation.tools)
        context, spent = _timed(view, history)
        sent = log.settled(context.messages, at)
        kept = shared(before, sent)
        tokens, tools = desk.total(sent), desk.tools(context.tools)
        yield Step(
            number,
            at,
            desk.structure.turns(at),
            kept,
            *log.stretches(sent[kept:]),
            context.marks,
            len(sent),
            tokens_full=desk.total(history.messages) + desk.tools(history.tools) + PRIMING,
            tokens_sent=tokens + tools + PRIMING,
            tokens_kept=desk.total(sent[:kept]) + tools if number else 0,
            over_budget=max(0, tokens - budget) if budget is not None else 0,
            faults=desk.structure.faults(sent, at),
            decide_ns=spent,
        )
        before = sent


def _timed(view: Callable[[Context], Context], history: Context) -> tuple[Context, int]:
    began = perf_counter_ns()
    context = view(history)
    return context, perf_counter_ns() - began
