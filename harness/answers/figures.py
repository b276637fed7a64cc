"""Figures of answers and their grades, by strategy.

*Correct* is over the probes that can be answered, and *abstained* over those that cannot: a strategy that knows nothing
has all of the second right, and should not be praised for it. A strategy is compared with the whole history (`none`)
in pairs: over the questions that are graded under both. One with less than HALF of the questions that are graded under
`none` (its prompts are not recorded, say) is shown, and not compared. Each strategy has pairs of its own, so `base` is
the share that the whole history has right of the same questions. Where `none` was not run, or has grades of less than
HALF of the questions (they do not fit the model), each strategy stands by itself. Questions outside a sample that was
asked count nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ctxbench.metrics.figures import units_of
from ctxbench.metrics.grading.rules import is_less_exact
from ctxbench.metrics.statistics.intervals import (
    Ends,
    Floats,
    Interval,
    by_unit,
    ends_of,
    mean_of,
    over_units,
    resampled,
    share_interval,
    widest,
)
from ctxbench.metrics.value import Missing, Value, grouped

from ..probes import CEILING, FLOOR
from .answer import NOT_ASKED, UNKNOWN
from .tally import Tally, answer_tallies

WHOLE = "none"  # the strategy that sends the whole history
BOUNDS = FLOOR, CEILING
HALF = 0.5
_KEYS = ["conversation", "number"]


@dataclass(frozen=True, slots=True)
class StrategyAnswers:
    """The figures of one strategy's answers."""

    strategy: str
    probes: int
    answered: int  # UNKNOWN among them
    unknown: int  # of the probes that can be answered, those with the answer UNKNOWN
    abstained: Value  # share of the probes that cannot be answered of which that was seen, by the grader
    missing: int
    why: tuple[tuple[str, int], ...]  # why there is no answer, or no grade, and how often
    ungraded: int  # answered, but without a grade: no gold, or the grader failed
    paired: int  # probes with an answer that are graded here and under `none`
    in_pairs: bool  # whether these are enough to compare it
    left_out: tuple[tuple[str, int], ...]
    """Why answerable questions are not among the pairs, and how often: of `none`, and where it is not compared, all
    without a grade; of others those that are graded under `none` alone."""
    correct: Value
    """Share that is right: what `none` has right and the gain in these pairs, so that strategies with other pairs
    compare; of too few pairs, and where `none` is not compared, the share of the pairs."""
    correct_interval: Ends | Missing
    base: Value  # share of the pairs that is right under `none`
    of_whole: Value  # `correct` over what `none` has right; of too few pairs the share over `base`
    given: int  # of the paired probes, those with another answer than UNKNOWN
    worth: Value  # so many independent answers have as wide an interval: answers of a conversation are alike
    input_tokens: int
    output_tokens: int
    cost: Value
    rounds: int
    loaded: int  # tools that the model called


@dataclass(frozen=True)
class AnswerFigures:
    """The figures of one answer model's answers, graded by one grader."""

    answerer: str
    grader: str
    conversations: int
    units: int  # number of independent units among them
    probes: int
    answerable: int  # probes with an accepted answer
    without_gold: int
    less_exact: int  # answers graded wrong by `rules` since their date, which fits, is less exact than the accepted one
    graded: int  # answers that have a grade
    strategies: tuple[StrategyAnswers, ...]  # in the order of the run, bounds last
    replies: tuple[Tally, ...]  # replies of the answer model and of the grader's
    counts: pd.DataFrame
    """Pairs that can be answered: conversation, strategy, how many are right (got), of how many (wanted), and how many
    of the same are right under `none` (base)."""
    counted: pd.DataFrame  # answers in pairs, with their grades
    unit_names: Mapping[str, str]  # the independent units of conversations

    def of(self, name: str) -> StrategyAnswers | None:
        """Return the figures of a strategy, or None."""
        return next((of for of in self.strategies if of.strategy == name), None)

    @property
    def is_answered(self) -> bool:
        """Whether any strategy has a share of right answers to compare."""
        return any(of.in_pairs and not isinstance(of.correct, Missing) for of in self.strategies)

    @cached_property
    def by_category(self) -> dict[str, dict[str, Interval | Missing]]:
        """Share correct by strategy and category, of all probes in pairs."""
        # All strategies of a category after one another, since they are resampled by the same draws.
        shares: dict[str, dict[str, Interval | Missing]] = {of.strategy: {} for of in self.strategies}
        for (kind, name), rows in self.counted.groupby(["category", "strategy"], observed=True):
            correct, units = rows.correct.astype(float).tolist(), units_of(rows, self.unit_names)
            shares[str(name)][str(kind)] = share_interval(correct, units)
        return shares


