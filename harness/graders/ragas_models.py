"""Give ragas our models in the form that it wants. Only `ragas.py` imports it, after it has silenced ragas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics import collections

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.strategies.base import ModelError

from ..models import Reply, Unusable
from ..models.recorded import ModelRequest

if TYPE_CHECKING:
    from ..models import Models

TOKENS = 2_000
"""The most tokens of a reply: lists of statements are long."""


class RagasCalls:
    """The model calls of a metric of ragas for one item."""

    def __init__(self, models: Models, counter: TokenCounter, model: str = "", prompt: str = "") -> None:
        self._models, self._counter, self._model, self._prompt = models, counter, model, prompt
        self.charged: list[tuple[int, int, float | None]] = []
        """Input tokens, output tokens and cost of each call that was answered."""
        self._problem: Missing | None = None
        # Set when the model cut a text into no statements at all: ragas would score that 0.
        self._nothing = False

    def metric(self, kind: str, needs: Iterable[str], options: Iterable[tuple[str, int]]) -> Any:
        """Return a metric of ragas over these calls. Raises ImportError where a library that it needs is missing."""
        parts = {"llm": _Llm(self), "embeddings": _Embeddings(self)}
        return getattr(collections, kind)(**{name: parts[name] for name in needs}, **dict(options))

    def score(self, metric: Any, inputs: Mapping[str, Any]) -> float | Missing:
        """Return the metric's value, or why there is none: ragas takes some failures for a score."""
        try:
            value: float | Missing = float(asyncio.run(metric.ascore(**inputs)).value)
        except Exception as error:
            value = Missing("unusable", f"ragas: {type(error).__name__}: {error}")
        else:
            if self._nothing:
                value = Missing("undefined", "ragas found no statement to judge")
        return value if self._problem is None else self._problem

    def chat(self, prompt: str, kind: type[BaseModel]) -> BaseModel:
        """Return a reply of that kind. Raises ModelError, and remembers it."""
        schema = kind.model_json_schema()
        try:
            reply = self._models.chat(
                ModelRequest(self._model, prompt, 0.0, TOKENS, schema=schema, prompt=self._prompt), self._counter
            )
            self._charge(reply)
            parsed = kind.model_validate_json(reply.text)
        except Unusable as error:
            self._charge(error.reply)
            raise self._failed("unusable", str(error)) from None
        except ModelError as error:
            raise self._failed("failed", str(error)) from None
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise self._failed("unusable", f"{self._model}: its reply is not what ragas asked for: {what}") from None
        self._nothing = self._nothing or any(value == [] for _, value in parsed)
        return parsed

    def embed(self, text: str) -> list[float]:
        """Return a unit vector. Raises ModelError, and remembers it."""
        try:
            embedded = self._models.embed([text], False, self._counter)
        except ModelError as error:
            raise self._failed("failed", str(error)) from None
        if embedded.called is not None:
            self.charged.append((embedded.called.input_tokens, 0, embedded.called.cost))
        return [float(value) for value in embedded.vectors[0]]

    def _charge(self, reply: Reply) -> None:
        self.charged.append((reply.input_tokens, reply.output_tokens, reply.cost))

    def _failed(self, why: Literal["failed", "unusable"], detail: str) -> ModelError:
        if self._problem is None:
            self._problem = Missing(why, detail)
        return ModelError(detail)


class _Llm(InstructorBaseRagasLLM):  # type: ignore[misc]
    def __init__(self, calls: RagasCalls) -> None:
        self._calls = calls

    def generate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        return self._calls.chat(prompt, response_model)

    async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        return self._calls.chat(prompt, response_model)


class _Embeddings(BaseRagasEmbedding):  # type: ignore[misc]
    def __init__(self, calls: RagasCalls) -> None:
        super().__init__()
        self._calls = calls

    def embed_text(self, text: str, **_: Any) -> list[float]:
        return self._calls.embed(text)

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return self._calls.embed(text)
