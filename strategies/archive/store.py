"""The table of archived tool results (design document 001 §3.3), in any database that SQLAlchemy reaches.

Imported when the first result is archived and no sooner: SQLAlchemy takes 0.3 s. Every statement is bound. A
connection to a file or a server is held only while it is used, so that nothing is left open or locked, and processes
may share the store. A store in memory belongs to its conversation, and ends with it.

**Digests.** Each row has the BLAKE2b of its content, and one of all its other columns and that, keyed with the
archive's random name: what was changed, swapped or brought from another archive is noticed when it is read. A second
table, with one row, has that name, the number of results and the sum of their digests: what is lost or there twice is
noticed when all cards are read, and before a result is said not to be there. Both change in one transaction.

**Exact.** No database takes every text (PostgreSQL has no NUL, none has lone surrogates), so those characters, and the
one that marks them, are written as SUBSTITUTE (U+001A) and four hexadecimal digits. All other text is stored as it is.
"""

from __future__ import annotations

import json
import re
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    JSON,
    BigInteger,
    Connection,
    DateTime,
    Dialect,
    Integer,
    Row,
    Select,
    String,
    Text,
    TypeDecorator,
    bindparam,
    create_engine,
    delete,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.dialects.mysql import DATETIME, LONGTEXT
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import NullPool, StaticPool

from .record import Card, StoreError, Visibility, fit_column, source_texts

TABLE = "tool_result_archive"
# A column that no other table of that name is likely to have, and one that those of earlier versions lack.
_COLUMN, _NEW_COLUMN = "result_full", "result_digest"


def in_memory(url: str) -> bool:
    """Return whether the address is a database in memory, which no two conversations share."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return False
    name = parsed.database or ""
    if name.startswith("file:"):  # an address of SQLite's own
        return ":memory:" in name or parsed.query.get("mode") == "memory"
    return name in ("", ":memory:")


def address_problem(url: str) -> str | None:
    """Return why a store's address cannot be used, or None. Nothing is written, and no server is called."""
    try:
        parsed = make_url(url)
        dialect = parsed.get_dialect()
        if parsed.password is not None:
            return "it holds a password, which would stand in every report: use the driver's own way (~/.pgpass, …)"
        dialect.import_dbapi()
    except ImportError as error:
        return f"its driver is not installed: {one_line(error)}"
    except (SQLAlchemyError, ValueError) as error:
        return one_line(error)
    if dialect.is_async:
        return "its driver is an asynchronous one: name another"
    return _file_problem(parsed) if parsed.drivername in ("sqlite", "sqlite+pysqlite") and not in_memory(url) else None


def _file_problem(url: URL) -> str | None:
    """Return why the file of an SQLite database cannot be used, or None. A locked one may be free when needed."""
    name = url.database or ""
    if name.startswith("file:"):  # an address of SQLite's own
        return None
    file = Path(name)
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}: make it first"
    if file.is_dir():
        return f"{file} is a folder"
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=0)) as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({TABLE})")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return None if "locked" in str(error) else f"{file}: {error}"
    if columns and _COLUMN not in columns:
        return f"{file} has another table of the name {TABLE}: name another file"
    if columns and _NEW_COLUMN not in columns:
        return f"{file} is an archive of an earlier ctxbench, without digests: name another file"
    return None


