"""Choose the labelled answers of a calibration: whole sets, a part by language, kind or system, or a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from ctxbench.metrics.grading import GradedItem
from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.labelled import Labelled

GROUPS = ("language", "kind", "system")
"""The fields by which figures are broken down."""


class LabelSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How some answers were chosen from a set."""

    answers: int
    of: int
    seed: int
    by_system: bool = False
    """As many of each system, as far as there are enough."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Answers of one labelled set."""

    name: str
    digest: str
    """Digest of the whole set, whichever part of it these answers are."""
    answers: tuple[Labelled, ...]
    only: tuple[tuple[str, str], ...] = ()
    """The values that they share, where only a part was taken: `("language", "zh")`."""
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


def part_of(whole: LabelledSet, only: dict[str, str]) -> LabelledSet:
    """Return the answers that have these values of GROUPS; perhaps none."""
    answers = tuple(answer for answer in whole.answers if all(getattr(answer, name) == only[name] for name in only))
    return replace(whole, answers=answers, only=(*whole.only, *sorted(only.items())))


def sample_of(whole: LabelledSet, size: int, seed: int = 0, by_system: bool = False) -> LabelledSet:
    """Return `size` answers to as many questions as possible: none has a second answer while another has none.

    The choice depends on the seed and the names of questions and systems, not on the order of the file.
    """
    if size < 1:
        raise UserError(f"a sample of {size} answers cannot be: give 1 or more")
    if size >= len(whole.answers):
        return whole
    # By a hash, so that a larger sample has the smaller one in it (decision 26).
    chosen = _by_system(whole.answers, size, seed) if by_system else _spread(whole.answers, size, seed, set())
    answers = tuple(answer for answer in whole.answers if answer.id in chosen)
    return replace(whole, answers=answers, sample=LabelSample(len(answers), len(whole.answers), seed, by_system))


def as_item(answer: Labelled) -> GradedItem:
    """Return the item that a grader is given: everything but the label."""
    return GradedItem(**{name: getattr(answer, name) for name in GradedItem.__struct_fields__})


def _by_system(answers: Sequence[Labelled], size: int, seed: int) -> set[str]:
    """Return the ids of as many answers of each system; where one has too few, the others have more."""
    answers_of: dict[str, list[Labelled]] = defaultdict(list)
    for answer in answers:
        answers_of[answer.system].append(answer)
    chosen: set[str] = set()
    used: set[str] = set()
    # The systems with the fewest answers first: what they lack of their share is given to those that follow.
    for at, system in enumerate(sorted(answers_of, key=lambda name: (len(answers_of[name]), name))):
        # 12 of systems with 2, 10 and 10 answers: 12 // 3 = 4, but 2 are there; 10 // 2 = 5; 5 // 1 = 5.
        share = (size - len(chosen)) // (len(answers_of) - at)
        sampled = _spread(answers_of[system], min(share, len(answers_of[system])), seed, used)
        used |= {answer.group for answer in answers_of[system] if answer.id in sampled}
        chosen |= sampled
    return chosen


def _spread(answers: Sequence[Labelled], size: int, seed: int, used: set[str]) -> set[str]:
    """Return the ids of `size` answers, one round of all questions after the other.

    Questions in `used` come a round later.
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
