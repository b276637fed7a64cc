"""The desk that the tier uses without a harness: it counts, extracts summaries, and has no embedder, clock or tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

import numpy as np
from numpy.typing import NDArray

from ....metrics.extract import extract
from ....metrics.structure import Structure
from ....metrics.tokens import Ledger, TokenCounter
from ....scenarios.model import Fact, Message, Tool
from ....scenarios.view import Messages
from ...base import ModelError, Prompt
from ...events import Event


class StandaloneContext:
    """A desk (`strategies.base.Desk`) of one conversation, which comes to it as it is said."""

    conversation = ""
    now: float | None = None

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._events: list[Event] = []
        self._begin()

    def _begin(self) -> None:
        self._said: list[Message] = []
        self._ids: set[str] = set()
        self._ledger, self._structure = Ledger(self._counter, self._said), Structure(self._said)

    def said(self, messages: Sequence[Message]) -> Messages:
        """The conversation as it is now. Raises ValueError if two of its messages have one id."""
        known = self._said
        common = min(len(known), len(messages))
        if not all(map(is_, known, messages)) and known[:common] != list(messages[:common]):
            self._begin()
            known, common = self._said, 0
        for message in messages[common:]:
            if message.id in self._ids:
                raise ValueError(f"two messages have the id {message.id!r}: give each one of its own")
            self._ids.add(message.id)
            known.append(message)
        return Messages.prefix(known, len(messages))

    def events(self) -> tuple[Event, ...]:
        """What was recorded since the last time."""
        found, self._events = tuple(self._events), []
        return found

    def record(self, event: Event) -> None:
        self._events.append(event)

    def complete(self, prompt: Prompt) -> str:
        """The sentences of the material that matter most. Raises ModelError if there are none, or none fits."""
        text = extract(prompt.material, prompt.max_tokens, self._counter.text)
        if not text:
            raise ModelError(f"nothing of the material fits in {prompt.max_tokens} tokens")
        return text

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:  # noqa: ARG002
        raise ModelError("there is no embedder without a harness")

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        """Nobody calls it."""

    def facts(self, message: Message) -> tuple[Fact, ...] | None:  # noqa: ARG002
        return None

    def text_tokens(self, text: str) -> int:
        return self._counter.text(text)

    def tokens(self, message: Message) -> int:
        return self._ledger.tokens(message)

    def total(self, messages: Messages) -> int:
        return self._ledger.total(messages)

    def schemas(self, tools: tuple[Tool, ...]) -> int:
        return self._counter.tools(tools)

    def fit(self, messages: Messages, budget: int) -> int:
        return self._ledger.fit(messages, budget)

    def systems(self, messages: Messages) -> Messages:
        return self._structure.systems(messages)

    def opening(self, messages: Messages, start: int) -> int | None:
        return self._structure.opening(messages, start)

    def whole(self, messages: Messages) -> Messages:
        return self._structure.whole(messages)
