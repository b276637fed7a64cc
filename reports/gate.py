"""The gate's answer, as tables for a terminal and for a step summary, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..harness.compare.compare import Comparison, MetricChange
from ..harness.compare.gate import FAILS, Gate, Result
from ..metrics.statistics.comparison import Word
from ..metrics.value import Missing
from .compare import HOW, between, cells, margin, moved, says_all, some, unpaired, whole
from .compare import as_json as compared_json
from .render import Table, amount, count, printable

SAID: dict[Result, str] = {
    "passes": "The gate passes",
    "fails": "The gate FAILS",
    "must be mended": "The gate cannot say: baseline and run are not of the same",
}
MOST = 12
"""Conversations that are named in all."""
MOST_SIZES = 6
"""Metrics of which the power is said."""
RENEW = "`ctxbench baseline RUN --out FILE` makes it anew"
Step = Callable[[str, str, str], int | None]
"""From metric, conversation and strategy to the step that weighs most against the figure."""


def tables(gate: Gate, step: Step) -> Iterator[Table]:
    """What fails, which conversations moved most, what is not known, what got better."""
    yield Table(SAID[gate.result], (), (), tuple(_summary(gate)))
    shown = gate.failing
    found = [_of("Fails", shown)] if shown else []
    if named := list(_moved(shown, step)):
        found.append(named_table(named))
    for title, word in (("Cannot tell", "cannot tell"), ("Better", "better")):
        rows = [each for each in gate.compared.comparisons if each.verdict.word == word and each not in shown]
        if rows := [each for each in rows if each.found is None or each.found.value]:
            found.append(_of(title, rows))
    yield from found
    if found:
        yield Table("How to read it", (), (), (HOW,))


def _summary(gate: Gate) -> Iterator[str]:
    compared = gate.compared
    words: tuple[Word, ...] = (*FAILS, "incomparable", "cannot tell", "better", "same", "new")
    said = ", ".join(f"{number:,} {word}" for word in words if (number := compared.counted(word)))
    pairs = count(compared.conversations, "pair")
    yield f"{compared.after} against {compared.before}: {pairs} of conversations; {said or 'nothing compared'}."
    if single := [each for each in compared.comparisons if _is_single(each)]:
        names = some(list(dict.fromkeys(each.metric for each in single)))
        yield f"In {len(single):,} of these one conversation alone has the figure, and it did not move ({names})."
    yield power(gate)
    yield from unpaired(compared.unpaired)
    for word, why in (("incomparable", RENEW), ("new", f"not guarded until {RENEW}")):
        these = [each for each in compared.comparisons if each.verdict.word == word]
        if these:
            named = some(sorted({each.metric for each in these}))
            yield f"{word.capitalize()}: {named} ({some(sorted({each.verdict.why for each in these}))}); {why}."
    if gate.unknown:
        why = f"it is older than they are ({RENEW}), or its recordings have nothing that they measure"
        yield f"The policy asks for what the baseline does not have: {some(gate.unknown)}. Either {why}."
    if gate.not_guarded:
        yield f"Not guarded, since the policy does not name them: {some(gate.not_guarded)}."


def _is_single(each: Comparison) -> bool:
    found = each.found
    return each.verdict.word == "cannot tell" and found is not None and found.conversations == 1 and not found.value


def power(gate: Gate) -> str:
    """What this sample can find: of each metric that moved, under the strategy where it can find least."""
    found: dict[str, tuple[float, str]] = {}
    finer: dict[str, None] = {}
    for each in gate.compared.comparisons:
        if each.found is None or isinstance(each.detects, Missing):
            continue
        size = moved(each.detects, each.about.unit, each.found.relative)[1:]
        found[each.metric] = max(found.get(each.metric, (0.0, "")), (float(each.detects), f"{each.metric} ±{size}"))
        if 0 < each.rule.margin.amount < each.detects and each.found.relative == each.rule.margin.relative:
            finer[each.metric] = None
    if not found:
        return "Power: nothing moved in any conversation, so there is no spread to reckon it from."
    said = [text for _, text in found.values()]
    more = f" and {len(said) - MOST_SIZES} more" if len(said) > MOST_SIZES else ""
    text = f"Power: this sample can find, four times in five, changes of {'; '.join(said[:MOST_SIZES])}{more}."
    if finer:
        text += f" The margin of {some(list(finer))} is finer than that: more conversations would help."
    return text


def _of(title: str, rows: Sequence[Comparison]) -> Table:
    heads = ("strategy", "metric", "was", "is", "difference", "95 % interval", "verdict", "finds", "conversations")
    made = tuple((each.strategy, each.metric, *cells(each)) for each in rows)
    said = [each for each in rows if each.verdict.why and not says_all(each)]
    notes = list(dict.fromkeys(f"{each.strategy}, {each.metric}: {each.verdict.why}." for each in said))
    margins = {each.metric: margin(each.rule.margin, each.about.unit) for each in rows}
    notes.append("; ".join(f"{metric}: {text}" for metric, text in margins.items()) + ".")
    spare = ("conversations", "finds", "was", "is", "95 % interval")
    return Table(f"{title}: {len(rows):,}", heads, made, tuple(notes), names=2, spare=spare)


def _moved(rows: Sequence[Comparison], step: Step) -> Iterator[tuple[str, ...]]:
    """The conversations that got worse, of each comparison the one that weighs most, then the second of each."""
    worse = [(each, [found for found in each.moved if found.gain < 0]) for each in rows]
    for rank in range(max((len(found) for _, found in worse), default=0)):
        for each, found in worse:
            if rank < len(found):
                yield _named(each, found[rank], step)


def _named(each: Comparison, found: MetricChange, step: Step) -> tuple[str, ...]:
    unit = each.about.unit
    was, now = (amount(unit, whole(unit, value)) for value in (found.before, found.after))
    where = step(each.metric, found.conversation, each.strategy)
    return (found.conversation, each.strategy, each.metric, was, now, anchor(found.conversation, each.strategy, where))


def named_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Which conversations moved most."""
    heads = ("conversation", "strategy", "metric", "was", "is", "look at it")
    left = len(rows) - MOST
    notes = ("The step is the one that weighs most against the figure.",)
    more = (f"{left:,} more in --json.",) if left > 0 else ()
    return Table("Moved most", heads, tuple(rows[:MOST]), (*more, *notes), prose=True)


