"""The page: one file, whose scripts and styles are named by their digests, and which asks for nothing else."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..results import Results
from ..words import count, printable, tokens
from .inline import Styles, inline
from .inspected import Inspected
from .section import Section

TEMPLATES = Path(__file__).parent / "templates"
MOST_ROWS = 300
"""Of a table that are in the page."""
MARK = '<meta name="generator" content="ctxbench">'
"""In every report: a file with it is ours, and may be replaced."""


def page(results: Results, sections: Sequence[Section], inspector: Inspected) -> str:
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
