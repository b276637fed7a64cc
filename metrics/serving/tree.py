"""Radix trees over token ids, in which prefix caches look prefixes up.

A node holds a span of ids as bytes, `WIDTH` of them per id: comparing two spans is comparing memory, so that a prompt
of 100 000 tokens can be looked up from its start at every call. Spans begin and end at whole units (a block, a page);
two children of a node differ in their first unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 4
"""Bytes of an id."""


class Node:
    """A span of ids after those of its parent. The root has none."""

    __slots__ = ("children", "key", "parent")

    def __init__(self, key: bytes = b"", parent: Self | None = None) -> None:
        self.key = key
        self.parent = parent
        self.children: dict[bytes, Self] = {}
        """Children by the first unit of their keys."""


AnyNode = TypeVar("AnyNode", bound=Node)


def packed(ids: ArrayLike) -> bytes:
    """Return token ids as bytes."""
    return np.asarray(ids, np.int32).tobytes()


def descend(root: AnyNode, ids: bytes, unit: int) -> Iterator[tuple[AnyNode, int]]:
    """Yield the nodes along `ids`, each with how many of its bytes match. Only the last may match in part.

    `unit`: bytes of a unit. An incomplete unit at the end of `ids` is in no node.
    """
    at, node = 0, root
    while (child := node.children.get(ids[at : at + unit])) is not None:
        same = _same(child.key, ids, at, unit)
        # Before the yield: who is given a node that is there in part may split it, and its key is shorter then.
        whole = same == len(child.key)
        yield child, same
        if not whole:
            return
        at, node = at + same, child


def add(parent: AnyNode, key: bytes, unit: int) -> AnyNode:
    """Add a child and return it."""
    child = parent.children[key[:unit]] = type(parent)(key, parent)
    return child


def split(node: AnyNode, size: int, unit: int) -> AnyNode:
    """Make the first `size` bytes of a node its parent, and return that."""
    parent = node.parent
    assert parent is not None  # the root is empty: there is nothing to split
    upper = add(parent, node.key[:size], unit)
    node.key, node.parent = node.key[size:], upper
    upper.children[node.key[:unit]] = node
    return upper


def _same(key: bytes, ids: bytes, at: int, unit: int) -> int:
    """Return how many bytes of whole units `key` shares with `ids` from `at` on."""
    # One comparison of memory, and the rule: prompts go on where they ended. The arrays below are made only at the one
    # node where a prompt parts from what is known.
    if ids.startswith(key, at):
        return len(key)
    size = min(len(key), len(ids) - at) // WIDTH
    differ = np.frombuffer(key, np.int32, size) != np.frombuffer(ids, np.int32, size, at)
    same = int(differ.argmax()) if differ.any() else size
    return same * WIDTH // unit * unit
