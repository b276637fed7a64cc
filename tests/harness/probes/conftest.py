"""A strategy of somebody else's."""

from pathlib import Path

import pytest

from tests.harness.probes.probe_strategies import PLUGIN


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(PLUGIN)
    return f"{tmp_path}/mine.py"
