"""A file of messages: a table of their ids and tokens, and their content, a zstd frame each.

Opening the archive needs the table, reading a message needs the content. Each has its own checksum in the index, so
neither is read for the other. The index is a file, too:

    ctxbench archive 1          version of the format
    {"next": 7, "parts": [...], ...}
    2f8a91c0                    CRC-32C of all above it, in hex

Blocks are compressed with a dictionary made of earlier ones: their text itself, as if it preceded the content. Decision
16 has its figures, and those of zstd's selection from them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import google_crc32c
import msgspec
import zstandard
from msgspec.structs import replace

from ctxbench.scenarios.model import Message

FAST = 3  # level of small parts, which are written again soon
_WINDOW = 24  # logarithm of the longest match distance: a block and the largest dictionary


@dataclass(frozen=True, slots=True)
class Coding:
    """How blocks are written. Reading does not need it, and the blocks of an archive may differ in it."""

    level: int = 19
    dictionary: Literal["none", "raw"] = "raw"
    dictionary_bytes: int = 1 << 20  # largest size of a dictionary
    block_tokens: int = 65_536


Compress = Callable[[bytes], bytes]


class Dictionary:
    """A zstd dictionary, ready to use. An empty one compresses without a dictionary."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self._decompressor = zstandard.ZstdDecompressor(dict_data=self._zstd(), max_window_size=1 << _WINDOW)

    def checkpoint(self) -> Callable[[], None]:
        return lambda: None  # it never changes

    def compressor(self, level: int) -> Compress:
        """Return a function that compresses content to one frame. The same content gives the same bytes.

        Its first frame takes in the dictionary, which takes as long as half a block. It is not kept for the next block:
        at high levels it has 70 MB.
        """
        settings = zstandard.ZstdCompressionParameters.from_level(level, window_log=_WINDOW)
        return zstandard.ZstdCompressor(compression_params=settings, dict_data=self._zstd()).compress

    def decompress(self, frame: bytes) -> bytes:
        return self._decompressor.decompress(frame)

    def _zstd(self) -> zstandard.ZstdCompressionDict | None:
        kind = zstandard.DICT_TYPE_RAWCONTENT
        return zstandard.ZstdCompressionDict(self.data, dict_type=kind) if self.data else None


def build_dictionary(contents: Sequence[bytes], coding: Coding) -> Dictionary:
    """Make a dictionary of contents in order of age, newest last: the end of them."""
    # The end is what stands nearest to the content, and zstd takes fewer bits for matches at short distances.
    return Dictionary(b"\n".join(contents)[-coding.dictionary_bytes :] if coding.dictionary == "raw" else b"")


INDEX = "index"
_MAGIC = b"ctxbench archive 1\n"
checksum: Callable[[bytes], int] = google_crc32c.value
"""Returns the CRC-32C of bytes: it finds every change of one bit, and every burst of up to 32."""


class IndexSection(msgspec.Struct, frozen=True, array_like=True):
    """A range of bytes of a file, with its checksum."""

    start: int
    size: int
    crc: int


class PartEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of messages: `part-NNNNNN`."""

    number: int
    messages: int
    tokens: int  # tokens of the messages that are not deleted
    table: IndexSection
    content: IndexSection
    raw_bytes: int  # size of the content before compression
    sealed: bool = False  # whether it is a block; the others are small parts that will be written into blocks
    dictionary: int = 0  # number of its dictionary; 0 = none
    taught: bool = False  # whether the dictionary is made of this part
    deleted: tuple[tuple[int, float], ...] = ()  # places of deleted messages, and the times of their deletion


class DictionaryFile(msgspec.Struct, frozen=True):
    """A file with a dictionary: `dictionary-NNNNNN`."""

    number: int
    kind: Literal["raw"]  # text, where zstd could have tables as well
    data: IndexSection


class ArchiveIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """All files of an archive."""

    next: int = 1  # number of the next file; never reused
    parts: tuple[PartEntry, ...] = ()
    dictionary: DictionaryFile | None = None

    def names(self) -> set[str]:
        named = {part_name(part.number) for part in self.parts}
        return named | ({dictionary_name(self.dictionary.number)} if self.dictionary else set())


part_name, dictionary_name = "part-{:06}".format, "dictionary-{:06}".format
"""Names of a file of messages and of one with a dictionary, by its number."""


def index_bytes(index: ArchiveIndex) -> bytes:
    """Return the bytes of an index."""
    body = _MAGIC + msgspec.json.encode(index) + b"\n"
    return body + f"{checksum(body):08x}\n".encode()


def parse_index(data: bytes) -> ArchiveIndex | None:
    """Parse the bytes of an index; None if they are not as they were written."""
    # Eight hex digits and the line's end.
    body, crc = data[:-9], data[-9:]
    if crc != f"{checksum(body):08x}\n".encode() or not body.startswith(_MAGIC):
        return None
    return msgspec.json.decode(body[len(_MAGIC) :], type=ArchiveIndex)


def section_of(data: bytes, start: int = 0) -> IndexSection:
    """Return the section that these bytes will be."""
    return IndexSection(start, len(data), checksum(data))


_PLAIN = Dictionary()
_TABLE_LEVEL = 19


class PartTable(NamedTuple):
    """Ids and tokens of a part's messages, in order."""

    ids: tuple[str, ...]
    tokens: tuple[int, ...]


