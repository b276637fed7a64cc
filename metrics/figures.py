"""The metrics of a run. Each carries its display name, its meaning, its unit, its direction and a formula version.

All take rows of a table, mostly steps (the columns of `harness.folder.schema`), grouped in any way: by strategy, by
conversation under a strategy, by turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from ctxbench.scenarios.code import code_of
from ctxbench.scenarios.errors import SpecError, Stopped

from .probes import State
from .statistics.comparison import Difference
from .statistics.intervals import BY_CONSTRUCTION, Interval, share_interval
from .structure import ANTHROPIC, FAULTS, OPENAI
from .tokens import PRIMING
from .value import Missing, Ratio, Saving, Total, Value

if TYPE_CHECKING:
    import pandas as pd

NO_STEPS = "no steps"
NOTHING_EVICTED = "nothing was evicted"
LANGUAGE = "language: rules, names and units are read in English and Chinese alone"
NO_EVIDENCE = "no probe rests on what was said"
LRU_K = ("lru_k", "lru_k_document")  # cache policies that are LRU-K: O'Neil's, and the one of the design documents

# What may have become of evidence that is not sent word for word: its name, and the rest of "the share of evidence …".
_STATES: Mapping[State, tuple[str, str]] = {
    "partial": ("evidence sent in part", "of which only some sentences are sent"),
    "summary": ("evidence only in summaries", "that reaches the model only through a summary or a fact"),
    "loadable": ("evidence in archive", "that is not sent, but can be loaded from an archive or a tier"),
    "absent": ("evidence absent", "that is neither sent nor stored anywhere"),
}
_FAULT_NAMES: Mapping[str, str] = {
    "orphan_results": "orphan tool results",
    "unanswered_calls": "unanswered tool calls",
    "misordered": "misordered messages",
    "blank_messages": "blank messages",
    "dropped_system": "dropped system messages",
    "no_user": "no user message",
    "not_user_first": "user not first",
    "empty": "empty contexts",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run. `version` is raised when the formula changes: figures of two versions do not compare."""

    name: str
    about: str
    of: Callable[[pd.DataFrame], Value]
    """The formula over some rows. A figure made of sums over conversations says so by its kind (`value.py`). Any other
    has a value for each conversation, and over several of them the mean of these."""
    unit: Literal["", "tokens", "share", "times", "steps", "us", "usd"]
    better: Literal["lower", "higher", ""]
    version: int | str = 1
    table: str = "steps"
    """The table of a run that the rows are from; `answers`: those of one answer model, with their grades."""
    restates: tuple[str, ...] = ()
    """Metrics that say the same of the same recordings: comparisons use those, unless this one is asked for by key."""
    file: str = ""
    """`path/to/file.py:NAME`, where the command line was given a metric of the user's own."""


def _with_fault(faults: Iterable[str]) -> Total:
    return Total(lambda steps: np.logical_or.reduce([np.asarray(steps[name]) > 0 for name in sorted(faults)]))


def _is_read(steps: pd.DataFrame) -> pd.Series[bool]:
    return steps.constraints >= 0


def _percentile(steps: pd.DataFrame, at: float) -> Value:
    return float(np.percentile(steps.latency_ns, at) / 1000) if len(steps) else Missing("undefined", NO_STEPS)


def _has_evidence(probes: pd.DataFrame) -> pd.Series[bool]:
    """Return whether each probe rests on an earlier message, and a context was sent for it (else None)."""
    return probes.evidence_state.map(lambda states: states is not None and len(states) > 0).astype(bool)


def _evidence(*wanted: State) -> Ratio:
    """Return the share of a probe's evidence in one of these states, as a mean over the probes with evidence."""

    def share(states: Iterable[State] | None) -> float:
        evidence = [] if states is None else list(states)
        return sum(state in wanted for state in evidence) / len(evidence) if evidence else 0.0

    return Ratio(lambda s: s.evidence_state.map(share).astype(float), _has_evidence, NO_EVIDENCE)


