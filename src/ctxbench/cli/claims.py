"""`ctxbench lab claims`: the claims about context strategies, measured."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .arguments import BriefOption, EmbedderOption, JsonOption, ModelOptions, flat, run_folder
from .replies import report_spending
from .streams import say

Effort = StrEnum("Effort", ["quick", "usual", "slow"])


@flat
def claims(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="The run folder.", show_default="a run of `standard`, made for the claims"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="C05", help="Show this claim only, with every setting; repeat it.", show_default="all"),
    ] = None,
    recordings: Annotated[
        list[str] | None,
        typer.Option("--recordings", "-r", metavar="PATH", help="Recordings for claims that can use them; repeat it."),
    ] = None,
    effort: Annotated[
        Effort,
        typer.Option(
            help="quick: leave out what takes a minute (hybrid scores, large indexes). slow: also build an index of a "
            "million vectors (15 minutes, 3 GiB)."
        ),
    ] = Effort.usual,
    embedder: EmbedderOption = "offline",
    in_brief: BriefOption = False,
    as_json: JsonOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure each claim by its protocol: it holds, fails, or cannot be told, and why.

    The 95 % interval decides, never a point. Strategies that the run lacks run on its conversations. If all claims are
    measured, they are stored in the run folder and `ctxbench report` shows them. Every core has its claims: what is
    timed is least disturbed by itself (--only C28). The exit code is 2, after the tables, if the embedder gave no
    usable reply.
    """
    from ctxbench.harness.claims.inputs import ClaimInputs, ClaimSettings
    from ctxbench.harness.claims.registry import chosen, measure, write
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.claims import as_json as exact
    from ctxbench.reports.claims import brief, tables

    from .output import print_json, print_tables
    from .progress import counting

    models, claims_chosen = reach.settings(embedder=embedder), chosen(only or ())
    strategies = tuple(dict.fromkeys(name for claim in claims_chosen for name in claim.strategies))
    own = "" if run is None else str(load(run_folder(run)).folder)  # its errors come before anything is measured
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder, redirect_stdout(sys.stderr):
        settings = ClaimSettings(
            folder=folder,
            run=own,
            strategies=strategies,
            recordings=tuple(recordings or ()),
            quick=effort is Effort.quick,
            slow=effort is Effort.slow,
            models=models,
            jobs=os.cpu_count() or 1,
        )
        inputs = ClaimInputs(settings)
        _ = inputs.recorded  # so are those of the recordings
        for note in inputs.notes:
            say(note)
        with counting(len(claims_chosen), "claims") as done:
            findings = measure(claims_chosen, inputs, done)
        if own and not only:
            written = write(inputs.run, findings, settings)
            say(f"written: {written}")
    if as_json:
        print_json(exact(findings))
    elif in_brief:
        typer.echo(brief(findings))
    else:
        print_tables(tables(findings, bool(only)))
    report_spending(models)
    for failure in inputs.failures:
        say(f"error: {failure}")
    if inputs.failures:
        raise typer.Exit(2)
