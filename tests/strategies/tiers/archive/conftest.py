"""The archive's tests do not wait for the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from ctxbench.strategies.tiers.archive import files
from tests.strategies.tiers.archive.disk import Disk


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Return a disk that has room and power."""
    disk = Disk()
    monkeypatch.setattr(files, "os", disk)
    return disk


@pytest.fixture
def memory() -> Iterator[Path]:
    """Return a folder in memory if possible, for tests that write thousands of files."""
    shared = Path("/dev/shm")
    folder = Path(mkdtemp(dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder)
