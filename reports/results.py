"""The figures of a run: one row per strategy, growth by turn, the bill, each computed once and when it is first used.

Strategies are compared over the same conversations. Where one fails in a conversation, no strategy is counted there; a
strategy that fails in all of them takes no part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from ctxbench.harness import cache
from ctxbench.harness.answers.figures import AnswerFigures
from ctxbench.harness.answers.tally import Tally, run_tallies, tallies_json, unanswered
from ctxbench.harness.bill import usual_prices
from ctxbench.harness.bill.bill import Billed, bill, billed_part
from ctxbench.harness.bill.requests import breaks
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.compare.figures import measured, overall
from ctxbench.harness.folder.files import file_digests
from ctxbench.harness.folder.run import KEYS, Run, recorded_models
from ctxbench.harness.folder.run import uneven as uneven_of
from ctxbench.harness.folder.schema import LEFT_OUT, Manifest
from ctxbench.harness.folder.schema import without_text as manifest_without_text
from ctxbench.harness.graders.profiles import user_folders
from ctxbench.metrics.figures import METRICS, OF_STEPS, OWN
from ctxbench.metrics.models import prices_version
from ctxbench.metrics.prices import BUNDLED, Prices
from ctxbench.metrics.survival import Survival, shown_share
from ctxbench.metrics.value import Missing, Value, grouped
from ctxbench.scenarios.files import code_digest

from . import LOSE
from .answers import Answers, all_json, answers_of
from .bill import totals
from .probes import ProbeSummary, probes_of
from .render import about, exact
from .reuse import reuse
from .steps import StepFigures, step_figures
from .tier_actions import TierActions, tier_actions, tier_actions_json

# Separates a reason from what was done instead, while the two are grouped as one text.
_SEPARATOR = "\0"

# Turns at which the growth curve is shown as a table.
_TURNS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Kept(NamedTuple):
    """Number of values that the recorded model used next, and of those that the contexts still had."""

    values: int
    kept: int


@dataclass(frozen=True)
class RunSummary:
    """Everything that the tables of a run show."""

    manifest: Manifest
    conversations: int
    units: int  # number of independent units among them: intervals are over these
    subagents: int  # number of conversations that another one of the run started; not those that go on with its copy
    messages: int
    calls: int
    tokens: int  # of all recorded messages, each once
    compared: int
    """Conversations that every strategy finished, except strategies that finished none. Figures below cover these."""
    uneven: frozenset[str]  # the other conversations: some strategies finished them, and some did not
    recorded: dict[str, int]  # recorded model calls by model, the most first; empty where no recording names a model
    strategies: dict[str, dict[str, Value]]
    failed_conversations: dict[str, int]  # number of conversations in which each strategy failed
    grounding: dict[str, dict[str, Kept]]  # by strategy and kind of value
    actions: dict[str, dict[str, int]]  # by strategy: how many events of each kind it reported
    reasons: list[dict[str, str | int]]
    """Why something failed or a budget was exceeded: strategy, what, why, instead, times. The most frequent first."""
    unrepeatable: dict[str, str]
    """Strategies that sent something else when they were replayed again, each with the conversation."""
    replies: list[Tally]  # replies of the models that strategies called, over all conversations
    unanswered: list[str]  # strategies whose own model calls all failed
    summariser_saw: dict[str, Value]  # by strategy: the share of the summarised tokens that the summariser was given
    tiers: dict[str, TierActions]  # actions of the memory tiers, for the strategies that have any
    survival: dict[str, list[Survival]]
    """By strategy: facts followed to each age, and how many were still in the summary."""
    make_probes: Callable[[], ProbeSummary | None]
    answers: Answers | None  # answers to the probes and their grades; None if nothing was answered
    steps: StepFigures
    failed: list[dict[str, str]]  # failed results: conversation, strategy, detail

    @cached_property
    def probes(self) -> ProbeSummary | None:
        """Figures of what was sent for the probes; None if there are no probes."""
        # Not with the rest: the verdict on a run with answers needs none of it, and each kind of probe is resampled.
        return self.make_probes()


def summarise(run: Run) -> RunSummary:
    """Return all figures of a run."""
    conversations = run.table("conversations")
    results = run.table("results")
    failed = results[results.status == "failed"]
    names = run.manifest.plan.strategies
    lost = {name: int((failed.strategy == name).sum()) for name in names}
    taking_part = [name for name in names if not lost[name] or lost[name] < len(conversations)]
    uneven = uneven_of(run.failures, len(conversations))
    compared = len(conversations) - len(uneven) if taking_part else 0
    of_steps = step_figures(run, uneven)

    by_strategy = of_steps.strategies
    if uneven and not compared:
        none = Missing("undefined", "no conversation that every strategy finished")
        by_strategy = {name: dict.fromkeys(OF_STEPS, none) for name in names}
    nowhere: dict[str, Value] = dict.fromkeys(OF_STEPS, Missing("failed", "in every conversation"))
    by_strategy = {name: by_strategy[name] if name in taking_part else nowhere for name in names}

    def compared_rows(table: str, part: Run = run) -> pd.DataFrame:
        rows = part.table(table)
        return rows[~rows.conversation.isin(uneven)]

    events = compared_rows("events")
    of_pieces = [_sums(compared_rows("grounding", piece), ["strategy", "kind"]) for piece in run.pieces()]
    grounding = pd.concat(of_pieces).groupby(level=[0, 1]).sum()
    events_of = {name: events[events.strategy == name] for name in names}
    followed = _sums(compared_rows("survival"), ["strategy", "kind", "age"])
    return RunSummary(
        manifest=run.manifest,
        conversations=len(conversations),
        units=len(set(run.units.values())),
        subagents=sum(
            unit not in (name, name.rpartition("~")[0]) and unit in run.units for name, unit in run.units.items()
        ),
        messages=int(conversations.messages.sum()),
        calls=int(conversations.calls.sum()),
        tokens=int(conversations.tokens.sum()),
        compared=compared,
        uneven=uneven,
        recorded=recorded_models(run),
        strategies=by_strategy,
        failed_conversations=lost,
        grounding={
            name: {kind: Kept(*sums) for (of, kind), *sums in grounding.itertuples() if of == name} for name in names
        },
        reasons=_reasons(events),
        unrepeatable={str(row.strategy): str(row.conversation) for row in results.itertuples() if row.repeats is False},
        replies=run_tallies(run),
        unanswered=unanswered(run_tallies(run, uneven)),
        actions={name: dict(sorted(Counter(map(str, own.kind)).items())) for name, own in events_of.items()},
        summariser_saw={
            name: shown_share(own[["about", "shown"]].dropna().astype(int).itertuples(index=False))
            for name, own in events_of.items()
        },
        tiers=tier_actions(events, {name: values["working_hit_rate"] for name, values in by_strategy.items()}),
        survival={
            name: [Survival(kind, int(age), *sums) for (of, kind, age), *sums in followed.itertuples() if of == name]
            for name in names
        },
        make_probes=lambda: probes_of(run, uneven, [name for name in names if name not in taking_part]),
        answers=answers_of(run, uneven),
        steps=of_steps,
        failed=[dict(zip((*KEYS, "detail"), row, strict=True)) for row in failed[[*KEYS, "detail"]].astype(str).values],
    )


def _sums(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the sums of values and kept for each group, in the order of the names."""
    return rows.astype(dict.fromkeys(set(by) - {"age"}, str)).groupby(by)[["values", "kept"]].sum()


