"""A figure of matplotlib as a part of the page: its colours follow the page's, and no style stands in an attribute.

The page's policy allows styles by their digest only. So each style that the figure's elements have becomes a class,
once for the whole page (`Styles`).
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_REFERENCE = re.compile(r"#(\w+)")
_FONT = re.compile(r"'DejaVu Sans'[^;]*")
COLOURS = {
    "#222222": "var(--ink)",
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "white": "var(--paper)",
    "#e6e6e6": "var(--grid)",
    "#bbbbbb": "var(--faint)",
}
"""Colours of `figures.style` that are others on a dark page."""
_COLOUR = re.compile("|".join(COLOURS))


class Styles:
    """The styles of all figures of a page, each once."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def name(self, style: str) -> str:
        """The class for a style."""
        style = _FONT.sub("var(--sans)", _COLOUR.sub(lambda found: COLOURS[found[0]], style))
        return self._classes.setdefault(style, f"f{len(self._classes)}")

    @property
    def css(self) -> str:
        """The classes."""
        return "\n".join(f".{name} {{ {style} }}" for style, name in self._classes.items())


def inline(svg: bytes, name: str, title: str, styles: Styles) -> str:
    """The figure as an element of HTML. Its ids begin with its name: no two figures share one."""
    root = ElementTree.fromstring(svg)
    for each in ("metadata", "defs"):
        for found in root.findall(_SVG + each):
            if each == "metadata" or found.find(_SVG + "style") is not None:
                root.remove(found)
    used = {target for element in root.iter() for target in _targets(element)}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        _plain(element, name, used, styles)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": title, "class": "drawn"})
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _targets(element: ElementTree.Element) -> list[str]:
    """The ids that an element refers to."""
    return _REFERENCE.findall(element.get(_HREF, "") + element.get("clip-path", ""))


def _plain(element: ElementTree.Element, name: str, used: set[str], styles: Styles) -> None:
    """Attributes as the page takes them, with one digit after the point: less is not seen."""
    attributes = element.attrib
    if href := attributes.pop(_HREF, ""):
        attributes["href"] = f"#{name}-{href[1:]}"
    if "clip-path" in attributes:
        attributes["clip-path"] = attributes["clip-path"].replace("#", f"#{name}-")
    own = attributes.pop("id", "")
    if own in used:
        attributes["id"] = f"{name}-{own}"
    if style := attributes.pop("style", ""):
        attributes["class"] = styles.name(style)
    for key in ("d", "x", "y", "transform", "width", "height"):
        if key in attributes:
            attributes[key] = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}", attributes[key]).replace("\n", "")
    element.tail = None
    if element.text and not element.text.strip():
        element.text = None
