"""Verdict on an agent's own compaction: what it did, what it saved and dropped, and what would have done better."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec
import pandas as pd

from ctxbench.harness.answers.figures import WHOLE
from ctxbench.harness.audit import CUTS, UNCOMPACTED
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.folder.run import KEYS, Run
from ctxbench.metrics.aftermath import Aftermath
from ctxbench.metrics.figures import units_of
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import FEWEST, Ends, by_unit, enough
from ctxbench.metrics.value import Missing, grouped
from ctxbench.scenarios.model import RECORDED

from . import report_options
from .render import Table, about, count, dollars, percent
from .results import Results, RunSummary
from .verdict import RunVerdict, verdict
from .verdict import as_json as verdict_json
from .verdict_text import how_sure, in_words, points_of, recorded_with, too_few, why_nearest


@dataclass(frozen=True)
class Spared(Results):
    """Results of an audit: strategies that spare the agent calls are counted without these (`harness/audit.py`)."""

    without: Run | None = None
    """The strategies that do, over all sessions without such calls; None where no call was needless."""

    @cached_property
    def _spared(self) -> Results | None:
        return None if self.without is None else replace(self, run=self.without, without=None)

    @cached_property
    def summary(self) -> RunSummary:
        """Figures of every strategy. All save tokens of the whole history without needless calls."""
        summary = super().summary
        if self._spared is None:
            return summary
        spared = self._spared.summary
        others, sums = (of.steps.by_conversation.astype(dict.fromkeys(KEYS, str)) for of in (spared, summary))
        whole = others[others.strategy == WHOLE].set_index("conversation").tokens_full
        sums = sums[~sums.strategy.isin(spared.strategies)]
        sums = sums.assign(tokens_full=sums.conversation.map(whole))
        common = sums[~sums.conversation.isin(summary.uneven)].groupby("strategy").sum(numeric_only=True)
        saved = 1 - (common.tokens_sent + common.own_tokens) / common.tokens_full
        figures = {
            name: spared.strategies.get(name) or values | {"net_saving": saved.get(name, values["net_saving"])}
            for name, values in summary.strategies.items()
        }
        steps = summary.steps._replace(by_conversation=pd.concat([others, sums], ignore_index=True))
        return replace(summary, strategies=figures, steps=steps)

    @cached_property
    def bills(self) -> pd.DataFrame:
        """Bills of every strategy, against the whole history without needless calls."""
        bills = super().bills
        if self._spared is None:
            return bills
        spared, own = (of.astype(dict.fromkeys(KEYS, str)) for of in (self._spared.bills, bills.drop(columns="base")))
        bases = spared[["conversation", "model", "base"]].drop_duplicates(["conversation", "model"])
        own = own[~own.strategy.isin(spared.strategy)].merge(bases, on=["conversation", "model"])
        return pd.concat([spared, own], ignore_index=True)


class OwnCompaction(NamedTuple):
    """The recorded agents' own compactions and edits, over the conversations that every strategy finished."""

    sessions: int  # sessions in which they did something
    units: int  # independent units among these
    times: int  # compactions, and calls in which the provider cleared more than before
    calls: int  # model calls from the first of them on
    summaries: int
    estimated: int  # summaries whose call has no recorded usage
    again: Mapping[str, int]  # tool calls after it that had been made before, by why (`metrics.aftermath.Again`)
    spared: int  # model calls that would not have been made without it
    spared_cost: float  # cost of these calls in US dollars
    lost: Mapping[str, str]
    """Rules of system messages and of files such as CLAUDE.md that reached no call after it, with the source."""
    forgetful: int  # sessions that lost any
    stale: int  # answers whose reasoning a provider may reject or ignore, as it was sent behind a summary


