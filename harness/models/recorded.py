"""A chat model behind a cassette and a purse: what was asked before is replayed, what is new is called and recorded.

An answer that holds no text is an answer: it was paid for, it is recorded, and it is charged. It raises Unusable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from ...metrics.prices import BUNDLED, Usage
from ...metrics.tokens import PRIMING, TokenCounter
from ...scenarios.errors import SetupError
from ...scenarios.model import Tool, ToolCall
from ...strategies.base import ModelError, Prompt
from . import Reply, Unusable
from .cassette import Cassette, Entry, canonical, key_of
from .chat import Asked, messages_of, offered, said
from .spending import Purse

Mode = Literal["auto", "replay", "record"]


class Request(msgspec.Struct, frozen=True):
    """What a chat model is asked. Two requests with the same fields are the same request."""

    model: str
    asked: Asked
    """A text is the one user message."""
    temperature: float
    max_tokens: int
    tools: tuple[Tool, ...] = ()
    """What it may call."""
    silent: bool = False
    """It is sent the tools, as what was said before needs them, and may call none."""
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the answer has to keep to, where the provider can see to that."""
    vote: int = 0
    """Which of several answers to the same request."""
    prompt: str = ""
    """Which prompt this is, NAME@DIGEST: tells a recorded answer to a prompt that has changed."""

    def canonical(self) -> str:
        """As the cassette writes it."""
        request: dict[str, Any] = {
            "kind": "chat",
            "model": self.model,
            "messages": said(self.asked),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        told = {"schema": self.schema, "vote": self.vote, "prompt": self.prompt}
        return canonical(request | self.choices() | {name: value for name, value in told.items() if value})

    def form(self) -> dict[str, Any]:
        """The form of the answer as a provider gets it, where there is one."""
        if self.schema is None:
            return {}
        schema = {"name": "answer", "strict": True, "schema": dict(self.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def choices(self) -> dict[str, Any]:
        """The tools, and whether they may be called, where there are any."""
        if not self.tools:
            return {}
        return {"tools": offered(self.tools), **({"tool_choice": "none"} if self.silent else {})}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chat model answered."""

    text: str
    usage: Usage | None = None
    """None = it reported none."""
    finish: str = ""
    """Why it ended: "stop", "length" …"""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()


class ChatModel(Protocol):
    """What answers a request: a provider, or a model in this process."""

    def chat(self, request: Request) -> Answer:
        """The answer. Raises ModelError where there is none."""
        ...


class Recorded:
    """A model of the run. `auto` replays what the cassette has and records the rest, `replay` never calls, `record`
    always does. In `replay` the chat model and the purse may be None."""

    def __init__(self, name: str, chat: ChatModel | None, cassette: Cassette, purse: Purse | None, mode: Mode) -> None:
        self.name, self._chat, self._cassette, self._purse, self._mode = name, chat, cassette, purse, mode
        self._full = ""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply. Its cost is what the tokens cost at today's prices, replayed or not. Raises ModelError."""
        return self.chat(Request(self.name, prompt.text(), prompt.temperature, prompt.max_tokens), counter)

    def chat(self, request: Request, counter: TokenCounter) -> Reply:
        """The same of any request."""
        text = request.canonical()
        key = key_of(text)
        kept = None if self._mode == "record" else self._cassette.get(key)
        if kept is None:
            kept = self._recorded(request, text, key, counter)
        return self._reply(request, msgspec.json.decode(kept, type=Answer), counter)

    def _recorded(self, request: Request, text: str, key: str, counter: TokenCounter) -> bytes:
        if self._full:
            raise ModelError(self._full)
        try:
            answer = self._called(request, counter)
            made = Entry(key, "chat", self.name, msgspec.json.encode(answer), text)
            return self._cassette.put(made, replace=self._mode == "record")
        except SetupError as error:  # what cannot be kept is not paid for a second time
            self._full = str(error)
            raise ModelError(self._full) from None

    def _called(self, request: Request, counter: TokenCounter) -> Answer:
        if self._mode == "replay" or self._chat is None or self._purse is None:
            raise ModelError(self._cassette.lacks(self.name, request.prompt))
        self._cassette.to_be_written()
        asked = _asked(request, counter)
        taken = self._purse.take(self.name, BUNDLED.cost(self.name, Usage(asked, request.max_tokens)))
        try:
            answer = self._chat.chat(request)
        except ModelError:
            self._purse.give_back(taken)
            raise
        self._purse.pay(taken, BUNDLED.cost(self.name, _usage(request, answer, counter)))
        return answer

    def _reply(self, request: Request, answer: Answer, counter: TokenCounter) -> Reply:
        usage = _usage(request, answer, counter)
        reply = Reply(answer.text, self.name, usage.input, usage.output, BUNDLED.cost(self.name, usage), answer.calls)
        if answer.text.strip() or answer.calls:
            return reply
        raise Unusable(f"{self.name}: {_why_empty(request, answer)}", reply)


def _asked(request: Request, counter: TokenCounter) -> int:
    return PRIMING + counter.tools(request.tools) + sum(map(counter.message, messages_of(request.asked)))


def _usage(request: Request, answer: Answer, counter: TokenCounter) -> Usage:
    """As the provider reported it; where it did not, by our count."""
    said = counter.text(answer.text) + sum(counter.text(call.name + call.arguments) for call in answer.calls)
    return answer.usage or Usage(_asked(request, counter), said)


def _why_empty(request: Request, answer: Answer) -> str:
    if answer.refusal:
        return f"refused: {' '.join(answer.refusal.split())[:200]}"
    if answer.finish == "length":
        return f"answered nothing within {request.max_tokens} tokens (a model that thinks first needs more)"
    if answer.finish == "content_filter":
        return "its provider's content filter held the answer back"
    return "answered with an empty text"
