"""The cassette: what models answered, kept in one SQLite file by what they were asked.

A key is the SHA-256 of the request in canonical JSON: model, messages, parameters. No key, header or address of a
provider is ever part of it, and none is written. Beside chat replies it holds vectors (float32 bytes). Several
processes may use one cassette at once: a reply is written in a transaction of its own, and the first one written stays.

Replies that come with ctxbench (`shipped/`) stand before those of the file. What is used of them is copied into it, so
that a cassette holds all that a run was answered.

While it is open SQLite keeps `-wal` and `-shm` files beside it; the last one to close it folds them in. (Write-ahead
logging takes 7 000 writes a second from four processes, a rollback journal 60.)
"""

from __future__ import annotations

import hashlib
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import quote

import msgspec

from ...scenarios.errors import SetupError

if TYPE_CHECKING:
    from .shipped import Shipped

SCHEMA = 1
"""Version of the tables. Another number is another layout, which this version does not read."""
APPLICATION = int.from_bytes(b"ctxb", "big")
"""SQLite's application id of a cassette."""

_TABLES = """
CREATE TABLE replies (key TEXT PRIMARY KEY, kind TEXT NOT NULL, model TEXT NOT NULL, request TEXT, reply BLOB NOT NULL);
CREATE TABLE spending (run TEXT PRIMARY KEY, calls INTEGER NOT NULL DEFAULT 0, dollars REAL NOT NULL DEFAULT 0,
                       unpriced INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0);
"""
_SHUT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_AT_ONCE = 500
"""Keys of one SELECT; SQLite takes some more."""


class Entry(NamedTuple):
    """One recorded reply."""

    key: str
    kind: Literal["chat", "choice", "embedding"]
    model: str
    reply: bytes
    """The answer of a chat or a choice as JSON, or the float32 bytes of a vector."""
    request: str = ""
    """The canonical request; empty for an embedding."""


def canonical(request: Mapping[str, Any]) -> str:
    """A request as the one JSON text that it has, whatever the order of its fields."""
    return msgspec.json.encode(request, order="sorted").decode()


