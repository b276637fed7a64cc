"""Conversations, services and tiers for the tests of the joined tiers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context
from ctxbench.strategies.events import Event
from ctxbench.strategies.tiers.tiered import Tiered, TieredSession
from ctxbench.strategies.tiers.tiered.tiers import Tiers

COUNTER = TokenCounter()


@dataclass
class Sent:
    """What was sent at a call, and reported."""

    at: int
    messages: Messages
    events: tuple[Event, ...]

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.messages]

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


class Talk:
    """A conversation under `tiered`, call by call; the tiers can be exchanged between two."""

    def __init__(self, tiered: Tiered, conversation: Conversation) -> None:
        self.tiered, self.conversation = tiered, conversation
        self.services = RecordedContext(ConversationIndex(conversation, COUNTER))
        self.opened: TieredSession = tiered.open(self.services)

    def play(self, calls: Sequence[int] | None = None) -> Iterator[Sent]:
        for at in calls if calls is not None else self.conversation.calls():
            self.services.move_to(at)
            context = self.opened.view(Context(Messages.prefix(self.conversation.messages, at)))
            events, _ = self.services.drain()
            yield Sent(at, context.messages, events)

    def resume(self, tiers: Tiers) -> None:
        """As a new process would, with tiers that were restored."""
        self.opened = self.tiered.open(self.services, tiers)


def chat(*said: str, filler: int = 12, words: int = 30) -> Conversation:
    """Return a conversation with `filler` turns about nothing before its last message."""
    messages = [Message("sys", "system", "be brief")]

    def say(text: str) -> None:
        messages.append(Message(f"u{len(messages)}", "user", text))
        messages.append(Message(f"a{len(messages)}", "assistant", "yes"))

    for text in said[:-1]:
        say(text)
    for number in range(filler):
        say(f"turn {number}: " + "nothing of note " * (words // 3))
    say(said[-1])
    return Conversation("talk", tuple(messages))


def memory(rules: Tiered | None = None) -> tuple[Tiers, list[Event]]:
    """Tiers below Focus, and what they report."""
    events: list[Event] = []
    return Tiers(rules or Tiered(working=100, archive=160), events.append), events
