"""A model whose replies a test chooses, and what a strategy did with them call by call."""

from collections.abc import Callable
from typing import NamedTuple

from ctxbench.harness.models import Models, Reply, Settings
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, ModelError, Prompt, Strategy, SystemOverBudget
from ctxbench.strategies.events import Event, Failed, OverBudget, Summarised

COUNTER = TokenCounter()


class Replying(Models):
    """A model that answers every prompt by a function of it, and keeps the prompts."""

    def __init__(self, reply: Callable[[Prompt], str] = lambda prompt: f"about {len(prompt.about)}") -> None:
        super().__init__(Settings())
        self.reply = reply
        self.prompts: list[Prompt] = []

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        self.prompts.append(prompt)
        text = self.reply(prompt)
        return Reply(text, "replying", sum(map(counter.text, prompt.material)), counter.text(text), 0.0)


def refusing(prompt: Prompt) -> str:
    raise ModelError("refused")


def chat(size: int, text: str = "text {}", system: bool = True) -> Conversation:
    """Return a system message (s), then `size` messages of user and assistant in turn (m1, m2, …)."""
    said = [Message(f"m{at}", "user" if at % 2 else "assistant", text.format(at)) for at in range(1, size + 1)]
    return Conversation("chat", (*([Message("s", "system", "Be brief.")] if system else []), *said))


def numbered(first: int, last: int) -> list[str]:
    """Return the ids of consecutive messages of `chat`."""
    return [f"m{at}" for at in range(first, last + 1)]


class Sent(NamedTuple):
    """The messages sent after the first `at` messages, and the events recorded then."""

    at: int
    messages: list[Message]
    events: tuple[Event, ...]

    @property
    def names(self) -> list[str]:
        return [message.id for message in self.messages]

    @property
    def tokens(self) -> int:
        return sum(map(COUNTER.message, self.messages))


def sending(
    strategy: Strategy, conversation: Conversation, model: Models | None = None, *points: int, twice: bool = False
) -> list[Sent]:
    """Return what is sent after each number of messages (by default, at each recorded call).

    With `twice` the view is called twice each time, and must send the same; the second call's events are left out.
    """
    services = RecordedContext(ConversationIndex(conversation, COUNTER), model or Replying())
    view = strategy.start(services)
    steps = []
    for at in points or conversation.calls():
        try:
            context = view(Context(Messages.prefix(conversation.messages, at)))
        except SystemOverBudget:
            break
        steps.append(Sent(at, list(context.messages), services.drain()[0]))
        if twice:
            assert list(view(Context(Messages.prefix(conversation.messages, at))).messages) == steps[-1].messages
            services.drain()
    return steps


def summarised(sent: list[Sent]) -> list[Summarised]:
    """Return the events of all summaries, in order."""
    return [event for step in sent for event in step.events if isinstance(event, Summarised)]


def check_invariants(
    name: str, strategy: Strategy, conversation: Conversation, budget: int | None, model: Models
) -> None:
    """Check the invariants of a strategy that summarises, on any conversation, at every call.

    Recorded messages are sent once, in order and unchanged, or are in a summary, not both; the strategy writes system
    messages of its own name only; calls and results stay or go together; system messages stay; the budget holds; and
    each message is sent, or covered by a summary, or an event says why it is not.
    """
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    calls = {call.id: at for at, message in enumerate(conversation.messages) for call in message.calls}
    covered: set[str] = set()
    for step in sending(strategy, conversation, model, twice=True):
        covered.update(*(event.replaced for event in step.events if isinstance(event, Summarised)))
        recorded = [message for message in step.messages if message.id in place]
        assert recorded == [conversation.messages[place[message.id]] for message in recorded]
        places = [place[message.id] for message in recorded]
        assert places == sorted(set(places))
        assert all(at < step.at for at in places)
        written = [message for message in step.messages if message.id not in place]
        assert all(message.role == "system" and message.id.startswith(f"{name}:") for message in written)
        assert len({message.id for message in written}) == len(written)
        said = conversation.messages[: step.at]
        sent = set(step.names)
        assert covered.isdisjoint(sent)
        for message in said:
            if message.answers in calls and place[message.id] > calls[message.answers]:
                answered = conversation.messages[calls[message.answers]].id in sent
                assert (message.id in sent) <= answered
                if (
                    not any(isinstance(event, OverBudget | Failed) for event in step.events)
                    and message.id not in covered
                ):
                    assert (message.id in sent) == answered
            if message.role == "system":
                assert message.id in sent
        assert budget is None or step.tokens <= budget
        lost = [message.id for message in said if message.id not in sent | covered and message.role != "tool"]
        assert lost == [] or any(isinstance(event, OverBudget | Failed) for event in step.events)
