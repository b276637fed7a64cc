"""Graders beside labels, as tables and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..harness.answers.figures import AnswerFigures, StrategyAnswers
from ..harness.graders.calibration import Baseline, Calibrated
from ..harness.graders.labels import LabelledSet
from ..harness.graders.profiles import Flips, Injection, Profile, QuotedProfile, corrected_by, unversioned
from ..metrics.grading.agreement import Agreement, Estimate
from ..metrics.statistics.intervals import Ends
from ..metrics.value import Missing, Value
from .render import Table, count, percent, reasons, shares

HOW = (
    "In brackets: 95 % intervals, from a bootstrap of the questions (BCa), each with all its answers. Kappa "
    "(Cohen's): agreement beyond chance; 1 = always, 0 = as by chance. Recall: of right answers, those called right. "
    "Specificity: of wrong answers, those called wrong. AUC: the chance that a right answer scores above a wrong one."
)
IN_SAMPLE = (
    "At best: no grader, but a score at the threshold that suits these very answers best, for accuracy and for kappa "
    "apart: the mark to beat."
)


def tables(found: Sequence[Calibrated]) -> Iterator[Table]:
    """For each set: agreement, confusion, by groups, thresholds, spans, injection, what is missing, time and cost."""
    for at, each in enumerate(found):
        yield _main(each, first=not at)
        yield _confusion(each)
        for name in ("language", "kind", "system"):
            if rows := tuple(_by(each.profiles, name)):
                heads = ("grader", name, "answers", "accuracy", "kappa", "recall", "specificity")
                yield Table(f"{each.labels.name}: by {name}", heads, rows, names=2, spare=("recall", "answers"))
        yield thresholds(each)
        yield from spans(each)
        yield from injections(each)
        yield from missing(each)
        yield effort(each)


def as_json(found: Sequence[Calibrated]) -> list[dict[str, Any]]:
    """Exact figures; of each grader its whole profile. `seconds` alone differ from run to run."""
    return [
        {
            "set": each.labels.name,
            "digest": each.labels.digest,
            "labelled_by": each.labels.labelled_by,
            "answers": len(each.labels.answers),
            "beside": each.beside,
            "graders": each.profiles,
            "seconds": {grader.grader: taken for grader, taken in zip(each.profiles, each.seconds, strict=True)},
        }
        for each in found
    ]


def quoted(grader: str, found: Sequence[QuotedProfile]) -> list[str]:
    """What is said of a grader beside its scores, a sentence for each labelled set."""
    if not found:
        return [f"How far {grader} agrees with people is not known: `ctxbench calibrate` measures it."]
    return [_quoted(each) for each in found]


def _quoted(found: QuotedProfile) -> str:
    profile, of = found.profile, found.profile.quoted
    part = "".join(f", {name} {value}" for name, value in sorted(profile.only.items()))
    stale = f" That is stale: {found.stale}." if found.stale else ""
    whom = "people" if profile.labelled_by == "people" else f"labels by a {profile.labelled_by}"
    return (
        f"{profile.grader} agrees with {whom} on {profile.set}{part}: kappa {interval(of.kappa)}, accuracy "
        f"{interval(of.accuracy)}, over {count(of.answers, 'answer')}.{stale}"
    )


def _main(found: Calibrated, first: bool) -> Table:
    heads = ("grader", "accuracy", "kappa", "AUC", "precision", "recall", "specificity", "F1")
    rows = [_row(profile.grader, profile.whole) for profile in found.profiles]
    rows += [_held_out(profile) for profile in found.profiles if profile.held_out is not None]
    rows += [_baseline(each) for each in found.beside.baselines]
    if found.beside.raters is not None:
        same = found.beside.raters.same
        rows.append((_who(found.labels), figure(same), interval(found.beside.raters.verdicts), *["–"] * 5))
    notes = (*_notes(found), *((HOW,) if first else ()), *((IN_SAMPLE,) if first and found.beside.baselines else ()))
    return Table(_title(found), heads, tuple(rows), notes, spare=("F1", "precision", "specificity", "recall", "AUC"))


def _row(name: str, found: Agreement) -> tuple[str, ...]:
    rest = (found.precision, found.recall, found.specificity, found.f1)
    around = (found.accuracy, found.kappa, found.auc)
    return (name, *map(interval, around), *(figure(each.value) for each in rest))


def _held_out(profile: Profile) -> tuple[str, ...]:
    return _row(f"{profile.grader}, held out", profile.quoted)


def _baseline(found: Baseline) -> tuple[str, ...]:
    name = f"{found.name}, at best"
    return (name, interval(found.accuracy), interval(found.kappa), interval(found.auc), *["–"] * 4)


def _title(found: Calibrated) -> str:
    labels = found.labels
    answers = count(len(labels.answers), "answer")
    questions = count(len(set(labels.questions)), "question")
    who = "people" if labels.labelled_by == "people" else f"a {labels.labelled_by}"
    return f"{labels.name}: {answers} to {questions}, {percent(found.beside.right)} right, as labelled by {who}"


def _notes(found: Calibrated) -> Iterator[str]:
    labels, beside = found.labels, found.beside
    if labels.only:
        yield f"Only: {', '.join(f'{name} {value}' for name, value in labels.only)}."
    if (sample := labels.sample) is not None:
        how = ", as many of each system" if sample.by_system else ""
        yield f"A sample of {sample.answers:,} of {sample.of:,} answers{how}, by question, seed {sample.seed}."
    if labels.labelled_by != "people":
        yield "The labels are a model's, not people's: this is agreement of one grader with another."
    for profile in found.profiles:
        if profile.held_out is not None:
            yield (
                f"{profile.grader} was fitted on answers of this set. Held out: the {profile.held_out.answers:,} that "
                "it was not fitted on; these are quoted elsewhere."
            )
    if (raters := beside.raters) is not None:
        least, most = raters.raters
        several = f"{most}" if least == most else f"{least} to {most}"
        yield (
            f"{_who(labels).capitalize()}: {raters.answers:,} answers were labelled {several} times. Accuracy: of two "
            "labels of an answer, how often both say the same. Kappa of any two (Fleiss'); of the ratings themselves, "
            f"weighted by squared distances, {interval(raters.ratings)}."
        )


def _who(labels: LabelledSet) -> str:
    return "people among themselves" if labels.labelled_by == "people" else "the labelling model with itself"


def _confusion(found: Calibrated) -> Table:
    heads = (
        "grader",
        "graded",
        "right, called right",
        "right, called wrong",
        "wrong, called right",
        "wrong, called wrong",
    )
    rows = tuple(
        (
            profile.grader,
            f"{profile.graded:,}",
            *(
                f"{number:,}"
                for number in (
                    profile.whole.confusion.true_positive,
                    profile.whole.confusion.false_negative,
                    profile.whole.confusion.false_positive,
                    profile.whole.confusion.true_negative,
                )
            ),
        )
        for profile in found.profiles
    )
    return Table(f"{found.labels.name}: labels and verdicts", heads, rows)


def _by(profiles: Sequence[Profile], name: str) -> Iterator[tuple[str, ...]]:
    for profile in profiles:
        for value, found in profile.by.get(name, {}).items():
            yield (
                profile.grader,
                value or "(none)",
                f"{found.answers:,}",
                interval(found.accuracy),
                interval(found.kappa),
                figure(found.recall.value),
                figure(found.specificity.value),
            )


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


PROFILE_HOW = (
    "Kappa (Cohen's): agreement beyond chance, 1 = always, 0 = as by chance. In brackets: 95 % intervals over "
    "questions. Of a set that the grader was fitted on, only the answers that it was not."
)


def profile_tables(found: Mapping[str, Sequence[QuotedProfile]]) -> Iterator[Table]:
    """By grader its profiles: agreement by set and by language, attacks, the span of its variants."""
    rows = tuple(_row_profiles(each.profile) for those in found.values() for each in those)
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
    yield Table("Agreement with labelled answers", heads, rows, (PROFILE_HOW, *stale, *unknown), names=3)
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


def _row_profiles(profile: Profile) -> tuple[str, ...]:
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


SETS = 2
"""Labelled sets that shares are corrected by."""
CORRECTED_HOW = (
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


def corrected_of(found: AnswerFigures, profiles: Sequence[QuotedProfile]) -> list[Corrected]:
    """The share of each strategy and bound, corrected by the grader's best profiles."""
    known = [each.profile for each in profiles[:SETS]]
    return [
        Corrected(each.strategy, each.correct, {profile.set: _corrected(each, profile) for profile in known})
        for each in found.strategies
    ]


def _corrected(found: StrategyAnswers, profile: Profile) -> Estimate:
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
    notes = (
        [CORRECTED_HOW]
        if sets
        else ["The grader was not calibrated, so that nothing can be corrected: ctxbench calibrate."]
    )
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
