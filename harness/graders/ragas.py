"""The grader `ragas`: a metric of ragas 0.4 through our own model access (extra `ragas`).

Its prompts and its arithmetic are ragas's. The calls are ours: cassette, limits, local models, temperature 0, the reply
held to its schema, no retries. A call that fails or a reply of another form makes the item Missing: ragas itself would
score some of these 0, or average over what is left.

Nothing of ragas leaves this machine: its tracking is off, and the user id that it would write to the home is not made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ...scenarios.errors import MissingExtra
from .llm import READ, digest

if TYPE_CHECKING:
    pass


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
    """What a metric of ragas is made of and given."""

    kind: str
    """The class in `ragas.metrics.collections`."""
    asks: tuple[str, ...]
    """What it is given of an item."""
    needs: tuple[str, ...] = ()
    """Models: `llm`, `embeddings`."""
    options: tuple[tuple[str, Any], ...] = ()


_REFERENCE = ("response", "reference")
METRICS: Mapping[str, RagasInputs] = {
    "faithfulness": RagasInputs("Faithfulness", ("user_input", "response", "retrieved_contexts"), ("llm",)),
    "factual_correctness": RagasInputs("FactualCorrectness", _REFERENCE, ("llm",)),
    "context_recall": RagasInputs("ContextRecall", ("user_input", "retrieved_contexts", "reference"), ("llm",)),
    # it asks the same three times; at temperature 0 once is the same
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
        return digest("ragas", ragas_version(), self.metric, READ)


def ragas_version() -> str:
    """Return the version of ragas that is installed. Raises MissingExtra if it is not."""
    try:
        return version("ragas")
    except PackageNotFoundError:
        raise MissingExtra("ragas", "ragas") from None
