"""Graders beside labels, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..harness.calibrating.beside import Baseline
from ..harness.calibrating.calibrate import Calibrated
from ..harness.calibrating.labels import LabelledSet
from ..harness.calibrating.profile import Profile
from ..harness.calibrating.profiles import Found
from ..metrics.grading.agreement import Agreement
from .calibration_tables import effort, figure, injections, interval, missing, spans, thresholds
from .render import Table
from .words import count, percent

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


def quoted(grader: str, found: Sequence[Found]) -> list[str]:
    """What is said of a grader beside its scores, a sentence for each labelled set."""
    if not found:
        return [f"How far {grader} agrees with people is not known: `ctxbench calibrate` measures it."]
    return [_quoted(each) for each in found]


def _quoted(found: Found) -> str:
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
