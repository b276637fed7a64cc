"""`ctxbench export`: a run for other programs."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import MODELS, RunArgument, chosen
from .streams import command, say

if TYPE_CHECKING:
    from ..export.mlflow import Bench, LogResult, TrackingStore


def export(
    run: RunArgument = Path("runs"),
    prometheus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write Prometheus' text format, as its textfile collector reads it; - is stdout."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
) -> None:
    """Write a run as text for monitoring: agent_token_usage_total and others, by strategy and scenario."""
    from ...scenarios.errors import RunError, UserError
    from ..export.prometheus import prometheus as as_text
    from ..folder.run import load
    from ..folder.store import placed
    from .streams import say

    if prometheus is None:
        raise UserError("say what to write: --prometheus FILE")
    text = as_text(load(chosen(run)), tuple(model or MODELS))
    if str(prometheus) == "-":
        typer.echo(text, nl=False)
        return
    try:
        with placed(prometheus) as draft:  # it may be read at any moment
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{prometheus}: cannot be written: {error.strerror or error}") from None
    say(f"written: {prometheus}")


RUNS = Path("runs")


def mlflow(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Run folders.", show_default="the newest under runs/")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URI",
            envvar="MLFLOW_TRACKING_URI",
            help="MLflow's tracking server or store.",
            show_default="the file mlflow.db beside the run",
        ),
    ] = "",
    experiment: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            envvar="MLFLOW_EXPERIMENT_NAME",
            help="The experiment that they go into.",
            show_default="ctxbench",
        ),
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to bill under; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report/--no-report",
            help="Have the report in it, with figures and tables. It shows what was said in the recordings.",
        ),
    ] = True,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Log the runs under runs/ that could not be logged before.")
    ] = False,
) -> None:
    """Log runs in MLflow: one for each bench, and in it one for each strategy, with the figures of `ctxbench compare`.

    What is there already is left as it is; what has changed is logged anew, and the old one deleted. Where MLflow
    cannot be written to, the run waits: this command logs it later.
    """
    from ...scenarios.errors import NotLogged
    from ..export.mlflow import waiting as those_waiting
    from .arguments import chosen

    folders = list(runs or ())
    if waiting:
        folders += [folder for folder in those_waiting(RUNS) if folder not in folders]
        if not folders:
            say(f"no run under {RUNS}/ waits for MLflow")
            return
    failed: list[str] = []
    for folder in folders or [chosen(RUNS)]:
        try:
            log(folder, to, experiment, tuple(model or MODELS), report)
        except NotLogged as error:
            failed.append(str(error))
            say(f"error: {error}")
    for beside in dict.fromkeys(folder.resolve().parent for folder in folders or [RUNS / "any"]):
        say_who_waits(beside)
    if failed:
        raise typer.Exit(2)


def log(
    folder: Path, to: str = "", experiment: str = "", models: tuple[str, ...] = tuple(MODELS), report: bool = True
) -> None:
    """Log a run, and say where. Raises NotLogged, and notes that the run waits, if MLflow cannot be written to.

    `to`, `experiment`: those of the environment unless they are given.
    """
    from ...scenarios.errors import NotLogged
    from ..export.mlflow import EXPERIMENT, done, place, wait

    where = place(folder, to or os.environ.get("MLFLOW_TRACKING_URI", ""))
    experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "") or EXPERIMENT
    try:
        _say(folder, where, _written(folder, where, experiment, models, report))
    except NotLogged as error:
        wait(folder, where.name, str(error))
        later = command("mlflow", folder)
        raise NotLogged(f"{error}. {folder} is kept, and waits: {later} logs it when MLflow can be had") from None
    done(folder, where.name)


def _written(folder: Path, where: TrackingStore, experiment: str, models: tuple[str, ...], report: bool) -> LogResult:
    from ..export.mlflow import bench, reach, write
    from ..folder.contexts import rows_of
    from ..folder.run import load

    run = load(folder)
    reach(where, experiment)
    made = bench(run, rows_of, models)
    measured = int((folder / "manifest.json").stat().st_mtime * 1000)
    if not report or _is_private(made):
        return write(made, where, measured, None, experiment)
    from ...reports.html.folder import write as write_report
    from .output import results_of

    with TemporaryDirectory() as files:
        write_report(results_of(folder, models), Path(files))
        return write(made, where, measured, Path(files), experiment)


def _is_private(made: Bench) -> bool:
    if made.is_private:
        say("the report is left out: a strategy has a parameter that looks like a key, and the report shows it")
    return made.is_private


def _say(folder: Path, where: TrackingStore, written: LogResult) -> None:
    from ..export.mlflow import HIDDEN

    words = {
        "logged": "logged in MLflow",
        "updated": "logged anew in MLflow, and the old one deleted there",
        "unchanged": "is there already in MLflow",
    }
    typer.echo(f"{folder}: {words[written.word]}: {where.name}, experiment {written.experiment}")
    if where.is_file:
        look = shlex.join(["mlflow", "ui", "--backend-store-uri", where.uri])
        typer.echo(f"to look at it: {look}   (pip install mlflow has it; the extra has not)")
    else:
        page = f"{where.name.replace(HIDDEN, '').rstrip('/')}/#/experiments/{written.experiment_id}"
        typer.echo(f"to look at it: {page}")


def say_who_waits(beside: Path) -> None:
    """Name the runs in a folder that wait."""
    from ..export.mlflow import waiting

    found = waiting(beside)
    for folder, each in found.items():
        say(f"waits for MLflow: {folder} ({each.to})")
    if found:
        say(f"to log them: {command('mlflow', *found)}")
