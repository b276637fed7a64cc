"""A process that has imported what commands import, and forks one for each command: tests start hundreds of them.

Each runs in a process of its own, as from a shell, but its imports are there already. It is started by `command.py`:
requests come as lines of JSON on one pipe, process ids and exit codes go back on another.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import traceback
from typing import Any, NoReturn

PRELOADED = (
    "ctxbench.harness.cli",
    "ctxbench.harness.bill.bill",
    "ctxbench.harness.engine.workers",
    "ctxbench.harness.compare.gate",
    "ctxbench.harness.folder.run",
    "ctxbench.harness.engine.plan",
    "ctxbench.reports.compare",
    "ctxbench.reports.gate",
    "ctxbench.reports.html.folder",
    "ctxbench.reports.results",
    "ctxbench.reports.tables",
    "ctxbench.scenarios.embedded",
    "ctxbench.strategies.archive",
    "ctxbench.strategies.tiers.tiered",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pydantic.type_adapter",
    "quicktok",
    "rich.progress",
    "scipy.special",
    "sqlite3",
    "typer.rich_utils",
)


def serve(requests: int, answers: int) -> None:
    """Until nobody asks any more."""
    for name in PRELOADED:
        __import__(name)
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            pid = os.fork()
            if not pid:
                _run(json.loads(line))
            _, status = os.waitpid(pid, 0)
            os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def _run(asked: dict[str, Any]) -> NoReturn:
    """The command, in this process."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        for name, number in (("out", 1), ("err", 2)):
            opened = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, number)
            os.close(opened)
        sys.argv = asked["command"]
        sys.path[0] = os.path.dirname(asked["command"][0])
        code = _exit_code()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _exit_code() -> int:
    from ctxbench.harness.cli import main

    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
