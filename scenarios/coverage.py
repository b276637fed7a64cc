"""Compare what a reader made of a file with what stands in it: which texts reached no message, and under which keys.

A reader decodes the fields that it knows and passes over the rest without a word. That is right for identifiers and
settings, and wrong for what the model saw. `coverage` finds the difference by the texts themselves, so it holds for any
format and needs no knowledge of it. Where a format is known to keep text that no model saw (diffs for the screen,
scores), `data/unshown.toml` names its keys and the reason, and that text is counted apart.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from .model import Conversation
from .read import Batch, format_name
from .readers.exchanges import events, exchanges
from .readers.http import HttpRecordings
from .source import Problems, records

SHORTEST = 20
"""Characters from which a string counts as text: shorter ones are mostly names, numbers and settings."""
LONG = 1 << 20
"""Characters in which a text is compared at a time: so no copy of a longer one is made."""
_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# At least three words, and no token longer than a URL: identifiers, hashes, keys and encoded bytes are no text.
_WORDS = re.compile(r"\w+\W+\w+\W+\w+")
_LETTERS = re.compile(r"[^\W\d_]{2}")  # a time has none
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/=_-]{200}")
# Not a single space: a text that needs no change is not copied.
_BLANK = re.compile(r"\s{2,}|[^\S ]")


@dataclass(frozen=True, slots=True)
class TextCoverage:
    """Texts of some files, and how much of them the conversations have."""

    characters: int
    """Of all distinct texts in the files."""
    covered: int
    """Characters of the texts that stand in a message, call, tool, summary, probe or fact, or hold one whole."""
    missing: dict[str, int]
    """Characters of the others by key path, `.messages[].metadata.note`, most first."""
    unshown: dict[str, int]
    """Characters that no message has and no model saw, by the reason in `data/unshown.toml`, most first."""
    unread: tuple[str, ...]
    """Key paths with text of which nothing is covered, in order: the keys that the reader does not look at."""
    files: int
    """Files whose texts were compared; others are no JSON."""

    @property
    def shown(self) -> int:
        """Characters that a model may have seen: all but `unshown`."""
        return self.characters - sum(self.unshown.values())

    @property
    def share(self) -> float:
        """Share of the characters shown that is covered; 1 where there is no text."""
        return self.covered / self.shown if self.shown else 1.0


def coverage(batch: Batch, conversations: Callable[[], Iterable[Conversation]], problems: Problems) -> TextCoverage:
    """Compare the texts of the files of a batch with those of the conversations that are read from them.

    `conversations` reads them. It is called again where a text of the files is none of theirs, to search for it
    within them; so neither side is kept, and a recording may take up most of the memory.
    """
    compared = _Comparison({_measured(text)[0] for conversation in conversations() for text in _texts(conversation)})
    files = sum(compared.add(_strings(path, batch, problems)) for path in batch.files)
    # JSON that is not found is opened, and its strings are searched for in turn: as many rounds as JSON is nested.
    while compared.unknown:
        compared.search(conversations())
    missing: Counter[str] = Counter()
    unshown: Counter[str] = Counter()
    reasons = _reasons(format_name(batch.reader))
    for length, keys in compared.lost.values():
        reason = next((why for why, pattern in reasons if any(map(pattern.match, keys))), None)
        if reason is None:
            missing[keys[0]] += length
        else:
            unshown[reason] += length
    covered = compared.covered
    return TextCoverage(
        characters=covered.total() + missing.total() + unshown.total(),
        covered=covered.total(),
        missing=dict(missing.most_common()),
        unshown=dict(unshown.most_common()),
        unread=tuple(sorted(missing.keys() - covered.keys())),
        files=files,
    )


class _Comparison:
    """The distinct texts of some files, by digest, while it is found out which of them a conversation has."""

    def __init__(self, known: Set[bytes]) -> None:
        self.covered: Counter[str] = Counter()
        """Characters of the texts that a conversation has, by key path."""
        self.unknown: dict[bytes, tuple[str, list[str]]] = {}
        """Texts that may stand within another text, to be searched for, and their key paths."""
        self.lost: dict[bytes, tuple[int, list[str]]] = {}
        """Lengths of the texts that no conversation has, and their key paths."""
        self._known = known
        self._seen: set[bytes] = set()
        self._opened: set[bytes] = set()  # JSON that no conversation has: its strings count, not itself

    def add(self, strings: Iterable[tuple[str, str]]) -> bool:
        """Add the texts among some strings; return whether there was any string."""
        keys = None
        for text, keys in strings:
            digest, length = _measured(text)
            if (before := self.unknown.get(digest) or self.lost.get(digest)) is not None:
                before[1].append(keys)
            elif digest in self._opened:
                self.add(_walk(_json(text), f"{keys}>"))
            elif digest not in self._seen and _is_text(text if length > LONG else _plain(text)):
                self._seen.add(digest)
                if digest in self._known:
                    self.covered[keys] += length
                else:
                    self.unknown[digest] = text, [keys]
        return keys is not None

    def search(self, conversations: Iterable[Conversation]) -> None:
        """Search the conversations for the unknown texts; those within JSON that was not found are unknown then."""
        searched, self.unknown = self.unknown, {}
        held = _held([_plain(text) for text, _ in searched.values()], conversations)
        json_texts = []
        for at, (digest, (text, keys)) in enumerate(searched.items()):
            if at in held:
                self.covered.update(dict.fromkeys(keys, 0))  # a key under which a text was found is read
                self.covered[keys[0]] += _measured(text)[1]
            elif _json(text) is not None:
                self._opened.add(digest)
                json_texts += [(text, key) for key in keys]
            else:
                self.lost[digest] = _measured(text)[1], keys
        self.add(json_texts)


def _held(texts: Sequence[str], conversations: Iterable[Conversation]) -> set[int]:
    """Return which texts stand in one of the conversations' texts, or are one of them for the most part.

    The latter is so where a log wraps a message into markup.
    """
    by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    lengths = [len(texts[at]) for at in by_length]
    longest = lengths[-1]
    left = set(by_length)

    def within(texts_of_conversations: Iterable[str]) -> Iterator[str]:
        for text in texts_of_conversations:
            if SHORTEST <= len(text) <= longest:
                plain = _plain(text)
                # A message that is at least half of a logged text is all of it but the markup: only texts of once to
                # twice its length come into question, which sorting by length finds.
                twice = by_length[bisect_left(lengths, len(plain)) : bisect_right(lengths, 2 * len(plain))]
                left.difference_update([at for at in twice if at in left and plain in texts[at]])
            yield from _plain_parts(text)
            yield "\0"  # no text goes over it

    parts: list[str] = []
    size = 0
    for part in chain(within(text for conversation in conversations for text in _texts(conversation)), ("",)):
        parts.append(part)
        size += len(part)
        if size > LONG + 2 * longest or not part:
            searched = "".join(parts)
            left.difference_update([at for at in left if texts[at] in searched])
            # A text may begin at the end of this window and go on in the next, so as much as the longest has is
            # searched again.
            parts = [searched[-longest:]]
            size = longest
    return set(by_length) - left


def _reasons(form: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return patterns of the key paths of a format under which no model saw anything, each after its reason."""
    text = (resources.files(__package__) / "data" / "unshown.toml").read_text("utf-8")
    reasons = tomllib.loads(text).get(form, {})
    return [(reason, _under(keys)) for reason, starts in reasons.items() for keys in starts]


