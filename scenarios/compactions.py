"""The messages that an agent sent from a compaction on: what it left of the recorded history.

`recorded` replays them, and `lab validate` compares them with the recorded usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from .model import Compaction, Conversation, Message

RECORDED = "recorded"
"""Name of the strategy that sends what the recorded agent sent; the ids of its summaries begin with it."""


class PlacedCompaction(NamedTuple):
    """A compaction with its place among the messages."""

    after: int
    """Place of the last message before it."""
    compaction: Compaction


def placed_compactions(conversation: Conversation) -> tuple[PlacedCompaction, ...]:
    """Return the compactions of a conversation in the order of the messages."""
    if not conversation.compactions:
        return ()
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    placed = (PlacedCompaction(place[compaction.after], compaction) for compaction in conversation.compactions)
    return tuple(sorted(placed, key=itemgetter(0)))


def first_kept(compaction: Compaction, place: Mapping[str, int]) -> int:
    """Return the place of the first message that was still sent verbatim. `place` has that of each message by its id.

    Raises KeyError where a message of the compaction has no place.
    """
    behind = place[compaction.after] + 1
    return behind if compaction.first_kept is None else min(behind, place[compaction.first_kept])


def compacted_start(compaction: Compaction, replaced: Sequence[Message]) -> tuple[Message, ...]:
    """Return what was sent in the place of the messages before the first kept one: system messages and the summary."""
    systems = tuple(message for message in replaced if message.role == "system")
    if not compaction.summary:
        return systems
    return (*systems, Message(f"{RECORDED}:{compaction.after}", "user", compaction.summary))
