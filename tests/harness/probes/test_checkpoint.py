"""Checkpoints of views: what changes is put back, and what cannot be seen into is refused."""

import threading
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

from ctxbench.harness.probes import checkpoint
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages
from ctxbench.strategies.base import Context, StrategyTypeError, View

CONTEXT = Context(Messages.of((Message("m", "user", "hi"),)))


def counting(
    held: Any, change: Callable[[Any], object], read: Callable[[Any], object]
) -> tuple[View, Callable[[], Any]]:
    """A view that changes what it holds at every call, and a look at what it holds."""

    def view(context: Context) -> Context:
        change(held)
        return context.sending([Message("m", "system", repr(read(held)))])

    return view, lambda: read(held)


class Pair(NamedTuple):
    name: str
    values: list[int]


@dataclass
class Node:
    values: list[int]
    me: "Node | None" = None


@dataclass(slots=True)
class Slotted:
    values: list[int]
    unset: int = field(init=False)


HELD = {
    "list": ([1], lambda held: held.append(2), list),
    "list of lists": ([[1]], lambda held: held[0].append(2), repr),
    "dict": ({"a": [1]}, lambda held: held["a"].append(2), repr),
    "defaultdict": (defaultdict(list), lambda held: held["a"].append(2), dict),
    "ordered": (OrderedDict(a=[1]), lambda held: held["a"].append(2), repr),
    "counter": (Counter("a"), lambda held: held.update("a"), dict),
    "set": ({1}, lambda held: held.add(-len(held)), sorted),
    "deque": (deque([1], maxlen=3), lambda held: held.append(2), list),
    "array": (array("q", [1]), lambda held: held.append(2), list),
    "numpy": (np.zeros(2), lambda held: held.__iadd__(1), lambda held: held.tolist()),
    "named tuple": (Pair("a", [1]), lambda held: held.values.append(2), repr),
    "object": (Node([1]), lambda held: held.values.append(2), repr),
    "slots": (Slotted([1]), lambda held: held.values.append(2), lambda held: held.values),
    "method": ([1].append, lambda held: held(2), lambda held: held.__self__),
}


@pytest.mark.parametrize("name", HELD)
def test_a_view_is_as_it_was(name: str) -> None:
    """A view is put back, whatever it holds and however often it was called in between, and goes on from there."""
    view, look = counting(*HELD[name])
    before, restore = repr(look()), checkpoint(view, None)
    first, second = view(CONTEXT), view(CONTEXT)
    assert first != second
    for _ in range(2):
        restore()
        assert repr(look()) == before
        assert view(CONTEXT) == first


def test_names_are_put_back() -> None:
    """A variable of a closure has its value again, or none, and a cycle ends."""
    node = Node([1])
    node.me = node
    calls = 0

    def look() -> list[int]:
        return unset  # no call has given it a value yet

    def view(context: Context) -> Context:
        nonlocal calls, unset
        calls += 1
        unset = node.values = [*node.values, calls]
        return context.sending([Message("m", "system", repr(unset))])

    restore = checkpoint(view, None)
    assert [view(CONTEXT).messages[0].text for _ in range(2)] == ["[1, 1]", "[1, 1, 2]"]
    restore()
    assert (calls, node.values) == (0, [1])
    with pytest.raises(NameError):
        look()
    if calls:
        unset = [calls]


@pytest.mark.parametrize(
    "held", [threading.Lock(), count(), (each for each in ()), partial(len), open], ids=lambda held: type(held).__name__
)
def test_what_cannot_be_seen_into_is_refused(held: Any) -> None:
    """A lock, an iterator, a generator: a view with one of them cannot be put back. A builtin function is no state."""
    if held is open:
        checkpoint(lambda context: held and context, None)
        return
    with pytest.raises(StrategyTypeError, match="is not `copyable`"):
        checkpoint(lambda context: held and context, None)
