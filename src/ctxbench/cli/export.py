"""`ctxbench export` and `ctxbench convert`: runs and recordings for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from ctxbench.scenarios.errors import NotLogged, RunError

from .arguments import RequestForm, run_folder
from .streams import command, report_problems, say


def prometheus(run: Path = Path("runs"), *, to: Path = Path("-"), model: list[str] | None = None) -> None:
    """Write a run as Prometheus text: agent_token_usage_total and others, by strategy and scenario.

    The file is for the textfile collector, which may read it at any moment: it is replaced as a whole. It has figures
    alone, and no text of the recordings.
    """
    from ctxbench.harness.bill.requests import billed_models
    from ctxbench.harness.export.bench import prometheus as as_text
    from ctxbench.harness.folder.run import load

    from .output import write_text

    opened = load(run_folder(run))
    write_text(as_text(opened, billed_models(opened, model or ())), to)


def requests(
    run: Path = Path("runs"), *, strategy: str | None = None, target: RequestForm = "anthropic", to: Path = Path("-")
) -> None:
    """Write what a strategy would send as requests to a provider: a body for each step, as JSON Lines.

    They stand in the order of the run's conversations and their steps. Anthropic's have the strategy's cache marks;
    OpenAI, DeepSeek and others of that form cache by themselves. `max_tokens` and other settings are not recorded: add
    them before you send one. It is nothing but text, so there is no --no-text.

    Args:
        target (--as): The API that takes them.
    """
    from ctxbench.api.names import find_strategy
    from ctxbench.harness.export.convert import BODIES, step_requests, write_lines
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.render import count

    opened = load(run_folder(run))
    name = find_strategy(opened, strategy)
    sent = (
        msgspec.json.encode(BODIES[target](request))
        for conversation in opened.conversations()
        for request in step_requests(opened, conversation, name)
    )
    say(f"{count(write_lines(sent, to), 'request')} under {name} written to {to}")


def dataset(run: Path = Path("runs"), *, out: Path | None = None) -> None:
    """Write the recordings of a run as a Hugging Face data set: Parquet, dataset_info.json and a card.

    Each row has the messages in OpenAI's form, and the whole recording, so that `ctxbench run FOLDER --format
    huggingface` reads the same conversations again. It is nothing but text, so there is no --no-text: look at the texts
    before you publish them.

    Args:
        out (-o FOLDER): The folder of the data set. [default: RUN/dataset]
    """
    from ctxbench.harness.export.convert import write_dataset
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.render import count

    opened = load(run_folder(run))
    out = out or opened.folder / "dataset"
    origin = f" from a run whose recordings have the digest `{opened.manifest.digest}`"
    written = write_dataset(opened.conversations(), out, opened.manifest.plan.names, "--out", origin)
    say(f"written: {out} ({count(written, 'conversation')})")
    typer.echo(f"to replay it: {command('run', out, '--format', 'huggingface')}")


def mlflow(
    runs: list[Path] | None = None,
    *,
    tracking_uri: Annotated[
        str,
        typer.Option(
            metavar="URI",
            envvar="MLFLOW_TRACKING_URI",
            help="MLflow's tracking server or store.",
            show_default="the file mlflow.db beside the run",
        ),
    ] = "",
    model: list[str] | None = None,
    text: bool | None = None,
) -> None:
    """Log runs in MLflow, with a nested run for each strategy, the figures of `ctxbench compare`, and the report.

    An unchanged run is left as it is; a changed one is logged again and the old one deleted. The experiment is that of
    MLFLOW_EXPERIMENT_NAME, or ctxbench.

    Args:
        runs (RUN): Run folders. [default: the newest under runs/]
        text (--text/--no-text): Whether the report that is attached shows texts of the recordings. [default: where what
            is logged stays on this machine]
    """
    from ctxbench.harness.folder.remote import fetched

    folders = [fetched(folder) for folder in runs or [run_folder(Path("runs"))]]
    if not logged(folders, model or (), tracking_uri, text):
        raise typer.Exit(2)


def logged(folders: Sequence[Path], models: Sequence[str], to: str = "", text: bool | None = None) -> bool:
    """Log runs in MLflow, and print where, or how to do it later. Returns whether all of them were logged."""
    from ctxbench.api.runs import log_in_mlflow
    from ctxbench.harness.bill import check_priced
    from ctxbench.harness.bill.requests import billed_models
    from ctxbench.harness.folder.run import load

    check_priced(models)
    failed = False
    for folder in folders:
        again = ("export", "mlflow", folder, *(word for name in models for word in ("-m", name)))
        run = load(folder)
        try:
            result = log_in_mlflow(run, billed_models(run, models), to, "", text)
        except NotLogged as error:
            failed = True
            say(f"error: {error}. To log it when MLflow is available: {command(*again)}")
            continue
        typer.echo(f"{folder}: {_LOGGED[result.word]}: {result.place}, experiment {result.experiment}")
        typer.echo(f"to see it: {result.how_to_see}")
        if text is None and not result.text:
            say(f"without texts of the recordings: {command(*again, '--text')} logs it with them")
    return not failed


_LOGGED = {
    "logged": "logged in MLflow",
    "updated": "logged again in MLflow, and the old one deleted there",
    "unchanged": "already in MLflow",
}


def wandb(run: Path = Path("runs"), *, server: str = "", model: list[str] | None = None, no_text: bool = False) -> None:
    """Log a run in Weights & Biases, an entry per strategy.

    Without --server nothing is sent: the files beside the run can be sent later.

    Args:
        server (URL): Send it to this server. [default: files beside the run]
    """
    from ctxbench.api.runs import load

    say(load(run_folder(run), model=model or ()).log("wandb", server, text=not no_text))


def convert(
    inputs: list[str],
    *,
    to: Path,
    target: Literal["ctxbench", "openai", "anthropic", "dataset"] = "ctxbench",
    form: str | None = None,
    strict: bool = False,
) -> None:
    """Convert recordings to ctxbench JSONL, losslessly, or to another format.

    A file whose name ends in .gz or .zst is compressed.

    Args:
        inputs (PATH|SCENARIO): Recordings and embedded scenarios.
        target (--as): ctxbench is lossless; OpenAI chats and Anthropic requests and responses are JSON Lines too;
            dataset is a Hugging Face folder.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.export.convert import convert as write
    from ctxbench.harness.export.convert import write_dataset
    from ctxbench.reports.render import count
    from ctxbench.scenarios.source import Problems

    is_folder = target == "dataset"
    if str(to) == "-" and is_folder:
        raise RunError("--to -: a data set is a folder: name one")
    if is_folder and to.suffix.lower() in (".json", ".jsonl", ".gz", ".zst", ".parquet"):
        raise RunError(f"--to {to}: a data set is a folder: name one without {to.suffix}")
    if str(to) != "-" and to.exists():  # what a format does not carry would be gone
        place = to.resolve()
        for path in (Path(name).resolve() for name in inputs):
            if path.exists() and (place == path or path in place.parents):
                raise RunError(f"--to {to}: is one of the recordings that are read, or among them: name another")
    problems = Problems(strict=strict)
    conversations = RunInputs(tuple(inputs), form).read(problems)
    try:
        written = write_dataset(conversations, to, inputs, "--to") if is_folder else write(conversations, target, to)
    finally:
        report_problems(problems)
    say(f"{count(written, 'conversation')} written to {to}")
