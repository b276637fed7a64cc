"""The installed command, run as a user runs it."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp

CTXBENCH = str(Path(sysconfig.get_path("scripts")) / "ctxbench")


def ctxbench(*words: object, cwd: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed command, in a process of its own. Whatever the outcome, there is never a traceback.

    It must end with that exit code; with any, if it is None.
    """
    command = [CTXBENCH, *map(str, words)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"command": command, "cwd": str(cwd), "environment": environment, "out": str(out), "err": str(err)}
        returned = _zygote(providers=any("openai/" in word for word in command)).run(asked)
        done = subprocess.CompletedProcess(command, returned, _text(out), _text(err))
    assert "Traceback" not in done.stderr, done.stderr
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def said(stderr: str) -> list[str]:
    """The lines on standard error, but for those of the progress, which a slow machine has more of."""
    return [line for line in stderr.splitlines() if not line.endswith("steps/s")]


class _Zygote:
    """The process that commands are forked from (`zygote.py`)."""

    def __init__(self, providers: bool) -> None:
        requests, answers = os.pipe(), os.pipe()
        self._requests, self._answers = os.fdopen(requests[1], "wb", 0), os.fdopen(answers[0], "rb")
        command = [sys.executable, str(Path(__file__).with_name("zygote.py")), str(requests[0]), str(answers[1])]
        command += ["providers"] if providers else []
        environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment["XDG_CACHE_HOME"] = mkdtemp()  # what imports leave there is not the test's that comes first
        atexit.register(rmtree, environment["XDG_CACHE_HOME"], ignore_errors=True)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(requests[0], answers[1]),
            env=environment,
        )
        os.close(requests[0])
        os.close(answers[1])

    def run(self, asked: dict[str, object]) -> int:
        """The exit code of a command."""
        self._requests.write(json.dumps(asked).encode() + b"\n")
        answer = self._answers.readline()
        assert answer, "the process that commands are forked from has ended"
        return int(answer)


@cache
def _zygote(*, providers: bool) -> _Zygote:
    """One of each test process, and one for commands that call models. It ends with it, as its pipe does."""
    return _Zygote(providers)


def _text(path: Path) -> str:
    """As `subprocess` gives it with `text=True`."""
    with path.open(newline=None) as text:
        return text.read()
