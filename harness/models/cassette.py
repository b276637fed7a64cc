"""The cassette: replies of models in one SQLite file, each under a key made of its request.

A key is the SHA-256 of the request in canonical JSON: model, messages, parameters. No key, header or address of a
provider is ever part of it, and none is written. Beside chat replies it holds vectors (float32 bytes), and what each
command has spent on which run folder. Several processes may use one cassette at once: a reply is written
in a transaction of its own, and the first one written stays. A damaged file is an error that says so.

Money of live calls (`Purse`) is set aside before a call and settled after it, for all processes, on the account of the
run folder that a command works on, or on its own. The spend limit holds for the account: a command that is given again
goes on with what is left. What a killed process had set aside stays charged, as its calls may have been answered.

While it is open SQLite keeps `-wal` and `-shm` files beside it; the last one to close it folds them in. (Write-ahead
logging takes 7 000 writes a second from four processes, a rollback journal 60.)
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace

from ctxbench.metrics.prices import BUNDLED, TokenUsage
from ctxbench.scenarios.errors import SetupError, UserError
from ctxbench.strategies.base import ModelError

from ..folder.schema import Spending
from ..folder.store import ACCOUNT, account, read_manifest, write_manifest

SCHEMA = 3
"""Version of the tables. Another number is another layout, which this version does not read."""
APPLICATION = int.from_bytes(b"ctxb", "big")  # SQLite's application id of a cassette

_SUMS = Spending.__struct_fields__
_TABLES = (
    "CREATE TABLE replies (key TEXT PRIMARY KEY, kind TEXT, model TEXT, request TEXT, reply BLOB)",
    f"CREATE TABLE spending (account TEXT, command TEXT, {', '.join(_SUMS)}, PRIMARY KEY (account, command))",
    f"PRAGMA user_version={SCHEMA}",
    f"PRAGMA application_id={APPLICATION}",
)
_SHUT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


class CassetteEntry(NamedTuple):
    """One recorded reply."""

    key: str
    kind: Literal["chat", "choice", "embedding"]
    model: str
    reply: bytes  # the answer of a chat or a choice as JSON, or the float32 bytes of a vector
    request: str = ""  # the canonical request; empty for an embedding


def canonical(request: Mapping[str, Any]) -> str:
    """Return a request as canonical JSON: the same text whatever the order of its fields."""
    return msgspec.json.encode(request, order="sorted").decode()


def key_of(canonical: str) -> str:
    """Return the key of a request: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(canonical.encode()).hexdigest()


