"""A comparison of runs or strategies, and the result of the gate, as tables and JSON; the gate also as JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ctxbench.harness.compare.compare import Comparison, MetricChange, RunComparison, Unpaired
from ctxbench.harness.compare.gate import FAILS, Gate, Result
from ctxbench.metrics.statistics.comparison import Difference, Margin, Word
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import printable

from .render import (
    STRATEGY,
    Column,
    Table,
    about,
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


_TITLES: dict[Result, str] = {
    "passes": "The gate passes",
    "fails": "The gate FAILS",
    "must be mended": "The gate cannot decide: baseline and run measure different things",
}
# Conversations that are listed, and metrics whose detectable change is listed.
_MOST_CONVERSATIONS = 12
_MOST_SIZES = 6
_RENEW = "`ctxbench gate RUN --update` renews it"
Step = Callable[[str, str, str], int | None]
"""Function from metric, conversation and strategy to the step that worsens the figure most."""


def gate_tables(gate: Gate, step: Step) -> Iterator[Table]:
    """Yield the result, failures, the conversations that moved most, what is unknown, and what got better."""
    yield Table(_TITLES[gate.result], (), (), tuple(_summary(gate)))
    shown = gate.failing
    sections = [_of("Fails", shown)] * bool(shown)
    # The worst conversation of each comparison, then the second worst of each.
    worse = [[(row, change) for change in row.moved if change.gain < 0] for row in shown]
    if named := [pair for rank in zip_longest(*worse) for pair in rank if pair is not None]:
        sections.append(_moved_table(named, step))
    for word in ("cannot tell", "better"):
        rows = [row for row in gate.compared.comparisons if row.verdict.word == word and row not in shown]
        if rows := [row for row in rows if not _is_nothing(row)]:
            sections.append(_of(word.capitalize(), rows))
    yield from sections
    if sections:
        yield how_to_read()


def _summary(gate: Gate) -> Iterator[str]:
    compared = gate.compared
    words: tuple[Word, ...] = (*FAILS, "incomparable", "cannot tell", "better", "same", "new")
    of: dict[Word, list[Comparison]] = {word: [] for word in words}
    for row in compared.comparisons:
        of[row.verdict.word].append(row)
    counts = ", ".join(f"{len(rows):,} {word}" for word, rows in of.items() if rows)
    pairs = count(compared.conversations, "pair")
    yield f"{compared.after} against {compared.before}: {pairs} of conversations; {counts or 'nothing compared'}."
    if single := [row for row in of["cannot tell"] if _is_nothing(row, of=1)]:
        names = some(list(dict.fromkeys(row.metric for row in single)))
        yield about("gate_single", number=len(single), names=names)
    yield power(gate)
    yield from unpaired(compared.unpaired)
    whys: tuple[tuple[Word, str], ...] = (("incomparable", _RENEW), ("new", f"not guarded until {_RENEW}"))
    for word, why in whys:
        if group := of[word]:
            named, reasons = (
                some(sorted(set(part))) for part in zip(*((r.metric, r.verdict.why) for r in group), strict=True)
            )
            yield f"{word.capitalize()}: {named} ({reasons}); {why}."
    if gate.unknown:
        yield about("gate_unknown", names=some(gate.unknown), renew=_RENEW)
    if gate.not_guarded:
        yield about("gate_not_guarded", names=some(gate.not_guarded))


def _is_nothing(comparison: Comparison, of: int = 0) -> bool:
    """Return whether a figure did not move at all; with `of`, one that so many conversations have."""
    found = comparison.found
    if found is None or isinstance(found.value, Missing) or found.value:
        return False
    return not of or found.conversations == of


def power(gate: Gate) -> str:
    """Return the smallest detectable change of each metric that moved, under the strategy where it is largest."""
    sizes: dict[str, tuple[float, str]] = {}
    finer: dict[str, None] = {}
    for row in gate.compared.comparisons:
        found, detects, limit = row.found, row.detects, row.rule.margin
        if found is None or isinstance(detects, Missing):
            continue
        text = f"{row.metric} ±{moved(detects, row.about.unit, found.relative)[1:]}"
        sizes[row.metric] = max(sizes.get(row.metric, (0.0, "")), (float(detects), text))
        if 0 < limit.amount < detects and found.relative == limit.relative:
            finer[row.metric] = None
    if not sizes:
        return "Power: nothing moved in any conversation, so there is no spread to estimate it from."
    texts = [text for _, text in sizes.values()]
    more = f" and {len(texts) - _MOST_SIZES} more" if len(texts) > _MOST_SIZES else ""
    text = about("gate_power", sizes="; ".join(texts[:_MOST_SIZES]) + more)
    return f"{text} {about('gate_finer', names=some(list(finer)))}" if finer else text


def _of(title: str, rows: Sequence[Comparison]) -> Table:
    reasons = (
        f"{row.strategy}, {row.metric}: {row.verdict.why}." for row in rows if row.verdict.why and not says_all(row)
    )
    margins = {row.metric: margin(row.rule.margin, row.about.unit) for row in rows}
    notes = [*dict.fromkeys(reasons), "; ".join(f"{metric}: {text}" for metric, text in margins.items()) + "."]
    shown = (STRATEGY, Column("metric", "metric"), *columns())
    return table_of(f"{title}: {len(rows):,}", shown, rows, notes, names=2)


def _moved_table(pairs: Sequence[tuple[Comparison, MetricChange]], step: Step) -> Table:
    """Return the conversations that moved most."""
    shown = []
    for row, change in pairs[:_MOST_CONVERSATIONS]:
        unit, where = row.about.unit, (change.conversation, row.strategy)
        figures = (amount(unit, whole(unit, value)) for value in (change.before, change.after))
        shown.append((*where, row.metric, *figures, anchor(*where, step(row.metric, *where))))
    left = len(pairs) - len(shown)
    notes = [f"{left:,} more in --json."] * (left > 0) + ["The link opens the step that worsens the figure most."]
    heads = ("conversation", "strategy", "metric", "was", "is", "look at it")
    return Table("Which conversations moved most?", heads, tuple(shown), tuple(notes), prose=True)


def anchor(conversation: str, strategy: str, step: int | None) -> str:
    """Return the link to a step in the report."""
    where = {"conversation": conversation, "strategy": strategy} | ({} if step is None else {"step": str(step)})
    return f"report/report.html#{urlencode(where)}"


def gate_json(gate: Gate, step: Step) -> dict[str, Any]:
    """Return the result with all exact figures."""
    result = as_json(gate.compared)
    for row in result["comparisons"]:
        for change in row.get("moved", ()):
            at = step(row["metric"], change["conversation"], row["strategy"])
            change["look"] = anchor(change["conversation"], row["strategy"], at)
    return {
        "result": gate.result,
        "failing": [{"strategy": comparison.strategy, "metric": comparison.metric} for comparison in gate.failing],
        "not_in_the_baseline": list(gate.unknown),
        "not_guarded": list(gate.not_guarded),
        "power": power(gate),
        **result,
    }


def _in_a_line(comparison: Comparison) -> str:
    """Return a comparison in one line, for formats without tables."""
    found, unit, verdict = comparison.found, comparison.about.unit, comparison.verdict
    if found is None:
        return f"{verdict.word}: {verdict.why}"
    size, ends = moved(found.value, unit, found.relative), between(found.shown, unit, found.relative)
    reason = f"; {verdict.why}" if verdict.why else ""
    return f"{verdict.word}: {size} (95 % {ends}; {margin(comparison.rule.margin, unit)}){reason}"


def as_junit(gate: Gate) -> str:
    """Return JUnit XML: failures, errors for what cannot be compared, skipped for new or undecided figures."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    kinds = {"lost": "failure", "incomparable": "error", "cannot tell": "skipped", "new": "skipped"}
    for row in gate.compared.comparisons:
        kind = "failure" if row in gate.failing else kinds.get(row.verdict.word, "")
        more = f"; {_RENEW}" if kind == "error" else ""
        suites.setdefault(row.strategy, []).append((row.metric, kind, f"{_in_a_line(row)}{more}"))
    apart = []
    for group in gate.compared.unpaired:
        name = f"{group.word} {group.what}" + (f" under {group.strategy}" if group.strategy else "")
        apart.append((name, kinds[group.word], f"{some(group.names)}: {group.why}"))
    apart += [(metric, "error", f"not in the baseline; {_RENEW}") for metric in gate.unknown]
    if apart:
        suites["what was measured"] = apart
    top = Element("testsuites", name="ctxbench gate")
    for strategy, cases in suites.items():
        counts = Counter(kind for _, kind, _ in cases)
        sizes = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
        numbers = {name: str(number) for name, number in {"tests": len(cases), **sizes}.items()}
        suite = SubElement(top, "testsuite", numbers, name=_text(strategy))
        for name, kind, message in cases:
            case = SubElement(suite, "testcase", classname=_text(strategy), name=_text(name))
            if kind:
                SubElement(case, kind, message=_text(message))
    indent(top)
    return tostring(top, encoding="unicode", xml_declaration=False).join(
        ("<?xml version='1.0' encoding='utf-8'?>\n", "\n")
    )


def _text(text: str) -> str:
    """Return text that XML can hold, without control characters."""
    return printable(text).replace("\n", " ")
