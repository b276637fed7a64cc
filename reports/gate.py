"""The result of the gate as tables for a terminal and a step summary, as JSON and as JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ctxbench.harness.compare.compare import Comparison, MetricChange
from ctxbench.harness.compare.gate import FAILS, Gate, Result
from ctxbench.metrics.statistics.comparison import Word
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.text import printable

from .compare import as_json as compared_json
from .compare import between, cells, how_to_read, margin, moved, says_all, some, unpaired, whole
from .render import Table, amount, count

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
    sections = [_of("Fails", shown)] if shown else []
    if named := list(_moved(shown, step)):
        sections.append(named_table(named))
    for title, word in (("Cannot tell", "cannot tell"), ("Better", "better")):
        rows = [
            comparison
            for comparison in gate.compared.comparisons
            if comparison.verdict.word == word and comparison not in shown
        ]
        if rows := [comparison for comparison in rows if not _is_nothing(comparison)]:
            sections.append(_of(title, rows))
    yield from sections
    if sections:
        yield how_to_read()


def _summary(gate: Gate) -> Iterator[str]:
    compared = gate.compared
    words: tuple[Word, ...] = (*FAILS, "incomparable", "cannot tell", "better", "same", "new")
    counts = ", ".join(f"{number:,} {word}" for word in words if (number := compared.counted(word)))
    pairs = count(compared.conversations, "pair")
    yield f"{compared.after} against {compared.before}: {pairs} of conversations; {counts or 'nothing compared'}."
    if single := [comparison for comparison in compared.comparisons if _is_single(comparison)]:
        names = some(list(dict.fromkeys(comparison.metric for comparison in single)))
        yield f"In {len(single):,} of these one conversation alone has the figure, and it did not move ({names})."
    yield power(gate)
    yield from unpaired(compared.unpaired)
    for word, why in (("incomparable", _RENEW), ("new", f"not guarded until {_RENEW}")):
        group = [comparison for comparison in compared.comparisons if comparison.verdict.word == word]
        if group:
            named = some(sorted({comparison.metric for comparison in group}))
            reasons = some(sorted({comparison.verdict.why for comparison in group}))
            yield f"{word.capitalize()}: {named} ({reasons}); {why}."
    if gate.unknown:
        why = f"it is older than these metrics ({_RENEW}), or its recordings have nothing that they measure"
        yield f"The policy names metrics that the baseline does not have: {some(gate.unknown)}. Either {why}."
    if gate.not_guarded:
        yield f"Not guarded, because the policy does not name them: {some(gate.not_guarded)}."


def _is_nothing(comparison: Comparison) -> bool:
    """Return whether a figure that is in no danger did not move at all."""
    difference = comparison.found
    return difference is not None and not isinstance(difference.value, Missing) and not difference.value


def _is_single(comparison: Comparison) -> bool:
    difference = comparison.found
    return (
        comparison.verdict.word == "cannot tell"
        and difference is not None
        and difference.conversations == 1
        and _is_nothing(comparison)
    )


def power(gate: Gate) -> str:
    """Return the smallest detectable change of each metric that moved, under the strategy where it is largest."""
    sizes: dict[str, tuple[float, str]] = {}
    finer: dict[str, None] = {}
    for comparison in gate.compared.comparisons:
        if comparison.found is None or isinstance(comparison.detects, Missing):
            continue
        size = moved(comparison.detects, comparison.about.unit, comparison.found.relative)[1:]
        sizes[comparison.metric] = max(
            sizes.get(comparison.metric, (0.0, "")), (float(comparison.detects), f"{comparison.metric} ±{size}")
        )
        if (
            0 < comparison.rule.margin.amount < comparison.detects
            and comparison.found.relative == comparison.rule.margin.relative
        ):
            finer[comparison.metric] = None
    if not sizes:
        return "Power: nothing moved in any conversation, so there is no spread to estimate it from."
    texts = [text for _, text in sizes.values()]
    more = f" and {len(texts) - _MOST_SIZES} more" if len(texts) > _MOST_SIZES else ""
    text = f"Power: this sample detects, four times in five, changes of {'; '.join(texts[:_MOST_SIZES])}{more}."
    if finer:
        text += f" The margin of {some(list(finer))} is finer than that: more conversations would help."
    return text


def _of(title: str, rows: Sequence[Comparison]) -> Table:
    heads = (
        *("strategy", "metric", "was", "is", "difference", "95 % interval", "typical conversation", "verdict"),
        *("detects", "conversations"),
    )
    body = tuple((comparison.strategy, comparison.metric, *cells(comparison)) for comparison in rows)
    unclear = [comparison for comparison in rows if comparison.verdict.why and not says_all(comparison)]
    notes = list(
        dict.fromkeys(
            f"{comparison.strategy}, {comparison.metric}: {comparison.verdict.why}." for comparison in unclear
        )
    )
    margins = {comparison.metric: margin(comparison.rule.margin, comparison.about.unit) for comparison in rows}
    notes.append("; ".join(f"{metric}: {text}" for metric, text in margins.items()) + ".")
    spare = ("conversations", "detects", "was", "is", "typical conversation", "95 % interval")
    return Table(f"{title}: {len(rows):,}", heads, body, tuple(notes), names=2, spare=spare)


def _moved(rows: Sequence[Comparison], step: Step) -> Iterator[tuple[str, ...]]:
    """Yield the conversations that got worse: the worst of each comparison, then the second worst of each."""
    worse = [(comparison, [changes for changes in comparison.moved if changes.gain < 0]) for comparison in rows]
    for rank in range(max((len(changes) for _, changes in worse), default=0)):
        for comparison, changes in worse:
            if rank < len(changes):
                yield _named(comparison, changes[rank], step)


def _named(comparison: Comparison, change: MetricChange, step: Step) -> tuple[str, ...]:
    unit = comparison.about.unit
    was, now = (amount(unit, whole(unit, value)) for value in (change.before, change.after))
    where = step(comparison.metric, change.conversation, comparison.strategy)
    return (
        change.conversation,
        comparison.strategy,
        comparison.metric,
        was,
        now,
        anchor(change.conversation, comparison.strategy, where),
    )


def named_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the conversations that moved most."""
    heads = ("conversation", "strategy", "metric", "was", "is", "look at it")
    left = len(rows) - _MOST_CONVERSATIONS
    notes = ("The link opens the step that worsens the figure most.",)
    more = (f"{left:,} more in --json.",) if left > 0 else ()
    return Table(
        "Which conversations moved most?", heads, tuple(rows[:_MOST_CONVERSATIONS]), (*more, *notes), prose=True
    )


