"""Charts of the page: Vega-Lite specifications with their data, and the library that draws them in the browser.

Vega-Lite, Vega and Vega-Embed come from the wheel of vl-convert, which is pinned, and are packed into the page. Vega
evaluates its expressions by its interpreter, so that the page's policy needs no `unsafe-eval`. The same rows are drawn
by matplotlib for papers (`reports.figures`).
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from markupsafe import escape

from ctxbench.harness.folder.derived import read_derived, write_derived
from ctxbench.harness.folder.files import placed
from ctxbench.harness.folder.run import Run
from ctxbench.scenarios.files import cache_folder
from ctxbench.scenarios.text import printable

from ..figures.frames import PLACES
from ..figures.style import written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Spec = dict[str, object]
"""A Vega-Lite specification, or a part of one."""

MOST_LINES = 8
"""Strategies of a chart of lines: there are no more colours that can be told apart."""

# Name of a chart of one line per strategy.
_LINES = "lines"
_VERSION = "6.4"
_LIBRARY = "window.embed = vegaEmbed;"
# A chart without scripts is drawn at this width, in CSS pixels.
_WIDTH = 640
# Name of the table of pictures that is kept beside a run.
_STILLS = "stills"
# Points of a line in the page, and in a picture without scripts: more cannot be seen.
_MOST_POINTS, _STILL_POINTS = 120, 32
# Colours of charts without scripts; `charts.js` has them for a light and a dark page.
_COLOURS = ("#0072b2", "#c74a00", "#00785a", "#a8437f", "#946200", "#6a51a3", "#4d4d4d", "#17869c")
_CONFIG: Spec = {
    "font": "Liberation Sans, Arial, sans-serif",  # vl-convert has the first, so it measures alike everywhere
    "background": None,
    "view": {"stroke": None},
    "point": {"opacity": 1},
    "range": {"category": list(_COLOURS)},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "tickCount": 6},
    "legend": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "orient": "bottom",
        "symbolOpacity": 1,
        "columns": 2,
        "labelLimit": 280,
    },
}


@dataclass(frozen=True)
class Chart:
    """A picture with its caption: rows, how the page draws them, and how matplotlib does."""

    name: str
    """Anchor in the page, and name of its files without an ending."""
    title: str
    about: str
    """Caption: what the chart shows, for reading it and for people who cannot see it."""
    rows: pd.DataFrame
    """Rows that are drawn. The reader chooses among them by their columns `strategy` and `model`."""
    spec: Spec
    """Vega-Lite, without data and width."""
    draw: Callable[[], Figure]

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The figure by matplotlib in every format, by file ending."""
        return written(self.draw())

    def data(self, order: Sequence[str]) -> dict[str, object]:
        """Return what the browser needs: the specification and the columns, strategies in the given order."""
        rows = _thinned(_ordered(self.rows, order), _MOST_POINTS) if self._most else _ordered(self.rows, order)
        columns = {str(name): [_cell(value) for value in column.tolist()] for name, column in rows.items()}
        return {"spec": self.spec, "columns": columns, "most": self._most}

    @property
    def _most(self) -> int | None:
        """Strategies that are drawn at once, at most."""
        return MOST_LINES if self.spec.get("name") == _LINES else None

    def still(self, order: Sequence[str], model: str) -> Spec:
        """Return the specification of a picture for a page without scripts: the first strategies under one model."""
        rows = _ordered(self.rows, order)
        if "model" in rows:
            rows = rows[rows.model == model]
        if self._most:
            rows = rows[rows.strategy.isin(list(dict.fromkeys(rows.strategy))[: self._most])]
            rows = _thinned(rows, _STILL_POINTS)
        values = [{name: _cell(value) for name, value in row.items()} for row in rows.to_dict("records")]
        return {**_without_hover(self.spec), "width": _WIDTH, "data": {"values": values}, "config": _CONFIG}


def stills(run: Run, charts: Sequence[Chart], order: Sequence[str], model: str) -> dict[str, str]:
    """Return the charts by name as SVG for a page without scripts.

    They are kept beside the run: drawing takes a second.
    """
    import vl_convert

    specs = {chart.name: chart.still(order, model) for chart in charts}
    origin = sha256(msgspec.json.encode([version("vl-convert-python"), _VERSION, specs])).hexdigest().encode()
    known = read_derived(run, _STILLS, ("svg",), origin)
    if known is None:
        known = pa.table({"svg": [vl_convert.vegalite_to_svg(spec, _VERSION) for spec in specs.values()]})
        write_derived(run, _STILLS, known, origin)
    pictures = known.column("svg").to_pylist()
    return {chart.name: _embedded(svg, chart.name, chart.title) for chart, svg in zip(charts, pictures, strict=True)}


