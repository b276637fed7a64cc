"""The page as an application: tabs, choices and the address, tables, charts, printing, and the page without scripts."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.reports.render import dollars
from tests.reports.html.builders import MODELS, STRATEGIES, results
from tests.reports.html.conftest import Opening

TABS = ("verdict", "cost", "quality", "faults", "tiers", "claims", "inspector", "method")
SMALLEST = """() => Math.min(...[...document.querySelectorAll("body *")].filter((each) => each.checkVisibility()
  && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((each) => {
    const box = each.ownerSVGElement ?? null;
    const scale = box && box.viewBox.baseVal.width ? box.getBoundingClientRect().width / box.viewBox.baseVal.width : 1;
    return parseFloat(getComputedStyle(each).fontSize) * scale;
  }))"""


def test_a_tab_at_a_time(opening: Opening, page_of: Path) -> None:
    """A tab shows its own parts only; the address says which, and opens it; so does a link to a part of it."""
    page = opening(page_of)
    assert page.locator(".tab:visible").evaluate_all("tabs => tabs.map(tab => tab.id)") == ["tab-verdict"]
    for tab in TABS:
        page.locator(f".tabs a[data-tab={tab}]").click()
        assert page.locator(".tab:visible").evaluate_all("tabs => tabs.map(tab => tab.id)") == [f"tab-{tab}"]
        assert page.locator(".tabs [aria-current=page]").inner_text().lower() == tab
        assert f"tab={tab}" in page.evaluate("location.hash")
    assert opening(page_of, "#tab=cost").locator("#bill").is_visible()
    assert opening(page_of, "#structure").locator("#tab-faults").is_visible()
    assert opening(page_of, "#tab=nothing").locator("#tab-verdict").is_visible()


def test_by_keys_alone(opening: Opening, page_of: Path) -> None:
    """Tab and Enter reach and open every tab, and open and close the choice of strategies."""
    page = opening(page_of)
    page.keyboard.press("Tab")
    for tab in TABS:
        while page.evaluate("document.activeElement.dataset.tab") != tab:
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.locator(f"#tab-{tab}").is_visible()
    while page.evaluate("document.activeElement.localName") != "summary":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#find").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.type("window")
    page.keyboard.press("Escape")
    assert not page.locator("#find").is_visible()


def test_the_verdict_is_that_of_the_chosen_model(opening: Opening, run: Run, page_of: Path) -> None:
    """Words and bills of the first screen follow the choice of a model; without scripts they are the first model's."""
    totals = results(run).totals
    page = opening(page_of)
    pages = [(page, MODELS[0]), (opening(page_of, java_script_enabled=False), MODELS[0]), (page, MODELS[1])]
    for shown, model in pages:
        if model != MODELS[0]:
            shown.locator("#model").select_option(model)
        [lead] = shown.locator("#overview .lead:visible").all()
        assert f"Bill: under {model}." in lead.inner_text()
        bill = totals[(totals.model == model) & (totals.strategy == "none")]
        verdicts = shown.locator("#overview .block:visible").filter(has_text="What is the verdict on each strategy?")
        [cells] = verdicts.locator("tr").filter(has=shown.get_by_role("rowheader", name="none", exact=True)).all()
        assert cells.locator("td").nth(-2).inner_text() == dollars(float(bill.cost.sum()))


def test_strategies_are_chosen_once(opening: Opening, page_of: Path) -> None:
    """Tables of every tab have the chosen strategies only, and so has whoever gets the address."""
    page = opening(page_of, "#tab=cost")
    page.locator("#filter summary").click()
    page.locator("#nothing").click()
    for name in ("none", "retrieval"):
        page.get_by_label(name, exact=True).check()
    for opened in (page, opening(page_of, page.evaluate("location.hash"))):
        assert opened.locator("#chosen").inner_text() == f"2 of {len(STRATEGIES)}"
        rows = opened.locator("#bill tbody tr:visible th").all_inner_texts()
        assert set(rows) == {"none", "retrieval"}
    page.locator(".tabs a[data-tab=verdict]").click()
    assert page.locator("#strategies table").first.locator("tbody tr:visible").count() == 2
    page.locator("#filter summary").click()
    page.locator("#every").click()
    assert "only" not in page.evaluate("location.hash")


def test_tables_filter_and_copy(opening: Opening, page_of: Path) -> None:
    """A row is found by its text; a copy has the rows that are seen, whatever they say, and the first column stays."""
    page = opening(
        page_of,
        "#tab=method",
        permissions=["clipboard-read", "clipboard-write"],
        viewport={"width": 390, "height": 800},
    )
    table = page.locator("#method .block").last
    table.get_by_role("searchbox").fill("digest")
    assert table.locator("tbody tr:visible").count() == 1
    table.get_by_role("button", name=re.compile("copy as CSV")).click()
    page.get_by_text("copied").wait_for()
    head, *rows = csv.reader(page.evaluate("navigator.clipboard.readText()").splitlines())
    assert head == ["what", "value"]
    assert [row[0] for row in rows] == ["digest of the recordings"]
    page.locator(".tabs a[data-tab=verdict]").click()
    first = page.locator("#strategies tbody th").first
    before = first.bounding_box()["x"]
    page.locator("#strategies .wide").first.evaluate("box => { box.scrollLeft = 400; }")
    assert first.bounding_box()["x"] == before


@pytest.mark.parametrize("width", [390, 1440, 2560])
def test_readable_at_every_width(opening: Opening, page_of: Path, width: int) -> None:
    """No text is under 11 pixels, and what is wide scrolls by itself: the page does not."""
    page = opening(page_of, viewport={"width": width, "height": 900})
    for tab in TABS:
        page.locator(f".tabs a[data-tab={tab}]").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        assert page.evaluate(SMALLEST) >= 11, tab


def test_without_scripts(opening: Opening, page_of: Path) -> None:
    """All tabs stand on one page, with their pictures; what needs scripts says so."""
    page = opening(page_of, java_script_enabled=False)
    for tab in TABS:
        assert page.locator(f"#tab-{tab}").is_visible()
    assert page.locator(".chart svg:visible").count() == page.locator(".chart:visible").count() > 5
    assert page.locator("#inspector noscript").bounding_box()["height"] > 0
    assert not page.locator("#choices").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opening: Opening, page_of: Path, scheme: str) -> None:
    """The rules of axe-core for access hold on every tab; in the dark theme those of colours alone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    only = {"runOnly": {"type": "rule", "values": ["color-contrast"]}} if scheme == "dark" else {}
    page = opening(page_of, color_scheme=scheme, bypass_csp=True)
    for tab in TABS:  # what stands above the tabs is looked at with the first
        page.locator(f".tabs a[data-tab={tab}]").click()
        part = None if tab == TABS[0] else f"#tab-{tab}"
        found = axe.run(page, part, {"resultTypes": ["violations"], **only}).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == [], tab
