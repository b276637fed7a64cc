"""A run folder notices every change of its files, and the same command makes just what was damaged again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.harness.answers.store import answered
from ctxbench.harness.compare.figures import measured_by_name
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import damage, read_manifest
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import RunError
from tests.harness.runs import bytes_of, plan

STRATEGIES = ("none", "summary(threshold=6, every=2)")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of two shards under two strategies, with answers and grades."""
    folder = tmp_path_factory.mktemp("made")
    conversations = [*scenario("smoke")][2:6]
    (folder / "talks.jsonl").write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        execute(plan(folder / "talks.jsonl", strategies=STRATEGIES), folder / "run")
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that run, which a test may go on with."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def is_noticed(run: Path) -> bool:
    try:
        return bool(damage(run, read_manifest(run)))
    except RunError:
        return True


def test_no_flipped_bit_is_silent(run: Path) -> None:
    """Whichever bit of whichever file is flipped, of the manifest too, it is noticed."""
    chance = random.Random(11)
    apart = {"timings", "answers", "grades"}  # the times of every run differ; pages of answers have checksums
    files = [path for path in sorted(run.rglob("*.*")) if path.is_file() and not apart & set(path.parts)]
    files.remove(run / ".lock")
    assert not is_noticed(run)
    for _ in range(150):
        path = chance.choice(files)
        whole = path.read_bytes()
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        assert is_noticed(run), (path, at, bit)
        path.write_bytes(whole)
    assert not is_noticed(run)


def lose(path: Path, other: Path) -> None:
    path.unlink()


def cut(path: Path, other: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def swap(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def add(path: Path, other: Path) -> None:
    shutil.copy(path, path.with_name("00000-007" + "".join(path.suffixes)))


CASES = [
    *((table, spoil) for table in ("recordings", "messages", "steps", "contexts", "probes") for spoil in (cut, swap)),
    *((table, lose) for table in ("recordings", "conversations", "contexts", "timings", "results")),
    *((table, add) for table in ("steps", "timings")),
]


@pytest.mark.parametrize(("table", "spoil"), CASES)
def test_what_is_damaged_is_named_and_made_again(
    made: Path, run: Path, table: str, spoil: Callable[[Path, Path], None]
) -> None:
    """A file that is missing, cut, another one's or too many stops every reader with its name; the same command
    makes it again as it was, and leaves all other parts alone."""
    whole = bytes_of(run)
    path, other = sorted((run / table).iterdir())[:2]
    spoil(path, other)
    name = f"{table}/{path.name}" if spoil is not add else f"{table}/00000-007"
    with pytest.raises(RunError, match=rf"{name}.*: give the same `ctxbench run` command again"):
        load(run)
    parts = {part: part.stat().st_mtime_ns for part in (run / "steps").iterdir() if part.name[:5] == "00001"}
    execute(plan(made / "talks.jsonl", strategies=STRATEGIES), run)
    assert bytes_of(run) == whole
    assert not is_noticed(run)
    assert all(part.stat().st_mtime_ns == time for part, time in parts.items())


@pytest.mark.parametrize("at", [200, -200, -6])
@pytest.mark.parametrize("table", ["answers", "grades"])
def test_damaged_answers_do_not_count(made: Path, run: Path, table: str, at: int) -> None:
    """A part of the answers or grades with one flipped bit, in a page or in the footer, is no part; no baseline is made
    without it; the same command makes it again."""
    whole = bytes_of(run)
    path = next((run / table).rglob("*.parquet"))
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(RunError, match=rf"\({path.relative_to(run)} is damaged"):
        measured_by_name(load(run))
    stored = answered(load(run))
    assert not stored.whole
    assert "of 2 parts of this run" in stored.left_out[0]
    execute(plan(made / "talks.jsonl", strategies=STRATEGIES), run)
    assert bytes_of(run) == whole
