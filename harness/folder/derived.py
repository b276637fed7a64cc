"""Tables made from a run alone, stored beside it: they count as long as its files and the code are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .files import placed
from .run import Run

FOLDER = "bills"
"""Folder in a run for such tables."""
_CODE = ("scenarios", "metrics", "strategies", "harness")
_ORIGIN = b"made_from"


def read_derived(run: Run, name: str, columns: Sequence[str]) -> pa.Table | None:
    """Return a stored table, or None if there is none that was made from just this run by just this code."""
    path = _path(run, name)
    try:
        if (pq.read_schema(path).metadata or {}).get(_ORIGIN) != _origin(run):
            return None
        return pq.read_table(path, columns=list(columns), page_checksum_verification=True).select(list(columns))
    except (OSError, KeyError, pa.ArrowException):
        return None


def write_derived(run: Run, name: str, table: pa.Table) -> None:
    """Store a table. On a disk that is read-only nothing is stored: the table is made again the next time."""
    if not run.manifest.complete:
        return  # the next part makes it another run
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _ORIGIN: _origin(run)})
    with suppress(OSError), placed(_path(run, name)) as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def _path(run: Run, name: str) -> Path:
    """Return the file of a table. A run confined to some conversations or shards has another than the whole run."""
    shards = run.shards if run.shards is not None and len(run.shards) < run.manifest.shards else ()
    confined = (sorted(run.chosen or ()), shards) if run.chosen or shards else None
    part = hashlib.sha256(repr(confined).encode()).hexdigest()[:8] if confined else ""
    return run.folder / FOLDER / f"{name}{part and '-'}{part}.parquet"


def _origin(run: Run) -> bytes:
    """Return a digest of the run's files, by its manifest, and of the code."""
    # Whoever opens a run has compared its files with the manifest: they need not be read again.
    return hashlib.sha256(run.manifest.blake2b.encode() + _code()).hexdigest().encode()


@cache
def _code() -> bytes:
    """Return a digest of the code and of the libraries that make the arrays."""
    # All code of four rooms: coarser than needed, but what older code made can never be read.
    root = Path(__file__).parents[2]
    files = (path for room in _CODE for ending in ("*.py", "*.toml") for path in (root / room).rglob(ending))
    digest = hashlib.sha256(f"numpy {np.__version__}, pyarrow {pa.__version__}".encode())
    for path in sorted(files):
        digest.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()
