"""Agreement of graders with human labels, as tables and as JSON, and shares corrected for a grader's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxbench.harness.answers.figures import AnswerFigures, StrategyAnswers
from ctxbench.harness.graders.calibration import Calibrated, LabelledSet
from ctxbench.harness.graders.profiles import Profile, QuotedProfile, corrected_by
from ctxbench.metrics.grading.agreement import Estimate
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, about, count, percent, reasons, shares, table_of

_GROUPS = {"language": "language", "kind": "kind", "system": "system", "answer": "kind of answer"}
"""Groups of a profile, with the words for them in tables."""
_MOST_SETS = 2  # labelled sets that shares are corrected by
_UNKNOWN = "How far {} agrees with people is not known: `ctxbench lab calibrate` measures it."


def figure(value: Value) -> str:
    """Return a share or coefficient as 0.716 or −0.021. A value close to 0 or 1 never reads so."""
    if isinstance(value, Missing):
        return f"({value.why})"
    text = f"{value:.3f}"
    if text.lstrip("-") in ("0.000", "1.000") and value not in (0, 1, -1):
        text = f"{value:.5f}"
    return text.replace("-", "−")


def interval(estimate: Estimate) -> str:
    """Return a figure with its interval: 0.716 (0.699 to 0.732); 0.0012 (0.0004 to 0.0029)."""
    value, ends = estimate.value, estimate.interval
    if isinstance(value, Missing):
        return figure(value)
    if isinstance(ends, Missing):
        return f"{figure(value)} (–)"
    digits = 4 if 0 < abs(value) < 0.01 else 3
    whole = f"{value:.4f}" if digits == 4 else figure(value)
    low, high = ends
    return f"{whole} ({low:.{digits}f} to {high:.{digits}f})".replace("-", "−")


def _columns(show: Callable[[Any], str], **heads: str) -> dict[str, Column]:
    """Return columns of an agreement's figures by their keys."""
    return {
        key: Column(head, f"of.{key}", lambda value: "–" if value is None else show(value))
        for key, head in heads.items()
    }


_integer = "{:,}".format
_GRADER, _ANSWERS = Column("grader", "grader"), Column("answers", "of.answers", _integer)
_FIGURES = {
    **_columns(interval, accuracy="accuracy", kappa="kappa", wrong_accepted="wrong accepted", auc="AUC"),
    **_columns(lambda of: figure(of.value), precision="precision", recall="recall", f1="F1", specificity="specificity"),
}
_CONFUSION = {
    "right, called right": "true_positive",
    "right, called wrong": "false_negative",
    "wrong, called right": "false_positive",
    "wrong, called wrong": "true_negative",
}
_PEOPLE = (
    *(_GRADER, Column("by", "by"), Column("of", "group"), _ANSWERS),
    Column("people: kappa", "of.people", interval),
    Column("grader: kappa", "of.grader", interval),
    Column("people: same", "of.people_same", figure),
    Column("grader: same", "of.grader_same", figure),
)


def _figures(**spare: int) -> list[Column]:
    """Return columns of figures by their keys, each with its place among those that a narrow terminal leaves out."""
    return [_FIGURES[key]._replace(spare=place) for key, place in spare.items()]


def tables(results: Sequence[Calibrated]) -> Iterator[Table]:
    """Yield for each set: agreement, confusion, groups, missing grades, time, cost."""
    for at, calibrated in enumerate(results):
        name, profiles = calibrated.labels.name, calibrated.profiles
        yield _main(calibrated, first=not at)
        cells = (Column(head, f"whole.confusion.{key}", _integer) for head, key in _CONFUSION.items())
        columns = (_GRADER, Column("graded", "graded", _integer), *cells)
        yield table_of(f"{name}: labels and verdicts", columns, profiles)
        for group, title in _GROUPS.items():
            rows = [
                {"grader": profile.grader, "group": value or "(none)", "of": of}
                for profile in profiles
                for value, of in profile.by.get(group, {}).items()
            ]
            if rows:
                figures = _figures(accuracy=0, kappa=0, recall=1, wrong_accepted=0)
                columns = (_GRADER, Column(title, "group"), _ANSWERS._replace(spare=2), *figures)
                yield table_of(f"{name}: by {title}", columns, rows, names=2)
        # How far people agree among themselves, and the grader with one of them, by group.
        people = [
            {"grader": profile.grader, "by": _GROUPS.get(group, "all answers"), "group": value or "–", "of": figures}
            for profile in profiles
            for group, by_value in profile.people.items()
            for value, figures in by_value.items()
        ]
        if people:
            yield table_of(f"{name}: what people disagree about", _PEOPLE, people, [about("people")], names=3)
        if missing := [
            (profile.grader, f"{answers:,} of {profile.asked:,} ({percent(answers / profile.asked)})", why)
            for profile in profiles
            for why, answers in profile.missing.items()
        ]:
            yield Table(f"{name}: without a grade", ("grader", "answers", "why"), tuple(missing), prose=True)
        yield _effort(calibrated)


