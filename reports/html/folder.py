"""The report as files: report.html, report.md, tables/ as CSV, and if asked figures/ as SVG and PNG.

Files of an earlier report are replaced; nothing else in the folder is touched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ctxbench.harness.folder.files import placed
from ctxbench.scenarios.errors import RunError

from ..render import Table, as_csv, line, markdown
from ..results import Results
from .inspector import inspected
from .page import MARK, ReportSection, page
from .sections import sections

_ENDINGS = {"figures": (".svg", ".png"), "tables": (".csv",)}


def write(results: Results, folder: Path, *, figures: bool = False) -> Path:
    """Write the report of a run, and with `figures` its charts; return the page. Raises RunError if it cannot."""
    check(folder, figures=figures)
    data = results.kept(f"report, figures {figures}", lambda: msgspec.msgpack.encode(_files(results, figures=figures)))
    files = msgspec.msgpack.decode(data, type=dict[str, bytes])
    try:
        _clear(folder)
        for name, data in files.items():
            with placed(folder / name) as draft:
                draft.write_bytes(data)
    except OSError as error:
        raise _unwritable(folder, error) from None
    return folder / "report.html"


def _files(results: Results, *, figures: bool) -> dict[str, bytes]:
    shown = list(sections(results))
    files = {
        "report.html": page(results, shown, inspected(results)).encode(),
        "report.md": as_markdown(results, shown, figures=figures).encode(),
    }
    for section in shown:
        files |= {f"tables/{name}.csv": as_csv(frame).encode() for name, frame in section.frames.items()}
        for chart in section.charts if figures else ():
            files |= {f"figures/{chart.name}{ending}": data for ending, data in chart.files().items()}
    return files


def check(folder: Path, *, figures: bool = False) -> None:
    """Raise RunError if a report cannot be written there, before any work is done for it."""
    try:
        for name in ("", "tables", *(["figures"] if figures else ())):
            (folder / name).mkdir(parents=True, exist_ok=True)
            if not os.access(folder / name, os.W_OK):
                raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> RunError:
    return RunError(f"{folder}: cannot be written: {error.strerror or error}: name another folder with --out")


def _clear(folder: Path) -> None:
    """Remove the figures and tables of an earlier report, where there is one: this run may not have all of them."""
    old = folder / "report.html"
    if not old.is_file() or MARK.encode() not in old.read_bytes()[:4096]:
        return
    for name, endings in _ENDINGS.items():
        for path in (folder / name).iterdir() if (folder / name).is_dir() else ():
            if path.suffix in endings and path.is_file():
                path.unlink()


def as_markdown(results: Results, report_sections: Sequence[ReportSection], *, figures: bool) -> str:
    """Return the report as Markdown, with links to the figures beside it where they are written."""
    parts = [f"# {line(results.run.folder.resolve().name)}\n"]
    for section in report_sections:
        parts += [f"## {line(section.title)}\n", f"{line(section.lead)}\n"]
        for part in section.parts:
            if isinstance(part, Table):
                parts.append(markdown([part], level=3))
            elif figures:
                parts += [
                    f"### {line(part.title)}\n",
                    f"![{line(part.title)}](figures/{part.name}.svg)\n",
                    f"{line(part.about)}\n",
                ]
    return "\n".join(parts)
