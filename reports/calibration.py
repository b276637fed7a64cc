"""Agreement of graders with human labels, as tables and as JSON, and shares corrected for a grader's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from ctxbench.harness.answers.figures import AnswerFigures, StrategyAnswers
from ctxbench.harness.graders.calibration import Baseline, Calibrated
from ctxbench.harness.graders.labels import LabelledSet
from ctxbench.harness.graders.profiles import Profile, QuotedProfile, corrected_by, unversioned
from ctxbench.metrics.grading.agreement import Agreement, Estimate
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, count, percent, reasons, shares, table_of

_HOW = (
    "In brackets: 95 % intervals from a BCa bootstrap of the questions. Kappa (Cohen's) is agreement beyond chance; "
    "recall is the share of right answers called right, wrong accepted that of wrong answers called right.",
)
_IN_SAMPLE = (
    "At best is no grader but the mark to beat: a score at the threshold that suits these very answers best, for "
    "accuracy and for kappa separately."
)
_GROUPS = {"language": "language", "kind": "kind", "system": "system", "answer": "kind of answer"}
"""Groups of a profile, with the words for them in tables."""
_VARIANT = re.compile(r"(?:, )?\bvariant='(\w+)'")
_PROFILE_NOTE = (
    "Kappa (Cohen's) is agreement beyond chance; in brackets: 95 % intervals over questions. Of a set that the grader "
    "was fitted on, only the other answers count."
)
# Labelled sets that shares are corrected by.
_MOST_SETS = 2
_CORRECTED_NOTE = (
    "Corrected: the share if the grader errs as often here as on the answers of that set, which people labelled (Rogan "
    "and Gladen; interval by Lang and Reiczigel). Where two sets disagree, the grader errs differently on one of them."
)


def tables(results: Sequence[Calibrated]) -> Iterator[Table]:
    """Yield for each set: agreement, confusion, groups, thresholds, variants, missing grades, time, cost."""
    for at, calibrated in enumerate(results):
        yield _main(calibrated, first=not at)
        yield table_of(f"{calibrated.labels.name}: labels and verdicts", _CONFUSION, calibrated.profiles)
        for name, title in _GROUPS.items():
            if rows := [row for profile in calibrated.profiles for row in _by(profile, name)]:
                columns = (
                    Column("grader", lambda row: row[0].grader),
                    Column(title, lambda row: row[1] or "(none)"),
                    Column("answers", lambda row: row[2].answers, _integer),
                    Column("accuracy", lambda row: row[2].accuracy, interval),
                    Column("kappa", lambda row: row[2].kappa, interval),
                    Column("recall", lambda row: row[2].recall.value, figure),
                    Column("wrong accepted", lambda row: row[2].wrong_accepted, interval),
                )
                title = f"{calibrated.labels.name}: by {title}"
                yield table_of(title, columns, rows, names=2, spare=("recall", "answers"))
        yield from people_tables(calibrated)
        yield thresholds(calibrated)
        yield from variants_tables(calibrated)
        yield from missing(calibrated)
        yield effort(calibrated)


def as_json(results: Sequence[Calibrated]) -> list[dict[str, Any]]:
    """Return the exact figures with the whole profile of each grader. Only `seconds` differ from run to run."""
    return [
        {
            "set": calibrated.labels.name,
            "digest": calibrated.labels.digest,
            "labelled_by": calibrated.labels.labelled_by,
            "answers": len(calibrated.labels.answers),
            "beside": calibrated.beside,
            "graders": calibrated.profiles,
            "wrong_accepted": {profile.grader: profile.whole.wrong_accepted for profile in calibrated.profiles},
            "seconds": {
                grader.grader: taken for grader, taken in zip(calibrated.profiles, calibrated.seconds, strict=True)
            },
        }
        for calibrated in results
    ]


def quoted(grader: str, profiles: Sequence[QuotedProfile]) -> list[str]:
    """Return what stands beside a grader's scores: its agreement with each labelled set, a sentence each."""
    if not profiles:
        return [f"How far {grader} agrees with people is not known: `ctxbench lab calibrate` measures it."]
    return [_quoted(profile) for profile in profiles]


