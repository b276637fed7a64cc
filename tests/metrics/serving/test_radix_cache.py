"""SGLang's tree: worked by hand, and an obvious version of the same."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.serving.radix_cache import RadixCache, RadixRequest
from tests.metrics.serving.serving import DEEDS, MEMORY, Deed, Tokens, Trace, one_by_one, run, unlimited


def begun(cache: RadixCache, prompt: Tokens) -> RadixRequest:
    running = cache.begin(prompt)
    assert running is not None
    return running


def served(cache: RadixCache, prompt: Tokens, answer: Tokens) -> int:
    """Run a request from its beginning to its end, and return what it reads."""
    running = begun(cache, prompt)
    assert cache.finish(running, answer)
    return running.read


def test_any_common_prefix_is_read() -> None:
    """To the token, but for the last of a prompt; an answer is there but for its last token."""
    cache = RadixCache()
    assert served(cache, [1, 2, 3, 4, 5], [6, 7, 8]) == 0
    assert served(cache, [1, 2, 3, 9], [6]) == 3
    assert served(cache, [1, 2, 3, 4, 5], [0]) == 4
    assert served(cache, [1, 2, 3, 4, 5, 6, 7, 8, 9], [0]) == 7
    assert cache.used == 7 + 1 + 2  # 1 to 7, the other 4th token, then 8 and 9


def test_the_example_in_its_source() -> None:
    """Four prompts, of which one comes twice: twelve tokens, and what is asked for reads three."""
    cache = RadixCache()
    for prompt in ([1, 2, 3], [1, 2, 3], [1, 2, 4, 5], [1, 2, 4, 5, 6, 7], [8, 9, 10, 11, 12]):
        served(cache, prompt, [0])
    assert cache.used == 12
    assert begun(cache, [1, 2, 3, 13, 14]).read == 3


def test_pages_are_whole() -> None:
    """With pages of 4, as with blocks: a page that is not full is a request's own while it runs."""
    cache = RadixCache(64, 4)
    first = begun(cache, [*range(15)])
    assert cache.used == 16
    assert begun(cache, [*range(10), 50, 51, 52, 53]).read == 8
    assert cache.finish(first, [15, 16])
    assert begun(cache, [*range(17)]).read == 16


def test_whole_leaves_go_least_recently_used_first() -> None:
    """Memory of 10: one token is missing, and all that the oldest prompt had for itself goes."""
    cache = RadixCache(10)
    served(cache, [1, 1, 2, 2, 2], [0])
    served(cache, [1, 1, 3, 3, 3], [0])
    assert cache.used == 8
    served(cache, [4, 4, 4], [0])
    assert (cache.evicted, cache.used) == (3, 8)
    assert begun(cache, [1, 1, 3, 3, 3, 3]).read == 5


def test_a_branch_goes_from_its_end() -> None:
    """A prompt that grew by steps is a chain of nodes: the last goes first, and only as many as are needed."""
    cache = RadixCache(9)
    for size in (2, 4, 6):
        served(cache, [1] * size, [0])
    served(cache, [2] * 4, [0])
    assert (cache.evicted, cache.used) == (2, 8)  # a prompt and the answer's first token are there: 1, then 2 more
    assert begun(cache, [1] * 6).read == 4


def test_what_runs_is_locked() -> None:
    """A request that does not fit beside what is locked evicts nothing, and fits when that is over."""
    cache = RadixCache(6)
    first = begun(cache, [1, 1, 2, 2])
    assert cache.begin([3, 3, 3]) is None
    assert cache.evicted == 0
    second = begun(cache, [1, 1, 2, 2, 2])
    assert second.read == 4
    assert not cache.finish(first, [0, 0, 0])
    cache.drop(second)
    assert cache.finish(first, [0, 0, 0])
    assert cache.evicted == 1
    assert not cache.fits(7)


def test_a_node_that_is_read_in_part_is_used_with_its_other_part() -> None:
    """So it is in SGLang: the end of the first prompt outlives the second, which came later."""
    cache = RadixCache(8)
    served(cache, [1, 1, 2, 2], [0])
    served(cache, [3, 3], [0])
    served(cache, [1, 1, 4], [0])
    served(cache, [5, 5], [0])
    assert cache.evicted == 2
    assert begun(cache, [1, 1, 2, 2, 9]).read == 4


def test_more_memory_may_read_less() -> None:
    """No law here: with two tokens more, another whole leaf goes."""
    trace = [
        Trace([1, 1, 0, 1, 0], [1]),
        Trace([1, 0, 0, 1, 1], [0]),
        Trace([1, 1], [1, 1, 0]),
        Trace([1, 0, 0, 0], [1, 0, 0]),
    ]
    assert one_by_one(RadixCache(8), trace) == [0, 1, 1, 3]
    assert one_by_one(RadixCache(10), trace) == [0, 1, 1, 1]


