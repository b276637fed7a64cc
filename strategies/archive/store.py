"""The table of archived tool results (design document 001 §3.3), in any database that SQLAlchemy reaches.

Imported when the first result is archived and no sooner: SQLAlchemy takes 0.3 s. Every statement is bound. A
connection to a file or a server is held only while it is used, so that nothing is left open or locked, and processes
may share the store. A store in memory belongs to its conversation, and ends with it.

**Exact.** No database takes every text (PostgreSQL has no NUL, none has lone surrogates), so those characters, and the
one that marks them, are written as SUBSTITUTE (U+001A) and four hexadecimal digits. All other text is stored as it is.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import JSON, ColumnElement, Connection, DateTime, Integer, String, Text, create_engine, delete, select
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import NullPool, StaticPool
from sqlalchemy.sql.expression import insert

from .record import Card, StoreError, Visibility, fit_column, source_texts

TABLE = "tool_result_archive"
# A column that no other table of that name is likely to have.
_COLUMN = "result_full"


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
    except sqlite3.Error as error:
        return None if "locked" in str(error) else f"{file}: {error}"
    if columns and _COLUMN not in columns:
        return f"{file} has another table of the name {TABLE}: name another file"
    return None


def one_line(error: Exception) -> str:
    """Return the first line of an error's text, without its statement."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


_LONG = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
# Errors of databases that may not be written; the second is SQLite's where the folder is read-only.
_READ_ONLY = re.compile("read-?only|unable to open")
_UNSAFE = re.compile("[\x00\x1a\ud800-\udfff]")
_MARKED = re.compile("\x1a([0-9a-f]{4})")


class _Base(DeclarativeBase):
    """Declarative base of the one table."""


class ToolResultArchive(_Base):
    """The table of 001 §3.3, with its widths. Ids and names longer than their column are stored as their uuid."""

    __tablename__ = TABLE

    uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    conversation_id: Mapped[str] = mapped_column(String(36), index=True)
    thread_id: Mapped[str | None] = mapped_column(String(36), index=True)
    tool_name: Mapped[str] = mapped_column(String(100))
    tool_input: Mapped[Any] = mapped_column(JSON)
    query_summary: Mapped[str] = mapped_column(String(500))
    result_summary: Mapped[str] = mapped_column(Text)
    result_full: Mapped[str] = mapped_column(_LONG)
    result_length: Mapped[int] = mapped_column(Integer)
    sources: Mapped[Any] = mapped_column(JSON)
    created_at: Mapped[datetime | None] = mapped_column(DateTime)
    """Recorded time in UTC. The design's default, the time of writing, would not be the same twice."""


_CARD = [column for column in ToolResultArchive.__table__.columns if column.name != "result_full"]


