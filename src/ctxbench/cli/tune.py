"""`ctxbench tune`: search a strategy's parameters on recordings."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import completion
from .arguments import (
    LAST_SEED,
    AdapterPythonOption,
    FormatOption,
    InputsArgument,
    JobsOption,
    JsonOption,
    ModelOptions,
    StrictOption,
    flat,
)
from .replies import end
from .streams import report_ignored, same_command, say, say_stopped

QualityMeasure = StrEnum("QualityMeasure", ["answer_quality", "context_recall", "grounding"])


@flat
def tune(
    strategy: Annotated[
        str,
        typer.Argument(
            help="A strategy with ? for the parameters to search, with their ranges if you like: "
            "'window(max_tokens=?[1000..64000:log], user_first=?)'.",
            metavar="SPEC",
        ),
    ],
    inputs: InputsArgument = None,
    trials: Annotated[int, typer.Option("--trials", "-n", min=1, max=100_000, help="Number of settings to try.")] = 40,
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
    seed: Annotated[int, typer.Option(min=0, max=LAST_SEED, help="Seed of the split and of the search.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the search.")] = Path(
        "runs/tune"
    ),
    jobs: JobsOption = 1,
    as_json: JsonOption = False,
    form: FormatOption = None,
    adapter_python: AdapterPythonOption = None,
    strict: StrictOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Find the settings of a strategy that are worth their cost: the frontier of cost and quality.

    Settings are chosen on half of the conversations and measured on the others, which are held out. A range is written
    behind the ?, in brackets: low..high, low..high:log, or values with commas. Without one it follows from the
    parameter's type, bounds and default. The same command continues a stopped search, with more --trials too, and asks
    for replies of models again that failed. The exit code is 2, after the tables, if a model that a setting names gave
    it no usable reply, and with --strict if any reply is missing.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tune.tune import Search, keep
    from ctxbench.reports.figures.frontier import tuning_frontier
    from ctxbench.reports.figures.style import save
    from ctxbench.reports.tune import as_json as exact
    from ctxbench.reports.tune import tables
    from ctxbench.scenarios.errors import Stopped
    from ctxbench.strategies.chain import use_pythons

    from .output import print_json, print_tables
    from .progress import counting

    names = RunInputs(tuple(inputs or (() if form else ("standard",))), form)
    measure, models = quality.value if quality else "", reach.settings()
    workers = jobs or os.cpu_count() or 1
    try:
        with redirect_stdout(sys.stderr), counting(trials, "trials") as done:
            use_pythons(adapter_python or ())
            tuned = Search(strategy, names, out, trials, seed, model, measure, models, workers, done).run()
            keep(exact(tuned), out)
            drawn = tuning_frontier(tuned)
            for name in ("frontier.svg", "frontier.png"):
                save(drawn, out / name)
    except (Stopped, KeyboardInterrupt):
        say_stopped(f"tried settings are stored. To continue: {same_command()}")
        raise
    for problem in tuned.problems.errors:
        say(f"left out: {problem}")
    report_ignored(tuned.problems.ignored, tuned.problems.notes)
    if as_json:
        print_json(exact(tuned))
    else:
        print_tables(list(tables(tuned)))
        typer.echo(f"\nresults: {out}/   (tune.json, frontier.svg)")
    end(tuned.replies, strict, models, out)