def _under(keys: str) -> re.Pattern[str]:
    """Return a pattern of a key path and all below it; `*` stands for any part of one key."""
    return re.compile(re.escape(keys).replace(r"\*", r"[^.\[>]*") + r"(?![^.\[>])")


def _strings(path: Path, batch: Batch, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield every string of a file with its key path, also of JSON that stands in strings; nothing if it is no JSON."""
    if isinstance(batch.reader, HttpRecordings):
        for exchange in exchanges(path, problems):
            for side, body in (("request", exchange.request), ("response", exchange.response)):
                for part in (body, *events(body)):
                    yield from _walk(_json(part), f".{side}")
        return
    for _, raw in records(path, problems):
        yield from _walk(_json(raw), "")


def _walk(value: Any, keys: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, f"{keys}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{keys}[]")
    elif isinstance(value, str):
        yield value, keys


def _json(text: str | bytes) -> Any:
    """Return the object or list that a text is as JSON, or None."""
    if text[:1] not in ("{", "[", b"{", b"["):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _texts(conversation: Conversation) -> Iterator[str]:
    for message in conversation.messages:
        yield message.text
        yield message.thinking
        for call in message.calls:
            yield call.arguments
            yield from _values(call.arguments)
        yield from _values(message.text)  # a result in JSON, which a log may hold as values
        for tool in (message.call.tools or ()) if message.call else ():
            yield from (tool.description, *_values(tool.parameters))
    for tool in conversation.tools:
        yield from (tool.description, *_values(tool.parameters))
    for probe in conversation.probes:
        yield from (probe.question, *probe.answers, *probe.rubric, *probe.passages)
    yield from (fact.text for fact in conversation.facts)
    yield from (compaction.summary for compaction in conversation.compactions)
    yield from (value for value in conversation.meta.values() if isinstance(value, str))


def _values(text: str) -> Iterator[str]:
    """Yield the strings within a text that is JSON."""
    return (value for value, _ in _walk(_json(text), ""))


def _measured(text: str) -> tuple[bytes, int]:
    """Return a digest of a text with single spaces, and the length of that."""
    digest, length = hashlib.blake2b(digest_size=16), 0
    for part in _plain_parts(text):
        digest.update(part.encode("utf-8", "surrogatepass"))
        length += len(part)
    return digest.digest(), length


def _plain(text: str) -> str:
    return "".join(_plain_parts(text))


def _plain_parts(text: str) -> Iterator[str]:
    """Yield a text with single spaces in parts: a substitution holds all lines of its text as objects."""
    begun = blank = False
    for start in range(0, len(text), LONG):
        part = _BLANK.sub(" ", text[start : start + LONG])
        if words := part.strip():
            yield " " + words if begun and (blank or part[0] == " ") else words
            begun = True
        blank = part[-1] == " "


def _is_text(text: str) -> bool:
    """Return whether people or models would read it: three words, or eight characters with Chinese among them."""
    is_han = not text.isascii() and _HAN.search(text) is not None
    if _LONG_TOKEN.search(text) or len(text) < (SHORTEST * 2 // 5 if is_han else SHORTEST):
        return False
    return is_han or (" " in text and bool(_WORDS.search(text)) and bool(_LETTERS.search(text)))
