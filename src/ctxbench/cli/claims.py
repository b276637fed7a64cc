"""`ctxbench lab claims`: the claims about context strategies, measured."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import BriefOption, EmbedderOption, JobsOption, JsonOption, MarkdownOption, ModelOptions, flat
from .replies import report_spending
from .streams import say

if TYPE_CHECKING:
    from ctxbench.harness.claims.claim import Finding
    from ctxbench.harness.claims.registry import Claim
    from ctxbench.harness.folder.run import Run
    from ctxbench.harness.models import Settings


RUNS = Path("runs")
SCENARIO = "standard"


@flat
def claims(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="The run folder.",
            show_default="the newest run of `standard` under runs/, else a temporary one",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="C05", help="Measure this claim only; repeat it.", show_default="all")
    ] = None,
    recordings: Annotated[
        list[str] | None,
        typer.Option("--recordings", "-r", metavar="PATH", help="Recordings for claims that can use them; repeat it."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes about a minute each: hybrid scores, large indexes.")
    ] = False,
    slow: Annotated[
        bool, typer.Option("--slow", help="Also build an index of a million vectors, which takes 15 minutes and 3 GiB.")
    ] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Show every setting that was measured.", show_default="with --only")
    ] = False,
    embedder: EmbedderOption = "offline",
    jobs: JobsOption = 1,
    in_brief: BriefOption = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure each claim by its protocol: it holds, fails, or cannot be told, and why.

    The 95 % interval decides, never a point. Strategies that the run lacks run on its conversations. If all claims are
    measured, they are stored in the run folder and `ctxbench report` shows them. The exit code is 2, after the tables,
    if the embedder gave no usable reply.
    """
    from ctxbench.harness.claims.registry import chosen
    from ctxbench.reports.claims import as_json as exact
    from ctxbench.reports.claims import brief, tables
    from ctxbench.scenarios.errors import UserError

    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    if quick and slow:
        raise UserError("give --quick or --slow, not both")
    settings = reach.settings(embedder=embedder)
    claims_chosen = chosen(only or ())
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder, redirect_stdout(sys.stderr):
        findings, failures = _measured(
            claims_chosen,
            run,
            Path(folder),
            recordings or [],
            quick,
            slow,
            settings,
            jobs or os.cpu_count() or 1,
            keep=not only,
            silent=in_brief,
        )
    if as_json:
        print_json(exact(findings))
    elif markdown is not None:
        write_markdown(tables(findings, True), markdown)
    elif in_brief:
        typer.echo(brief(findings))
    else:
        print_tables(tables(findings, rows or bool(only)))
    report_spending(settings)
    for failure in failures:
        say(f"error: {failure}")
    if failures:
        raise typer.Exit(2)


def _measured(
    claims: list[Claim],
    run: Path | None,
    folder: Path,
    recordings: list[str],
    quick: bool,
    slow: bool,
    settings: Settings,
    jobs: int,
    *,
    keep: bool,
    silent: bool,
) -> tuple[list[Finding], list[str]]:
    """Return the findings, and the models that gave no usable reply."""
    from ctxbench.harness.claims.inputs import ClaimInputs
    from ctxbench.harness.claims.registry import measure, write

    from .progress import counting

    strategies = tuple(dict.fromkeys(name for claim in claims for name in claim.strategies))
    own = _user_run(run)
    opened = partial(_opened, own, folder, strategies, jobs)
    inputs = ClaimInputs(opened, folder, strategies, tuple(recordings), quick, slow, settings, jobs)
    for note in inputs.notes if inputs.recorded else ():
        say(note)
    with counting(len(claims), "claims") as done:
        finding_of = measure(claims, inputs, jobs, done)
    findings = [finding_of[claim.id] for claim in claims]
    if keep and own is not None:
        written = write(inputs.run, findings, quick, recordings)
        if not silent:
            say(f"written: {written}")
    return findings, inputs.failures


def _user_run(named: Path | None) -> Path | None:
    """Return the user's run: the named one, else the newest; None if there is none."""
    from ctxbench.harness.folder.run import load

    from .arguments import run_folder

    if named is not None:
        return load(run_folder(named)).folder  # its errors come before anything is measured
    newest = _newest()
    if newest is not None:
        say(f"{newest}: the newest run of {SCENARIO} in {RUNS}")
    return newest


def _opened(own: Path | None, folder: Path, strategies: tuple[str, ...], jobs: int) -> Run:
    """Return the user's run, else a temporary one of the strategies that the claims need."""
    from ctxbench.harness.engine.plan import Plan, execute
    from ctxbench.harness.engine.plan import RunInputs as Named
    from ctxbench.harness.folder.run import load

    from .progress import watching

    if own is not None:
        return load(own)
    say(f"no run of {SCENARIO} in {RUNS}: running the strategies of the claims")
    with watching() as watcher:
        execute(Plan(Named((SCENARIO,)), strategies or ("none",)), folder / SCENARIO, jobs=jobs, watcher=watcher)
    return load(folder / SCENARIO)


def _newest() -> Path | None:
    from ctxbench.harness.folder.store import read_manifest
    from ctxbench.scenarios.errors import RunError

    for path in sorted(RUNS.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            manifest = read_manifest(path.parent)
        except RunError:
            continue
        if manifest.complete and manifest.plan.names == (SCENARIO,):
            return path.parent
    return None
