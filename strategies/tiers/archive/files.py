"""Files that are written whole or not at all, and checked whenever they are read.

A file is written beside its place, synced, moved there, and its folder synced. So whenever the writer is killed, what
stood there before stands there, or what was written, and nothing between.

The checksum is CRC-32C: it finds every change of one bit, and every burst of up to 32, of any length that a file here
can have. (A hash such as xxh64 misses one by chance only, but may.) It is taken over the compressed bytes, in
hardware.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ....scenarios.errors import MissingExtra
from .errors import Damaged, telling

BESIDE = ".new"
"""What the name of a file ends with that is not in its place yet."""


@cache
def _crc() -> Callable[[bytes], int]:
    try:
        from google_crc32c import value
    except ModuleNotFoundError:
        raise MissingExtra("google-crc32c", "tiers") from None
    return value  # type: ignore[no-any-return]


def checksum(data: bytes) -> int:
    """CRC-32C of some bytes."""
    return _crc()(data)


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in its place, whole. Raises ArchiveError, and then nothing has changed."""
    beside = path.with_name(path.name + BESIDE)
    with telling(path.parent):
        try:
            _write(beside, data)
            os.replace(beside, path)
        except OSError:
            remove(beside)
            raise
        sync_folder(path.parent)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file if it is there. That it cannot be removed is no harm: it is tried again at the next opening."""
    try:
        os.unlink(path)
    except OSError:
        return


def read_checked(path: Path, start: int, size: int, expected: int) -> bytes:
    """Bytes of a file that are as they were written. Raises Damaged, FileNotFoundError, ArchiveError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        data = os.pread(handle, size, start)
    finally:
        os.close(handle)
    if len(data) < size:
        raise Damaged(path, f"it ends after {start + len(data)} bytes, {start + size} are wanted")
    if checksum(data) != expected:
        raise Damaged(path, f"bytes {start} to {start + size} are not what was written: the checksum differs")
    return data