def _hit_rate(has_policy: Callable[[pd.DataFrame], pd.Series[bool]], lacking: str) -> Ratio:
    return Ratio(
        lambda s: s.lookup_hits * has_policy(s),
        lambda s: s.lookups * has_policy(s),
        NOTHING_EVICTED,
        has=has_policy,
        lacking=lacking,
    )


_share = partial(Metric, unit="share", better="higher")
_of_probes = partial(_share, table="probes")
_tokens = partial(Metric, unit="tokens", better="lower")
_calls = partial(Metric, unit="steps", better="lower")
_dollars = partial(Metric, unit="usd", better="lower")
_times = partial(Metric, unit="times", better="higher")
_latency = partial(Metric, unit="us", better="lower", table="timings")

METRICS: Mapping[str, Metric] = {
    "steps": Metric("model calls", "calls to the model that were replayed", Total(lambda s: s.step >= 0), "steps", ""),
    "tokens_full": _tokens(
        "tokens of full history",
        "tokens that sending the whole history at every call would take",
        Total(lambda s: s.tokens_full),
        better="",
    ),
    "tokens_sent": _tokens(
        "tokens sent",
        "tokens sent to the model over all calls: messages, tool schemas and the start of the reply",
        Total(lambda s: s.tokens_sent),
    ),
    "saving": _share(
        "saved",
        "share of the full history's tokens that is not sent",
        Saving(lambda s: s.tokens_sent, lambda s: s.tokens_full, NO_STEPS),
        restates=("tokens_sent",),
    ),
    "without_newest": _calls(
        "calls without newest message",
        "calls that carry neither the newest message nor a rewrite of it",
        Total(lambda s: ~s.newest),
    ),
    "saving_with_newest": _share(
        "saved, newest message sent",
        "tokens saved, counted only over the calls that do carry the newest message",
        Saving(
            lambda s: s.tokens_sent * s.newest, lambda s: s.tokens_full * s.newest, "no call has the newest message"
        ),
        restates=("tokens_sent", "without_newest"),
    ),
    "tokens_added": _tokens(
        "tokens added",
        "tokens sent that are not in the recording: messages written and tools offered by the strategy",
        Total(lambda s: s.tokens_added),
    ),
    "added_share": _share(
        "added",
        "tokens added by the strategy, as a share of the full history",
        Ratio(lambda s: s.tokens_added, lambda s: s.tokens_full, NO_STEPS),
        better="lower",
        restates=("tokens_added",),
    ),
    "own_tokens": _tokens(
        "strategy's own tokens",
        "tokens of the strategy's own model calls, such as summaries, in and out",
        Total(lambda s: s.own_tokens.astype("int64")),
    ),
    "own_cost": _dollars(
        "strategy's own cost",
        "US dollars for the strategy's own model calls",
        Total(lambda s: s.own_cost.astype(float), "a model's price is not known"),
    ),
    "net_saving": _share(
        "net saved",
        "tokens saved after paying for the strategy's own model calls",
        Saving(lambda s: s.tokens_sent + s.own_tokens, lambda s: s.tokens_full, NO_STEPS),
        restates=("tokens_sent", "own_tokens"),
    ),
    "grounding": _share(
        "grounding recall",
        "share of the values the recorded model used next, and a user or tool had given, still in the context",
        Ratio(
            lambda s: s.demands_kept,
            lambda s: s.demands,
            "no recorded call or answer uses what was said before",
            has=lambda s: _is_read(s) | (s.demands > 0),
            lacking=LANGUAGE,
        ),
    ),
    "kept_values": _share(
        "kept values",
        "share of the words, paths, identifiers and numbers that users and tools had given more than six messages "
        "before a call still in its context: what is not, an agent may have to ask for again",
        Ratio(
            lambda s: s.values_kept, lambda s: s.values_given, "nothing was given more than six messages before a call"
        ),
    ),
    "reasked_dropped": _share(
        "asked again",
        "share of the recorded tool calls that repeat one whose result is not in the context, or use a value that is "
        "not: each may take a call more",
        Ratio(lambda s: s.reasks, lambda s: s.asks, "no recorded call of a tool"),
        better="lower",
    ),
    "constraint_recall": _share(
        "constraint recall",
        "share of the standing rules and prohibitions that system and user had stated still in the context, word for "
        "word",
        Ratio(
            lambda s: s.constraints_kept,
            lambda s: np.maximum(s.constraints, 0),
            "no standing rule was found",
            has=_is_read,
            lacking=LANGUAGE,
        ),
    ),
    "prefix_reuse": _share(
        "prefix reuse",
        "share of the tokens sent that repeat the prefix of the call before (tools, then messages), after each "
        f"conversation's first step: the upper bound of the cache hit rate; the {PRIMING} tokens that start the reply "
        "never repeat",
        Ratio(lambda s: s.tokens_kept * (s.step > 0), lambda s: s.tokens_sent * (s.step > 0), "no second step"),
    ),
    "compression_ratio": _times(
        "compression",
        "tokens of the messages that summaries, placeholders and shortened messages stand for, over the tokens of "
        "these, summed over all calls",
        Ratio(lambda s: s.tokens_replaced, lambda s: s.tokens_standing_in, "nothing was replaced"),
    ),
    "lru_k_hit_rate": _share(
        "LRU-K hit rate",
        "share of the messages looked up below Focus that a Working tier with LRU-K had, in each conversation from its "
        "first eviction on",
        _hit_rate(lambda s: s.policy.isin(LRU_K), "no Working tier with LRU-K"),
        version=2,
    ),
    "working_hit_rate": _share(
        "Working hit rate",
        "the same for the Working tier of any cache policy",
        _hit_rate(lambda s: s.policy != "", "no Working tier"),
        version=2,
    ),
    "archive_compression_ratio": _times(
        "Archive compression",
        "bytes of the messages in the Archive tier as JSON, over the bytes of all its files, at the end of each "
        "conversation",
        Ratio(
            lambda s: s.archive_content,
            lambda s: s.archive_stored,
            "nothing was archived",
            has=lambda s: s.policy != "",
            lacking="no Archive tier",
        ),
    ),
    "overflows": _calls(
        "overflows",
        "calls with more tokens than the context window: that of the recorded model, or --window",
        Total(lambda s: s.tokens_sent > s.window),
    ),
    "rejected_openai": _calls(
        "rejected by OpenAI",
        "calls that OpenAI would answer with 400: orphan result, unanswered call, only system messages",
        _with_fault(OPENAI),
    ),
    "rejected_anthropic": _calls(
        "rejected by Anthropic",
        "calls that Anthropic would answer with 400: as OpenAI, and blank messages or no user message first",
        _with_fault(ANTHROPIC),
    ),
    **{key: _calls(_FAULT_NAMES[key], f"calls with {about}", _with_fault([key])) for key, about in FAULTS.items()},
    "over_budget": _calls(
        "over budget",
        "calls with more tokens than the budget the strategy promised to keep",
        _with_fault(["over_budget"]),
    ),
    "survival": _share(
        "fact survival",
        "share of summarised facts still in the summary, over all rounds of summarising",
        Ratio(lambda s: s.kept, lambda s: s["values"], "no summary replaced a fact"),
        table="survival",
    ),
    "context_recall": _of_probes(
        "context recall", "share of the messages an answer rests on that is sent word for word", _evidence("verbatim")
    ),
    "context_recall_any": _of_probes(
        "context recall, any form",
        "share of the messages an answer rests on that is sent at all: whole, in part or summarised",
        _evidence("verbatim", "partial", "summary"),
        restates=("context_recall",),
    ),
    **{
        f"evidence_{state}": _of_probes(
            name,
            f"share of the messages an answer rests on {about}",
            _evidence(state),
            better="",
            restates=("context_recall",),
        )
        for state, (name, about) in _STATES.items()
    },
    "evidence_place": _of_probes(
        "evidence position",
        "where the evidence stands among the tokens sent: 0 = at the start, 1 = at the end",
        Ratio(lambda s: s.evidence_place.fillna(0), lambda s: s.evidence_place.notna(), "none of it is sent"),
        better="",
    ),
    "evidence_density": _of_probes(
        "evidence density",
        "share of the tokens sent that is evidence, over the probes that have any",
        Ratio(lambda s: s.evidence_tokens.fillna(0), lambda s: s.tokens_sent.fillna(0) * _has_evidence(s), NO_EVIDENCE),
    ),
    "answer_in_context": _of_probes(
        "answer in context",
        "share of the probes whose answer stands in the context, or where it cannot stand in a text, whose evidence is "
        "sent word for word: what a model that misses nothing could answer",
        Ratio(lambda s: s.answer.eq(True), lambda s: s.answer.notna(), "no probe has an answer that had been said"),
        version=2,
    ),
    # `eq(True)`, here and above: None stands where nothing was graded, or no answer had been said. As a truth value it
    # would be a wrong answer; so it is in neither sum, since the lower one counts what is not None.
    "answer_quality": _share(
        "right answers",
        "share of the answerable probes that the grader marks correct",
        Ratio(
            lambda s: s.correct.eq(True) & s.answerable,
            lambda s: s.correct.notna() & s.answerable,
            "no probe with an answer is graded",
        ),
        table="answers",
    ),
    "abstained": _share(
        "abstained",
        "share of the unanswerable probes on which the model, rightly, says that it does not know",
        Ratio(
            lambda s: s.correct.eq(True) & ~s.answerable,
            lambda s: s.correct.notna() & ~s.answerable,
            "no probe without an answer is graded",
        ),
        table="answers",
    ),
    "latency_p50": _latency(
        "latency p50", "median time the strategy takes to build a context", lambda s: _percentile(s, 50)
    ),
    "latency_p99": _latency(
        "latency p99", "99th percentile of the time the strategy takes to build a context", lambda s: _percentile(s, 99)
    ),
}
"""Every metric by its key: the name it has in JSON, in Parquet columns and on the command line."""

