"""What caches do with a run's requests, kept in the run's folder: it is simulated once, whatever is billed after.

`bills/SCHEME.parquet` has what is read and written of every request under one scheme, in the order of the table
`steps`. Prices are not in it. It counts as long as what it was made from is as it was, to the byte: the run's files,
and the code that simulates. What does not count, or is damaged, is simulated and written anew; a folder that cannot be
written is left as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..loading import Run
from ..store import placed
from .cells import Cells
from .simulate import Scheme, Usages, simulate

FOLDER = "bills"
_TABLES = ("steps", "messages", "contexts", "conversations", "recordings")
_CODE = ("scenarios", "metrics", "harness")
_ORIGIN = b"made_from"


def simulated(cells: Cells, schemes: Sequence[Scheme], done: Callable[[], object] | None = None) -> list[Usages]:
    """Every cell under every scheme, as `simulate` has it. `done` is called after each cell that has to be."""
    origin = _origin(cells.run)
    kept = {scheme: _read(_path(cells.run, scheme), origin) for scheme in schemes}
    found = {scheme: usages for scheme, usages in kept.items() if usages is not None}
    missing = [scheme for scheme in kept if scheme not in found]
    for scheme, usages in zip(missing, simulate(cells, missing, done) if missing else (), strict=True):
        found[scheme] = usages
        with suppress(OSError):
            _write(_path(cells.run, scheme), usages, origin)
    return [found[scheme] for scheme in schemes]


def _path(run: Run, scheme: Scheme) -> Path:
    """Of a run that is confined to some conversations another than of all."""
    plain = re.sub(r"[^\w.-]", "_", f"{scheme.model}-{scheme.placement}")[:100]
    exact = hashlib.sha256(repr((scheme, sorted(run.chosen or ()))).encode()).hexdigest()[:8]
    return run.folder / FOLDER / f"{plain}-{exact}.parquet"


def _read(path: Path, origin: bytes) -> Usages | None:
    try:
        if (pq.read_schema(path).metadata or {}).get(_ORIGIN) != origin:
            return None
        table = pq.read_table(path, columns=list(Usages._fields), page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return None
    return Usages(*(table.column(name).to_numpy() for name in Usages._fields))


def _write(path: Path, usages: Usages, origin: bytes) -> None:
    table = pa.table(usages._asdict()).replace_schema_metadata({_ORIGIN: origin})
    with placed(path) as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def _origin(run: Run) -> bytes:
    """A digest of the run's files and of the code."""
    files = (path for table in _TABLES for path in (run.folder / table).glob("*") if path.is_file())
    return hashlib.sha256(_digest(files, run.folder) + _code()).hexdigest().encode()


@cache
def _code() -> bytes:
    """With the versions of what the arrays are made with."""
    root = Path(__file__).parents[2]
    files = (path for room in _CODE for path in (root / room).rglob("*.py"))
    return _digest(files, root) + f"numpy {np.__version__}, pyarrow {pa.__version__}".encode()


def _digest(files: Iterable[Path], root: Path) -> bytes:
    made = hashlib.sha256()
    for path in sorted(files):
        made.update(str(path.relative_to(root)).encode() + b"\0")
        made.update(hashlib.sha256(path.read_bytes()).digest())
    return made.digest()
