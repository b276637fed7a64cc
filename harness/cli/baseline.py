"""`ctxbench baseline`: the figures of a run by conversation, as a file to keep in git."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .bill import MODELS
from .runs import RunArgument, chosen

FILE = Path("baseline.json")


def baseline(
    run: RunArgument = Path("runs"),
    out: Annotated[Path, typer.Option("--out", "-o", help="Write to this file; - is standard output.")] = FILE,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="Keep what it would cost.")] = True,
) -> None:
    """Write the figures of a run as a baseline, which `ctxbench gate` compares other runs with.

    A small JSON file: a line for each strategy and metric, with the figure of every conversation. Review it, commit it.
    Times of the clock are not in it: another machine has others.
    """
    from ...reports.words import count
    from ..gating.baseline import as_text, write
    from ..gating.measured import measured
    from ..loading import load
    from ..steps import rows_of
    from .say import say

    found = measured(load(chosen(run)), rows_of, tuple(model or MODELS) if cost else ())
    if str(out) == "-":
        typer.echo(as_text(found), nl=False)
        return
    write(found, out)
    strategies = count(len(found.sums), "strategy", "strategies")
    sizes = count(len(found.digests), "conversation"), strategies, count(len(found.metrics), "metric")
    say(f"written: {out} ({' × '.join(sizes)})")