def as_json(results: Sequence[Calibrated]) -> list[dict[str, Any]]:
    """Return the exact figures with the whole profile of each grader. Only `seconds` differ from run to run."""
    return [
        {
            "set": calibrated.labels.name,
            "digest": calibrated.labels.digest,
            "labelled_by": calibrated.labels.labelled_by,
            "answers": len(calibrated.labels.answers),
            "beside": {"right": calibrated.right, "raters": calibrated.raters},
            "graders": calibrated.profiles,
            "wrong_accepted": {profile.grader: profile.whole.wrong_accepted for profile in calibrated.profiles},
            "seconds": dict(zip((of.grader for of in calibrated.profiles), calibrated.seconds, strict=True)),
        }
        for calibrated in results
    ]


def quoted(grader: str, profiles: Sequence[QuotedProfile]) -> list[str]:
    """Return what stands beside a grader's scores: its agreement with each labelled set, a sentence each."""
    sentences = []
    for quote in profiles:
        profile, of = quote.profile, quote.profile.quoted
        whom = "people" if profile.labelled_by == "people" else f"labels by a {profile.labelled_by}"
        sentences.append(
            f"{profile.grader} agrees with {whom} on {profile.set}: kappa {interval(of.kappa)}, "
            f"accuracy {interval(of.accuracy)}, over {count(of.answers, 'answer')}."
            + (f" This is out of date: {quote.stale}." if quote.stale else "")
        )
    return sentences or [_UNKNOWN.format(grader)]


def _main(calibrated: Calibrated, first: bool) -> Table:
    labels, profiles = calibrated.labels, calibrated.profiles
    rows: list[dict[str, Any]] = [{"grader": profile.grader, "of": profile.whole} for profile in profiles]
    rows += [{"grader": f"{of.grader}, held out", "of": of.held_out} for of in profiles if of.held_out is not None]
    if (raters := calibrated.raters) is not None:
        same = Estimate(raters.same, Missing("undefined", "it has no interval"))
        rows.append(
            {"grader": _who(labels), "of": {**dict.fromkeys(_FIGURES), "accuracy": same, "kappa": raters.verdicts}}
        )
    notes = list(_notes(calibrated))
    if first:
        notes.append(about("calibration"))
    who = "people" if labels.labelled_by == "people" else f"a {labels.labelled_by}"
    sizes = f"{count(len(labels.answers), 'answer')} to {count(len(set(labels.questions)), 'question')}"
    title = f"{labels.name}: {sizes}, {percent(calibrated.right)} right, as labelled by {who}"
    figures = _figures(accuracy=0, kappa=0, wrong_accepted=0, auc=4, precision=2, recall=3, f1=1)
    return table_of(title, (_GRADER, *figures), rows, notes)


def _notes(calibrated: Calibrated) -> Iterator[str]:
    labels = calibrated.labels
    if (sample := labels.sample) is not None:
        how = ", as many of each system" if sample.by_system else ""
        yield f"A sample of {sample.answers:,} of {sample.of:,} answers{how}, by question, seed {sample.seed}."
    if labels.labelled_by != "people":
        yield "A model wrote the labels: this is agreement of one grader with another, not with people."
    for profile in calibrated.profiles:
        if profile.held_out is not None:
            yield about("calibration_held_out", grader=profile.grader, answers=profile.held_out.answers)
        if wrong := profile.less_exact:
            answers, share = count(wrong, "answer"), percent(wrong / profile.graded)
            yield about("calibration_less_exact", grader=profile.grader, answers=answers, share=share)
    if (raters := calibrated.raters) is not None:
        least, most = raters.raters
        several = f"{most}" if least == most else f"{least} to {most}"
        yield about("calibration_raters", who=_who(labels).capitalize(), answers=raters.answers, several=several)


def _who(labels: LabelledSet) -> str:
    return "people among themselves" if labels.labelled_by == "people" else "the labelling model with itself"


