"""The report as files: all of them, the same bytes again, nothing of others touched, and what a table may hold."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.metrics.figures import METRICS, OWN
from ctxbench.reports.html import folder
from ctxbench.reports.html.folder import as_markdown, check, write
from ctxbench.reports.html.page import ReportSection
from ctxbench.reports.html.sections import sections
from ctxbench.reports.render import Table
from ctxbench.reports.results import Results
from ctxbench.scenarios.errors import RunError
from tests.harness.runs import bytes_of
from tests.reports.html.builders import HOSTILE, results


def test_all_files_and_the_same_again(run: Run, page_of: Path, tmp_path: Path) -> None:
    """Twice the same run is twice the same bytes; each figure is there as SVG with its text, and as PNG."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "report.html").write_text((page_of.parent / "report.html").read_text())
    (tmp_path / "figures" / "of_an_earlier_report.svg").write_text("<svg/>")
    (tmp_path / "figures" / "mine.txt").write_text("kept")
    again = results(run)
    write(again, tmp_path, figures=True)
    mine = bytes_of(tmp_path)
    assert mine.pop("figures/mine.txt")
    assert mine == bytes_of(page_of.parent)
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert {"frontier", "growth", "bill", "cached_share", "break_even", "survival", "decisions"} <= names
    tree = ElementTree.parse(tmp_path / "figures" / "growth.svg")
    assert "last_turn" in [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    strategies = pd.read_csv(tmp_path / "tables" / "strategies.csv", index_col="strategy")
    assert strategies.tokens_sent["none"] == again.summary.strategies["none"]["tokens_sent"]
    said = (tmp_path / "report.md").read_text()
    assert "## Which strategy?" in said
    assert all(f"](figures/{name}.svg)" in said for name in names)


def test_figures_are_drawn_when_asked_for(run: Run, page_of: Path, tmp_path: Path) -> None:
    """Without --figures the page is the same, and what an earlier report drew is gone with its links."""
    shutil.copytree(page_of.parent, tmp_path, dirs_exist_ok=True)
    write(results(run), tmp_path)
    assert (tmp_path / "report.html").read_bytes() == page_of.read_bytes()
    assert not list((tmp_path / "figures").iterdir())
    assert "](figures/" not in (tmp_path / "report.md").read_text()


def test_what_was_made_before_is_not_made_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has the same bytes while nothing changed: other models, words or files, or a metric, make it anew."""
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))
    copy = Run(shutil.copytree(run.folder, tmp_path / "run"))
    usual, made = Results(copy, ("gpt-4o",)), list[str]()
    monkeypatch.setattr(folder, "sections", lambda of: made.append(f"{of.models}") or sections(of))
    one, other = (bytes_of(write(usual, tmp_path / name).parent) for name in ("one", "other"))
    assert one == other
    assert len(made) == 1
    anew = [replace(usual, models=("gpt-5",)), replace(usual, text=False), replace(usual, lose=1.0)]
    for number, results_of in enumerate(anew, start=2):
        write(results_of, tmp_path / "one")
        assert len(made) == number
    monkeypatch.setitem(OWN, "mine", METRICS["steps"])
    for number in (5, 6):
        write(usual, tmp_path / "one")
        assert len(made) == number
    monkeypatch.delitem(OWN, "mine")
    for number, name in ((6, "bills/new.parquet"), (7, "bills/live.parquet"), (8, "answers/new")):
        (copy.folder / name).parent.mkdir(exist_ok=True)
        (copy.folder / name).write_text("new")
        write(usual, tmp_path / "one")
        assert len(made) == number


def test_a_folder_of_others(tmp_path: Path) -> None:
    """Where no report of ours is, nothing is removed; where nothing can be written, one error says so."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.svg").write_text("<svg/>")
    (tmp_path / "report.html").write_text("<p>mine")
    folder._clear(tmp_path)
    assert (tmp_path / "figures" / "mine.svg").exists()
    with pytest.raises(RunError, match=r"report.html: cannot be written: File exists: name another .* --out"):
        check(tmp_path / "report.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        check(tmp_path / "file" / "below")


def test_markdown_of_hostile_texts(run: Run) -> None:
    """No text makes a heading, a row, an emphasis or an element of its own."""
    table = Table(HOSTILE[0], tuple(HOSTILE), (tuple(HOSTILE),), tuple(HOSTILE))
    text = as_markdown(results(run), [ReportSection("x", "X", "\n".join(HOSTILE), (table,))], figures=False)
    assert "<" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2
    assert {line.replace("\\|", "").count("|") for line in rows} == {len(HOSTILE) + 1}
