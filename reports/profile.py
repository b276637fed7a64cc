"""Table of the profiles of sets of recordings, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ctxbench.metrics.profile import FEATURES, Feature
from ctxbench.metrics.value import Missing, Value

from .render import Table, percent


def profile_table(profiles: Mapping[str, Mapping[str, Value]]) -> Table:
    """Return a row for each feature and a column for each set, by the last part of its name."""
    heads = ("feature", *(PurePath(name).name or name for name in profiles))
    rows = tuple(
        (feature.name, *(_written(feature, figures[key]) for figures in profiles.values()))
        for key, feature in FEATURES.items()
    )
    return Table("What are the recordings like?", heads, rows, _NOTES)


def coverage_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return how much of the files' text was read, by format, and the keys of what was not, most first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["format"], []).append(row)
    cells, keys = [], Counter[str]()
    for name, group in sorted(groups.items()):
        missing = sum((Counter(row["not_read"]) for row in group), Counter[str]())
        shown = sum(row["characters"] - sum(row["not_shown"].values()) for row in group)
        share = percent(1 - missing.total() / shown) if shown else "–"
        counts = (
            sum(row[count] for row in group) for count in ("files", "conversations", "messages", "calls", "usage")
        )
        cells.append((name, *(f"{count:,}" for count in counts), share))
        keys += missing
    heads = ("format", "files", "conversations", "messages", "calls", "with usage", "text read")
    most = tuple((key, f"{number:,}") for key, number in keys.most_common(12))
    read = Table("What was read of the files?", heads, tuple(cells), ("– where the file is no JSON.",))
    unread = Table("Under which keys is text that no message has?", ("key", "characters"), most)
    return [read, *([unread] if most else [])]


_NOTES = (
    "Tokens are of texts and tool arguments, each message once. Repeated lines: characters in lines of 20 or more that "
    "the conversation had before. Question terms: word stems of a question that its best evidence message has. "
    "– means that the recordings do not say.",
)


def _written(feature: Feature, value: Value) -> str:
    if isinstance(value, Missing):
        return "–"
    match feature.unit:
        case "share":
            return percent(value)
        case "seconds":
            return _duration(value)
        case "ratio" | "probes" | "calls":
            return f"{value:,.1f}"
        case "messages" if value < 10:
            return f"{value:,.1f}"
        case _:
            return f"{value:,.0f}"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.0f} s"
