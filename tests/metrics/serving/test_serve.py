"""Conversations on one server: who waits, who is sent back, who is refused, and when the next call comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.serving.block_cache import BlockCache
from ctxbench.metrics.serving.radix_cache import RadixCache
from ctxbench.metrics.serving.serve import KvCache, Served, ServedCall, serve


def call(prompt: Iterable[int], answer: int = 1, pause: float | None = 1.0, took: float | None = 1.0) -> ServedCall:
    """Build a call whose answer is so many tokens 99."""
    return ServedCall(np.array([*prompt], np.int32), np.full(answer, 99, np.int32), pause, took)


class Watched(BlockCache):
    """What begins and ends, by the first token of its prompt."""

    def __init__(self, memory: int | None = None, block: int = 2) -> None:
        super().__init__(memory, block)
        self.log = ""

    def begin(self, ids: Any) -> Any:
        held = super().begin(ids)
        if held is not None:
            self.log += f"+{ids[0]} "
        return held

    def finish(self, running: Any, output: Any) -> bool:
        fits = super().finish(running, output)
        self.log += f"{'-' if fits else '!'}{np.frombuffer(running.ids, np.int32)[0]} "
        return fits


def test_pauses_and_times_lay_calls_side_by_side() -> None:
    """Two conversations; the second call of each comes a pause after its first answer."""
    cache = Watched()
    talks = [
        iter([call([1] * 4, took=5), call([3] * 4, pause=1)]),
        iter([call([2] * 4, took=2), call([4] * 4, pause=9)]),
    ]
    serve(talks, cache, [0.0, 1.0])
    assert cache.log == "+1 +2 -2 -1 +3 -3 +4 -4 "


def test_the_next_conversation_begins_as_one_ends() -> None:
    """Two at a time: the third begins when the shorter one is over; those without calls are passed over."""
    cache = Watched()
    talks = [
        iter([call([1] * 4, took=9)]),
        iter([call([2] * 4)]),
        *(iter(()) for _ in range(2000)),
        iter([call([3] * 4)]),
        iter([call([4] * 4)]),
    ]
    serve(talks, cache, [0.0, 0.0, *[None] * 2002])
    assert cache.log == "+1 +2 -2 +3 -3 +4 -4 -1 "


def test_what_does_not_fit_waits_its_turn() -> None:
    """Memory for two: the third waits, and so does the fourth behind it, though it is short enough."""
    cache = Watched(8)
    talks = [iter([call([1] * 4, took=5)]), iter([call([2] * 2)]), iter([call([3] * 4)]), iter([call([4] * 2)])]
    (one,), (two,), (three,), (four,) = serve(talks, cache, [0.0, 0.1, 0.2, 0.3])
    assert cache.log == "+1 +2 -2 +3 -3 +4 -4 -1 "
    assert [each.waited for each in (one, two, three, four)] == [False, False, True, True]


def test_an_answer_that_does_not_fit_sends_back_who_began_last() -> None:
    """The first answer needs a block: it takes one of the second call's, which begins again before the third.

    It begins with the two tokens of its answer that have to be cached: of six tokens two are still there.
    """
    cache = Watched(8)
    talks = [iter([call([1] * 4, answer=2, took=1)]), iter([call([2] * 4, answer=3, took=5)]), iter([call([3] * 2)])]
    (one,), (two,), (three,) = serve(talks, cache, [0.0, 0.5, 0.7])
    assert cache.log == "+1 +2 !1 -1 +2 +3 -3 -2 "
    assert one == Served(4, 0, 4, False, 0, False)
    assert two == Served(4, 0, 4 + 4, False, 1, False)
    assert three.waited


def test_who_began_last_may_be_the_one_that_ends() -> None:
    """It goes back itself, and begins again when the other is over, prompt and answer at once."""
    cache = Watched(8)
    talks = [iter([call([1] * 4, took=9)]), iter([call([2] * 4, answer=3, took=1)])]
    (_,), (two,) = serve(talks, cache, [0.0, 0.5])
    assert cache.log == "+1 +2 !2 -1 +2 -2 "
    assert two == Served(4, 0, 4 + 2, True, 1, False)  # its prompt is still there, the answer is put in anew


@pytest.mark.parametrize("took", [2.0, None])
def test_a_call_that_was_sent_back_does_not_answer_again(took: float | None) -> None:
    """Its answer of 100 tokens takes 2 s and is there when it goes back. At 9 it computes some 100 tokens and is over:
    its next call comes at 10.01, before another conversation's at 10.5."""
    cache = Watched(104)
    second = [call([2] * 4, answer=100, took=took), call([3] * 2, pause=1)]
    talks = [iter([call([1] * 4, took=9)]), iter(second), iter([call([4] * 2)])]
    serve(talks, cache, [0.0, 0.5, 10.5])
    assert cache.log == "+1 +2 !2 -1 +2 -2 +3 +4 -3 -4 "


