"""Grade with a metric of ragas 0.4 through our own model access (extra `ragas`).

Its prompts and its arithmetic are those of ragas. The calls are ours: cassette, limits, local models, temperature 0,
the reply held to its schema, no retries. A call that fails or a reply of another form makes the item Missing: ragas
itself would score some of these 0, or average over the rest.

Nothing of ragas leaves this machine: its tracking is off, and the user id that it would write to the home folder is not
created.
"""

from __future__ import annotations

import asyncio
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.spec import nearest, spec
from ctxbench.strategies.base import ModelError

from ..models import Models, Unusable
from ..models.recorded import ModelRequest, at_once
from .llm import READ, Length, cut, digest, seen
from .profiles import GraderUsage

if TYPE_CHECKING:
    from pydantic import BaseModel

TOKENS = 2_000  # the most tokens of a reply: lists of statements are long


class RagasInputs(NamedTuple):
    """The class, inputs and models of a metric of ragas."""

    kind: str  # the class in `ragas.metrics.collections`
    asks: tuple[str, ...]  # the fields of an item that it is given
    needs: tuple[str, ...] = ()  # models: `llm`, `embeddings`
    options: tuple[tuple[str, int], ...] = ()


_REFERENCE = ("response", "reference")
METRICS: Mapping[str, RagasInputs] = {
    "faithfulness": RagasInputs("Faithfulness", ("user_input", "response", "retrieved_contexts"), ("llm",)),
    "factual_correctness": RagasInputs("FactualCorrectness", _REFERENCE, ("llm",)),
    "context_recall": RagasInputs("ContextRecall", ("user_input", "retrieved_contexts", "reference"), ("llm",)),
    # By default it asks three times; at temperature 0 the three replies are the same.
    "answer_relevancy": RagasInputs(
        "AnswerRelevancy", ("user_input", "response"), ("llm", "embeddings"), (("strictness", 1),)
    ),
    "answer_accuracy": RagasInputs("AnswerAccuracy", ("user_input", *_REFERENCE), ("llm",), (("max_retries", 1),)),
    "semantic_similarity": RagasInputs("SemanticSimilarity", _REFERENCE, ("embeddings",)),
    "bleu_score": RagasInputs("BleuScore", _REFERENCE),
    "chrf_score": RagasInputs("CHRFScore", _REFERENCE),
    "rouge_score": RagasInputs("RougeScore", _REFERENCE),
    "exact_match": RagasInputs("ExactMatch", _REFERENCE),
    "string_presence": RagasInputs("StringPresence", _REFERENCE),
    "string_similarity": RagasInputs("NonLLMStringSimilarity", _REFERENCE),
}


@dataclass(frozen=True, slots=True)
class Ragas:
    """The parameters of the grader `ragas`, as written in a spec."""

    metric: str  # one of METRICS
    model: str = ""
    """With its parameters: `openai/qwen3(timeout=30)`. Empty = local."""
    threshold: float = 0.5  # an answer is correct from this score on
    longest: Length = 8_000
    prompt: str = ""  # the digest of the version of ragas, which has its prompts, to accept only this one
    embedder: str = ""
    """The embedder whose vectors are compared. Empty = the run's."""

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}{nearest(self.metric, METRICS)}")

    def digest(self) -> str:
        """Return a digest of the version of ragas and the metric. Raises MissingExtra if it is not installed."""
        try:
            return digest("ragas", version("ragas"), self.metric, READ)
        except PackageNotFoundError:
            raise MissingExtra("ragas", "ragas") from None


