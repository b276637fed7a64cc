"""Charts as parts of the page: what they say is what the strategies are called, and the page's policy allows them."""

import re
from collections.abc import Sequence
from functools import partial
from math import nan
from xml.etree import ElementTree

import pandas as pd
from matplotlib.text import Text

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


def test_a_picture_has_nothing_that_says_nothing() -> None:
    """Groups without a word are gone, and straight lines of a grid have no clip and no fill: a page stays small."""
    picture = bill_chart().picture()
    assert "<g>" not in picture
    grid = re.findall(r"<path [^>]*var\(--grid\)[^>]*>", picture)
    assert grid
    assert not [line for line in grid if "clip-path" in line or "fill" in line]


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


def test_marks_bounds_and_places_are_named() -> None:
    """In the page all that is named is text that can be found and copied."""
    words = said(frontier_chart(marks(NAMES, [1.0, 2, 3], [0.5] * 3)).picture(), "text")
    assert {*NAMES[:2], "<b> & ·'", "chosen", "beaten by another", "bound: last_turn, 10.0 % ↓"} <= words


def marks(names: Sequence[str], costs: Sequence[float], qualities: Sequence[float]) -> pd.DataFrame:
    """Rows of a frontier whose first strategy is chosen, all with intervals but for the upper end of the cost."""
    rows = pd.DataFrame({"strategy": names, "cost": costs, "quality": qualities, "place": "beaten"})
    rows = rows.assign(low=rows.quality - 0.1, high=rows.quality + 0.1, cost_low=rows.cost - 0.5, cost_high=nan)
    return rows.assign(on_frontier=rows.index == 0, place=["chosen", *rows.place[1:]])


def frontier_chart(rows: pd.DataFrame) -> Chart:
    return Chart("frontier", "F", "", rows, partial(frontier, up="up", along="along", bounds={"last_turn": 0.1}))


def test_every_mark_is_named_beside_it() -> None:
    """In a crowd too each name is text in the picture, once, over no other name and over no mark."""
    names = [f"strategy_{at}(turns={at * 37 % 101})" for at in range(24)]
    rows = marks(names, [50 + at * 7 % 11 + at / 50 for at in range(24)], [0.5 + at * 5 % 13 / 200 for at in range(24)])
    drawn = frontier_chart(rows).draw()
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    labels = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}  # without the lines to marks
    assert {*names} < {*labels}
    assert len(axes.texts) == len(names) + 1, "the bound is named too"
    centres = axes.transData.transform(rows[["cost", "quality"]].to_numpy())
    for name, box in labels.items():
        assert not any(box.overlaps(other) for other in labels.values() if other is not box), name
        assert not any(box.contains(*centre) for centre in centres), name
        assert axes.get_window_extent().count_contains(box.corners()) == 4, name


def test_strategies_in_one_place_share_a_label() -> None:
    """Marks that lie on each other are named together: none hides behind another."""
    drawn = frontier_chart(marks(["a", "b", "c"], [1.0, 1.0, 3.0], [0.5, 0.5, 0.4])).draw()
    assert [text.get_text() for text in drawn.axes[0].texts[1:]] == ["a =\nb", "c"]


def test_intervals_do_not_move_the_axes() -> None:
    """However long an interval is, the marks fill the picture, and a tip says where it goes on."""
    rows = marks(["a", "b"], [30.0, 60.0], [0.5, 0.6])
    long = rows.assign(low=0.0, high=1.0, cost_low=-500.0, cost_high=5000.0)
    short_axes, long_axes = (frontier_chart(each).draw().axes[0] for each in (rows, long))
    assert long_axes.viewLim.extents.tolist() == short_axes.viewLim.extents.tolist()
    assert len(long_axes.lines) - len(short_axes.lines) == 2 * 4 - 2, "the lower ends of cost were inside before"


def test_a_mark_and_a_colour_mean_one_thing() -> None:
    """No two places share mark and face, nor a colour that the page gives to words; told apart without colours too."""
    drawn = [look for look in PLACES.values() if look.marker]
    assert len({(look.marker, look.face == "white") for look in drawn}) == len(drawn)
    toned = [look for look in drawn if look.tone]
    assert len({look.edge for look in toned}) == len({look.tone for look in toned}) == len(toned)
