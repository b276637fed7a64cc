"""A fresh MLflow store, and a real server of one. Making a store anew takes seconds: it is made once and copied."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from ctxbench.harness.export.mlflow import TrackingStore, client

pytest.importorskip("mlflow")
WAIT = 120
OFFLINE = {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    into = client(TrackingStore(f"sqlite:///{path}"))
    into.search_experiments()
    return path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Path:
    """An empty store of this test's own, where `ctxbench export mlflow runs/X` looks for it."""
    (tmp_path / "runs").mkdir()
    return Path(shutil.copy(empty, tmp_path / "runs" / "mlflow.db"))


@contextmanager
def serving(store: Path, port: int) -> Iterator[str]:
    """A real MLflow server of a store, on this machine; its address."""
    options = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    files = ("--backend-store-uri", f"sqlite:///{store}", "--artifacts-destination", str(store.parent / "served"))
    command = [sys.executable, "-m", "mlflow", "server", *options, *files]
    with (store.parent / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **OFFLINE}, start_new_session=True
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, 15)
            server.wait(30)


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        assert server.poll() is None, "the server has ended"
        try:
            with urlopen(address, timeout=5) as answer:
                assert answer.status == 200
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"no server at {address} after {WAIT} s")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
