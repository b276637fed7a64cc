"""Write conversations into a file of another format, and count what that format does not carry.

Lines are streamed, one conversation at a time. Each conversation is read back from its lines before the next one is
written, and what differs is counted (`losses.py`): what our reader does not find again is not carried, whatever stands
in the file. A file whose name ends in .gz or .zst is compressed. The same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import zstandard

from ctxbench.scenarios.files import check_file
from ctxbench.scenarios.model import Conversation

from .formats import CTXBENCH, LINE_FORMATS
from .losses import losses, read_back


class Converted(NamedTuple):
    """Counts of a conversion."""

    conversations: int
    """Number of conversations of which something was written."""
    not_carried: Counter[str]
    """Number of values that the format does not carry, by kind."""


def convert(conversations: Iterable[Conversation], name: str, to: Path) -> Converted:
    """Write conversations in a line format to a file; - is standard output.

    A file is replaced only by a complete one with at least one conversation. Raises OSError if it cannot be written.
    """
    if str(to) == "-":
        converted = _write(conversations, name, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return converted
    check_file(to)
    to = Path(os.path.realpath(to))
    draft = to.with_name(f".{to.name[:200]}.part")
    try:
        with draft.open("wb") as file, _packed(file, to.suffix.lower()) as packed:
            converted = _write(conversations, name, packed)
        if converted.conversations:
            draft.replace(to)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return converted


def _write(conversations: Iterable[Conversation], name: str, file: IO[bytes]) -> Converted:
    form = LINE_FORMATS[name]
    written, not_carried = 0, Counter[str]()
    with TemporaryDirectory() as folder:
        beside = Path(folder) / "written.jsonl"
        for conversation in conversations:
            with beside.open("wb") as copy:
                for line in form.write(conversation):
                    for part in (line, b"\n"):  # added up, they would be a copy of what may be very long
                        file.write(part)
                        copy.write(part)
                written += bool(copy.tell())
            if name != CTXBENCH:
                not_carried += losses(conversation, read_back(beside, form.reader))
    return Converted(written, not_carried)


@contextmanager
def _packed(file: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """Yield a file that compresses into an open one, as its suffix says; the file itself for another suffix."""
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:  # neither its name nor the time is in it
            yield _bytes(packed)
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
            yield _bytes(packed)
    else:
        yield file


def _bytes(packed: Any) -> IO[bytes]:
    """Return a compressing file as what it is to its writer: a binary file."""
    file: IO[bytes] = packed
    return file
