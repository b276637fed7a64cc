"""The report, which shows texts of the recordings, goes by default to stores on this machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxbench.cli.export import log
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export import mlflow
from ctxbench.harness.export.mlflow import LogResult, TrackingStore
from tests.harness.runs import plan, recording

LOCAL = (
    "sqlite:///runs/mlflow.db",
    "file:///home/me/mlruns",
    "/home/me/mlruns",
    "mlruns",
    "C:\\mlruns",
    "http://localhost:5000",
    "http://me:secret@127.0.0.1:5000",
    "https://[::1]/mlflow",
)
REMOTE = (
    "https://mlflow.example.org",
    "http://localhost.example.org",
    "http://10.0.0.7:5000",
    "databricks",
    "databricks://profile",
    "postgresql://db/mlflow",
    "http://[",
)


def test_what_is_on_this_machine() -> None:
    """Files and this machine's own addresses are local, whatever else an address has; services and others are not."""
    assert all(TrackingStore(uri).is_local for uri in LOCAL)
    assert not any(TrackingStore(uri).is_local for uri in REMOTE)


def test_a_server_gets_the_report_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default a server elsewhere gets figures alone, and a line says so; --report and --no-report are obeyed."""
    execute(plan(recording(tmp_path, conversations=1), strategies=("none", "last_turn")), tmp_path / "run")
    attached: list[bool] = []

    def write(_bench: object, _where: object, _measured: int, report: Path | None, name: str) -> LogResult:
        attached.append(report is not None)
        return LogResult("logged", name, "1", "r", "v")

    monkeypatch.setattr(mlflow, "reach", lambda *_: None)
    monkeypatch.setattr(mlflow, "write", write)
    said: list[Any] = []
    for uri in ("https://mlflow.example.org", f"sqlite:///{tmp_path}/mlflow.db"):
        for report in (None, True, False):
            log(tmp_path / "run", uri, report=report)
            said.append("without the report" in capsys.readouterr().err)
    assert attached == [False, True, False, True, True, False]
    assert said == [True, False, False, False, False, False]
