"""A run notices every change of its files, and makes just what was damaged again."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.harness.answers import store as answers
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import damage, read_manifest
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import RunError
from tests.harness.command import ctxbench
from tests.harness.runs import bytes_of, plan, recording

STRATEGIES = ("none", "summary(threshold=6, every=2)")


def talks(folder: Path) -> Path:
    """Write four short conversations with questions, and return the file."""
    path = folder / "talks.jsonl"
    conversations = [*scenario("smoke")][:4]
    path.write_bytes(b"".join(conversation.to_json() + b"\n" for conversation in conversations))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of two shards under two strategies, with answers and grades."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
        execute(plan(talks(folder), strategies=STRATEGIES), folder / "run")
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that run, which a test may go on with."""
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def files_of(run: Path) -> list[Path]:
    return [path for path in sorted(run.rglob("*")) if path.is_file() and path.name != ".lock"]


def is_noticed(run: Path) -> bool:
    try:
        return bool(damage(run, read_manifest(run)) + answers.damage(run))
    except RunError:
        return True


@pytest.mark.parametrize("flips", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_flipped_bit_is_silent(run: Path, flips: int) -> None:
    """Whichever bit of whichever file is flipped, of receipts and the manifest too, it is noticed."""
    chance, files = random.Random(11), files_of(run)
    assert not is_noticed(run)
    for _ in range(flips):
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


def empty(path: Path, other: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def add(path: Path, other: Path) -> None:
    shutil.copy(path, path.with_name("00000-007" + "".join(path.suffixes)))


@pytest.mark.parametrize("spoil", [lose, cut, empty, swap, add])
@pytest.mark.parametrize("table", ["recordings", "messages", "steps", "contexts", "probes", "receipts", "timings"])
def test_what_is_damaged_is_named_and_made_again(
    made: Path, run: Path, table: str, spoil: Callable[[Path, Path], None]
) -> None:
    """A file that is missing, cut, empty, another one's or too many stops every reader with its name; the same command
    makes it again as it was, and leaves all other parts alone."""
    whole = bytes_of(run)
    path, other = sorted((run / table).glob("*.json*" if table in ("recordings", "receipts") else "*.parquet"))[:2]
    spoil(path, other)
    name = f"{table}/{path.name}" if spoil is not add else f"{table}/00000-007"
    with pytest.raises(RunError, match=rf"{name}.* make it again with `ctxbench lab verify"):
        load(run)
    parts = {part: part.stat().st_mtime_ns for part in (run / "steps").iterdir() if part.name[:5] == "00001"}
    execute(plan(made / "talks.jsonl", strategies=STRATEGIES), run)
    assert bytes_of(run) == whole
    assert not is_noticed(run)
    assert all(part.stat().st_mtime_ns == time for part, time in parts.items())


def test_a_part_of_another_run_is_foreign(made: Path, run: Path, tmp_path: Path) -> None:
    """A part that is whole with its receipt, and of a run with other strategies, is not taken for one of this run."""
    execute(plan(made / "talks.jsonl", strategies=STRATEGIES[:1]), tmp_path / "other")
    for table in (path for path in (tmp_path / "other").iterdir() if path.is_dir()):
        for path in table.glob("00000-000.*"):
            shutil.copy(path, run / table.name / path.name)
    with pytest.raises(RunError, match=r"receipts/00000-000.json: is not of this run"):
        load(run)


@pytest.mark.parametrize("table", ["answers", "grades"])
def test_damaged_answers_are_named(run: Path, table: str) -> None:
    """Answers and grades are no part of the run, but their files are watched alike."""
    path = next((run / table).rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1] + b"0")
    (found,) = answers.damage(run)
    assert found.file == path.relative_to(run).as_posix()


class Journal:
    """Notes what is renamed and what is synced, so that a power cut can be played after any of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder, self.entries = folder, list[tuple[Path, bytes | None]]()
        replace, fsync = os.replace, os.fsync

        def noted_replace(source: Path, target: Path) -> None:
            self.entries.append((Path(target), Path(source).read_bytes()))
            replace(source, target)

        def noted_fsync(handle: int) -> None:
            self.entries.append((Path(os.readlink(f"/proc/self/fd/{handle}")), None))
            fsync(handle)

        monkeypatch.setattr(os, "replace", noted_replace)
        monkeypatch.setattr(os, "fsync", noted_fsync)

    def play(self, stop: int, to: Path, chance: random.Random) -> None:
        """Make the folder as it may stand after a power cut: what was not synced may be gone, empty or cut."""
        last: dict[Path, tuple[bytes, bool]] = {}
        for path, content in self.entries[:stop]:
            if content is not None:
                last[path] = content, False
            elif path in last:
                last[path] = last[path][0], True
        for path, (content, is_safe) in last.items():
            if not path.is_relative_to(self.folder):
                continue
            kept = content if is_safe else chance.choice([None, b"", content[: len(content) // 2], content])
            if kept is not None:
                target = to / path.relative_to(self.folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(kept)


@pytest.mark.parametrize("cuts", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_a_power_cut_loses_no_more_than_what_was_not_written(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch, cuts: int
) -> None:
    """After a cut at any moment, with what was not synced gone, empty or half there, the same command ends with the
    bytes of a run that was left alone."""
    path, chance = recording(tmp_path, conversations=4), random.Random(5)
    with monkeypatch.context() as patch:
        journal = Journal(patch, tmp_path / "run")
        execute(plan(path), tmp_path / "run")
    whole = bytes_of(tmp_path / "run")
    for number in range(cuts):
        out = tmp_path / f"cut{number}"
        out.mkdir()
        journal.play(chance.randrange(len(journal.entries) + 1), out, chance)
        try:
            execute(plan(path), out)
        except RunError:  # the manifest itself was lost or half there, which is one clear error
            execute(plan(path), tmp_path / f"again{number}")
            continue
        assert bytes_of(out) == whole
        assert not is_noticed(out)


def test_verify_and_repair(tmp_path: Path) -> None:
    """`lab verify` names what is damaged and ends with 1; with --repair it makes that again, and ends with 0."""
    run = tmp_path / "run"
    execute(plan(talks(tmp_path), strategies=STRATEGIES), run)
    whole = bytes_of(run)
    assert "every file is as it was written" in ctxbench("lab", "verify", run, cwd=tmp_path).stdout
    (run / "steps" / "00000-001.parquet").unlink()
    found = ctxbench("lab", "verify", run, cwd=tmp_path, code=1)
    assert "1 damaged file\n  steps/00000-001.parquet: is missing" in found.stdout
    assert "--repair" in found.stderr
    found = ctxbench("lab", "verify", run, "--repair", "--json", cwd=tmp_path)
    assert json.loads(found.stdout) == {
        "damaged": [{"file": "steps/00000-001.parquet", "what": "is missing"}],
        "left": [],
        "complete": True,
        "replies": [],
    }
    assert bytes_of(run) == whole
