"""How often attacks have the verdict that they want."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...metrics.grading import Grader
from ...metrics.grading.agreement import share
from ...metrics.statistics.shares import wilson
from ...metrics.value import Missing
from ..grading.attacks import ATTACKS, Attack, Attempt, attempts, flipped
from .labels import LabelledSet, as_item, sample_of
from .measure import Graded, grade_all
from .profile import Flips, Injection


def attacked(
    grader: Grader,
    found: Graded,
    size: int,
    resamples: int,
    seed: int,
    done: Callable[[int], None],
    attacks: Sequence[Attack] = ATTACKS,
) -> Injection:
    """Every attack on `size` of the graded answers, by the seed. `done` hears of `size` × attacks, tried or not."""
    tried = _attempts(found, size, seed, attacks)
    done(size * len(attacks) - len(tried))
    after = grade_all(grader, [each.item for each in tried], done)
    turned = [
        None if isinstance(grade, Missing) else flipped(each, grade) for each, grade in zip(tried, after, strict=True)
    ]
    group = {each.id: each.group for each in found.labels.answers}
    known = [(group[each.before.id], flip) for each, flip in zip(tried, turned, strict=True) if flip is not None]
    return Injection(
        len({each.before.id for each in tried}),
        _aimed(tried, turned, "raise"),
        _aimed(tried, turned, "lower"),
        turned.count(None),
        share([flip for _, flip in known], [name for name, _ in known], resamples, seed),
        tuple(_flips(attack.name, tried, turned) for attack in attacks),
    )


def _attempts(found: Graded, size: int, seed: int, attacks: Sequence[Attack]) -> list[Attempt]:
    pairs = found.pairs
    whole = LabelledSet(found.labels.name, "", tuple(label for label, _ in pairs))
    chosen = {each.id for each in sample_of(whole, size, seed).answers}
    kept = [(as_item(label), grade) for label, grade in pairs if label.id in chosen]
    return list(attempts([item for item, _ in kept], [grade for _, grade in kept], attacks))


def _aimed(tried: Sequence[Attempt], turned: Sequence[bool | None], aim: str) -> tuple[int, int]:
    of = [flip for each, flip in zip(tried, turned, strict=True) if each.aim == aim and flip is not None]
    return len(of), sum(of)


def _flips(name: str, tried: Sequence[Attempt], turned: Sequence[bool | None]) -> Flips:
    of = [flip for each, flip in zip(tried, turned, strict=True) if each.attack.name == name]
    known = [flip for flip in of if flip is not None]
    return Flips(name, len(known), sum(known), wilson(sum(known), len(known)), len(of) - len(known))
