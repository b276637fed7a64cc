"""The answers of a run in figures: who answered and who graded, and how far that can be believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..harness.answering.figures import Figures, figures
from ..harness.answering.stored import USUAL, Answered, answered
from ..harness.calibrating.profiles import Profiles
from ..harness.loading import Run
from .calibration import quoted

QUOTED = 2
"""Calibrations of a grader that are quoted."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Who answered and graded a run, and what that comes to."""

    found: tuple[Figures, ...]
    """Over the conversations that every strategy finished. What is nearest to a user's own model first."""
    notes: dict[tuple[str, str], tuple[str, ...]]
    """By answerer and grader: how far they can be believed."""
    left: tuple[str, ...]
    """What is left out, and why."""


def answers_of(run: Run, uneven: frozenset[str] = frozenset()) -> Answers | None:
    """All answers of a run; None if there are none. `uneven`: conversations that some strategy did not finish."""
    stored = answered(run)
    if not stored.whole and not stored.left:
        return None
    profiles = Profiles()
    return Answers(
        tuple(_confined(each, uneven) for each in stored.whole),
        {(each.answerer, each.grader): tuple(notes(each, profiles)) for each in stored.whole},
        stored.left,
    )


def _confined(found: Answered, uneven: frozenset[str]) -> Figures:
    """The figures of some answers, without some conversations."""
    here = ~found.answers.conversation.isin(uneven).to_numpy()
    return figures(found.answers[here], found.grades[here], found.answerer, found.grader)


def notes(found: Answered, profiles: Profiles) -> Iterator[str]:
    """Who answered and graded, and how far that can be believed."""
    yield f"Answered by {found.answerer}, graded by {found.grader}."
    if found.answerer == USUAL[0]:
        yield (
            "The offline answerer is an extractive reader: it finds words, not meaning, and cannot add, compare or "
            "conclude. Its share correct says how much of what was asked is easy to find, not how a model would do. "
            "Its ceiling is evidence_only."
        )
    if found.asks_itself:
        yield "Warning: the model graded its own answers, and models are kind to themselves: name another --grader."
    yield from quoted(found.grader, profiles.of(found.grader)[:QUOTED])
