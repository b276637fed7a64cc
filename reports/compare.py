"""A comparison of runs or strategies as tables, a row for each strategy and metric, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ctxbench.harness.compare.compare import Comparison, RunComparison, Unpaired
from ctxbench.metrics.statistics.comparison import Difference, Margin, Word
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value

from .render import (
    STRATEGY,
    Column,
    Table,
    amount,
    count,
    exact,
    independent,
    integer,
    library_column,
    sample,
    table_of,
)

# Verdicts, those that need a look first.
_WORDS: tuple[Word, ...] = ("worse", "lost", "incomparable", "cannot tell", "better", "new", "same")
# Names that stand in a line of prose.
_MOST_NAMES = 4
_PLURALS = {"conversation": "conversations", "strategy": "strategies"}
HOW = (
    ("difference", "of the figure over all conversations that both sides have"),
    ("interval", "95 %, over independent units, mostly conversations: the wider of a BCa bootstrap's and Student's"),
    ("better, worse", "interval on one side of 0, difference beyond the margin, significant after Holm's correction"),
    ("same", "the 90 % interval lies within the margin (two one-sided tests at 5 %)"),
    ("cannot tell", "everything else"),
    ("detects", "the smallest change that this sample would find four times in five"),
)
"""Terms of a comparison with their meaning."""


def how_to_read() -> Table:
    """Return the meaning of the terms of a comparison."""
    return Table("How to read it", ("term", "meaning"), HOW, prose=True)


def tables(compared: RunComparison, titles: tuple[str, str] = ("before", "after")) -> Iterator[Table]:
    """Yield every table that has something to show. `titles` are the heads of the two figures."""
    rows, pairs = compared.comparisons, count(compared.conversations, "pair of conversations", "pairs of conversations")
    title = f"{compared.after} against {compared.before}, in {pairs}"
    title += independent(compared.conversations, compared.units)
    if any(row.strategy != row.against for row in rows):
        title = f"Strategies of {compared.before}, in {sample(compared.conversations, compared.units)}"
    by, still = Counter(row.verdict.word for row in rows), sum(map(_is_still, rows))
    counts = ", ".join(f"{by[word]:,} {word}" for word in _WORDS if by[word])
    counted = f"{count(len(rows), 'comparison')}: {counts}." + (f" In {still:,} nothing moved." if still else "")
    yield Table(title, (), (), (counted if rows else "Nothing was compared.", *unpaired(compared.unpaired)))
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        if not all(map(_is_still, of_metric)):
            yield _of_metric(metric, of_metric, titles, compared.libraries)
    if still < len(rows):
        yield how_to_read()


def unpaired(groups: Iterable[Unpaired]) -> Iterator[str]:
    """Yield in words what only one of the two sides has."""
    for group in groups:
        under = f" under {group.strategy}" if group.strategy else ""
        yield f"{group.word.capitalize()}: {count(len(group.names), group.what, _PLURALS[group.what])}{under} " + (
            f"({some(group.names)}): {group.why}."
        )


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def _is_still(comparison: Comparison) -> bool:
    return comparison.found is not None and comparison.found.nothing


def says_all(comparison: Comparison) -> bool:
    """Return whether the row needs no reason in words: its interval has both signs."""
    found = comparison.found
    if found is None or isinstance(found.shown, Missing) or comparison.verdict.word != "cannot tell":
        return False
    return found.shown.low <= 0 <= found.shown.high


def _of_metric(
    metric: str, comparisons: Sequence[Comparison], titles: tuple[str, str], libraries: Mapping[str, str]
) -> Table:
    first = comparisons[0]
    still = [comparison.strategy for comparison in comparisons if _is_still(comparison)]
    rows = [comparison for comparison in comparisons if not _is_still(comparison)]
    by_reason: dict[str, dict[str, None]] = {}
    for comparison in rows:
        if comparison.verdict.why and not says_all(comparison):
            by_reason.setdefault(comparison.verdict.why, {})[comparison.strategy] = None
    notes = [f"{', '.join(names)}: {why}." for why, names in by_reason.items()]
    notes += [f"Nothing moved: {', '.join(still)}."] * bool(still)
    title = f"{metric} ({first.rule.better} is better, {margin(first.rule.margin, first.about.unit)})"
    library = library_column(libraries, [comparison.strategy for comparison in rows])
    return table_of(title, (STRATEGY, *library, *columns(titles)), rows, notes)


def columns(titles: tuple[str, str] = ("was", "is")) -> list[Column]:
    """Return the columns of a comparison. `titles` are the heads of the two figures."""

    def column(head: str, spare: int, text: Callable[[Difference, str], str]) -> Column:
        def cell(row: Comparison) -> str:
            return "–" if row.found is None else text(row.found, row.about.unit)

        return Column(head, cell, spare=spare)

    def typical(found: Difference, unit: str) -> str:
        change = found.typical
        return "–" if change is None else f"{moved(change.value, unit, True)} ({between(change.shown, unit, True)})"

    def detects(row: Comparison) -> str:
        if row.found is None or isinstance(row.detects, Missing):
            return "–"
        return f"±{moved(row.detects, row.about.unit, row.found.relative)[1:]}"

    return [
        column(titles[0], 3, lambda found, unit: amount(unit, whole(unit, found.before))),
        column(titles[1], 4, lambda found, unit: amount(unit, whole(unit, found.after))),
        column("difference", 0, lambda found, unit: moved(found.value, unit, found.relative)),
        column("95 % interval", 6, lambda found, unit: between(found.shown, unit, found.relative)),
        column("typical conversation", 5, typical),
        Column("verdict", "verdict.word"),
        Column("detects", detects, spare=2),
        column("conversations", 1, lambda found, _: integer(found.conversations)),
    ]


def whole(unit: str, value: Value) -> Value:
    """Return a count as a whole number."""
    return int(value) if unit in ("tokens", "steps") and isinstance(value, float) and value.is_integer() else value


def moved(value: Value, unit: str, relative: bool) -> str:
    """Return a difference with its sign: +2.1 % · −1.3 points · +3."""
    if isinstance(value, Missing):
        return f"({value.why})"
    return ("+" if value >= 0 else "−") + _size(abs(value), unit, relative)


def _size(value: float, unit: str, relative: bool) -> str:
    if relative:
        return f"{_short(value * 100)} %"
    if unit == "share":
        return f"{_short(value * 100)} points"
    if unit == "usd":
        return f"${value:.4f}"
    if unit == "times":
        return f"{value:,.2f}×"
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def _short(value: float) -> str:
    """Return one decimal, or more where that would read as 0."""
    return f"{value:,.1f}" if value >= 0.05 or not value else f"{value:.3f}" if value >= 0.0005 else f"{value:.0e}"


def between(ends: Ends | Missing, unit: str, relative: bool) -> str:
    """Return an interval: +0.9 to +3.1 %."""
    if isinstance(ends, Missing):
        return f"({ends.why})"
    low, high = (moved(end, unit, relative) for end in ends)
    for ending in (" %", " points"):
        low = low.removesuffix(ending)
    return f"{low} to {high}"


def margin(limit: Margin, unit: str) -> str:
    """Return a margin in words."""
    return f"margin {_size(limit.amount, unit, limit.relative)}" if limit.amount else "no margin"


def as_json(compared: RunComparison) -> dict[str, Any]:
    """Return all exact figures. A missing figure is `{"why": "undefined", "detail": …}`."""
    return {
        "before": compared.before,
        "after": compared.after,
        "conversations": compared.conversations,
        "independent_units": compared.units,
        "corrected_for": compared.family,
        "unpaired": exact(compared.unpaired),
        "comparisons": [exact(_row(row, compared.libraries.get(row.strategy))) for row in compared.comparisons],
    }


def _row(comparison: Comparison, library: str | None) -> dict[str, Any]:
    verdict, found, typical = comparison.verdict, comparison.found, comparison.found and comparison.found.typical

    def named(of: object, *names: str) -> dict[str, Any]:
        return {name: getattr(of, name) for name in names}

    row = {
        **named(comparison, "strategy", "against", "metric"),
        **named(comparison.about, "unit", "version"),
        **named(comparison.rule, "better", "margin"),
        "verdict": verdict.word,
        "why": verdict.why,
        "no_worse": verdict.no_worse,
        "library": library,
    }
    if found is None:
        return row
    return row | {
        **named(found, "conversations", "before", "after", "relative", "error", "p"),
        **named(comparison, "moved", "beyond"),
        "independent_units": found.units,
        "difference": found.value,
        "interval_95": found.shown,
        "interval_90": found.tested,
        "typical": typical and {"difference": typical.value, "interval_95": typical.shown},
        "p_adjusted": comparison.p,
        "finds": comparison.detects,
    }
