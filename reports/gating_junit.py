"""The gate's answer as JUnit XML, which CI servers show as tests: a suite a strategy, a case a metric."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..harness.gating.comparing import Comparison
from ..harness.gating.gate import Gate
from .comparing import some
from .gating import RENEW, why
from .words import printable


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
