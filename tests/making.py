"""Conversations for tests: short ones by hand, and any that can be, by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.scenarios.model import Conversation, Message, Role, ToolCall
from hypothesis import strategies as st


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


TEXTS = st.sampled_from(
    ["", " ", "yes", "no 42", "the quick brown fox " * 9, "你好，世界" * 7, "🧑‍🚀 שלום", "def f():\n\treturn 1\n"]
)


@st.composite
def messages(draw: st.DrawFn, most: int = 40) -> tuple[Message, ...]:
    """Any messages that a recording may hold: parallel calls, late and missing results, system messages anywhere."""
    made: list[Message] = []
    open_calls: list[str] = []
    for at in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["user", "assistant", "calling", "result", "result", "system"]))
        text = draw(TEXTS)
        if kind == "calling":
            calls = [f"c{at}.{n}" for n in range(draw(st.integers(1, 3)))]
            open_calls += calls
            made.append(calling(f"m{at}", *calls, text=text))
        elif kind == "result" and open_calls:
            call = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            made.append(answering(f"m{at}", call, text))
        else:
            role: Role = "user" if kind in ("user", "result") else "system" if kind == "system" else "assistant"
            made.append(Message(f"m{at}", role, text))
    return tuple(made)


def conversations(most: int = 40) -> st.SearchStrategy[Conversation]:
    """Any conversation."""
    return messages(most).map(lambda said: Conversation("any", said))


@st.composite
def stretches(draw: st.DrawFn, said: Sequence[Message]) -> list[tuple[int, int]]:
    """Some stretches [start, stop) of the messages, in any order, none empty."""
    size = len(said)
    made = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, size - 1))
        made.append((start, draw(st.integers(start + 1, size))))
    return made
