"""Shares correct as they would be without the errors that a grader makes beside people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..harness.answering.figures import Figures, Strategy
from ..harness.calibrating.profile import Profile, corrected_by
from ..harness.calibrating.profiles import Found
from ..metrics.grading.agreement import Estimate
from ..metrics.statistics.bootstrap import Ends
from ..metrics.value import Missing, Value
from .main_table import reasons
from .render import Table
from .words import percent, shares

SETS = 2
"""Labelled sets that shares are corrected by."""
HOW = (
    "Seen: as the grader has it. Corrected (Rogan and Gladen; the interval is Lang and Reiczigel's): what the share "
    "comes to if the grader takes wrong answers for right, and right ones for wrong, as often as on the answers of "
    "that set, which people labelled. UNKNOWN needs no grader and stays wrong: what is corrected is the rest. No "
    "arithmetic can tell whether the grader errs alike here; where two sets disagree, it errs in another way on one."
)


class Corrected(NamedTuple):
    """A strategy's share correct, as seen and by each labelled set."""

    strategy: str
    seen: Value
    by: dict[str, Estimate]


def corrected_of(found: Figures, profiles: Sequence[Found]) -> list[Corrected]:
    """The share of each strategy and bound, corrected by the grader's best profiles."""
    known = [each.profile for each in profiles[:SETS]]
    return [
        Corrected(each.strategy, each.correct, {profile.set: _corrected(each, profile) for profile in known})
        for each in found.strategies
    ]


def _corrected(found: Strategy, profile: Profile) -> Estimate:
    """What is not UNKNOWN, corrected."""
    if isinstance(found.correct, Missing):
        return Estimate(found.correct, found.correct)
    if isinstance(found.worth, Missing):
        return Estimate(found.worth, found.worth)
    if not found.given:
        none = Missing("undefined", "every answer is UNKNOWN")
        return Estimate(none, none)
    part = found.given / found.paired
    made = corrected_by(profile, min(1.0, found.correct / part), found.worth * part)
    if isinstance(made.value, Missing) or isinstance(made.interval, Missing):
        return made
    return Estimate(made.value * part, Ends(made.interval.low * part, made.interval.high * part))


def corrected_json(found: Sequence[Corrected]) -> dict[str, object]:
    """Exact figures, by strategy."""
    return {each.strategy: {"seen": each.seen, "by": each.by} for each in found}


def corrected_table(found: Sequence[Corrected]) -> Table:
    """A row a strategy; two columns a labelled set."""
    sets = list(dict.fromkeys(name for each in found for name in each.by))
    rows = tuple((each.strategy, percent(each.seen), *(_cell(each.by[name]) for name in sets)) for each in found)
    notes = [HOW] if sets else ["The grader was not calibrated, so that nothing can be corrected: ctxbench calibrate."]
    notes += filter(None, [reasons(value.value for each in found for value in each.by.values())])
    return Table(
        "Correct, corrected for the grader's errors",
        ("strategy", "seen", *(f"by {name}" for name in sets)),
        rows,
        tuple(notes),
    )


def _cell(found: Estimate) -> str:
    match found.value, found.interval:
        case Missing(), _:
            return percent(found.value)
        case _, Missing():
            return f"{percent(found.value)} (–)"
        case value, (low, high):
            return f"{percent(value)} ({shares(low, high)})"
    raise AssertionError
