"""What answers and grades come to, worked by hand."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.harness.answers.figures import AnswerFigures, StrategyAnswers, figures
from ctxbench.metrics.value import Missing
from ctxbench.reports.answers import tables
from ctxbench.reports.verdict import _shares


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


def test_a_share_of_what_the_whole_history_has_right() -> None:
    """Of 24 probes `none` has 20 right and the strategy 12: 60 % of it. Without `none` there is no such share."""
    rows = [*cell("window", "++-- +- " * 4), *MANY_BOUNDS]
    window = of(made([*cell("none", "++++ +- " * 4), *rows]), "window")
    assert (window.correct, window.base, window.of_whole, window.paired) == (0.5, 20 / 24, pytest.approx(0.6), 24)
    alone = of(made(rows), "window")
    assert (alone.correct, alone.paired, alone.in_pairs) == (0.5, 24, True)
    assert isinstance(alone.of_whole, Missing)


def test_the_interval_of_a_share_is_of_shares() -> None:
    """In eight conversations: no interval of that begins below 0 or ends above 1. In two there is none."""
    few = of(made([*cell("window", "++++ +-"), *BOUNDS]), "window").correct_interval
    assert few == Missing("few", "2 independent conversations are too few", (0.5, 1.0))
    found = made([*cell("window", "++++ +- " * 4), *MANY_BOUNDS])
    for name in ("last_turn", "window", "evidence_only"):
        about = of(found, name).correct_interval
        assert not isinstance(about, Missing)
        assert 0 <= about.low <= about.high <= 1


def answered(strategy: str, right: list[str]) -> list[dict[str, Any]]:
    """Probes of units of their own, right, wrong, or (`?`) without an answer."""
    lacks = {"answer": None, "missing": "does not fit", "correct": None}
    return [
        {"strategy": strategy, "conversation": f"c{at}", "number": number, "correct": sign == "+"}
        | (lacks if sign == "?" else {})
        for at, signs in enumerate(right)
        for number, sign in enumerate(signs)
    ]


def lawful(whole: list[str], window: list[str]) -> StrategyAnswers:
    """The figures of `window`, whose share is within 0 … 1 and its interval, and the one that the verdict has."""
    found = made([*answered("none", whole), *answered("window", window)])
    here = of(found, "window")
    assert isinstance(here.correct, float)
    assert 0 <= here.correct <= 1
    if not isinstance(about := here.correct_interval, Missing):
        assert 0 <= about.low <= here.correct <= about.high <= 1
    if here.in_pairs:
        assert _shares(found.counts)["window"] == pytest.approx(here.correct, abs=1e-12)
    return here


@pytest.mark.parametrize(("whole", "window", "correct"), [("++--", "??++", 1.0), ("++--", "--??", 0.0)])
def test_a_share_of_other_questions_is_a_share(whole: str, window: str, correct: float) -> None:
    """`none` has half right, and the gain in the other half is 100 points, or −100."""
    assert lawful([whole] * 10, [window] * 10).correct == correct


def test_what_the_whole_history_has_right_is_an_estimate() -> None:
    """It has none of the pairs right, so only the other questions spread: the interval reaches below the share too."""
    whole = ["--++" if at % 2 else "----" for at in range(20)]
    few = lawful(whole, ["--??"] * 20)
    assert (few.correct, few.paired) == (0.25, 40)
    assert not isinstance(few.correct_interval, Missing)
    assert few.correct_interval.low < 0.25 - 0.08
    assert few.correct_interval.high > 0.25 + 0.08


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.text("+-", min_size=4, max_size=4), st.text("+-?", min_size=4, max_size=4)), min_size=8))
def test_every_share_is_within_its_interval(units: list[tuple[str, str]]) -> None:
    """For any answers the share lies within its interval, both within 0 to 1, and the verdict has the same share."""
    whole, window = map(list, zip(*units, strict=True))
    if "+" in (signs := "".join(window)) or "-" in signs:
        lawful(whole, window)


def test_strategies_are_compared_in_pairs_with_the_whole_history() -> None:
    """One answer of one strategy is missing: it is compared over the other five, and the rest over all six."""
    rows = [*cell("none", "++++ ++"), *cell("window", "++-- +-"), *BOUNDS]
    rows[8] |= {"answer": None, "missing": "no answer within 60 s", "correct": None}
    found = made(rows)
    window = of(found, "window")
    assert (window.paired, window.correct, window.base, window.missing) == (5, 0.6, 1.0, 1)
    assert window.why == (("no answer within 60 s", 1),)
    assert of(found, "evidence_only").paired == 6
    counts = found.counts.set_index(["strategy", "conversation"]).loc["window"]
    assert counts.loc["a"].tolist() == [2.0, 3.0, 3.0]


def test_too_few_pairs_are_not_compared() -> None:
    """The window is answered in two of six pairs: it is shown, and not compared. Where it is the whole history that is
    answered so rarely, it is no base: each strategy stands by itself."""
    for name, others in (("window", "none"), ("none", "window")):
        rows = [*cell(name, "++-- +-"), *cell(others, "++++ ++"), *BOUNDS]
        for row in rows[2:6]:
            row |= {"answer": None, "missing": "does not fit", "correct": None}
        found = made(rows)
        few, other = of(found, name), of(found, others)
        assert (few.in_pairs, few.correct, few.paired) == (False, 1.0, 2)
        assert (other.in_pairs, other.correct, other.paired) == (True, 1.0, 6)
        assert isinstance(other.base, Missing) == (name == "none")


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
    assert (found.without_gold, found.answerable, of(found, "window").correct) == (1, 2, 1.0)
    assert of(found, "window").why == ()


def test_an_unknown_price_is_missing() -> None:
    """Nothing is 0 that is not known."""
    assert isinstance(of(made(cell("window", "+ +", cost=None)), "window").cost, Missing)


def test_nothing_graded_is_no_figure() -> None:
    """Every grade is missing: no share, no comparison, and the tables say why."""
    rows = cell("window", "++ +")
    for row in rows:
        row |= {"correct": None, "ungraded": "the grader's model is away"}
    found = made(rows)
    assert isinstance(of(found, "window").correct, Missing)
    shown = tables(found, ["note"])
    assert any("the grader's model is away" in cell for table in shown for row in table.rows for cell in row)