def figures(
    answers: pd.DataFrame, grades: pd.DataFrame, answerer: str, grader: str, units: Mapping[str, str]
) -> AnswerFigures:
    """Return the figures of the tables `answers` and `grades`, in the same order; `units` maps some conversations."""
    rows = answers.assign(
        correct=grades.correct.to_numpy(),
        not_graded=grades.missing.to_numpy(),
        strategy=answers.strategy.astype(str),
        conversation=answers.conversation.astype(str),
        base=float("nan"),
    )
    rows = rows[~rows.missing.astype(str).str.startswith(NOT_ASKED)]
    rows["in_pairs"] = rows.correct.notna()
    whole, probes = rows[(rows.strategy == WHOLE) & rows.in_pairs], rows.drop_duplicates(_KEYS)
    answerable = int((probes.gold & probes.answerable).sum())
    compared, enough = whole[whole.answerable], HALF * answerable
    if len(whole) and len(compared) >= enough:
        enough = HALF * len(compared)
        right = pd.Series(whole.correct.astype(float).to_numpy(), pd.MultiIndex.from_frame(whole[_KEYS]))
        rows["base"] = right.reindex(pd.MultiIndex.from_frame(rows[_KEYS])).to_numpy()
        rows["in_pairs"] &= rows.base.notna()
    else:
        compared = compared[:0]
    pairs = rows[rows.in_pairs & rows.answerable].assign(right=lambda rows: rows.correct.astype(float))
    counts = pairs.groupby(["conversation", "strategy"], observed=True, sort=False).agg(
        got=("right", "sum"), wanted=("right", "size"), base=("base", "sum")
    )
    verdicts = grades[grades.correct.notna()]
    return AnswerFigures(
        answerer,
        grader,
        int(probes.conversation.nunique()),
        len(set(units_of(probes, units))),
        len(probes),
        answerable,
        int((~probes.gold).sum()),
        sum(map(is_less_exact, verdicts.correct.astype(bool), verdicts.reason.astype(str))),
        len(verdicts),
        tuple(_strategy(str(name), own, enough, compared, units) for name, own in rows.groupby("strategy", sort=False)),
        tuple(answer_tallies(answers, grades, answerer, grader)),
        counts.astype({"wanted": float}).reset_index(),
        rows[rows.in_pairs][["conversation", "strategy", "category", "correct"]],
        units,
    )


def with_gain(sums: Floats) -> Floats:
    """Return what `none` has right of all its questions and a strategy's gain in its pairs: from −1 to 2.

    `sums` are right answers, pairs, and right ones under `none` in these; then right ones under `none` of how many.
    """
    return mean_of(sums[..., :2]) + (mean_of(sums[..., 3:]) - mean_of(sums[..., [2, 1]]))  # of all pairs: the first


def _strategy(
    name: str, rows: pd.DataFrame, enough: float, compared: pd.DataFrame, units: Mapping[str, str]
) -> StrategyAnswers:
    answered, missing, counted = rows[rows.answer.notna()], rows[rows.answer.isna()], rows[rows.in_pairs]
    can, cannot = counted[counted.answerable], counted[~counted.answerable]
    whys = [*missing.missing, *(ungraded := answered[answered.correct.isna()]).not_graded[ungraded.gold]]
    lacks = rows[rows.gold & rows.answerable & rows.correct.isna() & (rows.base.notna() | (name == WHOLE))]
    lacks_why = lacks.missing.where(lacks.answer.isna(), lacks.not_graded)
    none = Missing("undefined", "no probe with an answer is graded here and under none")
    correct: Value = none
    about: Ends | Missing = none
    base, of_whole, worth = correct, correct, correct
    if len(can):
        sums = np.zeros((len(can) + len(compared), 5))
        sums[: len(can), :3] = np.stack([can.correct.astype(float), np.ones(len(can)), can.base], axis=1)
        sums[len(can) :, 3:] = np.stack([compared.correct.astype(float), np.ones(len(compared))], axis=1)
        table = by_unit(sums, units_of(pd.concat([can, compared]), units))
        share = over_units(own := table[table[:, 1] > 0, :2], mean_of, 0.0, 1.0)
        correct, about, (right, _, whole, right_of_all, _) = share.mean, ends_of(share), table.sum(axis=0)
        none = Missing("undefined", "the whole history was not run, has too few grades, or nothing is right under it")
        base = none if np.isnan(whole) else float(whole / len(can))
        of_whole = float(right / whole) if whole > 0 else none
        if enough <= len(can) < len(compared):
            joint = over_units(table, with_gain, -1.0, 2.0, table[:, [1, 4]])
            correct, shift, ends = float(np.clip(joint.mean, 0.0, 1.0)), joint.mean - share.mean, ends_of(joint)
            of_whole = correct / (right_of_all / len(compared)) if right_of_all else none
            if not isinstance(about, Missing) and not isinstance(ends, Missing):
                # At least that of the share of the pairs, which holds where nothing of it spreads.
                ends = Ends(*np.clip(widest(ends, Ends(about.low + shift, about.high + shift)), 0.0, 1.0).tolist())
            about = about if isinstance(about, Missing) else ends
        drawn = resampled(own, mean_of, draws=1)  # for its error, which the jackknife makes
        if isinstance(drawn, Missing):
            worth = drawn
        else:
            # The standard error of a share p of n independent answers is the root of p (1 - p) / n, solved for n: 50 %
            # with an error of 5 points is worth 0.25 / 0.0025 = 100 answers, however many were given. Where no
            # conversation differs, it is their number.
            informative = share.mean * (1 - share.mean) / drawn.error**2 if drawn.error else float(drawn.size)
            worth = min(float(len(can)), informative)
    cost = rows.cost.to_numpy(float)
    return StrategyAnswers(
        name,
        len(rows),
        len(answered),
        int((answered[answered.answerable].answer == UNKNOWN).sum()),
        float(cannot.correct.mean()) if len(cannot) else Missing("undefined", "no probe without an answer is graded"),
        len(missing),
        _times(whys),
        len(ungraded),
        len(can),
        len(can) >= enough and len(can) > 0,
        _times(lacks_why),
        correct,
        about,
        base,
        of_whole,
        int((can.answer != UNKNOWN).sum()),
        worth,
        int(rows.input_tokens.sum()),
        int(rows.output_tokens.sum()),
        Missing("undefined", "a price is not known") if np.isnan(cost).any() else math.fsum(cost),
        int(rows.rounds.sum()),
        int(rows.called.map(len).sum()),
    )


def _times(reasons: Iterable[object]) -> tuple[tuple[str, int], ...]:
    """Return each reason with how often it occurs."""
    return tuple((text, times) for _, (text, times) in grouped((None, str(why)) for why in reasons))
