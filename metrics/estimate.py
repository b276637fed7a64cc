"""How wrong `len(text) // 4` is as a count of tokens, by language and kind of text.

Design document 002 §2 replaces that estimate because it is inexact "for many languages and kinds of content", without
a figure. Here it is measured: a text's error is `len(text) // 4` over the exact count, less 1. Empty texts have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from ..scenarios.model import Message
from .language import Language, language_of

Content = Literal["prose", "code", "json", "tool result"]

_FENCE = re.compile(r"\s*(?:```|~~~)")
_NUMBER = re.compile(r"\s*\d+(?:[\t→|:]|(?= {2}))")
_CODE = re.compile(
    r"(?:\t| {4})\s*\S"
    r"|\s*(?:def|class|import|from|return|if|elif|for|while|const|let|var|func|function|fn|public|private|export)"
    r" .*[:=({;]"
    r"|\s*[\w.]+ [-+*/]?= "
    r"|.*[;{}(\[\\]\s*$"
)
_LINE = 2000
"""Characters of a line that are looked at."""


class Estimate(NamedTuple):
    """The error of the estimate over the texts of one language and kind. 0.1 = a tenth too many, -0.1 = too few."""

    language: Language
    content: Content
    texts: int
    tokens: int
    """Exact, of all texts."""
    p10: float
    p50: float
    p90: float
    absolute: float
    """Mean of the errors without their sign."""
    total: float
    """Error of the sum of the estimates: long texts count for more."""


def estimates(messages: Iterable[Message], count: Callable[[str], int]) -> list[Estimate]:
    """The errors over all texts of the messages, ordered by language and kind; `count` counts tokens exactly."""
    found: dict[tuple[Language, Content], list[tuple[int, int]]] = {}
    for message in messages:
        for text, content in _texts(message):
            found.setdefault((language_of(text), content), []).append((len(text) // 4, count(text)))
    return [_of(*kind, pairs) for kind, pairs in sorted(found.items())]


def content_of(text: str, by_tool: bool = False) -> Content:
    """The kind of a text, by the first rule that fits.

    1. `json`: the whole text is a JSON object or array.
    2. `code`: at least half of its lines that are not blank look like code: inside a fence, indented by a tab or four
       spaces, an assignment, a keyword that opens a statement, or an end in one of `; { } ( [` or a backslash. Line
       numbers in front, as agents' tools print them, are passed over.
    3. `tool result`: anything else that a tool returned: logs, listings, tables, pages.
    4. `prose`: the rest.
    """
    if _is_json(text):
        return "json"
    lines = code = 0
    fenced = False
    for line in text.splitlines():
        if not line.strip():
            continue
        if _FENCE.match(line):
            fenced = not fenced
            continue
        number = _NUMBER.match(line)
        start = number.end() if number else 0
        lines += 1
        code += fenced or bool(_CODE.match(line[start : start + _LINE]))
    if code and 2 * code >= lines:
        return "code"
    return "tool result" if by_tool else "prose"


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _texts(message: Message) -> Iterator[tuple[str, Content]]:
    """The texts of a message that are not empty: its own, and the arguments of its tool calls."""
    if message.text:
        yield message.text, content_of(message.text, message.role == "tool")
    for call in message.calls:
        if call.arguments:
            yield call.arguments, content_of(call.arguments)


def _of(language: Language, content: Content, pairs: list[tuple[int, int]]) -> Estimate:
    guessed, exact = np.array(pairs, dtype=np.float64).T
    errors = guessed / exact - 1
    p10, p50, p90 = np.quantile(errors, (0.1, 0.5, 0.9)).tolist()
    whole = float(guessed.sum() / exact.sum() - 1)
    return Estimate(language, content, len(pairs), int(exact.sum()), p10, p50, p90, float(np.abs(errors).mean()), whole)
