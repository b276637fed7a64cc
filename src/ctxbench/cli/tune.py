"""`ctxbench tune`: search a strategy's parameters on recordings."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import completion
from .arguments import (
    LAST_SEED,
    AdapterPythonOption,
    EncodingOption,
    FormatOption,
    InputsArgument,
    JobsOption,
    JsonOption,
    MarkdownOption,
    ModelOptions,
    OverwriteOption,
    StrictOption,
    flat,
)
from .replies import end
from .streams import report_ignored, same_command, say, say_stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxbench.harness.models import Settings
    from ctxbench.harness.tune.tune import Tuned, TuneRequest


class Sampler(StrEnum):
    """Sampler of the next settings."""

    tpe = "tpe"
    nsga2 = "nsga2"
    random = "random"


class QualityMeasure(StrEnum):
    """Measure of quality."""

    answer_quality = "answer_quality"
    context_recall = "context_recall"
    grounding = "grounding"


@flat
def tune(
    strategy: Annotated[
        str,
        typer.Argument(help="A strategy with ? for the parameters to search: 'window(max_tokens=?)'.", metavar="SPEC"),
    ],
    inputs: InputsArgument = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RANGE",
            help="Range of a parameter: max_tokens=1000..64000:log, reserve=0..0.5, place='start','end'.",
            show_default="from its type and default",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", "-n", min=1, max=100_000, help="Number of settings to try.")] = 40,
    sampler: Annotated[Sampler, typer.Option(help="Sampler of the next settings.")] = Sampler.tpe,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL|tokens",
            help="The model to bill under; with `tokens` the cost is the tokens sent.",
            autocompletion=completion.models,
        ),
    ] = "claude-sonnet-5",
    quality: Annotated[
        QualityMeasure | None,
        typer.Option(help="Measure of quality.", show_default="the first of these that the recordings allow"),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of conversations held out from choosing settings.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, max=LAST_SEED, help="Seed of the split and of the search.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the search.")] = Path(
        "runs/tune"
    ),
    jobs: JobsOption = 1,
    overwrite: OverwriteOption = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
    form: FormatOption = None,
    encoding: EncodingOption = "o200k_base",
    adapter_python: AdapterPythonOption = None,
    strict: StrictOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Find the settings of a strategy that are worth their cost: the frontier of cost and quality.

    Settings are chosen on some conversations and measured on the others, which are held out. The same command
    continues a stopped search, with more --trials too, and asks for replies of models again that failed. The exit code
    is 2, after the tables, if a model that a setting names gave it no usable reply, and with --strict if any reply is
    missing.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tune.tune import TuneRequest
    from ctxbench.reports.tune import as_json as exact
    from ctxbench.reports.tune import tables
    from ctxbench.scenarios.errors import Stopped, UserError
    from ctxbench.strategies.chain import use_pythons

    from .output import print_json, print_tables, write_markdown

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    names = tuple(inputs or (() if form else ("standard",)))
    request = TuneRequest(
        strategy,
        RunInputs(names, form),
        tuple(space or ()),
        trials,
        sampler.value,
        seed,
        held_out,
        model,
        quality.value if quality else "",
        encoding,
    )
    models = reach.settings()
    try:
        with redirect_stdout(sys.stderr):
            use_pythons(adapter_python or ())
            tuned = _searched(request, out, models, jobs or os.cpu_count() or 1, overwrite)
            _keep(tuned, out)
    except (Stopped, KeyboardInterrupt):
        say_stopped(f"tried settings are stored. To continue: {same_command()}")
        raise
    for problem in tuned.problems.errors:
        say(f"left out: {problem}")
    report_ignored(tuned.problems.ignored, tuned.problems.notes)
    if as_json:
        print_json(exact(tuned))
    elif markdown is not None:
        write_markdown(list(tables(tuned)), markdown)
    else:
        print_tables(list(tables(tuned)))
        typer.echo(f"\nresults: {out}/   (tune.json, frontier.svg)")
    end(tuned.replies, strict, models, out)


def _searched(request: TuneRequest, out: Path, models: Settings, jobs: int, overwrite: bool) -> Tuned:
    from ctxbench.harness.tune.tune import tune as search

    from .progress import counting

    with counting(request.trials, "trials") as count:
        return search(request, out, models=models, jobs=jobs, overwrite=overwrite, say=_so_far(count))


def _so_far(count: Callable[..., None]) -> Callable[[int, int], None]:
    """Return a callback that tells the counter how many trials are new."""
    last = 0

    def say_(done: int, _: int) -> None:
        nonlocal last
        count(done - last)
        last = done

    return say_


def _keep(tuned: Tuned, out: Path) -> None:
    """Write tune.json and the figure of the frontier."""
    from ctxbench.harness.tune.tune import keep
    from ctxbench.reports.figures.frontier import tuning_frontier
    from ctxbench.reports.figures.style import save
    from ctxbench.reports.tune import as_json as exact

    keep(exact(tuned), out)
    drawn = tuning_frontier(tuned)
    for name in ("frontier.svg", "frontier.png"):
        save(drawn, out / name)
