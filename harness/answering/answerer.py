"""What is put to an answerer, what it answers, and what an answerer is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...metrics.value import Missing
from ...scenarios.model import Message, Tool
from ...strategies.events import Event

UNKNOWN = "UNKNOWN"
"""What an answerer says where the context does not say."""

Tools = Mapping[str, Callable[[str], str]]
"""Who answers a tool, by its name: arguments as JSON text to the result."""


class Live(Protocol):
    """The strategy behind a context, there to answer the tools that it offers."""

    @property
    def tools(self) -> Tools:
        """Those that it offers."""
        ...

    def events(self) -> tuple[Event, ...]:
        """What it has done since it was asked last."""
        ...


class Question(NamedTuple):
    """A question with the context that a strategy sends for it."""

    conversation: str
    text: str
    context: Sequence[Message]
    """Without the question."""
    tools: tuple[Tool, ...] = ()
    """What the model is offered: the recorded agent's own tools, and the strategy's."""
    tokens: int = 0
    """Of the request, by the run's count."""
    live: Callable[[], Live] | None = None
    """Starts the strategy, where it offers a tool."""


class Answer(NamedTuple):
    """What was answered, and what that took, all rounds together."""

    text: str | Missing
    support: str = ""
    """Id of the message that it stands in, where the answerer knows."""
    rounds: int = 0
    """Model calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """US dollars; None = a price is not known."""
    called: tuple[str, ...] = ()
    """The tools that the model called, in order."""
    events: tuple[Event, ...] = ()
    """What the strategy did for that."""


class Answerer(Protocol):
    """Answers questions from contexts. Fails for a question by a Missing, never by an exception of a model."""

    @property
    def name(self) -> str:
        """Who answers: `offline`, or the full name of a model."""
        ...

    @property
    def identity(self) -> str:
        """That, with all else that the answers depend on."""
        ...

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer each, in their order; of one conversation."""
        ...
