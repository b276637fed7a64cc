"""The files that paths name, each once, and what of a folder is not read: named, with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from .errors import Place, RecordingError
from .source import Problems, unreadable

COMPRESSED = "compressed: unpack it first"
_PACKED = (".gz", ".zst", ".zip", ".bz2", ".xz")


def is_compressed(path: Path) -> bool:
    """Whether a file's name says that it is compressed, which no reader of ours undoes."""
    return path.suffix.lower() in _PACKED


def files_of(paths: Iterable[Path], problems: Problems) -> list[tuple[Path, Sequence[Path]]]:
    """The files that each path names. One that several name, or that has several names, is read once, and it is said.

    It is read where it was named first, but with a folder that has it if there is one: the files of a folder may be one
    recording.
    """
    named = [(path, _files(path, problems)) for path in paths]
    seen: set[Hashable] = set()
    once: dict[int, Sequence[Path]] = {}
    for at in sorted(range(len(named)), key=lambda at: not os.path.isdir(named[at][0])):
        once[at] = _new(named[at][1], seen)
    for at, (path, files) in enumerate(named):
        if more := len(files) - len(once[at]):
            which = f"{more} of {len(files)} files" if os.path.isdir(path) else "a file"
            problems.notes.append(f"{path}: {which} named more than once, read once")
    return [(path, once[at]) for at, (path, _) in enumerate(named)]


def _new(files: Sequence[Path], seen: set[Hashable]) -> Sequence[Path]:
    """The files that are not among those seen, each once; they are from now on."""
    new: list[Path] = []
    for path in files:
        if (file := _file(path)) not in seen:
            seen.add(file)
            new.append(path)
    return new


def _file(path: Path) -> Hashable:
    """What is the same for all names of a file. A file that is shut to us is what its name says."""
    try:
        found = path.stat()
    except OSError:
        return path
    return (found.st_dev, found.st_ino) if found.st_ino else path


def _files(path: Path, problems: Problems) -> Sequence[Path]:
    """The files that a path names. `os.path` says no where `Path` raises: a name too long, a folder shut to us."""
    if os.path.isdir(path):
        return files_below(path, problems)
    if os.path.isfile(path):
        return [path]
    what, remedy = "there is no such file or folder", "check the path"
    if os.path.exists(path):
        what, remedy = "this is neither a file nor a folder", "save what it gives in a file"
    problems.add(RecordingError(Place(str(path)), what, remedy))
    return []


def files_below(folder: Path, problems: Problems) -> Sequence[Path]:
    """The files below a folder in sorted order. Hidden entries are left out and counted in `problems.ignored`.

    A link to a file in the folder is that file. Other links, pipes and devices are ignored by name. A folder with
    nothing in it is a problem.
    """
    root = folder.resolve()
    found: list[Path] = []
    ignored: list[str] = []
    hidden, told = 0, len(problems.found)
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
    if not (found or ignored or hidden or len(problems.found) > told):
        problems.add(RecordingError(Place(str(folder)), "no file is in this folder", "check the path"))
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
