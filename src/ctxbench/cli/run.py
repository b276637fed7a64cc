"""`ctxbench run`: replay recordings through strategies into a run folder, and print its tables."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxbench.scenarios.errors import NotLogged, RunError, Stopped

from . import completion
from .answering import answered_by
from .arguments import (
    MODELS_PANEL,
    PARAMETERS,
    QUESTIONS_PANEL,
    AdapterPythonOption,
    AnswererOption,
    BilledModelsOption,
    EmbedderOption,
    EncodingOption,
    FormatOption,
    GraderOption,
    InputsArgument,
    JobsOption,
    JsonOption,
    ModelOptions,
    OverwriteOption,
    PricesOption,
    RunOutOption,
    StrictOption,
    check_prices,
    flat,
    prices_of,
)
from .replies import end, report_model_calls
from .streams import command, report_ignored, same_command, say, say_stopped

if TYPE_CHECKING:
    from ctxbench.harness.answers.tally import Tally
    from ctxbench.harness.folder.schema import Manifest
    from ctxbench.harness.models import Settings
    from ctxbench.reports.results import Results


@flat
def run(
    inputs: InputsArgument = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="SPEC",
            help="A strategy, e.g. 'window(max_tokens=8000)', chained with |, or @libraries for those of all installed "
            "libraries; repeat it.",
            show_default="every strategy and recipe",
            autocompletion=completion.strategies,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The run folder, or its address: s3://bucket/run.",
            show_default="runs/NAME",
        ),
    ] = None,
    model: BilledModelsOption = None,
    prices: PricesOption = None,
    window: Annotated[
        str,
        typer.Option(
            metavar="MODEL|TOKENS",
            help="The context window that a request may fill: a model's, or a number of tokens.",
            show_default="the recorded model's",
            autocompletion=completion.models,
        ),
    ] = "",
    jobs: JobsOption = 1,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Who does the work: `local` (processes of this machine), `ray` (a Ray of this machine), or a cluster: "
            "ray:HOST:PORT or ray://HOST:PORT of its head, or ray:auto where this machine is part of it.",
        ),
    ] = "local",
    overwrite: OverwriteOption = False,
    report: Annotated[bool, typer.Option("--report", help="Write the report at the end, like `ctxbench report`.")] = (
        False
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no figures, only where the results are.")] = False,
    mlflow: Annotated[
        bool, typer.Option("--mlflow", help="Log the run in MLflow at the end, like `ctxbench export mlflow`.")
    ] = False,
    as_json: JsonOption = False,
    form: FormatOption = None,
    encoding: EncodingOption = "o200k_base",
    strict: StrictOption = False,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes/--no-probes",
            help="Measure the contexts for the recordings' questions with known answers. Slow where a strategy of your "
            "own has to be replayed for each.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = True,
    answerer: AnswererOption = "offline",
    grader: GraderOption = "rules",
    summariser: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help=f"Summary model: `offline`, `local` (a GGUF file), or a litellm model name. {PARAMETERS}",
            autocompletion=completion.models,
            rich_help_panel=MODELS_PANEL,
        ),
    ] = "offline",
    embedder: EmbedderOption = "offline",
    adapter_python: AdapterPythonOption = None,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Replay recordings through strategies and measure what each would send.

    The same command continues a run that was stopped. A strategy that fails loses that conversation. The exit code is
    2, after the tables, if a strategy finished no conversation, if a model gave no usable reply at all, and with
    --strict if any reply is missing. The same command asks again for replies that are missing because a call failed.
    """
    from .progress import watching

    names = tuple(inputs or (() if form else ("standard",)))
    paid = prices_of(prices)
    check_prices(model or (), paid)
    workers = jobs or os.cpu_count() or 1
    # Standard output is for figures, whatever a plug-in prints.
    with redirect_stdout(sys.stderr), watching() as watcher:
        # Imported when the progress bar is there: they take half a second.
        from ctxbench.harness.engine.cluster import engine_of
        from ctxbench.harness.engine.plan import Plan, RunInputs, default_strategies, execute
        from ctxbench.harness.folder.remote import located
        from ctxbench.harness.folder.store import is_complete, remove_empty
        from ctxbench.strategies.chain import listed, use_pythons

        settings = reach.settings(summariser=summariser, embedder=embedder)
        if engine != "local" and (settings.summariser, settings.embedder) != ("offline", "offline"):
            raise RunError(f"--engine {engine}: {_ONE_MACHINE}")
        use_pythons(adapter_python or ())
        opened = RunInputs(names, form)
        chosen, left_out = listed(strategy or ())
        hidden = 0
        if not strategy:
            chosen, hidden = default_strategies(opened)
        for line in left_out:
            say(line)
        plan = Plan(opened, chosen, encoding, window, settings, probes, answerer != "none")
        if hidden:
            _say_left_out(hidden)
        folder, remote = located(out or Path("runs") / _name(names))
        named = folder if remote is None else remote.address
        if remote is not None:
            remote.tell = say
        complete = is_complete(folder) and not overwrite
        try:
            manifest = execute(
                plan,
                folder,
                jobs=workers,
                engine=engine_of(engine, workers),
                strict=strict,
                overwrite=overwrite,
                watcher=watcher,
                remote=remote,
            )
        except (Stopped, KeyboardInterrupt):  # a strategy may raise KeyboardInterrupt
            say_stopped(f"finished work is stored. To continue: {same_command()}")
            raise
    from msgspec.structs import replace

    from ctxbench.harness.answers.tally import run_tallies
    from ctxbench.harness.folder.run import load

    from .output import print_run, results_of, under_first

    report_problems(manifest)
    if not manifest.conversations:
        remove_empty(folder)
        if remote is not None:
            remote.push_manifest()
        raise RunError("no conversation could be read: nothing was measured")
    report_model_calls(folder)
    tallies = run_tallies(load(folder))
    if answerer != "none" and (answerer, grader) != ("offline", "rules"):
        tallies += _have_answered(folder, replace(settings, answerer=answerer), grader, overwrite)
        if remote is not None:
            remote.push_answers()
    if complete and not watcher.steps:
        say(f"{named}: already measured; --overwrite measures again")
    billed = [word for name in model or () for word in ("-m", name)]
    billed += ["--prices", str(prices)] if prices else []
    to_print, to_show = command("report", named, *billed), command("show", named)
    if watcher.steps and (folder / "report").is_dir():
        say(f"note: {folder / 'report'} shows the previous run: {to_print} renews it")
    try:
        results = results_of(folder, model or (), paid)  # nothing is computed before it is asked for
        if not quiet:
            print_run(results if report else under_first(results), as_json)
    except Stopped:
        say_stopped(f"everything is measured. To print the tables: {to_print}")
        raise
    if not (quiet or as_json):
        typer.echo()
    if quiet or not as_json:
        typer.echo(f"results: {shlex.quote(f'{named}/')}   ({to_print}, {to_show})")
    in_mlflow = not mlflow or _is_logged(folder, tuple(model or ()), prices)
    if report:
        _write_report(results)
    if none := _finished_none(folder):
        say(f"error: no conversation was finished by {', '.join(none)}: {to_print} --all shows why")
    end(tallies, strict, settings, folder, failed=bool(none) or not in_mlflow)


