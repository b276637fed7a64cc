"""Labelled answers of the sample recordings, read once."""

from pathlib import Path

import pytest

from ctxbench.scenarios.labelled import Labelled, read
from ctxbench.scenarios.source import Problems


@pytest.fixture(scope="session")
def evouna(recordings: Path) -> list[Labelled]:
    """EVOUNA-NQ: 15 098 answers with labels by people."""
    return list(read([recordings / "evouna" / "NQ.json"], Problems(strict=True)))


@pytest.fixture(scope="session")
def halluqa(recordings: Path) -> list[Labelled]:
    """HalluQA: right and wrong answers by people, in Chinese."""
    return list(read([recordings / "halluqa-zh" / "HalluQA.json"], Problems(strict=True)))
