"""Grade with the next token of a local model: the grader `logit`.

After some examples that end in Yes or No the model reads an item, and the score is logit(" Yes") - logit(" No") of the
next token. Nothing is sampled and nothing is parsed: the same item has the same bits. Of several accepted answers, each
read by itself, the best counts. Every text is put on one line, so that none can start an example of its own.
docs/decisions/0025-model-graders.md says why this prompt, with figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.language import sentences, terms
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.spec import spec
from ctxbench.strategies.base import ModelError

from ..models import Models
from ..models.recorded import Choice
from .llm import PROMPTS, READ, Length, cut, digest, seen
from .profiles import GraderUsage

_PARTS_ASKED = 3
_PARTS = re.compile(r"(?<=[?？])|[!！。‹›]")
YES, NO = " Yes", " No"
LARGEST = 100.0
"""Larger than any difference of two log probabilities of likely tokens."""
_TEXTS = PROMPTS["logit"]


def filled(question: str, accepted: str, candidate: str) -> str:
    """Return an item as the model reads it, up to where it says Yes or No."""
    template: str = _TEXTS["template"]
    return template.format(question=question, accepted=accepted.rstrip(" .。"), candidate=candidate)


PREFIX = "".join(
    f"{filled(example['question'], example['accepted'], example['candidate'])}{example['reply']}\n\n"
    for example in _TEXTS["examples"]
)
PROMPT = f"logit@{digest(PREFIX, _TEXTS['template'])}"


@dataclass(frozen=True, slots=True)
class Logit:
    """The parameters of the grader `logit`, as written in a spec."""

    model: str = ""
    """With its parameters: `local(gguf="FILE")`. Empty = local. Only `local` reports how likely a token is."""
    threshold: float = 0.0
    """An answer is correct above this."""
    longest: Length = 1_500
    prompt: str = ""
    """The digest of its prompt, to accept only this one."""

    def digest(self) -> str:
        """Return a digest of the prompt, and of how texts are read."""
        return digest(PROMPT, READ)


class LogitGrader:
    """Grades with the next token of a local model. It compares with accepted answers: a rubric alone is not enough."""

    def __init__(self, how: Logit, models: Models) -> None:
        """`how.model` is the full name of an available model."""
        self.how, self._models = replace(how, prompt=how.digest()), models
        self.used = GraderUsage()

    @property
    def name(self) -> str:
        """`logit(model='…', prompt='…')`."""
        return spec("logit", self.how)

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item, one after the other: the model is in this process."""
        return [self._graded(item) for item in items]

    def _graded(self, item: GradedItem) -> Grade | Missing:
        if not item.accepted:
            return Missing("unsupported", f"a question of the kind {item.kind} has no answer to compare with")
        candidate = seen(item.candidate)
        if not candidate.strip():
            return Grade(False, -LARGEST, "the answer is empty")
        # The parts of the question that ask, or all of it if none has a question mark.
        asked = seen(item.question)
        parts = (part.strip() for part in _PARTS.split(asked))
        question = " ".join(part for part in parts if part.endswith(("?", "？"))) or asked
        scores: dict[str, float] = {}
        try:
            for accepted in map(seen, item.accepted):
                scores[accepted] = self._score(question, accepted, candidate)
        except ModelError as error:
            return Missing("failed", str(error))
        if not all(map(math.isfinite, scores.values())):
            return Missing("unusable", f"{self.how.model}: neither Yes nor No is among its likeliest tokens")
        best = max(scores, key=lambda accepted: scores[accepted])
        score = scores[best]
        return Grade(score > self.how.threshold, score, f"logit(Yes) - logit(No) is {score:.2f} for {best[:60]!r}")

    def _score(self, question: str, accepted: str, candidate: str) -> float:
        """Return the lowest score of the sentences of an accepted answer: the candidate has to say all of it.

        Who writes the accepted answer decides what is right: a sentence that is slipped into it can only make an answer
        look wrong. -inf if the model takes neither Yes nor No to be likely. Raises ModelError.
        """
        least, parts = LARGEST, sentences(accepted)
        for part in parts if 1 < len(parts) <= _PARTS_ASKED else [accepted]:
            # Sentences of the answer that share a word with question or part, or all of them if none does. As a rule a
            # sentence of an answer does, and one that speaks to the grader or fills space does not. Of the defences
            # against attacks the one that counted; it cost one answer of 120 (decision 25).
            topics = {*terms(question), *terms(part)}
            said = sentences(re.sub("[‹›]", "\n", candidate))
            on_topic = [sentence for sentence in said if not topics.isdisjoint(terms(sentence))]
            read = cut(" ".join(on_topic or said), self.how.longest)
            # On one line each, with single white space.
            text = filled(*(" ".join(text.split()) for text in (question, part, read)))
            choice = self._models.choose(Choice(self.how.model, PREFIX, text, (YES, NO), PROMPT))
            self.used.add(choice.input_tokens)
            if not choice.logprobs:
                return -math.inf
            least = min(least, round(choice.of(YES) - choice.of(NO), 4))
        return least
