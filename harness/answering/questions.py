"""The probes of a run as questions: each with the context that each strategy sends for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ...scenarios.model import Conversation
from ...scenarios.view import Messages
from ..loading import Run
from ..models import Models
from ..probing import CEILING, FLOOR
from ..probing.stored import Stored
from .answerer import Question
from .live import Started


class Probed(NamedTuple):
    """One probe under one strategy."""

    number: int
    """Of the probe in the conversation's list."""
    question: Question | None
    failed: str = ""
    """Why there is no context; empty if there is one."""


class Probes:
    """The probes of a run. `models` are those that strategies ask, should one have to be started again."""

    def __init__(self, run: Run, models: Models) -> None:
        self._run, self._models = run, models
        plan = run.manifest["plan"]
        self._encoding: str = plan["encoding"]
        self._strategies = dict.fromkeys((*plan["strategies"], FLOOR, CEILING))

    def of(self, conversation: Conversation) -> Iterator[tuple[str, list[Probed]]]:
        """The probes of a conversation: by strategy in the order of the run, bounds last."""
        for strategy in self._strategies:
            asked = self._run.asked(conversation, strategy)
            yield strategy, [self._probed(conversation, strategy, each) for each in asked]

    def _probed(self, conversation: Conversation, strategy: str, probe: Stored) -> Probed:
        context = probe.context
        if context is None:
            return Probed(probe.number, None, probe.failed)
        sent = context.messages
        at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].id == probe.question.id), len(sent))
        start = partial(Started, conversation, strategy, probe.number, self._models, self._encoding)
        return Probed(
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