def anchor(conversation: str, strategy: str, step: int | None) -> str:
    """Where the report shows it."""
    where = {"conversation": conversation, "strategy": strategy} | ({} if step is None else {"step": str(step)})
    return f"report/report.html#{urlencode(where)}"


def as_json(gate: Gate, step: Step) -> dict[str, Any]:
    """Everything, with exact figures."""
    made = compared_json(gate.compared)
    for row, each in zip(made["comparisons"], gate.compared.comparisons, strict=True):
        for found in row.get("moved", []):
            at = step(each.metric, found["conversation"], each.strategy)
            found["look"] = anchor(found["conversation"], each.strategy, at)
    return {
        "result": gate.result,
        "failing": [{"strategy": each.strategy, "metric": each.metric} for each in gate.failing],
        "not_in_the_baseline": list(gate.unknown),
        "not_guarded": list(gate.not_guarded),
        "power": power(gate),
        **made,
    }


def why(each: Comparison) -> str:
    """A comparison in one line, for what has no room for a table."""
    found, unit = each.found, each.about.unit
    if found is None:
        return f"{each.verdict.word}: {each.verdict.why}"
    size, ends = moved(found.value, unit, found.relative), between(found.shown, unit, found.relative)
    reason = f"; {each.verdict.why}" if each.verdict.why else ""
    return f"{each.verdict.word}: {size} (95 % {ends}; {margin(each.rule.margin, unit)}){reason}"


def as_junit(gate: Gate) -> str:
    """The XML. What fails is a failure, what cannot be compared an error, what cannot be told or is new is skipped."""
    top = Element("testsuites", name="ctxbench gate")
    for strategy in dict.fromkeys(each.strategy for each in gate.compared.comparisons):
        suite = SubElement(top, "testsuite", name=_text(strategy))
        for each in gate.compared.comparisons:
            if each.strategy == strategy:
                _case(suite, each, each in gate.failing)
        _counts(suite)
    if gate.compared.unpaired or gate.unknown:
        _counts(_unpaired(SubElement(top, "testsuite", name="what was measured"), gate))
    indent(top)
    return tostring(top, encoding="unicode", xml_declaration=False).join(
        ("<?xml version='1.0' encoding='utf-8'?>\n", "\n")
    )


def _case(suite: Element, each: Comparison, fails: bool) -> None:
    case = SubElement(suite, "testcase", classname=_text(each.strategy), name=_text(each.metric))
    word = each.verdict.word
    if fails:
        SubElement(case, "failure", message=_text(why(each)))
    elif word == "incomparable":
        SubElement(case, "error", message=_text(f"{why(each)}; {RENEW}"))
    elif word in ("cannot tell", "new"):
        SubElement(case, "skipped", message=_text(why(each)))


def _unpaired(suite: Element, gate: Gate) -> Element:
    kinds = {"lost": "failure", "incomparable": "error", "new": "skipped"}
    for each in gate.compared.unpaired:
        name = f"{each.word} {each.what}" + (f" under {each.strategy}" if each.strategy else "")
        case = SubElement(suite, "testcase", classname="what was measured", name=_text(name))
        SubElement(case, kinds[each.word], message=_text(f"{some(each.names)}: {each.why}"))
    for metric in gate.unknown:
        case = SubElement(suite, "testcase", classname="what was measured", name=_text(metric))
        SubElement(case, "error", message=f"not in the baseline; {RENEW}")
    return suite


def _counts(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{kind}"))))


def _text(text: str) -> str:
    """Text that XML can hold: no control characters."""
    return printable(text).replace("\n", " ")
