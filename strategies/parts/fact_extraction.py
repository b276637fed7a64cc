"""Facts, extracted from messages by rules or by a model (for S8; design 002 says only that a model gives them)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ctxbench.metrics.language import Language, is_constraint, is_decision, sentences, words
from ctxbench.metrics.values import values
from ctxbench.scenarios.model import Message

from ..base import ModelError, Prompt, StrategyContext, texts
from .passages import passages

FactReason = Literal["preference", "decision", "constraint", "value", "name"]

CONFIDENCE: dict[FactReason, float] = {
    "preference": 0.9,
    "decision": 0.85,
    "constraint": 0.8,
    "value": 0.75,
    "name": 0.65,
}
"""Confidence by what makes a sentence a fact; the first reason that holds counts."""
BY_ASSISTANT, HEDGED = -0.15, -0.3
"""Corrections: the user knows better; "maybe", "I think", 可能."""
SENTENCES = 200
"""Most sentences of a message that are read: a pasted file states few facts."""

# Ours: 002 says that a model gives facts and confidences, and has no prompt.
PROMPTS = texts("facts_prompt")

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


class StatedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact that a message states, and its confidence."""

    text: str
    confidence: float
    """0 to 1."""
    source: str
    """Id of the message that states it."""

    @property
    def words(self) -> Sequence[str]:
        """Words of the fact, in order."""
        return words(self.text)

    @property
    def about(self) -> str:
        """Words of the fact without its numbers and dates; empty if it has none of these, or little else.

        A later fact with the same words is an update of an earlier one.
        """
        text, spellings = self.text, [value.text for value in values(self.text) if value.kind in ("number", "date")]
        for spelling in spellings:
            text = text.replace(spelling, " ")
        rest = words(text)
        return " ".join(rest) if spellings and len(rest) >= _FEWEST_WORDS else ""


def is_preference(text: str) -> bool:
    """Return whether the text says what somebody likes, or what is always or never to be done."""
    return _PREFERENCE.search(text) is not None


def extract_by_rules(
    message: Message, most: int, most_tokens: int, count: Callable[[str], int]
) -> tuple[StatedFact, ...]:
    """Return the facts that a message states: at most `most`, the surest, in the order of the message.

    A fact is a sentence, not a question, of three words or more, in which the user states a preference, or anyone a
    decision, a constraint, or a number, date, identifier, path, address or name. It is cut to `most_tokens`.
    """
    facts: list[StatedFact] = []
    for sentence in sentences(message.text)[:SENTENCES]:
        reason = _reason(message, sentence)
        if reason is None:
            continue
        confidence = CONFIDENCE[reason] + (BY_ASSISTANT if message.role == "assistant" else 0)
        confidence += HEDGED if _HEDGE.search(sentence) else 0
        facts.append(StatedFact(passages(sentence, most_tokens, 1, count)[0], round(confidence, 2), message.id))
    surest = sorted(range(len(facts)), key=lambda at: (-facts[at].confidence, at))[:most]
    return tuple(facts[at] for at in sorted(surest))


def _reason(message: Message, sentence: str) -> FactReason | None:
    if sentence.endswith(("?", "？")) or len(words(sentence[:200])) < _FEWEST_WORDS:
        return None
    if message.role == "user" and is_preference(sentence):
        return "preference"
    if is_decision(sentence):
        return "decision"
    if is_constraint(sentence):
        return "constraint"
    kinds = {value.kind for value in values(sentence)}
    return "value" if kinds - {"name"} else "name" if kinds else None


def extract_by_model(
    services: StrategyContext, messages: Sequence[Message], language: Language, max_tokens: int, model: str
) -> list[StatedFact]:
    """Return the facts that a model extracts from the messages.

    Text around the JSON list of its reply, and items that are no facts, are skipped. A fact without a usable confidence
    gets 0.5, one without a usable source is of the last message. Raises ModelError, also for a reply without a list,
    and for a list without facts.
    """
    lines = tuple(f"{number}. {message.role}: {message.text}" for number, message in enumerate(messages, 1))
    reply = services.complete(Prompt(PROMPTS[language], lines, max_tokens, tuple(messages), 0.0, model))
    try:
        items = msgspec.json.decode(reply[reply.index("[") : reply.rindex("]") + 1])
    except (ValueError, msgspec.DecodeError):
        raise ModelError("the answer is no JSON list") from None
    facts = [fact for item in items if isinstance(item, dict) and (fact := _fact(item, messages)) is not None]
    if items and not facts:
        raise ModelError("no item of the answer is a fact")
    return facts


def _fact(item: dict[str, object], messages: Sequence[Message]) -> StatedFact | None:
    text, confidence, source = item.get("fact"), item.get("confidence"), item.get("source")
    if not isinstance(text, str) or not text.strip():
        return None
    sure = float(confidence) if isinstance(confidence, (int, float)) and not isinstance(confidence, bool) else 0.5
    place = source if isinstance(source, int) and 1 <= source <= len(messages) else len(messages)
    return StatedFact(
        " ".join(text.split()), min(1.0, max(0.0, sure if math.isfinite(sure) else 0.5)), messages[place - 1].id
    )
