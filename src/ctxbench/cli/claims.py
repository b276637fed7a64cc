"""`ctxbench lab claims`: the claims about context strategies, measured."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import typer

from .arguments import ModelOptions, run_folder
from .replies import report_spending
from .streams import say


def claims(
    run: Path | None = None,
    *,
    only: list[str] | None = None,
    recordings: list[str] | None = None,
    effort: Literal["quick", "usual", "slow"] = "usual",
    embedder: str = "offline",
    in_brief: bool = False,
    as_json: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Measure each claim by its protocol: it holds, fails, or cannot be told, and why.

    The 95 % interval decides, never a point. Strategies that the run lacks run on its conversations. If all claims are
    measured, they are stored in the run folder and `ctxbench report` shows them. Every core has its claims: what is
    timed is least disturbed by itself (--only C28). The exit code is 2, after the tables, if the embedder gave no
    usable reply.

    Args:
        run (RUN): The run folder. [default: a run of `standard`, made for the claims]
        only (C05): Show this claim only, with every setting; repeat it. [default: all]
        recordings (-r PATH): Recordings for claims that can use them; repeat it.
        effort: quick: leave out what takes a minute (hybrid scores, large indexes). slow: also build an index of a
            million vectors (15 minutes, 3 GiB).
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
            quick=effort == "quick",
            slow=effort == "slow",
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
