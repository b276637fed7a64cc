"""Choose labelled answers (whole sets or a sample), grade them, and profile the grader by them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ctxbench.metrics.grading import Grade, GradedItem, Grader
from ctxbench.metrics.grading.agreement import RESAMPLES, SEED, Raters, Verdicts, agreement, of_verdicts, raters
from ctxbench.metrics.grading.rules import answer_kind, is_less_exact
from ctxbench.metrics.value import Missing, grouped
from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.labelled import Labelled

from .profiles import BesidePeople, GraderUsage, LabelSample, Profile

_QUOTED = re.compile("“.*”", re.DOTALL)

GROUPS = ("language", "kind", "system")  # the fields by which figures are broken down


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Answers of one labelled set."""

    name: str
    digest: str  # digest of the whole set, whichever part of it these answers are
    answers: tuple[Labelled, ...]
    sample: LabelSample | None = None

    @property
    def questions(self) -> list[str]:
        """The question of each answer."""
        return [answer.group for answer in self.answers]

    @property
    def labelled_by(self) -> str:
        """`people`, `model`, or both."""
        return " and ".join(sorted({answer.labelled_by for answer in self.answers}, reverse=True))


def sets_of(answers: Iterable[Labelled]) -> list[LabelledSet]:
    """Group answers into sets, ordered by name. A set's digest is of its content, in whatever order."""
    by_set: dict[str, list[Labelled]] = defaultdict(list)
    for answer in answers:
        by_set[answer.set].append(answer)
    sets = []
    for name in sorted(by_set):
        lines = sorted(map(msgspec.json.encode, by_set[name]))
        digest = sha256(b"".join(line + b"\n" for line in lines)).hexdigest()[:16]
        sets.append(LabelledSet(name, digest, tuple(by_set[name])))
    return sets


def sample_of(whole: LabelledSet, size: int, seed: int = 0, by_system: bool = False) -> LabelledSet:
    """Return `size` answers to as many questions as possible: no question gets a second while another has no answer.

    The choice depends on the seed and the names of questions and systems, not on the order of the file.
    """
    if size < 1:
        raise UserError(f"a sample of {size} answers cannot be: give 1 or more")
    if size >= len(whole.answers):
        return whole
    answers_of: dict[str, list[Labelled]] = defaultdict(list)
    for answer in whole.answers:
        answers_of[answer.system if by_system else ""].append(answer)
    chosen, used = set[str](), set[str]()
    # As many answers of each system. Those with the fewest first: what they lack of their share is given to those that
    # follow.
    for at, system in enumerate(sorted(answers_of, key=lambda name: (len(answers_of[name]), name))):
        # 12 of systems with 2, 10 and 10 answers: 12 // 3 = 4, but 2 are there; 10 // 2 = 5; 5 // 1 = 5.
        share = (size - len(chosen)) // (len(answers_of) - at)
        sampled = _spread(answers_of[system], min(share, len(answers_of[system])), seed, used)
        used |= {answer.group for answer in answers_of[system] if answer.id in sampled}
        chosen |= sampled
    answers = tuple(answer for answer in whole.answers if answer.id in chosen)
    return replace(whole, answers=answers, sample=LabelSample(len(answers), len(whole.answers), seed, by_system))


def _spread(answers: Sequence[Labelled], size: int, seed: int, used: set[str]) -> set[str]:
    """Return the ids of `size` answers, one round of all questions after the other; those in `used` a round later.

    They are drawn by a hash, so that a larger sample has the smaller one in it.
    """

    def draw(*names: str) -> bytes:
        return sha256("\0".join([str(seed), *names]).encode("utf-8", "surrogatepass")).digest()

    answers_of: dict[str, list[Labelled]] = defaultdict(list)
    for answer in sorted(answers, key=lambda answer: draw(answer.group, answer.system, answer.id)):
        answers_of[answer.group].append(answer)
    # The round comes first: each question's first answer before any question's second.
    ranked = sorted(
        (at + (group in used), draw(group), answer.id)
        for group in answers_of
        for at, answer in enumerate(answers_of[group])
    )
    return {name for _, _, name in ranked[:size]}


BATCH = 16  # answers that a grader is given at once: at most so many are lost when the command is stopped

Pairs = Sequence[tuple[Labelled, Grade]]


class Calibrated(NamedTuple):
    """The calibration of some graders on one set."""

    labels: LabelledSet
    right: float  # share of answers labelled right: the accuracy of calling every answer right
    raters: Raters | None  # agreement of the raters; None if no answer has two
    profiles: list[Profile]
    seconds: list[float]  # seconds per answer of each profile: the only figures that differ from run to run


