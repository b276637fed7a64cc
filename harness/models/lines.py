"""A cassette as JSON Lines, one recorded reply a line, to read, to review and to move between machines."""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable, Iterator
from typing import Literal

import msgspec

from ...scenarios.errors import SetupError
from .cassette import Cassette, Entry, canonical, key_of

_BATCH = 1_000
_NOTHING = msgspec.Raw()


class _Brief(msgspec.Struct):
    prompt: str = ""


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    key: str
    kind: Literal["chat", "choice", "embedding"]
    model: str
    request: msgspec.Raw = _NOTHING
    reply: msgspec.Raw = _NOTHING
    """Of a chat or a choice, as the cassette has it."""
    vector: str = ""
    """Of an embedding: its float32 bytes in base64."""


def write_lines(cassette: Cassette, keys: Container[str] | None = None, *, brief: bool = False) -> Iterator[bytes]:
    """Every reply, or those under some keys, as a line, in the order of the keys: equal cassettes have equal lines.

    `brief`: of a request no more than which prompt it is, where whoever replays it makes the request anew.
    """
    for entry in cassette.entries():
        if keys is None or entry.key in keys:
            yield msgspec.json.encode(_line(_briefly(entry) if brief else entry)) + b"\n"


def prompt_of(entry: Entry) -> str:
    """The prompt that a recorded request names, NAME@DIGEST; empty if it names none."""
    return msgspec.json.decode(entry.request, type=_Brief).prompt if entry.request else ""


def _line(entry: Entry) -> _Line:
    if entry.kind == "embedding":
        return _Line(entry.key, entry.kind, entry.model, vector=base64.b64encode(entry.reply).decode())
    return _Line(entry.key, entry.kind, entry.model, msgspec.Raw(entry.request.encode()), msgspec.Raw(entry.reply))


def _briefly(entry: Entry) -> Entry:
    return entry._replace(request=canonical({"prompt": prompt_of(entry)}))


def read_lines(cassette: Cassette, lines: Iterable[bytes], name: str) -> int:
    """Put lines into a cassette, where what is there stays. Returns how many replies were new.

    Raises SetupError with the number of a line that is none, or whose key is not that of its request.
    """
    new, batch = 0, list[Entry]()
    for entry in entries(lines, name):
        batch.append(entry)
        if len(batch) == _BATCH:
            new += cassette.put_many(batch)
            batch = []
    return new + cassette.put_many(batch)


def entries(lines: Iterable[bytes], name: str) -> Iterator[Entry]:
    """The replies of lines. Raises SetupError as `read_lines` does."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _entry(line, f"{name}:{number}")


def _entry(text: bytes, place: str) -> Entry:
    try:
        line = msgspec.json.decode(text, type=_Line)
        if line.kind == "embedding":
            return Entry(line.key, line.kind, line.model, base64.b64decode(line.vector, validate=True))
        request = canonical(msgspec.json.decode(line.request or b"{}"))
        if not line.reply or (key_of(request) != line.key and not _is_brief(request)):
            raise ValueError("the key is not that of the request, or there is no reply")
        return Entry(line.key, line.kind, line.model, bytes(line.reply), request)
    except ValueError as error:  # msgspec's and base64's own are of this kind
        raise SetupError(f"{place}: is no line of a cassette: {error}") from None


def _is_brief(request: str) -> bool:
    """Whether a request is not there, only its prompt: then its key can be that of any."""
    return request == canonical({"prompt": msgspec.json.decode(request, type=_Brief).prompt})
