"""What the tests of both servers' caches share: traces of requests, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ctxbench.metrics.serving.serve import KvCache

Tokens = list[int]


class Did(NamedTuple):
    """What a cache did, and how it stands after that."""

    what: str
    read: int | None
    """None: it did not fit."""
    evicted: int
    used: int


TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=6)
"""Two tokens only: prompts share much."""


class Deed(NamedTuple):
    """The next thing to do: begin a prompt, serve one from its beginning to its end, or end or drop a running one."""

    kind: str
    which: int
    """Of those running, modulo how many they are."""
    tokens: Tokens
    answer: Tokens
    again: int | None
    """Of a prompt: it goes on from the prompt and answer of this earlier request, modulo how many they are."""


DEEDS = st.lists(
    st.builds(
        Deed,
        st.sampled_from(("serve", "serve", "serve", "begin", "finish", "drop")),
        st.integers(0, 9),
        TOKENS,
        TOKENS,
        st.none() | st.integers(0, 9),
    ),
    min_size=6,
    max_size=30,
)
MEMORY = st.integers(5, 18)
"""Tokens: room for one or two requests."""


def run(cache: Any, deeds: Sequence[Deed]) -> list[Did]:
    """Put a cache, or an obvious version of one, through actions."""
    running: list[tuple[Any, Tokens]] = []
    said: list[Tokens] = []
    did = []
    for kind, which, tokens, answer, again in deeds:
        at = which % len(running) if running else 0
        if kind in ("begin", "serve"):
            prompt = (said[again % len(said)] if said and again is not None else []) + tokens
            held = cache.begin(prompt)
            did.append(Did("begin", None if held is None else held.read, cache.evicted, cache.used))
            if held is None:
                continue
            at = len(running)
            running.append((held, prompt))
        if kind in ("finish", "serve") and running:
            held, prompt = running[at]
            fits = cache.finish(held, answer)
            did.append(Did("finish", 0 if fits else None, cache.evicted, cache.used))
            if fits:
                del running[at]
                said.append(prompt + answer)
        elif kind == "drop" and running:
            cache.drop(running.pop(at)[0])
            did.append(Did(kind, 0, cache.evicted, cache.used))
    return did


class Trace(NamedTuple):
    """A request that is over before the next begins."""

    prompt: Tokens
    answer: Tokens


@st.composite
def traces(draw: st.DrawFn) -> list[Trace]:
    """Generate consecutive requests, many of which go on from, or begin like, an earlier one."""
    made: list[Trace] = []
    for _ in range(draw(st.integers(1, 7))):
        start: Tokens = []
        if made and draw(st.booleans()):
            before = draw(st.sampled_from(made))
            whole = before.prompt + before.answer
            start = whole[: draw(st.integers(0, len(whole)))]
        made.append(Trace(start + draw(TOKENS), draw(st.lists(st.integers(0, 1), min_size=1, max_size=4))))
    return made


def one_by_one(cache: KvCache[Any], trace: Sequence[Trace]) -> list[int]:
    """Return what each request of a trace reads."""
    reads = []
    for prompt, answer in trace:
        held = cache.begin(prompt)
        assert held is not None
        assert cache.finish(held, answer)
        reads.append(held.read)
    return reads


def unlimited(make: Callable[[], Any], deeds: Sequence[Deed], unit: int) -> None:
    """Without a limit, what is read is the longest prefix shared with any earlier prompt, or prompt and answer."""
    cache, known = make(), [list[int]()]
    running: list[tuple[Any, Tokens]] = []
    for kind, which, tokens, answer, _ in deeds:
        if kind in ("begin", "serve"):
            held = cache.begin(tokens)
            most = max(_shared(tokens[:-1], other) // unit * unit for other in known)
            assert held.read == most
            known.append(tokens)
            running.append((held, tokens))
        elif running:
            held, prompt = running.pop(which % len(running))
            if kind == "finish":
                assert cache.finish(held, answer)
                known.append((prompt + answer)[:-1])
            else:
                cache.drop(held)
    assert cache.evicted == 0


def _shared(one: Tokens, other: Tokens) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
