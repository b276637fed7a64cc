"""Verdict on an agent's own compaction: what it did, what it saved and dropped, and what would have done better."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec
import pandas as pd

from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.value import Missing, grouped
from ctxbench.scenarios.model import RECORDED

from .render import Table, about, count, dollars, percent, shares
from .results import Results
from .verdict import FEWEST, WHOLE, RunVerdict, verdict
from .verdict import as_json as verdict_json
from .verdict_text import how_sure, less, points_of, recorded_with, too_few


class OwnCompaction(NamedTuple):
    """The recorded agents' own compactions and edits, over the conversations that every strategy finished."""

    sessions: int
    """Sessions in which they did something."""
    times: int
    """Compactions, and calls in which the provider cleared more than before."""
    calls: int
    """Model calls from the first of them on."""
    summaries: int
    estimated: int
    """Summaries whose call has no recorded usage."""


@dataclass(frozen=True)
class Audit:
    """A run with `recorded` in it, read as an audit of the recorded agents."""

    results: Results

    @cached_property
    def against_whole(self) -> RunVerdict:
        """Every strategy against sending everything."""
        return verdict(self.results)

    @cached_property
    def own(self) -> OwnCompaction:
        """The agents' own compactions and edits, counted."""
        events = self.results.run.table("events")
        events = events[(events.strategy == RECORDED) & ~events.conversation.isin(self.results.summary.uneven)]
        actions = events[events.kind.isin(("summarised", "dropped", "cleared"))]
        first = actions.astype({"conversation": str}).groupby("conversation").step.min()
        after = (self.calls.reindex(first.index) - first).clip(lower=0)
        calls = [msgspec.json.decode(text) for text in events.event[events.kind == "called"]]
        estimated = sum(call["basis"] == "estimated" for call in calls)
        return OwnCompaction(len(first), len(actions), int(after.sum()), len(calls), estimated)

    @cached_property
    def calls(self) -> pd.Series[int]:
        """Number of the agents' model calls by conversation. Steps are numbered from 0."""
        sums = self.results.common
        return sums[sums.strategy == RECORDED].astype({"conversation": str}).set_index("conversation").steps

    @property
    def left_out(self) -> Mapping[str, str]:
        """The conversations that `recorded` could not replay, each with the reason."""
        return self.results.run.failures.get(RECORDED, {})

    @cached_property
    def is_comparable(self) -> bool:
        """Whether the agents changed something, and it can be measured."""
        return bool(self.own.sessions) and {RECORDED, WHOLE} <= self.against_whole.points.keys()

    @cached_property
    def places(self) -> RunVerdict:
        """Every strategy against the agents' own compaction, or against sending everything where there was none."""
        return replace(self.against_whole, base=RECORDED) if self.is_comparable else self.against_whole

    @cached_property
    def better(self) -> str | None:
        """The strategy to use instead; None where none is sure to be better."""
        return None if self.places.shipped == RECORDED else self.places.shipped


def audit_table(audit: Audit) -> Table:
    """Return the verdict in at most 12 lines: what the agents did, what would have been better, how sure that is."""
    of_agent = _of_agent(audit) if audit.is_comparable else ()
    return Table(_title(audit), ("", ""), (*of_agent, *_of_others(audit), *_rest(audit)), prose=True)


def _title(audit: Audit) -> str:
    better = audit.better
    if audit.is_comparable:
        if better == WHOLE:
            return about("audit_whole")
        return f"Use {better} in place of your agent's own compaction" if better else "Keep your agent's own compaction"
    is_measured = RECORDED in audit.against_whole.points
    found = "Your agent compacted nothing" if is_measured else "Your agent's own compaction cannot be measured"
    return f"{found}: {better} would cost less than sending everything" if better else found


def _of_agent(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield what the recorded agents did, and what it saved, cost and dropped against sending everything."""
    own, places, totals = audit.own, audit.against_whole, audit.results.totals
    sessions, calls = count(audit.results.summary.compared, "session"), count(int(audit.calls.sum()), "model call")
    yield "compacted", about("audit_compacted", times=count(own.times, "time"), own=own, sessions=sessions, calls=calls)
    yield "saved", about("audit_saved", share=less(places.token_change(RECORDED)))
    cost, whole = (dollars(places.points[name].cost) for name in (RECORDED, WHOLE))
    yield "cost", f"{cost} under {places.model} instead of {whole}: {_in_words(places.cost_change(RECORDED))}"
    if own.summaries:
        basis = f", estimated for {own.estimated:,} of {own.summaries:,}" if own.estimated else ", as recorded"
        summaries = totals[totals.model == places.model].set_index("strategy").cost_own[RECORDED]
        yield "", f"{dollars(summaries)} of it for its summaries{basis}"
    kept, points = percent(places.points[RECORDED].quality), points_of(places.gain(RECORDED, WHOLE))
    yield "dropped", f"{kept} of the values that the agent used next were still there: {points}"


def _of_others(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the strategy that would have been better, or comes nearest, with how sure that is."""
    places, better = audit.places, audit.better
    name = better or places.nearest
    if places.units < FEWEST:
        yield "why", too_few(places)
    if name is None or places.base not in places.points:
        return
    change = f"{dollars(places.points[name].cost)}, {_in_words(places.cost_change(name))}"
    gain = f"{places.quality.name} {points_of(places.gain(name, places.base))}"
    yield "better" if better else "nearest", f"{name}: {change}; {gain}"
    if places.units >= FEWEST:
        yield "how sure", how_sure(places, name)


def _in_words(change: Difference) -> str:
    """Return a relative change of a bill with its interval: 12.2 % (6.8 to 17.3 %) less, 3.1 % more."""
    if isinstance(change.value, Missing) or change.value <= 0:
        return f"{less(change)} less"
    ends = "" if isinstance(change.shown, Missing) else f" ({shares(change.shown.low, change.shown.high)})"
    return f"{percent(change.value)}{ends} more"


def _rest(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield what could not be measured, and where everything else is."""
    if reasons := grouped((None, why) for why in audit.left_out.values()):
        yield "left out", "; ".join(f"{count(reason.times, 'session')}: {reason.text}" for _, reason in reasons[:2])
    models, billed = audit.results.summary.recorded, audit.places.model
    if len(models) > 1:  # the sessions of all models are in one bill
        yield "recorded", recorded_with(audit.places) + (f"; all billed under {billed}" if billed in models else "")
    yield "next", f"all tables, against sending everything: ctxbench report {shlex.quote(audit.results.run.name)} --all"


def as_json(audit: Audit) -> dict[str, object]:
    """Return the exact figures of an audit."""
    return {
        "use": audit.better,
        "against": audit.places.base,
        "own": audit.own,
        "left_out": audit.left_out,
        "against_everything": verdict_json(audit.against_whole),
        "against_own": verdict_json(audit.places) if audit.is_comparable else None,
    }
