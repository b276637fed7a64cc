"""What a model answers, whatever it is: a reply, or vectors, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...metrics.tokens import TokenCounter
from ...scenarios.model import ToolCall
from ...strategies.base import ModelError, Prompt
from ...strategies.events import Called


class Reply(NamedTuple):
    """What a model answered, and what it used."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None = the price is not known."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that it calls instead of an answer, or beside one."""


class Embedded(NamedTuple):
    """Unit vectors, shape (texts, dimensions), and what the provider is to be paid for, if anything."""

    vectors: NDArray[np.float32]
    called: Called | None = None


class Unusable(ModelError):
    """A model answered, and is charged for, but what it answered is no reply: empty, or a refusal."""

    def __init__(self, why: str, reply: Reply) -> None:
        super().__init__(why)
        self.reply = reply


class Completer(Protocol):
    """A model that answers a prompt. Raises ModelError."""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply, never empty."""
        ...


class Embedder(Protocol):
    """A model that turns texts into vectors. Raises ModelError."""

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """One unit vector a text."""
        ...
