"""What can be wrong with an archive, as one line: where, what, and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ....scenarios.errors import UserError

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space"),
    errno.EROFS: ("the disk is read-only", "name a folder that can be written, or open it with write=False"),
    errno.EACCES: ("no permission", "name a folder that can be written, or open it with write=False"),
    errno.EPERM: ("no permission", "name a folder that can be written, or open it with write=False"),
    errno.ENOTDIR: ("a part of its path is a file", "name a folder"),
    errno.EEXIST: ("it is a file", "name a folder"),
}


class ArchiveError(UserError):
    """An archive that cannot be opened, written or read as it is."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        self.path, self.what, self.remedy = path, what, remedy
        super().__init__(f"{path}: {what} ({remedy})")


class Damaged(ArchiveError):
    """A file of an archive is not what was written: a bit, a byte or its end is wrong."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path, what, "restore this file from a backup; what other files hold can still be read")


def told(path: Path, error: OSError) -> ArchiveError:
    """What the system says of a path, as one line."""
    what, remedy = _REASONS.get(error.errno or 0, (error.strerror or str(error), "see what the system says"))
    return ArchiveError(path, what, remedy)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Turn what the system says of a path into one line."""
    try:
        yield
    except OSError as error:
        raise told(path, error) from None
