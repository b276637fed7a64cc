"""A comparison of runs or strategies, and the result of the gate, as tables and JSON; the gate also as JUnit XML."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, zip_longest
from math import floor, log10
from textwrap import wrap
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ctxbench.harness.answers.figures import BOUNDS
from ctxbench.harness.compare.compare import Comparison, MetricChange, RunComparison, Unpaired
from ctxbench.harness.compare.figures import billed_model
from ctxbench.harness.compare.gate import Gate
from ctxbench.metrics.figures import display_name
from ctxbench.metrics.statistics.comparison import Word
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import printable

from .render import (
    MARKS,
    STRATEGY,
    Column,
    Table,
    about,
    amount,
    count,
    dollars,
    exact,
    independent,
    sample,
    table_of,
    tokens,
)

# Verdicts, those that need a look first.
_WORDS: tuple[Word, ...] = ("worse", "lost", "incomparable", "cannot tell", "better", "new", "same")
# Names that stand in a line of prose; lines of rows, and characters of a line, of a table that is to fit a screen.
_MOST_NAMES, _MOST_LINES, _WIDEST = 4, 44, 120
# Characters of a metric's name, and of a strategy's, on one line of such a table.
_OF_METRIC, _OF_STRATEGY = 12, 32
_PLURALS = {"conversation": "conversations", "strategy": "strategies"}


def tables(
    compared: RunComparison, titles: tuple[str, str] = ("before", "after"), every: bool = False
) -> Iterator[Table]:
    """Yield one table of what moved beyond its threshold, the strategies first in which each metric moved most.

    `titles` are the heads of the two figures. `every`: all that moved at all, in as many lines as it takes.
    """
    rows, pairs = compared.comparisons, count(compared.conversations, "pair of conversations", "pairs of conversations")
    title = f"{compared.after} against {compared.before}, in {pairs}"
    title += independent(compared.conversations, compared.units)
    if any(row.strategy != row.against for row in rows):
        title = f"Strategies of {compared.before}, in {sample(compared.conversations, compared.units)}"
    moved = [row for row in rows if (_change(row) if every else _is_beyond(row))]
    shown = moved if every else _most(moved)
    shown = sorted(shown, key=lambda row: _WORDS.index(row.verdict.word))
    by, still = Counter(row.verdict.word for row in rows), sum(not _change(row) for row in rows)
    counts = ", ".join(f"{by[word]:,} {word}" for word in _WORDS if by[word])
    notes = [
        f"{count(len(rows), 'comparison')}: {counts}; {still:,} did not move." if rows else "Nothing was compared."
    ]
    if rest := len(moved) - len(shown):
        notes.append(f"{rest:,} more moved beyond their thresholds: --all.")
    notes += [*_apart(rows), *unpaired(compared.unpaired)]
    names = {row.strategy: None for row in shown}
    notes += [f"{name}: {compared.libraries[name]}." for name in names if name in compared.libraries]
    if (model := _first_model(shown)) is not None:
        title += f", billed under {model}"
    if shown:
        notes.append(about("comparison") + " " + about("comparison_range") * any(map(_is_range, shown)))
        yield table_of(title, _columns(titles, model), shown, notes, names=2, widest=_WIDEST)
    else:
        yield Table(title, (), (), ("Nothing moved beyond its threshold.", *notes))


def _change(row: Comparison) -> float:
    """Return by how much a figure moved; 0 where that is not known."""
    return 0.0 if row.found is None or isinstance(row.found.value, Missing) else float(row.found.value)


def _is_mixed(row: Comparison) -> bool:
    is_better = _change(row) > 0 if row.rule.better == "higher" else _change(row) < 0
    return row.verdict.word == "worse" and is_better


def _is_beyond(row: Comparison) -> bool:
    """Return whether a figure moved by more than its margin: any change is more than a share of what was 0."""
    change, limit = abs(_change(row)), row.rule.margin
    same_scale = limit is not None and row.found is not None and row.found.relative >= limit.relative
    return change > limit.amount if same_scale and limit is not None else change > 0


def _most(rows: Sequence[Comparison], most: int = _MOST_LINES) -> list[Comparison]:
    """Return the largest change of each metric, then the second largest of each, and so on, up to so many lines.

    Bounds come last, and what got worse in some conversations but better in all of them together.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for row in sorted(rows, key=lambda row: (row.strategy in BOUNDS, _is_mixed(row), -abs(_change(row)))):
        by_metric.setdefault(row.metric, []).append(row)
    first = _first_model(rows)
    order = {row.metric: at for at, row in enumerate(rows)}

    def ranked_of(*models: str | None) -> Iterator[Comparison]:
        groups = [
            by_metric[name]
            for model in models
            for name in sorted(by_metric, key=order.__getitem__)
            if billed_model(name) == model
        ]
        return (row for group in zip_longest(*groups) for row in group if row is not None)

    others = dict.fromkeys(model for name in by_metric if (model := billed_model(name)) and model != first)
    ranked = [*ranked_of(*dict.fromkeys((first, None))), *ranked_of(*others)]
    lines = accumulate(
        max(len(wrap(_metric(row, first), _OF_METRIC)), -(-len(row.strategy) // _OF_STRATEGY)) for row in ranked
    )
    return [row for row, last in zip(ranked, lines, strict=True) if last <= most]


def _first_model(rows: Iterable[Comparison]) -> str | None:
    """Return the model that the rows of a bill are of, the first of several."""
    return next((model for row in rows if (model := billed_model(row.metric))), None)


def _metric(row: Comparison, model: str | None = None) -> str:
    """Return the display name of a row's metric; the model of a bill is left out where the title has it."""
    return display_name(row.metric).removesuffix(f" ({model})")


def _apart(rows: Iterable[Comparison], words: Sequence[Word] = ("lost", "incomparable", "new")) -> Iterator[str]:
    """Yield in words which metrics only one side has, or each as something else."""
    for word in words:
        if group := [row for row in rows if row.verdict.word == word]:
            metrics, reasons = (
                some(sorted(set(part))) for part in zip(*((row.metric, row.verdict.why) for row in group), strict=True)
            )
            yield f"{word.capitalize()}: {metrics} ({reasons})."


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


def _columns(titles: tuple[str, str], model: str | None) -> list[Column]:
    """Return the columns of a comparison. `titles` are the heads of the two figures, `model` is that of the title."""
    figures = [_figure(titles[0], "before"), _figure(titles[1], "after")]
    metric = Column("metric", lambda row: _metric(row, model))
    return [
        metric,
        STRATEGY,
        *figures,
        _CHANGE,
        Column("95 % interval", _interval, mark=_is_range),
        Column("verdict", "verdict.word"),
    ]


def _figure(head: str, side: str) -> Column:
    def cell(row: Comparison) -> str:
        value = getattr(row.found, side, "–")
        if isinstance(value, float) and row.about.unit in ("tokens", "usd"):
            return tokens(value) if row.about.unit == "tokens" else dollars(value)
        return value if isinstance(value, str) else amount(row.about.unit, whole(row.about.unit, value))

    return Column(head, cell)


def _moved_by(row: Comparison) -> str:
    return "–" if row.found is None else moved(row.found.value, row.about.unit, row.found.relative)


def _interval(row: Comparison) -> str:
    """Return the interval, or the range over conversations where too few of them carry the figure."""
    if row.found is None:
        return "–"
    ends = row.found.across if isinstance(row.found.shown, Missing) else row.found.shown
    return between(ends, row.about.unit, row.found.relative)


def _is_range(row: Comparison) -> str:
    return MARKS[0] * (row.found is not None and isinstance(row.found.shown, Missing))


_CHANGE = Column("change", _moved_by)


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
        **named(comparison.rule, "better", "margin", "each"),
        "verdict": verdict.word,
        "why": verdict.why,
        "no_worse": verdict.no_worse,
        "library": library,
    }
    if found is None:
        return row
    row |= named(found, "conversations", "before", "after", "relative") | named(comparison, "moved", "beyond")
    row |= {"difference": found.value, "across": found.across}
    if comparison.rule.exact:
        return row
    return row | {
        **named(found, "error", "p"),
        "independent_units": found.units,
        "interval_95": found.shown,
        "interval_90": found.tested,
        "typical": typical and {"difference": typical.value, "interval_95": typical.shown},
        "p_adjusted": comparison.p,
    }


_MOST_CONVERSATIONS = 12
Look = Callable[[str, str, str], str]
"""Function from metric, conversation and strategy to a link to the step that worsens the figure most."""


def gate_tables(gate: Gate, look: Look) -> Iterator[Table]:
    """Yield the result, what fails and where it moved most, how to accept it, and what got better."""
    failing, compared = gate.failing, gate.compared
    yield Table(_title(gate), (), (), tuple(_summary(gate)))
    if worse := [row for row in failing if row.found is not None]:
        shown = _most(worse, _MOST_LINES // 2)
        notes = [f"{len(worse) - len(shown):,} more in --json."] * (len(worse) > len(shown))
        yield table_of("What got worse?", _GATE_COLUMNS, shown, notes, names=2)
        # The worst conversation of each comparison, then the second worst of each.
        changes = ([(row, change) for change in row.moved if change.gain < 0] for row in shown)
        pairs = [pair for rank in zip_longest(*changes) for pair in rank if pair is not None][:_MOST_CONVERSATIONS]
        heads = ("conversation", "strategy", "metric", "was", "is", "look at it")
        if rows := [_conversation(row, change, look) for row, change in pairs]:
            yield Table("Which conversations moved most?", heads, tuple(rows), prose=True)
    if gate.result == "fails":
        yield Table("How to accept it?", ("if", "then"), tuple(_accept(gate)), prose=True)
    if better := [row for row in compared.comparisons if row.verdict.word == "better"]:
        shown = _most(better, _MOST_LINES // 3)
        notes = [f"{len(better) - len(shown):,} more in --json."] * (len(better) > len(shown))
        yield table_of("What got better?", _GATE_COLUMNS[:-1], shown, notes, names=2)


_GATE_COLUMNS = (
    STRATEGY,
    Column("metric", _metric),
    _figure("was", "before"),
    _figure("is", "after"),
    _CHANGE,
    Column("conversations", lambda row: row.verdict.why if row.verdict.word == "worse" else row.verdict.word),
)


def _title(gate: Gate) -> str:
    if gate.result == "passes":
        return "The gate passes"
    if worse := [row for row in gate.failing if row.verdict.word == "worse"]:
        names, metrics = dict.fromkeys(row.strategy for row in worse), dict.fromkeys(map(_metric, worse))
        return f"The gate FAILS: {some(list(names))} got worse in {some(list(metrics))}"
    if gate.gone or any(row.verdict.word == "lost" for row in gate.failing):
        return "The gate FAILS: what was measured before is gone, or is not the same"
    others = dict.fromkeys(map(_metric, gate.failing)) or dict.fromkeys(gate.unknown)
    return f"The gate FAILS: {some(list(others))}: the baseline has another measure of it, or none"


def _summary(gate: Gate) -> Iterator[str]:
    compared = gate.compared
    by = Counter(row.verdict.word for row in compared.comparisons)
    counts = ", ".join(f"{by[word]:,} {word}" for word in _WORDS if by[word])
    pairs = count(compared.conversations, "conversation")
    yield f"{compared.after} against {compared.before}, in each of {pairs}: {counts or 'nothing compared'}."
    yield from _apart(compared.comparisons)
    yield from unpaired(compared.unpaired)
    for name, (was, now) in gate.settings.items():
        yield f"{name} was `{was}` and is `{now}`."
    if gate.unknown:
        yield about("gate_unknown", names=some(gate.unknown))
    if gate.not_guarded:
        yield about("gate_not_guarded", names=some(gate.not_guarded))


def _accept(gate: Gate) -> Iterator[tuple[str, str]]:
    """Yield how to make the baseline anew, how to loosen the policy, and how to compare a strategy that was renamed."""
    run, baseline = (shlex.quote(name) for name in (gate.compared.after, gate.compared.before))
    yield "it is wanted", f"ctxbench gate {run} --update --baseline {baseline}"
    worst = next(((row, change) for row in gate.failing for change in row.moved if change.gain < 0), None)
    if worst is not None and not any(isinstance(side, Missing) for side in worst[1][1:3]):
        row, change = worst
        size = abs(float(change.after) - float(change.before))  # type: ignore[arg-type]
        digits = 1 - floor(log10(size)) if size else 0
        limit = round(size + 0.5 * 10**-digits, digits)
        yield "so much is no harm", f'a policy with [metrics."{row.metric}"] each = {limit:g}'
    if {group.word for group in gate.compared.unpaired if group.what == "strategy"} == {"lost", "new"}:
        yield "a strategy has new settings", "a name for it in both runs, -s 'NAME=SPEC': names are compared"


def _conversation(row: Comparison, change: MetricChange, look: Look) -> tuple[str, ...]:
    unit = row.about.unit
    figures = (amount(unit, whole(unit, value)) for value in (change.before, change.after))
    link = look(row.metric, change.conversation, row.strategy)
    return (change.conversation, row.strategy, display_name(row.metric), *figures, link)


def anchor(conversation: str, strategy: str, step: int | None) -> str:
    """Return the link to a step in the report."""
    where = {"conversation": conversation, "strategy": strategy} | ({} if step is None else {"step": str(step)})
    return f"report/report.html#{urlencode(where)}"


def gate_json(gate: Gate, look: Look) -> dict[str, Any]:
    """Return the result with all exact figures."""
    result = as_json(gate.compared)
    for row in result["comparisons"]:
        for change in row.get("moved", ()):
            change["look"] = look(row["metric"], change["conversation"], row["strategy"])
    return {
        "result": gate.result,
        "failing": [{"strategy": comparison.strategy, "metric": comparison.metric} for comparison in gate.failing],
        "not_in_the_baseline": list(gate.unknown),
        "not_guarded": list(gate.not_guarded),
        "settings": {name: {"was": was, "is": now} for name, (was, now) in gate.settings.items()},
        **result,
    }


def _in_a_line(comparison: Comparison) -> str:
    """Return a comparison in one line, for formats without tables."""
    found, verdict = comparison.found, comparison.verdict
    if found is None:
        return f"{verdict.word}: {verdict.why}"
    return f"{verdict.word}: {_moved_by(comparison)}{f' ({verdict.why})' if verdict.why else ''}"


def as_junit(gate: Gate) -> str:
    """Return JUnit XML: failures, and skipped for what is new or undecided."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    failing = {(row.strategy, row.metric) for row in gate.failing}
    for row in gate.compared.comparisons:
        skipped = "skipped" * (row.verdict.word in ("cannot tell", "new"))
        kind = "failure" if (row.strategy, row.metric) in failing else skipped
        suites.setdefault(row.strategy, []).append((row.metric, kind, _in_a_line(row)))
    apart = []
    for group in gate.compared.unpaired:
        name = f"{group.word} {group.what}" + (f" under {group.strategy}" if group.strategy else "")
        kind = "skipped" if group.word == "new" else "failure"
        apart.append((name, kind, f"{some(group.names)}: {group.why}"))
    apart += [(metric, "failure", "not in the baseline") for metric in gate.unknown]
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
