"""The journal of locations: in memory, or in a file that is valid after every crash.

Each line of the file is a CRC-32 and a record as JSON. A record is on disk when `append` returns. An incomplete last
line did not happen and is cut off. Any other invalid line means that the file was altered, and it is rejected.
`rewrite` replaces the file with a shorter one, completely or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self
from zlib import crc32

import msgspec
from filelock import FileLock, Timeout

from ctxbench.scenarios.errors import UserError

from .store import Sum

HEADER = b"ctxbench locations 1\n"


class JournalError(UserError):
    """A journal that cannot be opened, read or written as it is."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what} ({remedy})")


class Journal(Protocol):
    """Records in order. `append` returns once a record would survive a crash."""

    def __len__(self) -> int: ...
    def records(self) -> Iterable[Record]: ...
    def append(self, record: Record) -> None: ...
    def rewrite(self, records: Iterable[Record]) -> None: ...


class MemoryJournal:
    """A journal in memory, for tiers that all end with the process."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> Iterable[Record]:
        """Return all records."""
        return tuple(self._records)

    def append(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace all records."""
        self._records = list(records)


class FileJournal:
    """A journal in a file that one process writes. The file is created if necessary."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._handle = -1
        with self._reporting():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(f"{self.path}.lock")
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise JournalError(self.path, "another process writes it", "wait for it to end") from None
        try:
            with self._reporting():
                if not self.path.exists():
                    self._replace(())
                self._records, self._end = self._read()
                self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._lock.release()

    def __len__(self) -> int:
        return self._records

    def records(self) -> Iterator[Record]:
        """Return all records from disk."""
        with self._reporting():
            lines = self.path.read_bytes()[len(HEADER) :].splitlines(keepends=True)
        return (_parse(line) for line in lines)

    def append(self, record: Record) -> None:
        """Add a record on disk. Raises JournalError and adds nothing."""
        line = _line(record)
        if self._handle < 0:
            raise JournalError(self.path, "it is closed", "open it again")
        with self._reporting():
            try:
                _write(self._handle, line)
            except OSError:
                # Half a line followed by later lines would read as an altered
                # file, not as a record that did not happen.
                os.ftruncate(self._handle, self._end)
                raise
        self._end += len(line)
        self._records += 1

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace all records. Raises JournalError and changes nothing.

        If the new file is in place and may not outlast a crash, it raises JournalError and closes the journal.
        """
        with self._reporting():
            count = self._replace(records)
            os.close(self._handle)
            self._handle = -1  # should the file not open, its number may soon be another file's
            self._open()
        self._records = count

    def _open(self) -> None:
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._end = os.fstat(self._handle).st_size

    def _replace(self, records: Iterable[Record]) -> int:
        lines = [_line(record) for record in records]
        beside = self.path.with_name(self.path.name + ".new")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _write(handle, HEADER + b"".join(lines))
        finally:
            os.close(handle)
        os.replace(beside, self.path)
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError:
            # The handle is that of the file that is gone: whatever is appended to it would be lost.
            self.close()
            raise
        return len(lines)

    def _read(self) -> tuple[int, int]:
        """Check every line, and cut off an incomplete last one. Return the number of lines left and their end."""
        data = self.path.read_bytes()
        if not data.startswith(HEADER):
            raise JournalError(
                self.path, "this is not a journal of this version", "name another file, or remove this one"
            )
        # Bytes are split at \r and \n only, both of which JSON escapes: a line of the file is a line here.
        end, lines = len(HEADER), data[len(HEADER) :].splitlines(keepends=True)
        # The header is line 1, so the last line has the number len(lines) + 1.
        for number, line in enumerate(lines, 2):
            try:
                _parse(line)
            except (ValueError, msgspec.MsgspecError):
                # A write that was cut off lacks its line's end. A whole line with a wrong sum, or any line before the
                # last, was altered.
                if number < len(lines) + 1 or line.endswith(b"\n"):
                    raise JournalError(
                        self.path, f"line {number} is altered", "restore the file from a backup"
                    ) from None
                os.truncate(self.path, end)
                return number - 2, end
            end += len(line)
        return len(lines), end

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(self.path, error.strerror or str(error), "see what the system says") from None


def _line(record: Record) -> bytes:
    text = msgspec.json.encode(record)
    return b"%08x %b\n" % (crc32(text), text)


def _parse(line: bytes) -> Record:
    """Parse a line. Raises ValueError or MsgspecError if it is altered."""
    crc, text = line[:8], line[9:-1]
    if line[8:9] != b" " or line[-1:] != b"\n" or crc != b"%08x" % crc32(text):
        raise ValueError("altered")
    record: Record = msgspec.json.decode(text, type=Record)
    return record


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


class _Record(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True, gc=False):
    """Base of all records: frozen, and tagged with the name of its kind."""


class Begun(_Record, frozen=True, tag="begun"):
    """A copy is about to be written. If the id is unknown, the item is new and this will be its only copy."""

    id: str
    to: str
    tokens: int
    bytes: int
    crc: int
    now: float


class Committed(_Record, frozen=True, tag="committed"):
    """The content is at `to` now. Its previous copy is to be deleted at `due`; None = it stays as a backing copy."""

    id: str
    to: str
    now: float
    due: float | None = None


class Cleaned(_Record, frozen=True, tag="cleaned"):
    """The copy at a tier is deleted."""

    id: str
    tier: str


class Gone(_Record, frozen=True, tag="gone"):
    """The item is deleted: all its copies are due."""

    id: str
    now: float


class HeldRecord(_Record, frozen=True, tag="held"):
    """Location of an item, in a rewritten journal."""

    id: str
    tier: str
    tokens: int
    bytes: int
    crc: int
    since: float
    came: str


