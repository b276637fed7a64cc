"""Table of the profiles of sets of recordings, side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ctxbench.metrics.profile import FEATURES
from ctxbench.metrics.value import Missing, Value

from .render import Column, Table, about, percent, table_of


def profile_table(profiles: Mapping[str, Mapping[str, Value]]) -> Table:
    """Return a row for each feature and a column for each set, by the last part of its name."""

    def shown(unit: str, value: Value) -> str:
        if isinstance(value, Missing):
            return "–"
        if unit == "share":
            return percent(value)
        if unit == "seconds":
            sizes = {"d": 86400, "h": 3600, "min": 60}
            fitting = (f"{value / size:,.1f} {name}" for name, size in sizes.items() if value >= size)
            return next(fitting, f"{value:,.0f} s")
        return f"{value:,.{int(unit in ('ratio', 'probes') or (unit == 'messages' and value < 10))}f}"

    heads = ("feature", *(PurePath(name).name or name for name in profiles))
    rows = tuple(
        (feature.name, *(shown(feature.unit, figures[key]) for figures in profiles.values()))
        for key, feature in FEATURES.items()
    )
    return Table("What are the recordings like?", heads, rows, (about("profile"),))


_INTEGER = "{:,}".format
_COVERAGE = (
    Column("format", "format"),
    *(Column(key, key, _INTEGER) for key in ("files", "conversations", "messages", "calls")),
    Column("with usage", "usage", _INTEGER),
    Column("text read", lambda sums: percent(1 - sums["missing"] / sums["shown"]) if sums["shown"] else "–"),
)


def coverage_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return how much of the files' text was read, by format, and the keys of what was not, most first."""
    by_format = defaultdict[str, Counter[str]](Counter)
    keys = Counter[str]()
    for row in rows:
        sums = by_format[row["format"]]
        sums.update({key: row[key] for key in ("files", "conversations", "messages", "calls", "usage")})
        sums["missing"] += sum(row["not_read"].values())
        sums["shown"] += row["characters"] - sum(row["not_shown"].values())
        keys.update(row["not_read"])
    read = [{"format": name, **sums} for name, sums in sorted(by_format.items())]
    most = tuple((key, _INTEGER(number)) for key, number in keys.most_common(12))
    unread = Table("Under which keys is text that no message has?", ("key", "characters"), most)
    return [
        table_of("What was read of the files?", _COVERAGE, read, ["– where the file is no JSON."]),
        *[unread] * bool(most),
    ]
