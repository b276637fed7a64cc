"""The spliced history against an obvious one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.parts.units import SplicedHistory

SAID = tuple(Message(f"m{at}", "user") for at in range(12))
NOTE = Message("note", "system")


def obvious(size: int, standing: dict[int, Message], before: int | None) -> list[Message]:
    """Message by message."""
    made = []
    for at in range(size):
        if at == before:
            made.append(NOTE)
        made.append(standing.get(at, SAID[at]))
    return [*made, NOTE] if before == size else made


@given(st.data())
def test_it_is_the_obvious_one(data: st.DataObject) -> None:
    """However the history grows or starts anew, and in whatever order stand-ins come, the same messages are sent."""
    spliced, size, before = SplicedHistory(), 0, None
    standing: dict[int, Message] = {}
    for step in range(data.draw(st.integers(1, 8))):
        size = data.draw(st.integers(size, len(SAID)))
        history = Messages.prefix(SAID, size)
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            cut = data.draw(st.integers(0, size))
            spliced.keep(history, cut)
            standing, before = {at: made for at, made in standing.items() if at < cut}, None
        if data.draw(st.booleans()):
            before = data.draw(st.integers(0, size))
            spliced.insert(history, before, NOTE)
        for at in data.draw(st.lists(st.integers(0, size - 1), max_size=3)) if size else ():
            standing[at] = Message(f"m{at}", "user", f"stand-in {step}")
            spliced.put(history, at, standing[at])
        made = spliced.messages(history)
        assert list(made) == obvious(size, standing, before)
        for at in range(size):
            assert made[spliced.place(at)].id == f"m{at}"
