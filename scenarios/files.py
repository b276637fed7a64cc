"""Files that the user names, opened and written to in one place: none of them waits for ever or takes all memory.

A device never ends, and a pipe may never begin. Both are refused, as input and as output: `-` is standard input and
output where a command says so. Recordings are streamed; a file that is read whole has a limit, by its kind. The tables
that come with ctxbench are read by `shipped`.
"""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from functools import cache
from hashlib import sha256
from importlib import resources
from io import BufferedReader
from pathlib import Path
from typing import Any

from .errors import UserError

SETTINGS = 4 << 20
"""Most bytes of a file that people write: settings, prices, a policy, a profile, a strategy. TOML is read at 2 MB/s."""
LARGEST = 1 << 30  # most bytes of a file that ctxbench writes and reads whole: a baseline, a manifest

# A pipe that nobody writes to is opened at once with this flag, and waited for without it. Windows has no such pipes.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def cache_folder() -> Path:
    """Return the user's cache of ctxbench, which need not exist: `$XDG_CACHE_HOME/ctxbench`, or `~/.cache/ctxbench`.

    Raises UserError for a user without a home.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "ctxbench"
    except RuntimeError:
        raise UserError("there is no home folder for the cache: set XDG_CACHE_HOME to a folder") from None


@cache
def shipped(name: str) -> dict[str, Any]:
    """Return the tables of a file of `scenarios/data`."""
    return tomllib.loads((resources.files(__package__) / "data" / f"{name}.toml").read_text("utf-8"))


ROOMS = tuple(Path(__file__).parents[1] / name for name in ("scenarios", "metrics", "strategies", "harness"))
"""Folders of the code, word lists and tables that figures depend on."""
_CODE = (".py", ".toml", ".txt", ".json", ".html", ".css", ".js")


@cache
def code_digest(*rooms: Path) -> bytes:
    """Return a digest of the code that figures depend on, or of other folders and files: no other code counts."""
    digest = sha256()
    for room in rooms or ROOMS:
        places = [os.path.join(at, name) for at, _, names in os.walk(room) for name in names] or [str(room)]
        for place in sorted(place for place in places if place.endswith(_CODE)):
            name = f"{room.name}{place[len(str(room)) :]}"
            digest.update(f"{name}\0".encode() + sha256(Path(place).read_bytes()).digest())
    return digest.digest()


def open_file(path: Path) -> BufferedReader:
    """Open a file for its bytes. Raises OSError if it cannot be read, or is a pipe or a device."""
    return open(path, "rb", opener=_handle)


def _handle(name: str, flags: int) -> int:
    handle = os.open(name, flags | _AT_ONCE)
    try:
        _check_kind(os.fstat(handle).st_mode, name)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_file(path: Path, most: int = SETTINGS) -> bytes:
    """Read a whole file. Raises OSError if it cannot be read, is a pipe or a device, or has more than `most` bytes."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        what = f"it has over {most >> 20:,} MiB, which no file of this kind has"
        raise OSError(errno.EFBIG, what, str(path))
    return data


def check_file(path: Path) -> None:
    """Raise OSError if a folder, a pipe or a device stands where a file is to be read or written."""
    # As root, a written file would take the place of /dev/null, and break the machine.
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing is there, or it cannot be told: the error comes when it is used
        return
    _check_kind(mode, str(path))


def _check_kind(mode: int, name: str) -> None:
    """Raise OSError for the mode of anything but a file."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise OSError(errno.EINVAL, f"it is {what}, not a file", name)