BILLED: Mapping[str, Metric] = {
    "cost": _dollars(
        "cost",
        "US dollars at the model's provider, with its prompt cache and the strategy's own model calls",
        Total(lambda s: s.cost + s.cost_own, "a model's price is not known"),
        version=2,
        table="bill",
    ),
    "cost_with_refetch": _dollars(
        "cost with re-fetching (model)",
        "the same, with one further call for each call whose context lacks what the recorded model used next: a model, "
        "no measurement",
        Total(lambda s: s.cost + s.cost_own + s.cost_refetch, "a model's price is not known"),
        table="bill",
    ),
    "cost_saving": _share(
        "cost saved",
        "share of the cost of the whole history, which is cached as well, that is not spent",
        Saving(lambda s: s.cost + s.cost_own, lambda s: s.base, "no strategy `none` to compare with"),
        table="bill",
        restates=("cost",),
    ),
    "break_even_calls": _times(
        "break-even",
        "how many times as many calls as recorded use up the saving: the cost of the whole history over the "
        "strategy's; 1 or less where there is none",
        Ratio(lambda s: s.base, lambda s: s.cost + s.cost_own, "no strategy `none` to compare with"),
        table="bill",
        restates=("cost",),
    ),
    "cache_hit_rate": _share(
        "cache hit rate",
        "share of the prompt tokens that the provider reads from its cache",
        Ratio(lambda s: s.found, lambda s: s.tokens, NO_STEPS),
        table="bill",
    ),
    "cache_hit_rate_calls": _share(
        "calls with a cache hit",
        "share of the calls that read from the provider's cache, of those that could: not the first of a conversation, "
        "and long enough to be cached",
        Ratio(lambda s: s.hits, lambda s: s.eligible, "no call could have a hit"),
        table="bill",
    ),
}
"""Metrics of the bill under a model, by their keys: with the model they are written `cost(claude-sonnet-5)`. Their rows
are those of `harness.bill.bill.Billed.conversations`."""


