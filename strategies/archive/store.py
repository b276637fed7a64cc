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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Executable,
    Integer,
    String,
    Text,
    bindparam,
    cast,
    create_engine,
    delete,
    insert,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import NullPool, StaticPool

from ctxbench.scenarios.digest import DIGITS, RowTotal, digest_of, new_name, row_digest, share

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
_ANOTHER = "is another archive than before"
# sqlite3 raises UnicodeDecodeError where its own message quotes a damaged schema.
_FAULTS = (SQLAlchemyError, ImportError, OSError, UnicodeDecodeError)
# Errors of values that no row of ours has: text that is no JSON or no time, numbers and bytes in place of text.
_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError)


class _Base(DeclarativeBase):
    """Declarative base of the two tables."""


class ToolResultArchive(_Base):
    """The table of 001 §3.3, with its widths. Ids and names longer than their column are stored as their uuid.

    JSON and moments are text: it is digested as it stands, needs no conversion to be compared, and moments in it order
    as time does. Databases' own types change numbers: SQLite has 1 for 1.0, MySQL 1e22 for a large one.
    """

    __tablename__ = TABLE

    uuid: Mapped[str] = mapped_column(String(36), primary_key=True)
    conversation_id: Mapped[str] = mapped_column(String(36), index=True)
    thread_id: Mapped[str | None] = mapped_column(String(36), index=True)
    tool_name: Mapped[str] = mapped_column(String(100))
    tool_input: Mapped[str] = mapped_column(_LONG)
    query_summary: Mapped[str] = mapped_column(String(500))
    result_summary: Mapped[str] = mapped_column(Text)
    result_length: Mapped[int] = mapped_column(Integer)
    sources: Mapped[str] = mapped_column(_LONG)
    created_at: Mapped[str | None] = mapped_column(String(26))
    """Recorded time in UTC, as `2024-12-16 06:20:00.500000`. The design's default, the time of writing, would not be
    the same twice."""
    result_digest: Mapped[str] = mapped_column(String(DIGITS))
    """BLAKE2b of the content."""
    digest: Mapped[str] = mapped_column(String(DIGITS))
    """BLAKE2b of all columns above, keyed with the archive's name."""
    result_full: Mapped[str] = mapped_column(_LONG)
    """The last column: SQLite reads all of a long value to get to the one behind it."""


class ArchiveTotal(_Base):
    """One row: the archive's name, and the number and the sum of what is in it."""

    __tablename__ = f"{TABLE}_total"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    archive: Mapped[str] = mapped_column(String(DIGITS))
    results: Mapped[int] = mapped_column(BigInteger)
    digests: Mapped[int] = mapped_column(BigInteger)
    """Sum of the first four bytes of each row's digest: added by the database itself, which holds 2³¹ of them."""


class Deletion(NamedTuple):
    """Results that were deleted, and when the oldest of those left was created."""

    uuids: tuple[str, ...]
    """Sorted."""
    oldest: float
    """Infinite if none is left."""


class CardRow(NamedTuple):
    """A row but for its content."""

    uuid: str
    conversation_id: str
    thread_id: str | None
    tool_name: str
    tool_input: str
    query_summary: str
    result_summary: str
    result_length: int
    sources: str
    created_at: str | None
    result_digest: str
    digest: str


Values = tuple[Any, ...]
"""Values as they were read, which may be anything: 10,000 of these take a third of the time of SQLAlchemy's rows."""

_TABLE = ToolResultArchive.__table__.columns
_CARD = [_TABLE[name] for name in CardRow._fields]
_SIGNED = CardRow._fields[:-1]
# The columns that hide a row, and its digest.
_PLACE = ("uuid", "conversation_id", "thread_id", "created_at", "digest")
_place: Callable[[Values], Values] = itemgetter(*map(CardRow._fields.index, _PLACE))

