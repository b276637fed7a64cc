"""Keeps the start of a conversation and its newest messages, and says that something is left out between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, StrategyContext, View
from ctxbench.strategies.events import Dropped
from ctxbench.strategies.parts.units import Units


@dataclass(frozen=True, slots=True)
class HeadAndTail:
    """The first `head` messages and the last `tail`, fewer or more by a tool call that is not cut from its results."""

    head: NonNegativeInt = 4
    tail: PositiveInt = 16

    source: ClassVar[str] = "docs/writing-a-strategy.md"
    fails: ClassVar[str] = "what matters was said in the middle"

    def start(self, services: StrategyContext) -> View:
        units = Units()
        note = Messages.of((Message("head_and_tail:note", "system", "[Some messages are left out here.]"),))
        reported: set[str] = set()

        def view(context: Context) -> Context:
            history = context.messages
            units.read(history)
            stop = units.before(min(self.head, len(history)))
            start = units.before(max(len(history) - self.tail, 0))
            if start <= stop:
                return context
            middle = history[stop:start]
            dropped = tuple(message.id for message in middle if message.role != "system" and message.id not in reported)
            if dropped:
                reported.update(dropped)
                services.record(Dropped(dropped))
            return context.sending(history[:stop] + note + services.systems(middle) + history[start:])

        return view
