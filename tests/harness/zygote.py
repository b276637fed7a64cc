"""A process that has imported what commands import, and forks one for each command: tests start hundreds of them.

Each runs in a process of its own, as from a shell, but its imports are there already. It is started by `command.py`:
requests come as lines of JSON on one pipe, process ids and exit codes go back on another.
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import sys
import threading
import traceback
from importlib import import_module
from typing import Any, NoReturn

import quicktok

import ctxbench

PRELOADED = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.parquet",
    "pydantic.type_adapter",
    "rich.progress",
    "scipy.special",
    "sqlite3",
    "tenacity",
    "typer.rich_utils",
)
"""What modules of ctxbench import when they are used; they themselves are all imported."""
PROVIDERS = ("litellm", "openai.resources.chat", "openai.resources.embeddings", "fastapi")
"""What calls of a provider import, for some seconds."""


def serve(requests: int, answers: int, preloaded: tuple[str, ...]) -> None:
    """Until nobody asks any more."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # as the command does; else the import tries the network
    for module in pkgutil.walk_packages(ctxbench.__path__, "ctxbench."):
        if module.name not in ("ctxbench.__main__", "ctxbench.harness.graders.ragas_models"):  # the latter needs ragas
            import_module(module.name)
    for name in preloaded:
        import_module(name)
    quicktok.get_encoding("o200k_base")
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
    serve(int(sys.argv[1]), int(sys.argv[2]), PRELOADED + (PROVIDERS if sys.argv[3:] == ["providers"] else ()))
