"""The installed command, run as a user runs it."""

import atexit
import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Literal

from tests.harness import client

CTXBENCH = str(Path(sysconfig.get_path("scripts")) / "ctxbench")
Kind = Literal["commands", "providers", "pytest"]
PLAIN = {"COLUMNS": "200", "NO_COLOR": "1"}


def ctxbench(*words: object, cwd: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed command, in a process of its own. Whatever the outcome, there is never a traceback.

    It must end with that exit code; with any, if it is None.
    """
    command = [CTXBENCH, *map(str, words)]
    done = forked("providers" if any("openai/" in word for word in command) else "commands", command, cwd)
    assert "Traceback" not in done.stderr, done.stderr
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def forked(
    kind: Kind, command: list[str], cwd: Path, environment: Mapping[str, str] | None = None, **streams: int
) -> subprocess.CompletedProcess[str]:
    """Run a command, or a session of pytest, in a process that is forked from one with the imports.

    Its environment is that of the tests, with wide lines and without colours, if none is given. `streams` are open
    files that it writes to (`out`, `err`) in place of what is returned.
    """
    environment = {**os.environ, **PLAIN} if environment is None else environment
    with TemporaryDirectory() as folder, open(os.devnull, "rb") as nothing:
        paths = [Path(folder, name) for name in ("out", "err")]
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            files = (nothing.fileno(), streams.get("out", out.fileno()), streams.get("err", err.fileno()))
            code = client.run(_zygote(kind), command, str(cwd), environment, files)
        return subprocess.CompletedProcess(command, code, *map(_text, paths))


def with_ctxbench() -> str:
    """Return a PATH for shells in which `ctxbench` is run as `ctxbench()` runs it."""
    return f"{_programs()}{os.pathsep}{os.environ['PATH']}"


@cache
def _programs() -> Path:
    folder = _folder()
    words = (sys.executable, "-IS", str(Path(client.__file__)), _zygote("commands"))
    program = folder / "ctxbench"
    program.write_text(f"""#!/bin/sh\nexec {" ".join(f"'{word}'" for word in words)} "$0" "$@"\n""")
    program.chmod(0o755)
    return folder


def said(stderr: str) -> list[str]:
    """The lines on standard error, but for those of the progress, which a slow machine has more of."""
    return [line for line in stderr.splitlines() if not line.endswith("steps/s")]


@cache
def _zygote(kind: Kind) -> str:
    """Start the process that commands are forked from (`zygote.py`); return the address of its socket.

    There is one of a kind for each test process, and it ends with it, as its pipe does.
    """
    folder = _folder()
    address = str(folder / "socket")
    alive, held = os.pipe()
    os.set_inheritable(held, False)
    environment = {**os.environ, **PLAIN}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment["XDG_CACHE_HOME"] = str(folder)  # what imports leave there is not the test's that comes first
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py")), str(alive), str(listener.fileno()), kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(alive, listener.fileno()),
            env=environment,
        )
    os.close(alive)
    atexit.register(_end, process, held)
    return address


def _end(process: subprocess.Popen[bytes], held: int) -> None:
    os.close(held)
    process.wait(timeout=10)


def _folder() -> Path:
    """Make a folder that goes with this process."""
    folder = mkdtemp()
    atexit.register(rmtree, folder, ignore_errors=True)
    return Path(folder)


def _text(path: Path) -> str:
    """As `subprocess` gives it with `text=True`."""
    with path.open(newline=None) as text:
        return text.read()
