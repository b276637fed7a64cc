"""Table of the profiles of sets of recordings, side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ctxbench.metrics.profile import FEATURES
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.coverage import COUNTS

from .render import Column, Table, about, integer, percent, table_of


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


_HEADS = {"usage": "with usage", "cache_reads": "cache reads"}
_SPARE = {"compactions": 4, "cache_reads": 5}
_COVERAGE = (
    Column("format", "format"),
    *(Column(_HEADS.get(key, key), key, integer, _SPARE.get(key, 0)) for key in ("files", *COUNTS)),
    Column("not shown, characters", "not_shown", integer, spare=2),
    Column("shown, characters", "shown", integer, spare=3),
    Column("text read", lambda sums: "–" if sums["share"] is None else f"{100 * sums['share']:.2f} %"),
    Column("keys never looked at", "keys", integer, spare=1),
    Column("reader checked with", "checked", spare=4),
)


def coverage_by_format(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sums of rows of `scenarios.coverage.compared` by format, with the `share` of the shown text read."""
    groups = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in rows:
        groups[row["format"]].append(row)
    sums: list[dict[str, Any]] = []
    for name, group in sorted(groups.items()):
        missing, unshown = (sum(sum(row[key].values()) for row in group) for key in ("not_read", "not_shown"))
        shown = sum(row["characters"] for row in group) - unshown
        counts = {key: sum(row[key] for row in group) for key in ("files", *COUNTS)}
        keys = len({key for row in group for key in row["keys_not_looked_at"]})
        share = 1 - missing / shown if shown else None
        told = {"not_shown": unshown, "shown": shown, "share": share, "keys": keys, "checked": group[0]["checked"]}
        sums.append({"format": name, **counts, **told})
    return sums


def coverage_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return how much of the files' text was read, by format, and the keys of what was not, most first."""
    note = "– where nothing in the files counts as text: no JSON, or no string of three words and 20 characters."
    read = table_of("What was read of the files?", _COVERAGE, coverage_by_format(rows), [note])
    keys = Counter[str]()
    for row in rows:
        keys.update(row["not_read"])
    most = tuple((key, integer(number)) for key, number in keys.most_common(12))
    unread = Table("Under which keys is text that no message has?", ("key", "characters"), most)
    return [read, *[unread] * bool(most)]
