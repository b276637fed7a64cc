"""Give ragas our models in the form that it wants. Only `ragas.py` imports it, after it has silenced ragas."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics import collections

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.strategies.base import ModelError

from ..models import Unusable
from ..models.recorded import ModelRequest
from .llm import GraderUsage

if TYPE_CHECKING:
    from ..models import Models

TOKENS = 2_000
"""The most tokens of a reply: lists of statements are long."""


class RagasMetric:
    """A metric of ragas over our models."""

    def __init__(self, kind: str, needs: Sequence[str], options: Mapping[str, Any], models: Models) -> None:
        """`kind` is a class in `ragas.metrics.collections`, `needs` are the models that it takes."""
        self._kind, self._needs, self._options = getattr(collections, kind), needs, options
        self._models, self._counter = models, TokenCounter()
        self._metric(_Calls("", "", models, self._counter, GraderUsage()))  # fails early where a library is missing

    def score(self, inputs: Mapping[str, Any], model: str, prompt: str, used: GraderUsage) -> float | Missing:
        """Return the metric's value, or why there is none: ragas takes some failures for a score."""
        calls = _Calls(model, prompt, self._models, self._counter, used)
        try:
            value = float(asyncio.run(self._metric(calls).ascore(**inputs)).value)
        except Exception as error:
            if calls.problem is not None:
                return calls.problem
            return Missing("unusable", f"ragas: {type(error).__name__}: {error}")
        if calls.problem is not None:
            return calls.problem
        return Missing("undefined", "ragas found no statement to judge") if calls.nothing else value

    def _metric(self, calls: _Calls) -> Any:
        parts = {"llm": _Llm(calls), "embeddings": _Embeddings(calls)}
        return self._kind(**{name: parts[name] for name in self._needs}, **self._options)


class _Calls:
    """The model calls for one item."""

    def __init__(self, model: str, prompt: str, models: Models, counter: TokenCounter, used: GraderUsage) -> None:
        self.model, self.prompt, self.models, self.counter, self.used = model, prompt, models, counter, used
        self.problem: Missing | None = None
        # Set when the model cut a text into no statements at all: ragas would score that 0.
        self.nothing = False

    def chat(self, prompt: str, kind: type[BaseModel]) -> BaseModel:
        """Return a reply of that kind. Raises ModelError, and remembers it."""
        schema = kind.model_json_schema()
        request = ModelRequest(self.model, prompt, 0.0, TOKENS, schema=schema, prompt=self.prompt)
        try:
            reply = self.models.chat(request, self.counter)
            self.used.add(reply.input_tokens, reply.output_tokens, reply.cost)
            parsed = kind.model_validate_json(reply.text)
        except Unusable as error:
            self.used.add(error.reply.input_tokens, error.reply.output_tokens, error.reply.cost)
            raise self._failed("unusable", str(error)) from None
        except ModelError as error:
            raise self._failed("failed", str(error)) from None
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise self._failed("unusable", f"{self.model}: its reply is not what ragas asked for: {what}") from None
        self.nothing = self.nothing or any(value == [] for _, value in parsed)
        return parsed

    def embed(self, text: str) -> list[float]:
        """Return a unit vector. Raises ModelError, and remembers it."""
        try:
            embedded = self.models.embed([text], False, self.counter)
        except ModelError as error:
            raise self._failed("failed", str(error)) from None
        if embedded.called is not None:
            self.used.add(embedded.called.input_tokens, 0, embedded.called.cost)
        return [float(value) for value in embedded.vectors[0]]

    def _failed(self, why: Literal["failed", "unusable"], detail: str) -> ModelError:
        if self.problem is None:
            self.problem = Missing(why, detail)
        return ModelError(detail)


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
