"""Graders over labelled sets: all that `ctxbench calibrate` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...metrics.grading import Grader
from ...metrics.grading.bootstrap import RESAMPLES, SEED
from ...metrics.grading.confusion import Verdicts
from .beside import Beside, Scores, beside
from .injection import attacked
from .labels import LabelledSet
from .measure import graded, profile
from .profile import Profile


class Options(NamedTuple):
    """How much is done."""

    resamples: int = RESAMPLES
    seed: int = SEED
    attacked: int = 0
    """Graded answers that are attacked."""
    date: str = ""


class Calibrated(NamedTuple):
    """What was found on one set."""

    labels: LabelledSet
    beside: Beside
    profiles: list[Profile]
    seconds: list[float]
    """Per answer, of each profile: the only figures that differ from run to run."""
    verdicts: list[Verdicts]
    """Of each profile, for curves."""


def calibrated(
    labels: LabelledSet,
    graders: Sequence[Grader],
    scores: Mapping[str, Scores],
    options: Options,
    done: Callable[[int], None],
) -> Calibrated:
    """Every grader over one set, one after the other."""
    profiles, seconds, verdicts = [], [], []
    for grader in graders:
        found = graded(grader, labels, done)
        injection = None
        if options.attacked:
            injection = attacked(grader, found, options.attacked, options.resamples, options.seed, done)
        profiles.append(profile(grader.name, found, options.resamples, options.seed, injection, options.date))
        verdicts.append(found.verdicts)
        seconds.append(found.seconds / len(labels.answers))
    return Calibrated(labels, beside(labels, scores, options.resamples, options.seed), profiles, seconds, verdicts)
