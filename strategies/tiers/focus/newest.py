"""`tail_cutoff`: the newest messages that fit."""

from __future__ import annotations

from ....scenarios.model import Message
from ....scenarios.view import Messages
from ...base import Desk
from ...parts.newest import Newest, newest
from ...parts.spoken import Spoken


class Tail:
    """The document says "simple cut of the tail". What was said last is the tail of a conversation, and a request
    without it asks nothing: so the tail is what stays.
    """

    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def look(self, said: Messages, same: int) -> None:
        """There is nothing to remember."""

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, the newest that fit, and the user message that opened their turn."""
        head, tail = fitted(self._desk, history, spoken.messages[-1], 0, room)
        return head + tail


def fitted(desk: Desk, history: Messages, last: Message, start: int, room: int) -> Newest:
    """The newest messages from `start` on that fit, `last` among them: the opening user message gives way to it."""
    found = newest(desk, history, start, room)
    return found if says(found.tail, last) else newest(desk, history, start, room, user_first=False)


def says(messages: Messages, last: Message) -> bool:
    """Whether a message is among these."""
    return any(message.id == last.id for message in reversed(messages))
