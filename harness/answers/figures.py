"""Figures of answers and their grades, by strategy.

*Correct* is over the probes that can be answered, and *abstained* over those that cannot: a strategy that knows nothing
has all of the second right, and should not be praised for it. Strategies are compared over the same probes: those that
are graded under all of them. A strategy with grades for less than HALF of the probes that can be graded (its contexts
do not fit the model, say) is left out of that, and shown by its own. *Normalised gain* is
(strategy − floor) / (ceiling − floor): 0 % is no memory at all (`last_turn`), 100 % is what the answer model makes of
the evidence alone (`evidence_only`). It may leave 0–100 %, and is missing where ceiling − floor is within noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ctxbench.metrics.figures import fixed, units_of
from ctxbench.metrics.grading.rules import is_less_exact
from ctxbench.metrics.statistics.intervals import (
    BY_CONSTRUCTION,
    WITHIN_NOISE,
    Ends,
    Floats,
    Interval,
    by_unit,
    ends_of,
    is_noise,
    mean_of,
    over_units,
    resampled,
    share_interval,
)
from ctxbench.metrics.value import Missing, Value, grouped

from ..probes import CEILING, FLOOR
from .answer import UNKNOWN
from .tally import Tally, answer_tallies

BOUNDS = FLOOR, CEILING
HALF = 0.5
_KEYS = ["conversation", "number"]


@dataclass(frozen=True, slots=True)
class StrategyAnswers:
    """The figures of one strategy's answers."""

    strategy: str
    probes: int
    answered: int
    """UNKNOWN among them."""
    unknown: int
    """Of the probes that can be answered, those with the answer UNKNOWN."""
    abstained: Value
    """Share of the probes that cannot be answered of which that was seen, by the grader."""
    missing: int
    why: tuple[tuple[str, int], ...]
    """Why there is no answer, or no grade, and how often."""
    ungraded: int
    """Answered, but without a grade: no gold, or the grader failed."""
    paired: int
    """Probes with an answer that all strategies are compared on; its own, if it is left out of that."""
    in_pairs: bool
    correct: Value
    correct_interval: Ends | Missing
    given: int
    """Of the paired probes, those with another answer than UNKNOWN."""
    worth: Value
    """So many independent answers have as wide an interval: answers of a conversation are alike."""
    normalised_gain: Value
    normalised_gain_interval: Ends | Missing
    input_tokens: int
    output_tokens: int
    cost: Value
    rounds: int
    loaded: int
    """Tools that the model called."""


@dataclass(frozen=True)
class AnswerFigures:
    """The figures of one answer model's answers, graded by one grader."""

    answerer: str
    grader: str
    conversations: int
    units: int
    """Number of independent units among them."""
    probes: int
    paired: int
    """Probes that are graded under all strategies."""
    without_gold: int
    less_exact: int
    """Answers graded wrong by `rules` since their date, which fits, is less exact than the accepted one."""
    graded: int
    """Answers that have a grade."""
    strategies: tuple[StrategyAnswers, ...]
    """In the order of the run, bounds last."""
    replies: tuple[Tally, ...]
    """Replies of the answer model and of the grader's."""
    counts: pd.DataFrame
    """Of the probes in pairs that can be answered: conversation, strategy, how many are right (got), of how many
    (wanted)."""
    counted: pd.DataFrame
    """Answers that count, with their grades: those in pairs, and of a strategy that is left out all that are graded."""
    unit_names: Mapping[str, str]
    """The independent units of conversations."""

    @property
    def is_answered(self) -> bool:
        """Whether any strategy has a share of right answers to compare."""
        return any(of.in_pairs and not isinstance(of.correct, Missing) for of in self.strategies)

    @cached_property
    def by_category(self) -> dict[str, dict[str, Interval | Missing]]:
        """Share correct by strategy and category, of all probes in pairs."""
        # Not with the rest: the verdict needs none of it. All strategies of
        # one category after the other, since they are resampled by the same draws.
        shares: dict[str, dict[str, Interval | Missing]] = {of.strategy: {} for of in self.strategies}
        for (kind, name), rows in self.counted.groupby(["category", "strategy"], observed=True):
            correct, units = rows.correct.astype(float).tolist(), units_of(rows, self.unit_names)
            shares[str(name)][str(kind)] = share_interval(correct, units)
        return shares


def figures(
    answers: pd.DataFrame, grades: pd.DataFrame, answerer: str, grader: str, units: Mapping[str, str]
) -> AnswerFigures:
    """Return the figures of a run. `answers` and `grades` are the tables, with rows in the same order.

    `units` has the independent units of conversations; one that it lacks is its own.
    """
    rows = answers.assign(
        correct=grades.correct.to_numpy(),
        not_graded=grades.missing.to_numpy(),
        strategy=answers.strategy.astype(str),
        conversation=answers.conversation.astype(str),
    )
    rows["graded"] = rows.correct.notna()
    per = rows[rows.gold].groupby("strategy", sort=False).graded.mean()
    compared = [name for name, share in per.items() if share >= HALF]
    graded = rows[rows.graded & rows.strategy.isin(compared)]
    # The same probes for all: a strategy that fails on the hard ones must not gain by it.
    times = graded.groupby(_KEYS, observed=True).size()
    paired = times.index[times == len(compared)] if len(compared) else times.index[:0]
    rows["in_pairs"] = pd.MultiIndex.from_frame(rows[_KEYS]).isin(paired)
    is_compared = rows.strategy.isin(compared)
    sums = _Sums(rows[rows.in_pairs & rows.answerable & is_compared], units)
    probes = rows.drop_duplicates(_KEYS)
    verdicts = grades[grades.correct.notna()]
    by_strategy = rows.groupby("strategy", sort=False)
    return AnswerFigures(
        answerer,
        grader,
        int(probes.conversation.nunique()),
        len(set(units_of(probes, units))),
        len(probes),
        len(paired),
        int((~probes.gold).sum()),
        sum(map(is_less_exact, verdicts.correct.astype(bool), verdicts.reason.astype(str))),
        int(rows.graded.sum()),
        tuple(_strategy(str(name), its_rows, name in compared, sums) for name, its_rows in by_strategy),
        tuple(answer_tallies(answers, grades, answerer, grader)),
        sums.counts(),
        rows[rows.in_pairs.where(is_compared, rows.graded)][["conversation", "strategy", "category", "correct"]],
        units,
    )


