"""Tables of a cassette: each row has a digest, which is compared when it is read, and each table a total.

What is read is the bytes that stand in the file, so that no damage is hidden by a conversion. A total finds what no
digest can: a row that is lost, or that the index does not lead to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxbench.scenarios.digest import DIGITS, RowTotal, new_name, row_digest, share

Values = tuple[Any, ...]
"""A row in the order of its columns, without its digest."""


# Keys of one SELECT. SQLite takes some more.
_AT_ONCE = 500


class RowDamage(Exception):
    """Rows that are not as they were written, or are lost. Its text says which, in a few words."""


class DigestedTable(NamedTuple):
    """A table by its columns and their SQL types. The first column is its key."""

    name: str
    row: str
    """How a row is called, in the plural."""
    columns: Mapping[str, str]

    def create(self) -> str:
        """Return the statement that makes the table."""
        columns = [f"{name} {kind}" for name, kind in self.columns.items()]
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, digest TEXT NOT NULL)"

    def select(self, *more: str) -> str:
        """Return the statement that reads all columns, the digest and more, texts as their bytes."""
        # As bytes: sqlite3 decodes texts as it reads them, and one damaged row would end the query for all others.
        columns = [name if self._is_number(name) else f"CAST({name} AS BLOB)" for name in self.columns]
        return f"SELECT {', '.join((*columns, 'CAST(digest AS BLOB)', *more))} FROM {self.name}"

    def digest(self, values: Sequence[Any], cassette: str = "") -> str:
        """Return the digest of a row, in the cassette of that name."""
        kinds = self.columns.values()
        # SQLite gives 1.0 back for a 1 in such a column, and the digest is of what will be read.
        stored = [float(value) if kind.startswith("REAL") else value for value, kind in zip(values, kinds, strict=True)]
        return row_digest([value.encode() if isinstance(value, str) else value for value in stored], cassette)

    def read(self, raw: Sequence[Any], cassette: str) -> Values:
        """Return the row in what `select` reads. Raises RowDamage if it is not as it was written."""
        values = raw[: len(self.columns)]
        try:
            if row_digest(values, cassette) == raw[len(self.columns)].decode():
                return tuple(
                    value.decode() if isinstance(value, bytes) and kind.startswith("TEXT") else value
                    for value, kind in zip(values, self.columns.values(), strict=True)
                )
        except (ValueError, TypeError, AttributeError, ArithmeticError):
            pass
        raise RowDamage(f"{self.label(raw)} is not as it was recorded")

    def label(self, raw: Sequence[Any]) -> str:
        """Return how a damaged row is called: the start of its key, as it stands there."""
        key, kind = (ascii(bytes(value or b"")[:12])[2:-1] if isinstance(value, bytes) else "?" for value in raw[:2])
        return f"{kind} {key}…" if "kind" in self.columns else key

    def _is_number(self, column: str) -> bool:
        return self.columns[column].startswith(("INTEGER", "REAL"))


TOTALS = """
CREATE TABLE totals (name TEXT PRIMARY KEY, cassette TEXT NOT NULL, rows INTEGER NOT NULL, digests INTEGER NOT NULL)
"""


def make_tables(database: sqlite3.Connection, tables: Iterable[DigestedTable]) -> None:
    """Make empty tables, and a total for each."""
    name = new_name()
    database.execute(TOTALS)
    for table in tables:
        database.execute(table.create())
        database.execute("INSERT INTO totals VALUES (?,?,0,0)", (table.name, name))


def names_of(database: sqlite3.Connection) -> list[str]:
    """Return the name of a cassette, as it stands beside each total: once if nothing is damaged."""
    stored = database.execute("SELECT CAST(cassette AS BLOB) FROM totals")
    names = {name.decode(errors="replace") for (name,) in stored if isinstance(name, bytes)}
    return sorted(name for name in names if len(name) == DIGITS)


class DigestedRows:
    """The rows of one table in an open database. Methods raise RowDamage, and sqlite3's errors."""

    def __init__(self, table: DigestedTable, database: sqlite3.Connection, cassette: str) -> None:
        self._table, self._database, self._cassette = table, database, cassette
        self._key = next(iter(table.columns))

    def under(self, keys: Sequence[str]) -> Iterator[Values]:
        """Yield the rows under those of some keys that have one."""
        for raw in self._found(self._table.select(), keys):
            yield self._table.read(raw, self._cassette)

    def keys(self, keys: Sequence[str]) -> set[str]:
        """Return those of some keys that have a row."""
        return {key for (key,) in self._found(f"SELECT {self._key} FROM {self._table.name}", keys)}

    def _found(self, statement: str, keys: Sequence[str]) -> Iterator[Values]:
        for at in range(0, len(keys), _AT_ONCE):
            some = keys[at : at + _AT_ONCE]
            yield from self._database.execute(f"{statement} WHERE {self._key} IN ({','.join('?' * len(some))})", some)

    def all(self) -> Iterator[Values]:
        """Yield all rows in the order of their keys."""
        for raw in self._database.execute(f"{self._table.select()} ORDER BY {self._key}"):
            yield self._table.read(raw, self._cassette)

    def write(self, rows: Iterable[Values], *, replace: bool = False) -> int:
        """Write rows in an open transaction; existing ones stay unless `replace`. Returns how many were written."""
        table, count, change, sum_of_digests = self._table, 0, 0, 0
        marks = ",".join("?" * (len(table.columns) + 1))
        for row in rows:
            old = self._database.execute(
                f"SELECT CAST(digest AS BLOB) FROM {table.name} WHERE {self._key} = ?", row[:1]
            ).fetchone()
            if old and not replace:
                continue
            digest = table.digest(row, self._cassette)
            self._database.execute(f"REPLACE INTO {table.name} VALUES ({marks})", (*row, digest))
            try:
                sum_of_digests += share(digest) - (share(old[0].decode()) if old else 0)
            except (ValueError, TypeError, AttributeError):
                raise RowDamage(f"{row[0][:12]}… is not as it was recorded") from None
            count, change = count + 1, change + (not old)
        if count:
            self._database.execute(
                "UPDATE totals SET rows = rows + ?, digests = digests + ? WHERE name = ?",
                (change, sum_of_digests, table.name),
            )
        return count

    def check(self) -> None:
        """Read all rows. Raises RowDamage if any is not as it was written, or is lost."""
        digests, damaged = list[str](), list[str]()
        for raw in self._database.execute(f"{self._table.select()} NOT INDEXED"):
            try:
                self._table.read(raw, self._cassette)
                digests.append(raw[-1].decode())
            except RowDamage:
                damaged.append(self._table.label(raw))
        if damaged:
            some = ", ".join(damaged[:3]) + (" …" if damaged[3:] else "")
            raise RowDamage(f"{self._table.row} not as recorded: {len(damaged):,} ({some})")
        total = RowTotal.of(digests)
        statement = "SELECT rows, digests FROM totals WHERE name = ?"
        stored = self._database.execute(statement, (self._table.name,)).fetchall()
        if stored != [total]:
            recorded = stored[0][0] if stored else "nobody knows how many"
            raise RowDamage(f"{self._table.row} recorded: {recorded}, there: {total.rows}")

    def salvage(self) -> Iterator[Values | str]:
        """Yield each row that can be read from either end, or its label where it is damaged."""
        last = -1
        for order in ("", " DESC"):  # what is behind a damaged page is read from the other end
            statement = f"{self._table.select('rowid')} NOT INDEXED WHERE rowid > {last} ORDER BY rowid{order}"
            try:
                for *raw, rowid in self._database.execute(statement):
                    # The second pass goes from the end back to the last row that the first one reached: no row is
                    # yielded twice.
                    last = max(last, rowid) if not order else last
                    try:
                        yield self._table.read(raw, self._cassette)
                    except RowDamage:
                        yield self._table.label(raw)
                return
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                    raise
