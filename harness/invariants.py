"""Invariants of every strategy, ours and any that is plugged in: put your own through them.

    from hypothesis import given
    from ctxbench.harness.invariants import check, conversations   # needs hypothesis

    @given(conversation=conversations())
    def test_my_strategy_keeps_the_invariants(conversation):
        check(MyStrategy(max_tokens=500), conversation)

An invariant is a function of a replayed conversation. It raises AssertionError with the step and what was wrong. A
strategy that raises SystemOverBudget is looked at up to the step before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from hypothesis import strategies as st

from ctxbench.metrics.probes import PlacedProbe
from ctxbench.metrics.structure import calls_and_results
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Compaction, Conversation, Message, Probe, Role, ToolCall
from ctxbench.strategies.base import Context, Strategy, SystemOverBudget, budget_of, is_copyable
from ctxbench.strategies.events import OverBudget

from .models import OFFLINE
from .probes import RememberedModels, ask_here, ask_replays
from .replay import ConversationIndex, RecordedContext, Step, replay_view, start_view

COUNTER = TokenCounter()

QUESTIONS = ("What did row 42 say earlier?", "之前第42行说了什么？")  # questions asked in between


@dataclass(frozen=True)
class Replayed:
    """A strategy in a conversation. The replay that all invariants look at is made once."""

    strategy: Strategy
    conversation: Conversation

    @cached_property
    def steps(self) -> Sequence[Step]:
        """Every step of the conversation under the strategy."""
        return steps(self.strategy, self.conversation)


Invariant = Callable[[Replayed], None]


def check(strategy: Strategy, conversation: Conversation) -> None:
    """Assert that a strategy keeps every invariant in a conversation."""
    replayed = Replayed(strategy, conversation)
    for invariant in INVARIANTS:
        invariant(replayed)


def order_is_kept(replayed: Replayed) -> None:
    """Assert that recorded messages are sent in their order, each at most once, and none from the future."""
    place = {message.id: at for at, message in enumerate(replayed.conversation.messages)}
    for step in replayed.steps:
        places = [place[message.id] for message in step.context.messages if message.id in place]
        assert places == sorted(set(places)), f"{_at(step)}: recorded messages are sent out of order or twice: {places}"
        assert not places or places[-1] < step.at, f"{_at(step)}: message {places[-1]} has not been said yet"


def nothing_is_invented(replayed: Replayed) -> None:
    """Assert that every message sent is recorded, a stand-in under a recorded id, or a text under a new id.

    A text is a message of any role without tool calls that is no tool's result. A stand-in differs from the recorded
    message in its text and the arguments of its calls alone. Tools offered in the recording stay offered.
    """
    recorded = {message.id: message for message in replayed.conversation.messages}
    for step in replayed.steps:
        for message in step.context.messages:
            if message.id in recorded:
                assert _identity(message) == _identity(recorded[message.id]), (
                    f"{_at(step)}: {message.id!r} differs from the recorded message in more than its text and arguments"
                )
            else:
                is_text = message.role != "tool" and not message.calls
                assert is_text, f"{_at(step)}: {message.id!r} is a tool call or result that is in no recording"
        missing = set(replayed.conversation.tools) - set(step.context.tools)
        assert not missing, f"{_at(step)}: the tools {sorted(tool.name for tool in missing)} are no longer offered"


def ids_are_unique(replayed: Replayed) -> None:
    """Assert that no two messages of a context share an id."""
    for step in replayed.steps:
        sent = Counter(message.id for message in step.context.messages)
        twice = [name for name, times in sent.items() if times > 1]
        assert not twice, f"{_at(step)}: several messages are sent under one id: {twice}"


def marks_are_places(replayed: Replayed) -> None:
    """Assert that cache marks ascend and none stands twice. A mark where no message is makes the replay itself fail."""
    for step in replayed.steps:
        marks = step.context.marks
        assert list(marks) == sorted(set(marks)), f"{_at(step)}: marks {marks} do not ascend, or stand twice"


def calls_and_results_stay_together(replayed: Replayed) -> None:
    """Assert that no context has an orphan result or an unanswered call that the history itself does not have."""
    for step in replayed.steps:
        orphans, unanswered = calls_and_results(step.context.messages)
        had_orphans, had_unanswered = calls_and_results(replayed.conversation.messages[: step.at])
        assert orphans <= had_orphans, f"{_at(step)}: {orphans} tool results are sent without their call"
        assert unanswered <= had_unanswered, f"{_at(step)}: {unanswered} tool calls are sent without their result"


def the_system_prompt_stays(replayed: Replayed) -> None:
    """Assert that every recorded system message is sent."""
    for step in replayed.steps:
        sent = {message.id for message in step.context.messages}
        lost = [m.id for m in replayed.conversation.messages[: step.at] if m.role == "system" and m.id not in sent]
        assert not lost, f"{_at(step)}: system messages are dropped: {lost}"


def the_budget_is_kept(replayed: Replayed) -> None:
    """Assert that what is sent is within the strategy's `budget`, by exact count, or an event says that it cannot."""
    budget = budget_of(replayed.strategy)
    for step in replayed.steps:
        tokens = sum(map(COUNTER.message, step.context.messages))
        refused = any(isinstance(event, OverBudget) for event in step.events)
        assert budget is None or tokens <= budget or refused, (
            f"{_at(step)}: {tokens} tokens are sent, {budget} are promised, and no OverBudget event says why"
        )


