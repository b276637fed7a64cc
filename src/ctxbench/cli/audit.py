"""`ctxbench audit`: what an agent's own compaction did in recorded sessions, and what would have done better."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Meta

from ctxbench.scenarios.errors import RunError, Stopped, UserError

from .arguments import MOST_OF_ANYTHING, Jobs
from .configuration import found_agents
from .streams import command, report_problems, resumable, say, say_stopped


def audit(
    paths: list[Path] | None = None,
    *,
    last: Annotated[int, Meta(ge=1, le=MOST_OF_ANYTHING)] = 100,
    out: Path | None = None,
    model: list[str] | None = None,
    jobs: Jobs = 0,
    overwrite: bool = False,
    as_json: bool = False,
    form: str | None = None,
) -> None:
    """Say what your agent's own compaction saved, cost and dropped, and which strategy would have done better.

    Without a path it looks for the session folders of known agents, lists them and asks before it reads. Nothing leaves
    this machine. The sessions are replayed as the agent sent them, whole, and through ten alternatives, into a run
    folder.

    Args:
        paths (PATH): Recorded sessions: files or folders. [default: the folders of known agents on this machine]
        last (N): Read the newest N sessions.
        out (-o FOLDER): The run folder. [default: runs/audit]
    """
    from ctxbench.harness.audit import aftermaths, replayed_without
    from ctxbench.harness.bill import check_priced
    from ctxbench.harness.engine.plan import Plan, RunInputs, execute
    from ctxbench.harness.folder.store import is_complete
    from ctxbench.reports.audit import Audit, Spared, audit_table
    from ctxbench.reports.audit import as_json as audit_json
    from ctxbench.reports.verdict_text import five_measures
    from ctxbench.scenarios.model import RECORDED

    from .output import put, results_of
    from .progress import watching
    from .run import report_manifest

    for path in paths or ():
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder")
    check_priced(model or ())
    sessions = _newest(paths or _found(), last, form)
    alternatives = tomllib.loads(files(__package__).joinpath("data/audit.toml").read_text("utf-8"))["alternatives"]
    folder = out or Path("runs/audit")
    # Sessions grow and new ones come: a finished audit in its own place is made anew, one that was stopped goes on.
    overwrite = overwrite or (out is None and is_complete(folder))
    with redirect_stdout(sys.stderr), watching() as watcher:
        plan = Plan(RunInputs(sessions, form), ("none", RECORDED, *alternatives), probes=False, answers=False)
        workers = jobs or os.cpu_count() or 1
        with resumable("finished work is stored"):
            manifest = execute(plan, folder, jobs=workers, overwrite=overwrite, watcher=watcher)
    report_manifest(manifest, folder)
    try:
        results = results_of(folder, model or ())
        with redirect_stdout(sys.stderr), watching() as watcher:
            after = aftermaths(results.run)
            without = replayed_without(results.run, after, jobs=workers, watcher=watcher)
        found = Audit(Spared.of(results, without), after)
        put(lambda: audit_json(found), lambda: [audit_table(found), five_measures(found.places)], as_json)
    except Stopped:
        say_stopped(f"everything is measured. To print the tables: {command('report', folder)}")
        raise


def _found() -> list[Path]:
    """Return the session folders of known agents, once the user agrees. Raises UserError without an answer."""
    agents = found_agents()
    if not agents:
        raise UserError("no session folder of a known agent is here (ctxbench list formats): give a PATH")
    say("found on this machine:")
    rows = [(agent.name, agent.folder, agent.number, f"{agent.size / 1e6:,.1f} MB") for agent in agents]
    name, folder, count, size = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        say(f"  {row[0]:<{name}}  {row[1]:<{folder}}  {row[2]:>{count}}  {row[3]:>{size}}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nobody is here to be asked whether to read them: give a PATH")
    if not typer.confirm("Read them? Nothing leaves this machine.", default=True, err=True):
        raise typer.Exit
    return [Path(os.path.expanduser(agent.folder)) for agent in agents]


def _newest(paths: Sequence[Path], last: int, form: str | None) -> tuple[str, ...]:
    """Return the files of the newest sessions, newest first. Files that are read together are one session."""
    from ctxbench.scenarios.packed import changed_at
    from ctxbench.scenarios.read import find
    from ctxbench.scenarios.source import Problems

    problems = Problems()
    batches = find(paths, problems, form)
    report_problems(problems)
    if not batches:
        raise RunError(f"{', '.join(map(str, paths))}: no recorded session is there")
    batches.sort(key=lambda batch: max(map(changed_at, batch.files)), reverse=True)
    if len(batches) > last:
        say(f"the newest {last:,} of {len(batches):,} sessions; --last {len(batches)} reads them all")
    return tuple(str(file) for batch in batches[:last] for file in batch.files)