_NAME = select(ArchiveTotal.archive)
_ONE = (
    select(ArchiveTotal.archive, *_CARD, ToolResultArchive.result_full)
    .select_from(ArchiveTotal)
    .outerjoin(ToolResultArchive, ToolResultArchive.uuid == bindparam("uuid"))
)
_SOME = select(*_CARD).where(ToolResultArchive.uuid.in_(bindparam("uuids", expanding=True)))
_ADD = (
    update(ArchiveTotal)
    .where(ArchiveTotal.archive == bindparam("name"))
    .values(results=ArchiveTotal.results + bindparam("more"), digests=ArchiveTotal.digests + bindparam("sum"))
)
_DELETE = delete(ToolResultArchive).where(ToolResultArchive.uuid == bindparam("old"))


def _with_total(*columns: ColumnElement[Any]) -> CompoundSelect[Any]:
    """Return the statement that reads columns of all rows, and the total, which has no digest, at one moment."""
    total = (
        ArchiveTotal.archive,
        *(cast(number, String(20)) for number in (ArchiveTotal.results, ArchiveTotal.digests)),
    )
    return union_all(select(*total, *(null() for _ in columns[len(total) :])), select(*columns))


_ALL = _with_total(*_CARD)
_PLACES = _with_total(*(_TABLE[name] for name in _PLACE))
# Uuids of one SELECT. Databases take more.
_AT_ONCE = 500
# All rows are read sooner than this share of them one by one.
_FEW = 0.25


