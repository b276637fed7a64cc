"""A disk for tests: it does not wait, and it can fill up, be read-only, or lose power after any byte."""

from __future__ import annotations

import errno
import os
from typing import Any


class PowerCut(BaseException):
    """Nothing runs after this."""


class Disk:
    """Stands for the module `os` where files are written. Every byte written and every other change is one step."""

    def __init__(self, steps: float = float("inf"), error: int | None = None) -> None:
        self.taken, self._steps, self._error = 0, steps, error
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, handle: int, data: memoryview) -> int:
        room = int(min(len(data), self._steps - self.taken))
        if room <= 0:
            self._end()
        self.taken += room
        return os.write(handle, data[:room])

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            self._step(f"create {os.path.basename(path)}")
        return os.open(path, flags, mode)

    def replace(self, source: Any, target: Any) -> None:
        self._step(f"replace {os.path.basename(target)}")
        os.replace(source, target)

    def unlink(self, path: Any) -> None:
        if self._error is None:
            self._step(f"unlink {os.path.basename(path)}")
        os.unlink(path)

    def fsync(self, handle: int) -> None:
        self.log.append("fsync")

    def _step(self, what: str) -> None:
        if self.taken >= self._steps:
            self._end()
        self.taken += 1
        self.log.append(what)

    def _end(self) -> None:
        if self._error is not None:
            raise OSError(self._error, os.strerror(self._error))
        raise PowerCut


FULL, READ_ONLY = errno.ENOSPC, errno.EROFS
