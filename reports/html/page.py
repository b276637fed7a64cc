"""The page: one file, whose scripts and styles are named by their digests, and which asks for nothing else."""

from __future__ import annotations

import hashlib
import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..figures.style import written
from ..render import Table, count, printable, tokens
from ..results import Results
from .inspector import Inspected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"
MARK = '<meta name="generator" content="ctxbench">'
"""Stands in every report: a file with it is ours, and may be replaced."""

# Rows of a table that are in the page.
_MOST_ROWS = 300


@dataclass(frozen=True)
class InlineFigure:
    """A figure with its caption, drawn on first use."""

    name: str
    """Name of its files, without an ending."""
    title: str
    about: str
    """Caption: what the figure shows, for reading it and for people who cannot see it."""
    draw: Callable[[], Figure]

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The figure in every format, by file ending."""
        return written(self.draw())


@dataclass(frozen=True)
class ReportSection:
    """Part of the report with a title."""

    name: str
    """Anchor of links to it; unique."""
    title: str
    lead: str
    """The question of the section and how to read the answer."""
    parts: tuple[Table | InlineFigure, ...] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Exact figures, each written as a CSV file of that name."""
    template: str = "section.html"

    @property
    def figures(self) -> list[InlineFigure]:
        """Figures among its parts."""
        return [part for part in self.parts if isinstance(part, InlineFigure)]


@cache
def texts() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the words of the report: by `sections` or `figures`, then by name, the title, lead and caption."""
    return tomllib.loads(_file("texts.toml"))


def section_of(
    name: str,
    parts: Sequence[Table | InlineFigure],
    frames: Mapping[str, pd.DataFrame] | None = None,
    *,
    lead: str = "",
    template: str = "section.html",
) -> ReportSection:
    """Return the section of a name with its title and lead from `texts`; `lead` replaces the latter."""
    words = texts()["sections"][name]
    return ReportSection(name, words["title"], lead or words["lead"], tuple(parts), frames or {}, template)


def figure_of(name: str, draw: Callable[[], Figure], **values: str) -> InlineFigure:
    """Return the figure of a name with its title and caption from `texts`, their {braces} filled with the values."""
    words = texts()["figures"][name]
    return InlineFigure(name, words["title"].format(**values), words["about"].format(**values), draw)


def page(results: Results, sections: Sequence[ReportSection], inspector: Inspected) -> str:
    """Return the report as HTML. The same run gives the same text."""
    styles = Styles()
    figures = {
        drawn.name: Markup(inline(drawn.files[".svg"], drawn.name, printable(drawn.title), styles))
        for section in sections
        for drawn in section.figures
    }
    style = f"{_file('page.css')}\n{styles.css}\n"
    scripts = [_file(name) for name in ("early.js", "page.js", "diff.js", "inspector.js")]
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
        most=_MOST_ROWS,
        **_heading(results),
    )


def _heading(results: Results) -> Mapping[str, str]:
    """Return what stands above the sections: the name of the run, its folder and its sizes."""
    summary = results.summary
    facts = (
        count(summary.conversations, "conversation"),
        count(summary.messages, "message"),
        count(summary.calls, "model call"),
        f"{tokens(summary.tokens)} tokens of history ({summary.manifest.plan.encoding})",
        count(len(results.strategies), "strategy", "strategies"),
    )
    name = printable(results.run.folder.resolve().name)
    return {"name": name, "folder": printable(str(results.run.folder)), "facts": " · ".join(facts)}


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return a content policy that loads nothing and runs only what it names by digest."""
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
# Colours of `figures.style` that differ on a dark page.
_THEME_COLOURS = {
    "#222222": "var(--ink)",
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "white": "var(--paper)",
    "#e6e6e6": "var(--grid)",
    "#bbbbbb": "var(--faint)",
}
_COLOUR = re.compile("|".join(_THEME_COLOURS))


class Styles:
    """Styles of all figures of a page, each once."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def name(self, style: str) -> str:
        """Return the class for a style."""
        style = _FONT.sub("var(--sans)", _COLOUR.sub(lambda match: _THEME_COLOURS[match[0]], style))
        return self._classes.setdefault(style, f"f{len(self._classes)}")

    @property
    def css(self) -> str:
        """Style sheet of the classes."""
        return "\n".join(f".{name} {{ {style} }}" for style, name in self._classes.items())


def inline(svg: bytes, name: str, title: str, styles: Styles) -> str:
    """Return an SVG file as an element of HTML. Its ids begin with its name, so that no two figures share one."""
    root = ElementTree.fromstring(svg)
    for tag in ("metadata", "defs"):
        for child in root.findall(_SVG + tag):
            if tag == "metadata" or child.find(_SVG + "style") is not None:
                root.remove(child)
    used = {target for element in root.iter() for target in _targets(element)}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        _plain(element, name, used, styles)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": title, "class": "drawn"})
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _targets(element: ElementTree.Element) -> list[str]:
    """Return the ids that an element refers to."""
    return _REFERENCE.findall(element.get(_HREF, "") + element.get("clip-path", ""))


def _plain(element: ElementTree.Element, name: str, used: set[str], styles: Styles) -> None:
    """Rewrite the attributes of an element for the page, numbers with one decimal: more cannot be seen."""
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
            attributes[key] = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}", attributes[key]).replace("\n", "")
    element.tail = None
    if element.text and not element.text.strip():
        element.text = None
