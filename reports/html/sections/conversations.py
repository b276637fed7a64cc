"""The conversations, each with the way into the inspector."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...render import Table
from ...results import Results
from ...words import count
from ..section import Section

MOST = 200
"""Conversations that are in the page; all are in the CSV file."""


def section(results: Results) -> Section:
    """Every run has it."""
    table = results.run.table("conversations")
    lowest = _lowest(results.common)
    rows = tuple(
        (
            row.conversation,
            f"{row.calls:,}",
            f"{row.messages:,}",
            f"{row.tokens:,}",
            f"{row.probes:,}",
            *_worst(lowest, row),
        )
        for row in _rows(table.head(MOST))
    )
    heads = ("conversation", "model calls", "messages", "tokens", "probes", "least grounded", "share")
    notes = ["Least grounded: the strategy whose contexts lacked the most of what the recorded model used next."]
    if len(table) > MOST:
        notes.append(f"The first {MOST} of {count(len(table), 'conversation')}: all are in tables/cells.csv.")
    shown = Table("Conversations", heads, rows, tuple(notes))
    lead = "A conversation's name opens it in the inspector below."
    return Section("conversations", "Conversations", lead, (shown,), {"cells": _cells(results)}, "conversations.html")


def _lowest(steps: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """By conversation, the strategy with the lowest share, and the share, where any is under 1."""
    sums = steps.groupby(["conversation", "strategy"], observed=True)[["demands_kept", "demands"]].sum().reset_index()
    sums = sums[sums.demands > 0].assign(share=lambda rows: rows.demands_kept / rows.demands)
    sums = sums[sums.share < 1].sort_values("share", kind="stable").drop_duplicates("conversation")
    return {
        str(name): (str(strategy), share)
        for name, strategy, share in zip(sums.conversation, sums.strategy, sums.share, strict=True)
    }


def _worst(lowest: dict[str, tuple[str, float]], row: Any) -> tuple[str, str]:
    from ...words import percent

    strategy, share = lowest.get(row.conversation, ("", 1.0))
    return (strategy, percent(share)) if strategy else ("–", "–")


def _rows(frame: pd.DataFrame) -> Any:
    return frame.itertuples()


def _cells(results: Results) -> pd.DataFrame:
    """A row a conversation and strategy: what became of it, its sums, and its bill under each model."""
    keys = ["conversation", "strategy"]
    columns = ["tokens_full", "tokens_sent", "own_tokens", "demands", "demands_kept"]
    sums = results.steps.groupby(keys, observed=True)[columns].sum().reset_index()
    found = results.run.table("cells")[[*keys, "status", "detail", "steps"]]
    found = found.astype({"strategy": str}).merge(sums.astype(dict.fromkeys(keys, str)), "left", keys)
    for model, rows in results.bills.groupby("model", observed=True, sort=False):
        bill = rows[keys].astype(str).assign(**{f"cost {model}": (rows.cost + rows.cost_own).to_numpy()})
        found = found.merge(bill, "left", keys)
    return found
