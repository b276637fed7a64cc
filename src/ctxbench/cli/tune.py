"""`ctxbench tune`: search a strategy's parameters on recordings."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec import Meta

from .arguments import Jobs, ModelOptions, Seed
from .replies import end
from .streams import report_problems, resumable


def tune(
    strategy: str,
    inputs: list[str] | None = None,
    *,
    trials: Annotated[int, Meta(ge=1, le=100_000)] = 40,
    model: str = "claude-sonnet-5",
    quality: Literal["answer_quality", "context_recall", "grounding"] | None = None,
    seed: Seed = 0,
    out: Path = Path("runs/tune"),
    jobs: Jobs = 1,
    as_json: bool = False,
    form: str | None = None,
    adapter_python: list[str] | None = None,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Find the settings of a strategy that are worth their cost: the frontier of cost and quality.

    Settings are chosen on half of the conversations and measured on the others, which are held out. A range is written
    behind the ?, in brackets: low..high, low..high:log, or values with commas. Without one it follows from the
    parameter's type, bounds and default. The same command continues a stopped search, with more --trials too, and asks
    for replies of models again that failed. The exit code is 2, after the tables, if a model that a setting names gave
    it no usable reply, and with --strict if any reply is missing.

    Args:
        strategy (SPEC): A strategy with ? for the parameters to search, with their ranges if you like:
            'window(max_tokens=?[1000..64000:log], user_first=?)'.
        trials (-n): Number of settings to try.
        model (-m MODEL|tokens): The model to bill under; with `tokens` the cost is the tokens sent.
        quality: Measure of quality. [default: the first of these that the recordings allow]
        seed: Seed of the split and of the search.
        out (-o FOLDER): The folder of the search.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tune.tune import Search, keep
    from ctxbench.reports import tune as shown
    from ctxbench.reports.figures.frontier import tuning_frontier
    from ctxbench.reports.figures.style import save
    from ctxbench.strategies.chain import use_pythons

    from .output import print_json, print_tables
    from .progress import counting

    names = RunInputs(tuple(inputs or (() if form else ("standard",))), form)
    measure, models, workers = quality or "", reach.settings(), jobs or os.cpu_count() or 1
    with resumable("tried settings are stored"), redirect_stdout(sys.stderr), counting(trials, "trials") as done:
        use_pythons(adapter_python or ())
        tuned = Search(strategy, names, out, trials, seed, model, measure, models, workers, done).run()
        keep(shown.as_json(tuned), out)
        drawn = tuning_frontier(tuned)
        for name in ("frontier.svg", "frontier.png"):
            save(drawn, out / name)
    report_problems(tuned.problems)
    if as_json:
        print_json(shown.as_json(tuned))
    else:
        print_tables(list(shown.tables(tuned)))
        typer.echo(f"\nresults: {out}/   (tune.json, frontier.svg)")
    end(tuned.replies, strict, models, out)
