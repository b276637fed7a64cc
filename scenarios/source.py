"""Files as records: JSON Lines, JSON arrays and single JSON objects, streamed, each record with its place.

A damaged record is one RecordingError with file, line and field, collected in Problems; the records around it are
still read. Memory follows the longest record, not the file.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import Place, RecordingError

T = TypeVar("T")

LONGEST = 64 * 1024 * 1024
"""Bytes in one record. A longer one is an error, so that no line can take all memory."""

_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Problems:
    """What went wrong while reading, in order. With `strict`, the first problem stops the reading instead."""

    strict: bool = False
    found: list[RecordingError] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Files of a folder that are no recordings: named, not errors."""
    consumed: int = 0
    """Bytes read so far, for the progress bar."""

    def add(self, error: RecordingError) -> None:
        """Keep a problem and go on; the record that has it is left out."""
        if self.strict:
            raise error
        self.found.append(error)


def decode(raw: bytes | msgspec.Raw, kind: type[T], place: Place) -> T:
    """One JSON record as `kind`, or a RecordingError that names the field (below `place`'s, if that is one already)."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _mismatch(error, place) from None
    except UnicodeDecodeError as error:
        raise RecordingError(place, f"not UTF-8 ({error.reason})", "save the file as UTF-8") from None
    except RecursionError:
        raise RecordingError(place, "nested too deep", "flatten it") from None
    except msgspec.DecodeError as error:
        raise RecordingError(place, *_malformed(bytes(raw), str(error))) from None


def convert(value: Any, kind: type[T], place: Place) -> T:
    """A decoded value as `kind`, or a RecordingError that names the field below `place`."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _mismatch(error, place) from None


def json_text(part: msgspec.Raw) -> str:
    """A part of a record as the JSON text that was recorded. ValueError if it is not UTF-8, which Raw does not see."""
    try:
        return bytes(part).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason})") from None


def _mismatch(error: msgspec.ValidationError, place: Place) -> RecordingError:
    what, _, path = str(error).partition(" - at `")
    field = (place.field + path.rstrip("`").removeprefix("$")).removeprefix(".")
    return RecordingError(place.at(field), what[:1].lower() + what[1:].replace("`", ""))


def _malformed(raw: bytes, message: str) -> tuple[str, str]:
    if _SURROGATE.search(raw):
        return "a \\u escape is half of a surrogate pair, which is no character", "repair or remove the escape"
    if "trailing" in message:
        return "more than one JSON value stands here", "put each record on a line of its own"
    if "truncated" in message:
        return "the JSON ends in the middle", "the file was cut off: copy it again, or remove this record"
    return f"not JSON: {message.removeprefix('JSON is malformed: ')}", ""


def whole(path: Path, problems: Problems) -> bytes:
    """All bytes of a file that is one record."""
    place = Place(str(path))
    if path.stat().st_size > 16 * LONGEST:
        raise RecordingError(place, f"one record of over {16 * LONGEST >> 20} MiB", "split it, or use JSON Lines")
    data = path.read_bytes()
    problems.consumed += len(data)
    if not data.strip():
        raise RecordingError(place, "the file is empty", "leave it out")
    return data.removeprefix(_BOM)


def lines(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """The lines of a file that are not blank, without their ends. One over LONGEST is a problem and is passed over."""
    name = str(path)
    any_line = False
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            problems.consumed += len(line)
            if len(line) > LONGEST:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST)
                    problems.consumed += len(line)
                what = f"a line of over {LONGEST >> 20} MiB"
                problems.add(RecordingError(Place(name, number), what, "one record a line; split or drop this one"))
                any_line = True
                continue
            if number == 1:
                line = line.removeprefix(_BOM)
            if line := line.strip(_BLANK):
                any_line = True
                yield Place(name, number), line
    if not any_line:
        raise RecordingError(Place(name), "the file is empty", "leave it out")