class ResultStore:
    """The archive at one address. Every method raises StoreError when it cannot be reached."""

    def __init__(self, url: str, wait: float) -> None:
        self._url, self._wait = url, wait
        self._patient = True
        with self._store_errors():
            self._engine = _engine(url, wait)
        self._ready = False
        weakref.finalize(self, self._engine.dispose)

    def __deepcopy__(self, memo: object) -> ResultStore:
        """Return the store itself: a copy of a conversation writes the same rows under the same uuids."""
        return self

    def save(self, card: Card, text: str) -> tuple[Card, str] | None:
        """Write a result once. If its uuid exists, nothing is written, and the existing row is returned.

        A read-only store will do, as long as it has every result.
        """
        row = {
            "uuid": card.uuid,
            "conversation_id": fit_column(card.conversation),
            "thread_id": fit_column(card.thread) if card.thread else None,
            "tool_name": card.tool,
            "tool_input": card.arguments,
            "query_summary": card.query,
            "result_summary": card.summary,
            "result_full": encode_text(text),
            "result_length": card.length,
            "sources": list(card.sources),
            "created_at": None if card.created is None else _moment(card.created),
        }
        try:
            with self._connected() as connection:
                connection.execute(insert(ToolResultArchive).values(row))
        except (SQLAlchemyError, OSError) as error:
            may_exist = isinstance(error, IntegrityError) or _READ_ONLY.search(one_line(error))
            existing = self.load(card.uuid) if may_exist else None
            if existing is None:
                raise self._store_error(error) from None
            return existing
        return None

    def load(self, uuid: str, visibility: Visibility | None = None) -> tuple[Card, str] | None:
        """Return a card and its result, or None if it does not exist or is not visible."""
        query = select(*ToolResultArchive.__table__.columns).where(ToolResultArchive.uuid == uuid)
        if visibility is not None:
            query = query.where(*_visible(visibility))
        with self._store_errors(), self._connected() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else (_card(row), decode_text(row["result_full"]))

    def cards(self, visibility: Visibility, most: int) -> list[Card]:
        """Return the newest visible cards of other conversations, newest first."""
        newest = ToolResultArchive.created_at.desc()
        query = select(*_CARD).where(*_visible(visibility)).order_by(newest, ToolResultArchive.uuid).limit(most)
        with self._store_errors(), self._connected() as connection:
            return [_card(row) for row in connection.execute(query).mappings()]

    def delete(self, before: float, conversation: str | None = None, thread: str | None = None) -> tuple[str, ...]:
        """Delete results created before a moment, of a conversation, a thread or all. Returns their uuids, sorted."""
        old: list[ColumnElement[bool]] = [ToolResultArchive.created_at < _moment(before)]
        if conversation is not None:
            old.append(ToolResultArchive.conversation_id == fit_column(conversation))
        if thread is not None:
            old.append(ToolResultArchive.thread_id == fit_column(thread))
        with self._store_errors(), self._connected() as connection:
            uuids = tuple(connection.scalars(select(ToolResultArchive.uuid).where(*old)))
            if uuids:
                connection.execute(delete(ToolResultArchive).where(*old))
        return tuple(sorted(uuids))

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, ImportError, OSError) as error:
            raise self._store_error(error) from None

    def _store_error(self, error: Exception) -> StoreError:
        # With the address: several archives may be in one run.
        return StoreError(f"{self._url}: {one_line(error)}")

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Open a transaction; the first creates the table. After a lock the next transaction hardly waits."""
        try:
            if not self._ready:
                self._create_table()
            with self._engine.begin() as connection:
                yield connection
        except OperationalError as error:
            if self._patient and "locked" in str(error.orig):
                self._be_patient(False)
            raise
        if not self._patient:
            self._be_patient(True)

    def _create_table(self) -> None:
        try:
            _Base.metadata.create_all(self._engine)
        except DBAPIError as error:
            if "already exists" not in str(error.orig):
                raise
            # Another process created it between the look and the statement.
            _Base.metadata.create_all(self._engine)
        self._ready = True

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


def _visible(visibility: Visibility) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        ToolResultArchive.conversation_id != fit_column(visibility.besides),
        ToolResultArchive.created_at < _moment(visibility.before),
    ]
    if visibility.thread is not None:
        conditions.append(ToolResultArchive.thread_id == fit_column(visibility.thread))
    return conditions


def _card(row: Any) -> Card:
    created: datetime | None = row["created_at"]
    return Card(
        uuid=row["uuid"],
        conversation=row["conversation_id"],
        message="",
        thread=row["thread_id"] or "",
        tool=row["tool_name"],
        arguments=row["tool_input"],
        query=row["query_summary"],
        summary=row["result_summary"],
        length=row["result_length"],
        sources=source_texts(row["sources"]),
        created=None if created is None else created.replace(tzinfo=UTC).timestamp(),
    )


def _moment(seconds: float) -> datetime:
    """Return a moment in UTC without a zone, as the column has it; the calendar's end for times beyond it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return datetime.min if seconds < 0 else datetime.max
