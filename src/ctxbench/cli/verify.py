"""`ctxbench lab verify`: is every file of a run as it was written?"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import JobsOption, JsonOption, ModelOptions, RunArgument, StrictOption, flat, run_folder
from .replies import end
from .streams import command, say

if TYPE_CHECKING:
    from ctxbench.harness.folder.files import Damage
    from ctxbench.harness.folder.remote import RemoteFolder
    from ctxbench.harness.folder.schema import Manifest
    from ctxbench.harness.models import Settings

_MOST_SHOWN = 20


@flat
def verify(
    run: RunArgument = Path("runs"),
    repair: Annotated[bool, typer.Option("--repair", help="Make what is damaged again, and nothing else.")] = False,
    jobs: JobsOption = 0,
    strict: StrictOption = False,
    as_json: JsonOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Compare every file of a run with the receipts that were written with it.

    Named are files that are missing, that changed by as much as a bit, or that come from another run. The exit code is
    1 if there are any, unless all could be made again. `--repair` replays just the damaged parts from the recordings,
    which must be where they were; name the servers and cassettes of the run's models again if it had any. The exit code
    is 2 if one of them gave no usable reply at all, and with --strict if any reply is missing.
    """
    from ctxbench.harness.answers.tally import run_tallies, tallies_json
    from ctxbench.harness.folder.remote import located
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.folder.store import read_manifest

    folder = run_folder(run)
    manifest = read_manifest(folder)
    damaged = _damage(folder, manifest)
    left = damaged
    settings = None
    if repair and (damaged or not manifest.complete):
        with redirect_stdout(sys.stderr):  # standard output is for figures, whatever a plug-in prints
            settings = _make_again(folder, located(run)[1], manifest, jobs, reach)
        left = _damage(folder, read_manifest(folder))
    tallies = [] if settings is None else run_tallies(load(folder))
    if as_json:
        from .output import print_json

        complete, replies = read_manifest(folder).complete, tallies_json(tallies)
        print_json({"damaged": _rows(damaged), "left": _rows(left), "complete": complete, "replies": replies})
    else:
        _print(folder, manifest, damaged, left, repair)
    if left:
        raise typer.Exit(1)
    if settings is not None:
        end(tallies, strict, settings, folder)


def _damage(folder: Path, manifest: Manifest) -> list[Damage]:
    from ctxbench.harness.answers import store as answers
    from ctxbench.harness.folder.store import damage, whole_shards

    shards = None if manifest.complete else whole_shards(folder, len(manifest.plan.strategies))
    return damage(folder, manifest, shards) + answers.damage(folder)


def _make_again(
    folder: Path, remote: RemoteFolder | None, manifest: Manifest, jobs: int, reach: ModelOptions
) -> Settings:
    """Replay what is damaged, and return the settings of the models that it took."""
    import os

    from ctxbench.harness.engine.plan import execute, plan_of

    from .progress import watching

    settings = reach.settings(summariser=manifest.plan.summariser, embedder=manifest.plan.embedder)
    plan = plan_of(manifest, settings, answers=(folder / "answers").is_dir())
    with watching() as watcher:
        execute(plan, folder, jobs=jobs or os.cpu_count() or 1, ask_again=False, watcher=watcher, remote=remote)
    return settings


def _rows(damaged: list[Damage]) -> list[dict[str, Any]]:
    return [found._asdict() for found in damaged]


def _print(folder: Path, manifest: Manifest, damaged: list[Damage], left: list[Damage], repaired: bool) -> None:
    from msgspec import UNSET

    from ctxbench.reports.render import count

    unfinished = "" if manifest.complete or repaired else "; the run is not finished"
    if not damaged:
        typer.echo(f"{folder}: every file is as it was written{unfinished}")
        return
    if not left:
        typer.echo(f"{folder}: made again, and as it was written now: {count(len(damaged), 'damaged file')}")
    else:
        typer.echo(f"{folder}: {count(len(left), 'damaged file')}{unfinished}")
    for found in damaged[:_MOST_SHOWN]:
        typer.echo(f"  {found}")
    if len(damaged) > _MOST_SHOWN:
        typer.echo(f"  and {len(damaged) - _MOST_SHOWN} more")
    if left and repaired:
        say("what is left is no part of the run: answers of other models (`ctxbench lab answer`), or files to remove")
    elif left and manifest.plan.redaction is not UNSET:
        say("to make it again: give its `ctxbench run` command again; a run with --redact has no names of files in it")
    elif left:
        say(f"to make it again: {command('lab', 'verify', folder, '--repair')}")
