"""What was answered from what each strategy sends: by strategy, by kind, by who answered and who graded."""

from __future__ import annotations

import pandas as pd

from ....harness.answering.figures import BOUNDS, Figures
from ....metrics.value import Missing
from ...answering import Answers
from ...answers import run_tables
from ...figures.answers import Mark, between
from ...measures import Pair, measures, pairs, table
from ...results import Results
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where nothing was answered."""
    found = results.summary.answers
    if found is None:
        return None
    figure = _figure(found.found[0]) if found.found else None
    orders = [table(_alike(results, found))] if found.found else []
    return Section(
        "answers",
        "Answers",
        "The recordings' questions, answered from what each strategy would send for them. What a context lacks cannot "
        "be answered; what it has may still not be found.",
        (*((figure,) if figure else ()), *run_tables(found, by_kind=True), *orders),
        {"answers": _frame(found.found)} if found.found else {},
    )


def _alike(results: Results, found: Answers) -> list[Pair]:
    uneven = results.summary.uneven
    return pairs(measures(results.run, found, uneven))


def _figure(found: Figures) -> Drawn | None:
    """None where nothing is graded."""
    marks, bounds = [], {}
    for each in found.strategies:
        if isinstance(each.correct, Missing) or not each.in_pairs:
            continue
        if each.strategy in BOUNDS:
            bounds[("floor", "ceiling")[BOUNDS.index(each.strategy)]] = each.correct
        else:
            none = (each.correct, each.correct)
            ends = none if isinstance(each.correct_interval, Missing) else each.correct_interval
            marks.append(Mark(each.strategy, each.correct, *ends))
    if not marks:
        return None
    return Drawn(
        "answers",
        "Correct, between the floor and the ceiling",
        f"A mark a strategy: of the questions with an answer, the share answered right by {found.answerer}, graded by "
        f"{found.grader}; bars are 95 % intervals over conversations. The lines are the bounds: the last turn alone, "
        "and the evidence alone.",
        lambda: between(marks, bounds),
    )


def _frame(found: tuple[Figures, ...]) -> pd.DataFrame:
    names = ("correct", "given", "unknown", "refused", "retention", "missing", "ungraded", "paired", "input_tokens")
    return pd.DataFrame(
        [
            {"answerer": of.answerer, "grader": of.grader, "strategy": each.strategy}
            | {name: getattr(each, name) for name in names}
            | {f"correct {kind or '(no kind)'}": value for kind, value in each.by_category.items()}
            for of in found
            for each in of.strategies
        ]
    )
