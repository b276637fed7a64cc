"""The tables of a run, as rows of text, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from ..metrics.value import Missing
from . import answers, context_tables, deed_tables, probe_tables, tier_deeds
from .main_table import lacking, main_table, reasons
from .render import Table
from .summary import Summary
from .words import count, percent


def tables(summary: Summary, by_kind: bool = False) -> Iterator[Table]:
    """Every table that has something to show, the main one first; those of the probes by kind as well if wanted."""
    yield main_table(summary)
    yield from filter(None, (lacking(summary),))
    yield context_tables.faults(summary)
    if any(summary.grounding.values()):
        yield context_tables.grounding(summary)
    if summary.probes is not None:
        yield from probe_tables.tables(summary.probes, by_kind)
    if summary.answers is not None:
        yield from answers.run_tables(summary.answers, by_kind)
    yield from filter(None, (deed_tables.added(summary), deed_tables.did(summary)))
    yield from tier_deeds.tables(summary.tiers)
    if summary.why:
        yield deed_tables.why(summary)
    if any(summary.survival.values()):
        yield deed_tables.survival(summary)
        yield deed_tables.first_round(summary)
    if not summary.growth.empty:
        yield context_tables.growth(summary)
    if summary.counter:
        yield counter_table(summary)
    if summary.failed:
        yield failed_table(summary)
    if summary.manifest["problems"]:
        yield problems_table(summary)


def counter_table(summary: Summary) -> Table:
    """The error of our token counts, a row for each recorded model."""
    rows = tuple(
        (
            str(row["model"]),
            str(row["published"]),
            f"{row['calls']:,}",
            percent(row["total"]),  # type: ignore[arg-type]
            *(percent(row[f"growth_p{at}"]) for at in (10, 50, 90)),  # type: ignore[arg-type]
        )
        for row in summary.counter
    )
    note = (
        "Our count of the prompt against the provider's, as an error. Growth: from one call to the next, where what "
        "the recording does not hold (a system prompt, tool schemas) cancels."
    )
    why = reasons(value for row in summary.counter for value in row.values() if isinstance(value, Missing))
    heads = ("recorded model", "published encoding", "calls", "total", "growth p10", "growth p50", "growth p90")
    title = f"Error of the token counter ({summary.manifest['plan']['encoding']})"
    return Table(title, heads, rows, (note, *filter(None, [why])), names=2)


def failed_table(summary: Summary) -> Table:
    """A row for each strategy and reason: in how many conversations, and the first of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in summary.failed:
        found.setdefault((row["strategy"], row["detail"]), []).append(row["conversation"])
    rows = tuple((strategy, f"{len(where):,}", where[0], why) for (strategy, why), where in found.items())
    return Table("Failed", ("strategy", "conversations", "for example", "why"), rows, prose=True)


def problems_table(summary: Summary) -> Table:
    """Recordings that were left out, and why."""
    rows = tuple(
        (
            f"{row['file']}:{row['line']}" if row["line"] else row["file"],
            row["field"],
            row["what"] + (f" ({row['remedy']})" if row["remedy"] else ""),
        )
        for row in summary.manifest["problems"]
    )
    return Table(f"Left out: {count(len(rows), 'recording')}", ("where", "field", "what"), rows, prose=True)
