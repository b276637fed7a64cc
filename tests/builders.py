"""Conversations for tests: short ones by hand, and any that can be, by hypothesis."""

from collections.abc import Sequence

from hypothesis import strategies as st

from ctxbench.harness.invariants import conversations, messages
from ctxbench.metrics import measure
from ctxbench.metrics.constraints import Constraints
from ctxbench.metrics.grounding import Demands, lines_of
from ctxbench.metrics.measure import Runs, Stretches
from ctxbench.metrics.values import Lines
from ctxbench.scenarios.model import Conversation, Message, Role, ToolCall

__all__ = ["answering", "calling", "conversations", "messages", "sent", "stretches", "talk", "when"]


def talk(*said: tuple[Role, str] | Message, name: str = "talk") -> Conversation:
    """A conversation from (role, text) pairs and whole messages."""
    made = [each if isinstance(each, Message) else Message(f"m{at}", *each) for at, each in enumerate(said)]
    return Conversation(name, tuple(made))


def calling(name: str, *calls: str, text: str = "") -> Message:
    """An assistant message that makes tool calls with these ids."""
    return Message(name, "assistant", text, calls=tuple(ToolCall(each, "tool", '{"a": 1}') for each in calls))


def answering(name: str, call: str, text: str = "done") -> Message:
    """The result of a tool call."""
    return Message(name, "tool", text, answers=call)


def sent(*steps: list[tuple[int, int]]) -> Runs:
    """Build the runs of messages, start to stop, that each step sends."""
    runs = Runs()
    for step in steps:
        runs.size.append(len(step))
        runs.start.extend(start for start, _ in step)
        runs.stop.extend(stop for _, stop in step)
    return runs


def when(found: Constraints | Demands, runs: Runs, written: Sequence[Message] = ()) -> tuple[Stretches, Lines]:
    """Return when each message of a conversation and of what was written is sent, and the lines of the latter."""
    lines = lines_of(written)
    return measure.stretches(runs, found.size, lines), lines


@st.composite
def stretches(draw: st.DrawFn, said: Sequence[Message]) -> list[tuple[int, int]]:
    """Some stretches [start, stop) of the messages, in any order, none empty."""
    size = len(said)
    made = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, size - 1))
        made.append((start, draw(st.integers(start + 1, size))))
    return made
