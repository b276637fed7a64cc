"""Speed: every strategy beside its nearest peer, call by call, and over whole conversations (`make perf`).

A figure is of one call. The history grows as it was recorded, both sides are called before each model call, and the
calls between its 400th and its 500th message are timed, in seconds of CPU. Messages are converted beforehand; models
and embedders are not timed (`peers.Clock`). Counting tokens is: ours counts what is new, a peer counts as its library
does it, with tiktoken, and once more "counts kept", with a dictionary before tiktoken: what a careful user would do.

Nothing is asserted of time. The last test prints the tables that docs/decisions/0010-speed-of-strategies.md explains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tests.perf import langchain_peers as lc
from tests.perf import llama_index_peers as li
from tests.perf.document_peers import document_facts
from tests.perf.peers import CLOCK, REPLYING, Peer, Step, conversation, ours, together
from tests.perf.test_speed import tiktoken_count

Bench = Any
pytestmark = [pytest.mark.perf, pytest.mark.filterwarnings("ignore")]  # what other libraries warn of is theirs
FIRST, LAST = 400, 500
"""The calls that are timed: those after so many messages."""
REPEATS = 3
"""Of ours; a peer's calls are timed once."""


class Row(NamedTuple):
    """A strategy and those that do the same."""

    spec: str
    peers: tuple[Peer, ...] = ()
    kind: str = "assistant"
    """The embedded conversation: `coding` has tool results of over 10 000 characters, `assistant` most to remember."""
    target: float = 1.0
    """What is asked of the median, in milliseconds."""


def summarised(name: str, trigger: tuple[str, int], keep: tuple[str, int], *then: Any) -> Peer:
    """langchain's middleware, and what comes after it."""
    return lc.agent(f"langchain SummarizationMiddleware {name}".strip(), lc.summarising(trigger, keep), *then)


TWENTY = (("messages", 21), ("messages", 20))
SESSION = (("tokens", 8000), ("messages", 4))
SMART = (("tokens", 54_600), ("tokens", 39_000))
CLEARED = lc.agent("langchain ClearToolUsesEdit", lc.state, lc.clearing)

ROWS = (
    Row("none"),
    Row("last_turn"),
    Row("window(max_tokens=8000)", (lc.trim(tokens=7200), li.buffer(7200))),
    Row("window(messages=20)", (lc.trim(messages=20),)),
    Row("summary", (summarised("", *TWENTY),)),
    Row("summary(max_tokens=8000)", (lc.langmem(8000), li.summary_buffer(8000))),
    Row("session_summary", (summarised("", *SESSION),)),
    Row("smart", (summarised("", *SMART),)),
    Row("archive", (CLEARED,), "coding"),
    Row("archive(trigger='keyword')", (CLEARED,), "coding"),
    Row("archive(trigger='semantic')", (CLEARED,), "coding"),
    Row("archive(trigger='hybrid')", (CLEARED,), "coding"),
    Row("cache_marks", (lc.agent("langchain AnthropicPromptCaching", lc.state, lc.marking, keeps=False),)),
    Row("retrieval", (li.vectors(10),), target=10),
    Row("retrieval(max_tokens=8000)", (li.vectors(10),), target=10),
    Row("layered", (li.vectors(10), li.vectors(10, 8000)), target=10),
    Row("facts", (document_facts(),), target=10),
    Row(
        "archive_window",
        (lc.agent("langchain ClearToolUsesEdit + trim", lc.state, lc.clearing, lc.trimming(28_800)),),
        "coding",
    ),
    Row("summary_window", (summarised("+ trim", *TWENTY, lc.trimming(7200)),)),
    Row("smart_cached", (summarised("+ caching", *SMART, lc.marking),)),
    Row(
        "facts_summary_cached",
        (together(document_facts(), summarised("+ caching", *TWENTY, lc.marking)),),
        target=10,
    ),
    Row(
        "all_of_000",
        (together(li.vectors(10), summarised("", *SMART), summarised("+ caching", *SESSION, lc.marking)),),
        target=10,
    ),
)
SIZES = (1_000, 3_000, 10_000)
COVERED = ("archive", "archive(trigger='keyword')", "archive(trigger='semantic')", "retrieval")
WHOLE = [row for row in ROWS if row.spec not in COVERED]
"""What the others do is part of what `archive(trigger='hybrid')` and `retrieval(max_tokens=8000)` do."""


class Timed(NamedTuple):
    """What the calls of one side took, in milliseconds."""

    calls: np.ndarray[Any, Any]
    opens: np.ndarray[Any, Any]
    """Which of them are the first of a turn."""
    waited: float
    """For models and embedders, on average."""


found: dict[tuple[str, str], Timed] = {}
"""By strategy and side."""
growth: dict[tuple[str, int], float] = {}
"""Microseconds a step of a whole conversation."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Matrix products on one thread, as every worker should: on cores that are busy two take ten times as long."""
    with threadpool_limits(1):
        yield