def _effort(calibrated: Calibrated) -> Table:
    """Return time and cost of grading."""
    rows = []
    for profile, seconds in zip(calibrated.profiles, calibrated.seconds, strict=True):
        money, cost = ("nothing", "none", "–"), profile.cost
        if cost is not None:
            per_thousand = 1000 * cost.dollars / profile.asked
            dollars = f"${per_thousand:,.4f}" if per_thousand else "$0"
            unpriced = f", {cost.unpriced:,} without a price" if cost.unpriced else ""
            used = (cost.input_tokens + cost.output_tokens) / profile.asked
            money = (dollars + unpriced, f"{cost.calls:,}", f"{used:,.0f}")
        size, unit, digits = (1, "s", 2) if seconds >= 1 else (1e3, "ms", 1) if seconds >= 1e-3 else (1e6, "µs", 0)
        rows.append((profile.grader, f"{seconds * size:,.{digits}f} {unit}", *money))
    heads = ("grader", "time per answer", "cost per 1,000", "model calls", "tokens per answer")
    return Table(f"{calibrated.labels.name}: time and cost", heads, tuple(rows), (about("calibration_effort"),))


def profile_table(by_grader: Mapping[str, Sequence[QuotedProfile]]) -> Table:
    """Return how far each grader agrees with each labelled set, by its profiles."""
    quotes = [quote for quotes in by_grader.values() for quote in quotes]
    rows = []
    for of in (quote.profile for quote in quotes):
        part = " (a sample)" * (of.sample is not None) + " (held out)" * (of.held_out is not None)
        rows.append({"grader": of.grader, "set": of.set + part, "labelled_by": of.labelled_by, "of": of.quoted})
    names = (_GRADER, Column("labelled set", "set"), Column("labelled by", "labelled_by"))
    columns = (*names, _ANSWERS, *_figures(accuracy=0, kappa=0, recall=0, specificity=0))
    notes = [about("profiles")]
    notes += [
        f"{quote.profile.grader} on {quote.profile.set} is out of date: {quote.stale}."
        for quote in quotes
        if quote.stale
    ]
    notes += [_UNKNOWN.format(name) for name, known in by_grader.items() if not known]
    return table_of("How far do graders agree with labelled answers?", columns, rows, notes, names=3)


class Corrected(NamedTuple):
    """Share correct of a strategy, as graded and corrected by each labelled set."""

    strategy: str
    seen: Value
    by: dict[str, Estimate]


def corrected_of(figures: AnswerFigures, profiles: Sequence[QuotedProfile]) -> list[Corrected]:
    """Return the share of each strategy and bound, corrected by the grader's best profiles."""
    known = [strategy.profile for strategy in profiles[:_MOST_SETS]]
    return [
        Corrected(of.strategy, of.correct, {profile.set: _corrected(of, profile) for profile in known})
        for of in figures.strategies
    ]


def _corrected(strategy: StrategyAnswers, profile: Profile) -> Estimate:
    """Return the share correct among the answers that are not UNKNOWN, corrected: UNKNOWN stays wrong."""
    correct, worth = strategy.correct, strategy.worth
    if isinstance(correct, Missing) or isinstance(worth, Missing) or not strategy.given:
        none = Missing("undefined", "every answer is UNKNOWN")
        lacking = next((value for value in (correct, worth) if isinstance(value, Missing)), none)
        return Estimate(lacking, lacking)
    part = strategy.given / strategy.paired
    estimate = corrected_by(profile, min(1.0, correct / part), worth * part)
    if isinstance(estimate.value, Missing) or isinstance(estimate.interval, Missing):
        return estimate
    return Estimate(estimate.value * part, Ends(estimate.interval.low * part, estimate.interval.high * part))


def corrected_table(corrected: Sequence[Corrected]) -> Table:
    """Return a row for each strategy, a column for each labelled set."""

    def cell(estimate: Estimate) -> str:
        if isinstance(estimate.value, Missing):
            return percent(estimate.value)
        ends = estimate.interval
        return f"{percent(estimate.value)} ({'–' if isinstance(ends, Missing) else shares(*ends)})"

    def by(name: str) -> Column:
        return Column(f"by {name}", lambda row: row.by[name], cell)

    sets = list(dict.fromkeys(name for row in corrected for name in row.by))
    columns = [Column("strategy", "strategy"), Column("as graded", "seen", percent)]
    columns += map(by, sets)
    notes = [
        about("corrected")
        if sets
        else "The grader is not calibrated, so nothing can be corrected: `ctxbench lab calibrate` does it.",
        reasons(value.value for row in corrected for value in row.by.values()),
    ]
    return table_of("How many answers are correct, corrected for the grader's errors?", columns, corrected, notes)