def _say_left_out(lacking: int) -> None:
    from ctxbench.scenarios.compactions import RECORDED

    lack = "conversation lacks" if lacking == 1 else "conversations lack"
    say(f"note: {RECORDED} is left out: {lacking:,} {lack} a summary of the agent; `ctxbench audit` has the others")


_ONE_MACHINE = "calls no models: the cassette and the spend limit are one machine's. Use the offline models"
_DEMO = ("none", "window(max_tokens=4000)", "summary(every=5)", "retrieval", "archive", "facts")


def demo(
    out: RunOutOption = Path("runs/demo"),
) -> None:
    """Take a first look: replay 48 short embedded conversations through six strategies, and print which to ship.

    It needs no recordings, key or network, and takes some ten seconds. `ctxbench show` then looks into what was sent.
    """
    from ctxbench.harness.folder.store import is_complete

    # A finished one is measured again, by whatever version is installed now; one that was stopped goes on.
    run(["demo"], strategy=list(_DEMO), out=out, overwrite=is_complete(out))


def _have_answered(folder: Path, settings: Settings, grader: str, overwrite: bool) -> list[Tally]:
    """Have the questions of a run answered and graded by models as well. What is done is not done again."""
    from ctxbench.harness.answers.tally import answer_tallies
    from ctxbench.harness.folder.run import load

    graded = answered_by(load(folder), settings, grader, overwrite)
    return answer_tallies(graded.answers, graded.grades, graded.answerer, graded.grader)


def _write_report(results: Results) -> None:
    """Write the report of a run into its folder, and print where."""
    from ctxbench.reports.html.folder import write

    page = write(results, results.run.folder / "report", [])
    say(f"report: {shlex.quote(str(page))}")


def _is_logged(folder: Path, models: tuple[str, ...], prices: Path | None) -> bool:
    """Log the run in MLflow and return whether that succeeded."""
    from .export import log

    try:
        log(folder, models=models, prices=prices)
    except NotLogged as error:
        say(f"error: {error}")
        return False
    return True


def _name(names: tuple[str, ...]) -> str:
    """Return the default name of the run folder: that of the first input."""
    from ctxbench.scenarios.embedded import SCENARIOS

    name = next(iter(names), "")
    base = name.partition("(")[0]
    return base if base in SCENARIOS else (name and Path(os.path.realpath(name)).stem) or "run"


def _finished_none(folder: Path) -> list[str]:
    """Return the strategies that failed in every conversation."""
    from ctxbench.harness.folder.run import load

    results = load(folder).table("results")
    failed = (results.status == "failed").groupby(results.strategy.astype(str), sort=False).all()
    return [str(name) for name in failed.index[failed]]


def report_problems(manifest: Manifest) -> None:
    """Print the records that were left out, with the reasons, and the files that are no recordings."""
    from ctxbench.harness.folder.schema import alike

    groups, most = alike(manifest.problems), 10
    for problem, times in groups[:most]:
        say(f"left out: {problem}" + (f", and {times - 1:,} more like it in this file" if times > 1 else ""))
    if more := sum(times for _, times in groups[most:]):
        say(f"left out: {more:,} more; all are in manifest.json and in the report")
    report_ignored(manifest.ignored, manifest.notes)
