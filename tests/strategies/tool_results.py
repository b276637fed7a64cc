"""Conversations with long tool results, and the services on which a test archives them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxbench.harness.models import Embedded, Models, Reply, Settings
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message, Tool, ToolCall
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.archive import Archive, ArchiveSession
from ctxbench.strategies.base import Context, ModelError, Prompt, Strategy
from ctxbench.strategies.events import Event

COUNTER = TokenCounter()
LONG = "The gate opens at 07:45 and closes at 22:10. Ask Mia Berg. " * 200
SEARCH = (Tool("search", "Search the handbook."),)


def asking(at: int, text: str, query: str, result: str, time: float | None = None) -> list[Message]:
    """A turn of five messages: question, call, result, answer … `u3 c3 t3 a3` for the third."""
    call = ToolCall(f"call{at}", "search", f'{{"query": "{query}"}}')
    return [
        Message(f"u{at}", "user", text, time=time),
        Message(f"c{at}", "assistant", calls=(call,), time=time),
        Message(f"t{at}", "tool", result, answers=call.id, time=time),
        Message(f"a{at}", "assistant", f"answer {at}", time=time),
    ]


def conversation(*turns: Sequence[Message], name: str = "talk", tools: tuple[Tool, ...] = SEARCH) -> Conversation:
    """A system prompt, then turns."""
    return Conversation(name, (Message("s", "system", "Be brief."), *(m for turn in turns for m in turn)), tools)


class Opening:
    """A conversation opened under a strategy: ask it at any point."""

    def __init__(self, strategy: Strategy, conversation: Conversation, models: Models | None = None) -> None:
        self.said = conversation
        self.services = RecordedContext(ConversationIndex(conversation, COUNTER), models or Models(Settings()))
        self.view = strategy.start(self.services)
        self.events: tuple[Event, ...] = ()
        self.context = Context(Messages())

    def at(self, name: str) -> dict[str, str]:
        """The texts sent, by message id, at the call that was answered with this message."""
        ids = [message.id for message in self.said.messages]
        place = ids.index(name)
        self.services.move_to(place)
        self.context = self.view(Context(Messages.prefix(self.said.messages, place), (), self.said.tools))
        self.events = self.services.drain()[0]
        return {message.id: message.text for message in self.context.messages}

    def calls(self, arguments: str) -> str:
        """What the model gets that calls the tool with these arguments."""
        text = self.services.tools["load_tool_history"][1](arguments)
        self.events = self.services.drain()[0]
        return text


class Fake(Models):
    """A model that replies by a function, and an embedder whose vectors are word counts; either may fail."""

    def __init__(self, reply: Callable[[Prompt], str] | None = None, words: Sequence[str] | None = None) -> None:
        super().__init__(Settings())
        self.reply, self.words = reply, words
        self.prompts: list[Prompt] = []

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        self.prompts.append(prompt)
        if self.reply is None:
            raise ModelError("it timed out")
        return Reply(self.reply(prompt), "fake", 1, 1, 0.0)

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        if self.words is None:
            raise ModelError("it is down")
        rows = [[float(text.lower().count(word)) for word in self.words] for text in texts]
        made = np.array(rows, np.float32)
        norm = np.linalg.norm(made, axis=1, keepdims=True)
        return Embedded((made / np.where(norm == 0, 1, norm)).astype(np.float32))


def at_file(folder: Path, **parameters: Any) -> Archive:
    """The strategy with a store in a file."""
    return Archive(**{"store": str(folder / "archive.db"), "wait": 0.05, **parameters})


def archives(strategy: Archive, name: str = "talk") -> ArchiveSession:
    """The operations alone, for one conversation."""
    return ArchiveSession(RecordedContext(ConversationIndex(Conversation(name, ()), COUNTER)), strategy)
