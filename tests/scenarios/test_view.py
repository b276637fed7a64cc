"""Messages behaves as the list of its messages does, whatever it is made of."""

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages, Span, shared_prefix
from tests.builders import stretches


def view(said: tuple[Message, ...], parts: list[tuple[int, int]]) -> Messages:
    made = Messages()
    for start, stop in parts:
        made = made + Messages((Span(said, start, stop),))
    return made


@given(st.data())
def test_is_the_list(data: st.DataObject) -> None:
    """Length, items, slices and sums are those of the plain list."""
    said = data.draw(messages())
    parts = data.draw(stretches(said))
    made = view(said, parts)
    plain = [m for start, stop in parts for m in said[start:stop]]
    assert list(made) == plain
    assert len(made) == len(plain)
    assert [made[at] for at in range(-len(plain), len(plain))] == plain + plain
    low, high = data.draw(st.integers(-50, 50)), data.draw(st.integers(-50, 50))
    assert list(made[low:high]) == plain[low:high]
    assert list(made[::-1]) == plain[::-1]
    assert list(made + plain) == plain + plain


@given(st.data())
def test_shared_is_the_common_prefix(data: st.DataObject) -> None:
    """What two contexts share is what comparing them message by message finds."""
    said = data.draw(messages(12))
    one, other = view(said, data.draw(stretches(said))), view(said, data.draw(stretches(said)))
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    assert shared_prefix(one, other) == same
    assert shared_prefix(one, Messages.of(list(one))) == len(one)


def test_adjacent_stretches_join() -> None:
    """A history cut in two and put together again is one stretch."""
    said = tuple(Message(f"m{at}", "user") for at in range(6))
    whole = Messages.prefix(said, 6)
    assert (whole[:2] + whole[2:]).spans == whole.spans