_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*\Z)")


def next_id(id: str) -> str:
    """Return the id that mostly comes next: its last number plus one. A table stores only ids that differ from it."""
    # "c7/m099" is followed by "c7/m100", "a9" by "a10"; an id without a number by itself, which no table repeats.
    return _LAST_NUMBER.sub(lambda number: str(int(number[0]) + 1).zfill(len(number[0])), id)


def block_part(
    number: int, items: Sequence[ArchivedMessage], level: int, dictionary: Dictionary, using: int
) -> tuple[PartEntry, bytes]:
    """Return a block in the layout of fewest bytes, and its bytes. `using` is the number of the dictionary."""
    layouts = [content for content in (by_field(items), by_key(items)) if content is not None]
    compress = dictionary.compressor(level)
    parts = [new_part(number, items, content, compress, _TABLE_LEVEL if level > FAST else FAST) for content in layouts]
    best, data = min(parts, key=lambda part: len(part[1]))
    return replace(best, sealed=True, dictionary=using), data


def new_part(
    number: int, items: Sequence[ArchivedMessage], content: bytes, compress: Compress, table_level: int = FAST
) -> tuple[PartEntry, bytes]:
    """Return a part of these messages in a layout, and its bytes."""
    ids, tokens = [item.id for item in items], [item.tokens for item in items]
    different = ["" if id == next_id(last) else id for last, id in zip(["", *ids], ids, strict=False)]
    head = _PLAIN.compressor(table_level)(msgspec.json.encode((different, tokens)))
    frame = compress(content)
    sections = section_of(head), section_of(frame, len(head))
    return PartEntry(number, len(items), sum(tokens), *sections, len(content)), head + frame


def table_of(data: bytes) -> PartTable:
    """Read a table from its bytes."""
    ids, tokens = msgspec.json.decode(_PLAIN.decompress(data), type=tuple[list[str], tuple[int, ...]])
    for at in range(1, len(ids)):
        ids[at] = ids[at] or next_id(ids[at - 1])
    return PartTable(tuple(ids), tokens)


_TEXT = ("text",)
# First item of the path of a section of scalars, before the key. No field of a message has this name.
_SCALARS = "="

Columns = dict[tuple[str, ...], list[bytes]]


def by_field(items: Sequence[ArchivedMessage]) -> bytes:
    """Lay messages out in columns, each text in one line."""
    return _layout_bytes(_columns(items), ())


def by_key(items: Sequence[ArchivedMessage]) -> bytes | None:
    """Lay messages out in columns, JSON texts by their keys; None if no text is JSON."""
    columns = _columns(items)
    shapes: dict[str, int] = {}
    for at, item in enumerate(items):
        if (split := split_shape(item.message.text)) is None:
            continue
        shape, scalars_by_key = split
        columns[_TEXT][at] = str(shapes.setdefault(shape, len(shapes))).encode()
        for key, scalars in scalars_by_key.items():
            path = (_SCALARS, key)
            if path not in columns:
                columns[path] = [b""] * len(items)
            columns[path][at] = ",".join(scalars).encode()
    return _layout_bytes(columns, tuple(shapes)) if shapes else None