def records(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """The records of a file, whichever form it has: the elements of a JSON array, one JSON object, or JSON Lines.

    Lines that are arrays are records too; a file of one such line is an array.
    """
    with path.open("rb") as file:
        head = file.read(LONGEST).removeprefix(_BOM).lstrip(_BLANK)
    if head.startswith(b"["):
        several = head.partition(b"\n")[2].strip(_BLANK) and _is_lines(head)
        yield from lines(path, problems) if several else elements(path, problems)
    elif _is_lines(head):
        yield from lines(path, problems)
    else:
        yield Place(str(path), 1), whole(path, problems)


def _is_lines(head: bytes) -> bool:
    """Whether a file is JSON Lines: its first line is a value of its own, or a second object follows it."""
    first, _, rest = head.partition(b"\n")
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return rest.lstrip(_BLANK).startswith(b"{") and not first.strip(_BLANK).endswith((b"{", b"[", b","))
    return True


def elements(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """The elements of a file that is one JSON array, streamed: what stands before a damaged place is still read."""
    name = str(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start, line, counted, depth, released = 0, 1, 0, 0, 0
        for token in _TOKEN.finditer(data):
            byte = token.group()[:1]
            if byte in b"[{":
                depth += 1
                if depth == 1:
                    start = token.end()
            if (byte in b"]}" and depth == 1) or (byte == b"," and depth == 1):
                raw = data[start : token.start()]
                if raw.strip(_BLANK):
                    lead = len(raw) - len(raw.lstrip(_BLANK))
                    line, counted = line + data[counted : start + lead].count(b"\n"), start + lead
                    yield Place(name, line), raw.strip(_BLANK)
                problems.consumed += token.end() - start
                start = token.end()
                if hasattr(data, "madvise") and start - released > LONGEST:
                    keep = start // mmap.PAGESIZE * mmap.PAGESIZE
                    data.madvise(mmap.MADV_DONTNEED, 0, keep)
                    released = keep
            if byte in b"]}":
                depth -= 1
                if depth == 0:
                    if data[start:].strip(_BLANK):
                        what = "more than one JSON value stands here"
                        line += data[counted:start].count(b"\n")
                        problems.add(RecordingError(Place(name, line), what, "put each record on a line of its own"))
                    break
        if depth:
            line += data[counted:start].count(b"\n")
            remedy = "the file was cut off: copy it again; what stands before is kept"
            problems.add(RecordingError(Place(name, line), "the JSON array ends in the middle of this element", remedy))


def key_paths(data: bytes, most: int = 50_000) -> frozenset[str]:
    """The key paths in the start of a JSON text, complete or not: `[].traj`, `[].traj[].role`; `.type` in an object.

    JSON Lines give the paths of all their records together. This is what formats are told apart by.
    """
    found: set[str] = set()
    stack: list[str] = []
    path, last = "", ""
    for seen, token in enumerate(_TOKEN.finditer(data)):
        if seen > most:
            break
        text = token.group()
        if text[:1] == b'"':
            last = text[1:-1].decode("utf-8", "replace")
        elif text == b":":
            found.add(f"{stack[-1] if stack else ''}.{last}")
            path = f"{stack[-1] if stack else ''}.{last}"
        elif text in b"{[":
            stack.append(path + ("[]" if text == b"[" else ""))
            path = stack[-1]
        elif text in b"}]":
            if stack:
                stack.pop()
            path = stack[-1] if stack else ""
        elif stack:
            path = stack[-1]
    return frozenset(found)


def head(path: Path, size: int = 1 << 22) -> bytes:
    """The first bytes of a file, for telling what it is: logs have long messages before what tells them apart."""
    with path.open("rb") as file:
        return file.read(size).removeprefix(_BOM)


def files_below(folder: Path) -> Sequence[Path]:
    """The files below a folder in sorted order, hidden ones left out; links are not followed out of it."""
    root = folder.resolve()
    found = (path for path in folder.rglob("*") if path.is_file() and path.resolve().is_relative_to(root))
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
