"""How likely a model's next token is one of a few: a judgement in one forward pass, with nothing generated.

Only a model in this process says so of a plain completion. Its answer is kept in the cassette like a chat's.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ...strategies.base import ModelError
from .cassette import Cassette, Entry, canonical, key_of
from .recorded import Mode


class Choice(msgspec.Struct, frozen=True):
    """What is asked: after `prefix` and `text`, how likely is each of `tokens`?"""

    model: str
    prefix: str
    """What many choices share. It is read once, and what is made of it is used again: the same bits every time."""
    text: str
    tokens: tuple[str, ...]
    prompt: str = ""
    """Which prompt this is, NAME@DIGEST: tells a recorded answer to a prompt that has changed."""

    def canonical(self) -> str:
        """As the cassette writes it."""
        made = {"kind": "choice", "model": self.model, "prefix": self.prefix, "text": self.text, "tokens": self.tokens}
        return canonical(made | ({"prompt": self.prompt} if self.prompt else {}))


class Likely(msgspec.Struct, frozen=True):
    """What a model says of a choice."""

    logprobs: dict[str, float]
    """Of those tokens that are among the likeliest."""
    floor: float
    """The others are less likely than this."""
    input_tokens: int = 0

    def of(self, token: str) -> float:
        """The log probability of a token, or the most that it can be."""
        return self.logprobs.get(token, self.floor)


class Chooser(Protocol):
    """A model that answers choices."""

    def choose(self, choice: Choice) -> Likely:
        """Raises ModelError where there is no answer."""
        ...


class RecordedChoices:
    """A chooser behind a cassette, whose modes are those of a chat model. In `replay` there may be none."""

    def __init__(self, name: str, model: Chooser | None, cassette: Cassette, mode: Mode) -> None:
        self.name, self._model, self._cassette, self._mode = name, model, cassette, mode

    def choose(self, choice: Choice) -> Likely:
        """The answer. Raises ModelError."""
        text = choice.canonical()
        key = key_of(text)
        kept = None if self._mode == "record" else self._cassette.get(key)
        if kept is None:
            if self._mode == "replay" or self._model is None:
                raise ModelError(self._cassette.lacks(self.name, choice.prompt))
            self._cassette.to_be_written()
            made = msgspec.json.encode(self._model.choose(choice))
            kept = self._cassette.put(Entry(key, "choice", self.name, made, text), replace=self._mode == "record")
        return msgspec.json.decode(kept, type=Likely)
