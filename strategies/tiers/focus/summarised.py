"""`dynamic_summary`: a summary of what does not fit, then the newest messages."""

from __future__ import annotations

from ....scenarios.view import Messages
from ...base import Context, Desk
from ...parts.rolling import Rolling
from ...parts.spoken import Spoken
from ...parts.summarising import Running, Summariser
from .newest import fitted, says


class Summarised:
    """Once more is said than fits, all but what the newest `keep` of the room holds is summarised, merged with the
    summary before. What is summarised stays so.
    """

    __slots__ = ("_desk", "_keep", "_rolling")

    def __init__(self, desk: Desk, summariser: Summariser, keep: float) -> None:
        self._desk, self._keep = desk, keep
        self._rolling = Rolling(desk, Running(desk, summariser))

    def look(self, said: Messages, same: int) -> None:
        """What is summarised knows by itself what has changed."""

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, the summary, the rest."""
        rolling, desk = self._rolling, self._desk
        rolling.read(history)
        budget = rolling.system_tokens + room
        for _ in range(2):  # a summary may be longer than what it stands for
            if rolling.tokens <= budget or not rolling.summarise(self._old(room)):
                break
        sent, last = rolling.sending(Context(history), budget).messages, spoken.messages[-1]
        if says(sent, last):
            return sent
        head, tail = fitted(desk, history, last, spoken.place(spoken.units.starts[-1]), room)
        return head + tail

    def _old(self, room: int) -> int:
        """How many of the messages that are not summarised are to be."""
        kept = self._rolling.kept
        return self._rolling.beyond(self._desk.fit(kept, int(self._keep * room)))