def the_same_history_gives_the_same_context(replayed: Replayed) -> None:
    """Assert that started again, or called twice at one point, it returns the same, and the recording is unchanged."""
    conversation = replayed.conversation
    before = conversation.to_json()
    again = steps(replayed.strategy, conversation, asked_twice=True)
    for one, other in zip(replayed.steps, again, strict=True):
        assert one.context == other.context, f"{_at(one)}: the second time another context was sent"
        assert one.events == other.events, f"{_at(one)}: the second time other events were reported"
    assert conversation.to_json() == before, "the recording was changed"


def the_future_is_not_known(replayed: Replayed) -> None:
    """Assert that what is sent at a step is the same whether or not the conversation goes on."""
    whole, conversation = replayed.steps, replayed.conversation
    if not whole:
        return
    # With the answer to that call, without which the shorter conversation would not make it.
    middle = whole[len(whole) // 2].at + 1
    said = conversation.messages[:middle]
    ids = {message.id for message in said}
    past = tuple(compaction for compaction in conversation.compactions if compaction.after in ids)
    short = Conversation(conversation.id, said, conversation.tools, compactions=past)
    for one, other in zip(steps(replayed.strategy, short), whole, strict=False):
        assert one.context == other.context, f"{_at(one)}: another context is sent when the conversation ends here"


def a_question_leaves_no_trace(replayed: Replayed) -> None:
    """Assert that a `copyable` strategy goes on as if it had not been asked questions between its calls.

    It is asked before its first call and after each, in two languages in turn. At three of these places it is asked
    both, and compared: it sends and reports what it would, started anew, after the same calls.
    """
    strategy, conversation, plain = replayed.strategy, replayed.conversation, replayed.steps
    if not is_copyable(strategy):
        return
    index = ConversationIndex(conversation, COUNTER)
    services = RecordedContext(index)
    view = start_view(strategy, services)
    ask_anew = ask_replays(strategy, index, RememberedModels(OFFLINE))
    going = replay_view(conversation, view, services)
    for number in range(len(plain) + 1):
        if number:
            step, expected = next(going), plain[number - 1]
            assert step.context == expected.context, f"{_at(step)}: a question before it changed what is sent"
            assert step.events == expected.events, f"{_at(step)}: a question before it changed what is reported"
        stop = (plain[number].at if number < len(plain) else len(conversation.messages) + 1) - 1
        is_compared = number in {0, len(plain) // 2, len(plain)}
        questions = QUESTIONS if is_compared else (QUESTIONS[number % 2],)
        ask = ask_here(view, services)
        for question in questions if stop else ():
            probe, message = PlacedProbe(0, Probe("p", question), stop, (), frozenset()), Message("p", "user", question)
            with suppress(SystemOverBudget):
                answer = ask(probe, message)
                assert not is_compared or answer == ask_anew(probe, message), (
                    f"at message {stop}: for a question it does otherwise than a strategy started anew"
                )


INVARIANTS: tuple[Invariant, ...] = (
    order_is_kept,
    nothing_is_invented,
    ids_are_unique,
    marks_are_places,
    calls_and_results_stay_together,
    the_system_prompt_stays,
    the_budget_is_kept,
    the_same_history_gives_the_same_context,
    the_future_is_not_known,
    a_question_leaves_no_trace,
)
"""Every invariant."""


def steps(strategy: Strategy, conversation: Conversation, asked_twice: bool = False) -> Sequence[Step]:
    """Return every step of a replay, up to one where the system messages alone are over the strategy's budget.

    `asked_twice` shows the strategy each history twice; the second context counts.
    """
    services = RecordedContext(ConversationIndex(conversation, COUNTER))
    view = start_view(strategy, services)

    def twice(context: Context) -> Context:
        # The events of the first call count; asked again with the same history, a strategy may well report nothing.
        first = view(context)
        events, _ = services.drain()
        second = view(context)
        services.drain()
        for event in events:
            services.record(event)
        assert first == second, "asked twice with one history, the strategy answers differently"
        return second

    replayed = []
    with suppress(SystemOverBudget):
        for step in replay_view(conversation, twice if asked_twice else view, services):
            replayed.append(step)  # noqa: PERF402 (what was replayed before an error stays)
    return replayed


def _identity(message: Message) -> tuple[object, ...]:
    calls = tuple((call.id, call.name) for call in message.calls)
    return (message.role, calls, message.answers, message.name)


def _at(step: Step) -> str:
    return f"at message {step.at}"


_SHORT = ["", " ", "yes", "no 42", "the quick brown fox " * 9, "你好，世界" * 7, "🧑‍🚀 שלום", "def f():\n\treturn 1\n"]
# Longer than any stub that may stand for them.
_LONG = ["row 42 of /srv/a.csv: the quick brown fox\n" * 40, "第42行：你好，世界。" * 60]
TEXTS, RESULTS = st.sampled_from(_SHORT), st.sampled_from(_SHORT + _LONG)


@st.composite
def messages(draw: st.DrawFn, most: int = 40) -> tuple[Message, ...]:
    """Draw messages as a recording may hold: parallel calls, late and missing results, system messages anywhere."""
    drawn: list[Message] = []
    open_calls: list[str] = []
    for at in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["user", "assistant", "calling", "result", "result", "system"]))
        text = draw(RESULTS if kind == "result" and open_calls else TEXTS)
        if kind == "calling":
            calls = [f"c{at}.{n}" for n in range(draw(st.integers(1, 3)))]
            open_calls += calls
            drawn.append(
                Message(f"m{at}", "assistant", text, calls=tuple(ToolCall(call, "tool", '{"a": 1}') for call in calls))
            )
        elif kind == "result" and open_calls:
            call = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            drawn.append(Message(f"m{at}", "tool", text, answers=call))
        else:
            role: Role = "user" if kind in ("user", "result") else "system" if kind == "system" else "assistant"
            thinking = "hm" if role == "assistant" and at % 2 else ""
            drawn.append(Message(f"m{at}", role, text, thinking=thinking))
    return tuple(drawn)


@st.composite
def conversations(draw: st.DrawFn, most: int = 40) -> Conversation:
    """Draw any conversation. Some recorded agents have compacted theirs."""
    history = draw(messages(most))
    compactions = []
    for after in draw(st.lists(st.integers(0, len(history) - 1), max_size=2)):
        kept = draw(st.none() | st.integers(0, after))
        first_kept = None if kept is None else history[kept].id
        compactions.append(Compaction(history[after].id, draw(TEXTS), first_kept))
    return Conversation("any", history, compactions=tuple(compactions))
