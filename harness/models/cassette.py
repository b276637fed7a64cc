"""The cassette: replies of models in one SQLite file, each under a key made of its request.

A key is the SHA-256 of the request in canonical JSON: model, messages, parameters. No key, header or address of a
provider is ever part of it, and none is written. Beside chat replies it holds vectors (float32 bytes). Several
processes may use one cassette at once: a reply is written in a transaction of its own, and the first one written stays.

**Damage.** Each reply has a digest, which is compared when it is read, and the cassette a total, which is compared
before a reply is said not to be there, once for each time that it is opened (`rows.py`). A damaged reply is an error of
those who ask for it, and of no others. `repair` drops what is damaged.

Replies that come with ctxbench (`shipped/`) take precedence over those of the file. The ones in use are copied into it,
so that a cassette holds all replies of a run.

While it is open SQLite keeps `-wal` and `-shm` files beside it; the last one to close it folds them in. (Write-ahead
logging takes 7 000 writes a second from four processes, a rollback journal 60.)
"""

from __future__ import annotations

import base64
import hashlib
import shlex
import sqlite3
import weakref
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import quote

import msgspec
import zstandard

from ctxbench.scenarios.errors import SetupError

from ..folder.schema import Spending
from .rows import DigestedRows, DigestedTable, RowDamage, Values, make_tables, names_of

SCHEMA = 2
"""Version of the tables. Another number is another layout, which this version does not read."""
APPLICATION = int.from_bytes(b"ctxb", "big")
"""SQLite's application id of a cassette."""

_REPLIES = DigestedTable(
    "replies",
    "replies",
    {
        "key": "TEXT PRIMARY KEY NOT NULL",
        "kind": "TEXT NOT NULL",
        "model": "TEXT NOT NULL",
        "request": "TEXT NOT NULL",
        "reply": "BLOB NOT NULL",
    },
)
_SUMS = {name: f"{'REAL' if name == 'dollars' else 'INTEGER'} NOT NULL" for name in Spending.__struct_fields__}
_ACCOUNTS = DigestedTable("accounts", "accounts of money", {"name": "TEXT PRIMARY KEY NOT NULL"} | _SUMS)
_SHUT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


class CassetteEntry(NamedTuple):
    """One recorded reply."""

    key: str
    kind: Literal["chat", "choice", "embedding"]
    model: str
    reply: bytes
    """The answer of a chat or a choice as JSON, or the float32 bytes of a vector."""
    request: str = ""
    """The canonical request; empty for an embedding."""

    def digest(self) -> str:
        """Return the digest of the entry, where it stands in no cassette."""
        return _REPLIES.digest(_row(self))


def _row(entry: CassetteEntry) -> Values:
    return entry.key, entry.kind, entry.model, entry.request, entry.reply


def _entry_of(row: Values) -> CassetteEntry:
    key, kind, model, request, reply = row
    return CassetteEntry(key, kind, model, reply, request)


def canonical(request: Mapping[str, Any]) -> str:
    """Return a request as the one JSON text that it has, whatever the order of its fields."""
    return msgspec.json.encode(request, order="sorted").decode()


