"""A run that is given again: killed before, with any number of workers, with parts gone, with other recordings."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import is_free
from ctxbench.scenarios.errors import RunError
from tests.harness.runs import bytes_of, plan, recording


def test_workers_change_nothing(tmp_path: Path, small_shards: None) -> None:
    """One process and three workers write the same bytes."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "one", jobs=1)
    execute(plan(path), tmp_path / "three", jobs=3)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "three")


def test_running_again_changes_nothing(tmp_path: Path) -> None:
    """A finished run given again is left as it is, and one asked to be replaced comes out the same."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    before = bytes_of(tmp_path / "run")
    execute(plan(path), tmp_path / "run")
    assert bytes_of(tmp_path / "run") == before
    execute(plan(path), tmp_path / "run", overwrite=True)
    assert bytes_of(tmp_path / "run") == before


def test_a_run_that_begins_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which another process has just begun the same run is gone on with."""
    path = recording(tmp_path, conversations=2)
    execute(plan(path), tmp_path / "other")

    def begun(folder: Path) -> bool:
        shutil.copytree(tmp_path / "other", folder, dirs_exist_ok=True)
        return is_free(folder)

    (tmp_path / "run").mkdir()
    monkeypatch.setattr("ctxbench.harness.engine.plan.is_free", begun)
    execute(plan(path), tmp_path / "run")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "other")


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


@pytest.mark.parametrize("times", [5, pytest.param(20, marks=pytest.mark.slow)])
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


def test_a_changed_recording_is_not_resumed(tmp_path: Path) -> None:
    """If the file is another one when the run goes on, that is said, and nothing is mixed."""
    path = recording(tmp_path)
    execute(plan(path), tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    (tmp_path / "run" / "results").rename(tmp_path / "results")
    execute_again = plan(recording(tmp_path, turns=5))
    with pytest.raises(RunError, match="is not a run folder and not empty"):
        execute(execute_again, tmp_path / "run")
    (tmp_path / "other").mkdir()
    execute(plan(recording(tmp_path)), tmp_path / "again")
    recording(tmp_path, turns=5)
    with pytest.raises(RunError, match="are not what they were"):
        execute(plan(path), tmp_path / "again")


@pytest.mark.parametrize(
    "table", ["recordings", "conversations", "messages", "steps", "timings", "results", "receipts"]
)
def test_a_part_that_is_gone_is_noticed_and_made_again(tmp_path: Path, small_shards: None, table: str) -> None:
    """A run with a part missing is not read; the same command makes the part again."""
    path = recording(tmp_path, conversations=6)
    execute(plan(path), tmp_path / "run")
    whole = bytes_of(tmp_path / "run")
    max((tmp_path / "run" / table).iterdir()).unlink()
    with pytest.raises(RunError, match=r"/00001.*is missing: make it again with `ctxbench lab verify"):
        load(tmp_path / "run")
    execute(plan(path), tmp_path / "run")
    assert bytes_of(tmp_path / "run") == whole


def test_fewer_recordings_leave_no_stale_parts(tmp_path: Path, small_shards: None) -> None:
    """When the end of a recording is gone, so are its parts after the next run."""
    path = recording(tmp_path, conversations=6)
    execute(plan(path), tmp_path / "run")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert execute(plan(path), tmp_path / "run").conversations == 3
    execute(plan(path), tmp_path / "small")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "small")
