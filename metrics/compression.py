"""How much smaller something became, and how small a model that knows only the last few bytes could make it.

A ratio is original / compressed; a saving is 1 - compressed / original.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .value import Missing, Value

BOUND_ORDER = 5
"""About the best for a block of text: below it a model knows less, above it has seen too little (orders 4 to 6 are
close)."""

MOST = 7
"""The highest order: a context and the byte after it fit in 64 bits."""

Counts = NDArray[np.int64]


def ratio(original: int, compressed: int) -> Value:
    """How many times smaller."""
    return original / compressed if compressed else Missing("undefined", "nothing was compressed")


def saving(original: int, compressed: int) -> Value:
    """The share of the original that is saved; below 0 where it became larger."""
    return 1 - compressed / original if original else Missing("undefined", "nothing was compressed")


def smaller(peer: int, compressed: int) -> Value:
    """The share of a peer's bytes that is saved beside it."""
    return 1 - compressed / peer if peer else Missing("undefined", "the peer took no bytes")


def adaptive_bits(data: bytes, order: int = BOUND_ORDER, known: bytes = b"") -> float:
    """Bits that arithmetic coding of `data` takes, each byte predicted from the `order` bytes before it, learning as
    it goes.

    The prediction blends all orders from 0 up (Witten & Bell 1991, method C, interpolated), starting from 1/256:

        p_n(s) = (times s followed this context + kinds of bytes that followed it · p_{n-1}(s)) / (times + kinds)

    `known` is read before, and not counted. A real coder with this model reaches it within a few bytes, at a few MB/s.
    It bounds the entropy from above: no model of bytes can be shown to be the best, and larger ones (PPMd with
    exclusion, context mixing) save more still.
    """
    if not 0 <= order <= MOST:
        raise ValueError(f"order {order}: give 0 to {MOST}")
    text = np.frombuffer(known + data, np.uint8).astype(np.int64)
    p = np.full(len(text), 1 / 256)
    for n in range(order + 1):
        times, of_symbol, kinds = _seen(text, n)
        total = times + kinds
        blended = (of_symbol + kinds * p) / np.maximum(total, 1)
        p = np.where(total > 0, blended, p)
    return float(-np.log2(p[len(known) :]).sum()) if data else 0.0


def adaptive_bytes(data: bytes, order: int = BOUND_ORDER, known: bytes = b"") -> int:
    """The same in whole bytes."""
    return math.ceil(adaptive_bits(data, order, known) / 8)


def _seen(text: Counts, order: int) -> tuple[Counts, Counts, Counts]:
    """For each byte, of all before it: how often its context of `order` bytes stood there, how often the byte followed
    it, and how many kinds of bytes did. The first `order` bytes have no context: 0."""
    size = len(text)
    times, of_symbol, kinds = (np.zeros(size, np.int64) for _ in range(3))
    if size <= order:
        return times, of_symbol, kinds
    context = np.zeros(size - order, np.int64)
    for back in range(order, 0, -1):
        context = context * 256 + text[order - back : size - back]
    both = context * 256 + text[order:]
    of_symbol[order:] = _earlier(both)
    times[order:] = _earlier(context)
    kinds[order:] = _earlier(context, of_symbol[order:] == 0)
    return times, of_symbol, kinds


def _earlier(keys: Counts, counted: NDArray[np.bool_] | None = None) -> Counts:
    """For each place, how many earlier places have the same key (of those `counted`)."""
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    each = np.ones(len(keys), np.int64) if counted is None else counted[order].astype(np.int64)
    before = np.cumsum(each) - each
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    lengths = np.diff(np.append(starts, len(keys)))
    found = np.empty(len(keys), np.int64)
    found[order] = before - np.repeat(before[starts], lengths)
    return found
