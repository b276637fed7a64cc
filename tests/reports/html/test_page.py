"""The page as a file: valid, closed to the outside, whatever its texts say; and of runs that lack almost all."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.reports.html.inspector import CUTS, Inspected, inspected
from ctxbench.reports.html.page import ReportSection, page
from ctxbench.reports.html.sections import sections
from ctxbench.reports.render import Table
from tests.reports.html.builders import ran, recorded, results

html5lib = pytest.importorskip("html5lib")
NOTHING = Inspected((), 0, "claude-sonnet-5")


def made(run: Run) -> dict[str, ReportSection]:
    """The sections of a run, by their names."""
    return {section.name: section for section in sections(results(run))}


def without_figures(section: ReportSection) -> ReportSection:
    """What takes time to draw is tested elsewhere."""
    tables = tuple(part for part in section.parts if isinstance(part, Table))
    return ReportSection(section.name, section.title, section.lead, tables)


def document(text: str) -> Any:
    """Parsed by the rules of HTML. What breaks them is an error."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def test_valid_and_closed(page_of: Path) -> None:
    """All of it is valid HTML; the policy names scripts and styles by what they are, and lets nothing else in."""
    text = page_of.read_text(encoding="utf-8")
    tree = document(text)
    policy = next(each.get("content") for each in tree.iter("meta") if each.get("http-equiv"))
    blocks = [each.text for each in tree.iter("script") if each.get("type") is None]
    blocks += [each.text for each in tree.iter("style")]
    assert len(blocks) == 3
    for block in blocks:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for element in tree.iter():
        assert "style" not in element.attrib, element.tag
        assert not any(str(name).startswith("on") for name in element.attrib)
        assert all(element.get(name, "#").startswith("#") for name in ("src", "href"))
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_what_is_left_out_says_why(tmp_path: Path) -> None:
    """In the place of a chart without rows, and in a tab that lacks a section, stands the reason in one line."""
    run = ran(tmp_path, recorded("one", ["a", "b"]), strategies=("last_turn", "window(max_tokens=300)"))
    found = made(run)
    notes = {part.title: part.notes for part in found["cache"].parts if isinstance(part, Table) and not part.heads}
    assert notes["When has a strategy paid off?"] == (
        "No two conversations with a bill under none reach the same turn in this run, so nothing can pay off by turn.",
    )
    text = page(results(run), list(found.values()), NOTHING)
    assert "no questions were asked in this run, so there is no recall of their evidence" in text
    assert "no strategy of this run summarises" in text
    assert "nothing was billed in this run" not in text
    document(text)


def test_no_model_was_called(tmp_path: Path) -> None:
    """A conversation that ends before its first answer has no steps: no figure is made up, and the page says so."""
    run = ran(tmp_path, {"ctxbench": "1", "id": "mute", "messages": [{"id": "u", "role": "user", "text": "hi"}]})
    found = made(run)
    assert found["overview"].lead.startswith("No strategy can be placed")
    assert found["overview"].parts[0].title.startswith("No verdict: no model call is recorded; each recording ends")
    assert not found["overview"].charts
    assert not {"growth", "bill", "cache", "decisions"} & set(found)
    document(page(results(run), list(found.values()), inspected(results(run))))


def test_how_the_inspector_is_packed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting makes what does not fit shorter, or leaves it out."""
    sizes = [len(each.data) for each in inspected(results(run)).conversations]
    monkeypatch.setattr("ctxbench.reports.html.inspector.ROOM", sizes[0] + sizes[1])
    few = inspected(results(run))
    assert [each.name for each in few.conversations] == ["talk 0", "talk 1"]
    assert "2 of 3 conversations are in this file" in page(results(run), [], few)
    long = ran(tmp_path, recorded("long", ["".join(map(chr, range(at, at + 1900))) for at in range(9000, 19000, 2000)]))
    monkeypatch.undo()
    whole = inspected(results(long)).conversations[0]
    monkeypatch.setattr("ctxbench.reports.html.inspector.ROOM", len(whole.data) - 1)
    assert whole.cut == CUTS[0]
    assert inspected(results(long)).conversations[0].cut in CUTS[1:]
