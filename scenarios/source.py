"""Files as records (JSON Lines, JSON arrays, single JSON objects, table rows), each with its place; the files of paths.

A damaged record is one RecordingError with file, line and field, collected in Problems; the records around it are
still read. Records are streamed: memory follows the longest record, not the file. Nothing is dropped in silence: what
is in a folder and not read is named in `Problems.ignored`.
"""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import os
import re
import shutil
import stat
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, cast

import msgspec

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from . import packed
from .errors import Place, RecordingError

T = TypeVar("T")

LONGEST = 64 * 1024 * 1024
"""Most bytes in one line, so that none can take all memory; a file that is one record may have 16 times as many."""
DEEPEST = 64  # levels of nesting down to which key paths are distinguished
MISFIT = "; is it of this format?"  # end of the remedy for a record that lacks what its format has
COMPRESSED = "compressed: unpack it first"  # message and remedy for a compressed file that is not unpacked
CUT_OFF = ("the JSON ends in the middle", "the file was cut off: copy it again, or remove this record")
"""Message and remedy for JSON without its end."""
HEAD = 1 << 22  # bytes that are enough to recognise logs which begin with long messages

# What JavaScript and Python write into JSON although it is none, behind all that stands before it: half of a surrogate
# pair, which no UTF-8 can hold, and numbers that are none. An unclosed string ends with the data, as in _TOKEN.
_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = rb"((?:[^\\]++|\\(?:%b|(?!u[dD][89a-fA-F]).))*+)(?:(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(\\?))" % _PAIR
_NUMBER = rb'((?:[^"NI-]++|-(?!I)|"[^"\\]*+(?>\\.[^"\\]*+)*+"?)*+)(?:(NaN|-?Infinity)|([NI-]*))'
_MENDS = (
    ("half of a surrogate pair, read as U+FFFD", (rb"\ud", rb"\uD"), re.compile(_HALF, re.DOTALL), rb"\ufffd"),
    ("NaN or Infinity, read as null", (b"NaN", b"Infinity"), re.compile(_NUMBER, re.DOTALL), b"null"),
)
# A string or a bracket. An unclosed string ends with the data: to search for its end again would be quadratic.
_TOKEN = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[\[\]{},:]', re.DOTALL)
_FOLLOWED = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)")
_GLUED = re.compile(rb"\}[ \t]*\{")
_BLANK = b" \t\r\n"
_OPENING = (b"{", b"[", b",", b":")
_BOM, _UTF16 = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
_CSV = {".csv": ",", ".tsv": "\t"}
_BATCH = 64  # rows of a table that are held at once, if they are no more than so many bytes
_BATCH_BYTES = 1 << 28
_MEMORY = 2 << 30
_LONGEST_CELL = 1 << 26
_LONGEST_SHOWN = 120
_TOGETHER = 64  # lines whose key paths are made together
_NESTED = frozenset((dict, list))  # types of decoded JSON that hold others
_ROWS = 16  # rows of a table that tell its format
_DEEPEST_ELEMENT = 100_000
_MOST_VALUES = 50_000_000
_RESIDENT = 16 << 20  # bytes of a mapped file that may stay in memory
_FORM = 1 << 20  # bytes that tell the form of most files
_COMPRESSED_SUFFIXES = (".gz", ".zst", ".zip", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz", ".lz4", ".br")


@dataclass(slots=True)
class Problems:
    """Errors and remarks of one reading, in order. With `strict`, the first error is raised instead."""

    strict: bool = False
    errors: list[RecordingError] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Files of a folder that are no recordings, as `path` or `path: why`. These are not errors."""
    notes: list[str] = field(default_factory=list)
    """Other remarks that matter for the figures: files named twice and read once, conversations given another id, parts
    of a type that no reader knows."""
    consumed: int = 0  # bytes read so far, for the progress bar
    repeated: Counter[str] = field(default_factory=Counter)
    """Calls that were read before, by the file or conversation in which they stand again and do not count."""
    _unknown: dict[str, list[Place]] = field(default_factory=dict)
    _newer: dict[str, str] = field(default_factory=dict)

    def add(self, error: RecordingError) -> None:
        """Collect the error of a record that is left out. Raises it instead if `strict`."""
        known = packed.shown(error.place.file)
        if known != error.place.file:
            error = RecordingError(Place(known, error.place.line, error.place.field), error.what, error.remedy)
        if self.strict:
            raise error
        self.errors.append(error)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Read one part of a recording: a RecordingError that ends it is added, and reading goes on."""
        try:
            yield
        except RecordingError as error:
            self.add(error)

    def unknown(self, what: str, place: Place) -> None:
        """Count a part of a recording of a type that its reader does not read, such as `codex: item of type 'x'`."""
        self._unknown.setdefault(what[:_LONGEST_SHOWN], []).append(place)

    def written_by(self, version: str, checked: str) -> None:
        """Note a version of a program that is newer than the one its reader was `checked` with: `Codex 0.147`."""
        known, numbers = _numbers(checked), _numbers(version)
        if len(numbers) >= len(known) and numbers[: len(known)] > known:
            self._newer[checked] = max(self._newer.get(checked, ""), version[:_LONGEST_SHOWN], key=_numbers)

    def note_unknown(self) -> None:
        """Turn repeated calls, newer versions and counts of unknown parts into notes, one per type over all files."""
        if self.repeated:
            most = self.repeated.most_common(3)
            where = ", ".join(f"{count:,} in {name}" for name, count in most) + " …" * (len(self.repeated) > len(most))
            number = self.repeated.total()
            calls = "model call is a copy of another one" if number == 1 else "model calls are copies of others"
            what = f"{number:,} {calls} in the recordings ({where})"
            self.notes.append(f"{what}: each counts once, where it was read first")
            self.repeated.clear()
        for checked, version in self._newer.items():
            program, _, known = checked.rpartition(" ")
            what = f"{program} {version}".strip() + f" is newer than {known}, the last version that was checked"
            self.notes.append(f"{what}: read as far as it is understood")
        self._newer.clear()
        for what, places in (*self._unknown.items(), *((what, list(at)) for what, at in _MENDED.items())):
            files = len({place.file for place in places})
            where = str(places[0]) if files == 1 else f"{files} files, first {places[0]}"
            count = f"{len(places):,}" if "read as" in what else f"{len(places):,} not read"
            self.notes.append(f"{what}: {count} ({where})")
        self._unknown.clear()
        _MENDED.clear()


_MENDED: dict[str, dict[Place, None]] = {}
"""Records that had to be mended, by what was mended: `decode` has no Problems to note it."""


def mended(text: bytes) -> tuple[bytes, list[str]]:
    """Return a text without what JavaScript and Python write into JSON although it is not JSON, and a list of that."""
    changes = []
    for what, hints, pattern, instead in _MENDS:
        if any(hint in text for hint in hints):
            sound = pattern.sub(lambda match, new=instead: match[1] + (new if match[2] else match[3]), text)  # type: ignore[misc]
            changes += [what] if sound != text else []
            text = sound
    return text, changes


def _numbers(version: str) -> list[int]:
    return list(map(int, re.findall(r"[0-9]{1,9}", version)))


def decode(raw: bytes | msgspec.Raw, kind: type[T], place: Place) -> T:
    """Decode one JSON record, mended if need be. Raises a RecordingError that names the field, below `place`."""
    try:
        return msgspec.json.decode(raw, type=kind)
    # A ValidationError is a DecodeError too, and so is looked at first.
    except msgspec.ValidationError as error:
        raise _mismatch(error, place) from None
    except UnicodeDecodeError as error:
        raise RecordingError(place, f"not UTF-8 ({error.reason})", "save the file as UTF-8") from None
    except RecursionError:
        raise RecordingError(place, "nested too deep", "flatten it") from None
    except msgspec.DecodeError as error:
        sound, changes = mended(bytes(raw))
        if not changes:
            raise RecordingError(place, *_malformed(sound, str(error))) from None
    value = decode(sound, kind, place)
    for what in changes:
        _MENDED.setdefault(f"record with {what}", {})[place] = None
    return value


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text, mended if need be. Raises what msgspec does for a text that is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        sound, changes = mended(text.encode() if isinstance(text, str) else text)
        if not changes:
            raise
    return msgspec.json.decode(sound)


def convert(value: Any, kind: type[T], place: Place) -> T:
    """Convert a decoded value to `kind`. Raises a RecordingError that names the field, below the field of `place`."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _mismatch(error, place) from None
    except RecursionError:
        raise RecordingError(place, "nested too deep", "flatten it") from None


def as_text(value: Any) -> str:
    """Return a recorded value as text: itself, or as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def unique_name(name: str, seen: dict[str, int]) -> str:
    """Return a name not seen before, and note it: a, a and a~2 become a, a~2 and a~2~2."""
    unique = name
    while unique in seen:
        seen[name] += 1
        unique = f"{name}~{seen[name]}"
    seen[unique] = 1
    return unique


def _mismatch(error: msgspec.ValidationError, place: Place) -> RecordingError:
    what, _, path = str(error).partition(" - at `")
    field = (place.field + path.rstrip("`").removeprefix("$")).removeprefix(".")
    remedy = "correct it, or leave this record out" + ("" if field else MISFIT)
    return RecordingError(place.at(field), what[:1].lower() + what[1:].replace("`", ""), remedy)


def _malformed(raw: bytes, message: str) -> tuple[str, str]:
    if "trailing comma" in message or ("trailing" in message and raw.endswith(b",")):
        return "not JSON: a comma follows the last item", "remove it"
    if "trailing" in message:
        return "more than one JSON value stands here", "put each record on a line of its own"
    if "truncated" in message:
        return CUT_OFF
    return f"not JSON: {message.removeprefix('JSON is malformed: ')}", "repair this record, or leave it out"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for its bytes, unpacked, those of UTF-16 as UTF-8. An OSError becomes a RecordingError."""
    try:
        with packed.opened(path) as file:
            if not isinstance(file, io.BufferedReader) or file.peek(2)[:2] not in _UTF16:
                yield file
                return
            with tempfile.TemporaryFile() as copy:  # half of a surrogate pair becomes bytes that are no UTF-8
                shutil.copyfileobj(codecs.EncodedFile(file, "utf-8", "utf-16", "surrogatepass"), copy)
                copy.seek(0)
                yield cast(BinaryIO, copy)
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> RecordingError:
    """Return the error for a file or folder that the operating system does not let us read."""
    return RecordingError(Place(str(path)), f"cannot be read: {error.strerror or error}", "check that it may be read")


def whole_file(path: Path, problems: Problems, data: bytes | None = None) -> bytes:
    """Return the bytes of a file that is one record, or `data`. Raises RecordingError if it is empty or too large."""
    if data is None:
        with _opened(path) as file:
            data = file.read(16 * LONGEST + 1)
    too_much = f"{16 * LONGEST >> 20} MiB" if len(data) > 16 * LONGEST else ""
    # A value of JSON takes 24 bytes in memory and more.
    if LONGEST < len(data) <= 16 * LONGEST and data[:1] in b"{[" and sum(map(data.count, b"{[,")) > _MOST_VALUES:
        too_much = f"{_MOST_VALUES:,} values"
    if too_much:
        raise RecordingError(Place(str(path)), f"one record of over {too_much}", "split it, or use JSON Lines")
    problems.consumed += len(data)
    data = data.removeprefix(_BOM)
    if not data or data.isspace():  # strip would copy it
        raise RecordingError(Place(str(path)), "the file is empty", "leave it out")
    return data


def lines(path: Path, problems: Problems, data: bytes | None = None) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines of a file that are not blank, without their ends. `data` are its bytes, if they were read.

    A line over LONGEST is a problem.
    """
    name, is_empty = str(path), True
    with _opened(path) if data is None else io.BytesIO(data) as file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST + 1), b""), 1):
            problems.consumed += len(line)
            if len(line) > LONGEST:
                while line and not line.endswith(b"\n"):  # the rest of it is passed over in pieces
                    line = file.readline(LONGEST)
                    problems.consumed += len(line)
                what = f"a line of over {LONGEST >> 20} MiB"
                problems.add(RecordingError(Place(name, number), what, "one record a line; split or drop this one"))
                is_empty = False
                continue
            if number == 1:
                line = line.removeprefix(_BOM)
            record, line = [line.strip(_BLANK)], b""
            if record[0]:
                is_empty = False
                yield Place(name, number), record.pop()  # the reader alone has it, and may let go of it
    if is_empty:
        raise RecordingError(Place(name), "the file is empty", "leave it out")


