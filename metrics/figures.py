"""The figures over a run's steps. Each declares its unit, which way is better, and the version of its formula.

All take rows of a table, mostly steps (the columns of `harness.columns`, with those of `harness.steps.steps_of` joined
in), of any grouping: a strategy, a conversation under a strategy, a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from .probes import State
from .structure import ANTHROPIC, FAULTS, OPENAI
from .tokens import PRIMING
from .value import Missing, Ratio, Saving, Total, Value

NO_STEPS = "no steps"
NO_EVIDENCE = "no probe rests on what was said"
_STATES: Mapping[State, str] = {
    "part": "is sent in part",
    "summary": "is there only through a summary or a fact",
    "loadable": "is not there, and is in an archive or a tier from which it can be loaded",
    "absent": "is not there",
}
"""What may have become of evidence but that it is sent as it was said."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. `version` is raised when the formula changes: old numbers stop comparing."""

    about: str
    of: Callable[[pd.DataFrame], Value]
    """Of some rows. What falls into parts by conversation says so by its kind (`sums.py`). Anything else has a value
    for each conversation, and over several of them the mean of these."""
    unit: Literal["", "tokens", "share", "steps", "us", "usd"]
    better: Literal["lower", "higher", ""]
    version: int = 1
    table: str = "steps"
    """The table of a run whose rows it is of; `answers`: of those by one answerer, with their grades."""
    restates: tuple[str, ...] = ()
    """Figures that say the same of the same recordings: comparisons are by those, unless this one is named."""


def _refused(faults: frozenset[str]) -> Total:
    return Total(lambda steps: (steps[sorted(faults)].to_numpy() > 0).any(axis=1))


def _percentile(steps: pd.DataFrame, at: float) -> Value:
    return float(np.percentile(steps.latency_ns, at) / 1000) if len(steps) else Missing("undefined", NO_STEPS)


def _listed(states: Any) -> list[str]:
    """A cell of a column of lists; that of a probe that failed is none."""
    return [] if states is None else list(states)


def _has_evidence(probes: pd.DataFrame) -> Any:
    """Whether each probe rests on something that was said, and something was sent for it."""
    return probes.evidence_state.map(lambda states: len(_listed(states)) > 0).astype(bool)


def _evidence(*wanted: State) -> Ratio:
    """Of each probe with evidence, the share of it in one of these states; the mean over probes."""

    def share(states: Any) -> float:
        found = _listed(states)
        return sum(each in wanted for each in found) / len(found) if found else 0.0

    return Ratio(lambda s: s.evidence_state.map(share).astype(float), _has_evidence, NO_EVIDENCE)


def _with_fault(name: str) -> Total:
    return Total(lambda steps: steps[name] > 0)


