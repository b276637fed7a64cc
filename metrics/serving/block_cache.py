"""vLLM's automatic prefix caching: the KV cache of a self-hosted server, in blocks, under a memory limit.

    identity   a full block is its tokens after the block before it: equal prefixes have equal blocks
    read       the leading full blocks that are there; at least the last token of a prompt is always computed
    taken      for the rest: blocks that hold nothing, then those that nobody uses, least recently used first (evicted)
    freed      a finished request's blocks from its last to its first, so that the end of a prompt goes first
    never      a block in use is not evicted

Source: docs/design/prefix_caching.md and vllm/v1/core/{block_pool,kv_cache_manager}.py of vllm-project/vllm (2026-08).
As there, block tables are append-only: a block that is computed although another one holds the same (the end of a
prompt that is cached whole) is a copy, until it is evicted. The last token of an answer is never computed, so never
cached.

Departures. A request's prompt gets its blocks when it begins, its answer when it ends; vLLM gives both in steps. The
pool's one null block does not count.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tree import WIDTH, Node, add, descend, packed, split

Ints = NDArray[np.int64]
NONE = -1


@dataclass(eq=False, slots=True)
class BlockRequest:
    """A request that holds blocks."""

    ids: bytes
    table: Ints
    """Blocks of the request, in order."""
    read: int
    """Tokens."""


class BlockCache:
    """One server's blocks. Requests begin and end in any order.

    Entries of the queue of free blocks that are no longer free, or were freed again, are skipped when they are
    reached: nothing is ever removed from the middle.
    """

    __slots__ = (
        *("_blank", "_cached", "_copies", "_head", "_holds", "_idle", "_made", "_numbers", "_place", "_queue"),
        *("_size", "_tail", "_users", "block", "evicted"),
    )

    def __init__(self, memory: int | None = None, block: int = 16) -> None:
        """Create an empty cache. `memory`: tokens that fit; None = no limit."""
        self.block = block
        self.evicted = 0
        """Tokens evicted so far."""
        self._size = sys.maxsize if memory is None else memory // block
        self._numbers = _Numbers(block)
        self._cached = _none(0)  # the block cached under each number; the first of them, if there are copies
        self._copies: dict[int, list[int]] = {}  # the other blocks that hold the same, by number
        self._made = 0  # blocks that were ever taken, for each of which the arrays have a place
        # For each block: the number it is cached under, its users, its place in the queue.
        self._holds, self._users, self._place = _none(0), _none(0), _none(0)
        self._blank: list[int] = []  # free blocks that hold nothing
        # Free blocks that hold something, least recently used first, and their number.
        self._queue, self._head, self._tail, self._idle = _none(1024), 0, 0, 0

    @property
    def used(self) -> int:
        """Number of tokens in blocks that hold something or are in use."""
        return (self._made - len(self._blank)) * self.block

    def fits(self, tokens: int) -> bool:
        """Return whether a request of so many tokens fits if nothing else runs."""
        return -(-tokens // self.block) <= self._size

    def begin(self, ids: ArrayLike) -> BlockRequest | None:
        """Read the cached part of a prompt and take blocks for the rest; None if too few are free."""
        raw = packed(ids)
        tokens = len(raw) // WIDTH
        numbers = self._number(raw)
        # Less one: the last token is computed even where all is cached, so a prompt of whole blocks lacks its last
        # block.
        blocks = self._cached[numbers[: max(tokens - 1, 0) // self.block]]
        missing = blocks == NONE
        hit = int(missing.argmax()) if missing.any() else len(blocks)
        read, need = blocks[:hit], -(-tokens // self.block) - hit
        # Of the free blocks these will be read, so they cannot be taken for the rest.
        idle = int((self._users[read] == 0).sum())
        if need > self._free - idle:
            return None
        # A request never holds a block twice. Else this would add 1 where 2 are due, as numpy sets each place once.
        self._users[read] += 1
        # Their entries in the queue are stale from here on, so `_take` below does not evict what is being read.
        self._place[read] = NONE
        self._idle -= idle
        table = np.concatenate((read, self._take(need)))
        self._keep(table[hit : len(numbers)], numbers[hit:])
        return BlockRequest(raw, table, hit * self.block)

    def finish(self, running: BlockRequest, output: ArrayLike) -> bool:
        """Take blocks for an answer and free all; return False and change nothing if they do not fit."""
        raw = running.ids + packed(output)[:-WIDTH]
        need = -(-len(raw) // (self.block * WIDTH)) - len(running.table)
        if need > self._free:
            return False
        full, numbers = len(running.ids) // (self.block * WIDTH), self._number(raw)
        running.table = np.concatenate((running.table, self._take(need)))
        self._keep(running.table[full : len(numbers)], numbers[full:])
        self.drop(running)
        return True

    def drop(self, running: BlockRequest) -> None:
        """Free the blocks of a request. Their content stays until they are taken."""
        # From the end, so that the start of a prompt, which others are more likely to share, is evicted last.
        table = running.table[::-1]
        self._users[table] -= 1
        free = table[self._users[table] == 0]
        holding = self._holds[free] != NONE
        self._blank += free[~holding].tolist()
        self._enqueue(free[holding])

    @property
    def _free(self) -> int:
        # Never taken, taken and emptied, and holding something that nobody uses.
        return self._size - self._made + len(self._blank) + self._idle

    def _number(self, raw: bytes) -> Ints:
        numbers = self._numbers.of(raw)
        self._cached = _grown(self._cached, self._numbers.count)
        return numbers

    def _take(self, count: int) -> Ints:
        """Take blocks for a request, which becomes their only user."""
        blank = [self._blank.pop() for _ in range(min(count, len(self._blank)))]
        new = min(count - len(blank), self._size - self._made)
        numbers = np.arange(self._made, self._made + new)
        self._made += new
        self._holds, self._users = _grown(self._holds, self._made), _grown(self._users, self._made)
        self._place = _grown(self._place, self._made)
        blocks = np.concatenate((np.array(blank, np.int64), numbers, self._evict(count - len(blank) - new)))
        self._users[blocks] = 1
        return blocks

    def _keep(self, blocks: Ints, numbers: Ints) -> None:
        """Cache full blocks under the numbers of their content."""
        self._holds[blocks] = numbers
        new = self._cached[numbers] == NONE
        self._cached[numbers[new]] = blocks[new]
        for number, block in zip(numbers[~new].tolist(), blocks[~new].tolist(), strict=True):
            self._copies.setdefault(number, []).append(block)

    def _evict(self, count: int) -> Ints:
        """Evict and return the least recently used free blocks."""
        parts = []
        missing = count
        while missing:
            # More than are missing, since some entries may be stale: an entry counts if it is the latest of its block.
            # Callers have seen that enough are free, so the loop ends.
            stop = min(self._head + 2 * missing + 64, self._tail)
            candidates = self._queue[self._head : stop]
            candidates = candidates[self._place[candidates] == np.arange(self._head, stop)][:missing]
            missing -= len(candidates)
            # Entries behind the last block taken stay for the next time.
            self._head = stop if missing else int(self._place[candidates[-1]]) + 1
            parts.append(candidates)
        blocks = np.concatenate(parts) if parts else _none(0)
        self._forget(blocks)
        self._holds[blocks] = self._place[blocks] = NONE
        self._idle -= count
        self.evicted += count * self.block
        return blocks

    def _forget(self, blocks: Ints) -> None:
        """Stop caching these blocks; where one of them has a copy, that is read from now on."""
        numbers = self._holds[blocks]
        first = self._cached[numbers] == blocks
        self._cached[numbers[first]] = NONE
        # Without copies the loop over single blocks, the slow part, is not needed.
        if not self._copies:
            return
        copied = np.isin(numbers, list(self._copies))
        for number, block in zip(numbers[copied].tolist(), blocks[copied].tolist(), strict=True):
            others = self._copies.get(number, [])
            if block in others:
                others.remove(block)
            else:
                self._cached[number] = others.pop(0) if others else NONE
            if not others:
                self._copies.pop(number, None)

    def _enqueue(self, blocks: Ints) -> None:
        if self._tail + len(blocks) > len(self._queue):
            # Only when the queue is full are its stale entries thrown out, and it grows to twice what is left: so an
            # entry costs the same on average, however long the run.
            waiting = self._queue[self._head : self._tail]
            waiting = waiting[self._place[waiting] == np.arange(self._head, self._tail)]
            self._queue = _none(max(len(self._queue), 2 * (len(waiting) + len(blocks))))
            self._queue[: len(waiting)] = waiting
            self._place[waiting] = np.arange(len(waiting))
            self._head, self._tail = 0, len(waiting)
        self._queue[self._tail : self._tail + len(blocks)] = blocks
        self._place[blocks] = np.arange(self._tail, self._tail + len(blocks))
        self._tail += len(blocks)
        self._idle += len(blocks)


class _BlockSpan(Node):
    """Blocks with consecutive numbers."""

    __slots__ = ("first",)

    first: int


class _Numbers:
    """Numbering of all full blocks: equal tokens after an equal block have the same number. Nothing is hashed."""

    __slots__ = ("_root", "_unit", "count")

    def __init__(self, block: int) -> None:
        self._root = _BlockSpan()
        self._unit = block * WIDTH
        self.count = 0

    def of(self, raw: bytes) -> Ints:
        """Return the numbers of the full blocks of a prompt."""
        unit, at, last = self._unit, 0, self._root
        raw = raw[: len(raw) // unit * unit]
        firsts, sizes = [], []
        for node, same in descend(self._root, raw, unit):
            last = node if same == len(node.key) else self._split(node, same)
            firsts.append(last.first)
            sizes.append(same // unit)
            at += same
        if at < len(raw):
            new = add(last, raw[at:], unit)
            new.first = self.count
            firsts.append(new.first)
            sizes.append(len(new.key) // unit)
            self.count += sizes[-1]
        # Spans of 2 blocks from 7 and of 3 from 20: firsts less starts are 7 and 18, repeated 7 7 18 18 18, and with 0
        # to 4 added 7 8 20 21 22. This is a row of ranges without a loop over blocks.
        lengths = np.array(sizes, np.int64)
        starts = np.cumsum(lengths) - lengths
        return np.repeat(np.array(firsts, np.int64) - starts, lengths) + np.arange(len(raw) // unit)

    def _split(self, node: _BlockSpan, same: int) -> _BlockSpan:
        upper = split(node, same, self._unit)
        # The numbers of a span stay what they were when it is cut: blocks cached under them are found as before.
        upper.first, node.first = node.first, node.first + same // self._unit
        return upper


def _none(size: int) -> Ints:
    return np.full(size, NONE, np.int64)


def _grown(array: Ints, size: int) -> Ints:
    """Return the array with at least so many places."""
    if size <= len(array):
        return array
    return np.concatenate((array, _none(max(size, 2 * len(array)) - len(array))))
