"""Charts as parts of the page: what they say is what the strategies are called, and the page's policy allows them."""

from __future__ import annotations

import re
from functools import partial
from xml.etree import ElementTree

import pandas as pd

from ctxbench.reports.figures.charts import bill
from ctxbench.reports.figures.frontier import PLACES, frontier
from ctxbench.reports.html.page import Chart

NAMES = ("smart(ratio=0.12345)", 'window(role="x" > 2.5678)', "<b> & \u202e'")


def bill_chart(name: str = "bill") -> Chart:
    rows = pd.DataFrame({"model": "m", "strategy": NAMES, "part": "input", "dollars": [1.23456, 2.0, 3.0]})
    return Chart(name, "What <is> it?", "", rows, bill)


def said(picture: str, tag: str) -> set[str]:
    return {element.text or "" for element in ElementTree.fromstring(picture).iter(tag)}


def test_a_picture_says_what_is_there() -> None:
    """Names are letter for letter, whatever is in them; nothing styles an element; the same chart is the same again."""
    picture = bill_chart().picture()
    assert {*NAMES[:2], "<b> & ·'"} <= said(picture, "text")
    assert "style" not in picture
    assert 'aria-label="What &lt;is&gt; it?"' in picture
    assert bill_chart().picture() == picture


def test_colours_and_ids_are_those_of_the_page() -> None:
    """Ink, paper and grid follow the theme; two charts share no id, and each refers to its own only."""
    ids = []
    for name in ("one", "two"):
        picture = bill_chart(name).picture()
        assert not re.findall("#222222|#ffffff|#e6e6e6", picture)
        own = re.findall(r' id="([^"]+)"', picture)
        assert {*re.findall(r'(?:href="|url\()#([^")]+)', picture)} <= {*own}
        ids += own
    assert len(ids) == len(set(ids)) > 0


def test_marks_are_named_on_hover() -> None:
    """A mark of the frontier has the name of its strategy; in files its id is that name."""
    places = ["chosen", "beaten", "broken"]
    rows = pd.DataFrame({"strategy": NAMES, "number": [1, 2, 3], "place": places, "cost": [1.0, 2, 3], "quality": 0.5})
    rows = rows.assign(
        low=0.4, high=0.6, cost_low=rows.cost - 0.5, cost_high=float("nan"), on_frontier=[True, False, False]
    )
    chart = Chart("frontier", "F", "", rows, partial(frontier, up="up", along="along", bounds={"last_turn": 0.1}))
    assert said(chart.picture(), "title") == {*NAMES[:2], "<b> & ·'"}
    assert b'id="strategy: smart(ratio=0.12345)"' in chart.files()[".svg"]
    assert {"chosen", "beaten by another", "bound: last_turn"} <= said(chart.picture(), "text")


def test_a_mark_and_a_colour_mean_one_thing() -> None:
    """No two places share mark and face, nor a colour that the page gives to words; told apart without colours too."""
    drawn = [look for look in PLACES.values() if look.marker]
    assert len({(look.marker, look.face == "white") for look in drawn}) == len(drawn)
    toned = [look for look in drawn if look.tone]
    assert len({look.edge for look in toned}) == len({look.tone for look in toned}) == len(toned)
