"""`ctxbench tune`: search a strategy's parameters on recordings."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .streams import same_command, say, say_what_was_passed_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tune.tune import Tuned, TuneRequest


class By(StrEnum):
    """What chooses the next settings."""

    tpe = "tpe"
    nsga2 = "nsga2"
    random = "random"


class QualityMeasure(StrEnum):
    """What quality is."""

    correct = "correct"
    context_recall = "context_recall"
    grounding = "grounding"


def tune(
    strategy: Annotated[
        str, typer.Argument(help="A strategy with ? for what is to be found: 'window(max_tokens=?)'.", metavar="SPEC")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings (files or folders) and embedded scenarios by name.",
            metavar="PATH|SCENARIO",
            show_default="standard",
        ),
    ] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RANGE",
            help="The range of a parameter: max_tokens=1000..64000:log, reserve=0..0.5, place='start','end'.",
            show_default="from its type and default",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", "-n", min=1, help="How many settings to try.")] = 40,
    sampler: Annotated[By, typer.Option(help="What chooses the next settings.")] = By.tpe,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Cost is the bill under this model; `tokens`: tokens sent.")
    ] = "claude-sonnet-5",
    quality: Annotated[
        QualityMeasure | None,
        typer.Option(help="What quality is.", show_default="the first of these that the recordings allow"),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="The share of conversations that settings are not chosen on.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Of the split and of the search.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the search.")] = Path("runs/tune"),
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=0, help="Worker processes; 0 = one per core. Results do not depend on it."),
    ] = 1,
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="User turns of generated conversations.")] = None,
    encoding: Annotated[str, typer.Option(help="The encoding that tokens are counted in.")] = "o200k_base",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the search that is in the folder.")] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown to this file; - is standard output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Find the settings of a strategy that are worth their cost: the frontier of cost and quality.

    Some conversations are held out. Settings are chosen on the others; the chosen ones are measured on those held out.
    A search that was stopped goes on when the same command is given again, with more --trials too.
    """
    from ...reports.tune import as_json as exact
    from ...reports.tune import tables
    from ...scenarios.errors import Stopped, UserError
    from ..engine.plan import RunInputs
    from ..tune.tune import TuneRequest
    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    names = tuple(inputs or (() if form else ("standard",)))
    wanted = TuneRequest(
        strategy,
        RunInputs(names, form, turns),
        tuple(space or ()),
        trials,
        sampler.value,
        seed,
        held_out,
        model,
        quality.value if quality else "",
        encoding,
    )
    try:
        with redirect_stdout(sys.stderr):
            found = _searched(wanted, out, jobs or os.cpu_count() or 1, overwrite)
            _keep(found, out)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; what was tried is kept. To go on: {same_command()}")
        raise
    for problem in found.problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(found.problems.ignored, found.problems.notes)
    if as_json:
        print_json(exact(found))
    elif markdown is not None:
        write_markdown(list(tables(found)), markdown)
    else:
        print_tables(list(tables(found)))
        typer.echo(f"\nresults: {out}/   (tune.json, frontier.svg, study.db for Optuna's own tools)")


def _searched(wanted: TuneRequest, out: Path, jobs: int, overwrite: bool) -> Tuned:
    from ..tune.tune import tune as search
    from .progress import counting

    with counting(wanted.trials, "trials") as count:
        return search(wanted, out, jobs=jobs, overwrite=overwrite, say=_so_far(count))


def _so_far(count: Callable[..., None]) -> Callable[[int, int], None]:
    """Tells the counter what is new."""
    last = 0

    def say_(done: int, _: int) -> None:
        nonlocal last
        count(done - last)
        last = done

    return say_


def _keep(found: Tuned, out: Path) -> None:
    """Write the figures and the figure."""
    from ...reports.figures.style import save
    from ...reports.figures.tune import frontier
    from ...reports.tune import as_json as exact
    from ..tune.tune import keep

    keep(exact(found), out)
    drawn = frontier(found)
    for name in ("frontier.svg", "frontier.png"):
        save(drawn, out / name)