METRICS: Mapping[str, Metric] = {
    "steps": Metric("model calls replayed", Total(lambda s: s.step >= 0), "steps", ""),
    "tokens_full": Metric("tokens of the whole history, all steps", Total(lambda s: s.tokens_full), "tokens", ""),
    "tokens_sent": Metric("tokens sent, all steps", Total(lambda s: s.tokens_sent), "tokens", "lower"),
    "saving": Metric(
        "1 − tokens_sent / tokens_full",
        Saving(lambda s: s.tokens_sent, lambda s: s.tokens_full, NO_STEPS),
        "share",
        "higher",
        restates=("tokens_sent",),
    ),
    "without_newest": Metric(
        "steps that have neither the newest message nor one written in its place",
        Total(lambda s: ~s.newest),
        "steps",
        "lower",
    ),
    "saving_with_newest": Metric(
        "saving over the steps that have it",
        Saving(
            lambda s: s.tokens_sent * s.newest, lambda s: s.tokens_full * s.newest, "no call has the newest message"
        ),
        "share",
        "higher",
        restates=("tokens_sent", "without_newest"),
    ),
    "tokens_added": Metric(
        "of tokens_sent, those that are not the recording's: messages that the strategy wrote, tools that it added",
        Total(lambda s: s.tokens_added),
        "tokens",
        "lower",
    ),
    "added_share": Metric(
        "tokens_added / tokens_full",
        Ratio(lambda s: s.tokens_added, lambda s: s.tokens_full, NO_STEPS),
        "share",
        "lower",
        restates=("tokens_added",),
    ),
    "own_tokens": Metric(
        "tokens of the strategy's own model calls, in and out",
        Total(lambda s: s.own_tokens.astype("int64")),
        "tokens",
        "lower",
    ),
    "own_cost": Metric(
        "what they cost in US dollars",
        Total(lambda s: s.own_cost.astype(float), "a model's price is not known"),
        "usd",
        "lower",
    ),
    "net_saving": Metric(
        "1 − (tokens_sent + own_tokens) / tokens_full",
        Saving(lambda s: s.tokens_sent + s.own_tokens, lambda s: s.tokens_full, NO_STEPS),
        "share",
        "higher",
        restates=("tokens_sent", "own_tokens"),
    ),
    "grounding": Metric(
        "of the values that the recorded model used next and a user or a tool had said, the share still in the context",
        Ratio(lambda s: s.demands_kept, lambda s: s.demands, "no recorded call or answer uses what was said before"),
        "share",
        "higher",
    ),
    "prefix_reuse": Metric(
        "of the tokens sent after each conversation's first step, the share in the same prefix (tools, then messages) "
        f"as a step before; the {PRIMING} tokens that start the reply are sent and never in it",
        Ratio(lambda s: s.tokens_kept * (s.step > 0), lambda s: s.tokens_sent * (s.step > 0), "no second step"),
        "share",
        "higher",
    ),
    "overflows": Metric(
        "steps with more tokens than the context window of the model named with --model",
        Total(lambda s: s.tokens_sent > s.window),
        "steps",
        "lower",
    ),
    "rejected_openai": Metric(
        "steps that OpenAI would refuse: orphan result, unanswered call, nothing but system messages",
        _refused(OPENAI),
        "steps",
        "lower",
    ),
    "rejected_anthropic": Metric(
        "steps that Anthropic would refuse: those, a blank message, not the user first",
        _refused(ANTHROPIC),
        "steps",
        "lower",
    ),
    **{
        name: Metric(f"steps with {about}", _with_fault(name), "steps", "lower")
        for name, about in {**FAULTS, "over_budget": "more tokens than the strategy promised"}.items()
    },
    "survival": Metric(
        "of the facts followed through the rounds of summarising, at every age, the share still in the summary",
        Ratio(lambda s: s.kept, lambda s: s["values"], "no summary replaced a fact"),
        "share",
        "higher",
        table="survival",
    ),
    "context_recall": Metric(
        "evidence recall: of the messages that a probe's answer rests on, the share that is sent word for word",
        _evidence("verbatim"),
        "share",
        "higher",
        table="probes",
    ),
    "context_recall_any": Metric(
        "the share of them that is sent word for word, in part, or only through a summary or a fact",
        _evidence("verbatim", "part", "summary"),
        "share",
        "higher",
        table="probes",
        restates=("context_recall",),
    ),
    **{
        f"evidence_{state}": Metric(
            f"the share of them that {about}",
            _evidence(state),
            "share",
            "",
            table="probes",
            restates=("context_recall",),
        )
        for state, about in _STATES.items()
    },
    "evidence_place": Metric(
        "where what is sent of them stands among the tokens sent: 0 = the start, 1 = the end",
        Ratio(lambda s: s.evidence_place.fillna(0), lambda s: s.evidence_place.notna(), "none of it is sent"),
        "share",
        "",
        table="probes",
    ),
    "evidence_density": Metric(
        "tokens of them / tokens sent, over the probes with evidence",
        Ratio(
            lambda s: s.evidence_tokens.fillna(0),
            lambda s: s.tokens_sent.fillna(0) * _has_evidence(s),
            NO_EVIDENCE,
        ),
        "share",
        "higher",
        table="probes",
    ),
    "answer_in_context": Metric(
        "of the probes with an accepted answer that had been said, the share with it in what is sent, word for word",
        Ratio(lambda s: s.answer.eq(True), lambda s: s.answer.notna(), "no probe has an answer that had been said"),
        "share",
        "higher",
        table="probes",
    ),
    "correct": Metric(
        "of the probes with an answer, the share whose answer the grader takes for right",
        Ratio(
            lambda s: s.correct.eq(True) & s.answerable,
            lambda s: s.correct.notna() & s.answerable,
            "no probe with an answer is graded",
        ),
        "share",
        "higher",
        table="answers",
    ),
    "abstained": Metric(
        "of the probes that cannot be answered, the share of which the answer says so, by the grader",
        Ratio(
            lambda s: s.correct.eq(True) & ~s.answerable,
            lambda s: s.correct.notna() & ~s.answerable,
            "no probe without an answer is graded",
        ),
        "share",
        "higher",
        table="answers",
    ),
    "latency_p50": Metric("time to decide, median", lambda s: _percentile(s, 50), "us", "lower"),
    "latency_p99": Metric("time to decide, 99th percentile", lambda s: _percentile(s, 99), "us", "lower"),
}
"""Every figure, by the name it has in tables, JSON and on the command line."""

OF_PROBES = tuple(name for name, metric in METRICS.items() if metric.table == "probes")
"""Those of the probes."""
OF_ANSWERS = tuple(name for name, metric in METRICS.items() if metric.table == "answers")
"""Those of the answers to them."""
OF_STEPS = tuple(name for name, metric in METRICS.items() if metric.table == "steps")
"""Those of the steps."""


def figures(steps: pd.DataFrame) -> dict[str, Value]:
    """Every figure of one group of steps."""
    return {name: METRICS[name].of(steps) for name in OF_STEPS}


def growth(steps: pd.DataFrame) -> pd.DataFrame:
    """Tokens by turn: strategy, turn, conversations, mean tokens_full, mean tokens_sent, without_newest, saving.

    Each conversation counts once a turn, by the mean of its steps in that turn; turns that few conversations reach
    say so in `conversations`. `without_newest` is of all steps of the turn.
    """
    lacking = steps.assign(lacks=~steps.newest)
    one = lacking.groupby(["strategy", "turn", "conversation"], observed=True).agg(
        tokens_full=("tokens_full", "mean"), tokens_sent=("tokens_sent", "mean"), without_newest=("lacks", "sum")
    )
    made = one.groupby(["strategy", "turn"], observed=True).agg(
        conversations=("tokens_full", "size"),
        tokens_full=("tokens_full", "mean"),
        tokens_sent=("tokens_sent", "mean"),
        without_newest=("without_newest", "sum"),
    )
    made["saving"] = 1 - made.tokens_sent / made.tokens_full
    return made.reset_index()
