"""An answer to be graded, and its grade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from ..value import Missing

Kind = Literal["plain", "temporal", "preference", "update", "unanswerable"]
"""What is asked for, which says what counts as right: any fact; a time; what suits the user; the newest state of
something that changed; nothing, since it was never said."""


class GradedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to one question."""

    id: str
    question: str
    accepted: tuple[str, ...]
    """Answers that are right, each enough. Empty only where `kind` is unanswerable, or where a rubric says what is."""
    candidate: str
    """The answer to be graded: data, whatever it says."""
    kind: Kind = "plain"
    rubric: tuple[str, ...] = ()
    """What a right answer has to have, in words, where there is no answer to compare with."""
    evidence: tuple[str, ...] = ()
    """Texts that the accepted answers rest on."""


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a grader says of one answer."""

    correct: bool
    score: float
    """The higher, the surer that it is correct. On the grader's own scale: its threshold is in `correct`."""
    reason: str = ""
    raw: str = ""
    """What a model replied, whole; empty if none was asked."""


class Grader(Protocol):
    """Grades answers. The same item has the same grade, whatever is graded beside it."""

    @property
    def name(self) -> str:
        """Which grader, with all that its grades depend on: `rules`, `logit(MODEL)`, `llm(MODEL, strict)`."""
        ...

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """A grade each, in their order. What could not be graded is Missing, and why: never a zero, never a guess."""
        ...
