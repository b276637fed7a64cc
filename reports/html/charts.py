"""Charts of the report: drawn by matplotlib, in files as they are, and in the page in the colours that it has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pandas as pd
from markupsafe import Markup

from ..figures.frontier import NAMED
from ..figures.style import FAINT, GRID, INK, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Pixels of the page for a point of a figure: its smallest letters, of 7 points, are then above 11 pixels.
_SCALE = 1.6
# Colours that the page has in a light and a dark shade; those that tell things apart are seen on both.
_COLOURS = {
    INK.lower(): "currentColor",
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
    GRID.lower(): "var(--grid)",
    FAINT.lower(): "var(--faint)",
}
# Attributes of coordinates, and a number in them with more decimals than can be seen.
_PLACES = frozenset({"d", "x", "y", "width", "height", "transform"})
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_LINK = re.compile(r"(^|url\()#")


@dataclass(frozen=True)
class Chart:
    """A picture with its caption."""

    name: str
    """Anchor in the page, and name of its files without an ending."""
    title: str
    about: str
    """Caption: what the chart shows, for reading it and for people who cannot see it."""
    rows: pd.DataFrame
    drawing: Callable[[pd.DataFrame], Figure]

    def draw(self) -> Figure:
        """Draw the rows."""
        return self.drawing(self.rows)

    @cached_property
    def _drawn(self) -> Figure:
        return self.draw()

    @cached_property
    def _svg(self) -> bytes:
        return written(self._drawn, ".svg")

    def files(self) -> dict[str, bytes]:
        """Return the figure in every format, by file ending."""
        return {".svg": self._svg, ".png": written(self._drawn, ".png")}

    def picture(self) -> Markup:
        """Return the figure as an element of the page.

        The page's policy allows no styles within it, so they become attributes; its ids begin with the chart's name.
        """
        root = ElementTree.fromstring(self._svg)
        wide, high = (round(float(size) * _SCALE) for size in root.attrib["viewBox"].split()[2:])
        for outside in ("metadata", "defs"):
            root.remove(root.find(f"{{*}}{outside}"))  # type: ignore[arg-type]
        for element in list(root.iter()):
            self._embed(element)
        root.attrib = {"viewBox": root.attrib["viewBox"], "width": str(wide), "height": str(high), "role": "img"}
        root.attrib["aria-label"] = self.title
        return Markup(ElementTree.tostring(root, encoding="unicode"))

    def _embed(self, element: ElementTree.Element) -> None:
        """Change an element of a figure to one of the page."""
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        if element.tag not in ("text", "tspan", "title"):
            element.text = None
        found = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        name = found.pop("id", "")
        if name.startswith(NAMED):
            title = ElementTree.Element("title")
            title.text = name.removeprefix(NAMED)
            element.insert(0, title)
        elif element.tag in ("path", "clipPath"):
            found |= {"id": f"{self.name}-{name}"} if name else {}
        for key in found.keys() & {"href", "clip-path"}:
            found[key] = _LINK.sub(rf"\1#{self.name}-", found[key])
        for rule in filter(None, found.pop("style", "").split("; ")):
            key, _, value = rule.partition(": ")
            if key != "font-family":
                found[key] = _COLOURS.get(value, value)
        for key in found.keys() & _PLACES:
            found[key] = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}", " ".join(found[key].split()))
        if found.get("transform", "").startswith("rotate(-0 "):
            del found["transform"]
        element.attrib = found
