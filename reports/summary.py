"""A run in figures: one row per strategy, the growth by turn, the error of the counter, what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..harness.load import Run
from ..metrics.figures import figures, growth
from ..metrics.tokens import encoding_of
from ..metrics.value import Missing, Value

TURNS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Turns at which the growth curve is shown as a table."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that the tables of a run show."""

    manifest: dict[str, Any]
    conversations: int
    messages: int
    calls: int
    tokens: int
    """Of all recorded messages, each once."""
    strategies: dict[str, dict[str, Value]]
    growth: pd.DataFrame
    counter: list[dict[str, Value | str]]
    failed: list[dict[str, str]]
    """Cells that failed: conversation, strategy, detail."""


def summarise(run: Run) -> Summary:
    """All figures of a run."""
    steps = steps_of(run)
    conversations = run.table("conversations")
    cells = run.table("cells")
    failed = cells[cells.status == "failed"]
    return Summary(
        manifest=run.manifest,
        conversations=len(conversations),
        messages=int(conversations.messages.sum()),
        calls=int(conversations.calls.sum()),
        tokens=int(conversations.tokens.sum()),
        strategies={name: figures(steps[steps.strategy == name]) for name in run.manifest["plan"]["strategies"]},
        growth=growth(steps),
        counter=counter_error(run.table("messages"), steps, run.manifest["plan"]["encoding"]),
        failed=[
            {"conversation": str(row.conversation), "strategy": str(row.strategy), "detail": str(row.detail)}
            for row in failed.itertuples()
        ],
    )


def by_conversation(run: Run) -> list[tuple[str, str, dict[str, Value]]]:
    """(conversation, strategy, figures) for every cell that has steps, in the order of the run."""
    groups = steps_of(run).groupby(["conversation", "strategy"], observed=True, sort=False)
    return [(str(name), str(strategy), figures(cell)) for (name, strategy), cell in groups]


def steps_of(run: Run) -> pd.DataFrame:
    """The steps of a run with what the figures need joined in: `decide_ns` and the model's `window`."""
    steps, timings = run.table("steps"), run.table("timings")
    steps["decide_ns"] = timings["decide_ns"].to_numpy()
    steps["window"] = run.manifest["window"]
    return steps


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


def growth_table(curve: pd.DataFrame) -> list[dict[str, Any]]:
    """The growth curve at a few turns, one row per turn: conversations that reach it, full, then sent by strategy."""
    rows = []
    for turn in TURNS:
        here = curve[curve.turn == turn]
        if here.empty:
            continue
        row: dict[str, Any] = {"turn": turn, "conversations": int(here.conversations.max())}
        row["full"] = float(here.tokens_full.max())
        for name, sent, saved in zip(here.strategy, here.tokens_sent, here.saving, strict=True):
            row[str(name)] = {"tokens_sent": float(sent), "saving": float(saved)}
        rows.append(row)
    return rows
