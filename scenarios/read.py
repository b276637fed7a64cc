"""Paths in, conversations out: which files there are, which format each has, and every conversation checked.

This is the one way recordings come in. Nothing is lost in silence: what could not be read is in `Problems.found`,
files of a folder that are no recordings are in `Problems.ignored`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from . import spec
from .check import check
from .errors import Place, RecordingError
from .folder import COMPRESSED, files_below, is_compressed
from .model import Conversation
from .readers import Reader, readers
from .source import Problems, head, key_paths, unreadable

_NOTHING = {
    True: ("no conversation is in it", "leave it out"),
    False: ("no conversation is there, and no path is given", "name the files or folders to read"),
}
"""What to say, and what to do, when reading brought nothing, with files and without."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that one reader reads together."""

    reader: Reader
    files: tuple[Path, ...]


def read(batches: Iterable[Batch], problems: Problems, first: Iterable[Conversation] = ()) -> Iterator[Conversation]:
    """Every conversation of the batches that is whole, after those of `first`.

    Ids are made unique by a suffix `~2`, `~3` …
    """
    seen: dict[str, int] = {}
    for conversation in first:
        yield msgspec.structs.replace(conversation, id=_unique(conversation.id, seen))
    for batch in batches:
        where = Place(str(batch.files[0]) if batch.files else f"--format {_name(batch.reader)}")
        empty, told, ignored = True, len(problems.found), len(problems.ignored)
        try:
            for place, conversation in batch.reader.read(batch.files, problems):
                empty = False
                try:
                    check(conversation, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                name = _unique(conversation.id, seen)
                yield msgspec.structs.replace(conversation, id=name, source=conversation.source or str(place))
            silent = empty and (told, ignored) == (len(problems.found), len(problems.ignored))
            if silent and not (batch.files and batch.reader.folder):  # these may belong to the files of another folder
                raise RecordingError(where, *_NOTHING[bool(batch.files)])
        except RecordingError as error:
            problems.add(_explained(error, batch) if empty and problems.strict else error)
        except OSError as error:
            problems.add(unreadable(Path(where.file), error))
        if empty and len(problems.found) > told:
            problems.found[told] = _explained(problems.found[told], batch)


def _unique(name: str, seen: dict[str, int]) -> str:
    """The name, or with a suffix if it has been given before. `seen` counts how often each was."""
    unique = name
    while unique in seen:
        seen[name] += 1
        unique = f"{name}~{seen[name]}"
    seen[unique] = 1
    return unique


def find(paths: Iterable[Path], problems: Problems, form: str | None = None) -> list[Batch]:
    """The batches that stand at these paths, in the order given, folders walked in sorted order.

    A path that does not exist, and a named file of no known format, are problems. Inside a folder such a file is only
    ignored, by name. `form` is a reader written as text and takes every file.
    """
    given = parse_format(form) if form else None
    batches: list[Batch] = []
    for path in paths:
        known: list[tuple[Reader, Path]] = []
        for each in _files(path, problems):
            try:
                reader = given or detect(each)
            except RecordingError as error:
                problems.add(error)
                continue
            if reader is None:
                _unknown(each, problems, named=each == path)
            else:
                known.append((reader, each))
        batches += _grouped(known)
    return batches


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


def detect(path: Path) -> Reader | None:
    """The reader whose shape fits the start of the file best, with its default options; None if none does.

    Raises RecordingError if the file cannot be read.
    """
    keys = key_paths(head(path))
    fits = [(max(_fit(shape, keys) for shape in kind.shapes), name) for name, kind in readers().items() if kind.shapes]
    size, name = max(fits, default=(0, ""))
    return readers()[name]() if size else None


def parse_format(text: str) -> Any:
    """A reader from its name and options, as `--format` takes it."""
    return spec.parse(text, readers(), "format")


def _fit(shape: frozenset[str], keys: frozenset[str]) -> int:
    """How many key paths the shape asks for if all are there, else 0. `*` in a path stands for any one key."""
    plain = {path for path in shape if "*" not in path}
    patterns = [re.escape(path).replace(r"\*", r"[^.\[]+") for path in shape - plain]
    there = plain <= keys and all(any(re.fullmatch(pattern, key) for key in keys) for pattern in patterns)
    return len(shape) if there else 0


def _unknown(path: Path, problems: Problems, named: bool) -> None:
    if not named:
        problems.ignored.append(f"{path}: {COMPRESSED}" if is_compressed(path) else str(path))
        return
    what, remedy = "no known format fits", f"name one with --format: {', '.join(readers())}"
    if is_compressed(path):
        what, remedy = COMPRESSED, ""
    elif not head(path).strip():
        what, remedy = "the file is empty", "leave it out"
    problems.add(RecordingError(Place(str(path)), what, remedy))


def _explained(said: RecordingError, batch: Batch) -> RecordingError:
    """The first complaint on files that gave nothing, with what is there if its file is not of the reader's format."""
    path, shapes = Path(said.place.file), batch.reader.shapes
    if is_compressed(path):
        return RecordingError(Place(said.place.file), COMPRESSED)
    try:
        start = head(path) if path in batch.files else b""
    except RecordingError:
        return said
    keys = key_paths(start)
    if not start.strip() or not shapes or any(_fit(shape, keys) for shape in shapes):
        return said
    wanted = max(shapes, key=lambda shape: len(shape & keys))
    there = sorted(keys, key=lambda key: (key.count("."), key))
    found = ", ".join(there[:6]) + " …" * (len(there) > 6) or "no keys"
    what = f"{said.what}; {_name(batch.reader)} looks for {', '.join(sorted(wanted))}, and finds {found}"
    other = detect(path)
    return RecordingError(said.place, what, f"--format {_name(other)} fits it" if other else "no known format fits it")


def _name(reader: Reader) -> str:
    kind = type(reader)
    return spec.spec(next((name for name, known in readers().items() if known is kind), kind.__name__), reader)


def _grouped(known: Iterable[tuple[Reader, Path]]) -> list[Batch]:
    """Files of one folder together where their reader wants that, in the order of their first files."""
    together: dict[tuple[Reader, Path], list[Path]] = {}
    for reader, path in known:
        together.setdefault((reader, path.parent if reader.folder else path), []).append(path)
    return [Batch(reader, tuple(files)) for (reader, _), files in together.items()]