@dataclass(frozen=True)
class Audit:
    """A run with `recorded` in it, read as an audit of the recorded agents."""

    results: Results
    after: Mapping[str, Aftermath]  # consequences for each session that was compacted

    @cached_property
    def against_whole(self) -> RunVerdict:
        """Every strategy against sending everything."""
        return verdict(self.results)

    @cached_property
    def own(self) -> OwnCompaction:
        """The agents' own compactions and edits, counted."""
        results = self.results
        events = results.run.table("events").astype({"conversation": str})
        events = events[(events.strategy == RECORDED) & ~events.conversation.isin(results.summary.uneven)]
        actions = events[events.kind.isin(CUTS) & events.conversation.isin(self.after.keys())]
        first = actions.groupby("conversation").step.min()
        after = {name: self.after[name] for name in first.index}
        calls = [msgspec.json.decode(event) for event in events.event[events.kind == "called"]]
        billed, spared = results.billed, {(name, at) for name, of in after.items() for at in of.spared}
        costs = billed.calls(Scheme(self.against_whole.model), ("cost",)).assign(at=billed.requests.at)
        costs = costs[costs.strategy == RECORDED]
        cost_of = zip(costs.conversation.astype(str), costs["at"], costs.cost, strict=True)
        return OwnCompaction(
            sessions=len(first),
            units=len({results.run.units.get(name, name) for name in after}),
            times=len(actions),
            calls=int((self.calls.reindex(first.index) - first).clip(lower=0).sum()),
            summaries=len(calls),
            estimated=sum(call["basis"] == "estimated" for call in calls),
            again=dict.fromkeys(_WHY, 0) | Counter(made.why for of in after.values() for made in of.again),
            spared=len(spared),
            spared_cost=sum((cost for name, at, cost in cost_of if (name, at) in spared), 0.0),
            lost={rule: source for of in after.values() for rule, source in of.lost.items()},
            forgetful=sum(bool(of.lost) for of in after.values()),
            stale=sum(of.stale for of in after.values()),
        )

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
    def undecided(self) -> str:
        """Why the agents' compactions are too few to say keep or change; empty where they are enough."""
        if not self.is_comparable:
            return ""
        sessions, of = count(self.own.sessions, "session"), self.results.summary.compared
        if self.own.units < FEWEST:
            return about("audit_few", sessions=sessions, of=of, units=self.own.units, fewest=FEWEST)
        bills = self.results.bills.astype(dict.fromkeys(KEYS, str))
        bills = bills[(bills.strategy == RECORDED) & (bills.model == self.against_whole.model)]
        bills = bills[bills.conversation.isin(self.after.keys())]
        costs = by_unit(bills.cost.to_numpy(float), units_of(bills, self.results.run.units))
        return "" if enough(costs) is None else about("audit_heavy", share=percent(costs.max() / costs.sum()))

    @cached_property
    def better(self) -> str | None:
        """The strategy to use instead; None where none is sure to be better."""
        return None if self.undecided or self.places.shipped == RECORDED else self.places.shipped

    @property
    def compacted_nothing(self) -> bool:
        """Whether no session that can be replayed as it was sent was compacted."""
        return not self.own.sessions and (RECORDED in self.places.points or not self.left_out)


_WHY = {
    "dropped": "whose result had been dropped",
    "changed": "whose result could have changed",
    "there": "whose result was still there",
}


def audit_table(audit: Audit) -> Table:
    """Return the verdict: what the agents did, what would have been better, how sure that is."""
    of_agent = _of_agent(audit) if audit.is_comparable else ()
    return Table(_title(audit), ("", ""), (*of_agent, *_of_others(audit), *_rest(audit)), prose=True)


def _title(audit: Audit) -> str:
    better, places, own = audit.better, audit.against_whole, audit.own
    if not audit.is_comparable:
        found = "Your agent's own compaction cannot be measured"
        if audit.compacted_nothing:
            some = f" in the {count(int(audit.calls.size), 'session')} that can be replayed as they were sent"
            found = "Your agent compacted nothing" + some * bool(audit.left_out)
        return f"{found}: {better} would cost less than sending everything" if better else found
    if audit.undecided:
        title = f"Not decided: {audit.undecided}"
    else:
        name = "audit_unsure"
        if better:
            name = "audit_whole" if better == WHOLE else "audit_better"
        elif RECORDED in places.candidates and places.points[RECORDED].cost < places.points[WHOLE].cost:
            name = "audit_keep" if places.is_sure_of(RECORDED) else name
        cost, whole, other = (dollars(places.points[name].cost) for name in (RECORDED, WHOLE, better or WHOLE))
        title = about(name, cost=cost, whole=whole, better=better, other=other)
    if own.lost:
        title += (
            f"; {count(len(own.lost), 'rule')} of {', '.join(sorted(set(own.lost.values())))} reached no call after it"
        )
    return title