def steps(start: Callable[[], Step], ats: list[int], grows: bool) -> Iterator[tuple[Step, int]]:
    """The calls to be timed, one after the other. When there are no more it begins anew, and never ends."""
    before, after = [at for at in ats if at < FIRST], [at for at in ats if at >= FIRST]
    while True:
        step = start()
        for at in before if grows else before[-1:]:
            step(at)
        for at in after:
            yield step, at


def bench(
    benchmark: Bench, row: Row, side: str, start: Callable[[], Step], grows: bool, repeats: int, most: int
) -> None:
    """One round is one call."""
    said = conversation(row.kind, LAST)
    ats = list(said.calls())
    opens = [said.messages[at - 1].role == "user" for at in ats if at >= FIRST]
    todo, sent, waited = steps(start, ats, grows), 0, 0.0

    def call(step: Step, at: int) -> None:
        nonlocal sent, waited
        stood = CLOCK.stood
        sent = len(step(at))
        waited += CLOCK.stood - stood

    benchmark.group = f"{row.spec}: one call, {FIRST} to {LAST} messages"
    rounds = min(most, repeats * len(opens))
    benchmark.pedantic(call, setup=lambda: (next(todo), {}), rounds=rounds)
    benchmark.extra_info["messages sent"] = sent
    if benchmark.stats is not None:
        taken = np.array(benchmark.stats.stats.data) * 1000
        found[row.spec, side] = Timed(taken, np.resize(opens, rounds), waited / rounds * 1000)


@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.spec)
def test_ours(benchmark: Bench, row: Row) -> None:
    """A strategy of ours."""
    said = conversation(row.kind, LAST)
    bench(benchmark, row, "ours", lambda: ours(row.spec, said), True, REPEATS, 1000)


PAIRS = [(row, peer, kept) for row in ROWS for peer in row.peers for kept in (False, True) if peer.keeps or not kept]


def named(peer: Peer, kept: bool) -> str:
    return f"{peer.name}, counts kept" if kept else peer.name


@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize(("row", "peer", "kept"), PAIRS, ids=[f"{row.spec}-{named(peer, k)}" for row, peer, k in PAIRS])
def test_peer(benchmark: Bench, row: Row, peer: Peer, kept: bool) -> None:
    """Its peer, on the same history."""
    said = conversation(row.kind, LAST)

    def start() -> Step:
        count = tiktoken_count()
        return peer.start(said, cache(count) if kept else count)

    bench(benchmark, row, named(peer, kept), start, peer.grows, 1, peer.calls)


@pytest.mark.slow
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.spec)
@pytest.mark.parametrize("size", SIZES)
def test_whole(benchmark: Bench, row: Row, size: int) -> None:
    """All of one conversation, the time of a step: where it is flat, the whole is linear in the messages.

    Models reply at once, since their time is not counted anyway.
    """
    said = conversation(row.kind, size)
    ats = list(said.calls())

    def forever() -> Iterator[object]:
        while True:
            step = ours(row.spec, said, REPLYING)
            for at in ats:
                yield step(at)

    benchmark.group = f"{row.spec}: one step of a whole conversation of n messages"
    benchmark.pedantic(forever().__next__, rounds=2 if size == SIZES[0] else 1, iterations=len(ats))
    if benchmark.stats is not None:
        growth[row.spec, size] = benchmark.stats.stats.min * 1e6


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Print what was measured in this run, and which of the targets hold."""
    with capsys.disabled():
        print(f"\n\none call, {FIRST} to {LAST} messages: milliseconds, those of models and embedders apart")
        heads = ("strategy", "p50", "p95", "turn's first, p50", "models, mean", "target", "peer", "p50", "ratio", "20×")
        print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
        for spec, target in ((row.spec, row.target) for row in ROWS if (row.spec, "ours") in found):
            own = found[spec, "ours"]
            p50 = np.median(own.calls)
            figures = f"{p50:.3f} | {np.percentile(own.calls, 95):.2f} | {np.median(own.calls[own.opens]):.2f}"
            print(f"| `{spec}` | {figures} | {own.waited:.2f} | < {target:g} {holds(p50 < target)} |", end="")
            others = {
                side: np.median(timed.calls) for (of, side), timed in found.items() if of == spec and side != "ours"
            }
            rows = (f" {side} | {ms:.3f} | {ms / p50:.1f} | {holds(ms >= 20 * p50)} |" for side, ms in others.items())
            print("\n| | | | | | |".join(rows) or " – | | | |")
        print("\na step of a whole conversation of n messages: microseconds, those of models and embedders apart")
        print("| strategy |" + "".join(f" {size} |" for size in SIZES) + " last : first |\n|---|" + "---|" * 4)
        for row in WHOLE:
            each_step = [growth[row.spec, size] for size in SIZES if (row.spec, size) in growth]
            if len(each_step) == len(SIZES):
                print(
                    f"| `{row.spec}` |"
                    + "".join(f" {each:.0f} |" for each in each_step)
                    + f" {each_step[-1] / each_step[0]:.1f} |"
                )


def holds(target: object) -> str:
    return "holds" if target else "FAILS"