class PartMessages:
    """The messages of one content, each decoded when it is accessed."""

    def __init__(self, content: bytes, ids: Sequence[str]) -> None:
        self._lines = content.split(b"\n")
        self._ids = ids
        self._sections: list[tuple[tuple[str, ...], int]] = []
        self._shapes: Sequence[str] = ()
        # JSON escapes line ends, so one line is one value: a section is its head and
        # one line a message, and message `at` of any section is found without parsing
        # the others. An empty line is a field that the message does not have.
        for head in range(0, len(self._lines), len(ids) + 1):
            path, shapes = msgspec.json.decode(self._lines[head], type=tuple[tuple[str, ...], tuple[str, ...]])
            self._sections.append((path, head + 1))
            self._shapes = shapes or self._shapes

    def __getitem__(self, at: int) -> Message:
        # The default, which a column "id" overrides for messages whose own id is not the end of the archive's.
        record: dict[str, Any] = {"id": self._ids[at].rpartition("/")[2]}
        scalars: dict[str, list[str]] = {}
        for path, start in self._sections:
            line = self._lines[start + at]
            if not line:
                continue
            if path[0] == _SCALARS:
                scalars[path[1]] = SCALARS_OF_LINE.findall(line.decode())  # strings may contain commas
            else:
                owner = record
                for key in path[:-1]:
                    owner = owner.setdefault(key, {})
                owner[path[-1]] = msgspec.json.decode(line)
        # A text that was taken apart is stored as the number of its shape; all other texts decode as strings.
        if isinstance(record.get("text"), int):
            record["text"] = join_shape(self._shapes[record["text"]], scalars)
        return msgspec.convert(record, Message)


def _columns(items: Sequence[ArchivedMessage]) -> Columns:
    columns: Columns = {_TEXT: [b""] * len(items)}
    for at, item in enumerate(items):
        record = msgspec.json.decode(msgspec.json.encode(item.message), type=dict[str, Any])
        if record["id"] == item.id.rpartition("/")[2]:
            del record["id"]
        for path, value in _leaves(record):
            if path not in columns:
                columns[path] = [b""] * len(items)
            columns[path][at] = msgspec.json.encode(value)
    return columns


def _leaves(record: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in record.items():
        # An empty object has no leaves and would be lost: it is a leaf itself.
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _layout_bytes(columns: Columns, shapes: tuple[str, ...]) -> bytes:
    lines: list[bytes] = []
    for path, column in sorted(columns.items()):
        lines.append(msgspec.json.encode((path, shapes if path == _TEXT else ())))
        lines += column
    return b"\n".join(lines)


HOLE = "\0"
"""Placeholder of a scalar in a shape. JSON has no NUL outside strings, and escapes it inside them."""

_SCALAR = r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'
_TOKEN = re.compile(rf"(?P<key>\"(?:[^\"\\\x00-\x1f]|\\.)*\")(?=\s*:)|(?P<scalar>{_SCALAR})|[^\"\w-]+", re.ASCII)
SCALARS_OF_LINE = re.compile(_SCALAR, re.ASCII)


def split_shape(text: str) -> tuple[str, dict[str, list[str]]] | None:
    """Split a JSON object or array into its shape and its scalars, in order by key; None if it is neither."""
    if text[:1] not in ("{", "[") or HOLE in text:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    pieces: list[str] = []
    scalars: dict[str, list[str]] = defaultdict(list)
    key, end = "", 0
    for token in _TOKEN.finditer(text):
        # The scanner skipped something that it does not know. Giving up is safe: the text then stays in one piece.
        if token.start() != end:
            return None
        end = token.end()
        if token.lastgroup == "scalar":
            scalars[key].append(token[0])
            pieces.append(HOLE)
        else:
            # The last key seen, also after its object has ended: the
            # reader goes through the shape in the same way, so both agree.
            key = token[0] if token.lastgroup == "key" else key
            pieces.append(token[0])
    return ("".join(pieces), dict(scalars)) if end == len(text) else None


def join_shape(shape: str, scalars: Mapping[str, list[str]]) -> str:
    """Join shape and scalars to the original text."""
    left: dict[str, Iterator[str]] = {key: iter(values) for key, values in scalars.items()}
    pieces: list[str] = []
    key = ""
    for piece in _PIECE.findall(shape):
        if piece == HOLE:
            pieces.append(next(left[key]))
        else:
            key = piece if piece[:1] == '"' else key
            pieces.append(piece)
    return "".join(pieces)


_PIECE = re.compile(rf'"(?:[^"\\\x00-\x1f]|\\.)*"|{HOLE}|[^"{HOLE}]+')


class ArchivedMessage(NamedTuple):
    """A message of the tier. The caller chooses the id: a message's own id is unique only within its conversation."""

    id: str
    tokens: int
    message: Message
