"""Runs that are stopped from outside: killed, robbed of a worker, out of disk, under a clock that jumps.

Whatever was done to it, the same command ends the run with the bytes of one that was left alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ctxbench.harness.engine.plan import SHARD_CONVERSATIONS, execute
from ctxbench.harness.folder.run import load
from ctxbench.reports.html.folder import write
from tests.attacks import Outcome, outcome
from tests.cli.test_stop import group
from tests.harness.command import CTXBENCH
from tests.harness.engine.test_resume import SLOW
from tests.harness.folder.test_damage import is_noticed
from tests.harness.runs import STRATEGIES, bytes_of, plan, recording
from tests.reports.html.builders import results

COMMAND = (CTXBENCH, "run", "some.jsonl", *(word for name in STRATEGIES for word in ("-s", name)), "-o", "run")


def kills(seed: int, tries: int) -> Outcome:
    """Kill a run at random moments, until it has come to its end or was killed ten times."""

    def kill(folder: Path, chance: random.Random) -> str:
        moments = []
        for _ in range(chance.randint(1, 10)):
            command = [sys.executable, "-c", SLOW, "some.jsonl", "run"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder) as process:
                assert process.stdout is not None
                process.stdout.readline()
                moments.append(chance.uniform(0, 0.5))
                time.sleep(moments[-1])
                process.kill()
        return f"killed after {moments} seconds"

    return _stopped(seed, tries, kill, shard=2)


def workers(seed: int, tries: int) -> Outcome:
    """Kill a worker of a run: the run says so in one line, and keeps what is finished."""

    def rob(folder: Path, chance: random.Random) -> str:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen([*COMMAND, "--jobs", "2"], cwd=folder, start_new_session=True, **pipes) as process:
            while process.poll() is None and not _workers(process.pid):
                time.sleep(0.01)
            moment = chance.uniform(0, 1)
            time.sleep(moment)
            for pid in chance.sample(found := _workers(process.pid), min(1, len(found))):
                os.kill(pid, signal.SIGKILL)
            _, errors = process.communicate()
        assert "Traceback" not in errors, errors
        assert process.returncode in (0, 2), errors
        return f"killed a worker after {moment:.2f} s"

    return _stopped(seed, tries, rob, conversations=600)


def _workers(leader: int) -> list[int]:
    """Return the worker processes of a run: its group without itself and Python's keeper of semaphores."""
    found = [pid for pid in group(leader) if pid != leader]
    return [pid for pid in found if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def full_disk(seed: int, tries: int) -> Outcome:
    """Let no file grow over a random size, as a disk that is full: one line says what cannot be written."""

    def fill(folder: Path, chance: random.Random) -> str:
        limit = int(10 ** chance.uniform(0, 5.5))
        program = (
            "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.argv = {list(COMMAND)!r}; "
            "from ctxbench.cli import main; main()"
        )
        # -B: Python cuts the bytecode that it caches off at the limit, and cannot read it afterwards
        command = [sys.executable, "-B", "-c", program]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        assert done.returncode == 0 or "cannot be written" in done.stderr, done.stderr
        return f"no file over {limit} bytes"

    return _stopped(seed, tries, fill)


def clock(seed: int, tries: int) -> Outcome:
    """Let every clock jump to and fro by hours: no figure but the timings changes, and the report is drawn."""

    def jump(folder: Path, chance: random.Random) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda: 1.7e9 + chance.uniform(-1e7, 1e7))
            patch.setattr("ctxbench.harness.replay.perf_counter_ns", lambda: chance.randrange(1 << 45))
            execute(plan("some.jsonl"), folder / "run")
            write(results(load(folder / "run")), folder / "report")
        return "every clock jumped"

    return _stopped(seed, tries, jump)


def _stopped(
    seed: int,
    tries: int,
    stop: Callable[[Path, random.Random], str],
    *,
    shard: int = SHARD_CONVERSATIONS,
    conversations: int = 30,
) -> Outcome:
    chance, lost = random.Random(seed), []
    with TemporaryDirectory() as whole, pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", shard)
        patch.chdir(whole)
        execute(plan(recording(Path(whole), conversations).name), Path("run"))
        expected = bytes_of(Path("run"))
        for number in range(tries):
            with TemporaryDirectory() as name:
                patch.chdir(name)
                recording(Path(name), conversations)
                try:
                    what = stop(Path(name), chance)
                    execute(plan("some.jsonl"), Path("run"))
                except Exception as error:
                    lost.append(f"try {number}: {error!r}")
                    continue
                # A bill that was made for a table is kept in the run as well.
                if not expected.items() <= bytes_of(Path("run")).items() or is_noticed(Path("run")):
                    lost.append(f"try {number}: {what}: other bytes")
    return outcome(tries, lost)