def _reasons(events: pd.DataFrame) -> list[dict[str, str | int]]:
    """Return the reasons of each strategy; those that differ in numbers only count as one."""
    failures = events[events.kind.isin(("failed", "over_budget"))]
    decoded = [msgspec.json.decode(text) for text in failures.event]
    keys = zip(failures.strategy.astype(str), failures.kind.astype(str), strict=True)
    texts = [f"{event['why']}{_SEPARATOR}{event.get('instead', '')}" for event in decoded]
    rows: list[dict[str, str | int]] = []
    for (strategy, what), reason in grouped(zip(keys, texts, strict=True)):
        why, _, instead = reason.text.partition(_SEPARATOR)
        rows.append({"strategy": strategy, "what": what, "why": why, "instead": instead, "times": reason.times})
    return rows


def without_text(summary: RunSummary) -> RunSummary:
    """Return a summary without words that may quote a recording: errors, and why a reply or a record is missing."""

    def silent(replies: Iterable[Tally]) -> list[Tally]:
        return [tally._replace(why="") for tally in replies]

    def without_detail(failed: Iterable[dict[str, str]]) -> list[dict[str, str]]:
        return [row | {"detail": LEFT_OUT} for row in failed]

    def probes() -> ProbeSummary | None:
        asked = summary.probes
        return asked and replace(asked, failed=without_detail(asked.failed))

    def graded(figures: AnswerFigures) -> AnswerFigures:
        strategies = []
        for of in figures.strategies:
            why, left = (tuple((LEFT_OUT, times) for _, times in whys) for whys in (of.why, of.left_out))
            strategies.append(replace(of, why=why, left_out=left))
        return replace(figures, strategies=tuple(strategies), replies=tuple(silent(figures.replies)))

    return replace(
        summary,
        manifest=manifest_without_text(summary.manifest),
        reasons=[row | {"why": LEFT_OUT, "instead": ""} for row in summary.reasons],
        failed=without_detail(summary.failed),
        replies=silent(summary.replies),
        answers=summary.answers and replace(summary.answers, figures=tuple(map(graded, summary.answers.figures))),
        make_probes=probes,
    )


