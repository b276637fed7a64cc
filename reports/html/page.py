"""The page: one file, whose scripts and styles are named by their digests, and which asks for nothing else."""

from __future__ import annotations

import hashlib
import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ctxbench.harness.answers.figures import WHOLE
from ctxbench.harness.folder.schema import with_recipe_names
from ctxbench.harness.folder.store import packed
from ctxbench.metrics.figures import BILLED, METRICS, OWN
from ctxbench.scenarios.errors import printable

from ..figures.frontier import PLACES
from ..figures.style import FAINT, GRID, INK, style, written
from ..render import Table, count
from ..results import Results, remembered
from ..tables import sizes
from ..verdict import in_order, verdict
from .inspector import Inspected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"
MARK = '<meta name="generator" content="ctxbench">'
"""Stands in every report: a file with it is ours, and may be replaced."""

# Rows of a table that are in the page.
_MOST_ROWS = 300
# Pixels of the page for a point of a figure: its smallest letters, of 7 points, are then above 11 pixels.
_SCALE = 1.6
# Pixels of the widest figure that shrinks with its column: a wider one would shrink to letters too small to read.
_FITTING = 760
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
_NUMBER = re.compile(r"-?(?<!\d)\d+\.\d{2,}")
_ADDRESS = re.compile(r"(<function \S+) at 0x\w+")  # another in each process
_LINK = re.compile(r"(^|url\()#")


@dataclass(frozen=True)
class Chart:
    """A picture with its caption, drawn by matplotlib; in the page it takes the colours of the page."""

    name: str  # anchor in the page, and name of its files without an ending
    title: str
    about: str  # caption: what the chart shows, for reading it and for people who cannot see it
    rows: pd.DataFrame
    drawing: Callable[[pd.DataFrame], Figure]
    narrow: Callable[[pd.DataFrame], Figure] | None = None  # draws it for a page as narrow as a telephone

    def draw(self) -> Figure:
        """Draw the rows."""
        with style():
            return self.drawing(self.rows)

    @cached_property
    def _drawn(self) -> tuple[Figure, bytes]:
        drawn = self.draw()
        return drawn, written(drawn, ".svg")

    def files(self) -> dict[str, bytes]:
        """Return the figure in every format, by file ending."""
        drawn, svg = self._drawn
        return {".svg": svg, ".png": written(drawn, ".png")}

    def picture(self) -> Markup:
        """Return the figure as an element of the page, without styles (its policy); ids begin with the chart's name.

        A chart of another report that had the same rows is not drawn again.
        """
        look = _ADDRESS.sub(r"\1", repr((self.name, self.title, self.drawing, self.narrow)))
        rows = packed({"rows": pa.Table.from_pandas(self.rows)})
        return Markup(remembered(lambda: self._element().encode(), look, rows).decode())

    def _element(self) -> Markup:
        root = ElementTree.fromstring(self._drawn[1])
        wide, high = (round(float(size) * _SCALE) for size in root.attrib["viewBox"].split()[2:])
        for outside in ("metadata", "defs"):
            root.remove(root.find(f"{{*}}{outside}"))  # type: ignore[arg-type]
        for element in list(root.iter()):
            self._embed(element)
        _ungroup(root)
        root.attrib = {"viewBox": root.attrib["viewBox"], "width": str(wide), "height": str(high), "role": "img"}
        root.attrib["aria-label"] = self.title
        if wide <= _FITTING:
            root.attrib["class"] = "fits"
        picture = Markup(ElementTree.tostring(root, encoding="unicode"))
        if self.narrow is None:
            return picture
        narrow = replace(self, name=f"{self.name}-narrow", drawing=self.narrow, narrow=None)._element()
        return Markup('<div class="if-wide">{}</div><div class="if-narrow">{}</div>').format(picture, narrow)

    def _embed(self, element: ElementTree.Element) -> None:
        """Change an element of a figure to one of the page."""
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        if element.tag not in ("text", "tspan"):
            element.text = None
        found = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        name = found.pop("id", "")
        if element.tag in ("path", "clipPath"):
            found |= {"id": f"{self.name}-{name}"} if name else {}
        for key in found.keys() & {"href", "clip-path"}:
            found[key] = _LINK.sub(rf"\1#{self.name}-", found[key])
        for rule in filter(None, found.pop("style", "").split("; ")):
            key, _, value = rule.partition(": ")
            if key != "font-family" and rule != "stroke-linejoin: miter":  # the page has its font, and miters by itself
                found[key] = _COLOURS.get(value, value)
        for key in found.keys() & _PLACES:
            found[key] = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}", " ".join(found[key].split()))
        if found.get("transform", "").startswith("rotate(-0 "):
            del found["transform"]
        if found.get("stroke") == _COLOURS[GRID.lower()]:  # a straight line, which ends where the axes end
            del found["clip-path"], found["fill"]
        element.attrib = found


def _ungroup(element: ElementTree.Element) -> None:
    """Put the elements of groups that say nothing, which are half of a figure's, into what the groups are in."""
    for child in element:
        _ungroup(child)
    element[:] = [part for child in element for part in (child if child.tag == "g" and not child.attrib else [child])]