def key_of(canonical: str) -> str:
    """Return the key of a request: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(canonical.encode()).hexdigest()


class DamageError(SetupError):
    """A reply, a sum or the file itself is not as it was written."""


class Unwritable(SetupError):
    """The file, or the folder that it is in, may not be written."""


def opened(path: Path, mode: Literal["auto", "replay", "record"], *, named: bool = True) -> Cassette:
    """Open the cassette of a run.

    A read-only file will do for `auto`, as long as every reply is in it. One that the user has not `named` need not
    exist for `replay`: there are the replies that come with ctxbench.
    """
    if mode == "replay":
        return Cassette(path, read_only=True, shipped=shipped(), optional=not named)
    try:
        return Cassette(path, shipped=shipped() if mode == "auto" else None)
    except Unwritable:
        if mode == "record" or not path.is_file():
            raise
        return Cassette(path, read_only=True, shipped=shipped())


class Cassette:
    """An open cassette. A missing file is created, unless it is opened `read_only`.

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
        self._verdict: str | None = None
        with self._explained():
            self._open = self._read() if read_only else self._write()
        self._end = weakref.finalize(self, self._open.close)  # at the end of the process too, if nobody else does
        try:
            with self._explained():
                name = self._name()
        except SetupError:
            self._end()
            raise
        self._replies, self._accounts = (DigestedRows(table, self._open, name) for table in (_REPLIES, _ACCOUNTS))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. It cannot be used afterwards."""
        with self._lock:
            self._end()

    def to_be_written(self) -> None:
        """Raise SetupError if nothing can be written here: before a model is called, which may have to be paid."""
        if self.read_only:
            remedy = "make it writable, or copy it and name the copy with --cassette"
            raise SetupError(f"{self.path}: cannot be written, and has not all replies that are asked for: {remedy}")

    def get(self, key: str) -> bytes | None:
        """Return the reply under a key, or None."""
        return self.get_many((key,)).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the replies under those of the keys that have one."""
        shipped_entries = self.shipped.get_many(keys) if self.shipped is not None else {}
        others = [key for key in keys if key not in shipped_entries]
        replies: dict[str, bytes] = {}
        with self._lock, self._explained():
            replies.update((row[0], row[-1]) for row in self._replies.under(others))
            if len(replies) < len(set(others)):
                self._check_once()
        # What comes with ctxbench and is used is copied: an export is then exactly what a command asked (decision 25).
        if shipped_entries and not self.read_only:
            with self._lock, self._explained():
                copied = self._replies.keys(list(shipped_entries))
            if new := [entry for key, entry in shipped_entries.items() if key not in copied]:
                self.put_many(new)
        return replies | {key: entry.reply for key, entry in shipped_entries.items()}

    def lacks(self, model: str, prompt: str = "") -> str:
        """Return the message for a request that has no reply here, and that may not be made."""
        older = self.shipped.older(prompt) if self.shipped is not None else ""
        if older:
            return f"{model}: the replies that come with ctxbench are stale, to {older}: `make record` renews them"
        return f"{model}: {self.path.name} has no reply to this request: record it once with --cassette-mode auto"

    def put(self, entry: CassetteEntry, *, replace: bool = False) -> bytes:
        """Write a reply, and return the stored one: another process may have been first."""
        self.put_many((entry,), replace=replace)
        # Read back, so that all processes go on with the same reply.
        return self.get(entry.key) or entry.reply

    def put_many(self, entries: Sequence[CassetteEntry], *, replace: bool = False) -> int:
        """Write replies, all or none. Existing ones stay unless `replace`. Returns how many were written."""
        with self.transaction():
            return self._replies.write(map(_row, entries), replace=replace)

    def entries(self) -> Iterator[CassetteEntry]:
        """Yield all replies, in the order of their keys. Raises SetupError before the first if any is damaged."""
        self.verify()
        with self._lock, self._explained():
            yield from map(_entry_of, self._replies.all())

    def account(self, name: str) -> Spending | None:
        """Return the sums of an account of money (`purse.py`); None if it has never been charged."""
        with self._lock, self._explained():
            for _, *sums in self._accounts.under((name,)):
                return Spending(*sums)
            # An account that was lost would read as one that has spent nothing.
            self._accounts.check()
            _check_structure(self._open, "integrity_check(accounts)")  # the index may lead nowhere
        return None

    def set_account(self, name: str, sums: Spending) -> None:
        """Write the sums of an account, within a transaction."""
        self._accounts.write([(name, *msgspec.structs.astuple(sums))], replace=True)

    def check(self) -> None:
        """Look whether the file is a database still. Raises SetupError if it is not. Damaged replies pass."""
        with self._lock, self._explained():
            _check_structure(self._open, "quick_check(1)")

    def verify(self) -> None:
        """Read the whole file. Raises SetupError if anything is damaged or lost."""
        with self._lock, self._explained():
            self._open.execute("BEGIN")  # all is read at one moment
            try:
                self._replies.check()
                self._accounts.check()
                _check_structure(self._open, "integrity_check(1)")
            finally:
                if self._open.in_transaction:
                    self._open.execute("ROLLBACK")

    def _remedy(self) -> str:
        """Return what to do about damage."""
        command = f"ctxbench lab cassette verify --repair --cassette {shlex.quote(str(self.path))}"
        return f"drop what is damaged with `{command}`"

    def _check_once(self) -> None:
        """Read the whole file before a reply is said not to be there: once, but fail each time if it is damaged."""
        if self._verdict is None:
            try:
                self.verify()
                self._verdict = ""
            except DamageError as error:
                self._verdict = str(error)
        if self._verdict:
            raise DamageError(self._verdict)

    def _name(self) -> str:
        names = names_of(self._open)
        if len(names) != 1:
            raise RowDamage("its name is not as it was written")
        return names[0]

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database for changes that are made together or not at all, while no other process makes any."""
        with self._lock, self._explained():
            # IMMEDIATE: a transaction that begins as a reader cannot wait for its turn to write.
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
            is_new = not database.execute("PRAGMA page_count").fetchone()[0]
            database.execute("BEGIN IMMEDIATE")  # one process makes the tables, the others wait
            if is_new and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                _make_tables(database)
            database.execute("COMMIT")
            self._same_layout(database)
            self._log_ahead(database)
            # With a write-ahead log this may lose the last replies with
            # the machine's power, but never leaves the file inconsistent.
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
        # Not "mode=ro": a write-ahead log cannot be read without its `-shm` file, which somebody has to write. The
        # second is for a folder in which nobody may.
        for how in ("mode=rw", "immutable=1"):
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
        """Open a cassette that holds nothing, in memory."""
        database = self._connect("file::memory:")
        _make_tables(database)
        database.execute("PRAGMA query_only=1")
        return database

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=self._busy, isolation_level=None, check_same_thread=False)

    def _same_layout(self, database: sqlite3.Connection) -> None:
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise SetupError(f"{self.path}: is a database, but no cassette: name another with --cassette")
        if (version := database.execute("PRAGMA user_version").fetchone()[0]) != SCHEMA:
            raise SetupError(
                f"{self.path}: is a cassette of version {version}, this ctxbench reads {SCHEMA}: "
                "move it away and record anew, or name another with --cassette"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except RowDamage as damage:
            raise DamageError(f"{self.path}: {damage}: {self._remedy()}") from None
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last where a damaged schema is quoted
            what = getattr(error, "strerror", None) or " ".join(str(error).split())
            no_code = sqlite3.SQLITE_CANTOPEN if isinstance(error, OSError) else sqlite3.SQLITE_CORRUPT
            code = getattr(error, "sqlite_errorcode", no_code) & 0xFF
            match code:
                case sqlite3.SQLITE_CORRUPT:
                    remedy = f"the cassette is damaged: {self._remedy()}"
                case sqlite3.SQLITE_NOTADB:
                    remedy = "the cassette is damaged, or no cassette: move it away, or name another with --cassette"
                case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                    remedy = "another program holds the cassette: end that one, or name another with --cassette"
                case _:
                    remedy = "the cassette cannot be used: name another with --cassette"
            kind = DamageError if code == sqlite3.SQLITE_CORRUPT else Unwritable if code in _SHUT else SetupError
            raise kind(f"{self.path}: {what}: {remedy}") from None


def _check_structure(database: sqlite3.Connection, pragma: str) -> None:
    verdict = database.execute(f"PRAGMA {pragma}").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _make_tables(database: sqlite3.Connection) -> None:
    make_tables(database, (_REPLIES, _ACCOUNTS))
    for statement in (f"PRAGMA user_version={SCHEMA}", f"PRAGMA application_id={APPLICATION}"):
        database.execute(statement)


class Repaired(NamedTuple):
    """A repair of a cassette: how many rows are whole, and each that was dropped by the start of its key."""

    replies: int
    accounts: int
    dropped: tuple[str, ...]
    dropped_accounts: tuple[str, ...]


class DamagedCassette(Cassette):
    """A cassette to be repaired, which nobody else may have open."""

    def __init__(self, path: Path, *, busy: float = 5.0) -> None:
        if not path.is_file():
            raise SetupError(f"{path}: there is no such cassette")
        super().__init__(path, busy=busy)

    def repair(self) -> Repaired:
        """Make the file anew from all that is whole in it. Raises SetupError where nothing can be read."""
        with self._lock, self._explained(), TemporaryDirectory(dir=self.path.parent, prefix=".repair") as folder:
            # Where one of the places of the name is damaged, the other one is the name that rows were written with.
            names = names_of(self._open)
            if not names:
                raise RowDamage("its name is lost")
            name = max(names, key=lambda name: len(self._salvaged(_REPLIES, name)[0]))
            replies, dropped = self._salvaged(_REPLIES, name)
            accounts, dropped_accounts = self._salvaged(_ACCOUNTS, name)
            if not (replies or dropped or accounts):  # rather kept than overwritten by an empty one
                raise RowDamage("nothing in it can be read")
            with Cassette(Path(folder) / "whole") as whole:
                whole.put_many(list(map(_entry_of, replies)))
                with whole.transaction():
                    for account, *sums in accounts:
                        whole.set_account(account, Spending(*sums))
                whole._open.backup(self._open)
        return Repaired(len(replies), len(accounts), tuple(dropped), tuple(dropped_accounts))

    def _salvaged(self, table: DigestedTable, name: str) -> tuple[list[Values], list[str]]:
        """Return the rows that are whole, and the others by the start of their keys."""
        rows = list(DigestedRows(table, self._open, name).salvage())
        return [row for row in rows if not isinstance(row, str)], [row for row in rows if isinstance(row, str)]

    def _write(self) -> sqlite3.Connection:
        database = self._connect(f"file:{quote(str(self.path))}?mode=rw")
        try:
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
            database.execute("BEGIN IMMEDIATE")
            database.execute("COMMIT")
            self._same_layout(database)
        except BaseException:
            database.close()
            raise
        return database

    def _name(self) -> str:
        return ""

    def _remedy(self) -> str:
        return "it cannot be repaired: move it away, or name another with --cassette"


_BATCH = 1_000
_NOTHING = msgspec.Raw()


class _Brief(msgspec.Struct):
    prompt: str = ""


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    key: str
    kind: Literal["chat", "choice", "embedding"]
    model: str
    digest: str = ""
    """Empty in files that come with ctxbench and are compressed, as those have a checksum of their own."""
    request: msgspec.Raw = _NOTHING
    reply: msgspec.Raw = _NOTHING
    """Of a chat or a choice, as the cassette has it."""
    vector: str = ""
    """Of an embedding: its float32 bytes in base64."""


def write_lines(cassette: Cassette, keys: Container[str] | None = None, *, brief: bool = False) -> Iterator[bytes]:
    """Yield every reply, or those under some keys, as a line, in the order of the keys: equal cassettes, equal lines.

    `brief` leaves no more of a request than the name of its prompt, where whoever replays it makes the request anew.
    """
    for entry in cassette.entries():
        if keys is None or entry.key in keys:
            yield msgspec.json.encode(_line(_briefly(entry) if brief else entry)) + b"\n"


def prompt_of(entry: CassetteEntry) -> str:
    """Return the prompt that a recorded request names, NAME@DIGEST; empty if it names none."""
    return msgspec.json.decode(entry.request, type=_Brief).prompt if entry.request else ""


def _line(entry: CassetteEntry) -> _Line:
    line = _Line(entry.key, entry.kind, entry.model, entry.digest())
    if entry.kind == "embedding":
        line.vector = base64.b64encode(entry.reply).decode()
    else:
        line.request, line.reply = msgspec.Raw(entry.request.encode()), msgspec.Raw(entry.reply)
    return line


def _briefly(entry: CassetteEntry) -> CassetteEntry:
    return entry._replace(request=canonical({"prompt": prompt_of(entry)}))


def read_lines(cassette: Cassette, lines: Iterable[bytes], name: str) -> int:
    """Put lines into a cassette, where existing replies stay. Returns how many replies were new.

    Raises SetupError with the number of a line that is none, or whose key is not that of its request.
    """
    new, batch = 0, list[CassetteEntry]()
    for entry in entries(lines, name):
        batch.append(entry)
        if len(batch) == _BATCH:
            new += cassette.put_many(batch)
            batch = []
    return new + cassette.put_many(batch)


def entries(lines: Iterable[bytes], name: str) -> Iterator[CassetteEntry]:
    """Yield the replies of lines. Raises SetupError as `read_lines` does."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _entry(line, f"{name}:{number}")