def objects(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the objects of a file of JSON Lines to which a program appends.

    A program that was stopped between an object and its line end appends the next one to the same line. Each of them is
    a record. A line with anything else behind its object comes whole, to be an error.
    """
    for place, line in lines(path, problems):
        parts = _objects(line) if _GLUED.search(line) and not is_value(line) else []
        yield from ((place, part) for part in parts or [line])


def _objects(line: bytes) -> list[bytes]:
    """Return the objects that make up a line; nothing if it holds anything else."""
    parts, depth, start = list[bytes](), 0, 0
    for token in _TOKEN.finditer(line):
        depth += (token.group() in (b"{", b"[")) - (token.group() in (b"}", b"]"))
        if depth <= 0:
            parts.append(line[start : token.end()].strip(_BLANK))
            start = token.end()
    whole = not line[start:].strip(_BLANK) and all(part.startswith(b"{") and is_value(part) for part in parts)
    return parts if whole else []


def records(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the records of a file in any form: the elements of a JSON array, one JSON object, JSON Lines, table rows.

    In JSON Lines a line may be an array, and is one record then. A file of one such line is a JSON array.
    """
    with _opened(path) as file:
        start = file.read(_FORM)
        form = "table" if is_table(path.suffix, start) else _form(start, file)
    data = start if len(start) < _FORM else None  # many small files: each is opened once
    if form == "object":
        yield Place(str(path), 1), whole_file(path, problems, data)
    elif form == "lines":
        yield from lines(path, problems, data)
    else:
        yield from table_rows(path, problems) if form == "table" else elements(path, problems)


def _form(head: bytes, file: BinaryIO) -> Literal["lines", "array", "object"]:
    """Return the form of a JSON file, from as little behind its head as tells it."""
    start = head.removeprefix(_BOM).lstrip(_BLANK)
    first, _, rest = start.partition(b"\n")
    if rest.strip(_BLANK):  # nearly always: a large file is not read further to be told
        if is_value(first):
            return "lines"
        if start.startswith(b"[") and first.strip(_BLANK).endswith(_OPENING):
            return "array"
    start += file.read(LONGEST - len(head))
    if start.startswith(b"["):
        return "lines" if start.partition(b"\n")[2].strip(_BLANK) and _is_lines(start) else "array"
    return "lines" if _is_lines(start) else "object"


def is_table(suffix: str, start: bytes) -> bool:
    """Return whether a file is a table, by its first bytes, or as CSV by the suffix of its name."""
    return start.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM)) or suffix.lower() in _CSV


