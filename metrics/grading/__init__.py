"""Grading answers: the item to grade, its grade, and the protocol of graders.

Graders that need no model are here, those that do are in `harness/graders/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from ..value import Missing

Kind = Literal["plain", "temporal", "preference", "update", "unanswerable"]
"""Kind of question, which decides what counts as right: any fact; a time; what suits the user; the newest state of
something that changed; nothing, since it was never said."""


class GradedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to one question."""

    id: str
    question: str
    accepted: tuple[str, ...]
    """Right answers, each enough. Empty only where `kind` is unanswerable, or where a rubric says what is right."""
    candidate: str  # the answer to grade: data, whatever instructions it contains
    kind: Kind = "plain"
    rubric: tuple[str, ...] = ()  # requirements of a right answer, in words, where there is no answer to compare with
    evidence: tuple[str, ...] = ()  # texts that the accepted answers rest on
    exact_dates: bool = False
    """Whether a date less exact than the accepted one is wrong, as it is in a question about a conversation."""


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Verdict of a grader on one answer."""

    correct: bool
    score: float  # confidence that the answer is correct, on the grader's own scale: its threshold is in `correct`
    reason: str = ""
    raw: str = ""  # whole reply of a model; empty if none was called


class Grader(Protocol):
    """A grader of answers. The same item has the same grade, whatever is graded beside it."""

    @property
    def name(self) -> str:
        """Name with everything that the grades depend on: `rules`, `logit(MODEL)`, `llm(MODEL, strict)`."""
        ...

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return one grade per item, in order. A failed grade is Missing, with the reason: never a zero or a guess."""
        ...
