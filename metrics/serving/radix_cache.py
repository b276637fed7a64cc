"""SGLang's RadixCache: the KV cache of a self-hosted server, as a tree of prefixes, under a memory limit.

    read       the longest common prefix with what is there, in whole pages; at least the last token is always computed
    nodes      a prompt adds one behind what it reads, its answer another; one is split where two requests part
    locked     all nodes along a running request
    evicted    whole leaves that are not locked, least recently used first, and only as many as are needed

Source: python/sglang/srt/mem_cache/{radix_cache,common}.py and managers/schedule_batch.py of sgl-project/sglang
(v0.5.18), with the default policy `lru`. As there, a node that a lookup matches in part counts as used, with its other
part; and the last token of an answer is never computed, so never cached.

Departures. A prompt is in the tree once the request begins, not after its prefill. SGLang keeps room for a share of the
answer's greatest length before it begins a request; recordings do not say that length, so a request begins where its
prompt fits.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from numpy.typing import ArrayLike

from .tree import WIDTH, Node, add, descend, packed, split


class _Stored(Node):
    """Tokens in the cache."""

    __slots__ = ("locks", "seen")

    def __init__(self, key: bytes = b"", parent: _Stored | None = None) -> None:
        super().__init__(key, parent)
        self.locks = self.seen = 0  # running requests that go through the node; time of its last use


@dataclass(eq=False, slots=True)
class RadixRequest:
    """A request that holds memory."""

    ids: bytes
    last: _Stored
    """Last node along the request."""
    own: int
    """Tokens of its last page, which is not full and therefore not in the tree."""
    read: int
    """Tokens."""


class RadixCache:
    """One server's tree. Requests begin and end in any order."""

    __slots__ = ("_clock", "_leaves", "_limit", "_locked", "_own", "_root", "_stored", "evicted", "page")

    def __init__(self, memory: int | None = None, page: int = 1) -> None:
        """Create an empty cache. `memory`: tokens that fit; None = no limit."""
        self.page = page
        self.evicted = 0
        """Tokens evicted so far."""
        self._limit = sys.maxsize if memory is None else memory // page * page
        self._root = _Stored()
        self._leaves: dict[_Stored, None] = {}  # nodes without children that are not locked
        # Tokens in the tree, the locked ones among them, and those of running requests outside of it.
        self._stored = self._locked = self._own = 0
        self._clock = 0

    @property
    def used(self) -> int:
        """Number of tokens in the tree and in pages that are not full."""
        return self._stored + self._own

    def fits(self, tokens: int) -> bool:
        """Return whether a request of so many tokens fits if nothing else runs."""
        return self._paged(tokens) <= self._limit

    def begin(self, ids: ArrayLike) -> RadixRequest | None:
        """Read the cached part of a prompt and store the rest; None if it does not fit beside the locked nodes."""
        raw = packed(ids)
        tokens = len(raw) // WIDTH
        # Without the last token: it is computed even where the whole prompt is cached, since its logits make the
        # answer.
        node, read = self._walk(raw[:-WIDTH])
        # What is about to be read is locked before there is made room, or it might be evicted for it.
        self._lock(node, 1)
        if not self._room(self._paged(tokens) - read):
            self._lock(node, -1)
            return None
        # Locked to its end first, then unlocked at `node`: no node on the way is ever without a lock.
        last = self._insert(raw)
        self._lock(last, 1)
        self._lock(node, -1)
        own = self.page if tokens % self.page else 0
        self._own += own
        return RadixRequest(raw, last, own, read)

    def finish(self, running: RadixRequest, output: ArrayLike) -> bool:
        """Store an answer and unlock all; return False and change nothing if it does not fit."""
        raw = running.ids + packed(output)[:-WIDTH]
        if not self._room(self._paged(len(raw) // WIDTH) - self._paged(len(running.ids) // WIDTH)):
            return False
        self._own -= running.own
        self._insert(raw)
        self._lock(running.last, -1)
        return True

    def drop(self, running: RadixRequest) -> None:
        """Unlock a request. Its tokens stay until they are evicted."""
        self._own -= running.own
        self._lock(running.last, -1)

    def _paged(self, tokens: int) -> int:
        """Return the tokens of the pages that so many tokens take."""
        return -(-tokens // self.page) * self.page

    def _walk(self, raw: bytes) -> tuple[_Stored, int]:
        """Return the last node of the longest stored prefix, and its tokens; mark all nodes along it as used now."""
        self._clock += 1
        last, matched, unit = self._root, 0, self.page * WIDTH
        for node, same in descend(self._root, raw, unit):
            node.seen = self._clock
            last = node if same == len(node.key) else self._split(node, same)
            matched += same
        return last, matched // WIDTH

    def _split(self, node: _Stored, same: int) -> _Stored:
        upper = split(node, same, self.page * WIDTH)
        self._clock += 1
        # Both parts are on the way of the same requests, and have the tokens of the whole between them: neither
        # `_locked`, `_stored` nor the leaves change.
        upper.locks, upper.seen = node.locks, self._clock
        return upper

    def _insert(self, raw: bytes) -> _Stored:
        """Store the full pages of a prompt, and return their last node."""
        node, matched = self._walk(raw)
        unit = self.page * WIDTH
        rest = raw[matched * WIDTH : len(raw) // unit * unit]
        if not rest:
            return node
        self._leaves.pop(node, None)
        leaf = add(node, rest, unit)
        self._clock += 1
        leaf.seen = self._clock
        self._leaves[leaf] = None
        self._stored += len(rest) // WIDTH
        return leaf

    def _lock(self, node: _Stored, by: int) -> None:
        """Lock a node and all above it once more, or once less."""
        first: _Stored | None = node
        while first is not None and first is not self._root:
            before = first.locks
            first.locks += by
            # Only the first lock and the last unlock change what may be evicted.
            if not before or not first.locks:
                self._locked += by * len(first.key) // WIDTH
            first = first.parent
        # Those above have a child, this one, so they are no leaves either way.
        self._note(node)

    def _note(self, node: _Stored) -> None:
        """Update whether a node may be evicted."""
        if node is self._root or node.children or node.locks:
            self._leaves.pop(node, None)
        else:
            self._leaves[node] = None

    def _room(self, tokens: int) -> bool:
        """Evict until so many tokens fit; return False and evict nothing if they cannot."""
        lacking = tokens - (self._limit - self._stored - self._own)
        # All that is not locked can go: with a node all above it are locked, so below an unlocked node nothing is
        # locked, and it is a leaf in its turn.
        if lacking > self._stored - self._locked:
            return False
        while lacking > 0:
            leaf = min(self._leaves, key=_seen)
            lacking -= len(leaf.key) // WIDTH
            self._evict(leaf)
        return True

    def _evict(self, leaf: _Stored) -> None:
        parent = leaf.parent
        assert parent is not None  # the root is no leaf
        del self._leaves[leaf], parent.children[leaf.key[: self.page * WIDTH]]
        self._stored -= len(leaf.key) // WIDTH
        self.evicted += len(leaf.key) // WIDTH
        self._note(parent)


def _seen(node: _Stored) -> int:
    return node.seen
