"""Write the requests of a strategy as a trace for benchmarks of servers, in the format of Mooncake's traces.

Each line is a call: `timestamp` in milliseconds, `input_length` and `output_length` in tokens, and `hash_ids`, a number
for each block of the prompt. Two calls share a number where their prompts are the same up to the end of that block, so
that a server's prefix cache can be simulated without any text. The last block may be shorter than the others.
Source: github.com/kvcache-ai/Mooncake, FAST25-release/traces.

Calls stand in the order of their times. A conversation begins at its recorded time, or with the trace where none was
recorded. Pauses and durations that were not recorded are those of `ctxbench lab kv-cache`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ctxbench.metrics.serving.serve import DECODE, PAUSE, PREFILL, Ids, ServedCall
from ctxbench.scenarios.errors import SpecError

from ..bill.kv_cache import Serving
from ..folder.run import Run

BLOCK = 512
"""Tokens of a block in Mooncake's own traces."""


class TraceCall(NamedTuple):
    """A line of a trace."""

    timestamp: int
    """Milliseconds since the first call of the trace."""
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


def trace(run: Run, strategy: str, block: int = BLOCK) -> list[TraceCall]:
    """Return the calls of a strategy in the order of their times. Raises SpecError for a block without tokens."""
    if block < 1:
        raise SpecError(f"a block of {block} tokens holds nothing: give 1 or more")
    hashes = BlockHashes(block)
    calls = [
        TraceCall(round(1000 * when), len(call.prompt), len(call.output), hashes.of(call.prompt))
        for start, conversation in Serving(run).recorded(strategy)
        for when, call in _timed(start, conversation)
    ]
    first = min((call.timestamp for call in calls), default=0)
    return sorted((call._replace(timestamp=call.timestamp - first) for call in calls), key=lambda call: call.timestamp)


def lines(calls: Iterable[TraceCall]) -> Iterator[bytes]:
    """Yield each call as a line of JSON."""
    for call in calls:
        yield msgspec.json.encode(call._asdict()) + b"\n"


class BlockHashes:
    """Numbers of blocks, in the order in which they are first seen. The same tokens after another prefix differ."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._numbers: dict[tuple[int, bytes], int] = {}

    def of(self, prompt: Ids) -> tuple[int, ...]:
        numbers, before = [], -1
        for start in range(0, len(prompt), self._block):
            # With the number of the block before, which stands for the whole prefix: prompts of blocks A B, A C and D B
            # have 0 1, 0 2 and 3 4, as B after D is no hit for a server.
            key = (before, prompt[start : start + self._block].tobytes())
            before = self._numbers.setdefault(key, len(self._numbers))
            numbers.append(before)
        return tuple(numbers)


def _timed(start: float, calls: Iterator[ServedCall]) -> Iterator[tuple[float, ServedCall]]:
    """Yield each call with the time at which it is made, in seconds."""
    ended = None
    for call in calls:
        began = start if ended is None else ended + (PAUSE if call.pause is None else call.pause)
        took = len(call.prompt) / PREFILL + len(call.output) / DECODE if call.took is None else call.took
        yield began, call
        ended = began + took
