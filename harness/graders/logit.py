"""Grade with the next token of a local model: the grader `logit`.

After some examples that end in Yes or No the model reads an item, and the score is logit(" Yes") - logit(" No") of the
next token. Nothing is sampled and nothing is parsed: the same item has the same bits. Of several accepted answers, each
read by itself, the best counts. Every text is put on one line, so that none can start an example of its own.
docs/decisions/0025-model-graders.md says why this prompt, with figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.language import sentences
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.spec import spec
from ctxbench.strategies.base import ModelError

from ..models import Models
from ..models.recorded import Choice
from .llm import PROMPTS, READ, GraderPrompt, GraderUsage, cut, digest, on_topic, one_line, seen

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
PROMPT = GraderPrompt("logit", PREFIX, _TEXTS["template"])


@dataclass(frozen=True, slots=True)
class Logit:
    """The parameters of the grader `logit`, as written in a spec."""

    model: str = ""
    """With its parameters: `local(gguf="FILE")`. Empty = local. Only `local` reports how likely a token is."""
    threshold: float = 0.0
    """An answer is correct above this."""
    longest: int = 1_500
    """Characters of a candidate that are read."""
    prompt: str = ""
    """The digest of its prompt, to accept only this one."""

    def __post_init__(self) -> None:
        if self.longest < 100:
            raise ValueError("longest is 100 characters or more")

    def digest(self) -> str:
        """Return a digest of the prompt, and of how texts are read."""
        return digest(PROMPT.full, READ)


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
        question, candidate = _questions_of(seen(item.question)), seen(item.candidate)
        if not candidate.strip():
            return Grade(False, -LARGEST, "the answer is empty")
        scores: dict[str, float] = {}
        for accepted in map(seen, item.accepted):
            score = self._whole(question, accepted, candidate)
            if isinstance(score, Missing):
                return score
            scores[accepted] = score
        best = max(scores, key=lambda accepted: scores[accepted])
        score = scores[best]
        return Grade(score > self.how.threshold, score, f"logit(Yes) - logit(No) is {score:.2f} for {best[:60]!r}")

    def _whole(self, question: str, accepted: str, candidate: str) -> float | Missing:
        """Return the lowest score of the sentences of an accepted answer: the candidate has to say all of it.

        A sentence that is slipped into an accepted answer makes it harder to reach, never easier.
        """
        # Who writes the accepted answer decides what is right: what is put into it can only make an answer look wrong.
        least, parts = LARGEST, sentences(accepted)
        for part in parts if 1 < len(parts) <= _PARTS_ASKED else [accepted]:
            # Of the defences against attacks the one that counted; it cost one answer of 120 (decision 25).
            read = cut(on_topic(candidate, question, part), self.how.longest)
            score = self._score(one_line(question), one_line(part), one_line(read))
            if isinstance(score, Missing):
                return score
            least = min(least, score)
        return least

    def _score(self, question: str, accepted: str, candidate: str) -> float | Missing:
        text = filled(question, accepted, candidate)
        try:
            choice = self._models.choose(Choice(self.how.model, PREFIX, text, (YES, NO), PROMPT.full))
        except ModelError as error:
            return Missing("failed", str(error))
        self.used.add(choice.input_tokens)
        if not choice.logprobs:
            return Missing("unusable", f"{self.how.model}: neither Yes nor No is among its likeliest tokens")
        return round(choice.of(YES) - choice.of(NO), 4)


def _questions_of(question: str) -> str:
    """Return the parts of a question that ask, or all of it if none has a question mark."""
    parts = (part.strip() for part in _PARTS.split(question))
    return " ".join(part for part in parts if part.endswith(("?", "？"))) or question
