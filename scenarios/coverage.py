"""Compare what a reader made of a file with what stands in it: which texts reached no message, and under which keys.

A reader decodes the fields that it knows and passes over the rest without a word. That is right for identifiers and
settings, and wrong for what the model saw. `coverage` finds the difference by the texts themselves, so it holds for any
format and needs no knowledge of it. Where a format is known to keep text that no model saw (diffs for the screen,
scores), `data/unshown.toml` names its keys and the reason, and that text is counted apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .files import shipped
from .model import Conversation
from .read import Batch, format_name, read
from .readers.exchanges import events, exchanges
from .readers.http import HttpRecordings
from .source import Problems, loads, records

COUNTS = ("conversations", "messages", "calls", "usage", "cache_reads", "compactions")
SHORTEST = 20  # characters from which a string counts as text: shorter ones are mostly names, numbers and settings
_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# At least three words, and no token longer than a URL: identifiers, hashes, keys and encoded bytes are no text.
_WORDS = re.compile(r"\b\w++\W++\w++\W++\w")
_LETTERS = re.compile(r"[^\W\d_]{2}")  # a time has none
_LONG_TOKEN = re.compile(r"[A-Za-z0-9+/=_-]{200}")
# Not a single space: a text that needs no change is not copied.
_BLANK = re.compile(r"\s{2,}|[^\S ]")


class TextCoverage(NamedTuple):
    """Texts of some files in characters, and how much of them the conversations have."""

    covered: int  # of texts that stand in a message, call, tool, summary, probe or fact, or hold one whole
    missing: dict[str, int]  # of the others by key path, `.messages[].metadata.note`, most first
    unshown: dict[str, int]
    """Of texts that no message has and no model saw, by the reason in `data/unshown.toml`, most first."""
    unread: list[str]
    """Key paths with text of which nothing is covered, in order: the keys that the reader does not look at."""

    @property
    def characters(self) -> int:
        """Characters of all distinct texts."""
        return self.covered + sum(self.missing.values()) + sum(self.unshown.values())

    @property
    def share(self) -> float | None:
        """Share of the text that a model may have seen which is covered; None without such text."""
        shown = self.covered + sum(self.missing.values())
        return self.covered / shown if shown else None


def compared(batch: Batch, problems: Problems) -> dict[str, Any]:
    """Return what is read of a batch beside what stands in its files: counts, and characters by key path."""
    conversations = list(read([batch], problems))
    calls = (message.call for each in conversations for message in each.messages if message.call is not None)
    usages = [call.usage for call in calls if call.usage is not None]
    text = coverage(batch, conversations, Problems())
    return {
        "format": format_name(batch.reader),
        "files": len(batch.files),
        "conversations": len(conversations),
        "messages": sum(len(each.messages) for each in conversations),
        "calls": sum(1 for each in conversations for _ in each.calls()),
        "usage": len(usages),
        "cache_reads": sum(bool(usage.cache_read) for usage in usages),
        "compactions": sum(len(each.compactions) for each in conversations),
        "characters": text.characters,
        "text_read": text.share,
        "not_read": text.missing,
        "not_shown": text.unshown,
        "keys_not_looked_at": text.unread,
        "checked": batch.reader.checked,
    }


def coverage(batch: Batch, conversations: Iterable[Conversation], problems: Problems) -> TextCoverage:
    """Compare the texts of the files of a batch with those of the conversations that were read from them."""
    texts = {_plain(text) for conversation in conversations for text in _texts(conversation)}
    by_length = sorted((text for text in texts if len(text) >= SHORTEST), key=len)
    lengths = list(map(len, by_length))
    whole = "\0".join(texts)  # no text goes over a NUL

    def held(text: str) -> bool:
        """Return whether a text stands in one of a conversation, or is one for the most part: in a log's markup."""
        halves = slice(bisect_left(lengths, (len(text) + 1) // 2), bisect_right(lengths, len(text)))
        return text in texts or text in whole or any(message in text for message in by_length[halves])

    covered: Counter[str] = Counter()
    lost: dict[str, list[str]] = {}
    fates: dict[str, bool] = {}
    for path in batch.files:
        strings = deque(_strings(path, batch, problems))
        while strings:
            text, keys = strings.popleft()
            plain = _plain(text)
            if plain in fates:
                if fates[plain]:
                    covered[keys] += 0  # a key under which a text was found is read
                elif plain in lost:
                    lost[plain].append(keys)
            elif _is_text(plain):
                fates[plain] = held(plain)
                if fates[plain]:
                    covered[keys] += len(plain)
                elif _json(text) is None:
                    lost[plain] = [keys]
            if fates.get(plain) is False and plain not in lost:  # of JSON that is not found its strings count
                strings.extend(_walk(_json(text), f"{keys}>"))
    missing, unshown = Counter[str](), Counter[str]()
    # A key path and all below it; `*` stands for any part of one key.
    reasons = [
        (reason, re.compile(re.escape(keys).replace(r"\*", r"[^.\[>]*") + r"(?![^.\[>])"))
        for reason, starts in shipped("unshown").get(format_name(batch.reader), {}).items()
        for keys in starts
    ]
    for plain, paths in lost.items():
        reason = next((why for why, pattern in reasons if any(map(pattern.match, paths))), None)
        (missing if reason is None else unshown)[paths[0] if reason is None else reason] += len(plain)
    unread = sorted(missing.keys() - covered.keys())
    return TextCoverage(covered.total(), dict(missing.most_common()), dict(unshown.most_common()), unread)


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
        return loads(text)
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


def _plain(text: str) -> str:
    return _BLANK.sub(" ", text).strip()


def _is_text(text: str) -> bool:
    """Return whether people or models would read it: three words, or eight characters with Chinese among them."""
    is_han = not text.isascii() and _HAN.search(text) is not None
    if _LONG_TOKEN.search(text) or len(text) < (SHORTEST * 2 // 5 if is_han else SHORTEST):
        return False
    return is_han or (" " in text and bool(_WORDS.search(text)) and bool(_LETTERS.search(text)))