class _Sums:
    """How many probes each strategy has right in each conversation, of those graded under all strategies."""

    def __init__(self, rows: pd.DataFrame, units: Mapping[str, str]) -> None:
        self.units = units
        right = rows.assign(right=rows.correct.astype(float))
        self._right = right.pivot_table("right", "conversation", "strategy", "sum", observed=True)
        first = rows.strategy.iloc[0] if len(rows) else ""
        self._size: pd.Series[int] = rows[rows.strategy == first].groupby("conversation", observed=True).size()

    def counts(self) -> pd.DataFrame:
        """Return the same counts as rows."""
        counts = self._right.reset_index().melt("conversation", var_name="strategy", value_name="got")
        names = counts.conversation.astype(str)
        return counts.assign(conversation=names, wanted=names.map(self._size).astype(float))

    def of(self, *names: str) -> Floats | None:
        """Return by unit the number of probes, and how many each strategy has right; None if one is missing."""
        if not len(self._size) or any(name not in self._right.columns for name in names):
            return None
        size = self._size.reindex(self._right.index).to_numpy(float)
        sums = np.column_stack([size, *(self._right[name].to_numpy(float) for name in names)])
        return by_unit(sums, units_of(self._right.reset_index(), self.units))

    @cached_property
    def bounds_are_alike(self) -> bool:
        """Whether ceiling and floor differ by no more than noise."""
        sums = self.of(FLOOR, CEILING)
        return sums is not None and is_noise(
            resampled(sums, lambda sums: _ratio(sums[..., 2] - sums[..., 1], sums[..., 0]))
        )


def _strategy(name: str, rows: pd.DataFrame, compared: bool, sums: _Sums) -> StrategyAnswers:
    answered = rows[rows.answer.notna()]
    missing = rows[rows.answer.isna()]
    counted = rows[rows.in_pairs] if compared else rows[rows.graded]
    can, cannot = counted[counted.answerable], counted[~counted.answerable]
    # A strategy that is left out of the pairs has no column in `sums`: its own answers make a table of their own.
    alone = sums if compared else _Sums(can.assign(strategy=name), sums.units)
    own = alone.of(name)
    none = Missing("undefined", "no probe with an answer is graded under all strategies")
    correct: Value = none
    worth: Value = none
    about: Ends | Missing = none
    if own is not None and own[:, 0].any():
        share = over_units(right_first := own[:, ::-1], mean_of, 0.0, 1.0)
        correct, about = share.mean, ends_of(share)
        drawn = resampled(right_first, mean_of, draws=1)  # for its error, which the jackknife makes
        if isinstance(drawn, Missing):
            worth = drawn
        else:
            # The standard error of a share p of n independent answers is the root of p (1 - p) / n, solved for n: 50 %
            # with an error of 5 points is worth 0.25 / 0.0025 = 100 answers, however many were given. Where no
            # conversation differs, it is their number.
            informative = share.mean * (1 - share.mean) / drawn.error**2 if drawn.error else float(drawn.size)
            worth = min(float(len(can)), informative)
    bounds = alone.of(FLOOR, CEILING, name) if compared else None
    why = "the ceiling is not above the floor" if compared else "too little of it is graded to be compared"
    gain: Value = (none := Missing("undefined", why))
    about_gain: Ends | Missing = none
    if bounds is not None and not np.isnan(_gain(bounds.sum(axis=0))):
        found = over_units(bounds, _gain, weights=bounds[:, 0])
        gain, about_gain = found.mean, ends_of(found)
        if alone.bounds_are_alike:
            gain = about_gain = WITHIN_NOISE
    if gain == fixed("normalised_gain", name):
        about_gain = BY_CONSTRUCTION
    ungraded = answered[answered.correct.isna()]
    whys = [*missing.missing, *ungraded.not_graded[ungraded.gold]]
    cost = rows.cost.to_numpy(float)
    return StrategyAnswers(
        name,
        len(rows),
        len(answered),
        int((answered[answered.answerable].answer == UNKNOWN).sum()),
        float(cannot.correct.mean()) if len(cannot) else Missing("undefined", "no probe without an answer is graded"),
        len(missing),
        tuple((text, times) for _, (text, times) in grouped((None, str(why)) for why in whys)),
        len(ungraded),
        len(can),
        compared,
        correct,
        about,
        int((can.answer != UNKNOWN).sum()),
        worth,
        gain,
        about_gain,
        int(rows.input_tokens.sum()),
        int(rows.output_tokens.sum()),
        Missing("undefined", "a price is not known") if np.isnan(cost).any() else math.fsum(cost),
        int(rows.rounds.sum()),
        int(rows.called.map(len).sum()),
    )


def _gain(sums: Floats) -> Floats:
    """Return the normalised gain from the numbers of probes and of right answers: floor, ceiling, strategy."""
    return _ratio(sums[..., 3] - sums[..., 1], sums[..., 2] - sums[..., 1])


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return a ratio of sums, NaN where the whole is not above 0."""
    # `where` computes both sides, so the divisor is made harmless first.
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), np.nan)