def test_what_never_fits_is_refused() -> None:
    """It costs nothing, and its conversation goes on."""
    cache = Watched(4)
    (served,) = serve([iter([call([1] * 4, answer=2), call([2] * 4)])], cache, [0.0])
    assert served == [Served(4, 0, 0, False, 0, True), Served(4, 0, 4, False, 0, False)]


def test_times_that_are_not_known() -> None:
    """10 000 tokens a second are computed and 50 answered; the next call comes 10 s later."""
    cache = Watched()
    slow = iter([call([1] * 20_000, answer=50, took=None), call([2] * 2, pause=None)])  # 2 s + 1 s, + 10 s
    marks = iter([call([7] * 2, took=0)] + [call([at] * 2, pause=pause, took=0) for at, pause in ((8, 2.9), (9, 10))])
    serve([slow, marks], cache, [0.0, 0.0])
    assert cache.log == "+1 +7 -7 +8 -8 -1 +9 -9 +2 -2 "


@st.composite
def conversations(draw: st.DrawFn) -> list[list[ServedCall]]:
    """Each goes on from what it said, or from nothing; all begin alike."""
    token = st.integers(0, 1)
    times = st.none() | st.sampled_from((0.0, 1.0, 5.0))
    made = []
    for _ in range(draw(st.integers(1, 5))):
        calls: list[ServedCall] = []
        said: list[int] = []
        for _ in range(draw(st.integers(0, 5))):
            said = (said if draw(st.booleans()) else []) + draw(st.lists(token, min_size=1, max_size=8))
            made_call = call(said, draw(st.integers(1, 4)), draw(times), draw(times))
            said = said + made_call.output.tolist()
            calls.append(made_call)
        made.append(calls)
    return made


@pytest.mark.parametrize("make", [lambda memory: BlockCache(memory, 2), lambda memory: RadixCache(memory, 1)])
@given(talks=conversations(), memory=st.integers(4, 40), together=st.integers(1, 5))
def test_laws(make: Any, talks: list[list[ServedCall]], memory: int, together: int) -> None:
    """Every call is served once or refused; what is not read is computed; nothing is held at the end; and twice the
    same is the same."""

    def served(cache: KvCache[Any]) -> list[list[Served]]:
        starts = [0.0 if at < together else None for at in range(len(talks))]
        return serve([iter(calls) for calls in talks], cache, starts)

    cache = make(memory)
    done = served(cache)
    assert done == served(make(memory))
    assert [len(each) for each in done] == [len(calls) for calls in talks]
    for calls, each in zip(talks, done, strict=True):
        for asked, got in zip(calls, each, strict=True):
            assert got.tokens == len(asked.prompt)
            assert got.refused == (not cache.fits(len(asked.prompt) + len(asked.output) - 1))
            if got.refused:
                assert got == Served(got.tokens, 0, 0, False, 0, True)
            elif got.preempted:
                assert got.computed > got.tokens - got.read
            else:
                assert got.computed == got.tokens - got.read > 0
    assert cache.begin([0] * (memory // 2 * 2)) is not None  # all is free
    if together == 1:
        assert not any(got.waited or got.preempted for each in done for got in each)


def test_calls_are_asked_for_as_they_come() -> None:
    """Nothing is prepared ahead: a call is made when the one before it is over."""
    cache = Watched()

    def calls() -> Iterator[ServedCall]:
        yield call([1] * 4)
        assert cache.log == "+1 -1 "
        yield call([2] * 4)

    serve([calls()], cache, [0.0])
    assert cache.log == "+1 -1 +2 -2 "
