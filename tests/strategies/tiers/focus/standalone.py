"""The Focus tier for tests that give it any messages, without a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.extract import extract
from ctxbench.metrics.structure import Structure
from ctxbench.metrics.tokens import Ledger, TokenCounter
from ctxbench.scenarios.model import Compaction, ContextEdit, Fact, Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import ModelError, Prompt
from ctxbench.strategies.events import Event, OverBudget
from ctxbench.strategies.tiers.focus import Focus

COUNTER = TokenCounter()


class Sent(NamedTuple):
    """A request, what it leaves out, and what was recorded."""

    messages: Messages
    overflow: tuple[Message, ...]
    used: int
    over_budget: OverBudget | None
    events: tuple[Event, ...]


class Opened:
    """A Focus tier, which is given the whole conversation at each call."""

    def __init__(self, focus: Focus) -> None:
        self._context = StandaloneContext(COUNTER)
        self._session = focus.open(self._context)

    def send(self, messages: Sequence[Message], tools: tuple[Tool, ...] = ()) -> Sent:
        request = self._session.send(self._context.read(messages), tools)
        ids = {message.id for message in request.messages}
        overflow = tuple(each for each in messages if each.role != "system" and each.id not in ids)
        return Sent(request.messages, overflow, request.used, request.over_budget, self._context.events())


class StandaloneContext:
    """A `StrategyContext` without a harness: it counts and extracts summaries; no embedder, clock or tools."""

    conversation = ""
    now: float | None = None

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._events: list[Event] = []
        self._begin()

    def _begin(self) -> None:
        self._messages: list[Message] = []
        self._ids: set[str] = set()
        self._ledger, self._structure = Ledger(self._counter, self._messages), Structure(self._messages)

    def read(self, messages: Sequence[Message]) -> Messages:
        """Take in the conversation as it is now. Raises ValueError if two of its messages have the same id."""
        known = self._messages
        common = min(len(known), len(messages))
        if not all(map(is_, known, messages)) and known[:common] != list(messages[:common]):
            self._begin()
            known, common = self._messages, 0
        for message in messages[common:]:
            if message.id in self._ids:
                raise ValueError(f"two messages have the id {message.id!r}: give each one of its own")
            self._ids.add(message.id)
            known.append(message)
        return Messages.prefix(known, len(messages))

    def events(self) -> tuple[Event, ...]:
        """Return the events recorded since the previous call."""
        events, self._events = tuple(self._events), []
        return events

    def record(self, event: Event) -> None:
        self._events.append(event)

    def complete(self, prompt: Prompt) -> str:
        """Return the most important sentences of the material. Raises ModelError if none fits."""
        text = extract(prompt.material, prompt.max_tokens, self._counter.text)
        if not text:
            raise ModelError(f"nothing of the material fits in {prompt.max_tokens} tokens")
        return text

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        raise ModelError("there is no embedder without a harness")

    def offer(self, tool: Tool, answer: Callable[[str], str]) -> None:
        """Ignore the tool: without a harness no model can call it."""

    def facts(self, message: Message) -> tuple[Fact, ...] | None:
        return None

    def compactions(self) -> tuple[Compaction, ...]:
        return ()

    def edits(self) -> tuple[ContextEdit, ...]:
        return ()

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
