"""Our models in the form that ragas wants. Only `ragas_grader` imports it, after it has silenced ragas."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics import collections

from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...strategies.base import ModelError
from ..models import Unusable
from ..models.recorded import ModelRequest
from .llm import GraderUsage

if TYPE_CHECKING:
    from ..models import Models
    from .ragas import RagasInputs

TOKENS = 2_000
"""The most tokens of a reply: lists of statements are long."""


class RagasMetric:
    """A metric of ragas over our models."""

    def __init__(self, wanted: RagasInputs, models: Models) -> None:
        self._wanted, self._models, self._counter = wanted, models, TokenCounter()
        self._kind = getattr(collections, wanted.kind)
        self._made(_Calls("", "", models, self._counter, GraderUsage()))  # a library that it needs may not be there

    def score(self, given: Mapping[str, Any], model: str, prompt: str, used: GraderUsage) -> float | Missing:
        """What the metric says, or what went wrong: ragas takes some failures for a score."""
        calls = _Calls(model, prompt, self._models, self._counter, used)
        try:
            value = float(asyncio.run(self._made(calls).ascore(**given)).value)
        except Exception as error:
            return Missing("failed", calls.problem or f"ragas: {type(error).__name__}: {error}")
        if calls.problem:
            return Missing("failed", calls.problem)
        return Missing("undefined", "ragas found no statement to judge") if calls.nothing else value

    def _made(self, calls: _Calls) -> Any:
        parts = {"llm": _Llm(calls), "embeddings": _Embeddings(calls)}
        return self._kind(**{name: parts[name] for name in self._wanted.needs}, **dict(self._wanted.options))


class _Calls:
    """The calls for one item."""

    def __init__(self, model: str, prompt: str, models: Models, counter: TokenCounter, used: GraderUsage) -> None:
        self.model, self.prompt, self.models, self.counter, self.used = model, prompt, models, counter, used
        self.problem = ""
        self.nothing = False
        """A text was asked to be cut into statements, and there were none."""

    def chat(self, prompt: str, kind: type[BaseModel]) -> BaseModel:
        """A reply of that kind. Raises ModelError, and remembers it."""
        schema = kind.model_json_schema()
        request = ModelRequest(self.model, prompt, 0.0, TOKENS, schema=schema, prompt=self.prompt)
        try:
            reply = self.models.chat(request, self.counter)
            self.used.add(reply.input_tokens, reply.output_tokens, reply.cost)
            made = kind.model_validate_json(reply.text)
        except Unusable as error:
            self.used.add(error.reply.input_tokens, error.reply.output_tokens, error.reply.cost)
            raise self._failed(str(error)) from None
        except ModelError as error:
            raise self._failed(str(error)) from None
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise self._failed(f"{self.model}: the reply is not of the form that ragas asked for: {what}") from None
        self.nothing = self.nothing or any(value == [] for _, value in made)
        return made

    def embed(self, text: str) -> list[float]:
        """A unit vector. Raises ModelError, and remembers it."""
        try:
            found = self.models.embed([text], False, self.counter)
        except ModelError as error:
            raise self._failed(str(error)) from None
        if found.called is not None:
            self.used.add(found.called.input_tokens, 0, found.called.cost)
        return [float(value) for value in found.vectors[0]]

    def _failed(self, why: str) -> ModelError:
        self.problem = self.problem or why
        return ModelError(why)


class _Llm(InstructorBaseRagasLLM):  # type: ignore[misc]
    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    def generate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        return self._calls.chat(prompt, response_model)

    async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        return self._calls.chat(prompt, response_model)


class _Embeddings(BaseRagasEmbedding):  # type: ignore[misc]
    def __init__(self, calls: _Calls) -> None:
        super().__init__()
        self._calls = calls

    def embed_text(self, text: str, **_: Any) -> list[float]:
        return self._calls.embed(text)

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return self._calls.embed(text)
