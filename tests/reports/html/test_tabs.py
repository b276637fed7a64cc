"""The page as an application: tabs, choices and the address, tables, charts, printing, and the page without scripts."""

import csv
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.reports.html.view import Site
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


def test_cells_by_arrow_keys(opening: Opening, page_of: Path) -> None:
    """Tab comes to a table once; arrows go from cell to cell, past hidden rows, and scroll to it; Enter sorts."""
    page = opening(page_of, "#tab=verdict", viewport={"width": 390, "height": 800})
    table = page.locator("#strategies table").first
    focused = "document.activeElement"
    table.locator("thead th").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert page.evaluate(f"[{focused}.cellIndex, {focused}.parentElement.rowIndex]") == [1, 2]
    page.keyboard.press("End")
    cell = page.evaluate(f"{focused}.getBoundingClientRect().toJSON()")
    assert 0 < cell["left"] < cell["right"] <= 390
    page.keyboard.press("Tab")
    assert not page.evaluate(f"document.querySelector('#strategies table').tBodies[0].contains({focused})")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(f"{focused}.parentElement.rowIndex") == 2, "it comes back to the cell that it left"
    for key in ("Home", "ArrowRight"):
        page.keyboard.press(key)
    cell, name = (
        page.evaluate(f"{of}.getBoundingClientRect().toJSON()") for of in (focused, f"{focused}.previousElementSibling")
    )
    assert cell["left"] >= name["right"] - 1, "the column that stays hides none"
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    assert table.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"
    page.evaluate("document.querySelector('#strategies tbody tr').hidden = true")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(f"{focused}.parentElement.rowIndex") == 2


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
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing(opening: Opening, run: Run, page_of: Path, tmp_path: Path, scheme: str, width: int) -> None:
    """All rules of axe-core hold on every tab, with a message open in the inspector, and on the pages of `view`."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"color_scheme": scheme, "bypass_csp": True, "viewport": {"width": width, "height": 900}}

    def violations(page: Any, part: str | None = None) -> list[tuple[str, str]]:
        found = axe.run(page, part, {"resultTypes": ["violations"]}).response["violations"]
        return [(each["id"], node["html"][:200]) for each in found for node in each["nodes"]]

    page = opening(page_of, "#conversation=talk%200&strategy=none&step=3", **options)
    page.locator("#sent .row").first.click()
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
    assert violations(page) == []
    for tab in TABS:
        page.locator(f".tabs a[data-tab={tab}]").click()
        assert violations(page, f"#tab-{tab}") == [], tab
    site, folder = Site([run.folder]), quote(str(run.folder), safe="")
    pages = {"": "", "report": f"run={folder}", "compare": f"run={folder}&against={folder}", "nothing": ""}
    for name, query in pages.items():
        (tmp_path / f"{name}.html").write_bytes(site.respond(name, query).body)
        assert violations(opening(tmp_path / f"{name}.html", **options)) == [], name