def _of_agent(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield what the recorded agents did, and what it saved, cost and kept against sending everything."""
    own, places, totals = audit.own, audit.against_whole, audit.results.totals
    sessions, calls = count(audit.results.summary.compared, "session"), count(int(audit.calls.sum()), "model call")
    yield "compacted", about("audit_compacted", times=count(own.times, "time"), own=own, sessions=sessions, calls=calls)
    if again := {why: number for why, number in own.again.items() if number}:
        reasons = ", ".join(f"{number:,} {_WHY[why]}" for why, number in again.items())
        yield "again", f"{count(sum(again.values()), 'tool call')} after it repeat earlier ones: {reasons}"
    if own.spared:
        yield "", about("audit_spared", calls=count(own.spared, "model call"), cost=dollars(own.spared_cost))
    if own.lost:
        named = ", ".join(f'"{rule}"' for rule in list(own.lost)[:_NAMED])
        more = f" and {len(own.lost) - _NAMED:,} more" * (len(own.lost) > _NAMED)
        yield "rules", about("audit_rules", own=own, named=named + more)
    if own.stale:
        yield "reasoning", about("audit_stale", answers=count(own.stale, "answer"))
    yield "tokens", about("audit_tokens", change=_in_words(places.token_change(RECORDED)))
    cost, whole = (dollars(places.points[name].cost) for name in (RECORDED, WHOLE))
    yield "cost", f"{cost} under {places.model} instead of {whole}: {_in_words(places.cost_change(RECORDED))}"
    if own.summaries:
        basis = f", estimated for {own.estimated:,} of {own.summaries:,}" if own.estimated else ", as recorded"
        summaries = totals[totals.model == places.model].set_index("strategy").cost_own[RECORDED]
        yield "", f"{dollars(summaries)} of it for its summaries{basis}"
    kept, points = percent(places.points[RECORDED].quality), points_of(places.gain(RECORDED, WHOLE))
    yield "kept", f"{kept} of the values that the agent used next were still there: {points}"


_NAMED = 3  # rules that are quoted


def _of_others(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield the strategy that would have been better, or comes nearest, with how sure that is."""
    places, better = audit.places, audit.better
    name = places.nearest if better is None and places.base in places.points else better
    if audit.compacted_nothing:
        yield "why", about("audit_none", folder=shlex.quote(audit.results.run.name))
    elif RECORDED not in places.points and audit.left_out:
        yield "why", _reasons(audit)
        few = f"; {too_few(places)}" * (places.units < FEWEST)
        yield "", about("audit_whole_instead") + few
    elif places.units < FEWEST and not audit.undecided:
        yield "why", too_few(places)
    if name is None:
        return
    change = f"{dollars(places.points[name].cost)}, {_in_words(places.cost_change(name))}"
    gain = f"{places.quality.name} {points_of(places.gain(name, places.base))}"
    why = "" if better else f"; {why_nearest(places, name)}"
    yield "better" if better else "nearest", f"{name}: {change}; {gain}{why}"
    if places.units >= FEWEST and not audit.undecided:
        yield "elsewhere", how_sure(places, name)


def _in_words(change: Difference) -> str:
    """Return a relative change as it was here: 12.2 % less, 3.1 % more."""
    value = change.value
    return f"({value.why})" if isinstance(value, Missing) else in_words(Ends(value, value))


def _reasons(audit: Audit) -> str:
    """Return why sessions cannot be replayed as they were sent, and how many: the two most frequent reasons."""
    reasons = grouped((None, why) for why in audit.left_out.values())[:2]
    return "; ".join(f"{count(reason.times, 'session')}: {reason.text}" for _, reason in reasons)


def _rest(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield what could not be measured, and where everything else is."""
    if audit.left_out and RECORDED in audit.places.points:  # else they are measured, and that is why
        yield "left out", _reasons(audit)
    if len(audit.results.summary.recorded) > 1:  # the sessions of all models are in one bill
        yield "model", recorded_with(audit.places)
    folder, report = audit.results.run.name, ["ctxbench", "report"]
    options = ["--all", *report_options(audit.results.named, audit.results.lose)]
    more = f"all tables, against sending everything: {shlex.join([*report, folder, *options])}"
    if audit.own.spared:
        more += f"; without needless calls: {shlex.join([*report, f'{folder}/{UNCOMPACTED}', *options])}"
    yield "results", f"{shlex.quote(folder)}/   ({more})"


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
