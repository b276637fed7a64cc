"""A comparison of runs or strategies, and the result of the gate, as tables and JSON; the gate also as JUnit XML."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from math import inf
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ctxbench.harness.answers.figures import BOUNDS
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.compare.compare import Comparison, MetricChange, RunComparison, Unpaired
from ctxbench.harness.compare.figures import billed_model
from ctxbench.harness.compare.gate import Gate, update_command
from ctxbench.metrics.figures import display_name
from ctxbench.metrics.statistics.comparison import Word
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import printable

from .render import (
    MARKS,
    STRATEGY,
    WIDE,
    Column,
    Table,
    about,
    amount,
    count,
    dollars,
    exact,
    independent,
    no_interval,
    sample,
    table_of,
    tokens,
)

# Verdicts, those that need a look first.
_WORDS: tuple[Word, ...] = ("worse", "lost", "incomparable", "cannot tell", "better", "new", "same")
# Names that stand in a line of prose; rows, and characters of a line, of a table that is to fit a screen.
_MOST_NAMES, _MOST_ROWS, WIDEST = 4, 30, 120


def tables(
    compared: RunComparison, titles: tuple[str, str] = ("before", "after"), every: bool = False
) -> Iterator[Table]:
    """Yield one table of what moved beyond its threshold, the strategies first in which each metric moved most.

    `titles` are the heads of the two figures. `every`: all that moved at all, in as many rows as it takes.
    """
    rows, pairs = compared.comparisons, count(compared.conversations, "pair of conversations", "pairs of conversations")
    title = f"{compared.after} against {compared.before}, in {pairs}"
    title += independent(compared.conversations, compared.units)
    if any(row.strategy != row.against for row in rows):
        title = f"{compared.before}, strategies against {rows[0].against}, in "
        title += sample(compared.conversations, compared.units)
    moved = [row for row in rows if (_change(row) if every else _is_beyond(row))]
    shown = sorted(moved if every else _most(moved), key=lambda row: _WORDS.index(row.verdict.word))
    signs = Counter((bool(row.better_in), bool(row.worse_in)) for row in rows if row.found is not None)
    better, worse, both, still = (signs[sign] for sign in ((True, False), (False, True), (True, True), (False, False)))
    words = {"better": better, "worse": worse, "better in some and worse in others": both, "did not move": still}
    here = ", ".join(f"{number:,} {word}" for word, number in words.items() if number) or "nothing compared"
    is_same = signs.keys() == {(False, False)}
    notes = [f"{count(len(rows), 'comparison')} here: {here}.{f' Elsewhere: {_counts(rows)}.' * (not is_same)}"]
    if rest := len(moved) - len(shown):
        notes.append(f"{rest:,} more moved beyond their thresholds; --all shows them.")
    notes += [*_apart(rows), *unpaired(compared.unpaired)]
    names = dict.fromkeys(row.strategy for row in shown)
    notes += [f"{name}: {compared.libraries[name]}." for name in names if name in compared.libraries]
    if not shown:
        nothing = "Nothing moved beyond its threshold." if signs else "Nothing could be compared."
        nothing = "The same: no figure differs in any conversation." if is_same else nothing
        yield Table(title, (), (), (nothing, *notes))
        return
    if (model := _first_model(shown)) is not None:
        title += f", billed under {model}"
    notes.append(about("comparison") + " " + about("comparison_range") * any(map(_is_range, shown)))
    moved_in = Column("here", lambda row: f"{row.better_in:,}/{row.worse_in:,}", spare=1)
    ends, verdict = Column("95 % interval", _interval, spare=2, mark=_is_range), Column("elsewhere", "verdict.word")
    yield table_of(title, _columns(titles, model, moved_in, ends, verdict), shown, notes, names=2, widest=WIDEST)


def runs_table(compared: Sequence[RunComparison], names: Sequence[str]) -> Table:
    """Return a row for each figure that moved in any run against the first one, and a column for each run.

    `compared` are the comparisons with the first run, `names` the heads of all. What moved most is first.
    """
    rows: dict[tuple[str, str], dict[int, Comparison]] = {}
    for at, run in enumerate(compared):
        for row in run.comparisons:
            if row.found is not None:
                rows.setdefault((row.metric, row.strategy), {})[at] = row
    ranked = sorted(rows.values(), key=lambda of: -max(map(_extent, of.values())))
    shown = [of for of in ranked if any(map(_change, of.values()))]
    before, after = _figure("", "before"), _figure("", "after")

    def cell(of: Mapping[int, Comparison], at: int) -> str:
        if at not in of or not (change := _change(of[at])):
            return after.value(of[at]) if at in of else "–"
        word = "better" if (change > 0) == (of[at].rule.better == "higher") else "worse"
        return f"{after.value(of[at])} ({_moved_by(of[at])}, {word})"

    def text(name: str, of_row: Callable[[Comparison], str]) -> Column:
        return Column(name, lambda of: of_row(next(iter(of.values()))))

    columns = [text("metric", _metric), text("strategy", lambda row: row.strategy), text(names[0], before.value)]
    columns += [Column(name, partial(cell, at=at)) for at, name in enumerate(names[1:])]
    notes = [about("runs", against=names[0], still=f"{len(rows) - len(shown):,}")]
    return table_of("What moved most?", columns, shown, notes, names=2)


def _extent(row: Comparison) -> float:
    """Return how far a figure moved, in halves of its interval; where that is not known, as a share of what it was."""
    size = abs(_change(row))
    if not size or row.found is None:
        return 0.0
    ends, was = row.found.shown, row.found.before
    half = (ends.high - ends.low) / 2 if isinstance(ends, Ends) else 0.0
    scale = half or (1.0 if row.found.relative or isinstance(was, Missing) else abs(was))
    return size / scale if scale else inf


def _counts(rows: Iterable[Comparison]) -> str:
    by = Counter(row.verdict.word for row in rows)
    return ", ".join(f"{by[word]:,} {word}" for word in _WORDS if by[word]) or "nothing compared"


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


def _most(rows: Sequence[Comparison], most: int = _MOST_ROWS) -> list[Comparison]:
    """Return the largest change of each metric, then the second largest of each, up to so many rows; bounds last."""
    first, by_metric = _first_model(rows), dict[str, list[Comparison]]()
    for row in sorted(rows, key=lambda row: (row.strategy in BOUNDS, _is_mixed(row), -abs(_change(row)))):
        by_metric.setdefault(row.metric, []).append(row)
    order = {row.metric: at for at, row in enumerate(rows)}
    of_first = sorted(
        (name for name in order if most == WIDE or billed_model(name) in (None, first)),
        key=lambda name: (_is_mixed(by_metric[name][0]), billed_model(name) is None, order[name]),
    )
    ranked = [row for group in zip_longest(*map(by_metric.__getitem__, of_first)) for row in group if row is not None]
    return ranked[:most]


def _first_model(rows: Iterable[Comparison]) -> str | None:
    """Return the model that the rows of a bill are of: of several the recorded ones, else the first.

    A baseline has its models by name, which says nothing about which of them the run was billed under.
    """
    models = [model for row in rows if (model := billed_model(row.metric))]
    return OWN_MODELS if OWN_MODELS in models else next(iter(models), None)


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
        many = count(len(group.names), group.what, "strategies" * (group.what == "strategy"))
        yield f"{group.word.capitalize()}: {many}{under} ({some(group.names)}): {group.why}."


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def _columns(titles: tuple[str, str], model: str | None, *more: Column) -> list[Column]:
    """Return the columns of a comparison. `titles` are the heads of the two figures, `model` is that of the title."""
    figures = [_figure(titles[0], "before")._replace(spare=3), _figure(titles[1], "after"), Column("change", _moved_by)]
    return [Column("metric", lambda row: _metric(row, model)), STRATEGY, *figures, *more]


def _figure(head: str, side: str) -> Column:
    def cell(row: Comparison) -> str:
        value = getattr(row.found, side, "–")
        if isinstance(value, float) and row.about.unit in ("tokens", "usd"):
            return tokens(value) if row.about.unit == "tokens" else dollars(value)
        return value if isinstance(value, str) else amount(row.about.unit, value)

    return Column(head, cell)


def _moved_by(row: Comparison) -> str:
    return "–" if row.found is None else moved(row.found.value, row.about.unit, row.found.relative)


def _interval(row: Comparison) -> str:
    """Return the interval, or the range over conversations where too few of them carry the figure."""
    if row.found is None:
        return "–"
    is_range = _is_range(row)
    text = between(row.found.across if is_range else row.found.shown, row.about.unit, row.found.relative)
    each = " each" * (bool(is_range) and row.about.form == "total" and not row.found.relative)  # not of all together
    return text.removesuffix(" %").removesuffix(" points") + each  # in the unit of the change beside it


def _is_range(row: Comparison) -> str:
    return MARKS[0] * (row.found is not None and isinstance(row.found.shown, Missing))


def moved(value: Value, unit: str, relative: bool) -> str:
    """Return a difference with its sign: +2.1 % · −1.3 points · +3."""
    if isinstance(value, Missing):
        return f"({value.why})"
    is_shown = not set("123456789").isdisjoint(size := _size(abs(value), unit, relative))
    return ("+" if value > 0 else "−") * is_shown + size


def _size(value: float, unit: str, relative: bool) -> str:
    if relative:
        return f"{_short(value * 100)} %"
    if unit == "share":
        return f"{_short(value * 100)} points"
    if unit == "usd":
        return f"${value:.4f}"
    if unit == "tokens":
        return tokens(value)
    if unit == "times":
        return f"{value:,.2f}×"
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def _short(value: float) -> str:
    """Return one decimal, or more where that would read as 0; of less than a millionth, which is rounding, 0.0."""
    return f"{value:,.1f}" if value >= 0.05 or value < 1e-6 else f"{value:.3f}" if value >= 0.0005 else f"{value:.0e}"


def between(ends: Ends | Missing, unit: str, relative: bool) -> str:
    """Return an interval, +0.9 to +3.1 %, or in brackets the range; ends that print alike are printed once."""
    if isinstance(ends, Missing):
        return no_interval(ends, lambda low, high: between(Ends(low, high), unit, relative))
    low, high = (moved(end, unit, relative) for end in ends)
    if low == high:
        return high
    for ending in (" %", " points"):
        low = low.removesuffix(ending)
    return f"{low} to {high}"


def as_json(compared: RunComparison) -> dict[str, Any]:
    """Return all exact figures. A missing figure is `{"why": "undefined", "detail": …}`."""
    return {
        **_named(compared, "before", "after", "conversations"),
        "independent_units": compared.units,
        "corrected_for": compared.family,
        "unpaired": exact(compared.unpaired),
        "comparisons": [exact(_row(row, compared.libraries.get(row.strategy))) for row in compared.comparisons],
    }


def _named(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _row(comparison: Comparison, library: str | None) -> dict[str, Any]:
    verdict, found, typical = comparison.verdict, comparison.found, comparison.found and comparison.found.typical
    row = {
        **_named(comparison, "strategy", "against", "metric"),
        **_named(comparison.about, "unit", "version"),
        **_named(comparison.rule, "better", "margin", "each"),
        "verdict": verdict.word,
        "why": verdict.why,
        "no_worse": verdict.no_worse,
        **_named(comparison, "better_in", "worse_in"),
        "library": library,
    }
    if found is None:
        return row
    row |= _named(found, "conversations", "before", "after", "relative") | _named(comparison, "moved", "beyond")
    row |= {"difference": found.value}
    if comparison.rule.exact:
        return row
    return row | {
        **_named(found, "error", "p"),
        "independent_units": found.units,
        "across": found.across,
        "interval_95": found.shown,
        "interval_90": found.tested,
        "typical": typical and {"difference": typical.value, "interval_95": typical.shown},
        "p_adjusted": comparison.p,
    }


_MOST_CONVERSATIONS = 8
Look = Callable[[str, str, str], int | None]
"""Function from metric, conversation and strategy to the step that worsens the figure most."""


def gate_tables(gate: Gate, look: Look, every: bool = False) -> Iterator[Table]:
    """Yield the result, what fails and where it moved most, how to accept it, and what got better.

    `every`: all figures that got worse or better, in as many rows as it takes.
    """
    yield Table(_title(gate), (), (), tuple(_summary(gate)))
    worse = [row for row in gate.failing if row.found is not None]
    better = [row for row in gate.compared.comparisons if row.verdict.word == "better"]
    model = _first_model([*worse, *better])
    columns, under = _columns(("was", "is"), model, Column("worse", _where)), f", billed under {model}" * bool(model)
    if worse:
        yield from _section(f"What got worse{under}?", columns, worse, WIDE if every else _MOST_ROWS // 2)
        # The worst conversation of each comparison, then the second worst of each; none twice under a strategy.
        changes = ([(row, change) for change in row.moved if change.gain < 0] for row in _most(worse, _MOST_ROWS // 2))
        places = dict[tuple[str, str], tuple[Comparison, MetricChange]]()
        for pair in (pair for rank in zip_longest(*changes) for pair in rank if pair is not None):
            places.setdefault((pair[0].strategy, pair[1].conversation), pair)
        rows = [_conversation(row, change, look, model) for row, change in [*places.values()][:_MOST_CONVERSATIONS]]
        heads = ("conversation", "strategy", "metric", "was", "is", *["step"] * any(row[-1] for row in rows))
        first = [gate.compared.after, rows[0][0], *rows[0][-1].split(), "-s", rows[0][1]] if rows else []
        notes = (f"Look at the first: {shlex.join(['ctxbench', 'show', *first])}",) if rows else ()
        cells = tuple(row[: len(heads)] for row in rows)
        yield Table("Which conversations moved most?", heads, cells, notes, prose=True, widest=WIDEST)
    if gate.result == "fails":
        yield Table("How to accept it?", ("if", "then"), tuple(_accept(gate)), prose=True)
    yield from _section(f"What got better{under}?", columns[:-1], better, WIDE if every else _MOST_ROWS // 3)


def _section(title: str, columns: Sequence[Column], rows: Sequence[Comparison], most: int) -> Iterator[Table]:
    if rows:
        shown = _most(rows, most)
        notes = [f"{len(rows) - len(shown):,} more: --all."] * (len(rows) > len(shown))
        yield table_of(title, columns, shown, notes, names=2, widest=WIDEST)


def _title(gate: Gate) -> str:
    if gate.result == "passes":
        return "The gate passes"
    if worse := [row for row in gate.failing if row.verdict.word == "worse"]:
        ranked = _most(worse, len(worse) * _MOST_ROWS)
        names, model = dict.fromkeys(row.strategy for row in worse), _first_model(ranked)
        metrics = dict.fromkeys(_metric(row, model) for row in (*ranked, *worse))
        return f"The gate FAILS: {some(list(names))} got worse in {some(list(metrics))}"
    others = dict.fromkeys([*map(_metric, gate.failing), *gate.unknown])
    others |= dict.fromkeys(name for of in gate.gone for name in ((of.strategy,) if of.strategy else of.names))
    return f"The gate FAILS: {some(list(others))} cannot be compared with the baseline"


def _summary(gate: Gate) -> Iterator[str]:
    compared = gate.compared
    figures = f"each metric of each strategy in {count(compared.conversations, 'conversation')}"
    yield f"{compared.after} against {compared.before}, {figures}: {_counts(compared.comparisons)}."
    metrics = (*(row.metric for row in compared.comparisons), *gate.not_guarded)
    if models := dict.fromkeys(filter(None, map(billed_model, metrics))):
        yield about("gate_models", models=some(list(models)))
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
    yield "the change is wanted", update_command(gate.compared.before, gate.compared.after)
    most = dict[str, float]()  # the most that each metric lost in one of the conversations that are named
    comparable = [row for row in gate.failing if row.verdict.word != "incomparable"]
    for row in _most(comparable, _MOST_ROWS // 2):
        for _, before, after, gain in row.moved:
            if gain < 0 and not isinstance(before, Missing) and not isinstance(after, Missing):
                most[row.metric] = max(most.get(row.metric, 0.0), abs(after - before))
    if most:
        yield "some may get worse", "add --policy gate.toml, a file with lines such as these:"
    for metric, loss in [*most.items()][:_MOST_NAMES]:
        yield "", f'metrics."{metric}".each = {float(f"{1.1 * loss:.1e}"):g}'
    if {group.word for group in gate.compared.unpaired if group.what == "strategy"} == {"lost", "new"}:
        yield "a strategy has new settings", "give it one name in both runs, -s 'NAME=SPEC': the gate compares by name"


def _where(row: Comparison) -> str:
    """Return in how many conversations; where the total improved all the same, what the worst of them was and is."""
    unit = row.about.unit
    worst = [f": {amount(unit, was)} → {amount(unit, now)}" for _, was, now, gain in row.moved if gain < 0][:1]
    return row.verdict.why + "".join(worst) * _is_mixed(row) if row.verdict.word == "worse" else row.verdict.word


def _conversation(row: Comparison, change: MetricChange, look: Look, model: str | None) -> tuple[str, ...]:
    unit = row.about.unit
    figures = (amount(unit, value) for value in (change.before, change.after))
    step = look(row.metric, change.conversation, row.strategy)
    return (change.conversation, row.strategy, _metric(row, model), *figures, "" if step is None else str(step))


def gate_json(gate: Gate, look: Look) -> dict[str, Any]:
    """Return the result with all exact figures."""
    result = as_json(gate.compared)
    for row in result["comparisons"]:
        for change in row.get("moved", ()):
            change["step"] = look(row["metric"], change["conversation"], row["strategy"])
    return {
        "result": gate.result,
        "failing": [{"strategy": comparison.strategy, "metric": comparison.metric} for comparison in gate.failing],
        "not_in_the_baseline": list(gate.unknown),
        "not_guarded": list(gate.not_guarded),
        "settings": {name: {"was": was, "is": now} for name, (was, now) in gate.settings.items()},
        **result,
    }


def as_junit(gate: Gate) -> str:
    """Return JUnit XML: failures, and skipped for what is new or undecided."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    failing = {(row.strategy, row.metric) for row in gate.failing}
    for row in gate.compared.comparisons:
        skipped = "skipped" * (row.verdict.word in ("cannot tell", "new"))
        kind = "failure" if (row.strategy, row.metric) in failing else skipped
        line = f"{row.verdict.word}: {_moved_by(row)}{f' ({row.verdict.why})' if row.verdict.why else ''}"
        suites.setdefault(row.strategy, []).append((row.metric, kind, line))
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
        sizes = {"tests": len(cases), "failures": counts["failure"], "errors": 0, "skipped": counts["skipped"]}
        suite = SubElement(top, "testsuite", {key: str(size) for key, size in sizes.items()}, name=_text(strategy))
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
