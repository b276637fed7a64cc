"""Damage, sudden death, and disks that cannot be written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Message
from ctxbench.strategies.tiers.archive import ArchivedMessage, ArchiveError, ArchiveTier, Coding, Damaged, files
from tests.strategies.tiers.archive.builders import SMALL, item, items
from tests.strategies.tiers.archive.disk import FULL, READ_ONLY, Disk, PowerCut


def archive_of(folder: Path) -> None:
    """Two blocks, a dictionary, summaries, a part that is no block, a deleted message."""
    coding = Coding(level=1, block_tokens=10, summary=0.9)
    with ArchiveTier(folder, coding, count=lambda text: len(text.split())) as archive:
        archive.put([item(1), item(2), item(3, tokens=5)])
        archive.delete(["talk/m3"], now=1.0)


def test_every_bit_is_checked(memory: Path) -> None:
    """Whichever bit of whichever file is flipped: opening, verifying or reading says so, and names the file."""
    folder = memory
    archive_of(folder)
    names = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
    assert [name[:4] for name in names] == ["dict", "inde", "part", "part", "part"]
    flipped = 0
    for name in names:
        whole = (folder / name).read_bytes()
        with open(folder / name, "r+b", buffering=0) as file:
            for at in range(len(whole)):
                for broken in [*(whole[at] ^ 1 << bit for bit in range(8)), whole[at]]:
                    file.seek(at)
                    file.write(bytes([broken]))
                    assert broken == whole[at] or name in said_of(folder)
                flipped += 8
    assert said_of(folder) == ""
    assert flipped > 3_000


def said_of(folder: Path) -> str:
    """Return the damage that opening and verifying report; empty if there is none."""
    try:
        archive = ArchiveTier(folder, write=False)
    except ArchiveError as error:
        return str(error)
    return "\n".join(map(str, archive.verify()))


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_a_file_that_ends_too_soon_or_too_late(tmp_path: Path, cut: int) -> None:
    """A part or a dictionary that is cut, or that has more at its end, is damaged."""
    archive_of(tmp_path)
    for pattern in ("part-*", "dictionary-*"):
        path = min(tmp_path.glob(pattern))
        whole = path.read_bytes()
        path.write_bytes(whole[:cut] if cut >= 0 else whole + b"\n")
        assert path.name in said_of(tmp_path)
        path.write_bytes(whole)


def test_damage_costs_one_block_only(tmp_path: Path) -> None:
    """The messages of other blocks are read; those of this one raise, and never come back wrong."""
    with ArchiveTier(tmp_path, Coding(level=1, block_tokens=40, dictionary="none")) as archive:
        archive.put(items(8))
        path = tmp_path / f"part-{archive.parts[0].number:06}"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with ArchiveTier(tmp_path) as archive:
        assert archive.get("talk/m7") == item(7)
        with pytest.raises(Damaged, match=path.name):
            archive.get("talk/m0")
        assert len(archive.verify()) == 1


def test_a_table_that_cannot_be_read_is_not_an_absence(tmp_path: Path) -> None:
    """Nobody is told that a message is not there when its table cannot be read; nothing is written."""
    with ArchiveTier(tmp_path, Coding(level=1, block_tokens=40, dictionary="none")) as archive:
        archive.put(items(8))
        path = tmp_path / f"part-{archive.parts[0].number:06}"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with ArchiveTier(tmp_path) as archive:
        assert archive.get("talk/m7") == item(7)
        for ask in (lambda: "talk/m0" in archive, lambda: archive.get("talk/m0"), lambda: archive.put(items(1))):
            with pytest.raises(Damaged, match=path.name):
                ask()


def test_a_missing_file(tmp_path: Path) -> None:
    """A part or a dictionary that is gone is named."""
    archive_of(tmp_path)
    for pattern in ("dictionary-*", "part-*"):
        path = min(tmp_path.glob(pattern))
        data = path.read_bytes()
        path.unlink()
        assert f"{path.name}: it is missing" in said_of(tmp_path)
        path.write_bytes(data)


CHANGES: dict[str, Callable[[ArchiveTier], object]] = {
    "put": lambda archive: archive.put([item(9)]),
    "put that makes blocks and a dictionary": lambda archive: archive.put(items(4, "more")),
    "delete": lambda archive: archive.delete(["talk/m1", "talk/m4"], now=5.0),
    "clean": lambda archive: archive.clean(now=50.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_every_byte(memory: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """After whichever byte the power goes, the archive is as it was before or as it was to be, and can go on."""
    before, after = memory / "before", memory / "after"
    with ArchiveTier(before, SMALL) as archive:
        archive.put(items(3))
        archive.put(items(5)[2:])
        archive.delete(["talk/m2"], now=0.0)
    disk = Disk()
    monkeypatch.setattr(files, "os", disk)
    shutil.copytree(before, after)
    with ArchiveTier(after, SMALL) as archive:
        began = disk.taken
        CHANGES[name](archive)
        steps = disk.taken - began
    states = [state(folder) for folder in (before, after)]
    assert steps > 5
    seen = set()
    for step in range(steps):
        folder = memory / "now"
        shutil.copytree(before, folder)
        archive = ArchiveTier(folder, SMALL)
        monkeypatch.setattr(files, "os", Disk(steps=step))
        with pytest.raises(PowerCut):
            CHANGES[name](archive)
        archive.close()
        monkeypatch.setattr(files, "os", Disk())
        found = state(folder)
        assert found in states
        seen.add(states.index(found))
        if step % 40 == 0:
            with ArchiveTier(folder, SMALL) as archive:  # what the dead writer left is removed, and the change made
                CHANGES[name](archive)
                assert archive.verify() == ()
                assert {path.name for path in folder.iterdir()} - {".lock", "index"} == archive.files()
        shutil.rmtree(folder)
    assert seen == {0, 1} or name in ("put", "delete")


def state(folder: Path) -> tuple[object, ...]:
    """Return the messages that a reader sees."""
    archive = ArchiveTier(folder, write=False)
    assert archive.verify() == ()
    return (*archive.items(), sum(len(part.deleted) for part in archive.parts))


def test_a_file_is_on_disk_before_it_is_named(tmp_path: Path, disk: Disk) -> None:
    """Every file is synced before it is moved to its place, its folder after, and the index comes last."""
    with ArchiveTier(tmp_path) as archive:
        archive.put(items(1))
    moves = [at for at, what in enumerate(disk.log) if what.startswith("replace")]
    assert all(disk.log[at - 1] == "fsync" == disk.log[at + 1] for at in moves)
    assert [disk.log[at] for at in moves] == ["replace part-000001", "replace index"]


@pytest.mark.parametrize(
    ("error", "said"), [(FULL, "the disk is full (free"), (READ_ONLY, "the disk is read-only (name")]
)
@pytest.mark.parametrize("steps", [0, 3, 60, 200, 400])
def test_a_disk_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, said: str, steps: int
) -> None:
    """One line that says why and what to do; the archive is as before, and goes on once there is room."""
    with ArchiveTier(tmp_path, SMALL) as archive:
        archive.put(items(5))
        monkeypatch.setattr(files, "os", Disk(steps, error))
        with pytest.raises(ArchiveError) as told:
            archive.put(items(9, "more"))
        assert said in str(told.value)
        monkeypatch.setattr(files, "os", Disk())
        assert list(archive.items()) == items(5)
        assert {path.name for path in tmp_path.iterdir()} - {".lock", "index"} == archive.files()
        archive.put(items(9, "more"))
        assert list(archive.items()) == [*items(5), *items(9, "more")]
        assert archive.verify() == ()


def test_a_folder_without_permission(tmp_path: Path) -> None:
    """It is named, with what to do; for reading it is open."""
    with ArchiveTier(tmp_path / "a") as archive:
        archive.put(items(1))
    (tmp_path / "a").chmod(0o500)
    (tmp_path / "a" / ".lock").chmod(0o400)
    try:
        try:
            (tmp_path / "a" / "probe").touch()
        except PermissionError:
            with pytest.raises(ArchiveError, match="no permission"):
                ArchiveTier(tmp_path / "a")
        else:
            pytest.skip("this user may write everywhere")
    finally:
        (tmp_path / "a").chmod(0o700)


def test_another_process_writes(tmp_path: Path) -> None:
    """The second writer is told; readers are not kept out."""
    with ArchiveTier(tmp_path):
        with pytest.raises(ArchiveError, match="another process writes here"):
            ArchiveTier(tmp_path)
        with pytest.raises(ArchiveError, match="there is no archive"):
            ArchiveTier(tmp_path, write=False)
    with ArchiveTier(tmp_path) as archive:
        archive.put(items(1))
        assert len(ArchiveTier(tmp_path, write=False)) == 1


def test_what_is_no_archive(tmp_path: Path) -> None:
    """A file, a folder with another index, another version, a folder that is not there: each says so."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArchiveError, match="it is a file"):
        ArchiveTier(tmp_path / "file")
    with pytest.raises(ArchiveError, match="a part of its path is a file"):
        ArchiveTier(tmp_path / "file" / "below")
    (tmp_path / "index").write_text("{}")
    with pytest.raises(ArchiveError, match="not the index of an archive"):
        ArchiveTier(tmp_path)
    (tmp_path / "index").write_text("ctxbench archive 7\nwhatever comes with it")
    with pytest.raises(ArchiveError, match="of version 7, this ctxbench reads version 1"):
        ArchiveTier(tmp_path)
    with pytest.raises(ArchiveError, match="there is no archive"):
        ArchiveTier(tmp_path / "nowhere", write=False)


