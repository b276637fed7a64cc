"""Which labelled answers a calibration is over: whole sets, a part by language, kind or system, or a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from ...metrics.grading import GradedItem
from ...scenarios.errors import UserError
from ...scenarios.labelled import Labelled

GROUPS = ("language", "kind", "system")
"""By what figures are told apart."""


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How some answers were chosen from a set."""

    answers: int
    of: int
    seed: int
    by_system: bool = False
    """As many of each system, as far as there are so many."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Answers of one labelled set."""

    name: str
    digest: str
    """Of the whole set, whatever part of it these answers are."""
    answers: tuple[Labelled, ...]
    only: tuple[tuple[str, str], ...] = ()
    """What they have in common, where not all were taken: `("language", "zh")`."""
    sample: Sample | None = None

    @property
    def questions(self) -> list[str]:
        """What each answer answers."""
        return [each.group for each in self.answers]

    @property
    def labelled_by(self) -> str:
        """Who labelled them: `people`, `model`, or both."""
        return " and ".join(sorted({each.labelled_by for each in self.answers}, reverse=True))


def sets_of(answers: Iterable[Labelled]) -> list[LabelledSet]:
    """The sets, by name."""
    found: dict[str, list[Labelled]] = defaultdict(list)
    for each in answers:
        found[each.set].append(each)
    return [LabelledSet(name, _digest(found[name]), tuple(found[name])) for name in sorted(found)]


def part_of(whole: LabelledSet, only: dict[str, str]) -> LabelledSet:
    """The answers that have these values of GROUPS; perhaps none."""
    kept = tuple(each for each in whole.answers if all(getattr(each, name) == only[name] for name in only))
    return LabelledSet(whole.name, whole.digest, kept, (*whole.only, *sorted(only.items())), whole.sample)


def sample_of(whole: LabelledSet, size: int, seed: int = 0, by_system: bool = False) -> LabelledSet:
    """`size` answers, to as many questions as can be: no question has a second one while another has none.

    What is taken depends on the seed and the names of questions and systems, not on the order of the file.
    """
    if size < 1:
        raise UserError(f"a sample of {size} answers cannot be: give 1 or more")
    if size >= len(whole.answers):
        return whole
    chosen = _by_system(whole.answers, size, seed) if by_system else _spread(whole.answers, size, seed, set())
    kept = tuple(each for each in whole.answers if each.id in chosen)
    sample = Sample(len(kept), len(whole.answers), seed, by_system)
    return LabelledSet(whole.name, whole.digest, kept, whole.only, sample)


def as_item(answer: Labelled) -> GradedItem:
    """What a grader is given: all but the label."""
    return GradedItem(
        answer.id,
        answer.question,
        answer.accepted,
        answer.candidate,
        answer.kind,
        answer.rubric,
        answer.evidence,
    )


def _by_system(answers: Sequence[Labelled], size: int, seed: int) -> set[str]:
    """The ids of as many answers of each system; where one has too few, the others have more."""
    of: dict[str, list[Labelled]] = defaultdict(list)
    for each in answers:
        of[each.system].append(each)
    chosen: set[str] = set()
    used: set[str] = set()
    left = size
    for at, system in enumerate(sorted(of, key=lambda name: (len(of[name]), name))):
        share = left // (len(of) - at)
        taken = _spread(of[system], min(share, len(of[system])), seed, used)
        used |= {each.group for each in of[system] if each.id in taken}
        chosen |= taken
        left -= len(taken)
    return chosen


def _spread(answers: Sequence[Labelled], size: int, seed: int, used: set[str]) -> set[str]:
    """The ids of `size` answers, a round of all questions after the other; those in `used` come a round later."""
    turns: dict[str, list[Labelled]] = defaultdict(list)
    for each in sorted(answers, key=lambda each: _draw(seed, each.group, each.system, each.id)):
        turns[each.group].append(each)
    ranked = [
        (at + (group in used), _draw(seed, group), each.id) for group in turns for at, each in enumerate(turns[group])
    ]
    return {name for _, _, name in sorted(ranked)[:size]}


def _draw(seed: int, *names: str) -> bytes:
    """A number that is as good as random, and always the same."""
    return sha256("\0".join([str(seed), *names]).encode("utf-8", "surrogatepass")).digest()


def _digest(answers: Sequence[Labelled]) -> str:
    """Of what the set says, in whatever order."""
    found = sha256()
    for line in sorted(map(msgspec.json.encode, answers)):
        found.update(line + b"\n")
    return found.hexdigest()[:16]
