"""What went from one memory tier to another, and which limits were crossed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pandas as pd

from ...render import Table
from ...results import Results
from ...words import percent
from ..section import Section


def section(results: Results) -> Section | None:
    """None where no strategy has tiers."""
    events = results.run.table("events")
    events = events[events.kind.isin(("moved", "crossed"))]
    if events.empty:
        return None
    told = map(msgspec.json.decode, events.event)
    pairs = list(zip(events.strategy.astype(str), told, strict=True))
    moves = _moves(pairs)
    crossings = _crossings(pairs)
    frames = {"migrations": moves, "limits": crossings}
    lead = "Memories go down to slower tiers as they age, and up when they are asked for."
    parts = tuple(
        table
        for frame, table in ((moves, _move_table(moves)), (crossings, _crossing_table(crossings)))
        if not frame.empty
    )
    return Section("tiers", "Tiers", lead, parts, {name: frame for name, frame in frames.items() if not frame.empty})


def _moves(pairs: Iterable[tuple[str, dict[str, Any]]]) -> pd.DataFrame:
    count: Counter[tuple[str, str, str]] = Counter()
    messages: Counter[tuple[str, str, str]] = Counter()
    for strategy, event in pairs:
        if event["event"] == "moved":
            key = (strategy, event["source"], event.get("to") or "out")
            count[key] += 1
            messages[key] += len(event["sources"])
    return pd.DataFrame(
        [(*key, moves, messages[key]) for key, moves in count.items()],
        columns=["strategy", "from", "to", "moves", "memories"],
    )


def _crossings(pairs: Iterable[tuple[str, dict[str, Any]]]) -> pd.DataFrame:
    count = Counter(
        (strategy, event["tier"], event["level"], "up" if event.get("up", True) else "down")
        for strategy, event in pairs
        if event["event"] == "crossed"
    )
    return pd.DataFrame(
        [(*key, times) for key, times in count.items()], columns=["strategy", "tier", "limit", "way", "times"]
    )


def _move_table(moves: pd.DataFrame) -> Table:
    whole = moves.groupby("strategy").memories.transform("sum")
    rows = tuple(
        (strategy, source, to, f"{times:,}", f"{memories:,}", percent(memories / total if total else 0))
        for (strategy, source, to, times, memories), total in zip(moves.itertuples(index=False), whole, strict=True)
    )
    return Table("Migrations", ("strategy", "from", "to", "moves", "memories", "of all moved"), rows, names=3)


def _crossing_table(crossings: pd.DataFrame) -> Table:
    rows = tuple((*row[:4], f"{row[4]:,}") for row in crossings.itertuples(index=False))
    return Table("Limits that were crossed", ("strategy", "tier", "limit", "way", "times"), rows, names=4)
