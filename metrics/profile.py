"""Profile recordings: how long they are, how much of them tools say, how they repeat, pause and are asked about.

`profile(scenario("standard"), text_counter("o200k_base"))` has a figure for each of FEATURES. Two sets with the same
figures ask the same of a strategy: the embedded set `standard` is kept within the range of recorded ones.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ctxbench.scenarios.model import Conversation, Message, Probe

from .language import terms
from .value import Missing, Value


class Feature(NamedTuple):
    """Description of a figure of a profile."""

    name: str
    unit: Literal["conversations", "messages", "tokens", "share", "ratio", "seconds", "calls", "probes"]
    about: str


FEATURES: dict[str, Feature] = {
    "conversations": Feature("conversations", "conversations", "number of conversations"),
    "messages": Feature("messages, median", "messages", "messages of a conversation, half have fewer"),
    "tokens": Feature("tokens, median", "tokens", "of texts and tool arguments, each message once"),
    "tokens_p90": Feature("tokens, 90 %", "tokens", "nine in ten conversations have fewer"),
    "user_tokens": Feature("user message, median", "tokens", "tokens of a user's message"),
    "user_tokens_p90": Feature("user message, 90 %", "tokens", "nine in ten are shorter"),
    "assistant_tokens": Feature("assistant message, median", "tokens", "tokens of an assistant's message"),
    "tool_tokens": Feature("tool result, median", "tokens", "tokens of a tool's result"),
    "tool_tokens_p90": Feature("tool result, 90 %", "tokens", "nine in ten are shorter"),
    "tool_share": Feature("tool results of all tokens", "share", "tokens of tool results, of those of all messages"),
    "tools_per_turn": Feature("tool results per user message", "ratio", "mean over conversations"),
    "repeated": Feature("repeated lines", "share", "characters in lines that the conversation had before, mean"),
    "tool_compression": Feature(
        "tool results, zlib", "ratio", "bytes of tool results over zlib's, median of conversations"
    ),
    "pause": Feature("pause, median", "seconds", "time from an assistant's or tool's message to the user's next"),
    "pause_p90": Feature("pause, 90 %", "seconds", "nine in ten are shorter"),
    "short_pauses": Feature("pauses under 5 min", "share", "the usual lifetime of a prompt cache"),
    "long_pauses": Feature("pauses over 1 h", "share", "the long lifetime of a prompt cache"),
    "probes": Feature("questions per conversation", "probes", "mean over conversations"),
    "question_terms": Feature(
        "question terms in evidence", "share", "stems of a question that its best evidence message has, mean"
    ),
    "evidence": Feature("evidence per question", "messages", "messages that an answerable question rests on, mean"),
    "age": Feature("age of evidence", "share", "tokens between the first evidence and the question, of all, median"),
    "unanswerable": Feature("unanswerable questions", "share", "questions that the conversation does not answer"),
}
"""The figures of a profile, in the order of its table."""

_LINE = 20
"""Characters, or tokens' worth of Chinese, from which a line counts as repeated: shorter ones repeat by chance."""


@dataclass(slots=True)
class _Sums:
    """Sums that one pass over the conversations collects."""

    conversations: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    by_conversation: dict[str, list[float]] = field(default_factory=dict)
    by_message: dict[str, list[int]] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)
    questions: dict[str, list[float]] = field(default_factory=dict)
    probes: int = 0
    unanswerable: int = 0

    def add(self, feature: str, value: float) -> None:
        self.by_conversation.setdefault(feature, []).append(value)