def _quoted(quote: QuotedProfile) -> str:
    profile, of = quote.profile, quote.profile.quoted
    part = "".join(f", {name} {value}" for name, value in sorted(profile.only.items()))
    stale = f" This is out of date: {quote.stale}." if quote.stale else ""
    whom = "people" if profile.labelled_by == "people" else f"labels by a {profile.labelled_by}"
    return (
        f"{profile.grader} agrees with {whom} on {profile.set}{part}: kappa {interval(of.kappa)}, accuracy "
        f"{interval(of.accuracy)}, over {count(of.answers, 'answer')}.{stale}"
    )


def _main(calibrated: Calibrated, first: bool) -> Table:
    heads = ("grader", "accuracy", "kappa", "wrong accepted", "AUC", "precision", "recall", "F1")
    rows = [_row(profile.grader, profile.whole) for profile in calibrated.profiles]
    rows += [_held_out(profile) for profile in calibrated.profiles if profile.held_out is not None]
    rows += [_baseline(baseline) for baseline in calibrated.beside.baselines]
    if calibrated.beside.raters is not None:
        same = calibrated.beside.raters.same
        rows.append((_who(calibrated.labels), figure(same), interval(calibrated.beside.raters.verdicts), *["–"] * 5))
    notes = (
        *_notes(calibrated),
        *(_HOW if first else ()),
        *((_IN_SAMPLE,) if first and calibrated.beside.baselines else ()),
    )
    return Table(_title(calibrated), heads, tuple(rows), notes, spare=("F1", "precision", "recall", "AUC"))


def _row(name: str, agreement: Agreement) -> tuple[str, ...]:
    rest = (agreement.precision, agreement.recall, agreement.f1)
    around = (agreement.accuracy, agreement.kappa, agreement.wrong_accepted, agreement.auc)
    return (name, *map(interval, around), *(figure(estimate.value) for estimate in rest))


def _held_out(profile: Profile) -> tuple[str, ...]:
    return _row(f"{profile.grader}, held out", profile.quoted)


def _baseline(baseline: Baseline) -> tuple[str, ...]:
    name = f"{baseline.name}, at best"
    return (name, interval(baseline.accuracy), interval(baseline.kappa), "–", interval(baseline.auc), *["–"] * 3)


def _title(calibrated: Calibrated) -> str:
    labels = calibrated.labels
    answers = count(len(labels.answers), "answer")
    questions = count(len(set(labels.questions)), "question")
    who = "people" if labels.labelled_by == "people" else f"a {labels.labelled_by}"
    return f"{labels.name}: {answers} to {questions}, {percent(calibrated.beside.right)} right, as labelled by {who}"


def _notes(calibrated: Calibrated) -> Iterator[str]:
    labels, beside = calibrated.labels, calibrated.beside
    if labels.only:
        yield f"Only: {', '.join(f'{name} {value}' for name, value in labels.only)}."
    if (sample := labels.sample) is not None:
        how = ", as many of each system" if sample.by_system else ""
        yield f"A sample of {sample.answers:,} of {sample.of:,} answers{how}, by question, seed {sample.seed}."
    if labels.labelled_by != "people":
        yield "A model wrote the labels: this is agreement of one grader with another, not with people."
    for profile in calibrated.profiles:
        if profile.held_out is not None:
            yield (
                f"{profile.grader} was fitted on answers of this set. Held out: the other "
                f"{profile.held_out.answers:,}, whose figures other reports use."
            )
        if profile.less_exact:
            yield (
                f"{profile.grader} calls {count(profile.less_exact, 'answer')} wrong "
                f"({percent(profile.less_exact / profile.graded)}), whose date fits but is less exact than the gold."
            )
    if (raters := beside.raters) is not None:
        least, most = raters.raters
        several = f"{most}" if least == most else f"{least} to {most}"
        yield (
            f"{_who(labels).capitalize()}: {raters.answers:,} answers were labelled {several} times. Accuracy is how "
            "often two labels of an answer agree, kappa is Fleiss'; kappa of the ratings, weighted by squared "
            f"distances, is {interval(raters.ratings)}."
        )