@lru_cache(maxsize=8)
def _known_places(archive: str) -> dict[int, int]:  # noqa: ARG001
    """Map the hash of each place whose row had the right digest to what the row adds to the archive's total.

    A place has the digest in it, so that it tells of one row and no other, in whatever file it is read again.
    """
    return {}


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
        try:
            row: dict[str, Any] = {
                "uuid": card.uuid,
                "conversation_id": fit_column(card.conversation),
                "thread_id": fit_column(card.thread) if card.thread else None,
                "tool_name": card.tool,
                "tool_input": json.dumps(card.arguments),
                "query_summary": card.query,
                "result_summary": card.summary,
                "result_length": card.length,
                "sources": json.dumps(card.sources),
                "created_at": None if card.created is None else _moment(card.created),
                "result_digest": digest_of(content.encode()),
                "result_full": content,
            }
            with self._connected() as connection:
                row["digest"] = row_digest([row[name] for name in _SIGNED], self._archive)
                connection.execute(insert(ToolResultArchive), row)
                self._count(connection, RowTotal.of([row["digest"]]))
        except (
            *_FAULTS,
            UnicodeEncodeError,
            RecursionError,
        ) as error:  # the last for arguments that are nested too deep
            # Two ways in which a result may be there all the same: another process wrote it first, or the store is a
            # finished one that nobody may write.
            may_exist = isinstance(error, IntegrityError) or _READ_ONLY.search(one_line(error))
            existing = self.load(card.uuid) if may_exist else None
            if existing is None:
                raise self._store_error(error) from None
            return existing
        return None

    def load(self, uuid: str, visibility: Visibility | None = None) -> tuple[Card, str] | None:
        """Return a card and its result, or None if it does not exist or is not visible."""
        with self._store_errors(), self._connected() as connection:
            rows = self._rows(connection, _ONE, uuid=uuid)
            if len(rows) != 1 or rows[0][0] != self._archive:
                raise self._damaged(_ANOTHER)
            [(_, *values, content)] = rows
            if values[-1] is None:  # an index may be damaged
                if uuid in self._all(connection):
                    raise self._damaged(f"its index lacks {uuid}")
                return None
            self._check(values)
            row = CardRow._make(values)
            if row.uuid != uuid:
                raise self._damaged(f"its index has {uuid} elsewhere")
        if not isinstance(content, str) or digest_of(content.encode()) != row.result_digest:
            raise self._damaged(f"the content of {uuid} is not as it was written")
        if visibility is not None and not _newest([_place(row)], visibility, 1):
            return None
        return self._card(row), decode_text(content)

    def cards(self, visibility: Visibility, most: int) -> list[Card]:
        """Return the newest visible cards of other conversations, newest first.

        Of a row that is not returned, and that was whole before, only the columns that hide it are read again.
        """
        with self._store_errors(), self._connected() as connection:
            rows = self._newest_of_known(connection, visibility, most)
            if rows is None:
                all_rows = self._all(connection)
                rows = [all_rows[uuid] for uuid in _newest(map(_place, all_rows.values()), visibility, most)]
        return [self._card(CardRow._make(row)) for row in rows]

    def delete(self, before: float, conversation: str | None = None, thread: str | None = None) -> Deletion:
        """Delete results created before a moment, of a conversation, a thread or all."""
        moment = _moment(before)
        own = None if conversation is None else fit_column(conversation)
        its = None if thread is None else fit_column(thread)
        with self._store_errors(), self._connected() as connection:
            self._count(connection, RowTotal())  # takes the lock: nobody writes between reading and deleting
            dated = [
                (uuid, created, digest)
                for uuid, of, within, created, digest in map(_place, self._all(connection).values())
                if created is not None and own in (None, of) and its in (None, within)
            ]
            old = {uuid: digest for uuid, created, digest in dated if created < moment}
            if old:
                connection.execute(_DELETE, [{"old": uuid} for uuid in old])
                self._count(connection, RowTotal().less(RowTotal.of(old.values())))
                self._all(connection)  # a damaged index may have named other rows
        left = min((created for _, created, _ in dated if created >= moment), default=None)
        return Deletion(tuple(sorted(old)), inf if left is None else _seconds(left))

    def _all(self, connection: Connection) -> dict[str, Values]:
        """Return all rows without their contents by uuid, compared with their digests and the total."""
        found = self._rows(connection, _ALL)
        rows = {values[0]: values for values in found if values[-1] is not None}
        self._learn(rows.values())
        totals = [values[:3] for values in found if values[-1] is None]
        if [name for name, _, _ in totals] != [self._archive]:
            raise self._damaged(_ANOTHER)
        if len(rows) != len(found) - 1 or _texts(RowTotal.of(row[-1] for row in rows.values())) != totals[0][1:]:
            raise self._damaged(f"has {len(found) - 1} results, and its total says {totals[0][1]}")
        return rows

    def _newest_of_known(self, connection: Connection, visibility: Visibility, most: int) -> list[Values] | None:
        """Return the newest visible rows; None where all rows have to be read to tell."""
        known = _known_places(self._archive)
        if most > _FEW * len(known):
            return None
        places = self._rows(connection, _PLACES)
        totals = [place[:3] for place in places if place[-1] is None]
        places = [place for place in places if place[-1] is not None]
        shares = list(map(known.get, map(hash, places)))
        if None in shares:
            new = [place[0] for place, known_share in zip(places, shares, strict=True) if known_share is None]
            if len(new) > _FEW * len(known) or self._some(connection, new) is None:
                return None
            shares = list(map(known.get, map(hash, places)))
            if None in shares:  # damaged
                return None
        total = RowTotal(len({place[0] for place in places}), sum(filter(None, shares)))
        if totals != [(self._archive, *_texts(total))] or total.rows != len(places):
            return None
        newest = _newest(places, visibility, most)
        rows = self._some(connection, newest)
        return None if rows is None else [rows[uuid] for uuid in newest]

    def _some(self, connection: Connection, uuids: Sequence[str]) -> dict[str, Values] | None:
        """Return some rows by uuid, compared with their digests; None if not all are there, and no others."""
        rows: dict[str, Values] = {}
        for at in range(0, len(uuids), _AT_ONCE):
            found = self._rows(connection, _SOME, uuids=uuids[at : at + _AT_ONCE])
            rows.update((values[0], values) for values in found)
        self._learn(rows.values())
        # Another process may have deleted some since they were named, or an index be damaged.
        return rows if rows.keys() == set(uuids) else None

    def _learn(self, rows: Collection[Values]) -> None:
        """Compare rows with their digests, and remember their places. Raises StoreError."""
        for row in rows:
            self._check(row)
        _known_places(self._archive).update((hash(_place(row)), share(row[-1])) for row in rows)

    def _rows(self, connection: Connection, statement: Executable, **values: object) -> list[Values]:
        cursor = connection.execute(statement, values).cursor
        try:
            return list(cursor.fetchall()) if cursor is not None else []
        except connection.dialect.loaded_dbapi.Error as error:
            raise self._store_error(error) from None
        except _UNREADABLE:
            raise self._damaged("a row cannot be read") from None

    def _check(self, values: Sequence[Any]) -> None:
        """Raise StoreError if a row is not as it was written."""
        try:
            same = row_digest(values[:-1], self._archive) == values[-1]
        except _UNREADABLE:
            same = False
        if not same:
            raise self._damaged(f"the row of {str(values[0])[:36]!r} is not as it was written")

    def _card(self, row: CardRow) -> Card:
        try:
            arguments, sources = _read_json(row.tool_input), _read_json(row.sources)
        except _UNREADABLE:  # whole, but nested too deep to be read here
            raise self._damaged("a row cannot be read") from None
        return Card(
            uuid=row.uuid,
            conversation=row.conversation_id,
            message="",
            thread=row.thread_id or "",
            tool=row.tool_name,
            arguments=arguments,
            query=row.query_summary,
            summary=row.result_summary,
            length=row.result_length,
            sources=source_texts(sources),
            created=None if row.created_at is None else _seconds(row.created_at),
        )

    def _count(self, connection: Connection, more: RowTotal) -> None:
        """Add to the total."""
        changed = connection.execute(_ADD, {"name": self._archive, "more": more.rows, "sum": more.digests})
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
                    total = {"id": 1, "archive": new_name(), "results": 0, "digests": 0}
                    connection.execute(insert(ArchiveTotal), total)
            except IntegrityError:  # another process was first
                pass
            with self._engine.begin() as connection:
                names = self._rows(connection, _NAME)
        name = names[0][0] if len(names) == 1 else None
        if not isinstance(name, str) or len(name) != DIGITS:
            raise self._damaged("has lost its name")
        return name

    def _be_patient(self, patient: bool) -> None:
        """Set whether to wait for locks. Engines of files and servers hold no connection, so a new one costs little."""
        self._patient = patient
        self._engine = _engine(self._url, self._wait if patient else self._wait / 100)


