"""The Focus tier for tests that give it any messages, without a recording."""

from collections.abc import Sequence
from typing import NamedTuple

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.events import Event, OverBudget
from ctxbench.strategies.tiers.focus import Focus


class Sent(NamedTuple):
    """A request, what it leaves out, and what was recorded."""

    messages: Messages
    overflow: tuple[Message, ...]
    used: int
    over_budget: OverBudget | None
    events: tuple[Event, ...]


def unrecorded() -> RecordedContext:
    """Services of a conversation whose messages are in no recording."""
    return RecordedContext(ConversationIndex(Conversation("talk", ()), TokenCounter()))


class Opened:
    """A Focus tier, which is given the whole conversation at each call."""

    def __init__(self, focus: Focus) -> None:
        self._services = unrecorded()
        self._session = focus.open(self._services)

    def send(self, messages: Sequence[Message], tools: tuple[Tool, ...] = ()) -> Sent:
        request = self._session.send(Messages.of(tuple(messages)), tools)
        ids = {message.id for message in request.messages}
        overflow = tuple(each for each in messages if each.role != "system" and each.id not in ids)
        return Sent(request.messages, overflow, request.used, request.over_budget, self._services.drain()[0])
