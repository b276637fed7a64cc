"""Models for tests: vectors that can be worked out by hand, replies that are given, failures on demand."""

from collections.abc import Callable, Sequence

import numpy as np

from ctxbench.harness.models import Embedded, Models, Reply
from ctxbench.harness.replay import ConversationIndex, RecordedContext, Step, replay
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.base import ModelError, Prompt, Strategy
from ctxbench.strategies.events import Event

COUNTER = TokenCounter()
AXES = ("cat", "dog", "fish", "bird")


class Stub(Models):
    """Embeds a text as how often it names each of four animals (and a little of a fifth axis); answers as told.

    `fails` is asked before each embedding, `reply` gives each answer or raises.
    """

    def __init__(
        self, fails: Callable[[], bool] = lambda: False, reply: Callable[[Prompt], str] = lambda prompt: "[]"
    ) -> None:
        self.fails, self.reply = fails, reply
        self.embedded: list[list[str]] = []
        self.prompts: list[Prompt] = []

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        if self.fails():
            raise ModelError("the embedder is away")
        self.embedded.append(list(texts))
        made = np.array([[*(text.count(axis) for axis in AXES), 0.1] for text in texts], np.float32)
        return Embedded(made / np.linalg.norm(made, axis=1, keepdims=True))

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        self.prompts.append(prompt)
        return Reply(self.reply(prompt), "stub", 1, 1, 0.0)


def played(strategy: Strategy, conversation: Conversation, models: Models | None = None) -> list[Step]:
    """Every step of a replay."""
    return list(
        replay(conversation, strategy, RecordedContext(ConversationIndex(conversation, COUNTER), models or Stub()))
    )


def names(step: Step) -> list[str]:
    """What is sent, by ids; a message that the strategy wrote by the name before the colon."""
    return [message.id.partition(":")[0] for message in step.context.messages]


def written(step: Step, name: str) -> str:
    """The text of the message that the strategy wrote; empty if there is none."""
    return next((message.text for message in step.context.messages if message.id.startswith(f"{name}:")), "")


def events(step: Step, kind: type[Event]) -> list[Event]:
    """The events of a kind at a step."""
    return [event for event in step.events if isinstance(event, kind)]