def calibrated(
    labels: LabelledSet,
    graders: Sequence[Any],
    done: Callable[[int], None],
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> Calibrated:
    """Calibrate every Grader on one set, one after the other. `done` is called with the number graded since."""
    answers, profiles, seconds = labels.answers, list[Profile](), list[float]()
    for grader in graders:
        if hasattr(grader, "used"):  # a cost is of this set
            grader.used = GraderUsage()
        began = perf_counter()
        grades = graded(grader, answers, done)
        seconds.append((perf_counter() - began) / len(answers))
        profiles.append(_profile(grader, labels, grades, resamples, seed))
    votes, passing = [answer.votes for answer in answers], [answer.passing for answer in answers]
    among = raters(votes, passing, labels.questions, resamples, seed)
    return Calibrated(labels, sum(answer.correct for answer in answers) / len(answers), among, profiles, seconds)


def graded(grader: Grader, answers: Sequence[Labelled], done: Callable[[int], None]) -> list[Grade | Missing]:
    """Grade every answer, without its label. A score that is no number is no grade."""
    fields, grades = GradedItem.__struct_fields__, list[Grade | Missing]()
    items = [GradedItem(**{name: getattr(answer, name) for name in fields}) for answer in answers]
    for begin in range(0, len(items), BATCH):
        asked = items[begin : begin + BATCH]
        batch = grader.grade(asked)
        if len(batch) != len(asked):
            raise ValueError(f"{grader.name} gave {len(batch)} grades for {len(asked)} items")
        no_number = Missing("failed", "its score is not a number")
        grades += [no_number if math.isnan(getattr(grade, "score", 0.0)) else grade for grade in batch]
        done(len(batch))
    return grades


def _profile(
    grader: Grader, labels: LabelledSet, grades: Sequence[Grade | Missing], resamples: int, seed: int
) -> Profile:
    """Return the figures of a grader's grades against the labels."""
    graded_answers = zip(labels.answers, grades, strict=True)
    pairs = [(label, grade) for label, grade in graded_answers if isinstance(grade, Grade)]
    verdicts = _verdicts([(label.correct, grade, label.group) for label, grade in pairs])
    # A grader that was fitted on labelled answers says so: `fitted_on(set, question)`.
    is_fitted_on = getattr(grader, "fitted_on", lambda _set, _question: False)
    fitted = np.array([is_fitted_on(label.set, label.question) for label, _ in pairs], dtype=bool)
    by_group = {name: [getattr(label, name) for label, _ in pairs] for name in GROUPS}
    by_group["answer"] = [answer_kind(label.question, label.accepted) for label, _ in pairs]
    parts = {"all": {"": np.ones(len(pairs), bool)}} | {
        name: {value: np.array([other == value for other in values], bool) for value in sorted(set(values))}
        for name, values in by_group.items()
        if len(set(values)) > 1
    }
    people = {
        name: {
            value: figures
            for value, mask in masks.items()
            if (figures := _beside_people(list(compress(pairs, mask)), resamples, seed)) is not None
        }
        for name, masks in parts.items()
    }
    missing = [grade for grade in grades if isinstance(grade, Missing)]
    # The detail may quote an answer, and a profile has no text of the set.
    whys = (": ".join(filter(None, (grade.why, _QUOTED.sub("“…”", grade.detail)))) for grade in missing)
    return Profile(
        grader=grader.name,
        set=labels.name,
        digest=labels.digest,
        labelled_by=labels.labelled_by,
        sample=labels.sample,
        asked=len(labels.answers),
        missing={why.text: why.times for _, why in grouped((None, why) for why in whys)},
        whole=agreement(verdicts, resamples, seed),
        held_out=agreement(verdicts.where(~fitted), resamples, seed) if fitted.any() else None,
        by={
            name: {value: agreement(verdicts.where(mask), resamples, seed) for value, mask in masks.items()}
            for name, masks in parts.items()
            if name != "all"
        },
        people={name: by_value for name, by_value in people.items() if by_value},
        less_exact=sum(is_less_exact(grade.correct, grade.reason) for _, grade in pairs),
        cost=getattr(grader, "used", None),
    )


def _verdicts(graded: Sequence[tuple[bool, Grade, str]]) -> Verdicts:
    """Return labels, the grades beside them and the names of the questions as arrays."""
    right, questions = [label for label, _, _ in graded], [question for _, _, question in graded]
    grades = [(grade.correct, grade.score) for _, grade, _ in graded]
    return Verdicts.of(right, [correct for correct, _ in grades], [score for _, score in grades], questions)


def _beside_people(pairs: Pairs, resamples: int, seed: int) -> BesidePeople | None:
    """Compare the grader with single labels, and these among themselves; None where no answer has two."""
    several = [(label, grade) for label, grade in pairs if len(label.votes) > 1]
    labels = [label for label, _ in several]
    votes, passing = [label.votes for label in labels], [label.passing for label in labels]
    among = raters(votes, passing, [label.group for label in labels], resamples, seed)
    if among is None:
        return None
    verdicts = _verdicts([(vote >= of.passing, grade, of.group) for of, grade in several for vote in of.votes])
    of_grader = of_verdicts(verdicts, resamples, seed)
    same = float(np.mean(verdicts.people == verdicts.grader))
    return BesidePeople(among.answers, among.verdicts, of_grader["kappa"], among.same, same)
