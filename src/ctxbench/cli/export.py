"""`ctxbench export` and `ctxbench convert`: runs and recordings for other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import (
    MOST_TOKENS,
    REDACTION_PANEL,
    BilledModelsOption,
    ConversationsOption,
    FormatOption,
    JsonOption,
    PricesOption,
    RedactionOptions,
    RunArgument,
    SeedOption,
    StrategyOption,
    StrictOption,
    ToOption,
    TrackingOption,
    TurnsOption,
    flat,
    prices_of,
    run_folder,
)
from .streams import command, report_ignored, say

if TYPE_CHECKING:
    from ctxbench.harness.export.bench import Bench
    from ctxbench.harness.export.mlflow import LogResult, TrackingStore
    from ctxbench.harness.redaction.redact import Redactor
    from ctxbench.metrics.prices import Prices
    from ctxbench.scenarios.model import Conversation


ExperimentOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", envvar="MLFLOW_EXPERIMENT_NAME", help="Name of the experiment.", show_default="ctxbench"
    ),
]


def prometheus(
    run: RunArgument = Path("runs"),
    to: ToOption = Path("-"),
    model: BilledModelsOption = None,
) -> None:
    """Write a run as Prometheus text: agent_token_usage_total and others, by strategy and scenario.

    The file is for the textfile collector, which may read it at any moment: it is replaced as a whole.
    """
    from ctxbench.harness.bill.recorded import billed_models
    from ctxbench.harness.export.prometheus import prometheus as as_text
    from ctxbench.harness.folder.run import load

    opened = load(run_folder(run))
    _place(as_text(opened, billed_models(opened, model or ())).encode(), to)


def mooncake(
    run: RunArgument = Path("runs"),
    strategy: StrategyOption = None,
    to: ToOption = Path("-"),
    block_size: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Tokens of a block of the KV cache.")] = 512,
) -> None:
    """Write a strategy's requests as a trace for benchmarks of servers, in the format of Mooncake.

    It has times, lengths and numbers of shared blocks, and no text. A strategy has a trace of its own: the same traffic
    under two strategies is two files.
    """
    from ctxbench.harness.export.mooncake import lines, trace
    from ctxbench.harness.folder.run import load

    from .arguments import find_strategy

    opened = load(run_folder(run))
    name = find_strategy(opened, strategy)
    calls = trace(opened, name, block_size)
    _place(b"".join(lines(calls)), to)
    say(f"{len(calls):,} calls under {name}")


def dataset(
    run: RunArgument = Path("runs"),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the data set.", show_default="RUN/dataset"),
    ] = None,
) -> None:
    """Write the recordings of a run as a Hugging Face data set: Parquet, dataset_info.json and a card.

    Each row has the messages in OpenAI's form, and the whole recording, so that `ctxbench run FOLDER --format
    huggingface` reads the same conversations again. The texts are what was said: look at them before you publish them.
    """
    from ctxbench.harness.export.dataset import write_dataset
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.render import count

    folder = run_folder(run)
    out = out or folder / "dataset"
    written = write_dataset(load(folder), out)
    say(f"written: {out} ({count(written, 'conversation')})")
    again = command("run", out, "--format", "huggingface")
    typer.echo(f"to replay it: {again}")


def _place(content: bytes, to: Path) -> None:
    """Write a file as a whole; - is standard output. Raises RunError if it cannot be written."""
    from ctxbench.harness.folder.files import placed
    from ctxbench.scenarios.errors import RunError

    if str(to) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        with placed(to) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise RunError(f"{to}: cannot be written: {error.strerror or error}") from None
    say(f"written: {to}")


RUNS = Path("runs")


def mlflow(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Run folders.", show_default="the newest under runs/")
    ] = None,
    tracking_uri: TrackingOption = "",
    experiment: ExperimentOption = "",
    model: BilledModelsOption = None,
    prices: PricesOption = None,
    report: Annotated[
        bool | None,
        typer.Option(
            "--report/--no-report",
            help="Attach the report with its tables. It shows texts of the recordings.",
            show_default="attached to what is on this machine",
        ),
    ] = None,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Log the runs under runs/ that could not be logged before.")
    ] = False,
) -> None:
    """Log runs in MLflow, with a nested run for each strategy and the figures of `ctxbench compare`.

    An unchanged run is left as it is; a changed one is logged again and the old one deleted. If MLflow cannot be
    written to, the run waits for this command.
    """
    from ctxbench.harness.export.mlflow import waiting as waiting_runs
    from ctxbench.harness.folder.remote import fetched
    from ctxbench.scenarios.errors import NotLogged

    from .arguments import run_folder

    folders = list(runs or ())
    if waiting:
        folders += [folder for folder in waiting_runs(RUNS) if folder not in folders]
        if not folders:
            say(f"no run under {RUNS}/ waits for MLflow")
            return
    failed: list[str] = []
    for folder in folders or [run_folder(RUNS)]:
        try:
            log(fetched(folder), tracking_uri, experiment, tuple(model or ()), report, prices)
        except NotLogged as error:
            failed.append(str(error))
            say(f"error: {error}")
    for beside in dict.fromkeys(folder.resolve().parent for folder in folders or [RUNS / "any"]):
        report_waiting(beside)
    if failed:
        raise typer.Exit(2)


def wandb(
    run: RunArgument = Path("runs"),
    server: Annotated[
        str, typer.Option(metavar="URL", help="Send it to this server.", show_default="files beside the run")
    ] = "",
    model: BilledModelsOption = None,
) -> None:
    """Log a run in Weights & Biases, an entry per strategy.

    Without --server nothing is sent: the files beside the run can be sent later.
    """
    from ctxbench.api.runs import load

    say(load(run_folder(run), model=model or ()).log("wandb", server))


def tensorboard(
    run: RunArgument = Path("runs"),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Its log folder.", show_default="beside the run"),
    ] = None,
    model: BilledModelsOption = None,
) -> None:
    """Log a run for TensorBoard, an entry per strategy, and print how to look at it."""
    from ctxbench.api.runs import load

    say(load(run_folder(run), model=model or ()).log("tensorboard", str(out or "")))


def log(
    folder: Path,
    to: str = "",
    experiment: str = "",
    models: tuple[str, ...] = (),
    report: bool | None = None,
    prices: Path | None = None,
) -> None:
    """Log a run and print where. If MLflow cannot be written to, note that the run waits and raise NotLogged.

    `to` and `experiment` are those of the environment by default, `prices` a file of the user's. The report, which
    shows texts of the recordings, is attached to a store on this machine, and to a server only if `report` says so.
    """
    from ctxbench.harness.export.mlflow import EXPERIMENT, done, place, wait
    from ctxbench.scenarios.errors import NotLogged

    from .arguments import check_prices

    check_prices(models, prices_of(prices))
    where = place(folder, to or os.environ.get("MLFLOW_TRACKING_URI", ""))
    experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "") or EXPERIMENT
    billed = [word for name in models for word in ("-m", name)] + (["--prices", str(prices)] if prices else [])
    try:
        attached = where.is_local if report is None else report
        _say(folder, where, _written(folder, where, experiment, models, attached, prices_of(prices)))
    except NotLogged as error:
        wait(folder, where.name, str(error))
        later = command("export", "mlflow", folder, *billed)
        raise NotLogged(f"{error}. {folder} waits: {later} logs it when MLflow is available") from None
    done(folder, where.name)
    if report is None and not where.is_local:
        again = command("export", "mlflow", folder, *billed, "--report")
        say(f"without the report, which shows texts of the recordings: {again} attaches it")


def _written(
    folder: Path, where: TrackingStore, experiment: str, models: tuple[str, ...], report: bool, prices: Prices
) -> LogResult:
    from ctxbench.harness.bill.recorded import billed_models
    from ctxbench.harness.export.bench import bench
    from ctxbench.harness.export.mlflow import reach, write
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.folder.steps import rows_of

    run = load(folder)
    reach(where, experiment)
    logged = bench(run, rows_of, billed_models(run, models), prices)
    measured = int((folder / "manifest.json").stat().st_mtime * 1000)
    if not report or _is_private(logged):
        return write(logged, where, measured, None, experiment)
    from ctxbench.reports.html.folder import write as write_report

    from .output import results_of

    with TemporaryDirectory() as files:
        write_report(results_of(folder, models, prices), Path(files))
        return write(logged, where, measured, Path(files), experiment)


def _is_private(logged: Bench) -> bool:
    if logged.is_private:
        say("the report is left out: a strategy has a parameter that looks like a key, and the report shows it")
    return logged.is_private


def _say(folder: Path, where: TrackingStore, written: LogResult) -> None:
    from ctxbench.harness.export.mlflow import how_to_see

    words = {
        "logged": "logged in MLflow",
        "updated": "logged again in MLflow, and the old one deleted there",
        "unchanged": "already in MLflow",
    }
    typer.echo(f"{folder}: {words[written.word]}: {where.name}, experiment {written.experiment}")
    typer.echo(f"to see it: {how_to_see(where, written)}")


def report_waiting(beside: Path) -> None:
    """Print the runs in a folder that wait for MLflow."""
    from ctxbench.harness.export.mlflow import waiting

    runs = waiting(beside)
    for folder, entry in runs.items():
        say(f"waits for MLflow: {folder} ({entry.to})")
    if runs:
        say(f"to log them: {command('export', 'mlflow', *runs)}")


_FILE_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet")


class TargetFormat(StrEnum):
    """Formats that conversations are written in."""

    ctxbench = "ctxbench"
    openai = "openai"
    anthropic = "anthropic"
    otlp = "otlp"
    atif = "atif"
    sharegpt = "sharegpt"
    dataset = "dataset"


@flat
def convert(
    inputs: Annotated[list[str], typer.Argument(help="Recordings and embedded scenarios.", metavar="PATH|SCENARIO")],
    to: ToOption,
    target: Annotated[
        TargetFormat,
        typer.Option(
            "--as",
            help="ctxbench is lossless; OpenAI chats, Anthropic requests and responses, OTLP spans, ATIF trajectories "
            "and ShareGPT are JSON Lines; dataset is a Hugging Face folder.",
        ),
    ] = TargetFormat.ctxbench,
    form: FormatOption = None,
    turns: TurnsOption = None,
    seed: SeedOption = 0,
    number: ConversationsOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
    redacting: RedactionOptions = RedactionOptions(),  # noqa: B008
    redact_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what was replaced to this file, so that --restore can have it back; keep it to yourself. One "
            "that is there goes on.",
            rich_help_panel=REDACTION_PANEL,
        ),
    ] = None,
    restore: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Put back what was replaced, from the file of --redact-key.",
            rich_help_panel=REDACTION_PANEL,
        ),
    ] = None,
) -> None:
    """Convert recordings to ctxbench JSONL, losslessly, or to another format.

    What the other format does not carry is counted and named. A file whose name ends in .gz or .zst is compressed.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.redaction.redact import KeyFile, Redactor, read_key, restored
    from ctxbench.reports.render import count
    from ctxbench.scenarios.errors import RunError
    from ctxbench.scenarios.source import Problems

    from .output import print_json

    if str(to) == "-" and (as_json or target is TargetFormat.dataset):
        what = "--json prints on standard output" if as_json else "a data set is a folder"
        raise RunError(f"--to -: {what}: name a file or folder")
    if target is TargetFormat.dataset and to.suffix.lower() in _FILE_SUFFIXES:
        raise RunError(f"--to {to}: a data set is a folder: name one without {to.suffix}")
    _refuse_inputs(inputs, to, "--to")
    settings = redacting.settings()
    if restore is not None and settings is not None:
        raise RunError("--restore puts back what --redact replaces: give one of them")
    if redact_key is not None and (settings is None or target is not TargetFormat.ctxbench):
        raise RunError("--redact-key is for --redact into ctxbench JSONL: add --redact, and no other --as")
    if redact_key is not None:
        _refuse_inputs(inputs, redact_key, "--redact-key")
        if redact_key.resolve() == to.resolve():
            raise RunError(f"--redact-key {redact_key}: is the file that is written: name another")
    problems = Problems(strict=strict)
    recordings = RunInputs(tuple(inputs), form, turns, seed, number)
    conversations, redactor = recordings.open(problems).conversations(), None
    if restore is not None:
        conversations = restored(conversations, read_key(restore), str(restore))
    if settings is not None:
        key = None if redact_key is None else read_key(redact_key) if redact_key.exists() else KeyFile()
        redactor = Redactor(settings, recordings.open(Problems()).conversations(), key)
        conversations = _redacted(conversations, redactor, redact_key)
        inputs = list(map(redactor.text, inputs))  # which the card of a data set names
    written, not_carried = _converted(conversations, target, to, inputs)
    for problem in problems.errors:
        say(f"left out: {problem}")
    report_ignored(problems.ignored, problems.notes)
    if not written:
        raise RunError(
            f"{target} carries none of these conversations" if not_carried else "no conversation could be read"
        )
    say(f"{count(written, 'conversation')} written to {to}")
    if not_carried:
        kinds = [count(number, kind) for kind, number in not_carried.items()]
        say(f"not carried by {target}: {', '.join(kinds)}")
    if redactor is not None:
        say(f"redacted: {redactor.summary()}; look at what is left before you share it")
    if redact_key is not None:
        say(f"keep {redact_key} to yourself: it has what was replaced, and --restore puts it back")
    if as_json:
        converted = {"conversations": written, "format": str(target), "not_carried": not_carried}
        if redactor is not None:
            different = redactor.different
            converted["redacted"] = {
                kind: {"places": places, "different": different[kind]} for kind, places in redactor.counts.items()
            }
        print_json(converted)


def _redacted(conversations: Iterator[Conversation], redactor: Redactor, key: Path | None) -> Iterator[Conversation]:
    """Yield redacted conversations. The key file is written behind the last, before the output has its name."""
    from ctxbench.harness.redaction.redact import write_key

    yield from redactor.conversations(conversations)
    if key is not None and redactor.key is not None:
        write_key(key, redactor.key)


def _converted(
    conversations: Iterator[Conversation], target: TargetFormat, to: Path, inputs: Sequence[str]
) -> tuple[int, dict[str, int]]:
    """Write the conversations; return their number, and what is not carried by kind, the most frequent first."""
    from ctxbench.scenarios.errors import RunError

    if target is TargetFormat.dataset:
        from ctxbench.harness.export.dataset import write_conversations

        return write_conversations(conversations, to, inputs, "--to"), {}
    from ctxbench.harness.export.convert import convert as write

    try:
        converted = write(conversations, target, to)
    except OSError as error:
        raise RunError(f"{to}: cannot be written: {error.strerror or error}") from None
    kinds = sorted(converted.not_carried.items(), key=lambda entry: (-entry[1], entry[0]))
    return converted.conversations, dict(kinds)


def _refuse_inputs(inputs: list[str], to: Path, option: str) -> None:
    """Raise RunError if the target is a file or folder that is read: what a format does not carry would be gone."""
    from ctxbench.scenarios.errors import RunError

    if str(to) == "-" or not to.exists():
        return
    target = to.resolve()
    for name in inputs:
        path = Path(name).resolve()
        if path.exists() and (target == path or path in target.parents):
            raise RunError(f"{option} {to}: is one of the recordings that are read, or among them: name another")
