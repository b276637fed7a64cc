"""vLLM's blocks: the example of its documentation, evictions by hand, and an obvious version of the same."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.serving.block_cache import BlockCache, BlockRequest
from tests.metrics.serving.serving import DEEDS, MEMORY, Deed, Tokens, Trace, one_by_one, run, traces, unlimited


def begun(cache: BlockCache, prompt: Tokens) -> BlockRequest:
    running = cache.begin(prompt)
    assert running is not None
    return running


def test_the_example_of_the_documentation() -> None:
    """Ten blocks of 4. A prompt of 14 tokens that shares 10 reads 8; one of 29 that shares 12 reads 12.

    The documentation then evicts block 3: it is older than the rule that blocks which hold nothing are taken first
    (vllm #42656). Of these there are the two last blocks of the first two requests and the three never used.
    """
    cache = BlockCache(40, 4)
    zero = begun(cache, [*range(15)])
    assert zero.read == 0
    one = begun(cache, [*range(10), 50, 51, 52, 53])
    assert one.read == 8
    assert cache.finish(zero, [15, 16, 17])
    assert cache.finish(one, [54])
    assert cache.used == 20  # 0 to 3 of the first, and the third block of the second
    two = begun(cache, [*range(12), *range(60, 77)])
    assert (two.read, cache.evicted, cache.used) == (12, 0, 40)


def test_at_least_one_token_is_computed() -> None:
    """A prompt that is cached whole is read but for its last block, which becomes a copy."""
    cache = BlockCache(64, 4)
    assert cache.finish(begun(cache, [*range(8)]), [99])
    again = begun(cache, [*range(8)])
    assert (again.read, cache.used) == (4, 12)
    assert begun(cache, [*range(9)]).read == 8


def test_answers_fill_blocks_but_for_their_last_token() -> None:
    """The next prompt reads the answer too; the token that ended it was never put through the model."""
    for answer, read in (([6, 7, 8, 9], 8), ([6, 7, 8], 8), ([6, 7], 4)):
        cache = BlockCache(64, 4)
        assert cache.finish(begun(cache, [0, 1, 2, 3, 4, 5]), answer)
        assert begun(cache, [*range(10)]).read == read


def test_the_end_of_a_prompt_goes_first() -> None:
    """Four blocks of 2: the three of a request that is over, of which one is taken, are read up to there."""
    cache = BlockCache(8, 2)
    assert cache.finish(begun(cache, [1, 2, 3, 4, 5, 6]), [7])
    assert cache.finish(begun(cache, [8, 8, 9, 9]), [7])
    assert cache.evicted == 2
    assert begun(cache, [1, 2, 3, 4, 5, 6, 7]).read == 4


def test_the_least_recently_used_goes_first() -> None:
    """Reading renews: of two prompts, the one that was asked for again stays."""
    cache = BlockCache(6, 2)
    for prompt in ([1, 1], [2, 2], [1, 1, 0]):
        assert cache.finish(begun(cache, prompt), [7])
    assert cache.finish(begun(cache, [3, 3, 3]), [7])  # takes the blank block, and that of [2, 2]
    assert begun(cache, [1, 1, 4]).read == 2
    assert cache.begin([2, 2, 4]) is None  # no room beside the last one


def test_what_is_in_use_stays() -> None:
    """A request that does not fit beside those running changes nothing, and fits when they are over."""
    cache = BlockCache(8, 2)
    first = begun(cache, [1, 1, 2, 2])
    second = begun(cache, [1, 1, 3])
    assert second.read == 2
    assert cache.begin([5, 5, 5]) is None
    assert begun(cache, [1, 1, 2, 2, 0]).read == 4
    assert not cache.finish(first, [0, 0, 0])
    cache.drop(second)
    assert cache.finish(first, [0, 0, 0])
    assert (cache.evicted, cache.used) == (0, 8)
    assert not cache.fits(9)
    assert cache.fits(8)


def test_a_copy_is_read_once_the_first_is_gone() -> None:
    """Two requests compute the same block; the older is evicted, the other stays."""
    cache = BlockCache(6, 2)
    assert cache.finish(begun(cache, [1, 1]), [7])
    held = begun(cache, [1, 1])  # computed again: its only block would leave nothing to compute
    assert (held.read, cache.used) == (0, 4)
    assert cache.finish(begun(cache, [5, 5, 6, 6]), [7])  # takes the last blank one, and the first [1, 1]
    assert cache.evicted == 2
    assert begun(cache, [1, 1, 9]).read == 2


@dataclass(eq=False)
class Block:
    holds: tuple[int, ...] | None = None
    """All tokens up to its end."""
    users: int = 0


@dataclass(eq=False)
class Held:
    ids: Tokens
    table: list[Block]
    read: int


class Obvious:
    """The same with one list of free blocks, and blocks that hold whole prefixes."""

    def __init__(self, memory: int, size: int) -> None:
        self.size, self.evicted = size, 0
        self.free = [Block() for _ in range(memory // size)]
        self.blocks = list(self.free)
        self.cached: dict[tuple[int, ...], list[Block]] = {}

    @property
    def used(self) -> int:
        return self.size * sum(block.users > 0 or block.holds is not None for block in self.blocks)

    def begin(self, ids: Tokens) -> Held | None:
        table: list[Block] = []
        while len(table) < (len(ids) - 1) // self.size and tuple(ids[: (len(table) + 1) * self.size]) in self.cached:
            table.append(self.cached[tuple(ids[: (len(table) + 1) * self.size])][0])
        hit = len(table)
        need = -(-len(ids) // self.size) - hit
        if need > len([block for block in self.free if block not in table]):
            return None
        for block in table:
            block.users += 1
            if block in self.free:
                self.free.remove(block)
        held = Held(ids, table, hit * self.size)
        self.fill(held, need)
        return held

    def finish(self, held: Held, output: Tokens) -> bool:
        ids = held.ids + output[:-1]
        need = -(-len(ids) // self.size) - len(held.table)
        if need > len(self.free):
            return False
        held.ids = ids
        self.fill(held, need)
        self.drop(held)
        return True

    def drop(self, held: Held) -> None:
        for block in reversed(held.table):
            block.users -= 1
            if not block.users:
                self.free.insert(len(self.free) if block.holds else 0, block)

    def fill(self, held: Held, need: int) -> None:
        for _ in range(need):
            block = self.free.pop(0)
            if block.holds is not None:
                self.evicted += self.size
                self.cached[block.holds].remove(block)
                if not self.cached[block.holds]:
                    del self.cached[block.holds]
            block.holds, block.users = None, 1
            held.table.append(block)
        for at, block in enumerate(held.table[: len(held.ids) // self.size]):
            if block.holds is None:
                block.holds = tuple(held.ids[: (at + 1) * self.size])
                self.cached.setdefault(block.holds, []).append(block)


@given(DEEDS, st.integers(1, 3), MEMORY)
def test_equals_the_obvious(deeds: list[Deed], size: int, memory: int) -> None:
    """The same is read, evicted and in use after everything that is done, and never more than fits."""
    done = run(BlockCache(memory, size), deeds)
    assert done == run(Obvious(memory, size), deeds)
    assert all(each.used <= memory for each in done)


@given(DEEDS, st.integers(1, 3))
def test_without_a_limit(deeds: list[Deed], size: int) -> None:
    """All that ever came is there, in whole blocks."""
    unlimited(lambda: BlockCache(None, size), deeds, size)


@given(traces(), st.integers(1, 3), st.integers(0, 12), st.integers(1, 12))
def test_more_memory_never_reads_less(trace: list[Trace], size: int, spare: int, more: int) -> None:
    """A law where no two requests overlap: what a smaller cache holds, a larger one holds too."""
    least = max(len(prompt) + len(answer) for prompt, answer in trace) + size + spare
    smaller, larger = (one_by_one(BlockCache(memory, size), trace) for memory in (least, least + more))
    assert all(one <= other for one, other in zip(smaller, larger, strict=True))


def test_the_queue_is_made_anew() -> None:
    """Many requests after each other, as the queue outgrows its array: what stays is still the newest."""
    cache = BlockCache(800, 2)
    for turn in range(300):
        assert cache.finish(begun(cache, [turn] * 40), [1])
    assert begun(cache, [299] * 40).read == 38
    assert begun(cache, [281] * 40).read == 38
    assert begun(cache, [250] * 40).read == 0