@dataclass(eq=False)
class Piece:
    """A node: the tokens from `start` to the end of its prefix."""

    prefix: Tokens
    start: int
    seen: int
    locks: int = 0


@dataclass(eq=False)
class Held:
    ids: Tokens
    along: list[Piece]
    own: int
    read: int


class Obvious:
    """The same with a list of nodes, each with the whole prefix that it ends."""

    def __init__(self, memory: int, page: int) -> None:
        self.memory, self.page = memory // page * page, page
        self.pieces: list[Piece] = []
        self.running: list[Held] = []
        self.clock = self.evicted = 0

    @property
    def used(self) -> int:
        stored = sum(len(piece.prefix) - piece.start for piece in self.pieces)
        return stored + sum(held.own for held in self.running)

    def begin(self, ids: Tokens) -> Held | None:
        along = self.walk(ids[:-1])
        read = len(along[-1].prefix) if along else 0
        held = Held(ids, along, 0, read)
        self.lock(held, 1)
        if not self.room(self.paged(len(ids)) - read):
            self.lock(held, -1)
            return None
        now = self.insert(ids)
        self.lock(held, -1)
        held.along, held.own = now, self.paged(len(ids)) - len(ids) // self.page * self.page
        self.lock(held, 1)
        self.running.append(held)
        return held

    def finish(self, held: Held, output: Tokens) -> bool:
        ids = held.ids + output[:-1]
        if not self.room(self.paged(len(ids)) - self.paged(len(held.ids))):
            return False
        self.running.remove(held)
        self.insert(ids)
        self.lock(held, -1)
        return True

    def drop(self, held: Held) -> None:
        self.running.remove(held)
        self.lock(held, -1)

    def paged(self, tokens: int) -> int:
        return -(-tokens // self.page) * self.page

    def walk(self, ids: Tokens) -> list[Piece]:
        """Return the nodes along a prompt. The last that matches in part is split, all running requests with it."""
        self.clock += 1
        now, along, at = self.clock, list[Piece](), 0
        while True:
            here = ids[:at]
            found = [
                piece
                for piece in self.pieces
                if piece.start == at
                and piece.prefix[: at + self.page] == ids[: at + self.page]
                and len(ids) >= at + self.page
            ]
            if not found:
                return along
            (piece,) = found
            assert piece.prefix[:at] == here
            piece.seen = now
            same = at
            while ids[: same + self.page] == piece.prefix[: same + self.page] and same + self.page <= len(ids):
                same += self.page
                if same == len(piece.prefix):
                    break
            if same < len(piece.prefix):
                self.clock += 1
                upper = Piece(piece.prefix[:same], at, self.clock, piece.locks)
                piece.start = same
                self.pieces.append(upper)
                for held in self.running:
                    if piece in held.along:
                        held.along.append(upper)
                return [*along, upper]
            along.append(piece)
            at = same

    def insert(self, ids: Tokens) -> list[Piece]:
        along = self.walk(ids)
        start, stop = len(along[-1].prefix) if along else 0, len(ids) // self.page * self.page
        if start < stop:
            self.clock += 1
            along = [*along, Piece(ids[:stop], start, self.clock)]
            self.pieces.append(along[-1])
        return along

    def lock(self, held: Held, by: int) -> None:
        for piece in held.along:
            piece.locks += by

    def room(self, tokens: int) -> bool:
        free = [piece for piece in self.pieces if not piece.locks]
        if tokens > self.memory - self.used + sum(len(piece.prefix) - piece.start for piece in free):
            return False
        while tokens > self.memory - self.used:
            ends = [piece for piece in free if not any(self.above(piece, other) for other in self.pieces)]
            oldest = min(ends, key=lambda piece: piece.seen)
            self.evicted += len(oldest.prefix) - oldest.start
            self.pieces.remove(oldest)
            free.remove(oldest)
        return True

    def above(self, piece: Piece, other: Piece) -> bool:
        size = len(piece.prefix)
        return len(other.prefix) > size and other.prefix[:size] == piece.prefix


@given(DEEDS, st.integers(1, 3), MEMORY)
def test_equals_the_obvious(deeds: list[Deed], page: int, memory: int) -> None:
    """The same is read, evicted and in use after everything that is done, and never more than fits."""
    done = run(RadixCache(memory, page), deeds)
    assert done == run(Obvious(memory, page), deeds)
    assert all(each.used <= memory for each in done)


@given(DEEDS, st.integers(1, 3))
def test_without_a_limit(deeds: list[Deed], page: int) -> None:
    """All that ever came is there, in whole pages."""
    unlimited(lambda: RadixCache(None, page), deeds, page)
