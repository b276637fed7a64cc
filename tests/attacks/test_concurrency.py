"""Two processes at once on one run folder and one archive: each gets what it gets alone, or is refused in one line."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.attacks.pair import Both, make_run, pair, read_run, replay_archive
from tests.harness.runs import bytes_of, recording

WRITING = "another run is writing there: wait for it, or name another --out"


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Two processes, which live as long as the tests."""
    with pair() as do:
        yield do


def test_two_runs_in_one_folder(tmp_path: Path, both: Both) -> None:
    """One writes the bytes of a run that is alone; the other does, after it, or is refused."""
    recording(tmp_path, conversations=2, turns=2)
    digest = make_run(tmp_path / "alone")
    for number in range(6):
        path = tmp_path / f"run{number}"
        said = both((make_run, make_run), path, Random(number))
        assert digest in said
        assert set(said) <= {digest, f"refused: {path}: {WRITING}"}
        assert bytes_of(path) == bytes_of(tmp_path / "alone")


def test_a_reader_beside_a_run(tmp_path: Path, both: Both) -> None:
    """The run is not disturbed; the reader has all of it, or is told in one line that it is not complete."""
    recording(tmp_path, conversations=2, turns=2)
    digest = make_run(tmp_path / "alone")
    for number in range(4):
        path = tmp_path / f"run{number - number % 2}"  # every second one is there already
        made, read = both((make_run, read_run), path, Random(number))
        assert made == digest
        assert read == "read 2" or (read.startswith(f"refused: {path}") and "\n" not in read)


def test_two_replays_on_one_archive(tmp_path: Path, both: Both) -> None:
    """Both send what one sends that has the archive to itself."""
    alone = replay_archive(tmp_path / "alone.db")
    for number in range(6):
        assert both((replay_archive, replay_archive), tmp_path / f"{number}.db", Random(number)) == [alone, alone]
