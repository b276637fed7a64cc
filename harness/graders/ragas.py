"""Grade with a metric of ragas 0.4 through our own model access (extra `ragas`).

Its prompts and its arithmetic are those of ragas. The calls are ours: cassette, limits, local models, temperature 0,
the reply held to its schema, no retries. A call that fails or a reply of another form makes the item Missing: ragas
itself would score some of these 0, or average over the rest.

Nothing of ragas leaves this machine: its tracking is off, and the user id that it would write to the home folder is not
created.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, NamedTuple

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.spec import spec

from ..models import Models
from .llm import READ, GraderUsage, cut, digest, seen

Name = Literal[
    "faithfulness",
    "factual_correctness",
    "context_recall",
    "answer_relevancy",
    "answer_accuracy",
    "semantic_similarity",
    "bleu_score",
    "chrf_score",
    "rouge_score",
    "exact_match",
    "string_presence",
    "string_similarity",
]


class RagasInputs(NamedTuple):
    """The class, inputs and models of a metric of ragas."""

    kind: str
    """The class in `ragas.metrics.collections`."""
    asks: tuple[str, ...]
    """The fields of an item that it is given."""
    needs: tuple[str, ...] = ()
    """Models: `llm`, `embeddings`."""
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

    metric: Name
    model: str = ""
    """With its parameters: `openai/qwen3(timeout=30)`. Empty = local."""
    threshold: float = 0.5
    """An answer is correct from this score on."""
    longest: int = 8_000
    """Characters of one text that are shown."""
    prompt: str = ""
    """The digest of the version of ragas, which has its prompts, to accept only this one."""
    embedder: str = ""
    """The embedder whose vectors are compared. Empty = the run's."""

    def asks_a_model(self) -> bool:
        """Return whether the metric needs a chat model."""
        return "llm" in METRICS[self.metric].needs

    def digest(self) -> str:
        """Return a digest of the version of ragas and the metric."""
        return digest("ragas", ragas_version(), self.metric, READ)


def ragas_version() -> str:
    """Return the version of ragas that is installed. Raises MissingExtra if it is not."""
    try:
        return version("ragas")
    except PackageNotFoundError:
        raise MissingExtra("ragas", "ragas") from None


class RagasGrader:
    """Grades by a metric of ragas. Of several accepted answers the best counts."""

    def __init__(self, how: Ragas, models: Models) -> None:
        """Prepare the metric. Raises MissingExtra where ragas, or a library that it needs, cannot be imported."""
        _prepare()
        from .ragas_models import RagasMetric

        self._metric = metric = METRICS[how.metric]
        embedder = models.settings.embedder if "embeddings" in metric.needs else ""
        self.how = replace(how, embedder=embedder, prompt=how.digest())
        self._scorer = RagasMetric(metric.kind, metric.needs, dict(metric.options), models)
        self._models, self.used = models, GraderUsage()

    @property
    def name(self) -> str:
        """`ragas(metric='…', model='…', prompt='…')`."""
        return spec("ragas", self.how)

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item: several at once, each in a thread with an event loop of its own."""
        at_once = self._models.settings.access_of(self.how.model).parallel
        pool = ThreadPoolExecutor(at_once if self._metric.needs else 1)
        try:
            graded = list(pool.map(self._graded, items))
        finally:
            pool.shutdown(cancel_futures=True)
        for _, used in graded:
            self.used.take(used)
        return [grade for grade, _ in graded]

    def _graded(self, item: GradedItem) -> tuple[Grade | Missing, GraderUsage]:
        used, scores = GraderUsage(), list[float]()
        references = item.accepted if "reference" in self._metric.asks else ("",)
        if not references:
            return Missing("undefined", f"{self.how.metric} needs an accepted answer"), used
        for reference in references:
            score = self._score(item, reference, used)
            if isinstance(score, Missing):
                return score, used
            scores.append(score)
        best = max(scores)
        return Grade(best >= self.how.threshold, best, f"{self.how.metric} {best:.3f}"), used

    def _score(self, item: GradedItem, reference: str, used: GraderUsage) -> float | Missing:
        fields: dict[str, str | list[str]] = {
            "user_input": self._shown(item.question),
            "response": self._shown(item.candidate),
            "reference": self._shown(reference),
            "retrieved_contexts": [self._shown(text) for text in item.evidence],
        }
        inputs = {name: fields[name] for name in self._metric.asks}
        if lacking := [name for name, value in inputs.items() if not value or value == [""]]:
            return Missing("undefined", f"{self.how.metric} needs a {lacking[0]}, and the item has none")
        value = self._scorer.score(inputs, self.how.model, f"ragas-{self.how.metric}@{self.how.prompt}", used)
        if not isinstance(value, Missing) and math.isnan(value):
            return Missing("undefined", f"{self.how.metric} came to no number")
        return value

    def _shown(self, text: str) -> str:
        return cut(seen(text), self.how.longest)


def _prepare() -> None:
    """Import ragas, without what it would send or write. Raises MissingExtra."""
    ragas_version()
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import appdirs

        place = appdirs.user_data_dir
        appdirs.user_data_dir = _nowhere  # ragas takes an id that is not kept where there is no such folder
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what ragas imports; ours are errors in the tests
                from . import ragas_models  # noqa: F401
        finally:
            appdirs.user_data_dir = place
    except ImportError as error:
        raise MissingExtra(f"ragas ({error})", "ragas") from None


def _nowhere(*_: object, **__: object) -> str:
    raise OSError("no place for a user id")
