"""Paths in, conversations out: which files there are, which format each has, and every conversation checked.

This is the one way recordings come in. Nothing is lost in silence: what could not be read is in `Problems.found`,
files of a folder that are no recordings are in `Problems.ignored`, what was named twice or renamed in `Problems.notes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from . import spec
from .check import check, without_bad_probes, without_bad_usage
from .errors import Place, RecordingError
from .folder import COMPRESSED, files_of, is_compressed
from .model import Conversation
from .readers import Reader, readers
from .source import Problems, head, key_paths, unreadable

_NOTHING = {
    True: ("no conversation is in it", "leave it out"),
    False: ("no conversation is there, and no path is given", "name the files or folders to read"),
}
"""What to say, and what to do, when reading brought nothing, with files and without."""
_SMALL = 1 << 16
"""Bytes of a file in which brackets without content are looked for."""
_BRACKETS = re.compile(rb"[\s\[\]{},]*+")
_EMPTY = re.compile(rb'"([^"\\]+)"\s*:\s*\[\s*\]')


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that one reader reads together."""

    reader: Reader
    files: tuple[Path, ...]


def read(batches: Iterable[Batch], problems: Problems, first: Iterable[Conversation] = ()) -> Iterator[Conversation]:
    """Every conversation of the batches that is whole, after those of `first`.

    Ids are made unique by a suffix `~2`, `~3` …, and a note says so when all are read.
    """
    names = _Names()
    for conversation in first:
        yield msgspec.structs.replace(conversation, id=names.unique(conversation.id))
    for batch in batches:
        where = Place(str(batch.files[0]) if batch.files else f"--format {_name(batch.reader)}")
        empty, told, ignored = True, len(problems.found), len(problems.ignored)
        try:
            for place, conversation in batch.reader.read(batch.files, problems):
                empty = False
                conversation = without_bad_usage(conversation, place, problems)
                conversation = without_bad_probes(conversation, place, problems)
                try:
                    check(conversation, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                name = names.unique(conversation.id)
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
    problems.notes += names.note()


class _Names:
    """The ids given to conversations, each once."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._renamed: list[str] = []

    def unique(self, name: str) -> str:
        """The name, or with a suffix if it has been given before."""
        unique = name
        while unique in self._seen:
            self._seen[name] += 1
            unique = f"{name}~{self._seen[name]}"
        if unique != name:
            self._renamed.append(unique)
        self._seen[unique] = 1
        return unique

    def note(self) -> list[str]:
        """That some were renamed; nothing if none was."""
        if not self._renamed:
            return []
        some = ", ".join(self._renamed[:4]) + " …" * (len(self._renamed) > 4)
        had, were = ("conversation", "was") if len(self._renamed) == 1 else ("conversations", "were")
        return [f"{len(self._renamed)} {had} had the id of an earlier one and {were} given another: {some}"]


def find(paths: Iterable[Path], problems: Problems, form: str | None = None) -> list[Batch]:
    """The batches that stand at these paths, in the order given, folders walked in sorted order.

    A path that does not exist, and a named file of no known format, are problems. Inside a folder such a file is only
    ignored, by name. `form` is a reader written as text and takes every file. A file that is named twice is read once.
    """
    given = parse_format(form) if form else None
    batches: list[Batch] = []
    for path, files in files_of(paths, problems):
        known: list[tuple[Reader, Path]] = []
        for each in files:
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
    what, remedy = _nothing_in(path)
    if named:
        formats = f"name one with --format: {', '.join(readers())}"
        problems.add(RecordingError(Place(str(path)), what or "no known format fits", remedy if what else formats))
    else:
        problems.ignored.append(f"{path}: {what}" if what else str(path))


def _nothing_in(path: Path) -> tuple[str, str]:
    """Why there is nothing to read in a file, and what to do; empty if there is something, whatever it is."""
    if is_compressed(path):
        return COMPRESSED, ""
    start = head(path)
    if not start.strip():
        return "the file is empty", "leave it out"
    if len(start) <= _SMALL and (_BRACKETS.fullmatch(start) or _has_empty_lists(start)):
        return _NOTHING[True]
    return "", ""


def _has_empty_lists(text: bytes) -> bool:
    """Whether some format's shape is there but for what stands in lists, which are empty: `{"messages": []}`."""
    keys, empty = key_paths(text), {name.decode("utf-8", "replace") for name in _EMPTY.findall(text)}
    missing = [shape - keys for kind in readers().values() for shape in kind.shapes if shape & keys]
    lists = [{path.rpartition("[]")[0] for path in paths} for paths in missing]
    return any(paths <= keys and {path.rpartition(".")[2] for path in paths} <= empty for paths in lists)


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
