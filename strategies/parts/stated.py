"""Facts, and the offline rule that finds them in what was said (for S8; 002 says only that a model gives them)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import msgspec

from ...metrics.cues import is_constraint, is_decision
from ...metrics.language import sentences, words
from ...metrics.values import values
from ...scenarios.model import Message
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


class Fact(msgspec.Struct, frozen=True, gc=False):
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


def stated(message: Message, most: int, most_tokens: int, count: Callable[[str], int]) -> tuple[Fact, ...]:
    """The facts that a message states: at most `most`, the surest, in the order they are said.

    A fact is a sentence, not a question, of three words or more, in which the user states a preference, or anyone a
    decision, a constraint, or a number, date, identifier, path, address or name. Of a sentence over `most_tokens` the
    start is kept.
    """
    found: list[Fact] = []
    for sentence in sentences(message.text)[:SENTENCES]:
        why = _why(message, sentence)
        if why is None:
            continue
        confidence = CONFIDENCE[why] + (BY_ASSISTANT if message.role == "assistant" else 0)
        confidence += HEDGED if _HEDGE.search(sentence) else 0
        found.append(Fact(passages(sentence, most_tokens, 1, count)[0], round(confidence, 2), message.id))
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
