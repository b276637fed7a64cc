"""JSON texts in columns: the shape of a text (all but its scalars) once, its scalars with those of the same key.

    {"id": 7, "to": "JFK"}   ->   shape {"id": ·, "to": ·}   id: 7   to: "JFK"

Shapes and scalars are the text's own characters, spaces included, so that a text comes back as it was, and duplicate
keys, 1.0 and 1e3 with it. A text that is not JSON has no shape.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

HOLE = "\0"
"""Stands for a scalar in a shape. JSON has none outside strings, and in strings it is an escape."""

_SCALAR = r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'
_TOKEN = re.compile(rf"(?P<key>\"(?:[^\"\\\x00-\x1f]|\\.)*\")(?=\s*:)|(?P<scalar>{_SCALAR})|[^\"\w-]+", re.ASCII)
_SCALARS = re.compile(_SCALAR, re.ASCII)


class Shaped(NamedTuple):
    """A text in two: its shape, and for each key (as it stands in the text) its scalars in order."""

    shape: str
    scalars: dict[str, list[str]]


def shaped(text: str) -> Shaped | None:
    """The shape and the scalars of a JSON object or array; None if the text is neither."""
    if text[:1] not in ("{", "[") or HOLE in text:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    made: list[str] = []
    scalars: dict[str, list[str]] = defaultdict(list)
    key, end = "", 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            return None
        end = token.end()
        if token.lastgroup == "scalar":
            scalars[key].append(token[0])
            made.append(HOLE)
        else:
            key = token[0] if token.lastgroup == "key" else key
            made.append(token[0])
    return Shaped("".join(made), dict(scalars)) if end == len(text) else None


def unshaped(shape: str, scalars: Mapping[str, list[str]]) -> str:
    """The text again."""
    left: dict[str, Iterator[str]] = {key: iter(each) for key, each in scalars.items()}
    made: list[str] = []
    key = ""
    for piece in _pieces(shape):
        if piece == HOLE:
            made.append(next(left[key]))
        else:
            key = piece if piece[:1] == '"' else key
            made.append(piece)
    return "".join(made)


def split(line: str) -> list[str]:
    """The scalars of a line of them, with commas between."""
    return _SCALARS.findall(line)


def _pieces(shape: str) -> list[str]:
    return _PIECE.findall(shape)


_PIECE = re.compile(rf'"(?:[^"\\\x00-\x1f]|\\.)*"|{HOLE}|[^"{HOLE}]+')
