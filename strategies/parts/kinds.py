"""What type a memory is of, and how important, by offline rules: 000 §3.3 names the types, not how to tell them."""

from __future__ import annotations

import re
from typing import Literal

from ...metrics.cues import is_decision
from ...metrics.language import sentences, words
from ...metrics.values import values
from ...scenarios.model import Role
from .stated import is_preference

Kind = Literal[
    "current_task",
    "tool_results",
    "session_context",
    "recent_decisions",
    "preference",
    "fact",
    "procedure",
    "session_summary",
]
IMPORTANCE: dict[Kind, float] = {
    "current_task": 5.0,
    "tool_results": 5.0,
    "session_context": 5.0,
    "recent_decisions": 7.0,
    "preference": 7.0,
    "fact": 5.5,
    "procedure": 6.0,
    "session_summary": 7.0,
}
"""0 to 10. 5.0 and 7.0 for a summary are the document's (000 §3.3.2, §3.2.2); it is silent on the rest."""
BY_USER, TRIVIAL, TRIVIAL_WORDS = 1.0, -3.0, 4
"""Said by the user: + 1. Fewer words than that ("ok", 好的): - 3."""

_SUMMARY = re.compile(
    r"\s*(?:\W{0,4})(?:总结|小结|摘要|综上|总之|summary|in summary|to sum up|to summari[sz]e)", re.IGNORECASE
)
_STEPS = re.compile(r"(?:^|\n)\s*(?:步骤|第[一二三四五六七八九十\d]步|step \d|\d{1,2}[.)、]\s)", re.IGNORECASE)
_ASKS = re.compile(
    r"[?？]|请|帮我|帮忙|麻烦|\bplease\b|\b(?:can|could|would) you\b|\bI (?:need|want|would like)\b", re.IGNORECASE
)


def kind_of(role: Role, text: str) -> Kind:
    """The type of a memory (000 §3.3.2), by rules: the first that holds.

    A tool's result; a text that begins as a summary; the user's preference; a decision, whoever states it; two or
    more numbered steps; a statement (not a question) with a number, a date, an identifier or a name in it; what the
    user asks for; anything else is the session's context.
    """
    if role == "tool":
        return "tool_results"
    if _SUMMARY.match(text):
        return "session_summary"
    if role == "user" and is_preference(text):
        return "preference"
    if is_decision(text):
        return "recent_decisions"
    if len(_STEPS.findall(text)) >= 2:
        return "procedure"
    if any(values(each) for each in sentences(text) if not each.endswith(("?", "？"))):
        return "fact"
    return "current_task" if role == "user" and _ASKS.search(text) else "session_context"


def importance_of(kind: Kind, role: Role, text: str) -> float:
    """0 to 10: by type, more if the user said it, less if hardly anything was said."""
    found = IMPORTANCE[kind] + (BY_USER if role == "user" else 0.0)
    return found + (TRIVIAL if len(words(text[:200])) < TRIVIAL_WORDS else 0.0)