def encode_text(text: str) -> str:
    """Return a form of any text that every database takes."""
    # The mark \x1a is among what is escaped (as "\x1a001a"), so no text of its own reads as an escape.
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


def _texts(total: RowTotal) -> Values:
    return tuple(map(str, total))


def _newest(places: Iterable[Values], visibility: Visibility, most: int) -> list[str]:
    """Return the uuids of the newest visible places, newest first."""
    besides, before = fit_column(visibility.besides), _moment(visibility.before)
    thread = None if visibility.thread is None else fit_column(visibility.thread)
    visible = [
        place
        for place in places
        if place[3] is not None and place[3] < before and place[1] != besides and thread in (None, place[2])
    ]
    if len(visible) > most:
        # All that are as old as the last of the newest `most` stay here: which of these goes is decided below.
        oldest = sorted(map(itemgetter(3), visible), reverse=True)[most - 1]
        visible = [place for place in visible if place[3] >= oldest]
    # By uuid first: the second sort is stable, so among equal
    # moments the uuids decide, whatever order the database has.
    visible.sort(key=itemgetter(0))
    visible.sort(key=itemgetter(3), reverse=True)
    return [place[0] for place in visible[:most]]


_read_json = json.JSONDecoder().decode


def _moment(seconds: float) -> str:
    """Return a moment in UTC without a zone, as the column has it; the calendar's end for times beyond it."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        moment = datetime.min if seconds < 0 else datetime.max
    return moment.isoformat(" ", "microseconds")


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
