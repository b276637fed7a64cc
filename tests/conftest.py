"""What all tests share: where the sample recordings are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

RECORDINGS = Path(os.environ.get("CTXBENCH_RECORDINGS", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of sample recordings; the test is skipped where it is absent."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no sample recordings at {RECORDINGS} (set CTXBENCH_RECORDINGS)")
    return RECORDINGS
