"""Redact conversations: what `find.py` finds becomes a placeholder, `<EMAIL_1>`, and the same value always the same.

A text that was JSON stays JSON. Nothing of a value is in its placeholder, so nobody can have it back from the output; a
key file on this machine can, which has the values and the digests of the conversations that were redacted with it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, read_file
from ctxbench.scenarios.model import Conversation

from ..folder.files import placed
from .find import KINDS, REGIONS, Finder, Kind, Names, TextSpan, rewritten

LABELS: Mapping[Kind, tuple[str, str]] = {
    "secret": ("secret", "secrets"),
    "home": ("home folder", "home folders"),
    "email": ("e-mail address", "e-mail addresses"),
    "phone": ("phone number", "phone numbers"),
    "name": ("name", "names"),
}
_PLACEHOLDER = re.compile(rf"<(?:{'|'.join(kind.upper() for kind in KINDS)})_\d{{1,9}}>")
_KIND: Mapping[str, Kind] = {kind.upper(): kind for kind in KINDS}
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


class Redaction(msgspec.Struct, frozen=True):
    """Settings of a redaction."""

    names: tuple[str, ...] = ()
    """Names to be replaced beside those that the recordings tell."""
    regions: tuple[str, ...] = REGIONS
    """Regions whose phone numbers are found without a country code."""


class KeyFile(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a key file: what stands behind the placeholders, and which conversations were redacted with it."""

    ctxbench_redaction: int = 1
    values: dict[str, str] = {}
    """The value of each placeholder."""
    conversations: dict[str, str] = {}
    """Digest of each redacted conversation, and that of the original."""


class Redactor:
    """Redacts conversations, and counts what it replaced, by kind."""

    def __init__(self, settings: Redaction, originals: Iterable[Conversation] = (), key: KeyFile | None = None) -> None:
        """Take the names that all conversations tell before the first of them is redacted.

        The placeholders of a key file go on, so that two outputs of one key agree; it is told of what is redacted.
        """
        names = Names(settings.names)
        self._finder = Finder(names, settings.regions)
        for conversation in originals:
            names.learn(conversation)
        self.key = key
        self.counts: Counter[Kind] = Counter()
        """Number of places where something was replaced."""
        self.values: dict[str, str] = {} if key is None else key.values
        """Values behind the placeholders."""
        self._used: dict[str, Kind] = {}
        self._placeholders = {(_kind(placeholder), value): placeholder for placeholder, value in self.values.items()}
        self._last = Counter(kind for kind, _ in self._placeholders)

    @property
    def different(self) -> Counter[Kind]:
        """Number of different values that were replaced."""
        return Counter(self._used.values())

    def conversations(self, originals: Iterable[Conversation]) -> Iterator[Conversation]:
        """Yield conversations without what should not be shared."""
        for original in originals:
            redacted = rewritten(original, self.text)
            if self.key is not None:
                self.key.conversations[redacted.digest()] = original.digest()
            yield redacted

    def text(self, text: str) -> str:
        """Return a text with placeholders."""
        redacted = self._replaced(text, self._spans(text))
        if redacted != text and text[:1] in ("{", "[", '"') and _is_json(text) and not _is_json(redacted):
            # A part goes over the end of a string: look into each string alone.
            spans = [
                # The + 1 is the opening quote, which the part that was searched lacks.
                TextSpan(literal.start() + 1 + span.start, literal.start() + 1 + span.end, span.kind)
                for literal in _LITERAL.finditer(text)
                for span in self._spans(literal[0][1:-1])
            ]
            redacted = self._replaced(text, spans)
        return redacted

    def _spans(self, text: str) -> list[TextSpan]:
        """Return what is to be replaced; a placeholder that a text had before is, so that only ours can be restored."""
        had = [TextSpan(*match.span(), _kind(match[0])) for match in _PLACEHOLDER.finditer(text)]
        found = self._finder.spans(text)
        if had:
            found = [span for span in found if not any(span.start < old.end and old.start < span.end for old in had)]
        return sorted([*found, *had])

    def _replaced(self, text: str, spans: Iterable[TextSpan]) -> str:
        parts, at = list[str](), 0
        for span in spans:
            value = text[span.start : span.end]
            parts += (text[at : span.start], self._placeholder(span.kind, value))
            at = span.end
        return "".join((*parts, text[at:]))

    def _placeholder(self, kind: Kind, value: str) -> str:
        placeholder = self._placeholders.get((kind, value))
        if placeholder is None:
            self._last[kind] += 1
            placeholder = self._placeholders[kind, value] = f"<{kind.upper()}_{self._last[kind]}>"
            self.values[placeholder] = value
        # A placeholder that the text had before is replaced like a value, but nothing private was in it.
        if _PLACEHOLDER.fullmatch(value) is None:
            self.counts[kind] += 1
            self._used[placeholder] = kind
        return placeholder

    def summary(self) -> str:
        """Return what was replaced, as in `3 secrets, 12 e-mail addresses (4 different)`; `nothing` if nothing was."""
        different = self.different
        parts = [
            f"{number:,} {LABELS[kind][number > 1]}"
            + (f" ({different[kind]:,} different)" if 1 < number != different[kind] else "")
            for kind in KINDS
            if (number := self.counts[kind])
        ]
        return ", ".join(parts) or "nothing"


def _kind(placeholder: str) -> Kind:
    return _KIND[placeholder.partition("_")[0][1:]]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def read_key(path: Path) -> KeyFile:
    """Return the content of a key file. Raises RunError if there is none, or if it is none."""
    try:
        key = msgspec.json.decode(read_file(path, LARGEST), type=KeyFile)
        if key.ctxbench_redaction != 1 or not all(map(_PLACEHOLDER.fullmatch, key.values)):
            raise ValueError("it is of another version of ctxbench")
    except OSError as error:
        raise RunError(f"{path}: the key file cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # msgspec's own is of this kind
        raise RunError(f"{path}: is no key file of `convert --redact-key`: {error}") from None
    return key


def write_key(path: Path, key: KeyFile) -> None:
    """Write a key file, which nobody but its owner may read. Raises RunError if it cannot be written."""
    try:
        with placed(path) as draft:
            # Its rights are set before the first byte is in it; changed
            # afterwards, others could have opened it in between.
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(key), indent=1) + b"\n")
    except OSError as error:
        raise RunError(f"{path}: the key file cannot be written: {error.strerror or error}") from None


def restored(redacted: Iterable[Conversation], key: KeyFile, name: str) -> Iterator[Conversation]:
    """Yield the original conversations. Raises RunError for one that was not redacted with that key, or was changed."""

    def value(placeholder: re.Match[str]) -> str:
        return key.values.get(placeholder[0], placeholder[0])

    for conversation in redacted:
        original = rewritten(conversation, lambda text: _PLACEHOLDER.sub(value, text))
        if key.conversations.get(conversation.digest()) != original.digest():
            raise RunError(
                f"{name}: the conversation {conversation.id!r} was not redacted with this key, or was changed since: "
                "give the file as `convert --redact-key` wrote it"
            )
        yield original
