"""Access to models of any kind, and their replies: a text, or vectors, and what they cost."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import ToolCall
from ctxbench.scenarios.spec import NonNegativeFloat, build, single
from ctxbench.strategies.base import ModelError
from ctxbench.strategies.events import Called


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Parameters of a model: how it is reached, and how much it may answer. No recorded reply depends on them."""

    api_base: str = ""
    """The server, if it is not where litellm says."""
    gguf: str = ""
    """The weights of `local`; empty = those of `make local-model`."""
    window: Annotated[int, msgspec.Meta(ge=512, le=1_000_000)] = 32_768
    """Tokens of a prompt and its reply that `local` takes; the fewer, the less memory."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=30 * 24 * 3600)] = 60.0
    """Seconds for one call, however slowly it drips in."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4
    backoff: NonNegativeFloat = 1.0
    """Seconds before the first retry; doubled each time."""
    patience: NonNegativeFloat = 60.0
    """Most seconds of a wait: a provider that asks for more is given up."""
    parallel: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 4
    """Calls at once in one process."""
    answer_tokens: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 256
    """Tokens that an answer to a probe may take; a reasoning model needs more."""
    rounds: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4
    """Rounds of tool calls before a probe has to be answered."""


API_BASE, MODELS = "CTXBENCH_API_BASE", "CTXBENCH_MODELS"


def usual_access() -> ModelAccess:
    """Return the access that the environment gives models: a server, and parameters such as `timeout=30, retries=8`."""
    access = ModelAccess(api_base=os.environ.get(API_BASE, ""))
    try:
        return model_spec(f"{MODELS}({os.environ.get(MODELS, '')})", access)[1]
    except SpecError as error:
        where = f"[models] of ctxbench.toml, or {MODELS},"
        raise SpecError(str(error).replace(f"model {MODELS!r}:", where).replace(f"model {MODELS!r}", where)) from None


def model_spec(text: str, usual: ModelAccess) -> tuple[str, ModelAccess]:
    """Return the name of a model and its access, which is the usual one but for the parameters that are given.

    Raises SpecError for a parameter that is unknown, mistyped or out of bounds.
    """
    name, bracket, parameters = text.partition("(")
    if not bracket:
        return text, usual
    one = single(f"{name.strip()!r}({parameters}", "model")
    own = build(one, {one.name: ModelAccess}, "model")
    return one.name, replace(usual, **{key: getattr(own, key) for key in one.parameters})


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