def table_rows(path: Path, problems: Problems) -> Generator[tuple[Place, bytes], None, None]:
    """Yield the rows of a table as JSON, each with its number, from 1. Raises RecordingError if it cannot be read.

    A row is an object of its columns, without those that are null. A cell whose text is a JSON object, or a list of
    objects or texts, is that value: exports write messages so.
    """
    encode, number, total = msgspec.json.Encoder(enc_hook=str).encode, 0, 0
    with _opened(path) as opened, packed.seekable(opened) as file:
        most = packed.FREE + packed.RATIO * file.seek(0, io.SEEK_END)
        try:
            for number, row in enumerate(_rows(file, path.suffix), 1):
                record = encode({str(key): _cell(value) for key, value in row.items() if value is not None})
                problems.consumed += len(record)
                if (total := total + len(record)) > most:
                    raise packed.bomb(path, most)
                if len(record) > LONGEST:
                    what, remedy = f"a row of over {LONGEST >> 20} MiB", "split or drop this one"
                    problems.add(RecordingError(Place(str(path), number), what, remedy))
                else:
                    yield Place(str(path), number), record
        except (OSError, ValueError, csv.Error, msgspec.MsgspecError, MemoryError) as error:
            what = f"cannot be read as a table: {str(error).partition(chr(10))[0]}"
            raise RecordingError(Place(str(path), number), what, "is it damaged, or cut off?") from None


