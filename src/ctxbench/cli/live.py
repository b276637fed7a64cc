"""`ctxbench live`: the same tasks run live without and with a strategy, and how far replay was off."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Literal

from ctxbench.scenarios.errors import UserError

from .streams import report_problems, resumable


def live(
    before: Path,
    after: Path,
    *,
    strategy: str | None = None,
    by: Literal["task", "path", "id", "first"] | None = None,
    success: list[Path] | None = None,
    out: Path = Path("runs/live"),
    form: str | None = None,
    as_json: bool = False,
) -> None:
    """Compare live runs of the same tasks without and with a strategy: calls, tokens, bill, time, tasks solved.

    Runs are paired by task; repeated ones count as their mean, and repetitions before show how far two equal runs
    differ. With the strategy that was live, BEFORE is replayed through it, and what replay said a call would cost is
    put beside what it did. `ctxbench report` and `export mlflow` on the run folder show the comparison too.

    Args:
        before (BEFORE): Recordings of the agent with its whole history.
        after (AFTER): Recordings of the same tasks with the strategy.
        strategy (-s SPEC): The strategy that the agent had in AFTER.
        by: What names a task. [default: what pairs most tasks]
        success (FILE): Success by task, of BEFORE and then of AFTER: JSON `{task: true}`, or a report of SWE-bench.
            [default: the labels of the recordings]
        out (-o FOLDER): The run folder of the replay. [default: runs/live]
    """
    from ctxbench.harness.bill import usual_prices
    from ctxbench.harness.engine.plan import Plan, RunInputs, execute
    from ctxbench.harness.live import compared, labels, measures, predicted
    from ctxbench.reports.live import frame, live_table, store
    from ctxbench.scenarios.source import Problems

    from .output import put, results_of
    from .progress import watching

    if len(success or ()) not in (0, 2):
        raise UserError("--success: give it twice, for BEFORE and for AFTER")
    sides = []
    for path in (before, after):
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder")
        problems = Problems()
        sides.append(list(RunInputs((str(path),), form).read(problems)))
        report_problems(problems)
    found = compared(sides[0], sides[1], measures(usual_prices()), by, [labels(path) for path in success or ()])
    with redirect_stdout(sys.stderr), watching() as watcher, resumable("finished work is stored"):
        wanted = ("none", *([strategy] if strategy else []))
        plan = Plan(RunInputs((str(before),), form), wanted, probes=False, answers=False)
        execute(plan, out, jobs=1, overwrite=True, watcher=watcher)
    results = results_of(out, ())
    said = None
    if strategy is not None:
        totals = results.totals[results.totals.model == results.models[0]]
        costs = dict(zip(totals.strategy.astype(str), totals.cost + totals.cost_own, strict=True))
        said = predicted(found, costs, plan.strategies[1])
    rows = frame(found, strategy, said)
    store(results.run, rows)
    put(lambda: rows.to_dict(orient="records"), lambda: [live_table(rows)], as_json)
