"""The figures over a run's steps. Each declares its unit, which way is better, and the version of its formula.

All take a frame of steps (the columns of `harness.columns`, with those of `reports.steps.steps_of` joined in) of any
grouping: a strategy, a conversation under a strategy, a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from .structure import ANTHROPIC, FAULTS, OPENAI
from .tokens import PRIMING
from .value import Missing, Value

UNDEFINED = Missing("undefined", "no steps")


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. `version` is raised when the formula changes: old numbers stop comparing."""

    about: str
    of: Callable[[pd.DataFrame], Value]
    unit: Literal["", "tokens", "share", "steps", "us", "usd"]
    better: Literal["lower", "higher", ""]
    version: int = 1


def saving(sent: float, full: float) -> Value:
    """1 − sent / full: 0 = nothing saved, 0.6 = 60 % fewer tokens; negative = more were sent than the history has."""
    return 1 - sent / full if full else UNDEFINED


def _saving(steps: pd.DataFrame) -> Value:
    return saving(float(steps.tokens_sent.sum()), float(steps.tokens_full.sum()))


def _net_saving(steps: pd.DataFrame) -> Value:
    return saving(float(steps.tokens_sent.sum() + steps.own_tokens.sum()), float(steps.tokens_full.sum()))


def _own_cost(steps: pd.DataFrame) -> Value:
    return (
        Missing("unsupported", "a model's price is not known") if steps.own_cost.isna().any() else _sum(steps.own_cost)
    )


def _sum(values: pd.Series[float]) -> float:
    return float(values.sum())


def _grounding(steps: pd.DataFrame) -> Value:
    wanted = int(steps.demands.sum())
    if not wanted:
        return Missing("undefined", "no recorded call or answer uses what was said before")
    return float(steps.demands_kept.sum() / wanted)


def _kept_share(steps: pd.DataFrame) -> Value:
    later = steps[steps.step > 0]
    sent = later.tokens_sent.sum()
    return float(later.tokens_kept.sum() / sent) if sent else Missing("undefined", "no second step")


def _saving_with_newest(steps: pd.DataFrame) -> Value:
    asked = steps[steps.newest]
    return _saving(asked) if len(asked) else Missing("undefined", "no call has the newest message")


def _added_share(steps: pd.DataFrame) -> Value:
    full = int(steps.tokens_full.sum())
    return float(steps.tokens_added.sum() / full) if full else UNDEFINED


def _refused(steps: pd.DataFrame, faults: frozenset[str]) -> int:
    return int((steps[sorted(faults)].to_numpy() > 0).any(axis=1).sum())


def _percentile(steps: pd.DataFrame, at: float) -> Value:
    return float(np.percentile(steps.decide_ns, at) / 1000) if len(steps) else UNDEFINED


def _with_fault(name: str) -> Callable[[pd.DataFrame], Value]:
    return lambda steps: int((steps[name] > 0).sum())


METRICS: Mapping[str, Metric] = {
    "steps": Metric("model calls replayed", len, "steps", ""),
    "tokens_full": Metric("tokens of the whole history, all steps", lambda s: int(s.tokens_full.sum()), "tokens", ""),
    "tokens_sent": Metric("tokens sent, all steps", lambda s: int(s.tokens_sent.sum()), "tokens", "lower"),
    "saving": Metric("1 − tokens_sent / tokens_full", _saving, "share", "higher"),
    "without_newest": Metric(
        "steps that have neither the newest message nor one written in its place",
        lambda s: int((~s.newest).sum()),
        "steps",
        "lower",
    ),
    "saving_with_newest": Metric("saving over the steps that have it", _saving_with_newest, "share", "higher"),
    "tokens_added": Metric(
        "of tokens_sent, those that are not the recording's: messages that the strategy wrote, tools that it added",
        lambda s: int(s.tokens_added.sum()),
        "tokens",
        "lower",
    ),
    "added_share": Metric("tokens_added / tokens_full", _added_share, "share", "lower"),
    "own_tokens": Metric(
        "tokens of the strategy's own model calls, in and out", lambda s: int(s.own_tokens.sum()), "tokens", "lower"
    ),
    "own_cost": Metric("what they cost in US dollars", _own_cost, "usd", "lower"),
    "net_saving": Metric("1 − (tokens_sent + own_tokens) / tokens_full", _net_saving, "share", "higher"),
    "grounding": Metric(
        "of the values that the recorded model used next and a user or a tool had said, the share still in the context",
        _grounding,
        "share",
        "higher",
    ),
    "kept_prefix": Metric(
        "of the tokens sent after each conversation's first step, the share in the same prefix (tools, then messages) "
        f"as a step before; the {PRIMING} tokens that start the reply are sent and never in it",
        _kept_share,
        "share",
        "higher",
    ),
    "overflows": Metric(
        "steps with more tokens than the context window of the model named with --model",
        lambda s: int((s.tokens_sent > s.window).sum()),
        "steps",
        "lower",
    ),
    "refused_openai": Metric(
        "steps that OpenAI would refuse: orphan result, unanswered call, nothing but system messages",
        lambda s: _refused(s, OPENAI),
        "steps",
        "lower",
    ),
    "refused_anthropic": Metric(
        "steps that Anthropic would refuse: those, a blank message, not the user first",
        lambda s: _refused(s, ANTHROPIC),
        "steps",
        "lower",
    ),
    **{
        name: Metric(f"steps with {about}", _with_fault(name), "steps", "lower")
        for name, about in {**FAULTS, "over_budget": "more tokens than the strategy promised"}.items()
    },
    "decide_p50": Metric("time to decide, median", lambda s: _percentile(s, 50), "us", "lower"),
    "decide_p99": Metric("time to decide, 99th percentile", lambda s: _percentile(s, 99), "us", "lower"),
}
"""Every figure, by the name it has in tables, JSON and on the command line."""


def figures(steps: pd.DataFrame) -> dict[str, Value]:
    """Every figure of one group of steps."""
    return {name: metric.of(steps) for name, metric in METRICS.items()}


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