def _rows(file: BinaryIO, suffix: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open table, a batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.seek(0)
    start = file.read(8)
    file.seek(0)
    batches: Iterator[Any]
    if start.startswith(_PARQUET):
        table = pq.ParquetFile(file)
        groups = (table.metadata.row_group(at).total_byte_size for at in range(table.num_row_groups))
        batches = table.iter_batches(batch_size=_rows_of(max(groups, default=0)))
    elif start.startswith(_ARROW_FILE):
        table = pa.ipc.open_file(file)
        batches = map(table.get_batch, range(table.num_record_batches))
    elif start.startswith(_ARROW_STREAM):
        batches = iter(pa.ipc.open_stream(file))
    else:
        csv.field_size_limit(_LONGEST_CELL)  # the library's own limit is less than a prompt
        lines = codecs.iterdecode(map(_not_long, iter(partial(file.readline, LONGEST + 1), b"")), "utf-8-sig")
        for row in csv.DictReader(lines, delimiter=_CSV[suffix.lower()]):
            yield {name: cell for name, cell in row.items() if name is not None and isinstance(cell, str) and cell}
        return
    while True:
        with _limited_memory():
            batch = next(batches, None)
        if batch is None:
            return
        size = _rows_of(batch.nbytes)
        for first in range(0, batch.num_rows, size):
            yield from batch.slice(first, size).to_pylist()


def _rows_of(size: int) -> int:
    """Return how many rows to hold at once of a batch of so many bytes. In a dictionary, each may take them all."""
    return max(1, min(_BATCH, _BATCH_BYTES // max(size, 1)))


def _not_long(line: bytes) -> bytes:
    if len(line) > LONGEST:
        raise ValueError(f"a line of over {LONGEST >> 20} MiB")
    return line


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Have a batch that takes over `_MEMORY` bytes raise MemoryError, on Linux: sizes within a table may lie."""
    if resource is None or not os.path.exists("/proc/self/statm"):
        yield
        return
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", "rb") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + _MEMORY
    if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _cell(value: Any) -> Any:
    """Return a cell without nulls, and as a value if it holds JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            held = loads(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return value
        is_list = isinstance(held, list) and bool(held) and all(isinstance(part, (dict, str)) for part in held)
        return held if isinstance(held, dict) or is_list else value
    return without_nulls(value)


def without_nulls(value: Any) -> Any:
    """Return a value without the nulls that a table adds for keys that only other rows have."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def _is_lines(start: bytes) -> bool:
    """Return whether a file is JSON Lines: its first line is a JSON value, or a later line is and the whole is not."""
    first, *rest = start.split(b"\n", 32)
    if is_value(first):
        return True
    # A damaged first line should not cost the other lines. But if it looks like the opening of a value on many lines,
    # an array is read as an array: its elements can be separated even if some are damaged.
    if first.strip(_BLANK).endswith(_OPENING) and (start.startswith(b"[") or len(start) >= LONGEST):
        return False
    others = (line.strip(_BLANK) for line in rest)
    return any(line.startswith((b"{", b"[")) and is_value(line) for line in others) and not is_value(start)


def is_value(text: bytes) -> bool:
    """Return whether a text is one JSON value, with nothing around it but blanks."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        sound, changes = mended(text)
        return bool(changes) and is_value(sound)
    return True


def elements(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes]]:
    """Yield the elements of a file that is one JSON array. The elements before a damaged place are still read."""
    name = str(path)
    with (
        _opened(path) as opened,
        packed.seekable(opened) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        # `line` is the line at byte `counted`: line ends are counted once, from element to element.
        line, counted, released = 1, 0, 0
        for start, end in _element_spans(data, name):
            raw = data[start:end]
            if end == len(data):
                line += data[counted:start].count(b"\n")
                remedy = "the file was cut off: copy it again; what stands before is kept"
                problems.add(
                    RecordingError(Place(name, line), "the JSON array ends in the middle of this element", remedy)
                )
                return
            if raw.strip(_BLANK):
                lead = len(raw) - len(raw.lstrip(_BLANK))
                line, counted = line + data[counted : start + lead].count(b"\n"), start + lead
                first, last = counted, counted + len(raw.strip(_BLANK))
                raw = b""  # the reader has one of its own
                # Pages that were read stay resident until they are given back: without this, memory follows the file.
                if hasattr(data, "madvise") and end - released > _RESIDENT:
                    released = end // mmap.PAGESIZE * mmap.PAGESIZE
                    data.madvise(mmap.MADV_DONTNEED, 0, released)
                yield Place(name, line), data[first:last]
            problems.consumed += end + 1 - start
        if data[end + 1 :].strip(_BLANK):
            what = "more than one JSON value stands here"
            line += data[counted : end + 1].count(b"\n")
            problems.add(RecordingError(Place(name, line), what, "put each record on a line of its own"))


def _element_spans(data: mmap.mmap, file: str) -> Iterator[tuple[int, int]]:
    """Yield where each element of a JSON array begins and where the comma or bracket after it stands.

    The last span ends at the end of the data if the array is cut off. An empty array has one blank span. Raises
    RecordingError at an element of brackets alone: to look for its end would take minutes.
    """
    start = data.find(b"[") + 1
    with memoryview(data) as view:
        while (end := _value_end(view, start)) is not None:
            yield start, end
            if view[end] == ord("]"):
                return
            start = end + 1
    # What is no JSON is found by its tokens, so that the elements after it are still read.
    depth = 1
    for token in _TOKEN.finditer(data, start):
        byte = token.group()[:1]
        if byte in b"[{":
            depth += 1
            if depth > _DEEPEST_ELEMENT:
                place = Place(file, data[:start].count(b"\n") + 1)
                raise RecordingError(place, "nested too deep", "flatten it; what stands before is kept")
        elif byte == b"," and depth == 1:
            yield start, token.start()
            start = token.end()
        elif byte in b"]}":
            depth -= 1
            if not depth:
                yield start, token.start()
                return
    yield start, len(data)


def _value_end(view: memoryview, start: int) -> int | None:
    """Return where the comma or bracket after a JSON value stands; None if there is no whole value, or no such mark.

    msgspec reads a value much faster than its tokens can be matched, and then says at which byte something follows it.
    """
    with view[start:] as rest:
        try:
            msgspec.json.decode(rest, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError) as error:
            follows = _FOLLOWED.fullmatch(str(error))
        else:
            return None
        # The message counts bytes from 1: of `1,2]` it says byte 2, and the comma is at 1 from the start.
        end = start + int(follows[1]) - 1 if follows else start
        return end if follows and view[end] in b",]" else None


def key_paths(data: bytes, most: int = 50_000) -> frozenset[str]:
    """Return the key paths in the start of a JSON text, complete or not: `[].traj`, `[].traj[].role`; `.type`.

    JSON Lines give the paths of all their records together. Formats are recognised by these paths.
    """
    paths: set[str] = set()
    if (whole := _decoded(data)) is not None:
        _add_paths([whole], paths)
        return frozenset(paths)
    start, values = 0, list[Any]()
    for record in io.BytesIO(data):  # one by one: mostly the first ones are enough
        value = _decoded(record)
        if value is None and record.strip(_BLANK):  # cut off, no JSON, or one value on many lines
            most -= _add_paths(values, paths)
            return frozenset(paths | _scanned(data[start:], most))
        values.append(value)
        start += len(record)
        # Counted over all records together: a head of many short lines takes no longer than one of a long value.
        if len(values) == _TOGETHER:
            most -= _add_paths(values, paths)
            values = []
        if most < 0:
            break
    _add_paths(values, paths)
    return frozenset(paths)


def _decoded(text: bytes) -> Any:
    """Return the value of a JSON text; None if it is none, or is null."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _add_paths(records: list[Any], paths: set[str]) -> int:
    """Add the key paths of some values, and return how many values stand in them."""
    count, level = len(records), {"": [value for value in records if type(value) in _NESTED]}
    # Level by level, all values of one path together: records that are alike have each of their paths made once.
    for _ in range(DEEPEST + 1):  # else a path could grow without bound
        below: dict[str, list[Any]] = {}
        for path, values in level.items():
            count += sum(map(len, values))
            held, nested = defaultdict[str, list[Any]](list), list[Any]()
            keys: set[str] = set()
            for inner in values:
                if type(inner) is dict:
                    keys.update(inner)
                    for key, one in inner.items():
                        if type(one) in _NESTED:
                            held[key].append(one)
                elif not _NESTED.isdisjoint(map(type, inner)):
                    nested += [one for one in inner if type(one) in _NESTED]
            paths.update([f"{path}.{key}" for key in keys])
            for key, found in held.items():
                below.setdefault(f"{path}.{key}", []).extend(found)
            if nested:
                below.setdefault(f"{path}[]", []).extend(nested)
        level = below
    return count


def _scanned(data: bytes, most: int) -> set[str]:
    """Return the key paths of a JSON text that need not be complete, by its first tokens."""
    paths: set[str] = set()
    stack: list[str] = []
    path, last = "", ""
    for count, token in enumerate(_TOKEN.finditer(data)):
        if count > most:  # bounds the time for a head full of short tokens
            break
        # `path` is that of the value which comes next, `stack` has those of the brackets that are open. In {"a": [{"b":
        # 1}]} it is "" in the first brace, .a behind the colon, .a[] in the bracket and second brace, .a[].b behind its
        # colon.
        text = token.group()
        if text[:1] == b'"':
            last = text[1:-1].decode("utf-8", "replace")
        elif len(stack) > DEEPEST and text in b"{[:":  # else a path could grow without bound
            stack += [""] * (text != b":")
        elif text == b":":
            path = f"{stack[-1] if stack else ''}.{last}"
            paths.add(path)
        elif text in b"{[":
            stack.append(path + ("[]" if text == b"[" else ""))
            path = stack[-1]
        elif text in b"}]":
            if stack:
                stack.pop()
            path = stack[-1] if stack else ""
        elif stack:
            path = stack[-1]
    return paths


def file_head(path: Path, size: int = HEAD) -> bytes:
    """Return the first bytes of a file."""
    with _opened(path) as file:
        return file.read(size).removeprefix(_BOM)


def record_head(path: Path, size: int = HEAD) -> bytes:
    """Return the start of a file as JSON: of a table its first rows, of any other file its first bytes."""
    if not is_table(path.suffix, file_head(path, 8)):
        return file_head(path, size)
    rows = []
    # An error comes when the table is read.
    with suppress(RecordingError), closing(table_rows(path, Problems())) as recorded:
        for _, row in islice(recorded, _ROWS):
            rows.append(row)
            if (size := size - len(row)) < 0:
                break
    return b"\n".join(rows)


def is_compressed(path: Path) -> bool:
    """Return whether a file that was not unpacked has the suffix of a compressed one."""
    return path.suffix.lower() in _COMPRESSED_SUFFIXES


def files_of(paths: Iterable[Path], problems: Problems) -> list[tuple[Path, Sequence[Path]]]:
    """Return the files that each path names, every file once; a note says which were named again.

    A file that is named twice counts where it was named first, but a folder that holds it comes before a path to the
    file alone: the files of a folder may be one recording.
    """
    files_by_path = [(path, _files(path, problems)) for path in paths]
    seen: set[Hashable] = set()
    unique: dict[int, list[Path]] = {}
    # Folders first, and otherwise in the order named.
    for at in sorted(range(len(files_by_path)), key=lambda at: not os.path.isdir(files_by_path[at][0])):
        unique[at] = []
        for file in files_by_path[at][1]:
            if (identity := _identity(file)) not in seen:
                seen.add(identity)
                unique[at].append(file)
    for at, (path, files) in enumerate(files_by_path):
        if more := len(files) - len(unique[at]):
            which = f"{more} of {len(files)} files" if os.path.isdir(path) else "a file"
            problems.notes.append(f"{path}: {which} named more than once, read once")
    return [(path, unique[at]) for at, (path, _) in enumerate(files_by_path)]


def _identity(path: Path) -> Hashable:
    """Return a key that is the same for all names of a file; its path if the system does not tell."""
    with suppress(OSError):
        if (status := path.stat()).st_ino:
            return status.st_dev, status.st_ino
    return path


def _files(path: Path, problems: Problems) -> Sequence[Path]:
    """Return the files that a path names. A path that names none is a problem."""
    with problems.collect():
        # os.path returns False where Path raises: a name that is too long, a folder that may not be entered
        if packed.is_address(str(path)):
            return packed.remote_files(str(path))
        if os.path.isdir(path):
            return [file for below in files_below(path, problems) for file in _within(below, problems)]
        if os.path.isfile(path):
            return _within(path, problems)
        if packed.is_file(path):  # a packed file by its name within
            return [path]
        what, remedy = "there is no such file or folder", "check the path"
        if os.path.exists(path):
            what, remedy = "this is neither a file nor a folder", "save what it gives in a file"
        raise RecordingError(Place(str(path)), what, remedy)
    return []


def _within(path: Path, problems: Problems) -> Sequence[Path]:
    """Return the files in a file: itself, or those of an archive. One that cannot be read is a problem."""
    files: Sequence[Path] = []
    try:
        with problems.collect():
            files, ignored = packed.files_within(path)
            problems.ignored += ignored
    except OSError:  # the error comes when it is read
        files = [path]
    return files


def files_below(folder: Path, problems: Problems) -> Sequence[Path]:
    """Return the files below a folder in sorted order. Hidden entries are left out and counted in `problems.ignored`.

    A link to a file in the folder counts as that file. Other links, pipes and devices are named in `problems.ignored`.
    An empty folder is a problem.
    """
    root = folder.resolve()
    readable: list[Path] = []
    ignored: list[str] = []
    hidden, errors_before = 0, len(problems.errors)

    def report(error: OSError) -> None:
        problems.add(unreadable(Path(error.filename), error))

    for parent, folders, files in os.walk(folder, onerror=report):
        hidden += sum(map(packed.is_hidden, (*folders, *files)))
        folders[:] = [name for name in folders if not packed.is_hidden(name)]
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for path in (Path(parent, name) for name in (*files, *linked) if not packed.is_hidden(name)):
            if why := _why_not(path, root):
                ignored.append(f"{path}: {why}")
            else:
                readable.append(path)
    problems.ignored += sorted(ignored)
    if hidden:
        problems.ignored.append(f"{folder}: {hidden} hidden")
    if not (readable or ignored or hidden or len(problems.errors) > errors_before):
        problems.add(RecordingError(Place(str(folder)), "no file is in this folder", "check the path"))
    return sorted(readable)


def _why_not(path: Path, root: Path) -> str:
    """Return why a path is no file to read; empty if it is one."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        mode = stat.S_IFREG  # the error comes when it is read
    except OSError:
        return "a link that leads nowhere"
    if not path.resolve().is_relative_to(root):
        return "a link that leads out of the folder"
    if stat.S_ISDIR(mode):
        return "a link to a folder"
    return "" if stat.S_ISREG(mode) else "neither a file nor a folder"
