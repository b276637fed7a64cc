"""`ctxbench run`: recordings through strategies, into a run folder and a table."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .say import say

DEFAULT = (
    "none",
    "window(max_tokens=8000)",
    "window(max_tokens=32000)",
    "window(messages=20)",
    "last_turn",
)
"""What runs when no strategy is named."""


def run(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings (files or folders) and embedded scenarios by name.",
            metavar="PATH|SCENARIO...",
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
    strict: Annotated[
        bool, typer.Option("--strict/--keep-going", help="Stop at the first recording that cannot be read.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Replay recordings through strategies and measure what each would send.

    A run that was stopped goes on where it was when the same command is given again.
    """
    from ...scenarios.errors import RunError
    from ..inputs import Inputs
    from ..run import Plan, execute
    from ..store import is_complete
    from .progress import watching
    from .summary import print_run

    names = tuple(inputs or (() if form else ("standard",)))
    plan = Plan(Inputs(names, form, turns, seed), tuple(strategy or DEFAULT), encoding, model)
    folder = out or Path("runs") / _name(names)
    workers = jobs or os.cpu_count() or 1
    complete = is_complete(folder) and not overwrite
    try:
        with watching() as watcher:
            manifest = execute(plan, folder, jobs=workers, strict=strict, overwrite=overwrite, watcher=watcher)
    except KeyboardInterrupt:
        say(f"stopped; what is finished is kept. To go on: {_again()}")
        raise typer.Exit(130) from None
    _say_what_was_left_out(manifest)
    if not manifest["conversations"]:
        raise RunError("no conversation could be read: nothing was measured")
    if complete and not watcher.steps:
        say(f"{folder}: everything was measured before; --overwrite measures again")
    print_run(folder, as_json)
    if not as_json:
        typer.echo(f"\nresults: {folder}/   (ctxbench report {folder}, ctxbench show {folder})")


def _name(names: tuple[str, ...]) -> str:
    """The run folder's name when none is given: that of the first input."""
    return (Path(names[0]).resolve().stem if names else "") or "run"


def _again() -> str:
    words = [word for word in sys.argv[1:] if word != "--overwrite"]
    return shlex.join(["ctxbench", *words])


def _say_what_was_left_out(manifest: dict[str, Any]) -> None:
    problems, ignored = manifest["problems"], manifest["ignored"]
    most = 10
    for problem in problems[:most]:
        place = f"{problem['file']}:{problem['line']}" if problem["line"] else problem["file"]
        place += f": {problem['field']}" if problem["field"] else ""
        remedy = f" ({problem['remedy']})" if problem["remedy"] else ""
        say(f"left out: {place}: {problem['what']}{remedy}")
    if len(problems) > most:
        say(f"left out: {len(problems) - most} more; all are in manifest.json and in the report")
    if ignored:
        some = ", ".join(Path(each).name for each in ignored[:4]) + (" …" if len(ignored) > 4 else "")
        say(f"not recordings: {len(ignored)} files ({some})")
