"""The archive's store: one SQLite database, in a file or in memory, with two faces.

`ResultTable` has the tool results that `archive` replaced (design document 001 §3.3), a row each. `BlockTable` has the
compressed blocks of the Archive tier (004 §2.3). Both are tables of one database, and every change is a transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from ctxbench.scenarios.errors import UserError

from .record import Card, fit_column

TABLE = "tool_result_archive"
# JSON and moments are text: moments in it order as time does. The design's default of `created_at`, the time of
# writing, would not be the same twice. SQLite reads all of a long value to get to the one behind it: it comes last.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    uuid VARCHAR(36) PRIMARY KEY,
    conversation_id VARCHAR(36) NOT NULL,
    thread_id VARCHAR(36),
    tool_name VARCHAR(100) NOT NULL,
    tool_input TEXT NOT NULL,
    query_summary VARCHAR(500) NOT NULL,
    result_summary TEXT NOT NULL,
    result_length INTEGER NOT NULL,
    sources TEXT NOT NULL,
    created_at VARCHAR(26),
    result_full TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {TABLE}_conversation ON {TABLE} (conversation_id);
CREATE INDEX IF NOT EXISTS {TABLE}_thread ON {TABLE} (thread_id);
CREATE TABLE IF NOT EXISTS archive_block (name TEXT PRIMARY KEY, data BLOB NOT NULL);
"""
_CARD = (
    "uuid, conversation_id, thread_id, tool_name, tool_input, query_summary, result_summary, result_length, sources, "
    "created_at"
)
_REMEDIES = {
    "locked": "end the program that holds it",
    "is full": "free some space",
    "readonly": "make it writable",
    "malformed": "move it away: the next run archives its results anew",
}


class StoreError(UserError):
    """A store that could not be read or written: locked, full, damaged."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        self.what = what
        super().__init__(f"{where}: {what} ({remedy})")


def file_problem(path: str) -> str | None:
    """Return why a file cannot be a store, or None. Nothing is written. A locked one may be free when needed."""
    file = Path(path)
    if "://" in path:
        return "it is an address: give the path of an SQLite file"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}: make it first"
    if file.is_dir():
        return f"{file} is a folder"
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({TABLE})")]
    except sqlite3.Error as error:
        return None if "locked" in str(error) else f"{file}: {error}"
    if columns and "result_full" not in columns:
        return f"{file} has another table of the name {TABLE}: name another file"
    return None


class ArchiveStore:
    """An SQLite database, opened when it is first used. Every method raises StoreError if that is not possible."""

    def __init__(self, path: str = "", wait: float = 1.0) -> None:
        """Without a `path` the database is in memory. A locked one is waited for, `wait` seconds at most."""
        self.path, self._wait = path, wait
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction: all of it counts, or nothing."""
        try:
            if self._opened is None:
                connection = sqlite3.connect(self.path or ":memory:", self._wait, check_same_thread=False)
                connection.executescript(_SCHEMA)
                self._opened = connection
            with self._opened:
                yield self._opened
        except (sqlite3.Error, UnicodeDecodeError) as error:
            what = (str(error).splitlines() or [type(error).__name__])[0]
            remedy = next((remedy for word, remedy in _REMEDIES.items() if word in what), "name another store")
            raise StoreError(self.path or "memory", what, remedy) from None


