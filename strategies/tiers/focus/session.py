"""One conversation under the Focus tier: after each message, what is sent, and what did not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from ....metrics.tokens import PRIMING
from ....scenarios.model import Message, Tool
from ....scenarios.view import Messages
from ...base import StrategyContext
from ...events import Event, OverBudget
from ...parts.units import Newest, Spoken, newest
from ..quota import Quota, Quotas
from .standalone import StandaloneContext

TIER = "focus"


class Truncation(Protocol):
    """What goes where a conversation is over its room."""

    def look(self, said: Messages, same: int) -> None:
        """All messages but the system's; the first `same` are as they were at the last look."""
        ...

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """What is sent of a history of which the newest unit fits in the room, and not all: all system messages, and
        others that take at most `room` tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class Focused:
    """What is sent."""

    messages: Messages
    """In their order, with what was written in place of others. Empty if the request is refused."""
    said: Messages
    """All messages that are not the system's."""
    used: BudgetUse
    """Tokens of what is sent, by what they are for."""
    refused: OverBudget | None = None
    """Why nothing can be sent: what must be alone is over the limit."""
    events: tuple[Event, ...] = field(default=(), compare=False)
    """What happened: limits crossed, summaries made. Empty under a desk of your own, which has them already."""

    @property
    def overflow(self) -> tuple[Message, ...]:
        """What was said and is not sent as it was said."""
        sent = {message.id for message in self.messages}
        return tuple(message for message in self.said if message.id not in sent)


class FocusSession:
    """The tier of one conversation. Give it the whole conversation each time."""

    __slots__ = ("_alone", "_answered", "_cut", "_desk", "_quotas", "_space", "_spoken")

    def __init__(self, space: TokenBudget, quota: Quota, cut: Truncation, desk: StrategyContext) -> None:
        self._space, self._cut, self._desk = space, cut, desk
        self._spoken = Spoken(desk)
        self._quotas = Quotas({TIER: quota}, desk.record)
        self._answered: tuple[Messages, tuple[Tool, ...], int, Focused] | None = None
        self._alone = desk if isinstance(desk, StandaloneContext) else None

    @property
    def held(self) -> int:
        """Tokens of what was sent last."""
        return self._quotas.held(TIER)

    def send(self, messages: Sequence[Message], tools: tuple[Tool, ...] = (), spare: int = 0) -> Focused:
        """What is sent. Asked again with nothing said since, it answers the same. Where it has to be cut, `spare`
        tokens are left for others to fill, as far as the newest message leaves them.

        Raises ValueError if two messages have one id.
        """
        history = Messages.of(messages) if self._alone is None else self._alone.said(messages)
        if self._answered is None or self._answered[:3] != (history, tools, spare):
            self._answered = history, tools, spare, self._sent(history, tools, spare)
        return self._answered[3]

    def _sent(self, history: Messages, tools: tuple[Tool, ...], spare: int) -> Focused:
        desk, space, spoken = self._desk, self._space, self._spoken
        same = spoken.read(history)
        said = spoken.messages
        self._cut.look(said, same)
        system, functions, conversation = desk.total(desk.systems(history)), desk.schemas(tools), desk.total(said)
        self._quotas.want(TIER, space.reserved(system, functions) + conversation)
        newest = desk.total(said[spoken.units.starts[-1] :]) if said else 0
        if refused := _refused(space.limit, BudgetUse(system, functions, newest)):
            desk.record(refused)
            return self._held(Focused(Messages(), said, BudgetUse(0, 0, 0), refused))
        room = max(space.room(system, functions), newest)
        if conversation <= room:
            return self._held(Focused(history, said, BudgetUse(system, functions, conversation)))
        sent = self._cut.cut(history, spoken, max(room - spare, newest))
        return self._held(Focused(sent, said, BudgetUse(system, functions, desk.total(sent) - system)))

    def _held(self, found: Focused) -> Focused:
        self._quotas.hold(TIER, found.used.total)
        return found if self._alone is None else replace(found, events=self._alone.events())


def _refused(limit: int, least: BudgetUse) -> OverBudget | None:
    """Why a request cannot be sent that must at least take so much."""
    if least._replace(conversation=0).total > limit:
        why = "system messages and tool schemas alone are over the limit"
        return OverBudget(why, least._replace(conversation=0).total, limit)
    return OverBudget("the newest message does not fit", least.total, limit) if least.total > limit else None


class Tail:
    """The document says "simple cut of the tail". What was said last is the tail of a conversation, and a request
    without it asks nothing: so the tail is what stays.
    """

    __slots__ = ("_desk",)

    def __init__(self, desk: StrategyContext) -> None:
        self._desk = desk

    def look(self, said: Messages, same: int) -> None:
        """There is nothing to remember."""

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, the newest that fit, and the user message that opened their turn."""
        head, tail = fitted(self._desk, history, spoken.messages[-1], 0, room)
        return head + tail


def fitted(desk: StrategyContext, history: Messages, last: Message, start: int, room: int) -> Newest:
    """The newest messages from `start` on that fit, `last` among them: the opening user message gives way to it."""
    found = newest(desk, history, start, room)
    return found if says(found.tail, last) else newest(desk, history, start, room, user_first=False)


def says(messages: Messages, last: Message) -> bool:
    """Whether a message is among these."""
    return any(message.id == last.id for message in reversed(messages))


class BudgetUse(NamedTuple):
    """Tokens of a request, by what they are for."""

    system: int
    """Its system messages that were said, never cut."""
    functions: int
    """The schemas of the tools offered."""
    conversation: int
    """All other messages, and what was written in place of those left out."""

    @property
    def total(self) -> int:
        """What a provider counts: 3 tokens more prime the reply. Nothing, where nothing is sent."""
        return PRIMING + sum(self) if any(self) else 0


class TokenBudget(NamedTuple):
    """The limit and its reserves, in tokens."""

    limit: int
    system: int
    functions: int

    def room(self, system: int, functions: int) -> int:
        """Tokens that the conversation may take, with so many of the system and of tool schemas. May be below 0."""
        return self.limit - self.reserved(system, functions)

    def reserved(self, system: int, functions: int) -> int:
        """What is not the conversation's: the reserves, or what is over them, and what primes the reply."""
        return PRIMING + max(self.system, system) + max(self.functions, functions)
