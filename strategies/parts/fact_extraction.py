"""Facts, and the offline rule that finds them in what was said (for S8; 002 says only that a model gives them)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from ...metrics.language import Language, is_constraint, is_decision, sentences, words
from ...metrics.values import values
from ...scenarios.model import Message
from ..base import ModelError, Prompt, StrategyContext
from .passages import passages

Why = Literal["preference", "decision", "constraint", "value", "name"]

CONFIDENCE: dict[Why, float] = {"preference": 0.9, "decision": 0.85, "constraint": 0.8, "value": 0.75, "name": 0.65}
"""By what makes a sentence a fact; the highest that holds."""
BY_ASSISTANT, HEDGED = -0.15, -0.3
"""The user knows better; "maybe", "I think", 可能."""
SENTENCES = 200
"""So many sentences of a message are looked at: who pastes a file states few facts in it."""

_PREFERENCE = re.compile(
    r"喜欢|偏好|偏爱|习惯|讨厌|最爱|总是|从不|以后都|别再|\bmy favou?rite\b"
    r"|\bI(?: am|'m) (?:allergic|vegan|vegetarian)\b"
    r"|\bI(?:'d| would)? (?:really |always |never )?(?:prefer|like|love|hate)\b"
    r"|\b(?:always|never) (?:use|send|do|ask|write|call|put|include)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"可能|也许|大概|或许|好像|似乎|不确定"
    r"|\b(?:maybe|perhaps|probably|possibly|might|seems?|I think|I guess|not sure)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
_values = lru_cache(1024)(values)  # asked twice of most facts: whether it is one, and what it is about


class StatedFact(msgspec.Struct, frozen=True, gc=False):
    """One thing that was said, and how sure it is."""

    text: str
    confidence: float
    """0 to 1."""
    source: str
    """The id of the message that says it."""

    @property
    def words(self) -> list[str]:
        """Its words in order."""
        return words(self.text)

    @property
    def about(self) -> str:
        """What it is about: its words without its numbers and dates. Empty if it has none of these, or little else.

        A later fact about the same thing is an update of an earlier one.
        """
        text, found = self.text, [each.text for each in _values(self.text) if each.kind in ("number", "date")]
        for value in found:
            text = text.replace(value, " ")
        left = words(text)
        return " ".join(left) if found and len(left) >= _FEWEST_WORDS else ""


def is_preference(text: str) -> bool:
    """Whether the text says what somebody likes, or what is always or never to be done."""
    return _PREFERENCE.search(text) is not None


def stated(message: Message, most: int, most_tokens: int, count: Callable[[str], int]) -> tuple[StatedFact, ...]:
    """The facts that a message states: at most `most`, the surest, in the order they are said.

    A fact is a sentence, not a question, of three words or more, in which the user states a preference, or anyone a
    decision, a constraint, or a number, date, identifier, path, address or name. Of a sentence over `most_tokens` the
    start is kept.
    """
    found: list[StatedFact] = []
    for sentence in sentences(message.text)[:SENTENCES]:
        why = _why(message, sentence)
        if why is None:
            continue
        confidence = CONFIDENCE[why] + (BY_ASSISTANT if message.role == "assistant" else 0)
        confidence += HEDGED if _HEDGE.search(sentence) else 0
        found.append(StatedFact(passages(sentence, most_tokens, 1, count)[0], round(confidence, 2), message.id))
    surest = sorted(range(len(found)), key=lambda at: (-found[at].confidence, at))[:most]
    return tuple(found[at] for at in sorted(surest))


def _why(message: Message, sentence: str) -> Why | None:
    if sentence.endswith(("?", "？")) or len(words(sentence[:200])) < _FEWEST_WORDS:
        return None
    if message.role == "user" and is_preference(sentence):
        return "preference"
    if is_decision(sentence):
        return "decision"
    if is_constraint(sentence):
        return "constraint"
    kinds = {value.kind for value in _values(sentence)}
    return "value" if kinds - {"name"} else "name" if kinds else None


PROMPTS: dict[Language, str] = {
    "zh": """请从以下对话中提取值得长期记住的事实：用户的偏好和要求、决定、标识符、数字、日期、人名。

对话内容：
{conversation}

只输出一个 JSON 数组，没有事实则输出 []。每项为
{"fact": "一句话", "confidence": 0 到 1 之间的置信度, "source": 该事实所在消息的编号}""",
    "en": """Extract from this conversation the facts worth remembering: what the user prefers and requires, decisions,
identifiers, numbers, dates, names.

Conversation:
{conversation}

Answer with a JSON array only, each item {"fact": "one sentence", "confidence": from 0 to 1, "source": the number of the
message that says it}; [] if there are none.""",
}
"""Ours: 002 says that a model gives facts and confidences, not how it is asked."""


def asked(
    desk: StrategyContext, said: Sequence[Message], language: Language, max_tokens: int, model: str
) -> list[StatedFact]:
    """The facts that a model finds in these messages.

    Raises ModelError if it cannot answer, or if what it answers has no JSON list of facts in it.
    """
    lines = tuple(f"{number}. {message.role}: {message.text}" for number, message in enumerate(said, 1))
    reply = desk.complete(Prompt(PROMPTS[language], lines, max_tokens, tuple(said), 0.0, model))
    return read(reply, said)


def read(reply: str, said: Sequence[Message]) -> list[StatedFact]:
    """The facts of a reply: whatever stands around its list is passed over, and so are items that are no facts.

    A fact without a usable confidence has 0.5, one without a usable source is of the last message. Raises ModelError.
    """
    try:
        items = msgspec.json.decode(reply[reply.index("[") : reply.rindex("]") + 1])
    except (ValueError, msgspec.DecodeError):
        raise ModelError("the answer is no JSON list") from None
    found = [_fact(item, said) for item in items if isinstance(item, dict)]
    facts = [fact for fact in found if fact is not None]
    if items and not facts:
        raise ModelError("no item of the answer is a fact")
    return facts


def _fact(item: dict[str, object], said: Sequence[Message]) -> StatedFact | None:
    text, confidence, source = item.get("fact"), item.get("confidence"), item.get("source")
    if not isinstance(text, str) or not text.strip():
        return None
    sure = float(confidence) if isinstance(confidence, (int, float)) and not isinstance(confidence, bool) else 0.5
    place = source if isinstance(source, int) and 1 <= source <= len(said) else len(said)
    return StatedFact(
        " ".join(text.split()), min(1.0, max(0.0, sure if math.isfinite(sure) else 0.5)), said[place - 1].id
    )
