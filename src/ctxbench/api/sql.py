"""Queries of a run in SQL: DuckDB over the Parquet parts of its folder, which are read as the query needs them.

    run.sql("select strategy, avg(tokens_sent) as tokens from steps group by strategy order by tokens")

A query reads and does nothing else. DuckDB is given tables, never files: each is an Arrow data set that it can scan,
and its own way to files, the network and extensions is shut. Allowed paths would not do: what DuckDB may read it may
write as well, and a SELECT can write (`with x as (copy … to …) select …`).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from ctxbench.harness.answers.store import SCHEMAS as ANSWER_SCHEMAS
from ctxbench.harness.answers.store import answered
from ctxbench.harness.folder.run import Run, refuse_damage
from ctxbench.harness.folder.schema import SCHEMAS
from ctxbench.scenarios.errors import MissingExtra, RunError, SpecError, printable
from ctxbench.scenarios.spec import nearest

if TYPE_CHECKING:
    import duckdb

Parameters = Sequence[object] | Mapping[str, object]
"""Values of a query: a sequence for `?`, a mapping for `$name`."""
FrameOf = Callable[[], pd.DataFrame]

MEMORY = "2GB"
_Settings = dict[str, str | bool | int | float | list[str]]
_SETTINGS: _Settings = {
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 1,  # sums of fractions are the same to the last digit every time
}
# Set once the connection is there. The last one locks them all.
_LOCKS = (
    "set TimeZone = 'UTC'",
    "set enable_progress_bar = false",
    "set python_enable_replacements = false",  # frames of the caller that happen to have the name of a table
    "set enable_external_access = false",
    "set lock_configuration = true",
)
_SIZE = re.compile(r"\d+(\.\d+)?\s*[KMGT]i?B", re.IGNORECASE)
_NO_TABLE = re.compile(r"Table with name \"?([^\s\"]+)\"? does not exist")


def run_query(run: Run, frames: Mapping[str, FrameOf], text: str, parameters: Parameters, memory: str) -> pd.DataFrame:
    """Return the rows of a query over the tables of a run, its answers and grades, and some frames by name.

    `memory` bounds what DuckDB takes, which then goes on in temporary files. Raises MissingExtra without DuckDB,
    SpecError for a mistake in the query or its settings, RunError for a damaged part.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtra("duckdb", "sql") from None
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Sequence, Mapping)):
        raise SpecError(f"parameters={parameters!r}: give a list for ?, or a dictionary for $name")
    if _SIZE.fullmatch(memory.strip()) is None:
        raise SpecError(f'memory={memory!r}: give a size such as "500MB" or "2GB"')
    with tempfile.TemporaryDirectory(prefix="ctxbench-sql-") as spill:
        settings: _Settings = {**_SETTINGS, "memory_limit": memory, "temp_directory": spill}
        with duckdb.connect(":memory:", config=settings) as connection, _clear_errors(run, frames, memory):
            kinds = [statement.type.name for statement in duckdb.extract_statements(text)]
            if len(kinds) != 1 or kinds[0] not in _READS:
                what = " and ".join(kinds) or "nothing"
                raise SpecError(f"sql: this is {what}: give one query that reads, such as SELECT … FROM steps")
            _register(connection, run, frames, text)
            for lock in _LOCKS:
                connection.execute(lock)
            # Not an empty list: a query without parameters may have several steps (`pivot`).
            return connection.execute(text, parameters or None).df()


_READS = ("SELECT", "EXPLAIN", "MULTI")
"""Statements that read; MULTI is a PIVOT, which looks for its columns first."""


def _register(connection: duckdb.DuckDBPyConnection, run: Run, frames: Mapping[str, FrameOf], text: str) -> None:
    """Give DuckDB the tables that the text of a query names: others would cost the time to open or to make them."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    for name in words & SCHEMAS.keys():
        connection.register(name, _scanned(run.files(name), SCHEMAS[name]))
    for name in words & frames.keys():
        frame = frames[name]()
        indexed = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
        connection.register(name, pa.Table.from_pandas(indexed, preserve_index=False))
    if words & ANSWER_SCHEMAS.keys():
        with run.readable():
            sets, left_out = answered(run)
        if not sets:
            why = " ".join(left_out) or "`ctxbench lab answer` makes them"
            raise RunError(f"{run.folder}: no answers are in this run: {why}")
        by_answerer = {stored.answerer: stored for stored in sets}
        answers = [(stored.answer_files, {"answerer": name}) for name, stored in by_answerer.items()]
        grades = [(of.grade_files, {"answerer": of.answerer, "grader": of.grader}) for of in sets]
        _union(connection, "answers", answers)
        _union(connection, "grades", grades)


def _union(
    connection: duckdb.DuckDBPyConnection, table: str, parts: Sequence[tuple[Sequence[Path], Mapping[str, str]]]
) -> None:
    """Make one view of several data sets, each with columns that say whose it is."""
    selects = []
    for number, (files, whose) in enumerate(parts):
        connection.register(f"{table}_{number}", _scanned(files, ANSWER_SCHEMAS[table]))
        columns = (f"'{value.replace(chr(39), chr(39) * 2)}' as {column}" for column, value in whose.items())
        selects.append(f"select *, {', '.join(columns)} from {table}_{number}")
    connection.execute(f"create view {table} as {' union all '.join(selects)}")


def _scanned(files: Sequence[Path], schema: pa.Schema) -> ds.Dataset:
    """Return the data set of some parts, in order; without any, one without rows."""
    # Texts in place of dictionaries: filters on those are not pushed down to the files.
    kinds = ((field, field.type) for field in schema)
    plain = pa.schema(
        [field.with_type(kind.value_type) if pa.types.is_dictionary(kind) else field for field, kind in kinds]
    )
    if not files:
        return ds.dataset(plain.empty_table())
    return ds.dataset([str(path) for path in files], schema=plain, format="parquet")


@contextmanager
def _clear_errors(run: Run, frames: Mapping[str, FrameOf], memory: str) -> Iterator[None]:
    """Raise an error of DuckDB as one line of ours. What a damaged part causes is said to be that."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise SpecError(f"sql: the query needs more than memory={memory!r}: give it more, or ask for less") from None
    except duckdb.PermissionException:
        raise SpecError("sql: a query reads the tables of the run alone: no files, no network, no extensions") from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if absent := _NO_TABLE.search(str(error)):
            names = dict.fromkeys((*SCHEMAS, *frames, *ANSWER_SCHEMAS))
            known = nearest(absent[1], names) or f"; it has {', '.join(names)}"
            raise SpecError(f"sql: a run has no table {absent[1]!r}{known}") from None
        if not isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)):
            refuse_damage(run)
        said = str(error).partition("\n\nLINE ")[0]  # without the query, which DuckDB repeats
        raise SpecError(f"sql: {printable(' '.join(said.split()))}") from None
