"""The report as files: all of them, the same bytes again, nothing of others touched, and what a table may hold."""

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.harness.graders.profiles import user_folder
from ctxbench.metrics.figures import METRICS, OWN
from ctxbench.reports.html import folder
from ctxbench.reports.html.folder import as_markdown, check, write
from ctxbench.reports.html.page import ReportSection
from ctxbench.reports.html.sections import sections
from ctxbench.reports.render import Table
from ctxbench.reports.results import Results
from ctxbench.scenarios.errors import RunError, UserError
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


def test_what_the_cache_has_is_of_these_files_and_prices(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other prices make it anew. What was read before a file changed is not kept as the page of the new file."""
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))
    copy = shutil.copytree(run.folder, tmp_path / "run")
    before, words = Results(Run(copy), ("gpt-4o",)), ["one", "two", "three"]

    def kept(of: Results) -> bytes:
        return of.kept("words", lambda: words.pop(0).encode())

    assert kept(before) == kept(before) == b"one"
    (copy / "answers").mkdir(exist_ok=True)
    (copy / "answers" / "new").write_text("new")
    assert kept(before) == b"two"
    after = Results(Run(copy), ("gpt-4o",))
    assert kept(after) == kept(after) == b"three"
    words.append("four")
    monkeypatch.setattr("ctxbench.reports.results.prices_version", lambda: "genai-prices 99")
    assert kept(after) == b"four"


def test_no_file_is_read_for_a_cache_that_is_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could find nothing."""
    monkeypatch.setattr("ctxbench.reports.results.file_digests", lambda *_: pytest.fail("files were read"))
    assert Results(Run(run.folder), ("gpt-4o",)).kept("words", lambda: b"one") == b"one"


def test_a_user_without_a_home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is made, also where the cache is in a folder of its own; what needs the home says so."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("~nobody-of-this-name").expanduser())
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))
    assert write(Results(Run(run.folder), ("gpt-4o",)), tmp_path / "report").is_file()
    with pytest.raises(UserError, match="there is no home folder for the cache: set XDG_CACHE_HOME"):
        user_folder()


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
