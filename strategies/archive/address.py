"""Whether a store's address can be used, as far as that is seen without reaching a server (imports SQLAlchemy)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

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