class ResultTable(ArchiveStore):
    """The archived tool results."""

    def __init__(self, path: str = "", wait: float = 1.0, conversation: str = "", thread: str | None = None) -> None:
        """Of other conversations than this one, results of the `thread` can be seen; None = of any."""
        super().__init__(path, wait)
        self._conversation, self._thread = fit_column(conversation), None if thread is None else fit_column(thread)

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that does nothing: a result that is stored again has the same row under the same uuid."""
        return lambda: None

    def save(self, card: Card, text: str) -> str | None:
        """Write a result once. If its uuid exists, nothing is written, and the existing result is returned."""
        existing = self.load(card.uuid)
        if existing is None:
            row = (
                *(card.uuid, fit_column(card.conversation), fit_column(card.thread) if card.thread else None),
                *(card.tool, json.dumps(card.arguments), card.query, card.summary, card.length),
                *(json.dumps(card.sources), None if card.created is None else _moment(card.created), text),
            )
            insert = f"INSERT OR IGNORE INTO {TABLE} ({_CARD}, result_full) VALUES ({', '.join('?' * len(row))})"
            with self._transaction() as connection:
                is_new = connection.execute(insert, row).rowcount
            # Another process may have written it meanwhile.
            existing = None if is_new else self.load(card.uuid)
        return existing and existing[1]

    def load(self, uuid: str, before: float | None = None) -> tuple[Card, str] | None:
        """Return a card and its result if it exists; with `before` only one that others created before that moment."""
        where, values = ("TRUE", []) if before is None else self._of_others(before)
        with self._transaction() as connection:
            select = f"SELECT {_CARD}, result_full FROM {TABLE} WHERE uuid = ? AND {where}"
            row = connection.execute(select, (uuid, *values)).fetchone()
        return None if row is None else (self._card(row[:-1]), row[-1])

    def cards(self, before: float, most: int) -> list[Card]:
        """Return the newest cards that others created before a moment, newest first."""
        where, values = self._of_others(before)
        with self._transaction() as connection:
            select = f"SELECT {_CARD} FROM {TABLE} WHERE {where} ORDER BY created_at DESC, uuid LIMIT ?"
            return [self._card(row) for row in connection.execute(select, (*values, most))]

    def delete(self, before: float, own: bool) -> tuple[tuple[str, ...], float]:
        """Delete results created before a moment: the own ones, or those of the thread, or all.

        Return their uuids, and when the oldest of those left was created (infinite if none is left).
        """
        column, name = ("conversation_id", self._conversation) if own else ("thread_id", self._thread)
        where, values = "created_at IS NOT NULL", [] if name is None else [name]
        if values:
            where += f" AND {column} = ?"
        with self._transaction() as connection:
            delete = f"DELETE FROM {TABLE} WHERE {where} AND created_at < ? RETURNING uuid"
            uuids = [uuid for (uuid,) in connection.execute(delete, (*values, _moment(before)))]
            (oldest,) = connection.execute(f"SELECT MIN(created_at) FROM {TABLE} WHERE {where}", values).fetchone()
        return tuple(sorted(uuids)), inf if oldest is None else _seconds(oldest)

    def _of_others(self, before: float) -> tuple[str, list[str]]:
        """Return the condition of rows that can be seen of others, and its values."""
        where, values = "created_at < ? AND conversation_id != ?", [_moment(before), self._conversation]
        return (where, values) if self._thread is None else (f"{where} AND thread_id = ?", [*values, self._thread])

    def _card(self, row: tuple[Any, ...]) -> Card:
        uuid, conversation, thread, tool, arguments, query, summary, length, sources, created = row
        try:
            decoded, named = json.loads(arguments), tuple(json.loads(sources))
        except (ValueError, TypeError, RecursionError):
            raise StoreError(self.path, f"the row of {uuid!r} cannot be read", _REMEDIES["malformed"]) from None
        created = None if created is None else _seconds(created)
        return Card(uuid, conversation, thread or "", tool, decoded, query, summary, length, named, created)


class BlockTable(ArchiveStore):
    """The files of the Archive tier by name: blocks, dictionary, index."""

    _before: dict[str, bytes | None] | None = None
    """Files as they were at the last checkpoint, of those that were changed since."""

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that brings back the files of now, however often it is called."""
        self._before = {}

        def restore() -> None:
            if before := self._before:
                files = {name: data for name, data in before.items() if data is not None}
                self.replace(files, before.keys() - files.keys())
            self._before = {}

        return restore

    def read(self, name: str, start: int = 0, size: int = -1) -> bytes | None:
        """Return `size` bytes of a file, all by default; None if there is no such file."""
        if self._opened is None and not self.path:
            return None
        part = "data" if size < 0 else f"substr(data, {start + 1}, {size})"
        with self._transaction() as connection:
            row = connection.execute(f"SELECT {part} FROM archive_block WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def all(self) -> dict[str, bytes]:
        with self._transaction() as connection:
            return dict(connection.execute("SELECT name, data FROM archive_block ORDER BY name"))

    def replace(self, files: Mapping[str, bytes], gone: Collection[str]) -> None:
        if self._before is not None:
            self._before |= {name: self.read(name) for name in {*files, *gone} - self._before.keys()}
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO archive_block VALUES (?, ?)", files.items())
            connection.executemany("DELETE FROM archive_block WHERE name = ?", [(name,) for name in gone])


def _moment(seconds: float) -> str:
    """Return a moment in UTC without a zone, as the column has it; the calendar's end for times beyond it."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        moment = datetime.min if seconds < 0 else datetime.max
    return moment.isoformat(" ", "microseconds")


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
