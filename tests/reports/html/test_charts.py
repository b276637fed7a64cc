"""Charts as parts of the page: a still picture says what the strategies are called."""

from __future__ import annotations

from xml.etree import ElementTree

import pandas as pd
from matplotlib.figure import Figure

from ctxbench.harness.folder.run import Run
from ctxbench.reports.html.charts import Chart, bars, field, stills, tips

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