def anchor(conversation: str, strategy: str, step: int | None) -> str:
    """Return the link to a step in the report."""
    where = {"conversation": conversation, "strategy": strategy} | ({} if step is None else {"step": str(step)})
    return f"report/report.html#{urlencode(where)}"


def as_json(gate: Gate, step: Step) -> dict[str, Any]:
    """Return the result with all exact figures."""
    result = compared_json(gate.compared)
    for row, comparison in zip(result["comparisons"], gate.compared.comparisons, strict=True):
        for change in row.get("moved", []):
            at = step(comparison.metric, change["conversation"], comparison.strategy)
            change["look"] = anchor(change["conversation"], comparison.strategy, at)
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
    difference, unit = comparison.found, comparison.about.unit
    if difference is None:
        return f"{comparison.verdict.word}: {comparison.verdict.why}"
    size, ends = (
        moved(difference.value, unit, difference.relative),
        between(difference.shown, unit, difference.relative),
    )
    reason = f"; {comparison.verdict.why}" if comparison.verdict.why else ""
    return f"{comparison.verdict.word}: {size} (95 % {ends}; {margin(comparison.rule.margin, unit)}){reason}"


def as_junit(gate: Gate) -> str:
    """Return JUnit XML: failures, errors for what cannot be compared, skipped for new or undecided figures."""
    top = Element("testsuites", name="ctxbench gate")
    for strategy in dict.fromkeys(comparison.strategy for comparison in gate.compared.comparisons):
        suite = SubElement(top, "testsuite", name=_text(strategy))
        for comparison in gate.compared.comparisons:
            if comparison.strategy == strategy:
                _case(suite, comparison, comparison in gate.failing)
        _counts(suite)
    if gate.compared.unpaired or gate.unknown:
        _counts(_unpaired(SubElement(top, "testsuite", name="what was measured"), gate))
    indent(top)
    return tostring(top, encoding="unicode", xml_declaration=False).join(
        ("<?xml version='1.0' encoding='utf-8'?>\n", "\n")
    )


def _case(suite: Element, comparison: Comparison, fails: bool) -> None:
    case = SubElement(suite, "testcase", classname=_text(comparison.strategy), name=_text(comparison.metric))
    word = comparison.verdict.word
    if fails:
        SubElement(case, "failure", message=_text(why(comparison)))
    elif word == "incomparable":
        SubElement(case, "error", message=_text(f"{why(comparison)}; {_RENEW}"))
    elif word in ("cannot tell", "new"):
        SubElement(case, "skipped", message=_text(why(comparison)))


def _unpaired(suite: Element, gate: Gate) -> Element:
    kinds = {"lost": "failure", "incomparable": "error", "new": "skipped"}
    for group in gate.compared.unpaired:
        name = f"{group.word} {group.what}" + (f" under {group.strategy}" if group.strategy else "")
        case = SubElement(suite, "testcase", classname="what was measured", name=_text(name))
        SubElement(case, kinds[group.word], message=_text(f"{some(group.names)}: {group.why}"))
    for metric in gate.unknown:
        case = SubElement(suite, "testcase", classname="what was measured", name=_text(metric))
        SubElement(case, "error", message=f"not in the baseline; {_RENEW}")
    return suite


def _counts(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))


def _text(text: str) -> str:
    """Return text that XML can hold, without control characters."""
    return printable(text).replace("\n", " ")
