"""Find what was computed before again by content, in the user's cache, for any run, command or worker.

A key is a digest over all that a value depends on: the recording, the strategy with its code, the encoding, the
versions of libraries, and the code of ctxbench itself. So nothing has to be renewed; what was not asked for longest
goes first.
No run needs the cache: a file that is damaged, held or cannot be written is as good as an empty one.

`CTXBENCH_CACHE` names another folder than the user's cache, or is `off`.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from time import time

from ctxbench.scenarios.files import cache_folder
from ctxbench.strategies.base import Strategy
from ctxbench.strategies.chain import Chain, packages, spec

VARIABLE = "CTXBENCH_CACHE"
LARGEST = 2 << 30  # bytes of the file; what was not asked for longest is removed
_DAY = 24 * 3600
_TABLE = "CREATE TABLE IF NOT EXISTS value (key BLOB PRIMARY KEY, day INTEGER, digest BLOB, data BLOB) WITHOUT ROWID"
_GET = "SELECT data, digest, day FROM value WHERE key = ?"
_OLDEST = "DELETE FROM value WHERE day <= (SELECT day FROM value ORDER BY day LIMIT 1 OFFSET ?)"


def path() -> Path | None:
    """Return the file of the cache; None if there is to be none."""
    text = os.environ.get(VARIABLE, "")
    return None if text == "off" else (Path(text) if text else cache_folder()) / "results.sqlite"


class ResultCache:
    """An open cache. One per process: it does not survive a fork."""

    def __init__(self, file: Path | None) -> None:
        """Open a file, or none: then nothing is found and nothing kept."""
        self._open: sqlite3.Connection | None = None
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
            self._give_up(file, error)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it is not known."""
        if self._open is None or not key:
            return None
        try:
            row = self._open.execute(_GET, (key,)).fetchone()
            if row is None or _digest(row[0]) != row[1]:
                return None
            if row[2] != (today := int(time() / _DAY)):
                self._open.execute("UPDATE value SET day = ? WHERE key = ?", (today, key))
            return bytes(row[0])
        except (sqlite3.Error, TypeError):
            return None

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values by their keys."""
        rows = [(key, int(time() / _DAY), _digest(data), data) for key, data in values.items() if key]
        if self._open is None or not rows:
            return
        with suppress(sqlite3.Error):
            self._open.executemany("INSERT OR REPLACE INTO value VALUES (?, ?, ?, ?)", rows)
            while self.size() > LARGEST:
                count = self._open.execute("SELECT COUNT(*) FROM value").fetchone()[0]
                self._open.execute(_OLDEST, (count // 8,))

    def size(self) -> int:
        """Return the bytes of what is kept."""
        if self._open is None:
            return 0
        pages, free, each = (
            self._open.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * each)

    def _give_up(self, file: Path, error: Exception) -> None:
        """Do without. A file that is no database is removed, so that the next command has a cache again."""
        self._open = None
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                file.unlink()


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
    versions = [f"{name} {version(name)}" for name in ("quicktok-v1", "msgspec", "pyarrow", "numpy")]
    machine = f"{platform.python_version()} {platform.machine()}"
    return key(*parts, *versions, machine, code(_rooms())).hex()


def of_strategy(strategy: Strategy) -> bytes:
    """Return the digest of a strategy: its text, the packages that bring it, and code that is no package's."""
    stages = strategy.stages if isinstance(strategy, Chain) else (strategy,)
    foreign = any(not type(stage).__module__.startswith("ctxbench.") for stage in stages)
    texts = [f"{name} {whose}" for name, whose in packages(strategy).items()]
    return key(spec(strategy), *texts, code(_local_modules()) if foreign else b"")


def code(paths: Iterable[Path]) -> bytes:
    """Return the digest of files."""
    return key(*(part for path in sorted(paths) for part in (str(path), path.read_bytes())))


@cache
def _rooms() -> Sequence[Path]:
    """Return the files of ctxbench that figures depend on."""
    rooms = [Path(str(files("ctxbench"))) / room for room in ("scenarios", "metrics", "strategies", "harness")]
    return [path for room in rooms for path in room.resolve().rglob("*") if path.suffix in (".py", ".toml", ".txt")]


def _local_modules() -> Iterable[Path]:
    """Yield the files of the modules that are loaded, but for installed packages and Python's own."""
    installed = tuple(map(os.path.realpath, sysconfig.get_paths().values()))
    for module in list(sys.modules.values()):
        file = os.path.realpath(getattr(module, "__file__", None) or "")
        is_own = file.startswith(installed) or module.__name__.startswith("ctxbench.")
        if file.endswith(".py") and os.path.isfile(file) and not is_own:
            yield Path(file)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