def _without_hover(spec: Spec) -> Spec:
    """Return a specification without what answers to a pointer: the marks on lines, and fading the other lines."""
    layers = spec.get("layer")
    if not isinstance(layers, list):
        return spec
    still = [{**layer, "encoding": {**layer["encoding"]}} for layer in layers if "params" not in layer]
    for layer in still:
        if layer["encoding"].pop("opacity", None):
            # Without the marks, nothing but the lines and their dashes is left to be named.
            layer["encoding"]["strokeDash"] = {**layer["encoding"]["color"]}
    return {**spec, "layer": still}


def _ordered(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Return rows sorted by strategy in an order; the order within one stays."""
    if "strategy" not in rows:
        return rows
    places = {name: at for at, name in enumerate(order)}
    return rows.sort_values("strategy", key=lambda names: names.map(places).fillna(len(order)), kind="stable")


def _thinned(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return at most so many points of each line, the first and the last among them."""
    keys = [name for name in ("model", "strategy") if name in rows]

    def some(line: pd.DataFrame) -> pd.DataFrame:
        return line.iloc[np.unique(np.linspace(0, len(line) - 1, min(most, len(line))).round().astype(int))]

    lines = [some(line) for _, line in rows.groupby(keys, sort=False)]
    return pd.concat(lines) if lines else rows


def _cell(value: object) -> object:
    """Return a value for JSON: four digits can be seen, and a missing number is null."""
    match value:
        case float():
            return float(f"{value:.4g}") if value == value and abs(value) != float("inf") else None
        case str():
            return printable(value)
        case _:
            return value


# A tag, whatever its attributes have between quotation marks.
_TAG = re.compile(r'<(?:"[^"]*"|[^">])*>')
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_CLIP = re.compile(r'(id="|url\(#)(clip|gradient)')
# Words for each mark, and what is so by default: the title and the table beside it say as much.
_SPARE = re.compile(r' (xmlns(:xlink)?|aria-[a-z]+|role|pointer-events|opacity="1|stroke-opacity="1)(="[^"]*)?"')


def _embedded(svg: str, name: str, title: str) -> str:
    """Return SVG as an element of the page: numbers with one decimal, and ids that no other chart has."""

    def lean(tag: re.Match[str]) -> str:
        text = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}", _SPARE.sub("", tag[0]))
        return _CLIP.sub(rf"\1{name}-\2", text)

    return _TAG.sub(lean, svg).replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def packed(charts: Iterable[Chart], order: Sequence[str]) -> str:
    """Return the data of charts by name: JSON, deflated, in base64."""
    return pack(msgspec.json.encode({chart.name: chart.data(order) for chart in charts}))


def pack(data: bytes) -> str:
    """Return bytes deflated, in base64."""
    return b64encode(zlib.compress(data, 9)).decode()


@cache
def library() -> str:
    """Return the JavaScript that draws charts. Bundling it takes a second, so it is kept in the user's cache folder."""
    import vl_convert

    file = (
        cache_folder() / f"charts-{vl_convert.get_vega_version()}-{_VERSION}-{vl_convert.get_vega_embed_version()}.js"
    )
    try:
        digest, _, bundle = file.read_text(encoding="utf-8").partition("\n")
        if digest == sha256(bundle.encode()).hexdigest():
            return bundle
    except (OSError, ValueError):
        pass  # not there yet, or damaged: it is made anew
    bundle = vl_convert.javascript_bundle(_LIBRARY, _VERSION)
    with suppress(OSError), placed(file) as draft:  # a folder that cannot be written costs a second each time
        draft.write_text(f"{sha256(bundle.encode()).hexdigest()}\n{bundle}", encoding="utf-8")
    return bundle


def field(name: str, title: str | None, kind: str = "quantitative", **more: object) -> Spec:
    """Return an encoding of a column."""
    return {"field": name, "type": kind, "title": title, **more}


def tips(**titles: str) -> list[Spec]:
    """Return what is shown on hover: columns with their titles. A title that ends with %, $ or # names the format."""
    shown: list[Spec] = []
    for name, title in titles.items():
        kind = {"%": ".1%", "$": "$,.4~f", "#": ",.4~r"}.get(title[-1])
        shown.append({"field": name, "title": title.rstrip("%$# "), **({"format": kind} if kind else {})})
    return shown


