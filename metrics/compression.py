"""Compression ratios, and the size that a model of the last few bytes could reach.

A ratio is original / compressed; a saving is 1 - compressed / original.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .value import Missing, Value

BOUND_ORDER = 5  # about the best order for a block of text: a lower one knows less, a higher one has seen too little

Counts = NDArray[np.int64]


def ratio(original: int, compressed: int) -> Value:
    """Return original / compressed."""
    return original / compressed if compressed else Missing("undefined", "nothing was compressed")


def saving(original: int, compressed: int) -> Value:
    """Return 1 - compressed / original; below 0 where the result is larger."""
    return 1 - compressed / original if original else Missing("undefined", "nothing was compressed")


def adaptive_bits(data: bytes, order: int = BOUND_ORDER) -> float:
    """Return the bits of an adaptive arithmetic coding of `data`, each byte predicted from the `order` bytes before it.

    The prediction blends all orders from 0 up (Witten & Bell 1991, method C, interpolated), starting from 1/256:

        p_n(s) = (times s followed this context + kinds of bytes that followed it · p_{n-1}(s)) / (times + kinds)

    The figure is an upper bound of the entropy: larger models save more still. An order is 7 at most: a context and the
    byte after it have to fit in 64 bits.
    """
    text = np.frombuffer(data, np.uint8).astype(np.int64)
    p = np.full(len(text), 1 / 256)
    # The last b of abab. Order 0: 3 bytes before it, b once among two kinds, so p = (1 + 2/256) / (3 + 2) = 0.2016.
    # Order 1: a came once and b followed it, the one kind: p = (1 + 1 x 0.2016) / (1 + 1) = 0.6008, which is 0.74 bits.
    for n in range(order + 1):
        times, of_symbol, kinds = _seen(text, n)
        total = times + kinds
        blended = (of_symbol + kinds * p) / np.maximum(total, 1)
        p = np.where(total > 0, blended, p)
    return float(-np.log2(p).sum()) if data else 0.0


def adaptive_bytes(data: bytes, order: int = BOUND_ORDER) -> int:
    """Return the same in whole bytes."""
    return math.ceil(adaptive_bits(data, order) / 8)


def _seen(text: Counts, order: int) -> tuple[Counts, Counts, Counts]:
    """Count what precedes each byte: its context of `order` bytes, that context with the byte itself, and the kinds of
    bytes that followed the context. The first `order` bytes have no context: 0."""
    size = len(text)
    times, of_symbol, kinds = (np.zeros(size, np.int64) for _ in range(3))
    if size <= order:
        return times, of_symbol, kinds
    context = np.zeros(size - order, np.int64)
    # The bytes before each place as the digits of one number to the base 256: contexts are equal where these are.
    for back in range(order, 0, -1):
        context = context * 256 + text[order - back : size - back]
    both = context * 256 + text[order:]
    of_symbol[order:] = _earlier(both)
    times[order:] = _earlier(context)
    # A kind is counted where it followed the context for the first time.
    kinds[order:] = _earlier(context, of_symbol[order:] == 0)
    return times, of_symbol, kinds


def _earlier(keys: Counts, counted: NDArray[np.bool_] | None = None) -> Counts:
    """Return for one place the number of earlier places with the same key, among those that are `counted`."""
    # Sorted by key and then by place: earlier places with the same key are those before it in its group.
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    one = np.ones(len(keys), np.int64) if counted is None else counted[order].astype(np.int64)
    before = np.cumsum(one) - one
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    lengths = np.diff(np.append(starts, len(keys)))
    earlier = np.empty(len(keys), np.int64)
    earlier[order] = before - np.repeat(before[starts], lengths)
    return earlier
