"""A run folder notices every change of its files, and the same command makes just what was damaged again."""

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.files import is_intact
from ctxbench.harness.folder.run import load
from ctxbench.scenarios.errors import RunError
from tests.attacks.bits import STRATEGIES, add_all, attack, commands, make, stop
from tests.harness.runs import bytes_of, plan


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of two shards under two strategies, with answers and grades."""
    folder = tmp_path_factory.mktemp("made")
    make(folder)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that run, which a test may go on with."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def test_no_command_prints_another_figure(run: Path) -> None:
    """After a flipped bit each command names the file, or prints the same, as it does not read it or makes it again.

    `python -m tests.attacks` flips 3,000 bits, here are some.
    """
    add_all(run.parent)
    of = commands(run.parent)
    tally = attack(run.parent, {name: of[name] for name in ("bill", "gate", "lab answer", "ctxbench.load")}, 45, 11)
    assert (tally.tried, tally.fell) == (45, [])
    assert min(tally.held.values()) > 0


def test_bits_of_a_stopped_run(run: Path) -> None:
    """A run that goes on makes the parts again in which a bit was flipped; its manifest is refused."""
    tally = attack(run.parent, stop(run.parent), 12, 11)
    assert (tally.tried, tally.fell) == (12, [])


def test_recordings_with_bytes_behind_them_are_damaged(run: Path) -> None:
    """Of a run that is not finished only their own checksum tells, which is of the first frame alone."""
    path = next((run / "recordings").iterdir())
    assert is_intact(path)
    for behind in (b"x", path.read_bytes()):
        path.write_bytes(path.read_bytes() + behind)
        assert not is_intact(path)


SPOILS: dict[str, Callable[[Path, Path], object]] = {
    "lose": lambda path, _: path.unlink(),
    "cut": lambda path, _: path.write_bytes(path.read_bytes()[:-7]),
    "swap": lambda path, other: path.write_bytes(other.read_bytes()),
    "add": lambda path, _: shutil.copy(path, path.with_name("00000-007" + "".join(path.suffixes))),
}
CASES = [
    *product(("recordings", "messages", "steps", "contexts", "probes"), ("cut", "swap")),
    *((table, "lose") for table in ("recordings", "conversations", "contexts", "timings", "results")),
    *((table, "add") for table in ("steps", "timings")),
]


@pytest.mark.parametrize(("table", "spoil"), CASES)
def test_what_is_damaged_is_named_and_made_again(made: Path, run: Path, table: str, spoil: str) -> None:
    """A file that is missing, cut, another one's or too many stops every reader with its name; the same command
    makes it again as it was, and leaves all other parts alone."""
    whole = bytes_of(run)
    path, other = sorted((run / table).iterdir())[:2]
    SPOILS[spoil](path, other)
    name = f"{table}/{path.name}" if spoil != "add" else f"{table}/00000-007"
    with pytest.raises(RunError, match=rf"{name}.*: give the command that made this run once more"):
        load(run)
    parts = {part: part.stat().st_mtime_ns for part in (run / "steps").iterdir() if part.name[:5] == "00001"}
    execute(plan(made / "talks.jsonl", strategies=STRATEGIES), run)
    assert bytes_of(run) == whole
    load(run)
    assert all(part.stat().st_mtime_ns == time for part, time in parts.items())
