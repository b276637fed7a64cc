"""A process that has imported what commands import, and forks one for each command: tests start hundreds of them.

Each runs in a process of its own, as from a shell, but its imports are there already. It is started by `command.py` and
asked by `client.py` through a socket: a line with standard input, output and error, then the command as JSON; the
answer is the exit code. It ends when the process that started it has ended, whose pipe it holds.
"""

import atexit
import gc
import json
import os
import pkgutil
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from select import select
from typing import Any, NoReturn

LIBRARIES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "pydantic.type_adapter",
    "rich._emoji_codes",
    "rich.progress",
    "rjieba",
    "scipy.special",
    "sqlite3",
    "typer._adapters",
    "typer.rich_utils",
)
"""Modules that those of ctxbench import when they are used."""
TUNING = ("optuna.samplers", "scipy.cluster.hierarchy", "scipy.stats")
"""Names of the modules that `tune` imports, which takes more than a second."""
PROVIDERS = ("litellm", "openai.resources.chat", "openai.resources.embeddings", "fastapi")
"""What calls of a provider import, for some seconds."""
PYTEST = ("pytest", "_pytest.assertion.rewrite", "_pytest.junitxml", "filelock", "msgspec.json", "zstandard")
"""Modules that a session of pytest imports."""


def serve(alive: int, listener: socket.socket, kind: str) -> None:
    """Fork a process for each connection, until the other end of the pipe is closed."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # as the command does; else the import tries the network
    program = _command
    _import_ctxbench()
    _import(*LIBRARIES)
    with suppress(ImportError):
        _import(*TUNING)
    if kind == "providers":
        _import(*PROVIDERS)
    if kind == "pytest":
        program = _pytest
        _import(*PYTEST)
        _leave_plugins()
    import_module("quicktok").get_encoding("o200k_base")
    gc.freeze()  # what is there stays, so that no process has to look through it
    ends: list[Any] = [alive, listener]
    while alive not in select(ends, [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _run(connection, program)
        connection.close()
        _reap()


def _import(*names: str) -> None:
    for name in names:
        import_module(name)


def _import_ctxbench() -> None:
    import ctxbench

    for module in pkgutil.walk_packages(ctxbench.__path__, "ctxbench."):
        if module.name != "ctxbench.__main__":
            import_module(module.name)
    from ctxbench.scenarios.files import code_digest
    from ctxbench.scenarios.readers import readers
    from ctxbench.strategies.chain import strategies

    for registry in (readers, strategies, code_digest):  # what they find is the same in every process
        registry()


def _leave_plugins() -> None:
    """Tell pytest not to rewrite the packages that bring its plug-ins: it warns of those that are imported already."""
    for plugin in entry_points(group="pytest11"):
        files = (plugin.dist and plugin.dist.files) or ()
        for name in {plugin.module.partition(".")[0], *(file.parts[0].removesuffix(".py") for file in files)}:
            if name in sys.modules:
                sys.modules[name].__doc__ = "PYTEST_DONT_REWRITE"


def _reap() -> None:
    """Forget the processes that have ended; their exit codes are known to those who asked for them."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _run(connection: socket.socket, program: Callable[[list[str]], None]) -> NoReturn:
    """Be the process that was asked for."""
    code = 1
    try:
        os.setpgid(0, 0)
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as text:
            asked: dict[str, Any] = json.loads(text.read())
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.argv = asked["command"]
        code = _exit_code(program)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            connection.sendall(b"%d" % code)
        finally:
            os._exit(code)


def _exit_code(program: Callable[[list[str]], None]) -> int:
    try:
        program(sys.argv)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


def _command(words: list[str]) -> None:
    from ctxbench.cli import main

    sys.path[0] = os.path.dirname(words[0])
    main()


def _pytest(words: list[str]) -> None:
    """As `python -m pytest`."""
    import pytest

    sys.path[0] = os.getcwd()
    sys.exit(pytest.main(words[1:]))


if __name__ == "__main__":
    serve(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), sys.argv[3])