def profile(conversations: Iterable[Conversation], count: Callable[[str], int]) -> dict[str, Value]:
    """Return the figure of each of FEATURES, over conversations. `count` counts the tokens of a text."""
    sums = _Sums()
    for conversation in conversations:
        _add(sums, conversation, count)
    none = "no such message"
    tokens, pauses, questions = sums.by_message, np.array(sums.pauses), sums.questions
    whole = sum(sums.tokens.values())
    return {
        "conversations": sums.conversations,
        "messages": _median(sums.by_conversation.get("messages", ()), "no conversation"),
        "tokens": _median(sums.by_conversation.get("tokens", ()), "no conversation"),
        "tokens_p90": _quantile(sums.by_conversation.get("tokens", ()), 0.9, "no conversation"),
        "user_tokens": _median(tokens.get("user", ()), none),
        "user_tokens_p90": _quantile(tokens.get("user", ()), 0.9, none),
        "assistant_tokens": _median(tokens.get("assistant", ()), none),
        "tool_tokens": _median(tokens.get("tool", ()), none),
        "tool_tokens_p90": _quantile(tokens.get("tool", ()), 0.9, none),
        "tool_share": sums.tokens["tool"] / whole if whole else Missing("undefined", "no text"),
        "tools_per_turn": _mean(sums.by_conversation.get("tools_per_turn", ()), "no user message"),
        "repeated": _mean(sums.by_conversation.get("repeated", ()), "no line is long enough"),
        "tool_compression": _median(sums.by_conversation.get("tool_compression", ()), "no tool result"),
        "pause": _median(pauses, "no times"),
        "pause_p90": _quantile(pauses, 0.9, "no times"),
        "short_pauses": _mean(pauses < 300, "no times"),
        "long_pauses": _mean(pauses > 3600, "no times"),
        "probes": sums.probes / sums.conversations if sums.conversations else Missing("undefined", "no conversation"),
        "question_terms": _mean(questions.get("terms", ()), "no evidence is known"),
        "evidence": _mean(questions.get("evidence", ()), "no evidence is known"),
        "age": _median(questions.get("age", ()), "no evidence is known"),
        "unanswerable": sums.unanswerable / sums.probes if sums.probes else Missing("undefined", "no questions"),
    }


def _add(sums: _Sums, conversation: Conversation, count: Callable[[str], int]) -> None:
    sums.conversations += 1
    before = 0
    starts: dict[str, int] = {}
    for message in conversation.messages:
        tokens = count(message.text) + sum(count(call.arguments) for call in message.calls)
        sums.tokens[message.role] += tokens
        sums.by_message.setdefault(message.role, []).append(tokens)
        starts[message.id] = before
        before += tokens
    sums.add("messages", len(conversation.messages))
    sums.add("tokens", before)
    roles = Counter(message.role for message in conversation.messages)
    if roles["user"]:
        sums.add("tools_per_turn", roles["tool"] / roles["user"])
    if (repeated := _repeated(conversation.messages)) is not None:
        sums.add("repeated", repeated)
    if results := "\n".join(message.text for message in conversation.messages if message.role == "tool").encode():
        sums.add("tool_compression", len(results) / len(zlib.compress(results)))
    for last, message in zip(conversation.messages, conversation.messages[1:], strict=False):
        if message.role == "user" != last.role and message.time is not None and last.time is not None:
            sums.pauses.append(message.time - last.time)
    texts = {message.id: message.text for message in conversation.messages}
    sums.probes += len(conversation.probes)
    for probe in conversation.probes:
        sums.unanswerable += not probe.answerable
        if evidence := [name for name in probe.evidence if name in texts]:
            _add_question(sums, probe, [texts[name] for name in evidence])
            asked = starts.get(probe.after or "", before)
            age = (asked - min(starts[name] for name in evidence)) / max(1, before)
            sums.questions.setdefault("age", []).append(age)


def _add_question(sums: _Sums, probe: Probe, evidence: Sequence[str]) -> None:
    sums.questions.setdefault("evidence", []).append(len(evidence))
    if asked := set(terms(probe.question)):
        shared = max(len(asked & set(terms(text))) / len(asked) for text in evidence)
        sums.questions.setdefault("terms", []).append(shared)


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


def _mean(values: Sequence[float] | np.ndarray, lacking: str) -> Value:
    return float(np.mean(values)) if len(values) else Missing("undefined", lacking)


def _median(values: Sequence[float] | np.ndarray, lacking: str) -> Value:
    return _quantile(values, 0.5, lacking)


def _quantile(values: Sequence[float] | np.ndarray, share: float, lacking: str) -> Value:
    return float(np.quantile(values, share)) if len(values) else Missing("undefined", lacking)