def growth_rows(curve: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the growth curve at a few turns: conversations that reach the turn, full tokens, tokens by strategy."""
    keys = {"tokens_sent": float, "saving": float, "without_newest": int}
    return [
        {
            "turn": turn,
            "conversations": int(here.conversations.max()),
            "full": float(here.tokens_full.max()),
            **{
                str(row.strategy): {key: of(getattr(row, key)) for key, of in keys.items()} for row in here.itertuples()
            },
        }
        for turn in _TURNS
        if not (here := curve[curve.turn == turn]).empty
    ]


@dataclass(frozen=True)
class Results:
    """A run with everything that its tables and figures show, billed under some models, the most important first."""

    run: Run
    models: Sequence[str]
    prices: Prices = field(default_factory=usual_prices)
    text: bool = True  # whether texts of the recordings may be shown, and words that may quote them
    named: Sequence[str] = ()  # models that somebody named: without any the first may be a guess
    lose: float = LOSE  # points of quality that the reader accepts to lose for a lower bill

    def kept(self, what: str, make: Callable[[], bytes]) -> bytes:
        """Return what is made of the results, or what the same code made of the same files before (`harness.cache`)."""
        run = self.run
        if cache.path() is None:
            return make()
        if OWN or self.prices is not BUNDLED or run.chosen is not None or run.shards is not None:
            return make()  # a metric or a price list of the user's own may say something else by now
        digests = list[dict[str, str]]()
        for folder in (run.folder, *user_folders()):  # of the graders that the user has calibrated
            paths = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
            # Of the run come its bills; what else lies there are live runs that were compared with it.
            names = [name for name in paths if not re.match(r"bills/(?!live)|report/|\.lock$", name)]
            try:
                if any((folder / name).stat().st_ctime > run.opened for name in names):
                    return make()  # what is in memory may be of the files before
            except OSError:
                return make()
            digests.append(file_digests(folder, names))
        asked = (what, self.models, self.named, self.text, self.lose, run.folder, run.folder.resolve())
        room = Path(__file__).parent
        versions = [prices_version(), *map(version, ("matplotlib", "jinja2", "rich", "ir-measures"))]
        code = cache.basis(code_digest(room, room.parent / "api").hex(), *versions)
        key, store = cache.key(code, repr(asked), repr(digests)), cache.results()
        if (data := store.get(key)) is None:
            store.put({key: (data := make())})
        return data

    @cached_property
    def summary(self) -> RunSummary:
        """Figures of every strategy."""
        summary = summarise(self.run)
        return summary if self.text else without_text(summary)

    @property
    def sums(self) -> pd.DataFrame:
        """Sums over the steps by conversation and strategy (`StepFigures.by_conversation`)."""
        return self.summary.steps.by_conversation

    @property
    def common(self) -> pd.DataFrame:
        """Sums of the conversations that every strategy finished: strategies are compared by these."""
        uneven = self.summary.uneven
        return self.sums[~self.sums.conversation.isin(uneven)] if uneven else self.sums

    @property
    def own(self) -> dict[str, dict[str, Value]]:
        """Figures of the metrics that the user has declared by now, by strategy; empty where there are none."""
        figures = overall(measured(self.run)) if OWN else {}
        return {of: {name: row[name] for name in row if name.partition("(")[0] in OWN} for of, row in figures.items()}

    @property
    def strategies(self) -> list[str]:
        """Names of the strategies, in the order of the run."""
        return list(self.summary.strategies)

    @cached_property
    def billed_part(self) -> Run:
        """The run, or the sample of its conversations whose requests are billed."""
        return billed_part(self.run)

    @property
    def is_sampled(self) -> bool:
        """True if only a sample of the conversations is billed."""
        return self.billed_part is not self.run

    @property
    def sampling_notes(self) -> list[str]:
        """Notes for a bill that covers only a sample; empty if it covers all conversations."""
        if not self.is_sampled:
            return []
        return [about("sampling", billed=len(self.billed_part.chosen or ()), whole=self.summary.conversations)]

    @cached_property
    def billed(self) -> Billed:
        """Requests of the run under the prices and caches of the models."""
        return bill(self.billed_part, [Scheme(model) for model in self.models], self.prices)

    @cached_property
    def bills(self) -> pd.DataFrame:
        """Bills, one row for each conversation, strategy and model (`Billed.conversations`)."""
        return self.billed.conversations()

    @cached_property
    def totals(self) -> pd.DataFrame:
        """Sums of the bills by model and strategy, over the conversations that every strategy finished."""
        return totals(self.bills)

    @cached_property
    def breaks(self) -> pd.DataFrame:
        """Prefix breaks of the billed requests."""
        return breaks(self.billed.requests)

    @cached_property
    def reuse(self) -> pd.DataFrame:
        """Ages of the tool results that recorded calls use (`reports.reuse`)."""
        return reuse(self.run)

    @cached_property
    def miss_ratios(self) -> pd.DataFrame:
        """Miss ratios of a cache of messages, by policy and size, on what the recordings go back to."""
        from ctxbench.harness.tier_bench.working import miss_ratios  # with the tiers, which only a report needs

        return miss_ratios(self.run)


def spent_json(manifest: Manifest) -> dict[str, float] | None:
    """Return what the live calls of all commands on a run cost; None if there was nothing to pay."""
    return None if manifest.spent is msgspec.UNSET else msgspec.structs.asdict(manifest.spent)


def as_json(summary: RunSummary) -> dict[str, Any]:
    """Return the exact figures for `--json`; a missing one is `{"why": "undefined", "detail": "no second step"}`.

    `strategies` and `growth` cover the `compared` conversations, the numbers before them all of them.
    """
    of_manifest = ("complete", "plan", "versions", "digest", "problems", "ignored")
    of_run = (
        *("conversations", "subagents", "messages", "calls", "tokens", "compared", "failed_conversations"),
        *("strategies", "actions", "reasons", "unanswered", "summariser_saw", "grounding", "survival", "probes"),
        "failed",
    )
    figures = {
        **{name: getattr(summary.manifest, name) for name in of_manifest},
        **{name: getattr(summary, name) for name in of_run},
        "spent": spent_json(summary.manifest),
        "independent_units": summary.units,
        "metrics": {name: {"unit": metric.unit, "version": metric.version} for name, metric in METRICS.items()},
        "libraries": summary.manifest.libraries(),
        "replies": tallies_json(summary.replies),
        "tiers": tier_actions_json(summary.tiers),
        "answers": all_json(summary.answers),
        "growth": growth_rows(summary.steps.growth),
        "counter_error": summary.steps.counter,
    }
    found: dict[str, Any] = exact(figures)
    return found
