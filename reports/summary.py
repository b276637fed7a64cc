"""A run in figures: one row per strategy, the growth by turn, the error of the counter, what was left out.

Strategies are compared over the same conversations. Where one fails in a conversation, no strategy is counted there; a
strategy that fails in all of them takes no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd

from ..harness.answers.figures import unanswered
from ..harness.folder.contexts import steps_of
from ..harness.folder.run import Run
from ..metrics.figures import OF_STEPS, figures, growth
from ..metrics.survival import Survival, shown_share
from ..metrics.tokens import encoding_of
from ..metrics.value import Missing, Value, grouped
from .answers import Answers, answers_of
from .probes import ProbeSummary, probes_of
from .tier_actions import TierActions, tier_actions

_BETWEEN = "\0"
"""Between a reason and what was done instead, while they are grouped as one text."""

TURNS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Turns at which the growth curve is shown as a table."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Everything that the tables of a run show."""

    manifest: dict[str, Any]
    conversations: int
    messages: int
    calls: int
    tokens: int
    """Of all recorded messages, each once."""
    compared: int
    """Conversations that every strategy finished, those aside that finished none. All figures below are over these."""
    uneven: frozenset[str]
    """The other conversations: some strategies finished them, and some did not."""
    strategies: dict[str, dict[str, Value]]
    lost: dict[str, int]
    """By strategy: the conversations in which it failed."""
    grounding: dict[str, dict[str, tuple[int, int]]]
    """By strategy and kind: values wanted, and how many of them the contexts had."""
    did: dict[str, dict[str, int]]
    """By strategy: how many events of each kind it reported."""
    why: list[dict[str, str | int]]
    """Why something failed or a budget could not be kept: strategy, what, why, instead, times. The most frequent is
    first."""
    unanswered: list[str]
    """The strategies that asked models and had no answer of use."""
    shown: dict[str, Value]
    """By strategy: of the tokens that its summaries stand for, the share that the summariser was shown."""
    tiers: dict[str, TierActions]
    """By strategy, those that have memory tiers: what these did."""
    survival: dict[str, list[Survival]]
    """By strategy: how many of the facts followed to an age were still in the summary."""
    probes: ProbeSummary | None
    """What is sent for the probes; None if none were asked."""
    answers: Answers | None
    """What was answered to them; None if nothing was."""
    growth: pd.DataFrame
    counter: list[dict[str, Value | str]]
    failed: list[dict[str, str]]
    """Cells that failed: conversation, strategy, detail."""


def summarise(run: Run, steps: pd.DataFrame | None = None) -> RunSummary:
    """All figures of a run. `steps`: as `steps_of` gives them, where they are at hand."""
    steps = steps_of(run) if steps is None else steps
    conversations = run.table("conversations")
    cells = run.table("results")
    failed = cells[cells.status == "failed"]
    names = run.manifest["plan"]["strategies"]
    lost = {name: int((failed.strategy == name).sum()) for name in names}
    taking_part = [name for name in names if not lost[name] or lost[name] < len(conversations)]
    uneven = set(failed.conversation[failed.strategy.isin(taking_part)])
    compared = len(conversations) - len(uneven) if taking_part else 0
    common = steps[~steps.conversation.isin(uneven)]

    def figures_of(name: str) -> dict[str, Value]:
        if name not in taking_part:
            return _no_figures("failed", "in every conversation")
        if uneven and not compared:
            return _no_figures("undefined", "no conversation that every strategy finished")
        return figures(common[common.strategy == name])

    def compared_rows(table: str) -> pd.DataFrame:
        rows = run.table(table)
        return rows[~rows.conversation.isin(uneven)]

    events = compared_rows("events")
    return RunSummary(
        manifest=run.manifest,
        conversations=len(conversations),
        messages=int(conversations.messages.sum()),
        calls=int(conversations.calls.sum()),
        tokens=int(conversations.tokens.sum()),
        compared=compared,
        uneven=frozenset(uneven),
        strategies={name: figures_of(name) for name in names},
        lost=lost,
        grounding=_grounding(compared_rows("grounding"), names),
        why=_why(events),
        unanswered=unanswered(events),
        did={name: _counted(events[events.strategy == name]) for name in names},
        shown={name: _shown(events[events.strategy == name]) for name in names},
        tiers=tier_actions(events),
        survival=_survival(compared_rows("survival"), names),
        probes=probes_of(run, frozenset(uneven), [name for name in names if name not in taking_part]),
        answers=answers_of(run, frozenset(uneven)),
        growth=growth(common),
        counter=counter_error(run.table("messages"), steps, run.manifest["plan"]["encoding"]),
        failed=[
            {"conversation": str(row.conversation), "strategy": str(row.strategy), "detail": str(row.detail)}
            for row in failed.itertuples()
        ],
    )


def _grounding(rows: pd.DataFrame, names: list[str]) -> dict[str, dict[str, tuple[int, int]]]:
    found: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in names}
    for (name, kind), values, kept in _sums(rows, ["strategy", "kind"]):
        found[name][kind] = (values, kept)
    return found


