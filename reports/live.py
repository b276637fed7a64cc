"""Live runs before and after, as a table: what changed, how sure that is, and how far replay was off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from ctxbench.harness.folder.run import Run, read_derived, write_derived
from ctxbench.harness.live import Compared, LiveRuns
from ctxbench.metrics.statistics.comparison import Difference
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing

from .render import Column, Table, about, amount, count, percent, table_of
from .verdict_text import in_points, in_words

_STORED = "live"
_COLUMNS = (
    "key",
    "head",
    "unit",
    "pairs",
    "before",
    "after",
    "change",
    "relative",
    "low",
    "high",
    "floor",
    "enough",
    "why",
    "title",
)


def frame(live: LiveRuns, strategy: str | None, said: tuple[float, float] | Missing | None) -> pd.DataFrame:
    """Return a row per measure; with a strategy a last one of what a call costs, as replay said and as it was live."""
    title = headline(live)
    rows = [_flat(row) | {"title": title} for row in live.rows]
    if strategy is not None and said is not None:
        row: dict[str, Any] = dict.fromkeys(_COLUMNS) | {
            "key": "predicted",
            "head": strategy,
            "unit": "times",
            "title": title,
        }
        known = {"why": said.detail} if isinstance(said, Missing) else {"before": said[0], "after": said[1]}
        rows.append(row | known)
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _flat(row: Compared) -> dict[str, Any]:
    """Return a measure as values of columns; what is not known is None."""
    measure, change = row.measure, row.change
    flat: dict[str, Any] = dict.fromkeys(_COLUMNS) | {"key": measure.key, "head": measure.head, "unit": measure.unit}
    if isinstance(change, Missing):
        return flat | {"why": change.detail}
    ends = change.shown
    low, high = (None, None) if isinstance(ends, Missing) else ends
    flat |= {name: None if isinstance(of := getattr(change, name), Missing) else of for name in ("before", "after")}
    floor = None if isinstance(row.floor, Missing) or isinstance(row.floor.value, Missing) else row.floor.value
    return flat | {
        "pairs": change.conversations,
        "relative": change.relative,
        "change": None if isinstance(change.value, Missing) else change.value,
        "low": low,
        "high": high,
        "floor": floor,
        "enough": None if isinstance(row.enough, Missing) else row.enough,
        "why": ends.detail if isinstance(ends, Missing) else "",
    }


def headline(live: LiveRuns) -> str:
    """Return in one sentence what became of calls, bill and success."""

    said = [
        f"{name} {_moved(change)}"
        for key, name in (("calls", "model calls"), ("cost", "bill"), ("solved", "tasks solved"))
        if not isinstance(change := live.of(key).change, Missing) and not isinstance(change.value, Missing)
    ]
    return f"Live, over {count(live.tasks, 'task')}: {', '.join(said)}"


def _moved(change: Difference) -> str:
    assert not isinstance(change.value, Missing)
    value, ends = Ends(change.value, change.value), change.shown
    words = in_words if change.relative else in_points
    unit = "" if change.relative else " points"
    return words(value) + unit + ("" if isinstance(ends, Missing) else f" ({words(ends)})")


def live_table(rows: pd.DataFrame) -> Table:
    """Return the measures before and after, with what changed, what two equal runs differ by, and tasks to see 10 %."""
    shown = rows[rows.key != "predicted"]
    table = [_told(row) for row in shown.to_dict(orient="records")]
    names = ("measure", "tasks", "before", "after", "change", "95 %", "two equal runs", "tasks to see 10 %")
    columns = tuple(Column(name, name) for name in names)
    notes = [about("live_table")]
    for row in rows[rows.key == "predicted"].to_dict(orient="records"):
        if isinstance(row["why"], str):
            notes.append(f"{row['head']}: what replay said cannot be checked: {row['why']}.")
        else:
            off = row["after"] / row["before"] - 1
            notes.append(
                about(
                    "live_predicted",
                    said=row["before"],
                    seen=row["after"],
                    off=in_words(Ends(off, off)),
                    name=row["head"],
                )
            )
    return table_of(str(rows.title.iloc[0]), columns, table, notes)


def _told(row: Mapping[Any, Any]) -> dict[str, str]:
    def change(value: float | None) -> str:
        if value is None or pd.isna(value):
            return "–"
        if row["unit"] == "share":
            return f"{in_points(Ends(value, value))} points"
        return f"{1 + value:.2f} ×" if row["relative"] else f"{value:+,.0f}".replace("-", "−")

    def figure(value: float | None) -> str:
        if value is None or pd.isna(value):
            return "–"
        return (
            percent(value)
            if row["unit"] == "share"
            else amount(row["unit"], round(value) if row["unit"] in ("", "tokens") else value)
        )

    known = row["low"] is not None and not pd.isna(row["low"])
    return {
        "measure": row["head"],
        "tasks": "–" if pd.isna(row["pairs"]) else f"{int(row['pairs']):,}",
        "before": figure(row["before"]),
        "after": figure(row["after"]),
        "change": change(row["change"]),
        "95 %": f"{change(row['low'])} to {change(row['high'])}" if known else f"({row['why']})",
        "two equal runs": change(row["floor"]),
        "tasks to see 10 %": "–" if pd.isna(row["enough"]) else f"{int(row['enough']):,}",
    }


def store(run: Run, rows: pd.DataFrame) -> None:
    """Store the rows beside a run, for its report and exports."""
    write_derived(run, _STORED, pa.Table.from_pandas(rows, preserve_index=False))


def stored(run: Run) -> pd.DataFrame | None:
    """Return the stored rows; None where there are none of just this run."""
    table = read_derived(run, _STORED, _COLUMNS)
    return None if table is None else table.to_pandas()
