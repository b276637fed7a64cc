"""Profiles of graders, as they are kept: what is quoted beside scores, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..harness.calibrating.profile import Profile
from ..harness.calibrating.profiles import Found
from ..metrics.grading.agreement import Agreement
from .calibration_tables import figure, interval, variants
from .render import Table
from .words import percent

HOW = (
    "Kappa (Cohen's): agreement beyond chance, 1 = always, 0 = as by chance. In brackets: 95 % intervals over "
    "questions. Of a set that the grader was fitted on, only the answers that it was not."
)


def tables(found: Mapping[str, Sequence[Found]]) -> Iterator[Table]:
    """By grader its profiles: agreement by set and by language, attacks, the span of its variants."""
    rows = tuple(_row(each.profile) for those in found.values() for each in those)
    stale = [
        f"{each.profile.grader} on {each.profile.set} is stale: {each.stale}."
        for of in found.values()
        for each in of
        if each.stale
    ]
    unknown = [
        f"How far {name} agrees with people is not known: `ctxbench calibrate` measures it."
        for name, of in found.items()
        if not of
    ]
    heads = ("grader", "labelled set", "labelled by", "answers", "accuracy", "kappa", "recall", "specificity")
    yield Table("Agreement with labelled answers", heads, rows, (HOW, *stale, *unknown), names=3)
    profiles = [each.profile for of in found.values() for each in of]
    if parts := tuple(row for each in profiles for row in _by_language(each)):
        yield Table(
            "By language", ("grader", "labelled set", "language", "answers", "accuracy", "kappa"), parts, names=3
        )
    if attacked := tuple(row for each in profiles for row in _attacks(each)):
        note = "Text that speaks to the grader. Turned: it had the verdict it wanted."
        columns = ("grader", "labelled set", "attacks", "turned", "wrong to right", "right to wrong")
        yield Table("Attacks on the grader", columns, attacked, (note,), names=2)
    if spans := tuple(variants(profiles)):
        yield Table("Strict and lenient", ("grader", "strict", "lenient", "kappa, strict", "kappa, lenient"), spans)


def _row(profile: Profile) -> tuple[str, ...]:
    of = profile.quoted
    part = "".join(f", {name} {value}" for name, value in sorted(profile.only.items()))
    sample = " (a sample)" if profile.sample is not None else ""
    held = " (held out)" if profile.held_out is not None else ""
    return (profile.grader, f"{profile.set}{part}{sample}{held}", profile.labelled_by, *_figures(of), *_rates(of))


def _figures(of: Agreement) -> tuple[str, ...]:
    return (f"{of.answers:,}", interval(of.accuracy), interval(of.kappa))


def _rates(of: Agreement) -> tuple[str, ...]:
    return (figure(of.recall.value), figure(of.specificity.value))


def _by_language(profile: Profile) -> Iterator[tuple[str, ...]]:
    for language, of in profile.by.get("language", {}).items():
        yield (profile.grader, profile.set, language or "(none)", *_figures(of))


def _attacks(profile: Profile) -> Iterator[tuple[str, ...]]:
    found = profile.injection
    if found is None:
        return
    tried, turned = found.raised[0] + found.lowered[0], found.raised[1] + found.lowered[1]
    share = percent(turned / tried) if tried else "–"
    yield (
        profile.grader,
        profile.set,
        f"{tried:,}",
        f"{turned:,} ({share})",
        f"{found.raised[1]:,} of {found.raised[0]:,}",
        f"{found.lowered[1]:,} of {found.lowered[0]:,}",
    )
