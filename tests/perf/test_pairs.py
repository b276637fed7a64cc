"""Other libraries' ways beside the strategies of ours that do what comes nearest, call by call in one process.

Both sides are called before each model call of the same conversation, in turn, and the calls of its last 100 messages
are timed (10 of them where a call takes long): seconds of CPU of the process, garbage collection off. Models reply at
once and stand outside the clock. Both sides count by one counter that remembers each text, so that what is compared is
not counting. A library that is not installed is skipped. docs/performance.md has the figures of all of them.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle
from statistics import fmean, median
from typing import Any, NamedTuple

import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from tests.perf import agent_peers
from tests.perf import langchain_peers as lc
from tests.perf import llama_index_peers as li
from tests.perf.peers import CLOCK, REPLYING, Peer, Step, conversation, ours

pytestmark = [pytest.mark.perf, pytest.mark.filterwarnings("ignore")]  # what other libraries warn of is theirs
SIZES = (500, 5_000)
TIMED = 100
"""Messages at the end of a conversation whose calls are timed."""
ROUNDS = 3


class Pair(NamedTuple):
    """A way of a library, and the strategy of ours that does what comes nearest to it."""

    library: str
    peer: Peer
    spec: str
    kind: str = "assistant"
    """The embedded conversation: `coding` has tool results of over 10,000 characters."""


SUMMARISING = lc.agent("langchain SummarizationMiddleware", lc.summarising(("tokens", 8000), ("messages", 4)))
CLEARING = lc.agent("langchain ClearToolUsesEdit", lc.state, lc.clearing)._replace(grows=False)
PAIRS = (
    Pair("langchain-core", lc.trim(tokens=7200), "window(max_tokens=8000)"),
    Pair("langchain-core", lc.trim(tokens=6141), "focus(truncation='tail_cutoff')"),
    Pair("langchain", SUMMARISING, "session_summary"),
    Pair("langchain", CLEARING, "anthropic.clear_tool_uses(sticky=False)", "coding"),
    Pair("langchain-anthropic", lc.agent("langchain AnthropicPromptCaching", lc.state, lc.marking), "cache_marks"),
    Pair("langmem", lc.langmem(8000), "summary(max_tokens=8000)"),
    Pair("llama-index-core", li.memory(30_000), "window(max_tokens=30000)"),
    Pair("llama-index-core", li.summary_buffer(8000), "summary(max_tokens=8000)"),
    Pair("llama-index-core", li.vectors(10), "retrieval(max_tokens=8000)"),
    Pair("openai-agents", agent_peers.tool_output_trimmer(), "archive", "coding"),
    Pair("openai-agents", agent_peers.compaction_session(10), "openai.compact(items=10)"),
    Pair("inspect-ai", agent_peers.compaction("CompactionTrim", threshold=32_000), "window(max_tokens=32000)"),
    Pair(
        "inspect-ai",
        agent_peers.compaction("CompactionSummary", threshold=32_000),
        "session_summary(token_threshold=32000)",
    ),
    Pair(
        "inspect-ai",
        agent_peers.compaction("CompactionEdit", threshold=200_000),
        "anthropic.clear_tool_uses(trigger=200000)",
        "coding",
    ),
    Pair("headroom-ai", agent_peers.headroom(), "archive", "coding"),
    Pair("distil-llm", agent_peers.distil(), "archive", "coding"),
)


class Side(NamedTuple):
    """Time that one side of a pair took, and texts that it sent."""

    ms: float
    """Mean of the timed calls; of each call the median of the rounds."""
    tokens: int
    """Tokens of the texts that the last call sent."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Matrix products on one thread, as every worker should: on cores that are busy two take ten times as long."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("messages", SIZES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.peer.name} beside {pair.spec}")
def test_pair(pair: Pair, messages: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Print what a call of each side takes, the ratio, and the tokens that each sends."""
    try:
        release = version(pair.library)
    except PackageNotFoundError:
        pytest.skip(f"{pair.library} is not installed")
    peer, own = measured(pair, messages)
    with capsys.disabled():
        print(
            f"\n{pair.library} {release}: {pair.peer.name} beside {pair.spec}, {messages:,} messages: {peer.ms:.3g} "
            f"and {own.ms:.3g} ms, {peer.ms / own.ms:.3g} ×; {peer.tokens:,} and {own.tokens:,} tokens",
            end="",
        )


def measured(pair: Pair, messages: int, rounds: int = ROUNDS) -> list[Side]:
    """Call both sides in turn over a conversation; the library's is first."""
    said, counter = conversation(pair.kind, messages), TokenCounter()
    for message in said.messages:
        counter.message(message)
    starts: tuple[Callable[[], Step], ...] = (
        partial(pair.peer.start, said, counter.text),
        partial(ours, pair.spec, said, REPLYING, counter),
    )
    times: tuple[list[list[float]], list[list[float]]] = ([], [])
    sent: list[Sequence[Any]] = []
    for _ in range(rounds):
        taken, sent = in_turn([start() for start in starts], said, pair.peer)
        for of_side, each in zip(times, taken, strict=True):
            of_side.append(each)
    return [
        Side(fmean(map(median, zip(*of_side, strict=True))) * 1e3, sum(map(counter.text, map(text_of, last))))
        for of_side, last in zip(times, sent, strict=True)
    ]


def in_turn(steps: Sequence[Step], said: Conversation, of: Peer) -> tuple[list[list[float]], list[Sequence[Any]]]:
    """Return the seconds of the timed calls of each side, and what each sent last. Which side is first alternates."""
    peer, own = steps
    calls = list(said.calls())
    first = next(number for number, at in enumerate(calls) if at > len(said.messages) - TIMED)
    first = max(first, len(calls) - of.calls)
    for number, at in enumerate(calls[:first]):
        own(at)
        if of.grows or number == first - 1:
            peer(at)
    taken: list[list[float]] = [[], []]
    sent: list[Sequence[Any]] = [(), ()]
    gc.collect()
    gc.disable()
    try:
        for at, order in zip(calls[first:], cycle([(0, 1), (1, 0)]), strict=False):
            for side in order:
                began = CLOCK()
                sent[side] = steps[side](at)
                taken[side].append(CLOCK() - began)
    finally:
        gc.enable()
    return taken, sent


def text_of(message: Any) -> str:
    """Return the text of a message in any library's form; a tool call has none."""
    if isinstance(message, dict):
        return str(next((message[key] for key in ("content", "output", "encrypted_content") if message.get(key)), ""))
    return str(message.text if isinstance(message, Message) else message.content or "")