SHARE: Spec = {"format": ".0%"}
"""Axis of shares."""
SHORT: Spec = {"format": "~s"}
"""Axis of counts: 500 · 25k · 1.5M."""
_ROW = 20


def lines(x: Spec, y: Spec, tooltip: list[Spec], *extra: Spec, by: str = "strategy") -> Spec:
    """Return a chart of one line per strategy (or per another column), and more layers behind it."""
    colour = field(by, None, "nominal", sort=None)
    unnamed: Spec = {**colour, "legend": None}  # the legend of colours names them
    hover: Spec = {
        "name": "hover",
        "select": {"type": "point", "fields": [by], "on": "pointerover", "clear": "pointerout"},
    }
    encoding: Spec = {
        "x": x,
        "y": y,
        "color": colour,
        "opacity": {"condition": {"param": "hover", "value": 1}, "value": 0.25},
        "tooltip": tooltip,
    }
    line: Spec = {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {**encoding, "strokeDash": unnamed}}
    marks: Spec = {
        "params": [hover],
        "mark": {"type": "point", "filled": True, "size": 26},
        "encoding": {**encoding, "shape": unnamed},
    }
    return {"name": _LINES if by == "strategy" else by, "height": 300, "layer": [*extra, line, marks]}


def rule(value: float) -> Spec:
    """Return a line across a chart at a value of y."""
    return {"mark": {"type": "rule", "color": "#8a8f98", "strokeDash": [2, 3]}, "encoding": {"y": {"datum": value}}}


def bars(x: Spec, part: str, tooltip: list[Spec], parts: Sequence[str]) -> Spec:
    """Return a chart of one stacked bar per strategy, in parts of a column."""
    return {
        "height": {"step": _ROW},
        "mark": {"type": "bar"},
        "encoding": {
            "y": field("strategy", None, "nominal", sort=None),
            "x": x,
            "color": field(part, None, "nominal", scale={"domain": list(parts)}),
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": tooltip,
        },
    }


def intervals(x: Spec, low: str, high: str, tooltip: list[Spec], *extra: Spec, by: str = "strategy") -> Spec:
    """Return a chart of one point with an interval per strategy (or per another column)."""
    y = field(by, None, "nominal", sort=None)
    ends = {"x": {**x, "field": low}, "x2": {"field": high}}
    return {
        "height": {"step": _ROW},
        "layer": [
            *extra,
            {"mark": {"type": "rule"}, "encoding": {"y": y, **ends, "color": {"value": "#8a8f98"}, "tooltip": tooltip}},
            {"mark": {"type": "point", "filled": True, "size": 60}, "encoding": {"y": y, "x": x, "tooltip": tooltip}},
        ],
    }


def frontier(quality: str) -> Spec:
    """Return the chart of quality by cost: marks with intervals, the line of the frontier, and names along it.

    Columns: strategy, place (one of PLACES), cost, cost_low, cost_high, quality, low, high.
    """
    x = field("cost", "bill in US dollars (lower is better)", axis={"format": "$,.4~r"})
    y = field("quality", f"{quality} (higher is better)", scale={"zero": False}, axis=SHARE)
    best = [{"filter": {"field": "place", "equal": PLACES[0]}}]
    colour = field("place", None, "nominal", scale={"domain": list(PLACES)})
    shown = tips(strategy="strategy", place="verdict", cost="bill $", quality=f"{quality} %")
    shown += tips(low="95 % from %", high="to %", model="billed under")
    faint: Spec = {"type": "rule", "opacity": 0.35}
    up: Spec = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    across: Spec = {"y": y, "x": {**x, "field": "cost_low"}, "x2": {"field": "cost_high"}, "color": colour}
    return {
        "height": 380,
        "layer": [
            {"mark": faint, "encoding": up},
            {"mark": faint, "encoding": across},
            {
                "transform": best,
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y, "color": {"value": _COLOURS[0]}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90},
                "encoding": {"x": x, "y": y, "color": colour, "shape": {**colour}, "tooltip": shown},
            },
            {
                "transform": best,
                "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 7, "dy": -5, "fontSize": 12},
                "encoding": {"x": x, "y": y, "text": {"field": "strategy"}},
            },
        ],
    }
