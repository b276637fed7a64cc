"""What answers and grades come to, worked by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ctxbench.harness.answers.figures import AnswerFigures, StrategyAnswers, figures
from ctxbench.metrics.statistics.intervals import WITHIN_NOISE
from ctxbench.metrics.value import Missing
from ctxbench.reports.answers import tables


def made(rows: list[dict[str, Any]]) -> AnswerFigures:
    """Figures of rows, most of which are like any other."""
    usual = {
        "conversation": "a", "number": 0, "probe": "q", "category": "plain", "answerable": True, "gold": True,
        "answer": "x", "missing": None, "support": "", "rounds": 1, "input_tokens": 100, "output_tokens": 2,
        "cost": 0.5, "called": [], "events": [],
    }  # fmt: skip
    answers = [usual | {name: value for name, value in row.items() if name in {*usual, "strategy"}} for row in rows]
    grades = [
        {"correct": row.get("correct"), "missing": row.get("ungraded"), "reason": row.get("reason", "")} for row in rows
    ]
    return figures(pd.DataFrame(answers), pd.DataFrame(grades, dtype=object), "offline", "rules", {})


def cell(strategy: str, right: str, **more: Any) -> list[dict[str, Any]]:
    """Probes of some conversations: `++-- +-`, right or wrong."""
    return [
        {"strategy": strategy, "conversation": name, "number": number, "correct": sign == "+", **more}
        for name, signs in zip("abcdefgh", right.split(), strict=False)
        for number, sign in enumerate(signs)
    ]


BOUNDS = (*cell("last_turn", "+--- --"), *cell("evidence_only", "++++ +-"))


MANY_BOUNDS = (*cell("last_turn", "+--- -- " * 4), *cell("evidence_only", "++++ +- " * 4))


def of(found: AnswerFigures, name: str) -> StrategyAnswers:
    return next(each for each in found.strategies if each.strategy == name)


def test_retention_is_between_the_floor_and_the_ceiling() -> None:
    """Of 24 probes the floor has 4 right, the ceiling 20, the strategy 12: half of the way."""
    found = made([*cell("window", "++-- +- " * 4), *MANY_BOUNDS])
    window = of(found, "window")
    assert (window.correct, window.normalised_gain, window.paired) == (0.5, 0.5, 24)
    assert not isinstance(window.normalised_gain_interval, Missing)
    low, high = window.normalised_gain_interval
    assert low < 0.5 < high
    assert (of(found, "last_turn").normalised_gain, of(found, "evidence_only").normalised_gain) == (0, 1)


def test_a_gain_may_leave_the_bounds() -> None:
    """Worse than no memory is below 0, better than the evidence alone above 1: nothing is cut."""
    found = made([*cell("none", "++++ ++ " * 4), *cell("window", "---- -- " * 4), *MANY_BOUNDS])
    assert of(found, "none").normalised_gain == (24 - 4) / (20 - 4)
    assert of(found, "window").normalised_gain == (0 - 4) / (20 - 4)


def test_no_gain_is_shown_where_the_bounds_differ_by_noise() -> None:
    """The ceiling is above the floor in one of two conversations, or in one of eight: no gain, no interval of it."""
    for bounds in (
        (*cell("last_turn", "+ -"), *cell("evidence_only", "+ +")),
        (*cell("last_turn", "+ " * 7 + "-"), *cell("evidence_only", "+ " * 8)),
    ):
        window = of(made([*cell("window", "- " * (len(bounds) // 2)), *bounds]), "window")
        assert window.normalised_gain == window.normalised_gain_interval == WITHIN_NOISE
        assert window.correct == 0


def test_the_interval_of_a_share_is_of_shares() -> None:
    """In eight conversations: no interval of that begins below 0 or ends above 1. In two there is none."""
    few = of(made([*cell("window", "++++ +-"), *BOUNDS]), "window").correct_interval
    assert few == Missing("few", "2 independent conversations are too few", (0.5, 1.0))
    found = made([*cell("window", "++++ +- " * 4), *MANY_BOUNDS])
    for name in ("last_turn", "window", "evidence_only"):
        about = of(found, name).correct_interval
        assert not isinstance(about, Missing)
        assert 0 <= about.low <= about.high <= 1


def test_strategies_are_compared_over_the_same_probes() -> None:
    """One answer of one strategy is missing: that probe counts for none, and it is no wrong answer."""
    rows = [*cell("window", "++-- +-"), *BOUNDS]
    rows[2] |= {"answer": None, "missing": "no answer within 60 s", "correct": None}
    found = made(rows)
    window = of(found, "window")
    assert (found.paired, window.correct, window.missing) == (5, 0.6, 1)
    assert window.why == (("no answer within 60 s", 1),)
    assert of(found, "evidence_only").correct == 0.8


def test_a_strategy_with_few_grades_does_not_empty_the_comparison() -> None:
    """The whole history fits the model once in six: it is shown by its own, and all others are compared."""
    rows = [*cell("none", "++++ ++"), *cell("window", "++-- +-"), *BOUNDS]
    for row in rows[1:6]:
        row |= {"answer": None, "missing": "does not fit", "correct": None}
    found = made(rows)
    none = of(found, "none")
    assert (found.paired, none.in_pairs, none.correct, none.paired) == (6, False, 1.0, 1)
    assert isinstance(none.normalised_gain, Missing)
    assert (of(found, "window").in_pairs, of(found, "window").correct) == (True, 0.5)


def test_unknown_is_counted_by_whether_it_is_right() -> None:
    """It is a miss where there is an answer, and what should be said where there is none."""
    rows = [*cell("window", "++-- +-"), *BOUNDS]
    for at in (0, 6, 12):  # the first two probes have no answer
        rows[at] |= {"answer": "UNKNOWN", "answerable": False}
        rows[at + 1] |= {"answerable": False}
    rows[1] |= {"correct": False}
    rows[2] |= {"answer": "UNKNOWN"}
    window = of(made(rows), "window")
    assert (window.unknown, window.abstained) == (1, 0.5)
    assert (window.correct, window.paired) == (0.25, 4)
    assert isinstance(of(made([*cell("window", "+ +"), *BOUNDS]), "window").abstained, Missing)


def test_vague_dates_are_counted_on_their_own() -> None:
    """Wrong for a date that is less exact: two of 18 graded answers, and a right one with that reason is none."""
    rows = [*cell("window", "++-- +-"), *BOUNDS]
    for row in rows[1:4]:
        row["reason"] = "a date less exact than “8 May 2023”"
    found = made(rows)
    assert (found.less_exact, found.graded) == (2, 18)


def test_a_probe_without_gold_is_answered_and_not_graded() -> None:
    """It stands in no share, and is counted aloud."""
    rows = cell("window", "+- +")
    rows[1] |= {"gold": False, "correct": None, "ungraded": "nothing to compare with"}
    found = made(rows)
    assert (found.without_gold, found.paired, of(found, "window").correct) == (1, 2, 1.0)
    assert of(found, "window").why == ()


def test_an_unknown_price_is_missing_and_a_ceiling_like_the_floor_has_no_retention() -> None:
    """Nothing is 0 that is not known."""
    found = made([*cell("window", "+ +", cost=None), *cell("last_turn", "+ +"), *cell("evidence_only", "+ +")])
    assert isinstance(of(found, "window").cost, Missing)
    assert isinstance(of(found, "window").normalised_gain, Missing)


def test_nothing_graded_is_no_figure() -> None:
    """Every grade is missing: no share, no comparison, and the tables say why."""
    rows = cell("window", "++ +")
    for row in rows:
        row |= {"correct": None, "ungraded": "the grader's model is away"}
    found = made(rows)
    assert isinstance(of(found, "window").correct, Missing)
    shown = tables(found, ["note"])
    assert any("the grader's model is away" in cell for table in shown for row in table.rows for cell in row)
