"""Files as records: JSON Lines, JSON arrays and single JSON objects, streamed, each record with its place.

A damaged record is one RecordingError with file, line and field, collected in Problems; the records around it are
still read. Memory follows the longest record, not the file.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from .errors import Place, RecordingError

T = TypeVar("T")

LONGEST = 64 * 1024 * 1024
"""Bytes in one record. A longer one is an error, so that no line can take all memory."""

DEEPEST = 64
"""Levels of nesting down to which key paths are told apart."""

_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*(?:%b(?!\\u[dD][c-fC-F]|\\?u?[dD]?\Z)|(?<!%b)%b)" % (_HIGH, _HIGH, _LOW))
_TOKEN = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[\[\]{},:]', re.DOTALL)
"""A string or a bracket. A string that nothing closes ends with the data: to look for it again would be quadratic."""
_NUMBER = re.compile(rb"[:\[,]\s*-?(?:NaN|Infinity)\b")
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Problems:
    """What went wrong while reading, in order. With `strict`, the first problem stops the reading instead."""

    strict: bool = False
    found: list[RecordingError] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """What of a folder is no recording: `path`, or `path: why` where there is more to say. Not errors."""
    notes: list[str] = field(default_factory=list)
    """What else a reader of the figures should know: what was named twice and read once, what was given another id."""
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
    except RecursionError:
        raise RecordingError(place, "nested too deep", "flatten it") from None


def json_text(part: msgspec.Raw) -> str:
    """A part of a record as the JSON text that was recorded. ValueError if it is not UTF-8, which Raw does not see."""
    try:
        return bytes(part).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason})") from None


def _mismatch(error: msgspec.ValidationError, place: Place) -> RecordingError:
    what, _, path = str(error).partition(" - at `")
    field = (place.field + path.rstrip("`").removeprefix("$")).removeprefix(".")
    remedy = "correct it, or leave this record out" + ("" if field else "; is it of this format?")
    return RecordingError(place.at(field), what[:1].lower() + what[1:].replace("`", ""), remedy)


def _malformed(raw: bytes, message: str) -> tuple[str, str]:
    if "surrogate" in message or _SURROGATE.search(raw):
        return "a \\u escape is half of a surrogate pair, which is no character", "repair or remove the escape"
    if "trailing" in message:
        return "more than one JSON value stands here", "put each record on a line of its own"
    if "truncated" in message:
        return "the JSON ends in the middle", "the file was cut off: copy it again, or remove this record"
    if _NUMBER.search(raw):
        return "NaN and Infinity are not JSON", "write null"
    return f"not JSON: {message.removeprefix('JSON is malformed: ')}", "repair this record, or leave it out"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file's bytes. What the system says against reading them is a RecordingError."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> RecordingError:
    """What to say of a file or folder that the system does not let us read."""
    return RecordingError(Place(str(path)), f"cannot be read: {error.strerror or error}", "check that it may be read")


def whole(path: Path, problems: Problems) -> bytes:
    """All bytes of a file that is one record."""
    place = Place(str(path))
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size > 16 * LONGEST:
            raise RecordingError(place, f"one record of over {16 * LONGEST >> 20} MiB", "split it, or use JSON Lines")
        data = file.read()
    problems.consumed += len(data)
    data = data.removeprefix(_BOM)
    if not data.strip():
        raise RecordingError(place, "the file is empty", "leave it out")
    return data


def lines(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """The lines of a file that are not blank, without their ends. One over LONGEST is a problem and is passed over."""
    name = str(path)
    any_line = False
    with _opened(path) as file:
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
    with _opened(path) as file:
        head = file.read(LONGEST).removeprefix(_BOM).lstrip(_BLANK)
        if b"\n" not in head:  # the first line may be over the limit: what follows it tells
            while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
                pass
            head += b"!\n" + file.read(LONGEST) if part else b""
    if head.startswith(b"["):
        several = head.partition(b"\n")[2].strip(_BLANK) and _is_lines(head)
        yield from lines(path, problems) if several else elements(path, problems)
    elif _is_lines(head):
        yield from lines(path, problems)
    else:
        yield Place(str(path), 1), whole(path, problems)


def _is_lines(head: bytes) -> bool:
    """Whether a file is JSON Lines: its first line is a value of its own, or a later one is and the whole is none.

    So a damaged first line does not take the others along, unless it looks like that of a value on many lines: an array
    that begins so is one, since an array's elements can be told apart though some are damaged.
    """
    first, *rest = head.split(b"\n", 32)
    if _is_value(first):
        return True
    if first.strip(_BLANK).endswith((b"{", b"[", b",", b":")) and (head.startswith(b"[") or len(head) >= LONGEST):
        return False
    others = (line.strip(_BLANK) for line in rest)
    return any(line.startswith((b"{", b"[")) and _is_value(line) for line in others) and not _is_value(head)


def _is_value(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def elements(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """The elements of a file that is one JSON array, streamed: what stands before a damaged place is still read."""
    name = str(path)
    with _opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
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
                    if len(raw) > LONGEST:
                        what = f"an element of over {LONGEST >> 20} MiB"
                        problems.add(RecordingError(Place(name, line), what, "split or drop this one"))
                    else:
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
        elif len(stack) > DEEPEST and text in b"{[:":  # a path here has no bound
            stack += [""] * (text != b":")
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
    with _opened(path) as file:
        return file.read(size).removeprefix(_BOM)