def key_of(canonical: str) -> str:
    """The key of a request: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(canonical.encode()).hexdigest()


class Unwritable(SetupError):
    """The file, or the folder that it is in, may not be written."""


def opened(path: Path, mode: Literal["auto", "replay", "record"], *, named: bool = True) -> Cassette:
    """The cassette of a run. One that may not be written will do for `auto`, as long as every reply is in it.

    One that nobody `named` need not be there for `replay`: what comes with ctxbench is.
    """
    from .shipped import shipped

    if mode == "replay":
        return Cassette(path, read_only=True, shipped=shipped(), optional=not named)
    try:
        return Cassette(path, shipped=shipped() if mode == "auto" else None)
    except Unwritable:
        if mode == "record" or not path.is_file():
            raise
        return Cassette(path, read_only=True, shipped=shipped())


class Cassette:
    """An open cassette. It is made if it is not there, unless it is only read.

    One per process: it does not survive a fork; threads may share it. Every method raises SetupError where the file is
    damaged, locked for a minute, of another version, no cassette, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        shipped: Shipped | None = None,
        optional: bool = False,
        busy: float = 60.0,
    ) -> None:
        self.path, self.read_only, self.shipped = path, read_only, shipped
        self._lock, self._busy, self._optional = RLock(), busy, optional
        with self._explained():
            self._open = self._read() if read_only else self._write()
        self._end = weakref.finalize(self, self._open.close)  # at the end of the process too, if nobody else does

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Nothing can be asked of it afterwards."""
        with self._lock:
            self._end()

    def to_be_written(self) -> None:
        """Raise SetupError if nothing can be kept here: before a model is called, which may have to be paid."""
        if self.read_only:
            remedy = "make it writable, or copy it and name the copy with --cassette"
            raise SetupError(f"{self.path}: cannot be written, and has not all replies that are asked for: {remedy}")

    def get(self, key: str) -> bytes | None:
        """The reply under a key; None if there is none."""
        return self.get_many((key,)).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The replies under those of the keys that have one."""
        found: dict[str, bytes] = {}
        for at in range(0, len(keys), _AT_ONCE):
            some = keys[at : at + _AT_ONCE]
            found.update(self.ask(f"SELECT key, reply FROM replies WHERE key IN ({','.join('?' * len(some))})", some))
        if self.shipped is None:
            return found
        came = self.shipped.get_many(keys)
        if not self.read_only and (new := [entry for key, entry in came.items() if key not in found]):
            self.put_many(new)
        return found | {key: entry.reply for key, entry in came.items()}

    def lacks(self, model: str, prompt: str = "") -> str:
        """What to say of a request that has no reply here, and that may not be made."""
        older = self.shipped.older(prompt) if self.shipped is not None else ""
        if older:
            return f"{model}: the replies that come with ctxbench are stale, to {older}: `make record` renews them"
        return f"{model}: {self.path.name} has no reply to this request: record it once with --cassette-mode auto"

    def put(self, entry: Entry, *, replace: bool = False) -> bytes:
        """Keep a reply, and return the one that is kept: another process may have been first."""
        self.put_many((entry,), replace=replace)
        return self.get(entry.key) or entry.reply

    def put_many(self, entries: Sequence[Entry], *, replace: bool = False) -> int:
        """Keep replies, all or none. Those that are there stay unless `replace`. Returns how many were written."""
        rows = [(each.key, each.kind, each.model, each.request or None, each.reply) for each in entries]
        with self.transaction() as database:
            before = database.total_changes
            how = "REPLACE" if replace else "IGNORE"
            database.executemany(
                f"INSERT OR {how} INTO replies (key, kind, model, request, reply) VALUES (?,?,?,?,?)", rows
            )
            return database.total_changes - before

    def entries(self) -> Iterator[Entry]:
        """All replies, in the order of their keys."""
        with self._lock, self._explained():
            for key, kind, model, request, reply in self._open.execute(
                "SELECT key, kind, model, request, reply FROM replies ORDER BY key"
            ):
                yield Entry(key, kind, model, reply, request or "")

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a SELECT finds."""
        with self._lock, self._explained():
            return self._open.execute(statement, values).fetchall()

    def check(self) -> None:
        """Read the whole file and see that it is not damaged."""
        with self._lock, self._explained():
            found = self._open.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise sqlite3.DatabaseError(found)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, for changes that are made together or not at all, while no other process makes any."""
        with self._lock, self._explained():
            self._open.execute("BEGIN IMMEDIATE")
            try:
                yield self._open
            except BaseException:
                if self._open.in_transaction:  # a full disk has ended it already
                    self._open.execute("ROLLBACK")
                raise
            self._open.execute("COMMIT")

    def _write(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = self._connect(f"file:{quote(str(self.path))}")
        try:
            database.execute("BEGIN IMMEDIATE")  # one process makes the tables, the others wait
            if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                _make_tables(database)
            database.execute("COMMIT")
            self._same_layout(database)
            self._log_ahead(database)
            database.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            database.close()
            raise
        return database

    def _log_ahead(self, database: sqlite3.Connection) -> None:
        """Switch to a write-ahead log. SQLite itself does not wait where two processes switch at once."""
        from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

        again = Retrying(
            retry=retry_if_exception(_is_busy), stop=stop_after_delay(self._busy), wait=wait_fixed(0.01), reraise=True
        )
        again(database.execute, "PRAGMA journal_mode=WAL")

    def _read(self) -> sqlite3.Connection:
        if not self.path.is_file() and self._optional:
            return self._empty()
        if not self.path.is_file():
            raise SetupError(f"{self.path}: there is no such cassette: record one with --cassette-mode auto")
        for how in ("mode=rw", "immutable=1"):  # the second where not even its `-shm` can be written
            database = self._connect(f"file:{quote(str(self.path))}?{how}")
            try:
                self._same_layout(database)
                database.execute("PRAGMA query_only=1")
                return database
            except BaseException as error:
                database.close()
                if not isinstance(error, sqlite3.OperationalError) or how == "immutable=1":
                    raise
        raise AssertionError

    def _empty(self) -> sqlite3.Connection:
        """A cassette that holds nothing, in memory."""
        database = self._connect("file::memory:")
        _make_tables(database)
        database.execute("PRAGMA query_only=1")
        return database

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=self._busy, isolation_level=None, check_same_thread=False)

    def _same_layout(self, database: sqlite3.Connection) -> None:
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise SetupError(f"{self.path}: is a database, but no cassette: name another with --cassette")
        if (found := database.execute("PRAGMA user_version").fetchone()[0]) != SCHEMA:
            raise SetupError(
                f"{self.path}: is a cassette of version {found}, this ctxbench reads {SCHEMA}: name another"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            what = getattr(error, "strerror", None) or " ".join(str(error).split())
            no_code = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.Error) else sqlite3.SQLITE_CANTOPEN
            code = getattr(error, "sqlite_errorcode", no_code) & 0xFF
            match code:
                case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                    remedy = "the cassette is damaged, or no cassette: move it away, or name another with --cassette"
                case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                    remedy = "another program holds the cassette: end that one, or name another with --cassette"
                case _:
                    remedy = "the cassette cannot be used: name another with --cassette"
            kind = Unwritable if code in _SHUT else SetupError
            raise kind(f"{self.path}: {what}: {remedy}") from None


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _make_tables(database: sqlite3.Connection) -> None:
    for statement in (
        *_TABLES.split(";"),
        f"PRAGMA user_version={SCHEMA}",
        f"PRAGMA application_id={APPLICATION}",
    ):
        database.execute(statement)
