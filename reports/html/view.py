"""The pages of `ctxbench view`: a list of runs, the report of each, and runs compared. Nothing can be changed.

A page names a run by its folder, and only folders that were given, or stand in one that was given, are looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import time
from traceback import print_exc
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.compare.compare import compare, on_one_side, usual_rules
from ctxbench.harness.compare.figures import MeasuredRun, measured_by_name
from ctxbench.harness.folder.run import load, load_so_far
from ctxbench.harness.folder.schema import LEFT_OUT, Manifest
from ctxbench.harness.folder.store import read_manifest, whole_shards
from ctxbench.scenarios.errors import RunError, UserError

from ..compare import runs_table, tables
from ..render import count
from ..results import Results
from .inspector import inspected
from .page import page, rendered
from .sections import sections

_AGAIN = 5  # seconds after which the report of a run that goes on reloads itself
_STILL = 600  # seconds without a new part after which a run that is not finished counts as stopped


class Response(NamedTuple):
    """An answer to a request."""

    status: HTTPStatus
    body: bytes


class ListedRun(NamedTuple):
    """A run of the list."""

    folder: Path
    manifest: Manifest | None
    problem: str  # why it cannot be read; empty if it can
    changed: float  # when its manifest was written, in seconds since 1970

    @property
    def goes_on(self) -> bool:
        """True if the run is not finished, and something was written into it lately."""
        if self.manifest is None or self.manifest.complete:
            return False
        return time() - max(path.stat().st_mtime for path in (self.folder, *self.folder.iterdir())) < _STILL

    @property
    def cells(self) -> dict[str, str]:
        """The cells of its row in the list of runs."""
        folder = str(self.folder)
        row = {"folder": folder, "address": quote(folder, safe=""), "problem": self.problem}
        if self.manifest is None:
            return row
        plan = self.manifest.plan
        done = count(self.manifest.conversations, "conversation")
        if not self.manifest.complete:
            parts = count(len(whole_shards(self.folder, len(plan.strategies))), "part")
            stopped = f"stopped: {parts} done; the same `ctxbench run` continues it"
            done = f"goes on: {parts} done" if self.goes_on else stopped
        return {
            **row,
            "changed": f"{datetime.fromtimestamp(self.changed).astimezone():%Y-%m-%d %H:%M}",
            "recordings": ", ".join(plan.names),
            "done": done,
            "strategies": f"{len(plan.strategies):,}",
            "encoding": plan.encoding,
        }


class Site:
    """The pages of some runs, each made when it is asked for and kept until its run changes."""

    def __init__(self, folders: Sequence[Path], models: Sequence[str] = (), *, text: bool = True) -> None:
        """Take run folders and folders of them, models to bill under, and whether recorded texts are shown."""
        self._folders, self._models, self._text = folders, models, text
        self._pages: dict[Path, tuple[object, bytes]] = {}
        self._making = Lock()

    def runs(self) -> list[ListedRun]:
        """Return the runs that are there now, the newest first."""
        listed = []
        for folder in self._folders:
            own = folder / "manifest.json"
            for path in [own] if own.exists() else sorted(folder.glob("*/manifest.json")):
                try:
                    listed.append(ListedRun(path.parent, read_manifest(path.parent), "", path.stat().st_mtime))
                except (RunError, OSError) as error:
                    listed.append(ListedRun(path.parent, None, str(error), 0.0))
        return sorted(listed, key=lambda run: (-run.changed, str(run.folder)))

    def respond(self, path: str, query: str = "") -> Response:
        """Return the page at a path below the token."""
        asked, runs = parse_qs(query), {str(run.folder): run for run in self.runs()}
        named = [runs.get(name) for key in _NAMES.get(path, ()) for name in asked.get(key, [""])]
        known = [run for run in named if run is not None]
        if len(known) < len(named):
            return _said(HTTPStatus.NOT_FOUND, "There is no such run here.")
        try:
            match path:
                case "":
                    return _page("Runs", "runs.html", rows=[run.cells for run in runs.values()])
                case "report":
                    return self._report(known[0])
                case "compare":
                    return self._compare(*known)
        except (UserError, OSError) as error:
            return _said(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except Exception as error:
            print_exc()  # on the terminal that serves: the page has one line of it
            what = f"This is a bug in ctxbench: {type(error).__name__}: {error}"
            return _said(HTTPStatus.INTERNAL_SERVER_ERROR, what)
        return _said(HTTPStatus.NOT_FOUND, "There is no such page here.")

    def _report(self, run: ListedRun) -> Response:
        # What differs whenever something was written into the run.
        paths = [path for path in sorted(run.folder.iterdir()) if path.name != "bills"]
        state = [(path.name, path.stat().st_mtime_ns) for path in paths]
        with self._making:
            known, made = self._pages.get(run.folder, (None, b""))
            if known != state:
                opened = load_so_far(run.folder)
                results = Results(opened, billed_models(opened, self._models), named=self._models, text=self._text)
                again = _AGAIN if run.goes_on else 0
                made = page(results, list(sections(results)), inspected(results), again).encode()
                self._pages[run.folder] = (state, made)
        return Response(HTTPStatus.OK, made)

    def _compare(self, against: ListedRun, *runs: ListedRun) -> Response:
        """Compare runs with the first one, which may be among them: all in one table, then each in full."""
        folders = list(dict.fromkeys(run.folder for run in (against, *runs)))
        first, *others = map(self._measured, folders if len(folders) > 1 else 2 * folders)
        compared = []
        for other in others:
            pairs = [(name, name) for name in other.sums if name in first.sums]
            each = compare(first, other, pairs, usual_rules())
            compared.append(replace(each, unpaired=(*on_one_side("strategy", first, other), *each.unpaired)))
        names = [folder.name if folders[0].parent == folder.parent else str(folder) for folder in folders]
        table = runs_table(compared, names if len(names) > 1 else 2 * names)
        title = f"{count(len(others), 'run')} against {names[0]}"
        return _page(title, "comparison.html", tables=[table, *(part for each in compared for part in tables(each))])

    def _measured(self, folder: Path) -> MeasuredRun:
        run = load(folder)
        side = measured_by_name(run, billed_models(run, self._models))
        if self._text:
            return side
        return replace(side, failed={name: dict.fromkeys(of, LEFT_OUT) for name, of in side.failed.items()})


_NAMES = {"report": ("run",), "compare": ("against", "run")}  # runs that the query of a page names


def _said(status: HTTPStatus, text: str) -> Response:
    return _page(status.phrase, "said.html", status, text=text)


def _page(title: str, template: str, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> Response:
    """Return a page of ours that is no report. It runs no script; its one form may ask this server."""
    return Response(status, rendered(template, forms="self", title=title, **values).encode())
