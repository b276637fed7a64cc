"""Answers and their grades, as tables and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from ctxbench.harness.answers.figures import BOUNDS, AnswerFigures, figures
from ctxbench.harness.answers.store import USUAL, Answered, answered, grades_itself
from ctxbench.harness.answers.tally import tallies_json
from ctxbench.harness.folder.run import Run
from ctxbench.harness.graders.profiles import Profiles
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Missing, Ratio, Value

from .calibration import figure, quoted
from .render import (
    Column,
    Table,
    about,
    amount,
    count,
    exact,
    integer,
    percent,
    sample,
    share_range,
    table_of,
    tokens,
    with_reach,
)

_TOO_FEW = "†"  # follows a strategy of which too little is graded to compare it
KAPPA = 0.6  # Cohen's kappa with people from which on a grader's shares are taken for right answers
_MOST_PROFILES = 2  # calibrations of a grader that stand beside its grades

_COLUMNS = (
    Column("strategy", "strategy", mark=lambda of: f" {_TOO_FEW}" * (not of.in_pairs)),
    Column("correct", "correct", percent),
    Column("95 % interval", "correct_interval", share_range),
    Column("of whole", "of_whole", percent),
    Column("pairs", "paired", integer),
    Column("not found", "unknown", integer),
    Column("abstained", "abstained", percent, spare=2),
    Column("missing", lambda of: of.missing + of.ungraded, integer),
    Column("tokens in", "input_tokens", tokens, spare=3),
    Column("out", "output_tokens", tokens, spare=1),
    Column("cost", "cost", partial(amount, "usd"), spare=4),
)


def tables(graded: AnswerFigures, notes: Sequence[str]) -> list[Table]:
    """Return the main table, the bounds, the share correct by category, why answers are missing, and who answered."""
    strategies = [of for of in graded.strategies if of.strategy not in BOUNDS]
    bounds = [of for of in graded.strategies if of.strategy in BOUNDS]
    title = (
        f"How many answers are correct? By {graded.answerer}, graded by {graded.grader}: "
        f"{count(graded.probes, 'probe')} in {sample(graded.conversations, graded.units)}, "
        f"{graded.answerable:,} of them with an answer"
    )
    shown = [
        table_of(title, _COLUMNS, strategies, _notes(graded)),
        table_of("What are the bounds of the answers?", _COLUMNS, bounds),
    ]
    kinds = list(dict.fromkeys(kind for of in graded.by_category.values() for kind in of))
    if len(kinds) > 1:
        none = Missing("undefined", "no such probe is graded")

        def of_kind(kind: str) -> Column:
            return Column(kind or "(none)", lambda row: row[1].get(kind, none), with_reach)

        columns = (Column("strategy", lambda row: row[0]), *map(of_kind, kinds))
        shown.append(table_of("Which kinds of questions are answered?", columns, graded.by_category.items()))
    if why := [(of.strategy, integer(times), text) for of in graded.strategies for text, times in of.why]:
        heads = ("strategy", "times", "why")
        shown.append(Table("Why answers or grades are missing", heads, tuple(why), prose=True))
    return [*shown, Table("Who answered, and who graded?", (), (), tuple(notes))]


def _notes(graded: AnswerFigures) -> Iterator[str]:
    yield about("answers_correct")
    yield about("answers_not_found")
    if not all(of.in_pairs for of in graded.strategies):
        yield about("answers_too_few", mark=_TOO_FEW)
    if graded.without_gold:
        yield about("answers_without_gold", probes=count(graded.without_gold, "probe has", "probes have"))
    if graded.less_exact:
        number = count(graded.less_exact, "graded answer is", "graded answers are")
        yield about("answers_less_exact", answers=number, share=percent(graded.less_exact / graded.graded))


def uncalibrated(grader: str, profiles: Profiles) -> str:
    """Return in which of English and Chinese a grader is not known to agree with people (KAPPA); else empty."""
    kappas = dict[str, Value]()
    for quote in profiles.of(grader):
        kappas.setdefault(quote.profile.language, quote.profile.quoted.kappa.value)
    if not kappas:
        return "how far it agrees with people is not known (ctxbench lab calibrate)"
    words = {"en": "English", "zh": "Chinese"}
    low = [
        f"{words[of]} {figure(kappa)}" for of, kappa in kappas.items() if isinstance(kappa, Missing) or kappa < KAPPA
    ]
    unknown = [f"{words[of]} not measured" for of in words if of not in kappas]
    return ", ".join([*low, *unknown]) and f"kappa with people: {', '.join([*low, *unknown])}, and it takes {KAPPA}"


def run_tables(answers: Answers) -> Iterator[Table]:
    """Yield the tables of a run: in full for the most capable answer model, and the share correct under each."""
    if answers.figures:
        first = answers.best
        yield from tables(first, answers.notes[first.answerer, first.grader])
    if len(answers.figures) > 1:
        none, columns, profiles = Missing("undefined", "not answered"), [Column("strategy", str)], Profiles()
        notes = [f"{' / '.join(pair)}: {' '.join(of[1:])}" for pair, of in answers.notes.items() if of[1:]]
        for graded in answers.figures:
            name = f"{graded.answerer} / {graded.grader}"
            for head, key, show in ((name, "correct", percent), ("95 % interval", "correct_interval", share_range)):
                by_strategy = defaultdict(lambda: none, {of.strategy: getattr(of, key) for of in graded.strategies})
                columns.append(Column(head, by_strategy.__getitem__, show))
            if why := uncalibrated(graded.grader, profiles):
                notes.append(f"Not calibrated: {name}: {why}.")
        names = dict.fromkeys(of.strategy for graded in answers.figures for of in graded.strategies)
        yield table_of("Correct, by answer model / grader", columns, names, notes)
    if answers.left:
        yield Table("Answers that are left out", (), (), answers.left)


def as_json(graded: AnswerFigures, notes: Sequence[str]) -> dict[str, Any]:
    """Return the exact figures of one answer model and grader."""
    plain = ("answerer", "grader", "conversations", "probes", "answerable", "without_gold", "less_exact")
    return {
        **{name: getattr(graded, name) for name in plain},
        "independent_units": graded.units,
        "strategies": {
            of.strategy: exact(of)
            | {"by_category": exact(graded.by_category[of.strategy])}
            | {key: [{"why": why, "times": times} for why, times in getattr(of, key)] for key in ("why", "left_out")}
            for of in graded.strategies
        },
        "replies": tallies_json(graded.replies),
        "notes": list(notes),
    }


def all_json(answers: Answers | None) -> list[dict[str, Any]] | None:
    """Return the exact figures of a run, for each answer model and grader."""
    if answers is None:
        return None
    return [as_json(graded, answers.notes[graded.answerer, graded.grader]) for graded in answers.figures]


@dataclass(frozen=True, slots=True)
class Answers:
    """Figures of a run for each answer model and grader."""

    figures: tuple[AnswerFigures, ...]
    """Figures over the conversations that every strategy finished, the most capable answer model first."""
    notes: dict[tuple[str, str], tuple[str, ...]]  # reliability of each pair of answer model and grader, in sentences
    left: tuple[str, ...]  # answers that are left out, and why

    @property
    def best(self) -> AnswerFigures:
        """The figures of the most capable answer model that has any right or wrong answers."""
        return next((of for of in self.figures if of.is_answered), self.figures[0])


def answers_of(run: Run, uneven: frozenset[str] = frozenset()) -> Answers | None:
    """Return all answers of a run, or None if there are none, without the `uneven` conversations."""
    stored = answered(run)
    if not stored.whole and not stored.left_out:
        return None
    profiles = Profiles()

    def confined(of: Answered) -> AnswerFigures:
        here = ~of.answers.conversation.isin(uneven).to_numpy()
        return figures(of.answers[here], of.grades[here], of.answerer, of.grader, run.units)

    return Answers(
        tuple(map(confined, stored.whole)),
        {(answers.answerer, answers.grader): tuple(notes(answers, profiles)) for answers in stored.whole},
        stored.left_out,
    )


def notes(stored: Answered, profiles: Profiles) -> Iterator[str]:
    """Yield who answered and graded, and how reliable that is."""
    yield f"Answered by {stored.answerer}, graded by {stored.grader}."
    if stored.answerer == USUAL[0]:
        yield about("answers_offline")
    if grades_itself(stored.answerer, stored.grader):
        yield "Warning: the model graded its own answers, and models favour themselves: name another --grader."
    yield from quoted(stored.grader, profiles.of(stored.grader)[:_MOST_PROFILES])


def sums_of(metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of a share, got and wanted, by conversation and strategy."""
    share = METRICS[metric].of
    assert isinstance(share, Ratio)
    got, wanted = share.parts(rows)
    keys = [rows.conversation.astype(str), rows.strategy.astype(str)]
    return pd.DataFrame({"got": got, "wanted": wanted}, rows.index).groupby(keys).sum().reset_index()


def evidence_rows(run: Run, uneven: frozenset[str], strategies: Collection[str]) -> pd.DataFrame:
    """Return the probes of some strategies, in the conversations in which all of them had a context for each."""
    rows = run.arrow("probes").select(["conversation", "strategy", "failed", "evidence_state", "answer"]).to_pandas()
    rows = rows[rows.strategy.isin(strategies)]
    broken = set(rows.conversation[rows.failed != ""].astype(str))
    complete: pd.DataFrame = rows[~rows.conversation.isin(broken | uneven)]
    return complete
