"""Facts by a model (for S8): what is asked, and how its answer is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ...metrics.language import Language
from ...scenarios.model import Message
from ..base import Desk, ModelError, Prompt
from .stated import Fact

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


def asked(desk: Desk, said: Sequence[Message], language: Language, max_tokens: int, model: str) -> list[Fact]:
    """The facts that a model finds in these messages.

    Raises ModelError if it cannot answer, or if what it answers has no JSON list of facts in it.
    """
    lines = tuple(f"{number}. {message.role}: {message.text}" for number, message in enumerate(said, 1))
    reply = desk.complete(Prompt(PROMPTS[language], lines, max_tokens, tuple(said), 0.0, model))
    return read(reply, said)


def read(reply: str, said: Sequence[Message]) -> list[Fact]:
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


def _fact(item: dict[str, object], said: Sequence[Message]) -> Fact | None:
    text, confidence, source = item.get("fact"), item.get("confidence"), item.get("source")
    if not isinstance(text, str) or not text.strip():
        return None
    sure = float(confidence) if isinstance(confidence, (int, float)) and not isinstance(confidence, bool) else 0.5
    place = source if isinstance(source, int) and 1 <= source <= len(said) else len(said)
    return Fact(" ".join(text.split()), min(1.0, max(0.0, sure if math.isfinite(sure) else 0.5)), said[place - 1].id)