def _entry(text: bytes, place: str) -> CassetteEntry:
    try:
        line = msgspec.json.decode(text, type=_Line)
        reply, request = _reply_and_request(line)
        entry = CassetteEntry(line.key, line.kind, line.model, reply, request)
        if line.digest and entry.digest() != line.digest:
            raise ValueError("it is not as it was written: its digest is another")
        return entry
    except ValueError as error:  # msgspec's and base64's own are of this kind
        raise SetupError(f"{place}: is no line of a cassette: {error}") from None


def _reply_and_request(line: _Line) -> tuple[bytes, str]:
    if line.kind == "embedding":
        return base64.b64decode(line.vector, validate=True), ""
    request = canonical(msgspec.json.decode(line.request or b"{}"))
    if not line.reply or (key_of(request) != line.key and not _is_brief(request)):
        raise ValueError("the key is not that of the request, or there is no reply")
    return bytes(line.reply), request


def _is_brief(request: str) -> bool:
    """Return whether a request is only the name of its prompt: then its key can be any."""
    return request == canonical({"prompt": msgspec.json.decode(request, type=_Brief).prompt})


FOLDER = Path(__file__).parent / "shipped"


class Shipped:
    """The replies of some files, read when the first of them is needed."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)

    def get_many(self, keys: Iterable[str]) -> dict[str, CassetteEntry]:
        """Return the replies under those of the keys that have one."""
        return {key: self._replies[key] for key in keys if key in self._replies}

    def entries(self) -> Iterator[CassetteEntry]:
        """Yield all replies, in the order of the files."""
        yield from self._replies.values()

    def older(self, prompt: str) -> str:
        """Return another version of a prompt to which there are replies here; empty if there is none."""
        name = prompt.partition("@")[0]
        versions = (version for version in self._prompts if version.partition("@")[0] == name and version != prompt)
        return next(versions, "") if name and prompt not in self._prompts else ""

    @cached_property
    def _replies(self) -> dict[str, CassetteEntry]:
        replies: dict[str, CassetteEntry] = {}
        for file in self.files:
            lines = file.read_bytes() if file.suffix == ".jsonl" else zstandard.decompress(file.read_bytes())
            replies.update((entry.key, entry) for entry in entries(lines.splitlines(), file.name))
        return replies

    @cached_property
    def _prompts(self) -> dict[str, int]:
        return dict(Counter(map(prompt_of, self._replies.values())))


@cache
def shipped() -> Shipped:
    """Return the replies that come with this ctxbench."""
    return Shipped(sorted((*FOLDER.glob("*.jsonl"), *FOLDER.glob("*.jsonl.zst"))))


def come_along(file: str) -> list[CassetteEntry]:
    """Return the replies in one of the files that come with ctxbench; none if there is no such file."""
    return list(Shipped([path for path in shipped().files if path.name == file]).entries())


def stale(replies: Iterable[CassetteEntry], current: Mapping[str, str]) -> dict[str, int]:
    """Return the prompts of replies that no longer exist so, each with its number of replies.

    `current` maps the name of each prompt to its digest. A reply that names no prompt is passed over.
    """
    counts = Counter(map(prompt_of, replies))
    return {
        prompt: times
        for prompt, times in sorted(counts.items())
        if prompt and current.get(prompt.partition("@")[0]) != prompt.partition("@")[2]
    }
