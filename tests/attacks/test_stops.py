"""Runs that are stopped from outside: killed, robbed of a worker, out of disk.

Whatever was done to it, the same command ends the run with the bytes of one that was left alone.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from tests.cli.test_stop import group
from tests.harness.command import CTXBENCH
from tests.harness.runs import STRATEGIES, bytes_of, plan, recording

SLOW = """
import sys, time
from pathlib import Path
import ctxbench.harness.engine.plan as run, ctxbench.harness.folder.store as store
from ctxbench.harness.engine.plan import RunInputs
run.SHARD_CONVERSATIONS = 2
write = store.ResultPart.write
def slow(self, *rest):
    time.sleep(0.004)
    write(self, *rest)
store.ResultPart.write = slow
print("ready", flush=True)
run.execute(run.Plan(RunInputs((sys.argv[1],)), ("none", "window(max_tokens=400)", "last_turn")), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """A run killed again and again, at any moment, ends with the bytes of one that was left alone."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    path = recording(tmp_path, conversations=30)
    execute(plan(path), tmp_path / "whole")
    expected = bytes_of(tmp_path / "whole")
    chance = random.Random(7)
    kills = 0
    while kills < times:
        out = tmp_path / f"killed{kills}"
        while kills < times:
            command = [sys.executable, "-c", SLOW, str(path), str(out)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                time.sleep(chance.uniform(0, 0.5))
                process.send_signal(signal.SIGKILL)
                process.wait()
            kills += 1
            if (out / "manifest.json").exists() and json.loads((out / "manifest.json").read_text())["complete"]:
                break
        execute(plan(path), out)
        assert bytes_of(out) == expected


COMMAND = (CTXBENCH, "run", "some.jsonl", *(word for name in STRATEGIES for word in ("-s", name)), "-q", "-o", "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bytes of a run of 600 conversations that was left alone."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        recording(folder, conversations=600, turns=3)
        execute(plan("some.jsonl"), folder / "run")
    return bytes_of(folder / "run")


def test_a_worker_is_killed(tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends in one line, and what is finished is kept."""
    monkeypatch.chdir(tmp_path)
    recording(tmp_path, conversations=600, turns=3)
    with subprocess.Popen([*COMMAND, "-j", "2"], start_new_session=True, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and len(found := servers_and_workers(process.pid)) < 2:
            time.sleep(0.01)
        os.kill(max(found), signal.SIGKILL)  # the fork server, which starts workers, is the first
        _, errors = process.communicate()
    assert "Traceback" not in errors
    assert process.returncode == 2, errors
    execute(plan("some.jsonl"), Path("run"))
    assert bytes_of(tmp_path / "run") == whole


def servers_and_workers(leader: int) -> list[int]:
    """Return the fork server of a run and its workers: its group without itself and Python's keeper of semaphores."""
    found = [pid for pid in group(leader) if pid != leader]
    return [pid for pid in found if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("limit", [10, 3_000])
def test_a_full_disk(tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Where no file may grow over a size, as on a disk that is full, one line says what cannot be written."""
    monkeypatch.chdir(tmp_path)
    recording(tmp_path, conversations=600, turns=3)
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.argv = {list(COMMAND)!r}; "
        "from ctxbench.cli import main; main()"
    )
    # -B: Python cuts the bytecode that it caches off at the limit, and cannot read it afterwards
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    execute(plan("some.jsonl"), Path("run"))
    assert bytes_of(tmp_path / "run") == whole
