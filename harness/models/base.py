"""Replies and vectors that models return, and the error for a reply that cannot be used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.model import ToolCall
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.events import Called


class Reply(NamedTuple):
    """A model's reply, and its usage."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None = the price is not known."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that it calls instead of an answer, or beside one."""


class Embedded(NamedTuple):
    """Unit vectors, shape (texts, dimensions), and the provider's bill for them, if there is one."""

    vectors: NDArray[np.float32]
    called: Called | None = None


class Unusable(ModelError):
    """A model replied, and is charged for, but its reply cannot be used: empty, cut, or a refusal."""

    def __init__(self, why: str, reply: Reply) -> None:
        super().__init__(why)
        self.reply = reply
