"""A run that is told to stop: by Ctrl-C, by SIGTERM, by the end of its terminal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.harness.command import CTXBENCH, ctxbench, said
from tests.harness.engine.test_workers import lives
from tests.harness.runs import recording

WORDS = ["run", "some.jsonl", "-o", "r", "--jobs", "2", "-s", "none"]
CONVERSATIONS = 500  # ten parts of a run
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@contextmanager
def half_way(folder: Path, ear: signal.Handlers = signal.SIG_DFL) -> Iterator[subprocess.Popen[str]]:
    """A run with two workers that has finished its first part, in a process group of its own.

    It hears all signals, whatever the test run was started to ignore (a job in the background has no ear for Ctrl-C).
    """
    recording(folder, conversations=CONVERSATIONS, turns=20)

    def listen() -> None:
        for each in CODES:
            signal.signal(each, ear)

    command = [CTXBENCH, *WORDS]
    pipes = partial(subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipes(command, cwd=folder, preexec_fn=listen, start_new_session=True) as process:
        while not list((folder / "r" / "results").glob("*.parquet")):
            assert process.poll() is None
            time.sleep(0.01)
        yield process


def group(leader: int) -> list[int]:
    """The processes of a process group that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            of = int(path.read_text().rpartition(")")[2].split()[2])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if of == leader and lives(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("number", "whom"),
    [
        (signal.SIGINT, "all its processes"),  # Ctrl-C
        (signal.SIGTERM, "the run"),  # kill
        pytest.param(signal.SIGHUP, "all its processes", marks=pytest.mark.slow),  # the end of a terminal
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else None,
)
def test_stopped_half_way(tmp_path: Path, number: signal.Signals, whom: str) -> None:
    """The run ends at once with its workers, says how to go on, and going on ends with a whole run."""
    with half_way(tmp_path) as process:
        assert len(group(process.pid)) > 2
        (os.kill if whom == "the run" else os.killpg)(process.pid, number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == CODES[number]
    assert said(errors) == [f"stopped; finished work is stored. To continue: {CTXBENCH} {' '.join(WORDS)}"]
    deadline = time.monotonic() + 10
    while left := group(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    if number == signal.SIGINT:  # what is stored is the same, whatever the signal
        again = ctxbench(*WORDS, cwd=tmp_path)
        assert "r: goes on with the run that was stopped" in again.stderr
        assert f"{CONVERSATIONS} conversations" in again.stdout


def test_nohup(tmp_path: Path) -> None:
    """What the run was started to ignore does not stop it."""
    with half_way(tmp_path, signal.SIG_IGN) as process:
        process.send_signal(signal.SIGHUP)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"{CONVERSATIONS} conversations" in printed


def test_stopped_before_anything_is_imported(tmp_path: Path) -> None:
    """Ctrl-C while Python still loads the commands: a line and the code of the signal, no trace."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "ctxbench", "--help"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
