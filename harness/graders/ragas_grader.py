"""The grader that has a metric of ragas computed through our own model access. Imports ragas when it is made."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from ...metrics.grading import Grade, GradedItem
from ...metrics.value import Missing
from ...scenarios.errors import MissingExtra
from ...scenarios.spec import spec
from .llm import GraderUsage, cut, seen
from .ragas import METRICS, Ragas, ragas_version

if TYPE_CHECKING:
    from ..models import Models


class RagasGrader:
    """Grades by a metric of ragas. Of several accepted answers the best counts."""

    def __init__(self, how: Ragas, models: Models) -> None:
        """Raises MissingExtra where ragas, or what the metric needs, cannot be imported."""
        _prepare()
        from .ragas_models import RagasMetric

        self._metric = METRICS[how.metric]
        embedder = models.settings.embedder if "embeddings" in self._metric.needs else ""
        self.how = replace(how, embedder=embedder, prompt=how.digest())
        self._models, self._made, self.used = models, RagasMetric(self._metric, models), GraderUsage()

    @property
    def name(self) -> str:
        """`ragas(metric='…', model='…', prompt='…')`."""
        return spec("ragas", self.how)

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """A grade each. Several at once, each in a thread with an event loop of its own."""
        pool = ThreadPoolExecutor(self._models.settings.concurrency if self._metric.needs else 1)
        try:
            found = list(pool.map(self._graded, items))
        finally:
            pool.shutdown(cancel_futures=True)
        for _, used in found:
            self.used.take(used)
        return [grade for grade, _ in found]

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
                warnings.simplefilter("ignore")
                from . import ragas_models  # noqa: F401
        finally:
            appdirs.user_data_dir = place
    except ImportError as error:
        raise MissingExtra(f"ragas ({error})", "ragas") from None


def _nowhere(*_: object, **__: object) -> str:
    raise OSError("no place for a user id")
