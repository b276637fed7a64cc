"""Copies of views: what changes is theirs, what does not is shared, and what cannot be seen into is refused."""

from __future__ import annotations

import threading
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

from ctxbench.harness.probes import copied
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
    me: Node | None = None


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
def test_a_copy_goes_on_for_itself(name: str) -> None:
    """Whatever a view holds: its copy starts with the same, and neither sees what the other does."""
    view, look = counting(*HELD[name])
    before = repr(look())
    copy = copied(view, {}, {})
    first, second = copy(CONTEXT), copy(CONTEXT)
    assert repr(look()) == before
    assert first != second
    assert view(CONTEXT) == first


def test_what_is_shared_stays_shared() -> None:
    """Two closures over one value have one value in the copy as well, and cycles end."""
    held: list[int] = []
    node = Node(held)
    node.me = node

    def add() -> None:
        held.append(len(held))

    def view(context: Context) -> Context:
        add()
        return context.sending([Message("m", "system", f"{held} {node.values} {node.me is node}")])

    copy = copied(view, {}, {})
    assert [copy(CONTEXT).messages[0].text for _ in range(2)] == ["[0] [0] True", "[0, 1] [0, 1] True"]
    assert held == []


def test_what_is_given_instead() -> None:
    """What is given in place of something is met wherever that was held, bound methods among it."""
    mine, other = [1], [2]
    record = mine.append

    def view(context: Context) -> Context:
        record(3)
        return context.sending([Message("m", "system", repr(mine))])

    assert copied(view, {id(mine): other}, {})(CONTEXT).messages[0].text == "[2, 3]"
    assert (mine, other) == ([1], [2, 3])


@pytest.mark.parametrize(
    "held", [threading.Lock(), count(), (each for each in ()), open], ids=lambda held: type(held).__name__
)
def test_what_cannot_be_seen_into_is_refused(held: Any) -> None:
    """A lock, an iterator, a generator: a view with one of them has no copy. A builtin function is no state."""
    if held is open:
        copied(lambda context: held and context, {}, {})
        return
    with pytest.raises(StrategyTypeError, match="is not `copyable`"):
        copied(lambda context: held and context, {}, {})
