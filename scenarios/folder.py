"""The files of a folder, and what in it is not read: named, with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from .errors import RecordingError
from .source import Problems, unreadable

COMPRESSED = "compressed: unpack it first"
_PACKED = (".gz", ".zst", ".zip", ".bz2", ".xz")


def is_compressed(path: Path) -> bool:
    """Whether a file's name says that it is compressed, which no reader of ours undoes."""
    return path.suffix.lower() in _PACKED


def files_below(folder: Path, problems: Problems) -> Sequence[Path]:
    """The files below a folder in sorted order. Hidden entries are left out and counted in `problems.ignored`.

    A link to a file in the folder is that file. Other links, pipes and devices are ignored by name.
    """
    root = folder.resolve()
    found: list[Path] = []
    ignored: list[str] = []
    hidden = 0
    for parent, folders, files in os.walk(folder, onerror=lambda error: problems.add(_unlisted(error))):
        hidden += sum(name.startswith(".") for name in (*folders, *files))
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for path in (Path(parent, name) for name in (*files, *linked) if not name.startswith(".")):
            if why := _why_not(path, root):
                ignored.append(f"{path}: {why}")
            else:
                found.append(path)
    problems.ignored += sorted(ignored)
    if hidden:
        problems.ignored.append(f"{folder}: {hidden} hidden")
    return sorted(found)


def _why_not(path: Path, root: Path) -> str:
    """Why this is no file to read; empty if it is one."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        mode = stat.S_IFREG  # reading it says why not
    except OSError:
        return "a link that leads nowhere"
    if not path.resolve().is_relative_to(root):
        return "a link that leads out of the folder"
    if stat.S_ISDIR(mode):
        return "a link to a folder"
    return "" if stat.S_ISREG(mode) else "neither a file nor a folder"


def _unlisted(error: OSError) -> RecordingError:
    return unreadable(Path(error.filename), error)
