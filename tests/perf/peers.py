"""What the benchmarks of strategies stand on: ours and a peer's as the same function, on a clock that stops for models.

    step = peer.start(conversation, count)
    for at in conversation.calls():
        sent = step(at)          # what it would send after the first `at` messages

Messages are turned into the library's own when it is started, so that is not timed. Peers' models reply at once, their
embedders give the vectors of `offline`, as ours do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.models import OFFLINE, Models, Reply, Settings
from ctxbench.harness.replay import ConversationIndex, RecordedContext
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.chat import chat_message
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Prompt
from ctxbench.strategies.chain import parse
from ctxbench.strategies.functions import ChatDict

Count = Callable[[str], int]
Step = Callable[[int], Sequence[Any]]
Stage = Callable[[list[Any]], list[Any]]
SUMMARY = "They spoke of the order, its date and its price, and decided to write to the shop on Monday. " * 10
"""What models reply that reply at once."""


@cache
def conversation(kind: str, messages: int) -> Conversation:
    """So many messages in English. Libraries know nothing of its tools, so it offers none.

    `coding` is the recorded sessions of an agent, one after another, over and over; `assistant` is one of 6000
    messages.
    """
    if kind == "assistant":
        (made,) = (each.messages for each in recorded("assistant"))
    else:
        made = tuple(islice(_sessions(kind), messages))
    assert len(made) >= messages
    return Conversation(kind, made[:messages], language="en")


def recorded(name: str) -> list[Conversation]:
    """Return the conversations of a file beside this module."""
    return list(read(find([Path(__file__).with_name(f"{name}.jsonl.zst")], Problems()), Problems()))


def _sessions(kind: str) -> Iterator[Message]:
    sessions = [each for each in scenario(kind) if each.language == "en"]
    for number, session in enumerate(cycle(sessions)):
        for message in session.messages:
            calls = tuple(msgspec.structs.replace(call, id=f"{number}-{call.id}") for call in message.calls)
            answers = message.answers and f"{number}-{message.answers}"
            if message.role != "system" or not number:
                new = {"id": f"{number}-{message.id}", "calls": calls, "answers": answers, "time": None}
                yield msgspec.structs.replace(message, **new)


class Clock:
    """Seconds of CPU of this process, without those that models and embedders took.

    Of CPU, because others may use this machine as well, and neither side has anything to wait for; of the process,
    because some libraries keep a thread for their store.
    """

    def __init__(self) -> None:
        self.stood = 0.0

    def __call__(self) -> float:
        return process_time() - self.stood

    @contextmanager
    def standing(self) -> Iterator[None]:
        began = process_time()
        try:
            yield
        finally:
            self.stood += process_time() - began


CLOCK = Clock()


class Peer(NamedTuple):
    """One way of another library, or several one after the other."""

    name: str
    start: Callable[[Conversation, Count], Step]
    grows: bool = True
    """Whether it must have seen the calls before. If not, it is first called where the timing begins."""
    calls: int = 50
    """How many calls are timed at most."""


class Replying(Models):
    """Models that reply at once, for conversations that are long. Embeddings are those of `offline`."""

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The same for every prompt."""
        return Reply(SUMMARY, "replying", 0, 0, 0.0)


REPLYING = Replying(Settings())


class StandingContext(RecordedContext):
    """The services, with a clock that stands still for what the harness does not count as the strategy's either."""

    def complete(self, prompt: Prompt) -> str:
        with CLOCK.standing():
            return super().complete(prompt)

    def embed(self, texts: Sequence[str], query: bool = False) -> NDArray[np.float32]:
        with CLOCK.standing():
            return super().embed(texts, query)


def ours(spec: str, conversation: Conversation, models: Models = OFFLINE, counter: TokenCounter | None = None) -> Step:
    """A strategy of ours, as the harness replays it; what is new is counted when it asks, and that is timed."""
    services = StandingContext(ConversationIndex(conversation, counter or TokenCounter()), models)
    view = parse(spec).start(services)

    def step(at: int) -> Sequence[Any]:
        services.move_to(at)
        sent = view(Context(Messages.prefix(conversation.messages, at), (), conversation.tools))
        services.drain()
        return sent.messages

    return step


def dicts(conversation: Conversation) -> list[ChatDict]:
    """The messages as OpenAI's dicts."""
    return [{"id": message.id, **chat_message(message)} for message in conversation.messages]


def in_one_loop(step: Callable[[int], Awaitable[Sequence[Any]]]) -> Step:
    """A step of an agent that runs in one event loop from its first call to its last."""
    loop = asyncio.new_event_loop()
    return lambda at: loop.run_until_complete(step(at))
