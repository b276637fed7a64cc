"""What was compared, as tables: for each metric a row a strategy, then what could not be paired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..harness.compare.compare import Comparison, RunComparison, Unpaired
from ..metrics.statistics.comparison import Margin
from ..metrics.statistics.intervals import Ends
from ..metrics.value import Missing, Value
from .render import Table, amount, count

WORDS = ("worse", "lost", "incomparable", "cannot tell", "better", "new", "same")
"""Verdicts, those first that want to be looked at."""
SOME = 4
"""Names that stand in a line of prose."""
HOW = (
    "Difference: of the figure over all conversations that both sides have. Interval: 95 %, over conversations: the "
    "wider of a bootstrap's (BCa) and Student's. Better, worse: the interval is on one side of 0, the difference is "
    "larger than the margin, and it stands Holm's correction for all comparisons here in which anything moved. Same: "
    "the 90 % interval is within the margin (two one-sided tests at 5 %). Cannot tell: everything else. Finds: the "
    "smallest change that would be found here four times in five."
)


def tables(compared: RunComparison, titles: tuple[str, str] = ("before", "after")) -> Iterator[Table]:
    """Every table that has something to show. `titles`: what stands over the two figures."""
    yield Table(_title(compared), (), (), (_counted(compared.comparisons), *unpaired(compared.unpaired)))
    found = []
    for metric in dict.fromkeys(each.metric for each in compared.comparisons):
        rows = [each for each in compared.comparisons if each.metric == metric]
        if not all(map(_is_still, rows)):
            found.append(_of_metric(metric, rows, titles))
    yield from found
    if found:
        yield Table("How to read it", (), (), (HOW,))


def _title(compared: RunComparison) -> str:
    if any(each.strategy != each.against for each in compared.comparisons):
        return f"Strategies of {compared.before}, in {count(compared.conversations, 'conversation')}"
    return f"{compared.after} against {compared.before}, in {count(compared.conversations, 'pair')} of conversations"


def _counted(comparisons: Sequence[Comparison]) -> str:
    """How many have which verdict."""
    if not comparisons:
        return "Nothing was compared."
    by = {word: sum(each.verdict.word == word for each in comparisons) for word in WORDS}
    still = sum(map(_is_still, comparisons))
    said = ", ".join(f"{number:,} {word}" for word, number in by.items() if number)
    return f"{count(len(comparisons), 'comparison')}: {said}." + (f" In {still:,} nothing moved." if still else "")


def unpaired(found: Iterable[Unpaired]) -> Iterator[str]:
    """What has no partner, in words."""
    for each in found:
        under = f" under {each.strategy}" if each.strategy else ""
        yield f"{each.word.capitalize()}: {count(len(each.names), each.what, _MANY[each.what])}{under} " + (
            f"({some(each.names)}): {each.why}."
        )


_MANY = {"conversation": "conversations", "strategy": "strategies"}


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - SOME
    return ", ".join(names[:SOME]) + (f" and {rest:,} more" if rest > 0 else "")


def _is_still(each: Comparison) -> bool:
    return each.found is not None and each.found.nothing


def says_all(each: Comparison) -> bool:
    """Whether the row says why by itself: its interval has both signs."""
    found = each.found
    return found is not None and not isinstance(found.shown, Missing) and found.shown.low <= 0 <= found.shown.high


def _of_metric(metric: str, comparisons: Sequence[Comparison], titles: tuple[str, str]) -> Table:
    first = comparisons[0]
    still = [each.strategy for each in comparisons if _is_still(each)]
    moved = [each for each in comparisons if not _is_still(each)]
    notes = [f"{each.strategy}: {each.verdict.why}." for each in moved if each.verdict.why and not says_all(each)]
    if still:
        notes.append(f"Nothing moved: {', '.join(still)}.")
    rows = tuple((each.strategy, *cells(each)) for each in moved)
    title = f"{metric} ({first.rule.better} is better, {margin(first.rule.margin, first.about.unit)})"
    heads = ("strategy", *titles, "difference", "95 % interval", "verdict", "finds", "conversations")
    return Table(title, heads, rows, tuple(dict.fromkeys(notes)), spare=("conversations", "finds", *titles))


def cells(each: Comparison) -> tuple[str, ...]:
    """Before, after, difference, interval, verdict, what would be found, and in how many conversations."""
    found, unit = each.found, each.about.unit
    if found is None:
        return ("–", "–", "–", "–", each.verdict.word, "–", "–")
    return (
        amount(unit, whole(unit, found.before)),
        amount(unit, whole(unit, found.after)),
        moved(found.value, unit, found.relative),
        between(found.shown, unit, found.relative),
        each.verdict.word,
        "–" if isinstance(each.detects, Missing) else f"±{moved(each.detects, unit, found.relative)[1:]}",
        f"{found.conversations:,}",
    )


def whole(unit: str, value: Value) -> Value:
    """What is counted is a whole number."""
    return int(value) if unit in ("tokens", "steps") and isinstance(value, float) and value.is_integer() else value


def moved(value: Value, unit: str, relative: bool) -> str:
    """A difference with its sign: +2.1 % · −1.3 points · +3."""
    if isinstance(value, Missing):
        return f"({value.why})"
    sign = "+" if value >= 0 else "−"
    return sign + _size(abs(value), unit, relative)


def _size(value: float, unit: str, relative: bool) -> str:
    if relative:
        return f"{_short(value * 100)} %"
    if unit == "share":
        return f"{_short(value * 100)} points"
    if unit == "usd":
        return f"${value:.4f}"
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def _short(value: float) -> str:
    """One decimal; three where that would say nothing."""
    return f"{value:,.1f}" if value >= 0.05 or not value else f"{value:.3f}" if value >= 0.0005 else f"{value:.0e}"


def between(ends: Ends | Missing, unit: str, relative: bool) -> str:
    """An interval: +0.9 to +3.1 %."""
    if isinstance(ends, Missing):
        return f"({ends.why})"
    low, high = (moved(end, unit, relative) for end in ends)
    for ending in (" %", " points"):
        low = low.removesuffix(ending)
    return f"{low} to {high}"


def margin(found: Margin, unit: str) -> str:
    """A margin in words."""
    return f"margin {_size(found.amount, unit, found.relative)}" if found.amount else "no margin"


def as_json(compared: RunComparison) -> dict[str, Any]:
    """Everything. A missing figure is `{"why": "undefined", "detail": …}`."""
    return {
        "before": compared.before,
        "after": compared.after,
        "conversations": compared.conversations,
        "corrected_for": compared.family,
        "unpaired": [each._asdict() for each in compared.unpaired],
        "comparisons": [_comparison(each) for each in compared.comparisons],
    }


def _comparison(each: Comparison) -> dict[str, Any]:
    found = each.found
    row: dict[str, Any] = {
        "strategy": each.strategy,
        "against": each.against,
        "metric": each.metric,
        "unit": each.about.unit,
        "version": each.about.version,
        "better": each.rule.better,
        "margin": {"amount": each.rule.margin.amount, "relative": each.rule.margin.relative},
        "verdict": each.verdict.word,
        "why": each.verdict.why,
        "no_worse": each.verdict.no_worse,
    }
    if found is None:
        return row
    return row | {
        "conversations": found.conversations,
        "before": found.before,
        "after": found.after,
        "relative": found.relative,
        "difference": found.value,
        "interval_95": found.shown if isinstance(found.shown, Missing) else list(found.shown),
        "interval_90": found.tested if isinstance(found.tested, Missing) else list(found.tested),
        "error": found.error,
        "p": found.p,
        "p_adjusted": each.p,
        "finds": each.detects,
        "moved": [moved._asdict() for moved in each.moved],
        "beyond": list(each.beyond),
    }
