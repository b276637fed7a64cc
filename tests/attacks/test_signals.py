"""Every command is sent SIGINT and SIGTERM at moments of chance: none is lost or printed as a trace.

Python itself starts for some 20 ms before the first line of ours, and prints a trace for Ctrl-C then: shots begin when
the process hears SIGTERM. The same command, given again, ends as one that was left alone.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.attacks.test_stops import group
from tests.cli.test_options import commands
from tests.harness.command import CTXBENCH, ctxbench
from tests.harness.runs import recording

SEED = 20261127
LATE = 0.1
"""Seconds before its end in which a process may no longer hear a signal: it is being removed."""
# The words of each command: what it writes is `new`, or stands below the folder.
WORDS = {
    "run": "some.jsonl -s none -s last_turn --answerer offline -o new -j 2",
    "report": "run --out new",
    "view": "run --port 0",
    "show": "run c0 1",
    "compare": "run",
    "gate": "run --update --baseline new.json",
    "bill": "run --calls new.csv",
    "tune": "window(max_tokens=?) some.jsonl --trials 2 --out new",
    "list": "strategies",
    "describe": "some.jsonl",
    "probe": "some.jsonl --to new.jsonl",
    "convert": "some.jsonl --to new",
    "demo": "--out new",
    "audit": "some.jsonl --out new",
    "init": "",
    "config": "",
    "export mlflow": "run --tracking-uri sqlite:///new.db",
    "export wandb": "run",
    "export prometheus": "run --to new.prom",
    "export dataset": "run --out new",
    "export requests": "run --strategy none --to new.jsonl",
    "lab answer": "run --answerer offline --dump new.jsonl",
    "lab validate": "some.jsonl",
    "lab calibrate": "standard --sample 10 --out new",
    "lab claims": "run --effort quick --only none",
    "lab tiers": "focus",
    "lab cassette export": "--to new.jsonl --cassette replies.db",
    "lab cassette import": "replies.jsonl --cassette new.db",
}
ENDLESS = ("view",)


class Shot(NamedTuple):
    """A signal that was sent to a command, and what came of it."""

    command: str
    delay: float
    number: int
    code: int
    lived: float
    """Seconds from the signal to the end of the process; -1 if it had ended before."""
    errors: str
    left: list[int]

    def faults(self, usual: int) -> list[str]:
        """Return what was wrong."""
        heard = self.lived < LATE and self.code == usual
        found = [] if self.code in (128 + self.number, -self.number) or heard else [f"lost: exit code {self.code}"]
        found += ["a trace"] * any(word in self.errors for word in ("Traceback", "Exception ignored", "Fatal"))
        return found + ["processes are left"] * bool(self.left)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recording, a run of it, and a cassette."""
    folder = tmp_path_factory.mktemp("signals")
    recording(folder, conversations=6, turns=8)
    (folder / "replies.jsonl").write_text("")
    ctxbench("run", "some.jsonl", "-s", "none", "-s", "last_turn", "-o", "run", cwd=folder)
    return folder


def hear() -> None:
    """Have a process hear what the test run was perhaps started to ignore."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command, and wait until it hears SIGTERM."""
    words, pipes = [CTXBENCH, *command.split(), *WORDS[command].split()], subprocess.PIPE
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "CTXBENCH_TRUST": "1"}
    run = partial(subprocess.Popen, words, cwd=folder, env=environment, text=True, start_new_session=True)
    process: subprocess.Popen[str] = run(stdout=pipes, stderr=pipes, stdin=subprocess.DEVNULL, preexec_fn=hear)
    while process.poll() is None and not caught(process.pid) >> (signal.SIGTERM - 1) & 1:
        time.sleep(0.001)
    return process


def caught(pid: int) -> int:
    """Return the mask of the signals that a process has handlers for; all of them once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return -1
    return next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")), -1)


def shoot(command: str, folder: Path, number: int, delay: float) -> Shot:
    """Start a command and signal it after a delay: Ctrl-C goes to all its processes, SIGTERM to itself."""
    with started(command, folder) as process:
        time.sleep(delay)
        alive = process.poll() is None
        if alive:
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        sent = time.monotonic()
        _, errors = process.communicate(timeout=60)
        lived = time.monotonic() - sent if alive else -1.0
    deadline = time.monotonic() + 5
    while (left := group(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return Shot(command, delay, number, process.returncode, lived, errors, left)


def left_alone(command: str, folder: Path) -> tuple[int, float, str]:
    """Run a command to its end: its exit code, the seconds from when it hears, and its errors."""
    with started(command, folder) as process:
        began = time.monotonic()
        if command in ENDLESS:
            time.sleep(1)
            return -1, 1.0, process.kill() or ""  # type: ignore[func-returns-value]
        _, errors = process.communicate(timeout=120)
    return process.returncode, time.monotonic() - began, errors


def test_all_commands_are_here() -> None:
    """A new command is attacked as well."""
    assert {path.removeprefix("ctxbench ") for path, _ in commands()} == set(WORDS)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("command", ["list", "export dataset", "probe"])
def test_some(base: Path, tmp_path: Path, command: str) -> None:
    """Writers and readers, twice each, within the first second; then once more, to their end."""
    attack(base, tmp_path, command, shots=2, seconds=0.8, usual=0)


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("command", WORDS)
def test_every_command(base: Path, tmp_path: Path, command: str) -> None:
    """From the first moment to the last that a command was measured to take."""
    shutil.copytree(base, tmp_path / "alone")
    usual, seconds, errors = left_alone(command, tmp_path / "alone")
    if "is not installed" in errors:
        pytest.skip(errors)
    attack(base, tmp_path, command, int(os.environ.get("SHOTS", "6")), seconds, usual)


def attack(base: Path, tmp_path: Path, command: str, shots: int, seconds: float, usual: int) -> None:
    """Signal a command so many times in one folder, then let it end there."""
    chance, folder = random.Random(f"{SEED} {command}"), tmp_path / "shot"
    shutil.copytree(base, folder)
    for at in range(shots):
        shot = shoot(command, folder, (signal.SIGINT, signal.SIGTERM)[at % 2], chance.uniform(0, seconds))
        print(shot)
        assert not shot.faults(usual), shot
        code, _, errors = left_alone(command, folder) if at == shots - 1 else (usual, 0, "")
        assert code == usual, (shot, errors)
