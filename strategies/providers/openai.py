"""OpenAI's compaction (guide of autumn 2026; docstrings of the openai package 2.54.0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ...scenarios.view import Messages
from ..events import PromptKind
from ..parts.compaction import ClientHistory, CompactingClient
from ..parts.units import NOTHING, at_least


@dataclass(frozen=True, slots=True)
class OpenAICompaction(CompactingClient):
    """A compaction item replaces the history over a threshold; with the endpoint, user messages stay.

    The trigger is the usage of the last response. `mode="endpoint"` is `/responses/compact`: all user messages stay,
    and the item follows them. `mode="stream"` is `context_management`: the item stands alone, and the next request
    starts at it. Neither a default nor a minimum of the threshold is published; 200,000 is the guide's example. `items`
    compacts by their number instead, user messages and compaction items aside: the Agents SDK's session does it from 10
    on.

    The item is encrypted. A summary stands for it here, as a message of the user. Its size and price are not published:
    it is billed as one message more behind the last prompt.
    """

    threshold: int = 200_000
    mode: Literal["endpoint", "stream"] = "endpoint"
    items: int | None = None

    name: ClassVar[str] = "openai.compact"
    prompt: ClassVar[PromptKind] = "extends"
    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "OpenAI, compaction guide of autumn 2026 and openai 2.54.0"
    fails: ClassVar[str] = "an answer or a tool's result is needed again and the item left it out"

    def __post_init__(self) -> None:
        CompactingClient.__post_init__(self)
        at_least(1, threshold=self.threshold, items=self.items)

    def compact(self, history: ClientHistory) -> None:
        stop = history.settled
        said = [message for message in history.messages[:stop] if message.role == "user" and not history.wrote(message)]
        if self.items is None:
            due = history.used > self.threshold
        else:
            due = sum(not history.wrote(message) for message in history.messages[:stop]) - len(said) >= self.items
        if due:
            history.summarise(stop, before=Messages.of(tuple(said)) if self.mode == "endpoint" else NOTHING)
