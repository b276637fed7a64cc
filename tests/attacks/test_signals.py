"""Every command is sent SIGINT and SIGTERM at moments of chance: none is lost or printed as a trace.

Python itself starts for some 20 ms before the first line of ours, and prints a trace for Ctrl-C then: shots begin when
the process hears SIGTERM. The same command, given again, ends as one that was left alone.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.attacks.test_stops import group
from tests.cli.test_options import commands
from tests.cli.test_validate import recorded
from tests.harness.answers.builders import talks
from tests.harness.command import CTXBENCH, ctxbench
from tests.harness.runs import recording
from tests.metrics.test_quiz import session

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
SEED = 20261127
GONE = 0.1
"""Seconds before its end in which a process may no longer hear a signal: it is being removed."""
# The words of each command: what it writes is `new`, or stands below the folder.
WORDS = {
    "run": "some.jsonl -s none -s last_turn --answerer offline -o new -j 2",
    "report": "run --out new",
    "view": "run --port 0",
    "show": "run c0 1",
    "compare": "run",
    "gate": "run --update --baseline new.json",
    "bill": "run",
    "tune": "window(max_tokens=?[4000..9000]) smoke --trials 1 --out new",
    "list": "strategies",
    "describe": "some.jsonl",
    "probe": "tools.jsonl --to new.jsonl",
    "convert": "some.jsonl --to new",
    "demo": "--out new",
    "audit": "some.jsonl --out new",
    "live": "some.jsonl some.jsonl --out new",
    "cache": "--clear",
    "init": "",
    "config": "",
    "export mlflow": "run --tracking-uri sqlite:///new.db",
    "export wandb": "run",
    "export prometheus": "run --to new.prom",
    "export dataset": "run --out new",
    "export requests": "run --strategy none --to new.jsonl",
    "lab answer": "probed --overwrite",
    "lab validate": "talk.jsonl",
    "lab calibrate": "labels.csv --columns question=q,gold=g,answer=a,label=l --out new",
    "lab claims": "--effort quick --only C01",
    "lab tiers": "rag(recordings='some.jsonl')",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands read: recordings, a run, labelled answers."""
    folder = tmp_path_factory.mktemp("signals")
    recording(folder, conversations=6, turns=8)
    talk = session(({"command": "python --version"}, "Python 3.11.5"))
    (folder / "tools.jsonl").write_bytes(talk.to_json())
    (folder / "labels.csv").write_text("q,g,a,l\nWhere?,Rome,In Rome,1\nWhen?,1999,No idea,0\n")
    ctxbench("run", "some.jsonl", "-s", "none", "-s", "last_turn", "-o", "run", cwd=folder)
    ctxbench("run", talks(folder), "-s", "none", "-o", "probed", cwd=folder)
    recorded(folder, 0, 5000, 0)
    return folder


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command, which hears all signals, and wait until it listens to SIGTERM."""
    words, pipe = [CTXBENCH, *command.split(), *WORDS[command].split()], subprocess.PIPE
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "CTXBENCH_TRUST": "1"}
    process = subprocess.Popen(
        words, cwd=folder, env=environment, text=True, start_new_session=True, stdin=subprocess.DEVNULL, stdout=pipe,
        stderr=pipe, preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in (2, 15)],
    )  # fmt: skip
    status, caught = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None and not caught >> (signal.SIGTERM - 1) & 1:
        caught = int(status.read_text().partition("SigCgt:")[2].split()[0], 16)
        time.sleep(0.001)
    return process


def left_alone(command: str, folder: Path) -> tuple[int, float, str]:
    """Run a command to its end: its exit code, the seconds from when it listens, and its errors."""
    with started(command, folder) as process:
        began = time.monotonic()
        if command == "view":  # has no end
            process.kill()
            return -signal.SIGKILL, 1.0, ""
        _, errors = process.communicate(timeout=300)
    return process.returncode, time.monotonic() - began, errors


def attack(base: Path, tmp_path: Path, command: str, shots: int, seconds: float, usual: int) -> list[str]:
    """Signal a command so many times in one folder, then let it end there; return what was wrong."""
    chance, folder, wrong = random.Random(f"{SEED} {command}"), tmp_path / "shot", []
    shutil.copytree(base, folder)
    for at in range(shots):
        number, delay = (signal.SIGINT, signal.SIGTERM)[at % 2], chance.uniform(0, seconds)
        with started(command, folder) as process:
            time.sleep(delay)
            if alive := process.poll() is None:  # Ctrl-C goes to all its processes
                (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
            sent = time.monotonic()
            output, errors = process.communicate(timeout=60)
            lived = time.monotonic() - sent
        left = sent + 5
        while group(process.pid) and time.monotonic() < left:
            time.sleep(0.02)
        # Once all is printed, the exit code alone tells.
        told = process.returncode == 128 + number and ("stopped" in errors or output)
        faults = [] if told or process.returncode == -number or not alive or lived < GONE else ["lost"]
        faults += ["a trace"] * any(word in errors for word in ("Traceback", "Exception ignored", "Fatal"))
        faults += ["processes are left"] * bool(group(process.pid))
        wrong += [f"{fault}: {number.name} after {delay:.3f} s: {process.returncode} {errors}" for fault in faults]
    code, _, errors = left_alone(command, folder)
    return wrong + [f"again: {code} {errors}"] * (code != usual)


def test_all_commands_are_here() -> None:
    """A new command is attacked as well."""
    assert {path.removeprefix("ctxbench ") for path, _ in commands()} == set(WORDS)


@pytest.mark.parametrize("command", ["list", "export dataset"])
def test_some(base: Path, tmp_path: Path, command: str) -> None:
    """A reader and a writer, twice each, within the first second; then once more, to their end."""
    assert attack(base, tmp_path, command, shots=2, seconds=0.8, usual=0) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", WORDS)
def test_every_command(base: Path, tmp_path: Path, command: str) -> None:
    """From the first moment to the last that a command was measured to take."""
    shutil.copytree(base, tmp_path / "alone")
    usual, seconds, errors = left_alone(command, tmp_path / "alone")
    if "is not installed" in errors:
        pytest.skip(errors)
    shots = int(os.environ.get("SHOTS", "4"))
    assert attack(base, tmp_path, command, shots, seconds, usual) == [], (usual, seconds, errors)
