"""Every format reads as it did: `python -m tests.goldens.write formats` writes the goldens anew."""

import json
from pathlib import Path

import pytest

from tests.goldens.formats import GOLDENS, RECORDINGS, digests, formats, golden


@pytest.mark.parametrize("name", formats())
def test_a_format_reads_as_it_did(name: str) -> None:
    """Its sample and the small recordings of its other shapes have the messages, calls and problems of the golden."""
    assert golden(name) == (GOLDENS / f"{name}.txt").read_text()


def test_the_sample_recordings_read_as_they_did(recordings: Path) -> None:
    """Nothing that is read of the sample recordings has changed."""
    assert digests(recordings) == json.loads(RECORDINGS.read_text())
