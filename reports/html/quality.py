"""Which measure of quality a run has: the best that it can say of whether a context still does its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from ...harness.answering.stored import USUAL
from ...metrics.value import Missing, Value
from ..measures import evidence_rows, sums_of
from ..results import Results


@dataclass(frozen=True)
class Quality:
    """One measure, for every strategy."""

    name: str
    """Over a column."""
    about: str
    values: Mapping[str, Value]
    """By strategy, over the conversations that all of them finished."""
    sums: pd.DataFrame
    """What they are made of: conversation, strategy, got, wanted."""


def grounding(results: Results) -> Quality | None:
    """Every run has it: what the recorded model used next, was it still there."""
    return Quality(
        "grounded",
        "of the values that the recorded model used next, the share still in the context",
        {name: figures["grounding"] for name, figures in results.summary.strategies.items()},
        sums_of("grounding", results.common),
    )


def evidence(results: Results) -> Quality | None:
    """Where questions were asked: is what their answers rest on still sent, word for word?"""
    found = results.summary.probes
    if found is None or not found.compared:
        return None
    rows = evidence_rows(results.run, results.summary.uneven, found.strategies)
    known = {name: figures.values["evidence_sent"] for name, figures in found.strategies.items()}
    nothing = Missing("undefined", "nothing was sent for any probe")
    return Quality(
        "evidence sent",
        "of the messages that the answers to the recordings' questions rest on, the share that is sent word for word",
        {name: known.get(name, nothing) for name in results.strategies},
        sums_of("evidence_sent", rows),
    )


def answers(results: Results) -> Quality | None:
    """Where the questions were answered: is the answer right?"""
    found = results.summary.answers
    if found is None or not found.found:
        return None
    best = found.found[0]
    shares = {each.strategy: each for each in best.strategies}
    nothing = Missing("undefined", "nothing was answered")
    apart = Missing("undefined", "too little of it is graded to be compared")
    values: dict[str, Value] = {
        name: nothing if name not in shares else shares[name].correct if shares[name].in_pairs else apart
        for name in results.strategies
    }
    if all(isinstance(value, Missing) for value in values.values()):
        return None
    reader = ", the embedded reader, which finds words and not meaning" if best.answerer == USUAL[0] else ""
    return Quality(
        "correct",
        f"of the recordings' questions that have an answer, the share answered right by {best.answerer}{reader}; "
        f"graded by {best.grader}",
        values,
        best.counts[best.counts.strategy.isin(results.strategies)],
    )


SOURCES: tuple[Callable[[Results], Quality | None], ...] = (answers, evidence, grounding)
"""Of these the first that the run has data for counts: what is nearest to a right answer stands first."""


def quality(results: Results) -> Quality:
    """The best measure that the run has."""
    return next(found for source in SOURCES if (found := source(results)) is not None)