class Copied(_Record, frozen=True, tag="copied"):
    """Another copy of an item, in a rewritten journal."""

    id: str
    tier: str
    due: float | None


class ClockRecord(_Record, frozen=True, tag="until"):
    """Time of the last record, in a rewritten journal."""

    now: float


Record = Begun | Committed | Cleaned | Gone | HeldRecord | Copied | ClockRecord


class Location(NamedTuple):
    """The one tier that an item is in, and the size and checksum of its content."""

    tier: str
    tokens: int
    bytes: int
    crc: int
    since: float
    """Time of its arrival there."""
    came: str
    """Tier that it came from; empty if it was new."""

    @property
    def sum(self) -> Sum:
        """Length and checksum of the content."""
        return self.bytes, self.crc


class Locations:
    """Locations of all items, the result of the records so far."""

    __slots__ = ("_ids", "arriving", "copies", "held", "now", "places")

    def __init__(self) -> None:
        self.places: dict[str, Location] = {}
        self.copies: dict[str, dict[str, float | None]] = {}
        """Tiers with another copy of each item, and when that copy is to be deleted; None = never."""
        self.arriving: dict[str, Begun] = {}
        self.held: dict[str, int] = {}
        """Tokens of each tier's items."""
        self._ids: dict[str, dict[str, None]] = {}
        self.now = float("-inf")

    def ids(self, tier: str) -> list[str]:
        """Return the items of a tier in order of arrival."""
        return list(self._ids.get(tier, ()))

    def tokens(self, tier: str) -> int:
        """Return the tokens of a tier's items."""
        return self.held.get(tier, 0)

    def tiers(self) -> set[str]:
        """Return all tiers with an item or a copy."""
        copies = {tier for tiers in self.copies.values() for tier in tiers}
        return copies | {place.tier for place in self.places.values()}

    def apply(self, record: Record) -> None:
        """Apply a record. Raises ValueError if it cannot follow the records before it."""
        match record:
            case Begun():
                self._begin(record)
            case Committed():
                self._commit(record)
            case Cleaned():
                self._clean(record.id, record.tier)
            case Gone():
                self._go(record)
            case HeldRecord():
                self._at(record.id, Location(*(getattr(record, name) for name in Location._fields)))
            case Copied():
                self.copies.setdefault(record.id, {})[record.tier] = record.due
            case ClockRecord():
                self._tick(record.now)

    def records(self) -> Iterator[Record]:
        """Yield the fewest records with the same result. Equal locations yield equal records."""
        for tier in sorted(self._ids):
            # This order, as a `Begun` counts as an arrival only if its item is not held; it sets its own copy's time,
            # which `Copied` then repeats. The clock comes last, as no other record needs it and it is the greatest.
            yield from (HeldRecord(id, **self.places[id]._asdict()) for id in self._ids[tier])
        yield from (begun for _, begun in sorted(self.arriving.items()))
        for id, copies in sorted(self.copies.items()):
            yield from (Copied(id, tier, due) for tier, due in sorted(copies.items()))
        if self.now > float("-inf"):
            yield ClockRecord(self.now)

    def _tick(self, now: float) -> None:
        self.now = max(self.now, now)

    def _begin(self, record: Begun) -> None:
        self._tick(record.now)
        if record.id not in self.places:
            self.arriving[record.id] = record
        # Due at once: if nothing else follows, for a crash or a failure, the copy is cleaned like any other.
        self.copies.setdefault(record.id, {})[record.to] = record.now

    def _commit(self, record: Committed) -> None:
        id, to = record.id, record.to
        if to not in self.copies.get(id, ()):
            raise ValueError(f"{id!r} is committed to {to!r}, but no copy was begun there")
        self._tick(record.now)
        # The copy at `to` is the content from now on; the content at the old tier becomes a copy.
        self._forget_copy(id, to)
        arrived, old = self.arriving.pop(id, None), self.places.get(id)
        if old is not None:
            self._leave(id)
            self.copies.setdefault(id, {})[old.tier] = record.due
            self._at(id, old._replace(tier=to, since=record.now, came=old.tier))
        elif arrived is not None:
            self._at(id, Location(to, arrived.tokens, arrived.bytes, arrived.crc, record.now, ""))
        else:
            raise ValueError(f"{id!r} is committed to {to!r}, but is unknown")

    def _clean(self, id: str, tier: str) -> None:
        if tier not in self.copies.get(id, ()):
            raise ValueError(f"a copy of {id!r} is cleaned from {tier!r}, but there is none")
        self._forget_copy(id, tier)
        # The only copy of a new item was removed: it never arrived.
        if id in self.arriving and self.arriving[id].to == tier:
            del self.arriving[id]

    def _go(self, record: Gone) -> None:
        id = record.id
        if id not in self.places:
            raise ValueError(f"{id!r} is deleted, but is unknown")
        self._tick(record.now)
        # Read before `_leave`, which forgets the place.
        tiers = {*self.copies.get(id, ()), self.places[id].tier}
        self._leave(id)
        self.copies[id] = dict.fromkeys(sorted(tiers), record.now)

    def _forget_copy(self, id: str, tier: str) -> None:
        copies = self.copies[id]
        del copies[tier]
        if not copies:
            del self.copies[id]

    def _at(self, id: str, place: Location) -> None:
        self.places[id] = place
        self._ids.setdefault(place.tier, {})[id] = None
        self.held[place.tier] = self.tokens(place.tier) + place.tokens
        self._tick(place.since)

    def _leave(self, id: str) -> None:
        place = self.places.pop(id)
        del self._ids[place.tier][id]
        self.held[place.tier] -= place.tokens
