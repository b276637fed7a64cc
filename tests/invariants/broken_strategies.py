"""For each invariant, a strategy that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import msgspec

from ctxbench.harness import invariants
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.strategies.base import Context, Strategy, StrategyContext, View
from tests.builders import answering, calling, talk

TALK = talk(("system", "be brief"), ("user", "a"), calling("c", "1"), answering("r", "1"), ("assistant", "b"))
ON = (Message("m5", "user", "c"), Message("m6", "assistant", "d"))


@dataclass(frozen=True)
class By:
    """A strategy from a function of the messages."""

    function: Callable[[list[Message]], list[Message]]
    budget: int | None = None

    def start(self, services: StrategyContext) -> View:
        return lambda context: context.sending(self.function(list(context.messages)))


@dataclass(frozen=True)
class Counting:
    """Answers differently each time."""

    def start(self, services: StrategyContext) -> View:
        calls = count()
        return lambda context: context.sending(
            [*context.messages, Message(f"counting:{next(calls)}", "system", "again")]
        )


@dataclass(frozen=True)
class Seeing:
    """Sends what has not been said yet."""

    def start(self, services: StrategyContext) -> View:
        return lambda context: Context(context.messages + TALK.messages[len(context.messages) :])


@dataclass(frozen=True)
class Peeping:
    """Says how long the conversation will be: the messages it is given are a view of the whole recording."""

    def start(self, services: StrategyContext) -> View:
        def view(context: Context) -> Context:
            whole = len(context.messages.spans[0].store)
            return context.sending([Message("peeping", "system", str(whole)), *context.messages])

        return view


@dataclass(frozen=True)
class Marking:
    """Sends the marks it is told, wherever they stand."""

    marks: tuple[int, ...]

    def start(self, services: StrategyContext) -> View:
        return lambda context: Context(context.messages, self.marks, context.tools)


class Tally:
    """Says of itself that nothing has to be put back."""

    def __init__(self) -> None:
        self.calls = 0

    def checkpoint(self) -> Callable[[], None]:
        return lambda: None


@dataclass(frozen=True)
class Remembering:
    """Says that it may be asked in between, though it counts how often it was asked."""

    copyable = True

    def start(self, services: StrategyContext) -> View:
        tally, seen = Tally(), [0]

        def view(context: Context) -> Context:
            if len(context.messages) != seen[0]:
                seen[0] = len(context.messages)
                tally.calls += 1
            return context.sending([*context.messages, Message("tally:0", "system", f"call {tally.calls}")])

        return view


@dataclass(frozen=True)
class Breaking:
    """An invariant, a strategy that breaks it on a conversation, and what the invariant says of it."""

    invariant: invariants.Invariant
    strategy: Strategy
    says: str
    conversation: Conversation = TALK


BREAKING = (
    Breaking(invariants.order_is_kept, By(lambda said: said[::-1]), "out of order"),
    Breaking(invariants.order_is_kept, Seeing(), "has not been said yet"),
    Breaking(
        invariants.nothing_is_invented,
        By(lambda said: [*said, Message("new", "tool", "hi", answers="c1")]),
        "call or result that is in no recording",
    ),
    Breaking(
        invariants.nothing_is_invented,
        By(lambda said: [msgspec.structs.replace(each, name="x") for each in said]),
        "in more than its text",
    ),
    Breaking(
        invariants.ids_are_unique,
        By(lambda said: [*said, Message("note", "system", "a"), Message("note", "system", "b")]),
        r"under one id: \['note'\]",
    ),
    Breaking(invariants.marks_are_places, Marking((1, 0)), "do not ascend"),
    Breaking(invariants.marks_are_places, Marking((0, 0)), "or stand twice"),
    Breaking(
        invariants.calls_and_results_stay_together,
        By(lambda said: [each for each in said if not each.calls]),
        "without their call",
    ),
    Breaking(
        invariants.calls_and_results_stay_together,
        By(lambda said: [each for each in said if each.role != "tool"]),
        "without their result",
    ),
    Breaking(invariants.the_system_prompt_stays, By(lambda said: said[1:]), "dropped"),
    Breaking(invariants.the_budget_is_kept, By(lambda said: said, budget=3), "3 are promised"),
    Breaking(invariants.the_same_history_gives_the_same_context, Counting(), "differently"),
    Breaking(invariants.the_future_is_not_known, Peeping(), "another context", talk(*TALK.messages, *ON)),
    Breaking(invariants.order_is_kept, By(lambda said: [*said, said[-1]]), "or twice"),
    Breaking(invariants.a_question_leaves_no_trace, Remembering(), "does otherwise than a strategy started anew"),
)