@dataclass(frozen=True)
class ReportSection:
    """Part of the report with a title."""

    name: str  # anchor of links to it; unique
    title: str
    lead: str  # question of the section, and how to read its answer
    parts: tuple[Table | Chart, ...] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Exact figures, each written as a CSV file of that name."""
    tab: str = "method"  # name of the tab that it stands in
    under: Mapping[str, ReportSection] = field(default_factory=dict)
    """The section under each other model, for the reader of the page who chooses that model."""

    @property
    def charts(self) -> list[Chart]:
        """Charts among its parts."""
        return [part for part in self.parts if isinstance(part, Chart)]


@cache
def texts() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the words of the report: by `tabs`, `sections` or `figures`, then by name, the title, lead and caption."""
    return tomllib.loads(_file("texts.toml"))


def section_of(
    name: str, parts: Iterable[Table | Chart], frames: Mapping[str, pd.DataFrame] | None = None, lead: str = ""
) -> ReportSection:
    """Return the section of a name with its title, tab and lead from `texts`; `lead` replaces the latter.

    In the place of a chart without rows stands why there is nothing to draw. Frames without rows are left out.
    """
    words = texts()["sections"][name]
    shown = tuple(part if isinstance(part, Table) or not part.rows.empty else left_out(part.name) for part in parts)
    exact = {key: frame for key, frame in (frames or {}).items() if not frame.empty}
    return ReportSection(name, words["title"], lead or words["lead"], shown, exact, words["tab"])


def left_out(name: str) -> Table:
    """Return what stands in the place of a chart that the run has no rows for: why, in one line."""
    words = texts()["figures"][name]
    return Table(words["title"], (), (), (words["empty"],))


def chart_of(name: str, rows: pd.DataFrame, drawing: Callable[[pd.DataFrame], Figure], **values: str) -> Chart:
    """Return the chart of a name with its title and caption from `texts`, their {braces} filled with the values."""
    words = texts()["figures"][name]
    return Chart(name, words["title"].format(**values), words["about"].format(**values), rows, drawing)


def page(results: Results, sections: Sequence[ReportSection], inspector: Inspected, again: int = 0) -> str:
    """Return the report as HTML. The same run gives the same text.

    Strategies stand in the order of the verdict; the inspector opens on the first but for `none`. `again` is after how
    many seconds the page of a run that goes on reloads itself.
    """
    order = list(map(_clean, in_order(verdict(results))))
    there = {section.name for section in sections}
    tabs = [
        {
            "name": name,
            "title": words["title"],
            "empty": words["empty"],  # stands there where the run has no section for the tab
            "sections": [section for section in sections if section.tab == name],
            "absent": [
                section["absent"]
                for key, section in texts()["sections"].items()
                if section["tab"] == name and key not in there and "absent" in section
            ],
        }
        for name, words in texts()["tabs"].items()
    ]
    facts = (*sizes(results.summary), count(len(results.strategies), "strategy", "strategies"))
    return rendered(
        "report.html",
        {"early": ("early.js",), "late": ("state.js", "page.js", "tables.js", "diff.js", "inspector.js")},
        name=printable(results.run.folder.resolve().name),
        folder=printable(results.run.name),
        facts=" · ".join(facts),
        again=again,
        tabs=tabs,
        inspector=inspector,
        first=next((name for name in order if name != WHOLE), WHOLE),
        models=[printable(name) for name in results.models],
        strategies=order,
        replayed=[_clean(name) for name in results.strategies],
        mark=Markup(MARK),
    )


# Colours of cells that say how something turned out, by their first words.
_TONES = {
    "holds": "good",
    "passes": "good",
    "fails": "bad",
    "cannot tell": "unsure",
    "not measured": "unsure",
    **{look.words: look.tone for look in PLACES.values() if look.tone},
}


def rendered(
    template: str, files: Mapping[str, Sequence[str]] | None = None, *, forms: str = "none", **values: Any
) -> str:
    """Return a page by its template: whatever a text says is text. `forms` says whom a form may ask.

    The policy loads nothing, and runs only scripts, made of `files`, that it names by digest.
    """

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    def tone(cell: str) -> str:
        return next((tone for words, tone in _TONES.items() if cell.startswith(words)), "")

    options = {"autoescape": True, "undefined": StrictUndefined, "keep_trailing_newline": True}
    environment = Environment(loader=FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True, **options)  # type: ignore[arg-type]
    environment.filters |= {"clean": _clean, "tone": tone}
    # By the display name of each metric, as heads of tables have it, its key and its meaning.
    meanings = {metric.name: (key, metric.about) for key, metric in {**BILLED, **METRICS, **OWN}.items()}
    style, scripts = f"{_file('page.css')}\n", {name: "\n".join(map(_file, of)) for name, of in (files or {}).items()}
    policy = (
        f"default-src 'none'; style-src {digest(style)}; script-src {' '.join(map(digest, scripts.values()))}; "
        f"base-uri 'none'; form-action '{forms}'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    ours = {name: Markup(text) for name, text in {"style": style, **scripts}.items()}
    shown = environment.get_template(template)
    return shown.render(meanings=meanings, most=_MOST_ROWS, policy=policy, **ours, **values)


def _clean(text: object) -> str:
    return printable(with_recipe_names(str(text)))


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
