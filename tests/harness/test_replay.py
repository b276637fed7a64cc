"""replay(): a trace worked by hand, and the log rebuilt."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, reject

from ctxbench.harness.engine.shard import cell_of
from ctxbench.harness.folder.run import rebuild
from ctxbench.harness.invariants import conversations
from ctxbench.harness.replay import ContextLog, ConversationIndex, RecordedContext, replay
from ctxbench.metrics.measure import RaggedArray, measure
from ctxbench.metrics.tokens import PRIMING, TokenCounter
from ctxbench.scenarios.model import Conversation, Message, Tool
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, Strategy, StrategyContext, SystemOverBudget, budget_of
from ctxbench.strategies.chain import parse
from tests.builders import talk

COUNTER = TokenCounter()


def run(strategy: Strategy, conversation: Conversation) -> tuple[list[SimpleNamespace], ContextLog]:
    """The measured steps of one cell, lists with them, and its log."""
    log, services = ContextLog(conversation.messages), RecordedContext(ConversationIndex(conversation, COUNTER))
    for step in replay(conversation, strategy, services):
        log.add(step)
    columns = measure([cell_of(services.index, log, budget_of(strategy))])
    plain = {
        name: _lists(values) if isinstance(values, RaggedArray) else values.tolist() for name, values in columns.items()
    }
    return [SimpleNamespace(**dict(zip(plain, row, strict=True))) for row in zip(*plain.values(), strict=True)], log


def _lists(found: RaggedArray) -> list[list[int]]:
    offsets, values = found
    return [list(map(int, values[start:stop])) for start, stop in pairwise(offsets)]


@dataclass(frozen=True)
class By:
    """A strategy from a function of the messages, as most libraries have them: lists in, lists out."""

    function: Callable[[list[Message]], list[Message]]

    def start(self, services: StrategyContext) -> Callable[[Context], Context]:
        return lambda context: context.sending(self.function(list(context.messages)))


def test_a_trace_by_hand() -> None:
    """Three calls under `none`: each keeps all that was sent before and adds what was said since.

    s u a | u a | u a      calls at 2, 4, 6
    sent   2,  4,  6       kept 0, 2, 4     added [0:2] [2:4] [4:6]
    """
    conversation = talk(
        ("system", "s"),
        ("user", "u"),
        ("assistant", "a"),
        ("user", "u"),
        ("assistant", "a"),
        ("user", "u"),
        ("assistant", "a"),
    )
    size = [COUNTER.message(message) for message in conversation.messages]
    steps, _ = run(parse("none"), conversation)
    assert [step.at for step in steps] == [2, 4, 6]
    assert [step.turn for step in steps] == [1, 2, 3]
    assert [step.kept for step in steps] == [0, 2, 4]
    assert [(step.added_from, step.added_to) for step in steps] == [([0], [2]), ([2], [4]), ([4], [6])]
    assert [step.tokens_sent for step in steps] == [sum(size[:at]) + PRIMING for at in (2, 4, 6)]
    assert [step.tokens_kept for step in steps] == [0, sum(size[:2]), sum(size[:4])]


def test_tools_count_in_every_request() -> None:
    """Tool schemas are part of the whole history's tokens, of what is sent, and of the prefix that is kept."""
    tool = Tool("search", "Search the documents.", '{"type":"object","properties":{"q":{"type":"string"}}}')
    conversation = Conversation(
        "t", talk(("user", "u"), ("assistant", "a"), ("user", "u"), ("assistant", "a")).messages, (tool,)
    )
    bare, _ = run(parse("none"), Conversation("t", conversation.messages))
    steps, _ = run(parse("none"), conversation)
    size = COUNTER.tools([tool])
    assert size > 0
    assert [step.tokens_sent - other.tokens_sent for step, other in zip(steps, bare, strict=True)] == [size, size]
    assert [step.tokens_full - other.tokens_full for step, other in zip(steps, bare, strict=True)] == [size, size]
    assert [step.tokens_kept - other.tokens_kept for step, other in zip(steps, bare, strict=True)] == [0, size]


def test_lists_are_measured_as_stretches() -> None:
    """A strategy that passes plain lists on is logged as the recording's stretches, not as messages of its own."""
    conversation = talk(*[("user" if at % 2 == 0 else "assistant", f"text {at}") for at in range(12)])
    as_list, log = run(By(lambda messages: messages[-3:]), conversation)
    assert log.written == []
    stretched, _ = run(parse("window(messages=3)"), conversation)
    assert as_list == stretched


def test_what_a_strategy_writes_is_kept_once() -> None:
    """The same summary written anew at each step is one message in the log."""
    conversation = talk(*[("user" if at % 2 == 0 else "assistant", f"text {at}") for at in range(8)])
    steps, log = run(By(lambda messages: [Message("w", "user", "summary"), *messages[-1:]]), conversation)
    assert len(log.written) == 1
    assert [step.added_from[0] for step in steps] == [8, 2, 4, 6]
    assert [step.kept for step in steps] == [0, 1, 1, 1]


def test_the_future_cannot_be_sent() -> None:
    """A message that was not said yet is not taken for the recording's own, even if a strategy has got hold of it."""
    conversation = talk(("user", "u"), ("assistant", "a"), ("user", "later"), ("assistant", "b"))
    later = conversation.messages[2]
    _, log = run(By(lambda messages: [*messages, later] if later not in messages else messages), conversation)
    assert log.written == [later]


@pytest.mark.parametrize("spec", ["none", "last_turn", "window(max_tokens=60)", "window(messages=3)"])
@given(conversation=conversations())
def test_any_context_is_rebuilt_from_the_log(spec: str, conversation: Conversation) -> None:
    """From (kept, added) alone every context comes back, message for message."""
    strategy = parse(spec)
    view = strategy.start(RecordedContext(ConversationIndex(conversation, COUNTER)))
    try:
        sent = [list(view(Context(Messages.prefix(conversation.messages, at))).messages) for at in conversation.calls()]
    except SystemOverBudget:
        reject()
    steps, log = run(strategy, conversation)
    entries = [(step.kept, step.added_from, step.added_to) for step in steps]
    assert [list(each) for each in rebuild(entries, conversation.messages, log.written)] == sent
