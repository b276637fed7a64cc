"""A strategy that is there: started anew and shown what came before a probe, so that it can answer its own tools.

The context itself comes from the run. Only a model that calls a tool needs this, and it costs a replay up to the probe.
Models that the strategy asks on the way answer from the cassette.
"""

from __future__ import annotations

from ...metrics.tokens import TokenCounter
from ...scenarios.model import Conversation
from ...strategies.chain import parse
from ...strategies.events import Event
from ..desk import Books, RecordedDesk
from ..models import Models
from ..probing.asking import put, questions
from ..replay import proceed, started
from .answerer import Tools


class Started:
    """A strategy at a probe."""

    def __init__(self, conversation: Conversation, strategy: str, number: int, models: Models, encoding: str) -> None:
        """`number`: of the probe in the conversation's list. Raises what the strategy raises, and Misfit."""
        books = Books(conversation, TokenCounter(encoding))
        at = next(at for at, each in enumerate(books.asked) if each.number == number)
        asked, question = books.asked[at], questions(books.asked, books.ids)[at]
        self._desk = RecordedDesk(books, models)
        view = started(parse(strategy), self._desk)
        for _ in proceed(conversation, view, self._desk, until=asked.stop):
            pass
        put(view, self._desk, asked, question)

    @property
    def tools(self) -> Tools:
        """Who answers each tool that the strategy offers."""
        return {name: answer for name, (_, answer) in self._desk.tools.items()}

    def events(self) -> tuple[Event, ...]:
        """What it has done since it was asked last."""
        return self._desk.taken()[0]
