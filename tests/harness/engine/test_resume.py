"""A run that is given again: stopped before, with any number of workers, with parts gone, with other recordings."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.store import ResultPart, read_manifest, write_manifest
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


def test_a_changed_recording_is_measured_anew(tmp_path: Path) -> None:
    """If the file is another one when the run goes on, its parts are made anew, and nothing is mixed."""
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
    execute(plan(path), tmp_path / "again")
    execute(plan(path), tmp_path / "at once")
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "at once")


def test_a_stopped_run_makes_what_is_missing_alone(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part counts as finished from its last file on; one that was stopped before it is made again, others stay."""
    path, run = recording(tmp_path, conversations=6), tmp_path / "run"
    execute(plan(path), run)
    whole = bytes_of(run)
    write_manifest(run, replace(read_manifest(run), complete=False, files={}))
    (run / "results/00001-000.parquet").unlink()
    (run / "steps/00001-001.parquet").unlink()
    written = list[str]()
    write = ResultPart.write
    monkeypatch.setattr(ResultPart, "write", lambda part, *rest: [written.append(part.name), write(part, *rest)])
    execute(plan(path), run)
    assert set(written) == {"00001-000", "00001-001"}
    assert bytes_of(run) == whole


def test_fewer_recordings_leave_no_stale_parts(tmp_path: Path, small_shards: None) -> None:
    """When the end of a recording is gone, so are its parts after the next run."""
    path = recording(tmp_path, conversations=6)
    execute(plan(path), tmp_path / "run")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert execute(plan(path), tmp_path / "run").conversations == 3
    execute(plan(path), tmp_path / "small")
    assert bytes_of(tmp_path / "run") == bytes_of(tmp_path / "small")
