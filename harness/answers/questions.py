"""What is put to an answerer, what it answers, and what an answerer is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.model import Conversation, Message, Tool
from ...scenarios.view import Messages
from ...strategies.chain import parse
from ...strategies.events import Event
from ..folder.run import Run
from ..models import Models
from ..probes.ask import CEILING, FLOOR, put, questions
from ..probes.results import StoredProbe, asked_probes
from ..replay import ConversationIndex, RecordedContext, proceed, started

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


class ProbeContext(NamedTuple):
    """One probe under one strategy."""

    number: int
    """Of the probe in the conversation's list."""
    question: Question | None
    failed: str = ""
    """Why there is no context; empty if there is one."""


class RunProbes:
    """The probes of a run. `models` are those that strategies ask, should one have to be started again."""

    def __init__(self, run: Run, models: Models) -> None:
        self._run, self._models = run, models
        plan = run.manifest["plan"]
        self._encoding: str = plan["encoding"]
        self._strategies = dict.fromkeys((*plan["strategies"], FLOOR, CEILING))

    def of(self, conversation: Conversation) -> Iterator[tuple[str, list[ProbeContext]]]:
        """The probes of a conversation: by strategy in the order of the run, bounds last."""
        for strategy in self._strategies:
            asked = asked_probes(self._run, conversation, strategy)
            yield strategy, [self._probed(conversation, strategy, each) for each in asked]

    def _probed(self, conversation: Conversation, strategy: str, probe: StoredProbe) -> ProbeContext:
        context = probe.context
        if context is None:
            return ProbeContext(probe.number, None, probe.failed)
        sent = context.messages
        at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].id == probe.question.id), len(sent))
        start = partial(Started, conversation, strategy, probe.number, self._models, self._encoding)
        return ProbeContext(
            probe.number,
            Question(
                conversation.id,
                probe.probe.question,
                sent[:at] + sent[at + 1 :] if at < len(sent) else Messages.of(sent),
                context.tools,
                probe.tokens_sent,
                None if context.tools == conversation.tools else start,
            ),
        )


class Started:
    """A strategy at a probe."""

    def __init__(self, conversation: Conversation, strategy: str, number: int, models: Models, encoding: str) -> None:
        """`number`: of the probe in the conversation's list. Raises what the strategy raises, and Misfit."""
        books = ConversationIndex(conversation, TokenCounter(encoding))
        at = next(at for at, each in enumerate(books.asked) if each.number == number)
        asked, question = books.asked[at], questions(books.asked, books.ids)[at]
        self._desk = RecordedContext(books, models)
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