class RagasGrader:
    """Grades by a metric of ragas. Of several accepted answers the best counts."""

    def __init__(self, how: Ragas, models: Models) -> None:
        """Prepare the metric. Raises MissingExtra where ragas, or a library that it needs, cannot be imported."""
        self._metric, self._models, self._counter = METRICS[how.metric], models, TokenCounter()
        embedder = models.settings.embedder if "embeddings" in self._metric.needs else ""
        self.how = replace(how, embedder=embedder, prompt=how.digest())
        self.name, self.used = spec("ragas", self.how), GraderUsage()
        try:
            self._of_ragas(self._calls())  # fails early where a library is missing
        except ImportError as error:
            raise MissingExtra(f"ragas ({error})", "ragas") from None

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item: several at once, each in a thread with an event loop of its own."""
        workers = self._models.settings.access_of(self.how.model).parallel if self._metric.needs else 1
        graded = at_once(self._graded, items, workers)
        for _, calls in graded:
            for charge in calls.charged:
                self.used.add(*charge)
        return [grade for grade, _ in graded]

    def _calls(self) -> RagasCalls:
        return RagasCalls(self._models, self._counter, self.how.model, f"ragas-{self.how.metric}@{self.how.prompt}")

    def _of_ragas(self, calls: RagasCalls) -> Any:
        metrics, models = _library()
        kind = getattr(metrics, self._metric.kind)
        return kind(**{name: models[name](calls) for name in self._metric.needs}, **dict(self._metric.options))

    def _graded(self, item: GradedItem) -> tuple[Grade | Missing, RagasCalls]:
        how, calls, scores = self.how, self._calls(), list[float]()
        references = item.accepted if "reference" in self._metric.asks else ("",)
        if not references:
            return Missing("undefined", f"{how.metric} needs an accepted answer"), calls
        for reference in references:
            texts = {"user_input": item.question, "response": item.candidate, "reference": reference}
            fields: dict[str, str | list[str]] = {name: cut(seen(text), how.longest) for name, text in texts.items()}
            fields["retrieved_contexts"] = [cut(seen(text), how.longest) for text in item.evidence]
            inputs = {name: fields[name] for name in self._metric.asks}
            if lacking := [name for name, value in inputs.items() if not value or value == [""]]:
                return Missing("undefined", f"{how.metric} needs a {lacking[0]}, and the item has none"), calls
            score = calls.score(self._of_ragas(calls), inputs)
            if isinstance(score, Missing):
                return score, calls
            if math.isnan(score):
                return Missing("undefined", f"{how.metric} came to no number"), calls
            scores.append(score)
        best = max(scores)
        return Grade(best >= how.threshold, best, f"{how.metric} {best:.3f}"), calls


class RagasCalls:
    """The model calls of a metric of ragas for one item."""

    def __init__(self, models: Models, counter: TokenCounter, model: str, prompt: str) -> None:
        self._models, self._counter, self._model, self._prompt = models, counter, model, prompt
        self.charged: list[tuple[int, int, float | None]] = []
        """Input tokens, output tokens and cost of each call that was answered."""
        self._problem: Missing | None = None
        # Set when the model cut a text into no statements at all: ragas would score that 0.
        self._nothing = False

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
        from pydantic import ValidationError

        schema = kind.model_json_schema()
        try:
            reply = self._models.chat(
                ModelRequest(self._model, prompt, 0.0, TOKENS, schema=schema, prompt=self._prompt), self._counter
            )
            self.charged.append((reply.input_tokens, reply.output_tokens, reply.cost))
            parsed = kind.model_validate_json(reply.text)
        except Unusable as error:
            self.charged.append((error.reply.input_tokens, error.reply.output_tokens, error.reply.cost))
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

    def _failed(self, why: Literal["failed", "unusable"], detail: str) -> ModelError:
        if self._problem is None:
            self._problem = Missing(why, detail)
        return ModelError(detail)


@cache
def _library() -> tuple[Any, dict[str, Callable[[RagasCalls], Any]]]:
    """Import ragas, which may send and write nothing: its metrics, our models in its form. Raises ImportError."""
    import appdirs

    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else its import reads a .env

    def nowhere(*_: object, **__: object) -> str:
        raise OSError("no place for a user id")

    place = appdirs.user_data_dir
    appdirs.user_data_dir = nowhere  # ragas takes an id that is not kept where there is no such folder
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what ragas imports; ours are errors in the tests
            from ragas.embeddings.base import BaseRagasEmbedding
            from ragas.llms.base import InstructorBaseRagasLLM
            from ragas.metrics import collections
    finally:
        appdirs.user_data_dir = place

    class Llm(InstructorBaseRagasLLM):  # type: ignore[misc]
        def __init__(self, calls: RagasCalls) -> None:
            self._calls = calls

        def generate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
            return self._calls.chat(prompt, response_model)

        async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
            return self._calls.chat(prompt, response_model)

    class Embeddings(BaseRagasEmbedding):  # type: ignore[misc]
        def __init__(self, calls: RagasCalls) -> None:
            super().__init__()
            self._calls = calls

        def embed_text(self, text: str, **_: Any) -> list[float]:
            return self._calls.embed(text)

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self._calls.embed(text)

    return collections, {"llm": Llm, "embeddings": Embeddings}
