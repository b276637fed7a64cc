"""Probes as items to be graded."""

from __future__ import annotations

from collections.abc import Mapping

from ...metrics.grading import Item, Kind
from ...metrics.grounding import said
from ...scenarios.model import Message, Probe

KINDS: Mapping[str, Kind] = {
    "temporal": "temporal",
    "temporal-reasoning": "temporal",
    "temporal_reasoning": "temporal",
    "event_ordering": "temporal",
    "preference": "preference",
    "single-session-preference": "preference",
    "preference_following": "preference",
    "updated_fact": "update",
    "knowledge-update": "update",
    "knowledge_update": "update",
}
"""What recordings call the kinds of questions that are graded in their own way."""


def has_gold(probe: Probe) -> bool:
    """Whether an answer to it can be graded."""
    return bool(any(map(str.strip, probe.answers)) or probe.rubric or not probe.answerable)


def item_of(probe: Probe, said_by: Mapping[str, Message], answer: str, name: str) -> Item:
    """The answer to a probe, to be graded. `said_by`: the conversation's messages by their ids."""
    texts = [said(said_by[each]) for each in probe.evidence if each in said_by]
    kind: Kind = KINDS.get(probe.category, "plain") if probe.answerable else "unanswerable"
    return Item(
        name, probe.question, probe.answers, answer, kind, probe.rubric, tuple(filter(None, [*texts, *probe.passages]))
    )