def _who(labels: LabelledSet) -> str:
    return "people among themselves" if labels.labelled_by == "people" else "the labelling model with itself"


_integer = "{:,}".format

_CONFUSION = (
    Column("grader", lambda profile: profile.grader),
    Column("graded", lambda profile: profile.graded, _integer),
    Column("right, called right", lambda profile: profile.whole.confusion.true_positive, _integer),
    Column("right, called wrong", lambda profile: profile.whole.confusion.false_negative, _integer),
    Column("wrong, called right", lambda profile: profile.whole.confusion.false_positive, _integer),
    Column("wrong, called wrong", lambda profile: profile.whole.confusion.true_negative, _integer),
)


def _by(profile: Profile, name: str) -> Iterator[tuple[Profile, str, Agreement]]:
    """Yield the values of a group, each with the agreement on its answers."""
    for value, agreement in profile.by.get(name, {}).items():
        yield profile, value, agreement


def people_tables(calibrated: Calibrated) -> Iterator[Table]:
    """Yield how far people agree among themselves, and the grader with one of them, by group."""
    rows = [
        (profile.grader, "all answers" if name == "all" else _GROUPS[name], value or "–", figures)
        for profile in calibrated.profiles
        for name, by_value in profile.people.items()
        for value, figures in by_value.items()
    ]
    if not rows:
        return
    columns = (
        *(Column(head, itemgetter(at)) for at, head in enumerate(("grader", "by", "of"))),
        Column("answers", lambda row: row[3].answers, _integer),
        Column("people: kappa", lambda row: row[3].people, interval),
        Column("grader: kappa", lambda row: row[3].grader, interval),
        Column("people: same", lambda row: row[3].people_same, figure),
        Column("grader: same", lambda row: row[3].grader_same, figure),
    )
    note = (
        "Two labels of an answer by people, and the grader's verdict with one label: where people disagree, no grader "
        "can agree with all. Same is the share that are equal."
    )
    yield table_of(f"{calibrated.labels.name}: what people disagree about", columns, rows, (note,), names=3)


def thresholds(calibrated: Calibrated) -> Table:
    """Return how well a threshold on the score does that is learned on one half of the questions."""
    columns = (
        Column("grader", lambda profile: profile.grader),
        Column("threshold", lambda profile: profile.threshold.threshold, figure),
        Column("accuracy", lambda profile: profile.threshold.accuracy, interval),
        Column("kappa", lambda profile: profile.threshold.kappa, interval),
        Column("own accuracy", lambda profile: profile.threshold.own_accuracy.value, figure),
        Column("own kappa", lambda profile: profile.threshold.own_kappa.value, figure),
    )
    note = (
        "The threshold of the score with the highest kappa on one half of the questions, tried on the other half. Own: "
        "the grader's own verdicts there."
    )
    thresholds = [profile.threshold.threshold for profile in calibrated.profiles]
    whys = dict.fromkeys(threshold.detail for threshold in thresholds if isinstance(threshold, Missing))
    title = f"{calibrated.labels.name}: a threshold learned from the labels"
    return table_of(title, columns, calibrated.profiles, (note, *(f"(undefined): {why}." for why in whys)))


def variants_tables(calibrated: Calibrated) -> Iterator[Table]:
    """Yield how far the strict and the lenient variant of a grader differ."""
    if rows := tuple(variants(calibrated.profiles)):
        heads = ("grader", "strict", "lenient", "kappa, strict", "kappa, lenient")
        note = "The share of answers called right, by two rubrics for the same answers."
        yield Table(f"{calibrated.labels.name}: strict and lenient", heads, rows, (note,))


