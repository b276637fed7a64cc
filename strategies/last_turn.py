"""`last_turn`: the floor of every comparison. Only the system prompt and the turn that is going on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Context, Desk, View


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The system messages, and everything from the last user message on: no memory at all.

    A history without a user message is sent whole.
    """

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "anything said before the last user message matters"

    def start(self, desk: Desk) -> View:
        def view(context: Context) -> Context:
            history = context.messages
            start = len(history) - 1
            while start > 0 and history[start].role != "user":
                start -= 1
            if start <= 0:
                return context
            return context.sending(desk.systems(history[:start]) + desk.whole(history[start:]))

        return view