def one_line(error: Exception) -> str:
    """Return the first line of an error's text, without its statement."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


_LONG = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_MOMENT = DateTime().with_variant(DATETIME(fsp=6), "mysql", "mariadb")
# Errors of databases that may not be written; the second is SQLite's where the folder is read-only.
_READ_ONLY = re.compile("read-?only|unable to open")
_REMEDIES = {
    "locked": "end the program that holds it",
    "is full": "free some space",
    "readonly": "make it writable",
    "malformed": "move it away: the next run archives its results anew",
}
_UNSAFE = re.compile("[\x00\x1a\ud800-\udfff]")
_MARKED = re.compile("\x1a([0-9a-f]{4})")
_DIGEST = 16
_ANOTHER = "is another archive than before"
# sqlite3 raises UnicodeDecodeError where its own message quotes a damaged schema.
_FAULTS = (SQLAlchemyError, ImportError, OSError, UnicodeDecodeError)
# Errors of values that no row of ours has: text that is no JSON or no time, numbers and bytes in place of text.
_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError)


class _JsonText(TypeDecorator[Any]):
    """JSON as text, where the database's own type changes numbers: SQLite has 1 for 1.0, MySQL 1e22 for a large one."""

    impl = _LONG
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        return json.dumps(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


_JSON = JSON().with_variant(_JsonText(), "sqlite", "mysql", "mariadb")


class _Base(DeclarativeBase):
    """Declarative base of the two tables."""


class ToolResultArchive(_Base):
    """The table of 001 §3.3, with its widths. Ids and names longer than their column are stored as their uuid."""

    __tablename__ = TABLE

    uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    conversation_id: Mapped[str] = mapped_column(String(36), index=True)
    thread_id: Mapped[str | None] = mapped_column(String(36), index=True)
    tool_name: Mapped[str] = mapped_column(String(100))
    tool_input: Mapped[Any] = mapped_column(_JSON)
    query_summary: Mapped[str] = mapped_column(String(500))
    result_summary: Mapped[str] = mapped_column(Text)
    result_length: Mapped[int] = mapped_column(Integer)
    sources: Mapped[Any] = mapped_column(_JSON)
    created_at: Mapped[datetime | None] = mapped_column(_MOMENT)
    """Recorded time in UTC. The design's default, the time of writing, would not be the same twice."""
    result_digest: Mapped[str] = mapped_column(String(2 * _DIGEST))
    """BLAKE2b of the content."""
    digest: Mapped[str] = mapped_column(String(2 * _DIGEST))
    """BLAKE2b of all columns above, keyed with the archive's name."""
    result_full: Mapped[str] = mapped_column(_LONG)
    """The last column: SQLite reads all of a long value to get to the one behind it."""


class ArchiveTotal(_Base):
    """One row: the archive's name, and the number and the sum of what is in it."""

    __tablename__ = f"{TABLE}_total"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    archive: Mapped[str] = mapped_column(String(2 * _DIGEST))
    results: Mapped[int] = mapped_column(BigInteger)
    digests: Mapped[int] = mapped_column(BigInteger)
    """Sum of the first four bytes of each row's digest: added by the database itself, which holds 2³¹ of them."""


_CARD = [column for column in ToolResultArchive.__table__.columns if column.name != "result_full"]
_NAMES = [column.name for column in _CARD]
_SIGNED = _NAMES[: _NAMES.index("digest")]
_NAME = select(ArchiveTotal.archive)
_TOTAL: list[Any] = [ArchiveTotal.archive, ArchiveTotal.results, ArchiveTotal.digests]
# One statement each, so that total and rows are of one moment. Without a row there is the total alone.
_ONE = (
    select(ArchiveTotal.archive, *_CARD, ToolResultArchive.result_full)
    .select_from(ArchiveTotal)
    .outerjoin(ToolResultArchive, ToolResultArchive.uuid == bindparam("uuid"))
)
_ADD = (
    update(ArchiveTotal)
    .where(ArchiveTotal.archive == bindparam("name"))
    .values(results=ArchiveTotal.results + bindparam("more"), digests=ArchiveTotal.digests + bindparam("sum"))
)
_DELETE = delete(ToolResultArchive).where(ToolResultArchive.uuid == bindparam("old"))
_ALL = select(*_TOTAL, *_CARD).select_from(ArchiveTotal).outerjoin(ToolResultArchive, true())


class ResultStore:
    """The archive at one address. Every method raises StoreError when it cannot be reached, or is damaged."""

    def __init__(self, url: str, wait: float) -> None:
        self._url, self._wait = url, wait
        self._patient = True
        with self._store_errors():
            self._engine = _engine(url, wait)
        # Name of the archive, once the tables are there.
        self._archive = ""
        weakref.finalize(self, self._engine.dispose)

    def __deepcopy__(self, memo: object) -> ResultStore:
        """Return the store itself: a copy of a conversation writes the same rows under the same uuids."""
        return self

    def save(self, card: Card, text: str) -> tuple[Card, str] | None:
        """Write a result once. If its uuid exists, nothing is written, and the existing row is returned.

        A read-only store will do, as long as it has every result.
        """
        content = encode_text(text)
        row: dict[str, Any] = {
            "uuid": card.uuid,
            "conversation_id": fit_column(card.conversation),
            "thread_id": fit_column(card.thread) if card.thread else None,
            "tool_name": card.tool,
            "tool_input": card.arguments,
            "query_summary": card.query,
            "result_summary": card.summary,
            "result_length": card.length,
            "sources": list(card.sources),
            "created_at": None if card.created is None else _moment(card.created),
            "result_digest": _content_digest(content),
            "result_full": content,
        }
        try:
            with self._connected() as connection:
                row["digest"] = _digest(self._archive, [row[name] for name in _SIGNED])
                connection.execute(insert(ToolResultArchive), row)
                self._count(connection, 1, _share(row["digest"]))
        except _FAULTS as error:
            may_exist = isinstance(error, IntegrityError) or _READ_ONLY.search(one_line(error))
            existing = self.load(card.uuid) if may_exist else None
            if existing is None:
                raise self._store_error(error) from None
            return existing
        return None

    def load(self, uuid: str, visibility: Visibility | None = None) -> tuple[Card, str] | None:
        """Return a card and its result, or None if it does not exist or is not visible."""
        with self._store_errors(), self._connected() as connection:
            rows = self._rows(connection, _ONE, uuid)
            if len(rows) != 1 or rows[0].archive != self._archive:
                raise self._damaged(_ANOTHER)
            [row] = rows
            if row.digest is None:  # an index may be damaged
                if any(other.uuid == uuid for other in self._all(connection)):
                    raise self._damaged(f"its index lacks {uuid}")
                return None
            self._check(row, row[1:-1])
            if row.uuid != uuid:
                raise self._damaged(f"its index has {uuid} elsewhere")
        if not isinstance(row.result_full, str) or _content_digest(row.result_full) != row.result_digest:
            raise self._damaged(f"the content of {uuid} is not as it was written")
        if visibility is not None and not _visible([row], visibility):
            return None
        return _card(row), decode_text(row.result_full)

    def cards(self, visibility: Visibility, most: int) -> list[Card]:
        """Return the newest visible cards of other conversations, newest first."""
        with self._store_errors(), self._connected() as connection:
            visible = _visible(self._all(connection), visibility)
        visible.sort(key=lambda row: row.uuid)
        visible.sort(key=lambda row: row.created_at, reverse=True)
        return [_card(row) for row in visible[:most]]

    def delete(self, before: float, conversation: str | None = None, thread: str | None = None) -> tuple[str, ...]:
        """Delete results created before a moment, of a conversation, a thread or all. Returns their uuids, sorted."""
        moment = _moment(before)
        own = None if conversation is None else fit_column(conversation)
        its = None if thread is None else fit_column(thread)
        with self._store_errors(), self._connected() as connection:
            self._count(connection, 0, 0)  # takes the lock: nobody writes between reading and deleting
            old = [
                row
                for row in self._all(connection)
                if row.created_at is not None
                and row.created_at < moment
                and own in (None, row.conversation_id)
                and its in (None, row.thread_id)
            ]
            if old:
                connection.execute(_DELETE, [{"old": row.uuid} for row in old])
                self._count(connection, -len(old), -sum(_share(row.digest) for row in old))
                self._all(connection)  # a damaged index may have named other rows
        return tuple(sorted(row.uuid for row in old))

    def _all(self, connection: Connection) -> list[Row[Any]]:
        """Return all rows without their contents, compared with their digests and the total."""
        rows = self._rows(connection, _ALL)
        if not rows or rows[0].archive != self._archive:
            raise self._damaged(_ANOTHER)
        results, digests = rows[0].results, rows[0].digests
        if rows[0].digest is None:
            rows = []
        for row in rows:
            self._check(row, row[3:])
        if len({row.uuid for row in rows}) != results or sum(_share(row.digest) for row in rows) != digests:
            raise self._damaged(f"has {len(rows)} results, and its total says {results!r}")
        return rows

    def _rows(self, connection: Connection, statement: Select[Any], uuid: str | None = None) -> list[Row[Any]]:
        try:
            return list(connection.execute(statement, None if uuid is None else {"uuid": uuid}).all())
        except _UNREADABLE:
            raise self._damaged("a row cannot be read") from None

    def _check(self, row: Row[Any], columns: Sequence[Any]) -> None:
        """Raise StoreError if a row is not as it was written. `columns` are those of its card."""
        try:
            same = _digest(self._archive, columns[: len(_SIGNED)]) == row.digest
        except _UNREADABLE:
            same = False
        if not same:
            raise self._damaged(f"the row of {str(row.uuid)[:36]!r} is not as it was written")

    def _count(self, connection: Connection, results: int, digests: int) -> None:
        """Add to the total."""
        changed = connection.execute(_ADD, {"name": self._archive, "more": results, "sum": digests})
        if changed.rowcount != 1:
            raise self._damaged(_ANOTHER)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except _FAULTS as error:
            raise self._store_error(error) from None

    def _store_error(self, error: Exception) -> StoreError:
        what = one_line(error)
        if isinstance(error, UnicodeDecodeError):
            return self._damaged("its schema cannot be read")
        known = (remedy for word, remedy in _REMEDIES.items() if word in what)
        # With the address: several archives may be in one run.
        return StoreError(self._url, what, next(known, "name another store"))

    def _damaged(self, what: str) -> StoreError:
        return StoreError(self._url, what, _REMEDIES["malformed"])

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Open a transaction; the first creates the tables. After a lock the next transaction hardly waits."""
        try:
            if not self._archive:
                self._archive = self._create_tables()
            with self._engine.begin() as connection:
                yield connection
        except OperationalError as error:
            if self._patient and "locked" in str(error.orig):
                self._be_patient(False)
            raise
        if not self._patient:
            self._be_patient(True)

    def _create_tables(self) -> str:
        """Create what is not there, and return the name of the archive."""
        for _ in range(1 + len(_Base.metadata.tables)):
            try:
                _Base.metadata.create_all(self._engine)
                break
            except DBAPIError as error:
                # Another process may create each of them between the look and the statement.
                if "already exists" not in str(error.orig):
                    raise
        with self._engine.begin() as connection:
            # In this order: the total is there before the first result.
            has_results = bool(self._rows(connection, select(ToolResultArchive.uuid).limit(1)))
            names = self._rows(connection, _NAME)
        if has_results and not names:
            raise self._damaged("has results, and lost their total")
        if not names:
            try:
                with self._engine.begin() as connection:
                    total = {"id": 1, "archive": token_hex(_DIGEST), "results": 0, "digests": 0}
                    connection.execute(insert(ArchiveTotal), total)
            except IntegrityError:  # another process was first
                pass
            with self._engine.begin() as connection:
                names = self._rows(connection, _NAME)
        name = names[0].archive if len(names) == 1 else None
        if not isinstance(name, str) or len(name) != 2 * _DIGEST:
            raise self._damaged("has lost its name")
        return name

    def _be_patient(self, patient: bool) -> None:
        """Set whether to wait for locks. Engines of files and servers hold no connection, so a new one costs little."""
        self._patient = patient
        self._engine = _engine(self._url, self._wait if patient else self._wait / 100)


def encode_text(text: str) -> str:
    """Return a form of any text that every database takes."""
    return _UNSAFE.sub(lambda match: f"\x1a{ord(match[0]):04x}", text)


def decode_text(text: str) -> str:
    """Return the text of a form of `encode_text`."""
    return _MARKED.sub(lambda match: chr(int(match[1], 16)), text)


def _engine(url: str, wait: float) -> Engine:
    parsed = make_url(url)
    sqlite = parsed.get_backend_name() == "sqlite"
    if in_memory(url):
        return create_engine(
            parsed, poolclass=StaticPool, connect_args={"check_same_thread": False}, hide_parameters=True
        )
    arguments = {"timeout": wait} if sqlite else {}
    return create_engine(parsed, poolclass=NullPool, connect_args=arguments, hide_parameters=True)


def _content_digest(content: str) -> str:
    return blake2b(content.encode(), digest_size=_DIGEST).hexdigest()


_encode = json.JSONEncoder(sort_keys=True, default=datetime.isoformat).encode


def _digest(archive: str, columns: Sequence[Any]) -> str:
    """Return the digest of a row: of the values themselves, because not every database keeps JSON letter by letter."""
    return blake2b(_encode(list(columns)).encode(), digest_size=_DIGEST, key=archive.encode()).hexdigest()


def _share(digest: str) -> int:
    """Return what a row adds to the sum of digests."""
    return int(digest[:8], 16)


def _visible(rows: Sequence[Row[Any]], visibility: Visibility) -> list[Row[Any]]:
    besides, before = fit_column(visibility.besides), _moment(visibility.before)
    thread = None if visibility.thread is None else fit_column(visibility.thread)
    return [
        row
        for row in rows
        if row.conversation_id != besides
        and row.created_at is not None
        and row.created_at < before
        and thread in (None, row.thread_id)
    ]


def _card(row: Row[Any]) -> Card:
    created: datetime | None = row.created_at
    return Card(
        uuid=row.uuid,
        conversation=row.conversation_id,
        message="",
        thread=row.thread_id or "",
        tool=row.tool_name,
        arguments=row.tool_input,
        query=row.query_summary,
        summary=row.result_summary,
        length=row.result_length,
        sources=source_texts(row.sources),
        created=None if created is None else created.replace(tzinfo=UTC).timestamp(),
    )


def _moment(seconds: float) -> datetime:
    """Return a moment in UTC without a zone, as the column has it; the calendar's end for times beyond it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return datetime.min if seconds < 0 else datetime.max
