"""The result of the gate as tables for a terminal and a step summary, as JSON and as JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ctxbench.harness.compare.compare import Comparison, MetricChange
from ctxbench.harness.compare.gate import FAILS, Gate, Result
from ctxbench.metrics.statistics.comparison import Word
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import printable

from .compare import as_json as compared_json
from .compare import between, columns, how_to_read, margin, moved, says_all, some, unpaired, whole
from .render import STRATEGY, Column, Table, about, amount, count, table_of

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


def tables(gate: Gate, step: Step) -> Iterator[Table]:
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


def as_json(gate: Gate, step: Step) -> dict[str, Any]:
    """Return the result with all exact figures."""
    result = compared_json(gate.compared)
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


def why(comparison: Comparison) -> str:
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
        suites.setdefault(row.strategy, []).append((row.metric, kind, f"{why(row)}{more}"))
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
