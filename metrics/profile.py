"""Profile recordings: how long they are, how much of them tools say, how they repeat, pause and are asked about.

`profile(scenario("standard"), text_counter("o200k_base"))` has a figure for each of FEATURES. Two sets with the same
figures ask the same of a strategy: the embedded set `standard` is kept within the range of recorded ones.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from ctxbench.scenarios.model import Conversation, Message

from .language import terms
from .value import Missing, Value


class Feature(NamedTuple):
    """Figure of a profile: the values it is computed from, and the formula."""

    name: str
    unit: Literal["conversations", "messages", "tokens", "share", "ratio", "seconds", "probes"]
    of: str  # name of its numbers (`_numbers`)
    how: Callable[[np.ndarray], Any]
    lacking: str = ""  # reason to give where there are none


_mean, _median, _p90 = np.mean, partial(np.quantile, q=0.5), partial(np.quantile, q=0.9)
_EMPTY, _NONE, _TIMES, _EVIDENCE = "no conversation", "no such message", "no times", "no evidence is known"

FEATURES: dict[str, Feature] = {
    "conversations": Feature("conversations", "conversations", "messages", len),
    "messages": Feature("messages, median", "messages", "messages", _median, _EMPTY),
    # Tokens are those of texts and tool arguments, each message once.
    "tokens": Feature("tokens, median", "tokens", "tokens", _median, _EMPTY),
    "tokens_p90": Feature("tokens, 90 %", "tokens", "tokens", _p90, _EMPTY),
    "user_tokens": Feature("user message, median", "tokens", "user", _median, _NONE),
    "user_tokens_p90": Feature("user message, 90 %", "tokens", "user", _p90, _NONE),
    "assistant_tokens": Feature("assistant message, median", "tokens", "assistant", _median, _NONE),
    "tool_tokens": Feature("tool result, median", "tokens", "tool", _median, _NONE),
    "tool_tokens_p90": Feature("tool result, 90 %", "tokens", "tool", _p90, _NONE),
    "tool_share": Feature(
        "tool results of all tokens",
        "share",
        "of_tools",
        lambda tokens: float(tokens[:, 0].sum() / tokens[:, 1].sum()),
        "no text",
    ),
    "tools_per_turn": Feature("tool results per user message", "ratio", "tools_per_turn", _mean, "no user message"),
    "repeated": Feature("repeated lines", "share", "repeated", _mean, "no line is long enough"),
    "tool_compression": Feature("tool results, zlib", "ratio", "tool_compression", _median, "no tool result"),
    # From an assistant's or tool's message to the user's next; the usual and the long lifetime of a prompt cache.
    "pause": Feature("pause, median", "seconds", "pause", _median, _TIMES),
    "pause_p90": Feature("pause, 90 %", "seconds", "pause", _p90, _TIMES),
    "short_pauses": Feature("pauses under 5 min", "share", "pause", lambda pauses: _mean(pauses < 300), _TIMES),
    "long_pauses": Feature("pauses over 1 h", "share", "pause", lambda pauses: _mean(pauses > 3600), _TIMES),
    "probes": Feature("questions per conversation", "probes", "probes", _mean, _EMPTY),
    # The stems of a question that its best evidence message has; tokens between the first evidence and the question.
    "question_terms": Feature("question terms in evidence", "share", "terms", _mean, _EVIDENCE),
    "evidence": Feature("evidence per question", "messages", "evidence", _mean, _EVIDENCE),
    "age": Feature("age of evidence", "share", "age", _median, _EVIDENCE),
    "unanswerable": Feature("unanswerable questions", "share", "unanswerable", _mean, "no questions"),
}
"""The figures of a profile, in the order of its table."""

_LINE = 20
"""Characters, or tokens' worth of Chinese, from which a line counts as repeated: shorter ones repeat by chance."""


def profile(conversations: Iterable[Conversation], count: Callable[[str], int]) -> dict[str, Value]:
    """Return the figure of each of FEATURES, over conversations. `count` counts the tokens of a text."""
    numbers: dict[str, list[Any]] = defaultdict(list)
    for conversation in conversations:
        for name, number in _numbers(conversation, count):
            numbers[name].append(number)
    return {
        key: how(np.array(numbers[of])) if numbers[of] or not lacking else Missing("undefined", lacking)
        for key, (_, _, of, how, lacking) in FEATURES.items()
    }


def _numbers(conversation: Conversation, count: Callable[[str], int]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a conversation, by their names."""
    messages, before = conversation.messages, 0
    starts, tokens_of = dict[str, int](), Counter[str]()
    for message in messages:
        tokens = count(message.text) + sum(count(call.arguments) for call in message.calls)
        tokens_of[message.role] += tokens
        yield message.role, tokens
        starts[message.id] = before
        before += tokens
    yield "messages", len(messages)
    yield "tokens", before
    if before:
        yield "of_tools", (tokens_of["tool"], before)
    roles = Counter(message.role for message in messages)
    if roles["user"]:
        yield "tools_per_turn", roles["tool"] / roles["user"]
    if (repeated := _repeated(messages)) is not None:
        yield "repeated", repeated
    if results := "\n".join(message.text for message in messages if message.role == "tool").encode():
        yield "tool_compression", len(results) / len(zlib.compress(results))
    for last, message in pairwise(messages):
        if message.role == "user" != last.role and message.time is not None and last.time is not None:
            yield "pause", message.time - last.time
    texts = {message.id: message.text for message in messages}
    yield "probes", len(conversation.probes)
    for probe in conversation.probes:
        yield "unanswerable", not probe.answerable
        if evidence := [name for name in probe.evidence if name in texts]:
            yield "evidence", len(evidence)
            if words := set(terms(probe.question)):
                yield "terms", max(len(words & set(terms(texts[name]))) / len(words) for name in evidence)
            asked = starts.get(probe.after or "", before)
            yield "age", (asked - min(starts[name] for name in evidence)) / max(1, before)


def _repeated(messages: Sequence[Message]) -> float | None:
    """Return the share of the characters that stand in lines which an earlier line of the conversation equals."""
    seen: set[str] = set()
    whole = repeated = 0
    for message in messages:
        for line in map(str.strip, message.text.split("\n")):
            if len(line) >= (_LINE if line.isascii() else _LINE * 2 // 5):
                whole += len(line)
                repeated += len(line) * (line in seen)
                seen.add(line)
    return repeated / whole if whole else None
