"""The journal of locations: what is on disk after a crash, and what is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.tiers.migration import FileJournal, JournalError, MemoryJournal, Migration, Tier
from ctxbench.strategies.tiers.migration import journal as journals
from ctxbench.strategies.tiers.migration.journal import Begun, Cleaned, Committed, Gone, Locations, Record
from ctxbench.strategies.tiers.quota import Quota
from tests.strategies.tiers.migration.stores import NAMES, Memory

RECORDS: list[Record] = [
    Begun("a\r\nb", "working", 10, 3, 77, 1.5),
    Committed("a\r\nb", "working", 1.5),
    Begun("a\r\nb", "archive", 10, 3, 77, 2.0),
    Committed("a\r\nb", "archive", 2.0, 7.0),
    Cleaned("a\r\nb", "working"),
]


def written(path: Path, records: Sequence[Record]) -> bytes:
    """Write a journal, and return its bytes."""
    with FileJournal(path) as journal:
        for record in records:
            journal.append(record)
    return path.read_bytes()


def test_records_come_back_from_disk(tmp_path: Path) -> None:
    """In order, also those with line ends in their ids; and after being written anew."""
    written(tmp_path / "folder" / "journal", RECORDS)
    with FileJournal(tmp_path / "folder" / "journal") as journal:
        assert (list(journal.records()), len(journal)) == (RECORDS, 5)
        journal.rewrite(RECORDS[:2])
        journal.append(RECORDS[2])
    with FileJournal(tmp_path / "folder" / "journal") as journal:
        assert list(journal.records()) == RECORDS[:3]


def test_a_last_line_cut_anywhere_did_not_happen(tmp_path: Path) -> None:
    """However many bytes of it were written, the records before it are there, and more can follow."""
    path = tmp_path / "journal"
    whole = written(path, RECORDS[:4])
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(1, last + 1):
        path.write_bytes(whole[:-cut])
        with FileJournal(path) as journal:
            assert list(journal.records()) == RECORDS[:3]
            journal.append(RECORDS[3])
        assert path.read_bytes() == whole


def test_a_bit_that_is_wrong_anywhere_is_refused_with_its_line(tmp_path: Path) -> None:
    """Each bit of each line in turn: nothing altered is ever read as a record."""
    path = tmp_path / "journal"
    whole = written(path, RECORDS[:2])
    end = len(whole) - 1
    for at in range(end):
        altered = bytearray(whole)
        altered[at] ^= 1 << at % 8
        path.write_bytes(altered)
        with pytest.raises(JournalError, match=r"journal: (this is not a journal|line [23] is altered)"):
            FileJournal(path)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    """The second is told, and the first goes on."""
    with FileJournal(tmp_path / "journal") as journal:
        with pytest.raises(JournalError, match="another process writes it"):
            FileJournal(tmp_path / "journal")
        journal.append(RECORDS[0])


def test_a_full_disk_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line is written, then the disk is full: it is taken back, and later records follow the last whole one."""

    def half(handle: int, data: bytes) -> None:
        os.write(handle, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with FileJournal(tmp_path / "journal") as journal:
        journal.append(RECORDS[0])
        with monkeypatch.context() as patch:
            patch.setattr(journals, "_write", half)
            with pytest.raises(JournalError, match="No space left on device"):
                journal.append(RECORDS[1])
            with pytest.raises(JournalError, match="No space left on device"):
                journal.rewrite(RECORDS[:1])
        journal.append(RECORDS[1])
        assert list(journal.records()) == RECORDS[:2]


def test_a_folder_that_cannot_be_flushed_loses_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced and may not outlast a crash: nothing is appended to the one that is gone, and it is said."""

    def flushed(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "Input/output error")

    with FileJournal(tmp_path / "journal") as journal:
        journal.append(RECORDS[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", flushed)
            with pytest.raises(JournalError, match="Input/output error"):
                journal.rewrite(RECORDS[:1])
        with pytest.raises(JournalError, match="it is closed"):
            journal.append(RECORDS[1])
    with FileJournal(tmp_path / "journal") as journal:
        journal.append(RECORDS[1])
        assert list(journal.records()) == RECORDS[:2]


def test_what_the_journal_does_not_take_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion that cannot be journalled: the item is where it was, and can be deleted later."""
    with FileJournal(tmp_path / "journal") as journal:
        migration = Migration([Tier("only", Memory(), Quota(100))], journal, lambda event: None, 0)
        migration.put("a", b"words", 10, "only", 0)
        append = journal.append

        def failing(record: Record) -> None:
            if isinstance(record, Gone):
                raise JournalError(journal.path, "the disk is full", "free some space")
            append(record)

        with monkeypatch.context() as patch:
            patch.setattr(journal, "append", failing)
            with pytest.raises(JournalError):
                migration.forget("a", 1)
        assert migration.get("a", 2) == b"words"
        migration.forget("a", 3)
        assert "a" not in migration


def test_the_journal_does_not_grow_for_ever(tmp_path: Path) -> None:
    """An item that comes and goes 2,000 times: the journal is written anew, and says the same."""
    journal = MemoryJournal()
    memory = Memory()
    migration = Migration([Tier("only", memory, Quota(100))], journal, lambda event: None, 0)
    migration.put("stays", b"words", 10, "only", 0)
    for now in range(2_000):
        migration.put("a", b"words", 10, "only", now)
        migration.forget("a", now)
        migration.run(now)
    assert len(journal) < 1_020
    again = Migration([Tier("only", memory, Quota(100))], journal, lambda event: None, 2_000)
    assert (again.ids("only"), again.get("stays", 2_000)) == (["stays"], b"words")


IDS = st.sampled_from(["a", "b"])
TIERS = st.sampled_from(NAMES[:3])
TIMES = st.integers(0, 9).map(float)
ANY = st.one_of(
    st.builds(Begun, IDS, TIERS, st.just(1), st.just(2), st.just(3), TIMES),
    st.builds(Committed, IDS, TIERS, TIMES, st.none() | TIMES),
    st.builds(Cleaned, IDS, TIERS),
    st.builds(Gone, IDS, TIMES),
)


@given(st.lists(ANY, max_size=25))
def test_written_anew_it_says_the_same(records: list[Record]) -> None:
    """Whatever happened, those records that are left come to the same as all of them."""
    locations = Locations()
    for record in records:
        try:
            locations.apply(record)
        except ValueError:
            continue
    again = Locations()
    for record in locations.records():
        again.apply(record)
    for name in ("places", "copies", "arriving", "now"):
        assert getattr(again, name) == getattr(locations, name)
    assert [again.ids(tier) for tier in NAMES] == [locations.ids(tier) for tier in NAMES]
    assert [again.tokens(tier) for tier in NAMES] == [locations.tokens(tier) for tier in NAMES]
