"""`ctxbench live`: the same tasks run live without and with a strategy, and how far replay was off."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from ctxbench.scenarios.errors import UserError

from .run import check_stored
from .streams import report_problems, resumable, say


def live(
    before: Path,
    after: Path,
    *,
    strategy: str | None = None,
    by: Literal["task", "first", "id", "path"] | None = None,
    success: list[Path] | None = None,
    detect: Annotated[float, Meta(ge=1, le=100)] = 10.0,
    out: Path | None = None,
    overwrite: bool = False,
    form: str | None = None,
    as_json: bool = False,
) -> None:
    """Compare live runs of the same tasks without and with a strategy: calls, tokens, bill, time, tasks solved.

    Repeated runs in BEFORE show how far two equal runs differ. With --strategy BEFORE is replayed, to say how far off
    replay was. `ctxbench report` and `export mlflow` show the comparison too.

    Args:
        before (BEFORE): Recordings of the agent with its whole history: a file or a folder.
        after (AFTER): Recordings of the same tasks with the strategy.
        strategy (-s SPEC): The strategy that the agent had in AFTER.
        by: What names a task. [default: the recording; where it names none, what pairs the most tasks]
        success (FILE): Success by task, JSON `{"task": true}` or a report of SWE-bench: give it twice, for BEFORE and
            for AFTER. [default: the labels of the recordings]
        detect (PERCENT): The change, of tasks solved in points, that you want to see: how many tasks does it take?
        out (-o FOLDER): The run folder of the replay: one that was stopped goes on. [default: runs/live, made anew]
    """
    from ctxbench.harness.engine.plan import Plan, RunInputs, execute
    from ctxbench.harness.live import compared, read_task_runs, store_live, with_replay
    from ctxbench.reports.live import live_tables

    from .output import put, results_of
    from .progress import watching

    if success and len(success) != 2:
        raise UserError("--success: give it twice, for BEFORE and for AFTER")
    wanted = tuple(dict.fromkeys(("none", strategy or "none")))
    plan = Plan(RunInputs((str(before),), form), wanted, probes=False, answers=False)
    labels = zip((before, after), success or (None, None), strict=True)
    sides = [read_task_runs(path, form, file, partial(report_problems, most=3)) for path, file in labels]
    found = compared(sides[0], sides[1], by, detect / 100)
    folder = out or Path("runs/live")
    with redirect_stdout(sys.stderr), watching() as watcher, resumable("finished work is stored", folder):
        look, anew = partial(check_stored, folder), overwrite or out is None
        execute(plan, folder, jobs=os.cpu_count() or 1, overwrite=anew, watcher=watcher, check=look)
    results = results_of(folder)
    if strategy is not None:
        found = with_replay(found, sides[0], replace(results, models=results.models[:1]).bills, plan.strategies[-1])
        for name, why in list(results.run.failures.get(plan.strategies[-1], {}).items())[:1]:
            say(f"replay lacks recordings in which {strategy} failed, as {name}: {why}")
    store_live(results.run, found)
    put(lambda: found, lambda: live_tables(found), as_json)
    say(f"the run is in {folder}; as a page: {shlex.join(['ctxbench', 'report', str(folder)])}")
