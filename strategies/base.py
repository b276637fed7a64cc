"""What a strategy is: a frozen dataclass whose `start` opens one conversation and returns a Context → Context function.

    @dataclass(frozen=True, slots=True)
    class LastTen:
        '''The last ten messages, whatever they are.'''

        def start(self, desk: Desk) -> View:
            return lambda context: context.sending(context.messages[-10:])

Its parameters are its identity (`scenarios.spec` prints and parses them). State, if any, lives in what `start`
returns. A strategy never reads the wall clock and never measures itself: the harness does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ..scenarios.model import Message, Tool
from ..scenarios.view import Messages


class Context(msgspec.Struct, frozen=True):
    """What a model is sent: messages in order, the cache marks on them, the tools offered."""

    messages: Messages
    marks: tuple[int, ...] = ()
    """A cache breakpoint stands after each of these messages (their places, from 0)."""
    tools: tuple[Tool, ...] = ()

    def sending(self, messages: Sequence[Message]) -> Context:
        """The same context with other messages, and no marks: they named places that are gone."""
        return Context(Messages.of(messages), (), self.tools)


View = Callable[[Context], Context]
"""Gets everything said so far before each model call, and returns what to send."""


class Desk(Protocol):
    """All that a strategy may use of the outside. Every figure is exact in the run's encoding.

    Each costs the number of stretches that the messages are made of, not their length.
    """

    def tokens(self, message: Message) -> int:
        """Tokens of one message in the chat format."""
        ...

    def total(self, messages: Messages) -> int:
        """Tokens of messages together."""
        ...

    def fit(self, messages: Messages, budget: int) -> int:
        """The smallest start such that messages[start:], system messages aside, take at most `budget` tokens."""
        ...

    def systems(self, messages: Messages) -> Messages:
        """The system messages among these."""
        ...

    def whole(self, messages: Messages) -> Messages:
        """These messages without the tool results whose call is not among them."""
        ...


class Strategy(Protocol):
    """A way to turn a history into what the model is sent."""

    def start(self, desk: Desk) -> View:
        """Open one conversation. The function returned gets everything said so far, each time."""
        ...


def budget_of(strategy: Strategy) -> int | None:
    """Tokens that the strategy promises its messages never exceed; None if it promises nothing."""
    budget: int | None = getattr(strategy, "budget", None)
    return budget
