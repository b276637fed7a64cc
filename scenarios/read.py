"""Paths in, conversations out: which files there are, which format each has, and every conversation checked.

This is the one way recordings come in. Nothing is lost in silence: what could not be read is in `Problems.found`,
files of a folder that are no recordings are in `Problems.ignored`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from . import spec
from .check import check
from .errors import Place, RecordingError
from .model import Conversation
from .readers import Reader, readers
from .source import Problems, files_below, head, key_paths


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that one reader reads together."""

    reader: Reader
    files: tuple[Path, ...]


def read(batches: Iterable[Batch], problems: Problems) -> Iterator[Conversation]:
    """Every conversation of the batches that is whole, with ids made unique by a suffix `~2`, `~3` …"""
    seen: dict[str, int] = {}
    for batch in batches:
        try:
            for place, conversation in batch.reader.read(batch.files, problems):
                try:
                    check(conversation, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                count = seen[conversation.id] = seen.get(conversation.id, 0) + 1
                name = conversation.id if count == 1 else f"{conversation.id}~{count}"
                yield msgspec.structs.replace(conversation, id=name, source=conversation.source or str(place))
        except RecordingError as error:
            problems.add(error)
        except OSError as error:
            where = str(batch.files[0]) if batch.files else spec.spec("format", batch.reader)
            problems.add(RecordingError(Place(where), f"cannot be read: {error.strerror or error}"))


def find(paths: Iterable[Path], problems: Problems, form: str | None = None) -> list[Batch]:
    """The batches that stand at these paths, in the order given, folders walked in sorted order.

    A path that does not exist, and a named file of no known format, are problems. Inside a folder such a file is only
    ignored, by name. `form` is a reader written as text and takes every file.
    """
    given = parse_format(form) if form else None
    batches: list[Batch] = []
    for path in paths:
        if path.is_dir():
            files: Sequence[Path] = files_below(path)
        elif path.is_file():
            files = [path]
        else:
            problems.add(RecordingError(Place(str(path)), "there is no such file or folder", "check the path"))
            continue
        known = [(given or detect(each), each) for each in files]
        for reader, each in known:
            if reader is None:
                _unknown(each, problems, named=path.is_file())
        batches += _grouped([(reader, each) for reader, each in known if reader is not None])
    return batches


def detect(path: Path) -> Reader | None:
    """The reader whose shape fits the start of the file best, with its default options; None if none does."""
    try:
        keys = key_paths(head(path))
    except OSError:
        return None
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
        problems.ignored.append(str(path))
        return
    if not path.stat().st_size:
        problems.add(RecordingError(Place(str(path)), "the file is empty", "leave it out"))
        return
    formats = ", ".join(readers())
    problems.add(RecordingError(Place(str(path)), "no known format fits", f"name one with --format: {formats}"))


def _grouped(known: list[tuple[Reader, Path]]) -> Iterator[Batch]:
    """Files of one folder together where their reader wants that, in the order of their first files."""
    for (reader, _), group in groupby(known, key=lambda pair: (pair[0], pair[1].parent)):
        files = tuple(path for _, path in group)
        if reader.folder:
            yield Batch(reader, files)
        else:
            yield from (Batch(reader, (path,)) for path in files)