def _survival(rows: pd.DataFrame, names: list[str]) -> dict[str, list[Survival]]:
    found: dict[str, list[Survival]] = {name: [] for name in names}
    for (name, kind, age), values, kept in _sums(rows, ["strategy", "kind", "age"]):
        found[name].append(Survival(kind, int(age), values, kept))
    return found


def _sums(rows: pd.DataFrame, by: list[str]) -> Iterator[tuple[Any, int, int]]:
    """(names of the group, sum of values, sum of kept), in the order of the names."""
    sums = rows.astype(dict.fromkeys(set(by) - {"age"}, str)).groupby(by)[["values", "kept"]].sum()
    return zip(sums.index, sums["values"].tolist(), sums.kept.tolist(), strict=True)


def _counted(events: pd.DataFrame) -> dict[str, int]:
    kinds = events.kind.astype(str).value_counts()
    return {str(kind): int(kinds[kind]) for kind in sorted(kinds.index)}


def _why(events: pd.DataFrame) -> list[dict[str, str | int]]:
    """The reasons of a strategy that differ in numbers only are one."""
    told = events[events.kind.isin(("failed", "over_budget"))]
    said = [msgspec.json.decode(text) for text in told.event]
    keys = zip(told.strategy.astype(str), told.kind.astype(str), strict=True)
    texts = [f"{event['why']}{_BETWEEN}{event.get('instead', '')}" for event in said]
    rows: list[dict[str, str | int]] = []
    for (strategy, what), reason in grouped(zip(keys, texts, strict=True)):
        why, _, instead = reason.text.partition(_BETWEEN)
        rows.append({"strategy": strategy, "what": what, "why": why, "instead": instead, "times": reason.times})
    return rows


def _shown(events: pd.DataFrame) -> Value:
    calls = events.dropna(subset=["about", "shown"])
    return shown_share(zip(calls.about.astype(int), calls.shown.astype(int), strict=True))


def by_conversation(run: Run) -> list[tuple[str, str, dict[str, Value]]]:
    """(conversation, strategy, figures) for every cell that has steps or failed, in the order of the run."""
    groups = dict(iter(steps_of(run).groupby(["conversation", "strategy"], observed=True, sort=False)))
    rows = []
    for cell in run.table("results").itertuples():
        key = (str(cell.conversation), str(cell.strategy))
        if cell.status == "failed":
            rows.append((*key, _no_figures("failed", str(cell.detail))))
        elif key in groups:
            rows.append((*key, figures(groups[key])))
    return rows


def _no_figures(why: Literal["failed", "undefined"], detail: str) -> dict[str, Value]:
    return dict.fromkeys(OF_STEPS, Missing(why, detail))


def growth_table(curve: pd.DataFrame) -> list[dict[str, Any]]:
    """The growth curve at a few turns, one row per turn: conversations that reach it, full, then sent by strategy."""
    rows = []
    for turn in TURNS:
        here = curve[curve.turn == turn]
        if here.empty:
            continue
        row: dict[str, Any] = {"turn": turn, "conversations": int(here.conversations.max())}
        row["full"] = float(here.tokens_full.max())
        for name, sent, saved, lacking in zip(
            here.strategy, here.tokens_sent, here.saving, here.without_newest, strict=True
        ):
            row[str(name)] = {"tokens_sent": float(sent), "saving": float(saved), "without_newest": int(lacking)}
        rows.append(row)
    return rows


def counter_error(messages: pd.DataFrame, steps: pd.DataFrame, encoding: str) -> list[dict[str, Value | str]]:
    """Our count of the whole prompt against the one that the provider reported, by recorded model.

    `total` is (counted − reported) / reported over all calls: what is not in a recording (a system prompt, tool
    schemas) is in it. `growth_p10`, `growth_p50`, `growth_p90` are of the growth from one call to the next, in
    which what is constant cancels; calls where the reported prompt shrank are left out of it. So are calls after a
    recorded compaction: what was sent there is not the history.
    """
    known = messages.dropna(subset=["usage_input"])
    known = known[(known.usage_input > 0) & ~known.compacted]
    full = steps[["conversation", "at", "tokens_full"]].drop_duplicates(["conversation", "at"])
    both = known.astype({"conversation": str}).merge(full.astype({"conversation": str}), on=["conversation", "at"])
    rows: list[dict[str, Value | str]] = []
    for model, calls in both.groupby("model", observed=True):
        grown = calls.groupby("conversation", observed=True)[["usage_input", "tokens_full"]].diff()
        grown = grown[grown.usage_input > 0]
        errors = ((grown.tokens_full - grown.usage_input) / grown.usage_input).to_numpy()
        points: list[Value] = [Missing("undefined", "one call only")] * 3
        if len(errors):
            points = [float(point) for point in np.percentile(errors, [10, 50, 90])]
        rows.append(
            {
                "model": str(model),
                "encoding": encoding,
                "published": encoding_of(str(model)) or "none",
                "calls": len(calls),
                "total": float(calls.tokens_full.sum() / calls.usage_input.sum() - 1),
                **{f"growth_p{at}": value for at, value in zip((10, 50, 90), points, strict=True)},
            }
        )
    return rows
