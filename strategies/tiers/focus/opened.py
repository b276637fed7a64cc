"""One conversation under the Focus tier: after each message, what is sent, and what did not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ....scenarios.model import Message, Tool
from ....scenarios.view import Messages
from ...base import Desk
from ...events import Event, Refused
from ...parts.spoken import Spoken
from ..quota import Quota, Quotas
from .alone import Alone
from .space import Space, Used

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
    used: Used
    """Tokens of what is sent, by what they are for."""
    refused: Refused | None = None
    """Why nothing can be sent: what must be alone is over the limit."""
    events: tuple[Event, ...] = field(default=(), compare=False)
    """What happened: limits crossed, summaries made. Empty under a desk of your own, which has them already."""

    @property
    def overflow(self) -> tuple[Message, ...]:
        """What was said and is not sent as it was said."""
        sent = {message.id for message in self.messages}
        return tuple(message for message in self.said if message.id not in sent)


class Opened:
    """The tier of one conversation. Give it the whole conversation each time."""

    __slots__ = ("_alone", "_answered", "_cut", "_desk", "_quotas", "_space", "_spoken")

    def __init__(self, space: Space, quota: Quota, cut: Truncation, desk: Desk) -> None:
        self._space, self._cut, self._desk = space, cut, desk
        self._spoken = Spoken(desk)
        self._quotas = Quotas({TIER: quota}, desk.record)
        self._answered: tuple[Messages, tuple[Tool, ...], int, Focused] | None = None
        self._alone = desk if isinstance(desk, Alone) else None

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
        if refused := _refused(space.limit, Used(system, functions, newest)):
            desk.record(refused)
            return self._held(Focused(Messages(), said, Used(0, 0, 0), refused))
        room = max(space.room(system, functions), newest)
        if conversation <= room:
            return self._held(Focused(history, said, Used(system, functions, conversation)))
        sent = self._cut.cut(history, spoken, max(room - spare, newest))
        return self._held(Focused(sent, said, Used(system, functions, desk.total(sent) - system)))

    def _held(self, found: Focused) -> Focused:
        self._quotas.hold(TIER, found.used.total)
        return found if self._alone is None else replace(found, events=self._alone.events())


def _refused(limit: int, least: Used) -> Refused | None:
    """Why a request cannot be sent that must at least take so much."""
    if least._replace(conversation=0).total > limit:
        why = "system messages and tool schemas alone are over the limit"
        return Refused(why, least._replace(conversation=0).total, limit)
    return Refused("the newest message does not fit", least.total, limit) if least.total > limit else None
