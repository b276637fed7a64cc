"""The spliced history against an obvious one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.parts.units import SplicedHistory

SAID = tuple(Message(f"m{at}", "user") for at in range(12))


@given(st.data())
def test_it_is_the_obvious_one(data: st.DataObject) -> None:
    """However the history grows or starts anew, and in whatever order stand-ins come, the same messages are sent."""
    spliced, history, standing = SplicedHistory(), Messages(), dict[int, Message]()
    for step in range(data.draw(st.integers(1, 8))):
        same = len(history)
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            same = data.draw(st.integers(0, same))
            others = tuple(Message(f"{step}/{at}", "user") for at in range(data.draw(st.integers(0, 3))))
            history = history[:same] + others
        else:
            history = history + SAID[: data.draw(st.integers(0, 5))]
        assert spliced.read(history) == same
        standing = {at: message for at, message in standing.items() if at < same}
        for at in data.draw(st.lists(st.integers(0, len(history) - 1), max_size=3)) if history else ():
            standing[at] = Message(f"m{at}", "user", f"stand-in {step}")
            spliced.put(at, standing[at])
            assert spliced.at(at) == standing[at]
        assert list(spliced.messages()) == [standing.get(at, message) for at, message in enumerate(history)]
