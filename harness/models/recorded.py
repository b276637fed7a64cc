"""A chat model behind a cassette and a purse: what was asked before is replayed, what is new is called and recorded.

An answer that holds no text is an answer: it was paid for, it is recorded, and it is charged. It raises Unusable.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from ...metrics.prices import BUNDLED, Usage
from ...metrics.tokens import PRIMING, TokenCounter
from ...scenarios.errors import SetupError
from ...scenarios.model import Message
from ...strategies.base import ModelError, Prompt
from . import Reply, Unusable
from .cassette import Cassette, Entry, canonical, key_of
from .spending import Purse

Mode = Literal["auto", "replay", "record"]


class Request(msgspec.Struct, frozen=True):
    """What a chat model is asked. Two requests with the same fields are the same request."""

    model: str
    text: str
    """Of the one user message."""
    temperature: float
    max_tokens: int

    def canonical(self) -> str:
        """As the cassette writes it."""
        return canonical(
            {
                "kind": "chat",
                "model": self.model,
                "messages": [{"role": "user", "content": self.text}],
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
            }
        )


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chat model answered."""

    text: str
    usage: Usage | None = None
    """None = it reported none."""
    finish: str = ""
    """Why it ended: "stop", "length" …"""
    refusal: str = ""


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
        request = Request(self.name, prompt.text(), prompt.temperature, prompt.max_tokens)
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
            raise ModelError(
                f"{self.name}: {self._cassette.path.name} has no reply to this request: "
                "record it once with --cassette-mode auto"
            )
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
        reply = Reply(answer.text, self.name, usage.input, usage.output, BUNDLED.cost(self.name, usage))
        if answer.text.strip():
            return reply
        raise Unusable(f"{self.name}: {_why_empty(request, answer)}", reply)


def _asked(request: Request, counter: TokenCounter) -> int:
    return PRIMING + counter.message(Message("", "user", request.text))


def _usage(request: Request, answer: Answer, counter: TokenCounter) -> Usage:
    """As the provider reported it; where it did not, by our count."""
    return answer.usage or Usage(_asked(request, counter), counter.text(answer.text))


def _why_empty(request: Request, answer: Answer) -> str:
    if answer.refusal:
        return f"refused: {' '.join(answer.refusal.split())[:200]}"
    if answer.finish == "length":
        return f"answered nothing within {request.max_tokens} tokens (a model that thinks first needs more)"
    if answer.finish == "content_filter":
        return "its provider's content filter held the answer back"
    return "answered with an empty text"