class Cassette:
    """An open cassette. A missing file is created, unless it is opened `read_only`, as it is to replay alone.

    One per process: it does not survive a fork; threads may share it. Every method raises SetupError where the file is
    damaged, locked for a minute, of another version, no cassette, or cannot be written.
    """

    def __init__(self, path: Path, *, read_only: bool = False, optional: bool = False, busy: float = 60.0) -> None:
        """Open a file; an `optional` one may be missing. Another process is waited for `busy` seconds."""
        self.path, self._lock, self._busy = path, RLock(), busy
        uri = f"file:{quote(str(path))}"
        with self._explained():
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._open = self._connect(uri, self._prepare)
            elif path.is_file():
                # Not "mode=ro": a write-ahead log cannot be read without its `-shm` file, which somebody has to write.
                try:
                    self._open = self._connect(f"{uri}?mode=rw", self._same_layout)
                except sqlite3.OperationalError:  # a folder in which nobody may
                    self._open = self._connect(f"{uri}?immutable=1", self._same_layout)
            elif optional:
                self._open = self._connect("file::memory:", _make_tables)
            else:
                raise SetupError(f"{path}: there is no such cassette: record one without --replay")
            if read_only:
                self._open.execute("PRAGMA query_only=1")
        self._end = weakref.finalize(self, self._open.close)  # at the end of the process too, if nobody else does

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. It cannot be used afterwards."""
        with self._lock:
            self._end()

    def check(self) -> None:
        """Raise SetupError if the file is not a database any more."""
        with self._lock, self._explained():
            if (verdict := self._open.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(verdict)

    def get(self, key: str) -> bytes | None:
        """Return the reply under a key, or None."""
        return self.get_many((key,)).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the stored replies by key; keys without one are left out."""
        statement = "SELECT key, reply FROM replies WHERE key IN (SELECT value FROM json_each(?))"
        with self._lock, self._explained():
            return dict(self._open.execute(statement, (msgspec.json.encode(keys).decode(),)))

    def put(self, entry: CassetteEntry) -> bytes:
        """Write a reply, and return the stored one: another process may have been first."""
        self.put_many((entry,))
        # Read back, so that all processes go on with the same reply.
        return self.get(entry.key) or entry.reply

    def put_many(self, entries: Iterable[CassetteEntry]) -> int:
        """Write replies, all or none. Existing ones stay. Returns how many were written."""
        statement = "INSERT OR IGNORE INTO replies (key, kind, model, reply, request) VALUES (?,?,?,?,?)"
        with self.transaction() as database:
            return database.executemany(statement, entries).rowcount

    def spent(self, account: str, command: str | None = None) -> Spending:
        """Return the money that one command has spent on an account, or all commands."""
        sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in _SUMS)
        statement = f"SELECT {sums} FROM spending WHERE account = ?1 AND (?2 IS NULL OR command = ?2)"
        with self._lock, self._explained():
            return Spending(*self._open.execute(statement, (account, command)).fetchone())

    def book(self, account: str, command: str, change: Spending) -> None:
        """Add to what a command has spent on an account, within a transaction."""
        added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)
        statement = f"INSERT INTO spending VALUES (?,?{',?' * len(_SUMS)}) ON CONFLICT DO UPDATE SET {added}"
        self._open.execute(statement, (account, command, *astuple(change)))

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

    def _connect(self, uri: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        with ExitStack() as failed:
            database = sqlite3.connect(uri, uri=True, timeout=self._busy, isolation_level=None, check_same_thread=False)
            failed.callback(database.close)
            prepare(database)
            failed.pop_all()
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make the tables if the file is new, and have it written ahead of."""
        is_new = not database.execute("PRAGMA page_count").fetchone()[0]
        database.execute("BEGIN IMMEDIATE")  # one process makes the tables, the others wait
        if is_new and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            _make_tables(database)
        database.execute("COMMIT")
        self._same_layout(database)
        # SQLite itself does not wait where two processes switch to a write-ahead log at once.
        end = time.monotonic() + self._busy
        while True:
            try:
                database.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)
        # With a write-ahead log this may lose the last replies with the machine's power, but never leaves the file
        # inconsistent.
        database.execute("PRAGMA synchronous=NORMAL")

    def _same_layout(self, database: sqlite3.Connection) -> None:
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise SetupError(f"{self.path}: is a database, but no cassette: name another with --cassette")
        if (version := database.execute("PRAGMA user_version").fetchone()[0]) != SCHEMA:
            what = f"is a cassette of version {version}, this ctxbench reads {SCHEMA}"
            raise SetupError(f"{self.path}: {what}: move it away and record anew, or name another with --cassette")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last where a damaged schema is quoted
            what = getattr(error, "strerror", None) or " ".join(str(error).split())
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            held = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            remedy = "end the program that holds the cassette" if held else "move it away"
            if isinstance(error, PermissionError) or (code in _SHUT and self.path.is_file()):
                remedy = "make it writable, add --replay if it has all replies"
            raise SetupError(f"{self.path}: {what}: {remedy}, or name another with --cassette") from None


def _make_tables(database: sqlite3.Connection) -> None:
    for statement in _TABLES:  # not `executescript`, which commits
        database.execute(statement)


_ROUNDING = 1e-12  # sums of prices are floats: the last call that the limit allows must not fail by a rounding


class Purse:
    """The money of one command, shared by its processes."""

    def __init__(self, cassette: Cassette, command: str, limit: float | None = None, run: Path | None = None) -> None:
        """`run` is the folder of a run, or that of a search, which has no manifest."""
        self._cassette, self._limit, self._command = cassette, limit, command
        self._account = command if run is None else account(run)
        known = read_manifest(run).spent if run is not None and (run / "manifest.json").exists() else UNSET
        if known is not UNSET:
            with cassette.transaction():  # what was spent on the run with another cassette counts here too
                here = cassette.spent(self._account)
                if known.dollars > here.dollars + _ROUNDING:
                    lacking = (max(0, a - b) for a, b in zip(astuple(known), astuple(here), strict=True))
                    cassette.book(self._account, "", Spending(*lacking))

    def reserve(self, model: str, most: float | None) -> None:
        """Set aside the most that a call can cost, None = not known. Raises ModelError if a limit forbids it."""
        if most is None and self._limit is not None:
            raise ModelError(f"{model}: its price is not known, so the spend limit cannot be kept: run without one")
        with self._cassette.transaction():
            # Read and set aside in one transaction: otherwise two workers could both see room for the last call.
            spent, limit = self._cassette.spent(self._account).dollars, self._limit
            over = limit is not None and spent + (most or 0.0) > limit + _ROUNDING
            # Set aside without a limit, too: a killed process leaves what its calls may have cost.
            change = Spending(refused=1) if over else Spending(dollars=most or 0.0)
            self._cassette.book(self._account, self._command, change)
        if over:
            raise ModelError(f"{model}: the spend limit of {in_dollars(limit or 0.0)} is reached")

    def book(self, change: Spending) -> None:
        """Add to what the command has spent."""
        with self._cassette.transaction():
            self._cassette.book(self._account, self._command, change)


class Charge:
    """The charge for one call, a block: what was set aside for it is settled at its end, however it ends.

    An answer costs what it costs. A failure that the model, or a mistake of the user, explains is free, but for tries
    that were lost. Anything else that ends the block, such as Ctrl-C, is charged as the most that the call can cost.
    """

    def __init__(self, purse: Purse, model: str, most: TokenUsage) -> None:
        """`most` are the most tokens of the call."""
        self._purse, self._model, self._most = purse, model, BUNDLED.cost(model, most)
        self._open = False

    def __enter__(self) -> Self:
        self.renew()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: object) -> None:
        if self._open and isinstance(error, ModelError | UserError):
            self._settle(Spending())
        elif self._open:
            self.lose()

    def renew(self) -> None:
        """Set aside the most that a try can cost. Raises ModelError where the limit does not allow it."""
        self._purse.reserve(self._model, self._most)
        self._open = True

    def pay(self, usage: TokenUsage) -> None:
        """Book an answer."""
        cost = BUNDLED.cost(self._model, usage)
        self._settle(Spending(1, cost or 0.0, int(cost is None)))

    def lose(self, usage: TokenUsage | None = None) -> None:
        """Book a try whose answer was lost, at its most where the provider reported no usage."""
        cost = BUNDLED.cost(self._model, usage) if usage else self._most
        self._settle(Spending(dollars=cost or 0.0, unpriced=int(cost is None), unanswered=1))

    def _settle(self, spent: Spending) -> None:
        self._open = False
        # $0.05 was set aside and the call cost $0.01: - 0.04 is booked.
        self._purse.book(replace(spent, dollars=spent.dollars - (self._most or 0.0)))


def spending(cassette: Path, command: str, run: Path | None = None) -> tuple[Spending, Spending] | None:
    """Return what a command has spent, and all commands on its account, the run folder; None if it needed no model."""
    try:
        # Opened in any case: whoever closes it last folds in what workers have left beside it.
        with Cassette(cassette, read_only=True) as sums:
            if run is not None and not (run / ACCOUNT).exists():
                return None
            name = command if run is None else account(run)
            return sums.spent(name, command), sums.spent(name)
    except SetupError:  # there is no cassette
        return None


def spent_on_run(cassette: Path, command: str, run: Path) -> Spending | UnsetType:
    """Return what all commands have spent on a run folder, as its manifest has it."""
    known = spending(cassette, command, run)
    if known is not None and (known[1].dollars or known[1].unpriced or known[1].unanswered):
        return known[1]
    return read_manifest(run).spent


def note_spending(cassette: Path, command: str, run: Path) -> None:
    """Write what was spent on a run folder into its manifest."""
    manifest, sums = read_manifest(run), spent_on_run(cassette, command, run)
    if sums != manifest.spent:
        write_manifest(run, replace(manifest, spent=sums))


def in_dollars(amount: float) -> str:
    """Return a small amount as it is written, not in powers of ten: $0.00005."""
    return "$" + f"{amount:.12f}".rstrip("0").rstrip(".")
