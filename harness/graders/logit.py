"""The grader `logit`: one forward pass of a local model, and no text from it.

After some examples that end in Yes or No the model reads an item, and the score is logit(" Yes") - logit(" No") of the
next token. Nothing is sampled and nothing is parsed: the same item has the same bits. Of several accepted answers, each
read by itself, the best counts. Every text is put on one line, so that none of them can start an example of its own.
Why this prompt, with figures: docs/decisions/0025-model-graders.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...metrics.grading import Grade, GradedItem
from ...metrics.language import sentences
from ...metrics.value import Missing
from ...scenarios.spec import spec
from ...strategies.base import ModelError
from .llm import READ, GraderPrompt, GraderUsage, cut, digest, on_topic, one_line, seen

if TYPE_CHECKING:
    from ..models import Models


_PARTS_ASKED = 3
_PARTS = re.compile(r"(?<=[?？])|[!！。‹›]")
YES, NO = " Yes", " No"
LARGEST = 100.0
"""No difference of two log probabilities of likely tokens comes near."""
_TEMPLATE = (
    "Question: {question}\nAnswer: {candidate}\nClaim: The answer to the question is {accepted}.\n"
    "Does the answer support the claim?"
)
_EXAMPLES = (
    (
        "How tall is the tower of the old town hall?",
        "90 metres",
        "The tower, which was finished in 1911 and is open to visitors on most days, has a height of ninety metres.",
        YES,
    ),
    (
        "Who leads the choir?",
        "Maria Lopez",
        "Maria Torres",
        NO,
    ),
    ("展览什么时候开幕？", "5月3日", "这次展览在新馆举行，五月三号开幕，六月底结束。", YES),
    (
        "What does the ticket cost?",
        "12 euros",
        "I am sorry, but I have no information on the price of the ticket. You could ask at the desk.",
        NO,
    ),
    ("他现在住在哪里？", "苏州", "他以前住在苏州，现在住在杭州。", NO),
    ("Which gas do plants take in?", "CO2", "Carbon dioxide.", YES),
    (
        "Who painted the ceiling of the chapel?",
        "Jacob Brandt",
        "The ceiling was painted by Michelangelo, one of the greatest artists of all times.",
        NO,
    ),
    ("Is the shop open on Sunday?", "no", "It is closed on Sundays.", YES),
)


def filled(question: str, accepted: str, candidate: str) -> str:
    """An item as the model reads it, up to where it says Yes or No."""
    return _TEMPLATE.format(question=question, accepted=accepted.rstrip(" .。"), candidate=candidate)


PREFIX = "".join(f"{filled(*texts)}{says}\n\n" for *texts, says in _EXAMPLES)
PROMPTS = (GraderPrompt("logit", PREFIX, _TEMPLATE),)


@dataclass(frozen=True, slots=True)
class Logit:
    """How a local model's next token grades, as it is written in a spec."""

    model: str = ""
    """Empty = the run's grader. Only `local` says how likely a token is."""
    threshold: float = 0.0
    """An answer is correct above this."""
    longest: int = 1_500
    """Characters of a candidate that are read."""
    prompt: str = ""
    """The digest of its prompt, if only this one will do."""

    def __post_init__(self) -> None:
        if self.longest < 100:
            raise ValueError("longest is 100 characters or more")

    def digest(self) -> str:
        """Of the prompt, and of how texts are read."""
        return digest(PROMPTS[0].full, READ)


class LogitGrader:
    """Grades with the next token of a local model. It compares with accepted answers: a rubric alone is not enough."""

    def __init__(self, how: Logit, models: Models) -> None:
        """`how.model` is the full name of a model that there is."""
        self.how, self._models = replace(how, prompt=how.digest()), models
        self.used = GraderUsage()

    @property
    def name(self) -> str:
        """`logit(model='…', prompt='…')`."""
        return spec("logit", self.how)

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """A grade each, one after the other: the model is in this process."""
        return [self._graded(item) for item in items]

    def _graded(self, item: GradedItem) -> Grade | Missing:
        if not item.accepted:
            return Missing("unsupported", f"a question of the kind {item.kind} has no answer to compare with")
        question, candidate = _asked(seen(item.question)), seen(item.candidate)
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
        """Of an accepted answer of two or three sentences the least: the candidate has to say all of it.

        So a sentence that is put into an accepted answer makes it harder to reach, never easier.
        """
        least, parts = LARGEST, sentences(accepted)
        for part in parts if 1 < len(parts) <= _PARTS_ASKED else [accepted]:
            read = cut(on_topic(candidate, question, part), self.how.longest)
            score = self._score(one_line(question), one_line(part), one_line(read))
            if isinstance(score, Missing):
                return score
            least = min(least, score)
        return least

    def _score(self, question: str, accepted: str, candidate: str) -> float | Missing:
        from ..models.local import Choice

        text = filled(question, accepted, candidate)
        try:
            found = self._models.choose(Choice(self.how.model, PREFIX, text, (YES, NO), PROMPTS[0].full))
        except ModelError as error:
            return Missing("failed", str(error))
        self.used.add(found.input_tokens)
        if not found.logprobs:
            return Missing("failed", f"{self.how.model}: neither Yes nor No is among its likeliest tokens")
        return round(found.of(YES) - found.of(NO), 4)


def _asked(question: str) -> str:
    """The parts of a question that ask; all of it if none has a question mark."""
    parts = (part.strip() for part in _PARTS.split(question))
    return " ".join(part for part in parts if part.endswith(("?", "？"))) or question
