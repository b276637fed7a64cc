"""Prompts as values: a text with a digest, which is part of the name of whoever grades with it.

Published scores move by tens of points with the grader's prompt alone. So a prompt is known by its text, NAME@DIGEST:
in a grader's name, and in every request that it makes, so that a cassette's replies to an older one can be told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from .text import cut, seen

_DIGITS = 12
_MARK = 16


class Prompt(msgspec.Struct, frozen=True):
    """Instructions, and what an answer has to look like."""

    name: str
    text: str
    form: str = ""

    @property
    def digest(self) -> str:
        """Of all of it."""
        return digest(self.text, self.form)

    @property
    def full(self) -> str:
        """NAME@DIGEST."""
        return f"{self.name}@{self.digest}"


def digest(*texts: str) -> str:
    """Twelve hexadecimal digits of some texts: others for any change in them."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def fenced(parts: Mapping[str, str | Sequence[str]], most: int) -> tuple[str, str]:
    """Texts as data between marks that none of them can write, and the mark.

    Each is written as a person sees it, at most `most` characters. The mark is a digest of all of them: a text that
    held it would have to hold its own digest. The same texts have the same mark, so the same request.
    """
    shown = [(name, cut(seen(text), most)) for name, texts in parts.items() for text in _all(texts)]
    mark = _mark([text for _, text in shown])
    return "\n\n".join(f"<<{mark} {name}\n{text}\n{mark}>>" for name, text in shown), mark


def _all(texts: str | Sequence[str]) -> Sequence[str]:
    return (texts,) if isinstance(texts, str) else texts


def _mark(texts: Sequence[str]) -> str:
    salt = 0
    while True:
        mark = hashlib.sha256("\0".join((str(salt), *texts)).encode("utf-8", "replace")).hexdigest()[:_MARK]
        if not any(mark in text for text in texts):
            return mark
        salt += 1
