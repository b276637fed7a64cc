"""The pages of `ctxbench view`: a list of runs, the report of each, and two runs compared. Nothing can be changed.

A page names a run by its folder, and only folders that were given, or stand in one that was given, are looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import time
from traceback import print_exc
from typing import NamedTuple
from urllib.parse import parse_qs, quote

from markupsafe import Markup

from ctxbench.harness.bill.recorded import billed_models
from ctxbench.harness.compare.compare import compare, strategies
from ctxbench.harness.compare.figures import measured
from ctxbench.harness.compare.gate import REST, GatePolicy, MetricPolicy
from ctxbench.harness.folder.run import Run, load, load_so_far
from ctxbench.harness.folder.schema import LEFT_OUT, Manifest
from ctxbench.harness.folder.store import read_manifest, whole_shards
from ctxbench.scenarios.errors import RunError, UserError

from ..compare import tables
from ..render import Table, count
from ..results import Results
from ..verdict import in_order, verdict
from .inspector import inspected
from .page import environment, page, policy, styled
from .sections import sections

# Seconds after which the report of a run that goes on reloads itself.
_AGAIN = 5
# Seconds without a new part after which a run that is not finished counts as stopped.
_STILL = 600


class Response(NamedTuple):
    """An answer to a request."""

    status: HTTPStatus
    body: bytes


class _NotListed(Exception):
    """A folder that is not in the list of runs."""


class ListedRun(NamedTuple):
    """A run of the list."""

    folder: Path
    manifest: Manifest | None
    problem: str
    """Why it cannot be read; empty if it can."""
    changed: float
    """When its manifest was written, in seconds since 1970."""

    @property
    def goes_on(self) -> bool:
        """True if the run is not finished, and something was written into it lately."""
        if self.manifest is None or self.manifest.complete:
            return False
        return time() - max(path.stat().st_mtime for path in (self.folder, *self.folder.iterdir())) < _STILL


class Site:
    """The pages of some runs, each made when it is asked for and kept until its run changes."""

    def __init__(self, folders: Sequence[Path], models: Sequence[str] = (), *, text: bool = True) -> None:
        """Take run folders, and folders of run folders. `models` are those to bill under.

        `text`: whether the pages show texts of the recordings.
        """
        self._folders, self._models, self._text = folders, models, text
        self._pages: dict[Path, tuple[object, bytes]] = {}
        self._making = Lock()

    def runs(self) -> list[ListedRun]:
        """Return the runs that are there now, the newest first."""
        manifests = {path.parent: path for folder in self._folders for path in _manifests(folder)}
        listed = []
        for folder, path in manifests.items():
            try:
                listed.append(ListedRun(folder, read_manifest(folder), "", path.stat().st_mtime))
            except (RunError, OSError) as error:
                listed.append(ListedRun(folder, None, str(error), 0.0))
        return sorted(listed, key=lambda run: (-run.changed, str(run.folder)))

    def respond(self, path: str, query: str = "") -> Response:
        """Return the page at a path below the token."""
        asked = parse_qs(query)
        try:
            match path:
                case "":
                    return self._list()
                case "report":
                    return self._report(self._named(asked, "run"))
                case "compare":
                    return self._compare(self._named(asked, "before"), self._named(asked, "after"))
        except _NotListed:
            return _said(HTTPStatus.NOT_FOUND, "There is no such run here.")
        except (UserError, OSError) as error:
            return _said(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except Exception as error:
            print_exc()  # on the terminal that serves: the page has one line of it
            return _said(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"This is a bug in ctxbench: {type(error).__name__}: {error}"
            )
        return _said(HTTPStatus.NOT_FOUND, "There is no such page here.")

    def _named(self, asked: dict[str, list[str]], name: str) -> ListedRun:
        """Return the run that a query names. Raises _NotListed for a folder that is not in the list."""
        wanted = asked.get(name, [""])[0]
        for run in self.runs():
            if str(run.folder) == wanted:
                return run
        raise _NotListed

    def _list(self) -> Response:
        return _page("Runs", "runs.html", rows=list(map(_row, self.runs())))

    def _report(self, run: ListedRun) -> Response:
        state = _state(run.folder)
        with self._making:
            known, made = self._pages.get(run.folder, (None, b""))
            if known != state:
                made = self._made(load_so_far(run.folder), _AGAIN if run.goes_on else 0)
                self._pages[run.folder] = (state, made)
        return Response(HTTPStatus.OK, made)

    def _made(self, run: Run, again: int) -> bytes:
        results = Results(run, billed_models(run, self._models), text=self._text)
        return page(results, list(sections(results)), inspected(results), in_order(verdict(results)), again).encode()

    def _compare(self, before: ListedRun, after: ListedRun) -> Response:
        one, two = (
            measured(opened, billed_models(opened, self._models))
            for opened in (load(before.folder), load(after.folder))
        )
        if not self._text:
            one, two = (
                replace(side, failed={name: dict.fromkeys(of, LEFT_OUT) for name, of in side.failed.items()})
                for side in (one, two)
            )
        pairs = [(name, name) for name in two.sums if name in one.sums]
        compared = compare(one, two, pairs, GatePolicy({REST: MetricPolicy()}).rule)
        compared = replace(compared, unpaired=(*strategies(one, two), *compared.unpaired))
        found: list[Table] = list(tables(compared, ("before", "after")))
        return _page(f"{after.folder} against {before.folder}", "comparison.html", tables=found)


def _manifests(folder: Path) -> Iterator[Path]:
    """Yield the manifest of a run folder, or those of the runs in a folder."""
    if (folder / "manifest.json").exists():
        yield folder / "manifest.json"
    else:
        yield from sorted(folder.glob("*/manifest.json"))


def _state(folder: Path) -> object:
    """Return what differs whenever something was written into a run."""
    return [(path.name, path.stat().st_mtime_ns) for path in sorted(folder.iterdir()) if path.name != "bills"]


def _row(run: ListedRun) -> dict[str, str]:
    """Return the cells of a run in the list."""
    folder = str(run.folder)
    row = {"folder": folder, "address": quote(folder, safe=""), "problem": run.problem}
    if run.manifest is None:
        return row
    plan = run.manifest.plan
    done = count(run.manifest.conversations, "conversation")
    if not run.manifest.complete:
        parts = count(len(whole_shards(run.folder, len(plan.strategies))), "part")
        stopped = f"stopped: {parts} done; the same `ctxbench run` continues it"
        done = f"goes on: {parts} done" if run.goes_on else stopped
    return {
        **row,
        "changed": f"{datetime.fromtimestamp(run.changed).astimezone():%Y-%m-%d %H:%M}",
        "recordings": ", ".join(plan.names),
        "done": done,
        "strategies": f"{len(plan.strategies):,}",
        "encoding": plan.encoding,
    }


def _said(status: HTTPStatus, text: str) -> Response:
    return Response(status, _page(status.phrase, "said.html", text=text).body)


def _page(title: str, template: str, **values: object) -> Response:
    """Return a page of ours that is no report. It runs no script; its one form may ask this server."""
    style = styled()
    text = (
        environment()
        .get_template(template)
        .render(
            title=title,
            style=Markup(style),
            policy=policy(style, ()).replace("form-action 'none'", "form-action 'self'"),
            **values,
        )
    )
    return Response(HTTPStatus.OK, text.encode())