Better = Literal["lower", "higher", ""]
Unit = Literal["", "tokens", "share", "times", "steps", "usd"]
OwnTable = Literal["steps", "probes", "answers", "contexts"]
Function = TypeVar("Function", bound=Callable[..., Any])

OWN: dict[str, Metric] = {}  # metrics that the user has declared in this process, by their keys


OWN_VERSION = "of source "  # start of the version of such a metric, before the digest of its source


def _own_value(function: Any, rows: Any) -> Value:
    name, code = function.__name__, function.__code__
    try:
        value = function(rows)
        number = float(value) if isinstance(value, (int, float, np.integer, np.floating, np.bool_)) else None
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        lines = [at.lineno for at in extract_tb(error.__traceback__) if at.filename == code.co_filename]
        place = f"{Path(code.co_filename).name}:{lines[-1] if lines else code.co_firstlineno}"
        raise SpecError(f"metric {name} ({place}): {type(error).__name__}: {error}") from None
    if value is None or isinstance(value, Missing):
        return Missing("undefined", f"{name} returned None") if value is None else value
    if number is None:
        raise SpecError(f"metric {name}: returned a {type(value).__name__}: return a number, None or Missing")
    return number if np.isfinite(number) else Missing("undefined", f"{name} returned {value}")


def metric(
    bare: object = None, /, *, better: Better | None = None, unit: Unit = "", table: OwnTable = "steps"
) -> Callable[[Function], Function]:
    """Declare a metric of one's own: a function of one conversation under one strategy, which returns a number.

        @ctxbench.metric(unit="tokens", better="lower")
        def longest_call(steps):
            return steps.tokens_sent.max()

    It is measured with all others from here on, by the function's name; over several conversations it is the mean of
    those with a finite number. It takes a data frame with the rows of `table`, or with "contexts" a list of what was
    sent at each call. The digest of its source is its version. Raises SpecError without `better`, which nobody can
    guess, and for a name that is taken.
    """
    if bare is not None or better is None:
        raise SpecError('a metric says what is better: write @ctxbench.metric(better="lower"), or "higher"')

    def declare(function: Function) -> Function:
        key = getattr(function, "__name__", "")
        if not inspect.isfunction(function) or not key.isidentifier():
            raise SpecError("a metric is a function with a name: write it with def")
        if key in METRICS or key in BILLED or key == "strategy":
            raise SpecError(f"{key}: is a name that ctxbench uses: give yours another")
        for value, allowed in ((unit, Unit), (better, Better), (table, OwnTable)):
            if value not in get_args(allowed):
                raise SpecError(f"metric {key}: {value!r}: give one of {', '.join(map(repr, get_args(allowed)))}")
        name, about = key.replace("_", " "), (inspect.getdoc(function) or key).partition("\n")[0]
        version, of = f"{OWN_VERSION}{code_of(function).digest}", partial(_own_value, function)
        OWN[key] = Metric(name, about, of, unit, better, version, table)
        function.metric = OWN[key]  # type: ignore[attr-defined]
        return function

    return declare