def variants(profiles: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    """Yield the share called right and kappa of each grader that has a strict and a lenient variant."""
    both: dict[str, dict[str, Profile]] = {}
    for profile in profiles:
        variant = _VARIANT.search(profile.grader)
        name = _VARIANT.sub("", unversioned(profile.grader))
        both.setdefault(name, {})[variant[1] if variant else "strict"] = profile
    for name, by_variant in both.items():
        if "lenient" in by_variant and "strict" in by_variant:
            strict, lenient = by_variant["strict"].whole, by_variant["lenient"].whole
            yield name, _called(strict), _called(lenient), interval(strict.kappa), interval(lenient.kappa)


def _called(agreement: Agreement) -> str:
    """Return the share of answers that the grader calls right."""
    right = agreement.confusion.true_positive + agreement.confusion.false_positive
    return percent(right / agreement.answers) if agreement.answers else "(undefined)"


def missing(calibrated: Calibrated) -> Iterator[Table]:
    """Yield the answers without a grade, and why."""
    if rows := tuple(_missing(calibrated.profiles)):
        yield Table(f"{calibrated.labels.name}: without a grade", ("grader", "answers", "why"), rows, prose=True)


def _missing(profiles: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    for profile in profiles:
        for why, answers in profile.missing.items():
            yield profile.grader, f"{answers:,} of {profile.asked:,} ({percent(answers / profile.asked)})", why


def effort(calibrated: Calibrated) -> Table:
    """Return time and cost of grading."""
    heads = ("grader", "time per answer", "cost per 1,000", "model calls", "tokens per answer")
    rows = []
    for profile, seconds in zip(calibrated.profiles, calibrated.seconds, strict=True):
        cost = profile.cost
        if cost is None:
            money = ("nothing", "none", "–")
        else:
            per_thousand = 1000 * cost.dollars / profile.asked
            dollars = (f"${per_thousand:,.4f}" if per_thousand else "$0") + (
                f", {cost.unpriced:,} without a price" if cost.unpriced else ""
            )
            used = (cost.input_tokens + cost.output_tokens) / profile.asked
            money = (dollars, f"{cost.calls:,}", f"{used:,.0f}")
        rows.append((profile.grader, _seconds(seconds), *money))
    note = "Times differ from run to run, and replies from a cassette take almost none. Costs count replayed calls too."
    return Table(f"{calibrated.labels.name}: time and cost", heads, tuple(rows), (note,))


def _seconds(value: float) -> str:
    """14 µs · 3.2 ms · 1.25 s."""
    if value < 1e-3:
        return f"{value * 1e6:,.0f} µs"
    return f"{value * 1e3:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def figure(value: Value) -> str:
    """Return a share or coefficient as 0.716 or −0.021. A value close to 0 or 1 never reads so."""
    match value:
        case Missing(why=why):
            return f"({why})"
        case _:
            text = f"{value:.3f}"
    if text.lstrip("-") in ("0.000", "1.000") and value not in (0, 1, -1):
        text = f"{value:.5f}"
    return text.replace("-", "−")


def interval(estimate: Estimate) -> str:
    """Return a figure with its interval: 0.716 (0.699 to 0.732); 0.0012 (0.0004 to 0.0029)."""
    match estimate.value, estimate.interval:
        case Missing(), _:
            return figure(estimate.value)
        case _, Missing():
            return f"{figure(estimate.value)} (–)"
        case value, (low, high):
            digits = 4 if 0 < abs(value) < 0.01 else 3
            ends = f"{low:.{digits}f} to {high:.{digits}f}"
            whole = f"{value:.4f}" if digits == 4 else figure(value)
            return f"{whole} ({ends})".replace("-", "−")
    raise AssertionError


def profile_tables(by_grader: Mapping[str, Sequence[QuotedProfile]]) -> Iterator[Table]:
    """Yield the profiles of graders: agreement by set and by language, strict and lenient variants."""
    rows = tuple(_row_profiles(quote.profile) for quotes in by_grader.values() for quote in quotes)
    stale = [
        f"{quote.profile.grader} on {quote.profile.set} is out of date: {quote.stale}."
        for quotes in by_grader.values()
        for quote in quotes
        if quote.stale
    ]
    unknown = [
        f"How far {name} agrees with people is not known: `ctxbench lab calibrate` measures it."
        for name, quotes in by_grader.items()
        if not quotes
    ]
    heads = ("grader", "labelled set", "labelled by", "answers", "accuracy", "kappa", "recall", "specificity")
    yield Table(
        "How far do graders agree with labelled answers?", heads, rows, (_PROFILE_NOTE, *stale, *unknown), names=3
    )
    profiles = [quote.profile for quotes in by_grader.values() for quote in quotes]
    if parts := tuple(row for quote in profiles for row in _by_language(quote)):
        yield Table(
            "Does agreement differ by language?",
            ("grader", "labelled set", "language", "answers", "accuracy", "kappa"),
            parts,
            names=3,
        )
    if spans := tuple(variants(profiles)):
        yield Table(
            "How much do strict and lenient grading differ?",
            ("grader", "strict", "lenient", "kappa, strict", "kappa, lenient"),
            spans,
        )


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


class Corrected(NamedTuple):
    """Share correct of a strategy, as graded and corrected by each labelled set."""

    strategy: str
    seen: Value
    by: dict[str, Estimate]


def corrected_of(figures: AnswerFigures, profiles: Sequence[QuotedProfile]) -> list[Corrected]:
    """Return the share of each strategy and bound, corrected by the grader's best profiles."""
    known = [strategy.profile for strategy in profiles[:_MOST_SETS]]
    return [
        Corrected(
            strategy.strategy, strategy.correct, {profile.set: _corrected(strategy, profile) for profile in known}
        )
        for strategy in figures.strategies
    ]


def _corrected(strategy: StrategyAnswers, profile: Profile) -> Estimate:
    """Return the share correct among the answers that are not UNKNOWN, corrected: UNKNOWN stays wrong."""
    if isinstance(strategy.correct, Missing):
        return Estimate(strategy.correct, strategy.correct)
    if isinstance(strategy.worth, Missing):
        return Estimate(strategy.worth, strategy.worth)
    if not strategy.given:
        none = Missing("undefined", "every answer is UNKNOWN")
        return Estimate(none, none)
    part = strategy.given / strategy.paired
    estimate = corrected_by(profile, min(1.0, strategy.correct / part), strategy.worth * part)
    if isinstance(estimate.value, Missing) or isinstance(estimate.interval, Missing):
        return estimate
    return Estimate(estimate.value * part, Ends(estimate.interval.low * part, estimate.interval.high * part))


def corrected_json(corrected: Sequence[Corrected]) -> dict[str, object]:
    """Return the exact figures by strategy."""
    return {strategy.strategy: {"seen": strategy.seen, "by": strategy.by} for strategy in corrected}


def corrected_table(corrected: Sequence[Corrected]) -> Table:
    """Return a row for each strategy, a column for each labelled set."""
    sets = list(dict.fromkeys(name for strategy in corrected for name in strategy.by))
    rows = tuple(
        (strategy.strategy, percent(strategy.seen), *(_cell(strategy.by[name]) for name in sets))
        for strategy in corrected
    )
    notes = (
        [_CORRECTED_NOTE]
        if sets
        else ["The grader is not calibrated, so nothing can be corrected: `ctxbench lab calibrate` does it."]
    )
    notes += filter(None, [reasons(value.value for strategy in corrected for value in strategy.by.values())])
    return Table(
        "How many answers are correct, corrected for the grader's errors?",
        ("strategy", "as graded", *(f"by {name}" for name in sets)),
        rows,
        tuple(notes),
    )


def _cell(estimate: Estimate) -> str:
    match estimate.value, estimate.interval:
        case Missing(), _:
            return percent(estimate.value)
        case _, Missing():
            return f"{percent(estimate.value)} (–)"
        case value, (low, high):
            return f"{percent(value)} ({shares(low, high)})"
    raise AssertionError
