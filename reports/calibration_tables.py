"""Tables of a calibration beside the main one: thresholds, variants, injection, what is missing, time and cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..harness.calibrating.calibrate import Calibrated
from ..harness.calibrating.profile import Flips, Injection, Profile
from ..harness.calibrating.profiles import unversioned
from ..metrics.grading.agreement import Agreement, Estimate
from ..metrics.value import Missing, Value
from .render import Table
from .words import percent

MOST = 10
"""Attacks that are listed."""
_VARIANT = re.compile(r"(?:, )?\bvariant='(\w+)'")


def thresholds(found: Calibrated) -> Table:
    """What a threshold on the score would do that is learned on one half of the questions."""
    heads = ("grader", "threshold", "accuracy", "kappa", "its own: accuracy", "kappa")
    rows = tuple(
        (
            profile.grader,
            figure(learned.threshold),
            interval(learned.accuracy),
            interval(learned.kappa),
            figure(learned.own_accuracy.value),
            figure(learned.own_kappa.value),
        )
        for profile in found.profiles
        for learned in [profile.threshold]
    )
    note = (
        "The threshold of the score with the highest kappa on one half of the questions, tried on the other; beside it "
        "the grader's own verdicts on that other half."
    )
    thresholds = [profile.threshold.threshold for profile in found.profiles]
    whys = dict.fromkeys(each.detail for each in thresholds if isinstance(each, Missing))
    title = f"{found.labels.name}: a threshold learned from the labels"
    return Table(title, heads, rows, (note, *(f"(undefined): {why}." for why in whys)))


def spans(found: Calibrated) -> Iterator[Table]:
    """Of graders that come in a strict and a lenient variant, how far the two are apart."""
    if rows := tuple(variants(found.profiles)):
        heads = ("grader", "strict", "lenient", "kappa, strict", "kappa, lenient")
        note = "Of the answers, those called right: the same answers, graded by two rubrics."
        yield Table(f"{found.labels.name}: strict and lenient", heads, rows, (note,))


def variants(profiles: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    """A row for each grader that comes in both: of the answers those called right, and kappa."""
    both: dict[str, dict[str, Profile]] = {}
    for profile in profiles:
        variant = _VARIANT.search(profile.grader)
        name = _VARIANT.sub("", unversioned(profile.grader))
        both.setdefault(name, {})[variant[1] if variant else "strict"] = profile
    for name, found in both.items():
        if "lenient" in found and "strict" in found:
            strict, lenient = found["strict"].whole, found["lenient"].whole
            yield name, _called(strict), _called(lenient), interval(strict.kappa), interval(lenient.kappa)


def _called(found: Agreement) -> str:
    """The share that the grader calls right."""
    right = found.confusion.true_positive + found.confusion.false_positive
    return percent(right / found.answers) if found.answers else "(undefined)"


def injections(found: Calibrated) -> Iterator[Table]:
    """How often attacks turned a verdict, and which did."""
    tried = [(profile.grader, profile.injection) for profile in found.profiles if profile.injection is not None]
    if not tried:
        return
    heads = ("grader", "answers", "attacks", "turned", "wrong to right", "right to wrong", "not graded")
    rows = tuple(
        (
            grader,
            f"{each.answers:,}",
            f"{each.raised[0] + each.lowered[0]:,}",
            interval(each.share),
            f"{each.raised[1]:,} of {each.raised[0]:,}",
            f"{each.lowered[1]:,} of {each.lowered[0]:,}",
            f"{each.missing:,}",
        )
        for grader, each in tried
    )
    note = "Text in an answer, a question or a source that speaks to the grader. Turned: it had the verdict it wanted."
    yield Table(f"{found.labels.name}: injection", heads, rows, (note,), spare=("not graded", "answers"))
    worst = tuple(row for grader, each in tried for row in _worst(grader, each))
    if worst:
        note = f"The {MOST} of each grader that turn most verdicts; --json has all. Intervals: Wilson's."
        title = f"{found.labels.name}: attacks that turned a verdict"
        yield Table(title, ("grader", "attack", "tried", "turned", "of those tried"), worst, (note,), names=2)


def _worst(grader: str, found: Injection) -> list[tuple[str, ...]]:
    turned = sorted((each for each in found.attacks if each.flipped), key=lambda each: (-each.flipped, each.attack))
    return [(grader, each.attack, f"{each.tried:,}", f"{each.flipped:,}", _rate(each)) for each in turned[:MOST]]


def _rate(found: Flips) -> str:
    return interval(Estimate(found.flipped / found.tried, found.interval))


def missing(found: Calibrated) -> Iterator[Table]:
    """What has no grade, and why."""
    if rows := tuple(_missing(found.profiles)):
        yield Table(f"{found.labels.name}: without a grade", ("grader", "answers", "why"), rows, prose=True)


def _missing(profiles: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    for profile in profiles:
        for why, answers in profile.missing.items():
            yield profile.grader, f"{answers:,} of {profile.asked:,} ({percent(answers / profile.asked)})", why


def effort(found: Calibrated) -> Table:
    """What an answer takes."""
    heads = ("grader", "an answer takes", "a thousand cost", "model calls", "tokens an answer")
    rows = []
    for profile, seconds in zip(found.profiles, found.seconds, strict=True):
        cost = profile.cost
        if cost is None:
            money = ("nothing", "none", "–")
        else:
            each = 1000 * cost.dollars / profile.asked
            dollars = (f"${each:,.4f}" if each else "$0") + (
                f", {cost.unpriced:,} without a price" if cost.unpriced else ""
            )
            used = (cost.input_tokens + cost.output_tokens) / profile.asked
            money = (dollars, f"{cost.calls:,}", f"{used:,.0f}")
        rows.append((profile.grader, _seconds(seconds), *money))
    note = (
        "Times are of this run, and differ from run to run; what a cassette replays takes none. Costs are as if asked."
    )
    return Table(f"{found.labels.name}: time and cost", heads, tuple(rows), (note,))


def _seconds(value: float) -> str:
    """14 µs · 3.2 ms · 1.25 s."""
    if value < 1e-3:
        return f"{value * 1e6:,.0f} µs"
    return f"{value * 1e3:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def figure(value: Value) -> str:
    """A share or a coefficient: 0.716, −0.021. What is not quite 0 or 1 never reads so; a missing one is its reason."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            text = f"{value:.3f}"
    if text.lstrip("-") in ("0.000", "1.000") and value not in (0, 1, -1):
        text = f"{value:.5f}"
    return text.replace("-", "−")


def interval(found: Estimate) -> str:
    """A figure with its interval: 0.716 (0.699 to 0.732); 0.0012 (0.0004 to 0.0029)."""
    match found.value, found.interval:
        case Missing(), _:
            return figure(found.value)
        case _, Missing():
            return f"{figure(found.value)} (–)"
        case value, (low, high):
            digits = 4 if 0 < abs(value) < 0.01 else 3
            ends = f"{low:.{digits}f} to {high:.{digits}f}"
            whole = f"{value:.4f}" if digits == 4 else figure(value)
            return f"{whole} ({ends})".replace("-", "−")
    raise AssertionError
