"""Conversations by hypothesis: any that a recording may hold."""

from __future__ import annotations

from hypothesis import strategies as st

from ...scenarios.model import Conversation, Message, Role, ToolCall

_SHORT = ["", " ", "yes", "no 42", "the quick brown fox " * 9, "你好，世界" * 7, "🧑‍🚀 שלום", "def f():\n\treturn 1\n"]
_LONG = ["row 42 of /srv/a.csv: the quick brown fox\n" * 40, "第42行：你好，世界。" * 60]
"""Longer than what may stand for them."""
TEXTS, RESULTS = st.sampled_from(_SHORT), st.sampled_from(_SHORT + _LONG)


@st.composite
def messages(draw: st.DrawFn, most: int = 40) -> tuple[Message, ...]:
    """Any messages that a recording may hold: parallel calls, late and missing results, system messages anywhere."""
    made: list[Message] = []
    open_calls: list[str] = []
    for at in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["user", "assistant", "calling", "result", "result", "system"]))
        text = draw(RESULTS if kind == "result" and open_calls else TEXTS)
        if kind == "calling":
            calls = [f"c{at}.{n}" for n in range(draw(st.integers(1, 3)))]
            open_calls += calls
            made.append(
                Message(f"m{at}", "assistant", text, calls=tuple(ToolCall(each, "tool", '{"a": 1}') for each in calls))
            )
        elif kind == "result" and open_calls:
            call = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            made.append(Message(f"m{at}", "tool", text, answers=call))
        else:
            role: Role = "user" if kind in ("user", "result") else "system" if kind == "system" else "assistant"
            made.append(Message(f"m{at}", role, text))
    return tuple(made)


def conversations(most: int = 40) -> st.SearchStrategy[Conversation]:
    """Any conversation."""
    return messages(most).map(lambda said: Conversation("any", said))