def metric_of(name: str) -> Metric | None:
    """Return the metric of a figure such as `cost(gpt-4o)`; None if unknown. A metric of the bill needs its model."""
    key, by, _ = name.partition("(")
    return METRICS.get(key) or OWN.get(key) or (BILLED.get(key) if by else None)


def display_name(name: str) -> str:
    """Return what people read for a figure's name: `cost (gpt-4o)` for `cost(gpt-4o)`; the name itself if unknown."""
    metric, (_, bracket, by) = metric_of(name), name.partition("(")
    if metric is None:
        return name
    return f"{metric.name} ({by}" if bracket else metric.name


_WHOLE = ("none", "cache_marks")  # strategies that send every recorded message as it is, and nothing else
_NOTHING_LOST = (
    *("saving", "saving_with_newest", "net_saving", "added_share", "tokens_added", "own_tokens", "own_cost"),
    *("without_newest", "dropped_system", "over_budget", "reasked_dropped"),
)
_FIXED: tuple[tuple[float, tuple[str, ...], tuple[str, ...]], ...] = (
    (0.0, _WHOLE, _NOTHING_LOST),
    (1.0, _WHOLE, ("grounding", "kept_values", "constraint_recall", "answer_in_context")),
    (1.0, (*_WHOLE, "evidence_only"), ("context_recall", "context_recall_any")),
    (0.0, (*_WHOLE, "evidence_only"), tuple(f"evidence_{state}" for state in _STATES)),
    (0.0, ("none",), ("cost_saving",)),
    (1.0, ("none",), ("break_even_calls",)),
)
"""Values that figures have by construction, with the strategies and the metrics that they hold for."""


