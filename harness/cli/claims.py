"""`ctxbench claims`: what the design documents claim, measured."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..claims.claim import Claim, Finding
    from ..folder.run import Run


RUNS = Path("runs")
SCENARIO = "standard"


def claims(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="The run folder.",
            show_default="the newest run of `standard` under runs/; else what is needed is run",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="C05", help="Measure this claim only; repeat it.", show_default="all")
    ] = None,
    recordings: Annotated[
        list[str] | None,
        typer.Option(
            "--recordings", "-r", metavar="PATH", help="Recordings for the claims that can use them; repeat it."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes most of a minute each: hybrid scores, large indexes.")
    ] = False,
    slow: Annotated[
        bool, typer.Option("--slow", help="Build the index of a million vectors as well: a quarter of an hour, 3 GiB.")
    ] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Show every setting that was measured.", show_default="with --only")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", "-m", help="Write Markdown to this file; - is standard output.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print exact figures as JSON; those of the clock stand apart.")
    ] = False,
) -> None:
    """Measure the design documents' claims by their protocols: each holds, fails, or cannot be told, and why.

    The verdict is by the 95 % interval, never by a point. Strategies that the run has not are run on its conversations.
    All claims measured, they are kept in the run's folder, and `ctxbench report` shows them.
    """
    from ...reports.claims import as_json as exact
    from ...reports.claims import tables
    from ...scenarios.errors import UserError
    from ..claims.registry import chosen
    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    if quick and slow:
        raise UserError("give --quick or --slow, not both")
    wanted = chosen(only or ())
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder, redirect_stdout(sys.stderr):
        found = _measured(wanted, run, Path(folder), recordings or [], quick, slow, keep=not only)
    if as_json:
        print_json(exact(found))
    elif markdown is not None:
        write_markdown(tables(found, True), markdown)
    else:
        print_tables(tables(found, rows or bool(only)))


def _measured(
    wanted: list[Claim], run: Path | None, folder: Path, recordings: list[str], quick: bool, slow: bool, *, keep: bool
) -> list[Finding]:
    from ..claims.inputs import ClaimInputs
    from ..claims.registry import write
    from ..folder.contexts import rows_of
    from .progress import counting
    from .streams import say

    strategies = tuple(dict.fromkeys(each for claim in wanted for each in claim.strategies))
    own = _own(run)
    opened = partial(_opened, own, folder, strategies)
    inputs = ClaimInputs(opened, rows_of, folder, strategies, tuple(recordings), quick, slow)
    for note in inputs.notes if inputs.recorded else ():
        say(note)
    found = []
    with counting(len(wanted), "claims") as done:
        for claim in wanted:
            found.append(claim.found(inputs))
            done()
    if keep and own is not None:
        say(f"kept: {write(inputs.run, found, quick, recordings)}")
    return found


def _own(named: Path | None) -> Path | None:
    """The user's run that is meant; None if there is none."""
    from ..folder.run import load
    from .arguments import chosen
    from .streams import say

    if named is not None:
        return load(chosen(named)).folder  # what is wrong with it is said before anything is measured
    newest = _newest()
    if newest is not None:
        say(f"{newest}: the newest run of {SCENARIO} in {RUNS}")
    return newest


def _opened(own: Path | None, folder: Path, strategies: tuple[str, ...]) -> Run:
    """The user's run; else one of what is needed, which is removed again."""
    from ..engine.plan import Plan, execute
    from ..engine.plan import RunInputs as Named
    from ..folder.run import load
    from .progress import watching
    from .streams import say

    if own is not None:
        return load(own)
    say(f"no run of {SCENARIO} in {RUNS}: running what is needed")
    with watching() as watcher:
        execute(Plan(Named((SCENARIO,)), strategies or ("none",)), folder / SCENARIO, watcher=watcher)
    return load(folder / SCENARIO)


def _newest() -> Path | None:
    from ...scenarios.errors import RunError
    from ..folder.store import read_manifest

    for path in sorted(RUNS.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            manifest = read_manifest(path.parent)
        except RunError:
            continue
        if manifest["complete"] and list(manifest["plan"]["names"]) == [SCENARIO]:
            return path.parent
    return None
