"""The grader `ragas`: a metric of ragas 0.4 through our own model access (extra `ragas`).

Its prompts and its arithmetic are ragas's. The calls are ours: cassette, limits, local models, temperature 0, the reply
held to its schema, no retries. A call that fails or a reply of another form makes the item Missing: ragas itself would
score some of these 0, or average over what is left.

Nothing of ragas leaves this machine: its tracking is off, and the user id that it would write to the home is not made.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...metrics.grading import Grade, Item
from ...metrics.value import Missing
from ...scenarios.errors import MissingExtra
from ...scenarios.spec import spec
from .prompts import digest
from .text import READ, cut, seen
from .usage import Used

if TYPE_CHECKING:
    from ..models import Models

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


class Wanted(NamedTuple):
    """What a metric of ragas is made of and given."""

    kind: str
    """The class in `ragas.metrics.collections`."""
    asks: tuple[str, ...]
    """What it is given of an item."""
    needs: tuple[str, ...] = ()
    """Models: `llm`, `embeddings`."""
    options: tuple[tuple[str, Any], ...] = ()


_REFERENCE = ("response", "reference")
METRICS: Mapping[str, Wanted] = {
    "faithfulness": Wanted("Faithfulness", ("user_input", "response", "retrieved_contexts"), ("llm",)),
    "factual_correctness": Wanted("FactualCorrectness", _REFERENCE, ("llm",)),
    "context_recall": Wanted("ContextRecall", ("user_input", "retrieved_contexts", "reference"), ("llm",)),
    # it asks the same three times; at temperature 0 once is the same
    "answer_relevancy": Wanted(
        "AnswerRelevancy", ("user_input", "response"), ("llm", "embeddings"), (("strictness", 1),)
    ),
    "answer_accuracy": Wanted("AnswerAccuracy", ("user_input", *_REFERENCE), ("llm",), (("max_retries", 1),)),
    "semantic_similarity": Wanted("SemanticSimilarity", _REFERENCE, ("embeddings",)),
    "bleu_score": Wanted("BleuScore", _REFERENCE),
    "chrf_score": Wanted("CHRFScore", _REFERENCE),
    "rouge_score": Wanted("RougeScore", _REFERENCE),
    "exact_match": Wanted("ExactMatch", _REFERENCE),
    "string_presence": Wanted("StringPresence", _REFERENCE),
    "string_similarity": Wanted("NonLLMStringSimilarity", _REFERENCE),
}


@dataclass(frozen=True, slots=True)
class Ragas:
    """Which metric grades, as it is written in a spec."""

    metric: Name
    model: str = ""
    """Empty = the run's grader."""
    threshold: float = 0.5
    """An answer is correct from this score on."""
    longest: int = 8_000
    """Characters of one text that are shown."""
    prompt: str = ""
    """The digest of ragas's version, which has its prompts, if only this one will do."""
    embedder: str = ""
    """Whose vectors are compared. Empty = the run's."""

    def asks_a_model(self) -> bool:
        """Whether the metric needs a chat model."""
        return "llm" in METRICS[self.metric].needs

    def digest(self) -> str:
        """Of ragas's version and the metric."""
        return digest("ragas", _version(), self.metric, READ)


class RagasGrader:
    """Grades by a metric of ragas. Of several accepted answers the best counts."""

    def __init__(self, how: Ragas, models: Models) -> None:
        """Raises MissingExtra where ragas, or what the metric needs, cannot be imported."""
        _prepare()
        from .ragas_models import Metric

        self._metric = METRICS[how.metric]
        embedder = models.settings.embedder if "embeddings" in self._metric.needs else ""
        self.how = replace(how, embedder=embedder, prompt=how.digest())
        self._models, self._made, self.used = models, Metric(self._metric, models), Used()

    @property
    def name(self) -> str:
        """`ragas(metric='…', model='…', prompt='…')`."""
        return spec("ragas", self.how)

    def grade(self, items: Sequence[Item]) -> list[Grade | Missing]:
        """A grade each. Several at once, each in a thread with an event loop of its own."""
        pool = ThreadPoolExecutor(self._models.settings.concurrency if self._metric.needs else 1)
        try:
            found = list(pool.map(self._graded, items))
        finally:
            pool.shutdown(cancel_futures=True)
        for _, used in found:
            self.used.take(used)
        return [grade for grade, _ in found]

    def _graded(self, item: Item) -> tuple[Grade | Missing, Used]:
        used, scores = Used(), list[float]()
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

    def _score(self, item: Item, reference: str, used: Used) -> float | Missing:
        given: dict[str, str | list[str]] = {
            "user_input": self._shown(item.question),
            "response": self._shown(item.candidate),
            "reference": self._shown(reference),
            "retrieved_contexts": [self._shown(text) for text in item.evidence],
        }
        asked = {name: given[name] for name in self._metric.asks}
        if lacking := [name for name, value in asked.items() if not value or value == [""]]:
            return Missing("undefined", f"{self.how.metric} needs a {lacking[0]}, and the item has none")
        value = self._made.score(asked, self.how.model, f"ragas-{self.how.metric}@{self.how.prompt}", used)
        if not isinstance(value, Missing) and math.isnan(value):
            return Missing("undefined", f"{self.how.metric} came to no number")
        return value

    def _shown(self, text: str) -> str:
        return cut(seen(text), self.how.longest)


def _version() -> str:
    try:
        return version("ragas")
    except PackageNotFoundError:
        raise MissingExtra("ragas", "ragas") from None


def _prepare() -> None:
    """Import ragas, without what it would send or write. Raises MissingExtra."""
    _version()
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import appdirs

        place = appdirs.user_data_dir
        appdirs.user_data_dir = _nowhere  # ragas takes an id that is not kept where there is no such folder
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from . import ragas_models  # noqa: F401
        finally:
            appdirs.user_data_dir = place
    except ImportError as error:
        raise MissingExtra(f"ragas ({error})", "ragas") from None


def _nowhere(*_: object, **__: object) -> str:
    raise OSError("no place for a user id")