def fixed(metric: str, strategy: str) -> float | None:
    """Return the value that a figure has under a strategy by construction, in any recording; None if it may differ.

    A figure that has this value has no interval. One that has not (a fault of ours) keeps its own.
    """
    key, name = metric.partition("(")[0], strategy if "|" in strategy else strategy.partition("(")[0]
    return next((value for value, names, keys in _FIXED if name in names and key in keys), None)


def difference_unless_fixed(metric: str, strategies: tuple[str, str], difference: Difference) -> Difference:
    """Return the difference between two strategies, without its interval where it is none by construction.

    That is so where both figures have a value by construction, or both strategies send the same text in every request:
    figures of what is sent, and answers to it, are then the same.
    """
    values = [fixed(metric, strategy) for strategy in strategies]
    stages = (strategy.split(" | ") for strategy in strategies)
    one, other = ([stage for stage in chain if stage.partition("(")[0] not in _WHOLE] for chain in stages)
    # A strategy beside itself is that of another run, whose code may be another.
    is_same_text = one == other and strategies[0] != strategies[1] and metric.partition("(")[0] in _OF_TEXTS
    if not difference.nothing or (None in values and not is_same_text):
        return difference
    return difference._replace(shown=BY_CONSTRUCTION, tested=BY_CONSTRUCTION)


OF_PROBES = tuple(key for key, metric in METRICS.items() if metric.table == "probes")
OF_ANSWERS = tuple(key for key, metric in METRICS.items() if metric.table == "answers")
OF_STEPS = tuple(key for key, metric in METRICS.items() if metric.table in ("steps", "timings"))
"""Keys of the metrics over steps and their times."""
_OF_TEXTS = frozenset(key for key, metric in METRICS.items() if metric.table != "timings")


def figures(steps: pd.DataFrame) -> dict[str, Value]:
    """Return every metric over one group of steps, by its key."""
    return {key: METRICS[key].of(steps) for key in OF_STEPS}


def recall_interval(probes: pd.DataFrame, strategy: str, units: Mapping[str, str]) -> Interval | Missing:
    """Return the context recall of a strategy's probes with its 95 % interval, by resampling independent units."""
    recall = METRICS["context_recall"].of
    assert isinstance(recall, Ratio)
    kept, counted = recall.parts(probes)
    rows = counted > 0
    interval = share_interval((kept[rows] / counted[rows]).tolist(), units_of(probes[rows], units))
    if isinstance(interval, Missing) or interval.mean != fixed("context_recall", strategy):
        return interval
    return Interval(interval.mean, BY_CONSTRUCTION, BY_CONSTRUCTION)


def units_of(rows: pd.DataFrame, units: Mapping[str, str]) -> list[str]:
    """Return the independent unit of each row: its conversation's, which is itself where `units` lacks it."""
    return [units.get(name, name) for name in map(str, rows.conversation)]


def turn_means(steps: pd.DataFrame) -> pd.DataFrame:
    """Return the means of each turn of a conversation under a strategy, and its calls without the newest message."""
    lacking = steps.assign(lacks=~steps.newest)
    by_conversation = lacking.groupby(["strategy", "turn", "conversation"], observed=True).agg(
        tokens_full=("tokens_full", "mean"), tokens_sent=("tokens_sent", "mean"), without_newest=("lacks", "sum")
    )
    return by_conversation.reset_index()


def growth(means: pd.DataFrame) -> pd.DataFrame:
    """Return tokens by turn: strategy, turn, conversations, mean tokens_full and tokens_sent, without_newest, saving.

    The rows of `turn_means` are, in each turn, in the order of the run: each conversation counts once a turn, by the
    mean of its steps in it. `conversations` says how many reach the turn. `without_newest` counts all steps of it.
    """
    by_turn = means.groupby(["strategy", "turn"], observed=True).agg(
        conversations=("tokens_full", "size"),
        tokens_full=("tokens_full", "mean"),
        tokens_sent=("tokens_sent", "mean"),
        without_newest=("without_newest", "sum"),
    )
    by_turn["saving"] = 1 - by_turn.tokens_sent / by_turn.tokens_full
    return by_turn.reset_index()
