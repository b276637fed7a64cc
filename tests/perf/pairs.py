"""Other libraries' ways beside the strategies of ours that do what comes nearest, call by call in one process.

    python -m tests.perf.pairs adapter-langchain        # JSON: what each side of each pair took and sent

Both sides are called before each model call of the same conversation, in turn, and the calls of its last 100 messages
are timed (20 of them where a call takes long): seconds of CPU of the process, garbage collection off. Models reply at
once and stand outside the clock. Both sides count by one counter that remembers each text, so that what is compared is
not counting. `scripts/perf_peers.py` runs this in the environments of the libraries.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import cycle
from statistics import fmean, median
from typing import Any

import msgspec

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Conversation, Message
from tests.perf import agent_peers, llama_index_peers
from tests.perf import langchain_peers as lc
from tests.perf.peers import CLOCK, REPLYING, Peer, Step, conversation, ours

SIZES = (500, 5_000)
TIMED = 100
"""Messages at the end of a conversation whose calls are timed."""
ROUNDS = 3


@dataclass(frozen=True)
class Pair:
    """A way of a library, and the strategy of ours that does what comes nearest to it."""

    extra: str
    library: str
    component: str
    peer: Peer
    spec: str
    differs: str
    kind: str = "assistant"
    """The embedded conversation: `coding` has tool results of over 10,000 characters."""


PAIRS = (
    Pair(
        "adapter-langchain",
        "langchain-core",
        "trim_messages",
        lc.trim(tokens=7200),
        "window(max_tokens=8000)",
        "It copies and counts the history at each call; ours keeps running sums.",
    ),
    Pair(
        "adapter-langchain",
        "langchain",
        "SummarizationMiddleware",
        lc.agent("langchain SummarizationMiddleware", lc.summarising(("tokens", 8000), ("messages", 4))),
        "session_summary",
        "Both look at what was said since the last summary alone; it counts that anew at each call.",
    ),
    Pair(
        "adapter-langchain",
        "langchain",
        "ClearToolUsesEdit",
        lc.agent("langchain ClearToolUsesEdit", lc.state, lc.clearing)._replace(grows=False),
        "anthropic.clear_tool_uses(sticky=False)",
        "The same rule; its middleware copies the whole history before it edits, ours sends spans of the recording.",
        "coding",
    ),
    Pair(
        "adapter-langmem",
        "langmem",
        "summarize_messages",
        lc.langmem(8000),
        "summary(max_tokens=8000)",
        "It goes through the whole history at each call, to find what is summarised already.",
    ),
    Pair(
        "adapter-llama-index",
        "llama-index-core",
        "Memory",
        llama_index_peers.memory(30_000),
        "window(max_tokens=30000)",
        "It keeps messages in SQLite and flushes 3,000 tokens at a time; ours cuts exactly, and stores nothing.",
    ),
    Pair(
        "adapter-llama-index",
        "llama-index-core",
        "ChatSummaryMemoryBuffer",
        llama_index_peers.summary_buffer(8000),
        "summary(max_tokens=8000)",
        "It rewrites its store at each call; both hold the newest messages and a summary of the others.",
    ),
    Pair(
        "adapter-openai-agents",
        "openai-agents",
        "ToolOutputTrimmer",
        agent_peers.tool_output_trimmer(),
        "archive",
        "It cuts old results to 200 characters for good; ours writes a summary, and stores the whole to be loaded.",
        "coding",
    ),
    Pair(
        "adapter-openai-agents",
        "openai-agents",
        "OpenAIResponsesCompactionSession",
        agent_peers.compaction_session(10),
        "openai.compact(items=10)",
        "It reads its session from SQLite, with all user messages there ever were; ours has no store.",
    ),
    Pair(
        "adapter-inspect",
        "inspect-ai",
        "CompactionTrim",
        agent_peers.compaction("CompactionTrim", threshold=32_000),
        "window(max_tokens=32000)",
        "It goes through all messages at each call, and drops a fifth when over the limit; ours cuts exactly.",
    ),
    Pair(
        "adapter-inspect",
        "inspect-ai",
        "CompactionSummary",
        agent_peers.compaction("CompactionSummary", threshold=32_000),
        "session_summary(token_threshold=32000)",
        "It goes through all messages at each call, and keeps a summary alone; ours the last four messages too.",
    ),
    Pair(
        "adapter-inspect",
        "inspect-ai",
        "CompactionEdit",
        agent_peers.compaction("CompactionEdit", threshold=200_000),
        "anthropic.clear_tool_uses(trigger=200000)",
        "What was cleared stays cleared on both sides; it goes through all messages at each call.",
        "coding",
    ),
    Pair(
        "adapter-headroom",
        "headroom-ai",
        "compress",
        agent_peers.headroom(),
        "archive",
        "It goes through the whole history at each call; ours summarises each result once, and stores the whole.",
        "coding",
    ),
    Pair(
        "adapter-distil",
        "distil-llm",
        "compress_chat_completions",
        agent_peers.distil(),
        "archive",
        "It goes through the whole history at each call, and counts no tokens; ours summarises each result once.",
        "coding",
    ),
)


class Side(msgspec.Struct):
    """Time that one side of a pair took, and texts that it sent."""

    ms: float
    """Mean of the timed calls; of each call the median of the rounds."""
    tokens: int
    """Tokens of the texts that the last call sent."""


class Measured(msgspec.Struct):
    """A pair at one length, the library's side first."""

    component: str
    version: str
    messages: int
    peer: Side
    ours: Side


def measured(pair: Pair, messages: int, rounds: int = ROUNDS) -> Measured:
    """Call both sides in turn over a conversation."""
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
    peer, own = (
        Side(fmean(map(median, zip(*of_side, strict=True))) * 1e3, sum(map(counter.text, map(text_of, last))))
        for of_side, last in zip(times, sent, strict=True)
    )
    return Measured(pair.component, version(pair.library), messages, peer, own)


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


def main(extra: str, sizes: Sequence[int] = SIZES) -> None:
    """Print a line of JSON for each pair of an extra and length, as soon as it is measured."""
    for pair in (pair for pair in PAIRS if pair.extra == extra):
        for messages in sizes:
            print(json.dumps(msgspec.to_builtins(measured(pair, messages))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(size) for size in sys.argv[2:]] or SIZES)
