"""The tables of a run, as rows of text, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from ..metrics.value import Missing
from . import actions, answers, probes, strategy_tables, tier_actions
from .render import Table, count, percent, reasons
from .strategy_tables import lacking, main_table
from .summary import RunSummary


def tables(summary: RunSummary, by_kind: bool = False) -> Iterator[Table]:
    """Every table that has something to show, the main one first; those of the probes by kind as well if wanted."""
    yield main_table(summary)
    yield from filter(None, (lacking(summary),))
    yield strategy_tables.faults(summary)
    if any(summary.grounding.values()):
        yield strategy_tables.grounding(summary)
    if summary.probes is not None:
        yield from probes.tables(summary.probes, by_kind)
    if summary.answers is not None:
        yield from answers.run_tables(summary.answers, by_kind)
    yield from filter(None, (actions.added(summary), actions.did(summary)))
    yield from tier_actions.tier_action_tables(summary.tiers)
    if summary.why:
        yield actions.why(summary)
    if any(summary.survival.values()):
        yield actions.survival(summary)
        yield actions.first_round(summary)
    if not summary.growth.empty:
        yield strategy_tables.growth(summary)
    if summary.counter:
        yield counter_table(summary)
    if summary.failed:
        yield failed_table(summary)
    if summary.manifest["problems"]:
        yield problems_table(summary)


def counter_table(summary: RunSummary) -> Table:
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


def failed_table(summary: RunSummary) -> Table:
    """A row for each strategy and reason: in how many conversations, and the first of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in summary.failed:
        found.setdefault((row["strategy"], row["detail"]), []).append(row["conversation"])
    rows = tuple((strategy, f"{len(where):,}", where[0], why) for (strategy, why), where in found.items())
    return Table("Failed", ("strategy", "conversations", "for example", "why"), rows, prose=True)


def problems_table(summary: RunSummary) -> Table:
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