def test_the_same_id_twice(tmp_path: Path) -> None:
    """The same message again is no second one; another under its id is refused, and nothing of that call is stored."""
    with ArchiveTier(tmp_path) as archive:
        assert archive.put([item(1), item(1)]) == 1
        for again in ([item(2), item(1, "another")], [item(2), item(2, "another")], [item(1, tokens=11)]):
            with pytest.raises(ArchiveError, match="is there already, with other content"):
                archive.put(again)
        assert archive.ids == ["talk/m1"]


@pytest.mark.parametrize(
    "bad",
    [
        ArchivedMessage("", 1, Message("m", "user", "hi")),
        ArchivedMessage("m", -1, Message("m", "user", "hi")),
        ArchivedMessage("m", 1, Message("m", "user", "half \ud83d")),
        ArchivedMessage("half \ud83d", 1, Message("m", "user", "hi")),
        ArchivedMessage("m", 1, Message("m", "user", "hi", time=float("nan"))),
    ],
)
def test_what_would_not_come_back_is_refused(tmp_path: Path, bad: ArchivedMessage) -> None:
    """One line, and nothing of the call is stored."""
    with ArchiveTier(tmp_path) as archive:
        with pytest.raises(ArchiveError):
            archive.put([item(1), bad])
        assert len(archive) == 0
