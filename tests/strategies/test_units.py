"""Units: what of a history stays or goes together."""

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import conversations
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.parts.units import SplicedHistory, Units
from tests.builders import answering, calling


def obvious(messages: list[Message]) -> list[int]:
    """A cut is allowed where no result, from there on, answers the latest call of its name before there."""
    called: dict[str, int] = {}
    ties = []
    for at, message in enumerate(messages):
        if message.answers in called:
            ties.append((called[message.answers], at))
        called.update((call.id, at) for call in message.calls)
    return [cut for cut in range(len(messages)) if not any(call < cut <= result for call, result in ties)]


def test_by_hand() -> None:
    """A call and its two results are one unit, a late result draws what lies between into it, an orphan is alone."""
    said = [
        Message("u", "user", "go"),
        calling("c", "1", "2"),
        answering("r1", "1"),
        answering("r2", "2"),
        calling("d", "3"),
        Message("v", "user", "well?"),
        answering("r3", "3"),
        answering("o", "nobody"),
    ]
    units = Units()
    units.read(Messages.of(said[:6]))
    assert units.starts.tolist() == [0, 1, 4, 5]
    units.read(Messages.of(said))
    assert [units.around(at) for at in units.starts] == [(0, 1), (1, 4), (4, 7), (7, 8)]
    assert [units.before(at) for at in range(9)] == [0, 1, 1, 1, 4, 4, 4, 7, 8]


@given(conversation=conversations(), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_reading_as_it_grows_is_reading_at_once(conversation: Conversation, cuts: list[int]) -> None:
    """However the history grew, the units are those of the plain definition."""
    units = Units()
    for cut in [*sorted(cuts), len(conversation.messages)]:
        history = Messages.prefix(conversation.messages, min(cut, len(conversation.messages)))
        units.read(history)
        assert units.starts.tolist() == obvious(list(history))


@given(before=conversations(), after=conversations(), same=st.integers(0, 40))
def test_a_rewritten_history_is_read_again(before: Conversation, after: Conversation, same: int) -> None:
    """When the start of the history changes, units are those of what is there now, and the common part is told."""
    kept = before.messages[:same]
    new = (*kept, Message("new", "user", "x"), *after.messages)
    units = Units()
    units.read(Messages.of(before.messages))
    assert units.read(Messages.of(new)) == len(kept)
    assert units.starts.tolist() == obvious(list(new))


STORE = tuple(Message(f"m{at}", "user") for at in range(12))


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
            history = history + STORE[: data.draw(st.integers(0, 5))]
        assert spliced.read(history) == same
        standing = {at: message for at, message in standing.items() if at < same}
        for at in data.draw(st.lists(st.integers(0, len(history) - 1), max_size=3)) if history else ():
            standing[at] = Message(f"m{at}", "user", f"stand-in {step}")
            spliced.put(at, standing[at])
            assert spliced.at(at) == standing[at]
        assert list(spliced.messages()) == [standing.get(at, message) for at, message in enumerate(history)]
