"""The table of archived tool results (design document 001 §3.3), in any database that SQLAlchemy reaches.

Imported when the first result is archived and no sooner: SQLAlchemy takes 0.3 s. Every statement is bound. A
connection to a file or a server is held only while it is used, so that nothing is left open or locked, and processes
may share the store; a store in memory is its conversation's own, and goes with it.

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

from .record import Card, StoreError, Visible, listed, short

TABLE = "tool_result_archive"
_COLUMN = "result_full"
"""That no other table of that name is likely to have."""


def in_memory(url: str) -> bool:
    """Whether the address is a database in memory, which no two conversations share."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return False
    name = parsed.database or ""
    if name.startswith("file:"):  # an address of SQLite's own
        return ":memory:" in name or parsed.query.get("mode") == "memory"
    return name in ("", ":memory:")


def fault(url: str) -> str | None:
    """What is wrong with a store's address, if anything is. Nothing is written, and no server is called."""
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
    return _file_fault(parsed) if parsed.drivername in ("sqlite", "sqlite+pysqlite") and not in_memory(url) else None


def _file_fault(url: URL) -> str | None:
    """What is wrong with the file of an SQLite database. Locked is not wrong: it may be free when it is needed."""
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
    """An error without its statement, in one line."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(said).splitlines() or [type(said).__name__])[0]


_LONG = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_READ_ONLY = re.compile("read-?only|unable to open")
"""What databases say where nothing may be written; SQLite the second where it is the folder that is shut."""
_UNSAFE = re.compile("[\x00\x1a\ud800-\udfff]")
_MARKED = re.compile("\x1a([0-9a-f]{4})")


class _Base(DeclarativeBase):
    """Of the one table."""


class ToolResultArchive(_Base):
    """001 §3.3, with its widths. Ids and names longer than their column are stored as their uuid (`record.short`)."""

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
    """UTC. The recorded clock's; the document's default, the time of writing, would not be the same twice."""


_CARD = [column for column in ToolResultArchive.__table__.columns if column.name != "result_full"]


class ResultStore:
    """The archive at one address. Raises StoreError from every method when it cannot be reached."""

    def __init__(self, url: str, wait: float) -> None:
        self._url, self._wait = url, wait
        self._patient = True
        with self._told():
            self._engine = _engine(url, wait)
        self._ready = False
        weakref.finalize(self, self._engine.dispose)

    def __deepcopy__(self, memo: object) -> ResultStore:
        """Itself: a copy of what archives here writes the same rows under the same uuids."""
        return self

    def save(self, card: Card, text: str) -> tuple[Card, str] | None:
        """Write a result once. If its uuid is there already nothing is written, and what is there is returned.

        So a store that may only be read will do, as long as every result is in it.
        """
        row = {
            "uuid": card.uuid,
            "conversation_id": short(card.conversation),
            "thread_id": short(card.thread) if card.thread else None,
            "tool_name": card.tool,
            "tool_input": card.arguments,
            "query_summary": card.query,
            "result_summary": card.summary,
            "result_full": encoded(text),
            "result_length": card.length,
            "sources": list(card.sources),
            "created_at": None if card.created is None else _moment(card.created),
        }
        try:
            with self._connected() as connection:
                connection.execute(insert(ToolResultArchive).values(row))
        except (SQLAlchemyError, OSError) as error:
            may_be_there = isinstance(error, IntegrityError) or _READ_ONLY.search(one_line(error))
            found = self.load(card.uuid) if may_be_there else None
            if found is None:
                raise self._failed(error) from None
            return found
        return None

    def load(self, uuid: str, visible: Visible | None = None) -> tuple[Card, str] | None:
        """A result and its card, or None if it is not there (or not among what is visible)."""
        found = select(*ToolResultArchive.__table__.columns).where(ToolResultArchive.uuid == uuid)
        if visible is not None:
            found = found.where(*_seen(visible))
        with self._told(), self._connected() as connection:
            row = connection.execute(found).mappings().first()
        return None if row is None else (_card(row), decoded(row["result_full"]))

    def cards(self, visible: Visible, most: int) -> list[Card]:
        """The newest of other conversations' archives that are visible, newest first."""
        newest = ToolResultArchive.created_at.desc()
        found = select(*_CARD).where(*_seen(visible)).order_by(newest, ToolResultArchive.uuid).limit(most)
        with self._told(), self._connected() as connection:
            return [_card(row) for row in connection.execute(found).mappings()]

    def delete(self, before: float, conversation: str | None = None, thread: str | None = None) -> tuple[str, ...]:
        """Delete what was created before a moment, of a conversation or a thread or of all. Returns the uuids."""
        old: list[ColumnElement[bool]] = [ToolResultArchive.created_at < _moment(before)]
        if conversation is not None:
            old.append(ToolResultArchive.conversation_id == short(conversation))
        if thread is not None:
            old.append(ToolResultArchive.thread_id == short(thread))
        with self._told(), self._connected() as connection:
            uuids = tuple(connection.scalars(select(ToolResultArchive.uuid).where(*old)))
            if uuids:
                connection.execute(delete(ToolResultArchive).where(*old))
        return tuple(sorted(uuids))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, ImportError, OSError) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> StoreError:
        """What went wrong, and where: several archives may be in one run."""
        return StoreError(f"{self._url}: {one_line(error)}")

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A transaction; the table is made at the first. After a lock the next is hardly waited for."""
        try:
            if not self._ready:
                self._make_table()
            with self._engine.begin() as connection:
                yield connection
        except OperationalError as error:
            if self._patient and "locked" in str(error.orig):
                self._be_patient(False)
            raise
        if not self._patient:
            self._be_patient(True)

    def _make_table(self) -> None:
        try:
            _Base.metadata.create_all(self._engine)
        except DBAPIError as error:
            if "already exists" not in str(error.orig):
                raise
            _Base.metadata.create_all(self._engine)  # another process made it between the look and the making
        self._ready = True

    def _be_patient(self, patient: bool) -> None:
        """From here on, wait for a lock, or hardly. Engines of files and servers hold no connection."""
        self._patient = patient
        self._engine = _engine(self._url, self._wait if patient else self._wait / 100)


def encoded(text: str) -> str:
    """A text that every database takes, from any."""
    return _UNSAFE.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def decoded(text: str) -> str:
    """The text that was encoded."""
    return _MARKED.sub(lambda found: chr(int(found[1], 16)), text)


def _engine(url: str, wait: float) -> Engine:
    parsed = make_url(url)
    sqlite = parsed.get_backend_name() == "sqlite"
    if in_memory(url):
        return create_engine(
            parsed, poolclass=StaticPool, connect_args={"check_same_thread": False}, hide_parameters=True
        )
    arguments = {"timeout": wait} if sqlite else {}
    return create_engine(parsed, poolclass=NullPool, connect_args=arguments, hide_parameters=True)


def _seen(visible: Visible) -> list[ColumnElement[bool]]:
    seen: list[ColumnElement[bool]] = [
        ToolResultArchive.conversation_id != short(visible.besides),
        ToolResultArchive.created_at < _moment(visible.before),
    ]
    if visible.thread is not None:
        seen.append(ToolResultArchive.thread_id == short(visible.thread))
    return seen


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
        sources=listed(row["sources"]),
        created=None if created is None else created.replace(tzinfo=UTC).timestamp(),
    )


def _moment(seconds: float) -> datetime:
    """UTC without a zone, as the column has it; the calendar's end for what comes after it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return datetime.min if seconds < 0 else datetime.max
