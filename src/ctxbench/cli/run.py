"""`ctxbench run`: replay recordings through strategies into a run folder, and print its tables."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxbench.scenarios.errors import NotLogged, RunError, Stopped

from . import completion
from .answering import AnswerOptions, answered_by
from .arguments import (
    MODELS_PANEL,
    QUESTIONS_PANEL,
    AdapterPythonOption,
    BilledModelsOption,
    ConversationsOption,
    EmbedderOption,
    EncodingOption,
    FormatOption,
    InputsArgument,
    JobsOption,
    JsonOption,
    ModelOptions,
    OverwriteOption,
    PricesOption,
    RunOutOption,
    SeedOption,
    StrictOption,
    TrackingOption,
    TurnsOption,
    check_prices,
    flat,
    prices_of,
)
from .replies import end, report_model_calls
from .streams import command, report_ignored, same_command, say, say_stopped

if TYPE_CHECKING:
    from ctxbench.harness.answers.tally import Tally
    from ctxbench.harness.engine.workers import Engine
    from ctxbench.harness.folder.schema import Manifest
    from ctxbench.harness.models import Settings
    from ctxbench.reports.results import Results


class EngineName(StrEnum):
    """Names of the engines that do the work of a run."""

    local = "local"
    ray = "ray"


CLUSTER_PANEL = "Past one machine"


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
        EngineName,
        typer.Option(
            help="Who does the work: processes of this machine, or Ray, which brings in others (docs/cluster.md).",
            rich_help_panel=CLUSTER_PANEL,
        ),
    ] = EngineName.local,
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="The head of a Ray cluster; `auto` = the one that this machine is part of.",
            show_default="a Ray of this machine alone, with --jobs processes",
            rich_help_panel=CLUSTER_PANEL,
        ),
    ] = "",
    overwrite: OverwriteOption = False,
    report: Annotated[bool, typer.Option("--report", help="Write the report at the end, like `ctxbench report`.")] = (
        False
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no figures, only where the results are.")] = False,
    mlflow: Annotated[
        bool, typer.Option("--mlflow", help="Log the run in MLflow at the end, like `ctxbench export mlflow`.")
    ] = False,
    tracking_uri: TrackingOption = "",
    as_json: JsonOption = False,
    form: FormatOption = None,
    encoding: EncodingOption = "o200k_base",
    turns: TurnsOption = None,
    seed: SeedOption = 0,
    conversations: ConversationsOption = None,
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
    answers: Annotated[
        bool,
        typer.Option(
            "--answers/--no-answers",
            help="Answer the questions with the extractive baseline and grade by rules: no model, no network.",
            rich_help_panel=QUESTIONS_PANEL,
        ),
    ] = True,
    asking: AnswerOptions = AnswerOptions(),  # noqa: B008
    summariser: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Summary model: `offline`, `local` (a GGUF file), or a litellm model name.",
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
        from ctxbench.harness.engine.plan import Plan, RunInputs, default_strategies, execute
        from ctxbench.harness.folder.remote import located
        from ctxbench.harness.folder.store import is_complete, remove_empty
        from ctxbench.strategies.chain import listed, use_pythons

        settings = reach.settings(summariser=summariser, embedder=embedder)
        use_pythons(adapter_python or ())
        opened = RunInputs(names, form, turns, seed, conversations)
        chosen, left_out = listed(strategy or ())
        hidden = 0
        if not strategy:
            chosen, hidden = default_strategies(opened)
        for line in left_out:
            say(line)
        plan = Plan(opened, chosen, encoding, window, settings, probes, answers)
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
                engine=_engine(engine, address, workers, settings),
                strict=strict,
                overwrite=overwrite,
                watcher=watcher,
                remote=remote,
            )
        except (Stopped, KeyboardInterrupt):  # a strategy may raise KeyboardInterrupt
            say_stopped(f"finished work is stored. To continue: {same_command()}")
            raise
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
    if (asking.answerer, asking.grader) != ("offline", "rules"):
        tallies += _have_answered(folder, settings, asking, overwrite)
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
    in_mlflow = not mlflow or _is_logged(folder, tracking_uri, tuple(model or ()), prices)
    if report:
        _write_report(results)
    if none := _finished_none(folder):
        say(f"error: no conversation was finished by {', '.join(none)}: {to_print} --all shows why")
    end(tallies, strict, settings, folder, failed=bool(none) or not in_mlflow)


def _say_left_out(lacking: int) -> None:
    from ctxbench.scenarios.compactions import RECORDED

    lack = "conversation lacks" if lacking == 1 else "conversations lack"
    say(f"note: {RECORDED} is left out: {lacking:,} {lack} a summary of the agent; `ctxbench audit` has the others")


def _engine(name: EngineName, address: str, workers: int, settings: Settings) -> Engine | None:
    """Return what does the work; None for processes of this machine. Raises RunError for what cannot go together."""
    from ctxbench.harness.engine.cluster import HERE, on_ray

    if name is EngineName.local:
        if address:
            raise RunError(f"--address {address}: is for --engine ray")
        return None
    if models := [model for model in (settings.summariser, settings.embedder) if model != "offline"]:
        raise RunError(
            f"--engine ray does not call {' and '.join(models)}: the cassette and the spend limit are one machine's. "
            "Use --engine local, or the offline models"
        )
    return on_ray(address or HERE, workers)


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


def _have_answered(folder: Path, settings: Settings, asking: AnswerOptions, overwrite: bool) -> list[Tally]:
    """Have the questions of a run answered and graded by models as well. What is done is not done again."""
    from msgspec.structs import replace

    from ctxbench.harness.answers.tally import answer_tallies
    from ctxbench.harness.folder.run import load

    graded = answered_by(load(folder), replace(settings, answerer=asking.answerer), asking, overwrite)
    return answer_tallies(graded.answers, graded.grades, graded.answerer, graded.grader)


def _write_report(results: Results) -> None:
    """Write the report of a run into its folder, and print where."""
    from ctxbench.reports.html.folder import write

    page = write(results, results.run.folder / "report", [])
    say(f"report: {shlex.quote(str(page))}")


def _is_logged(folder: Path, uri: str, models: tuple[str, ...], prices: Path | None) -> bool:
    """Log the run in MLflow and return whether that succeeded."""
    from .export import log

    try:
        log(folder, uri, models=models, prices=prices)
    except NotLogged as error:
        say(f"error: {error}")
        return False
    return True


def _name(names: tuple[str, ...]) -> str:
    """Return the default name of the run folder: that of the first input."""
    return (Path(os.path.realpath(names[0])).stem if names else "") or "run"


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
