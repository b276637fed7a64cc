"""The page: one file, whose scripts and styles are named by their digests, and which asks for nothing else."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..render import count, printable, tokens
from ..results import Results
from .inspector import Inspected
from .section import ReportSection

TEMPLATES = Path(__file__).parent / "templates"
MOST_ROWS = 300
"""Of a table that are in the page."""
MARK = '<meta name="generator" content="ctxbench">'
"""In every report: a file with it is ours, and may be replaced."""


def page(results: Results, sections: Sequence[ReportSection], inspector: Inspected) -> str:
    """The report as HTML. The same run gives the same text."""
    styles = Styles()
    figures = {
        drawn.name: Markup(inline(drawn.files[".svg"], drawn.name, printable(drawn.title), styles))
        for section in sections
        for drawn in section.figures
    }
    style = f"{_file('page.css')}\n{styles.css}\n"
    scripts = [_file(name) for name in ("early.js", "page.js", "fates.js", "inspector.js")]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clean"] = lambda text: printable(str(text))
    return environment.get_template("report.html").render(
        sections=sections,
        figures=figures,
        inspector=inspector,
        strategies=[printable(name) for name in results.strategies],
        style=Markup(style),
        early=Markup(scripts[0]),
        late=Markup("\n".join(scripts[1:])),
        policy=_policy(style, (scripts[0], "\n".join(scripts[1:]))),
        mark=Markup(MARK),
        most=MOST_ROWS,
        **_told(results),
    )


def _told(results: Results) -> Mapping[str, str]:
    """What stands above everything."""
    summary = results.summary
    facts = (
        count(summary.conversations, "conversation"),
        count(summary.messages, "message"),
        count(summary.calls, "model call"),
        f"{tokens(summary.tokens)} tokens of history ({summary.manifest['plan']['encoding']})",
        count(len(results.strategies), "strategy", "strategies"),
    )
    name = printable(results.run.folder.resolve().name)
    return {"name": name, "folder": printable(str(results.run.folder)), "facts": " · ".join(facts)}


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Nothing may be loaded, and nothing run but what is named by its digest."""
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


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
