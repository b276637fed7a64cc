"""Charts as parts of the page: what they say is what the strategies are called, and the library is kept."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.figure import Figure

from ctxbench.harness.folder.run import Run
from ctxbench.reports.html import charts
from ctxbench.reports.html.charts import MOST_LINES, Chart, bars, field, lines, stills, tips

NAMES = ("smart(ratio=0.12345)", 'window(role="x" > 2.5678)', "<b> & 中文")


def texts(svg: str) -> set[str]:
    """What the letters of a picture say, those of hidden descriptions left out."""
    return {element.text or "" for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")}


def bill_chart() -> Chart:
    rows = pd.DataFrame({"strategy": NAMES, "dollars": [1.23456, 2.0, 3.0], "part": "input", "order": 0})
    spec = bars(field("dollars", "US dollars"), "part", tips(strategy="strategy"), ["input"])
    return Chart("bill", "What <is> it?", "", rows, spec, Figure)


def test_a_still_picture_says_what_is_there(run: Run) -> None:
    """Names are letter for letter, whatever is in them; numbers of the drawing are short; nothing styles an element."""
    still = stills(run, [bill_chart()], NAMES, "")["bill"]
    assert set(NAMES) <= texts(still)
    assert "style=" not in still
    assert "aria-roledescription" not in still
    assert 'aria-label="What &lt;is&gt; it?"' in still


def test_pictures_are_drawn_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same charts are read from beside the run; charts that are drawn otherwise are drawn anew."""
    first = stills(run, [bill_chart()], NAMES, "")
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda *_: '<svg id="again"/>')
    assert stills(run, [bill_chart()], NAMES, "") == first
    assert "again" in stills(run, [bill_chart()], NAMES[::-1], "")["bill"]


def test_the_first_strategies_are_drawn(run: Run) -> None:
    """A chart of lines has as many strategies as colours can tell apart, and of each line the first and last point."""
    names = [f"window({number})" for number in range(12)]
    rows = pd.DataFrame(
        [(name, turn, turn) for name in names for turn in range(1, 1001)], columns=["strategy", "x", "y"]
    )
    chart = Chart("growth", "G", "", rows, lines(field("x", "x"), field("y", "y"), tips(x="x #")), Figure)
    assert chart.data(names)["most"] == MOST_LINES
    columns = chart.data(list(reversed(names)))["columns"]
    assert isinstance(columns, dict)
    assert columns["strategy"][0] == "window(11)"
    own = [x for name, x in zip(columns["strategy"], columns["x"], strict=True) if name == "window(3)"]
    assert (own[0], own[-1]) == (1, 1000)
    assert len(own) < 200
    shown = texts(stills(run, [chart], names, "")["growth"])
    assert "window(7)" in shown
    assert "window(8)" not in shown


def test_the_library_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bundled once; a damaged file is made anew, and a folder that cannot be written is no error."""
    whole = charts.library()
    monkeypatch.setattr(charts, "cache_folder", lambda: tmp_path / "cache")
    charts.library.cache_clear()
    assert charts.library() == whole
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-100] + b"\xff" * 100)
    charts.library.cache_clear()
    assert charts.library() == whole
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(charts, "cache_folder", lambda: tmp_path / "file")
    charts.library.cache_clear()
    assert charts.library() == whole
    charts.library.cache_clear()
