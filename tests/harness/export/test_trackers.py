"""Weights & Biases and TensorBoard: what is written is read back from their own files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctxbench
from ctxbench.harness.export.bench import measures
from ctxbench.scenarios.errors import MissingExtra, RunError, SpecError
from tests.harness.runs import recording

STRATEGIES = ("none", "window(max_tokens=400)", "summary(every=2)")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of four conversations."""
    folder = tmp_path_factory.mktemp("tracked")
    path = recording(folder, conversations=4, turns=5)
    return ctxbench.run(path, strategies=STRATEGIES, model="claude-sonnet-5", out=folder / "run")


def test_the_measures_come_first() -> None:
    """What a run is judged by: of the bill under the first model, and of the measures of quality the best one."""
    names = [
        "steps",
        "grounding",
        "cost_saving(a)",
        "cost_saving(b)",
        "context_recall",
        "cache_hit_rate(a)",
        "net_saving",
    ]
    assert measures(names) == ["net_saving", "cost_saving(a)", "cache_hit_rate(a)", "context_recall"]


def test_tensorboard(run: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """A folder per strategy with its figures, its curves and its parameters, as TensorBoard reads them."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    command = run.log("tensorboard", str(tmp_path))
    assert command == f"tensorboard --logdir {tmp_path / 'run'}"
    folders = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert folders == ["00-none", "01-window-max_tokens=400", "02-summary-every=2"]
    events = reader.EventAccumulator(str(tmp_path / "run" / folders[1]))
    events.Reload()
    (saved,) = events.Scalars("1 measures/1 net saved")
    assert saved.value == pytest.approx(run.summary().net_saving["window(max_tokens=400)"])
    curve = run.growth()
    curve = curve[curve.strategy == "window(max_tokens=400)"]
    points = {point.step: point.value for point in events.Scalars("growth/tokens_sent")}
    assert points == pytest.approx(dict(zip(curve.turn, curve.tokens_sent, strict=True)))
    assert b"max_tokens" in events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content


def test_tensorboard_has_the_same_bytes(run: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """Logging again replaces the files by the same ones, in another process too."""
    pytest.importorskip("tensorboard")
    run.log("tensorboard", str(tmp_path))
    files = {path: path.read_bytes() for path in tmp_path.rglob("events*")}
    code = f"import ctxbench; ctxbench.load({str(run.folder)!r}, model='claude-sonnet-5')"
    subprocess.run([sys.executable, "-c", f"{code}.log('tensorboard', {str(tmp_path)!r})"], check=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("events*")} == files
    assert len(files) == 3


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_wandb(run: ctxbench.BenchmarkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address nothing is sent: a file per strategy holds its parameters, its curves and its figures."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "")
    assert run.log("wandb") == f"cd {run.folder.parent} && wandb sync"
    files = sorted((run.folder.parent / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 3
    names = {}
    for file in files:
        records = list(wandb_records(file))
        (made,) = [record.run for record in records if record.HasField("run")]
        assert (made.project, made.job_type) == ("ctxbench", "strategy")
        names[made.display_name] = records
    assert set(names) == set(STRATEGIES)
    records = names["window(max_tokens=400)"]
    history = [record.history for record in records if record.HasField("history")]
    assert len(history) == run.growth().turn.nunique()
    keys = {
        item.key or "/".join(item.nested_key)
        for record in records
        if record.HasField("summary")
        for item in record.summary.update
    }
    assert {"1 measures/1 net saved", "tokens_sent", "missing"} <= keys


def wandb_records(file: Path) -> Iterator[object]:
    """Yield the records of a W&B file: LevelDB's log, in blocks of 32 KiB, after a head of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, whole = file.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (1 << 15) - place % (1 << 15) < 7:  # the end of a block has no room for a record
            place += (1 << 15) - place % (1 << 15)
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(whole)
            whole = b""


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb", "mlflow"])
def test_without_the_library(run: ctxbench.BenchmarkRun, tracker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says which extra brings it."""
    for name in ("tensorboard", "tensorboard.summary.writer.record_writer", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"{tracker} is not installed: pip install 'ctxbench\[{tracker}\]'"):
        run.log(tracker)  # type: ignore[arg-type]


def test_mistakes(run: ctxbench.BenchmarkRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown tracker, and a run in a temporary folder, which has no place beside it."""
    with pytest.raises(SpecError, match="unknown tracker 'neptune': give mlflow, wandb, tensorboard"):
        run.log("neptune")  # type: ignore[arg-type]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary = ctxbench.run(recording(tmp_path, conversations=1, turns=2), strategies="none")
    with pytest.raises(RunError, match="is temporary: say where to log with to="):
        temporary.log("tensorboard")
