"""Serve a stored run on an own server: each strategy's requests through one KV cache, conversations side by side.

The context log says what stood in each request, the recordings have the texts; nothing is run again. Each strategy has
a server of its own, which begins empty. A tool that a strategy adds is known by name and size, so its schema is one
token id, repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ctxbench.metrics.serving.serve import OTHERS, REPLY, Ids, KvCache, Served, ServedCall, TokenIds, answer, serve
from ctxbench.metrics.tokens import PRIMING
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation

from ..folder.run import Run

_STEP = ("at", "kept", "added_from", "added_to", "tools_added", "tokens_sent")


class ServerClock(NamedTuple):
    """The times of one call, as far as they were recorded."""

    started: float | None
    """Seconds since 1970."""
    pause: float | None
    """Seconds since the previous answer."""
    took: float | None
    """Seconds to the end of its answer."""


class Assumed(NamedTuple):
    """How many times of calls the recordings do not have, and had to be assumed."""

    calls: int
    """Number of calls of one strategy."""
    no_pause: int
    """Calls after the first of their conversation whose start, or the end of the call before, is not known."""
    no_time: int
    """Calls whose duration is not known."""
    no_start: int
    """Conversations whose start is not known."""


class ServerRow(NamedTuple):
    """The cost of one strategy to a server with a cache of one size."""

    strategy: str
    memory: int | None
    """Tokens; None = the cache never has to evict."""
    evicted: int
    """Tokens."""
    calls: Sequence[Served]
    """In the order of the conversations and their calls: the same calls under every strategy."""


@dataclass(frozen=True, slots=True)
class _Talk:
    """A conversation, ready to be served under any strategy."""

    name: str
    ids: list[Ids]
    """Token ids of each recorded message."""
    tools: Ids
    tools_tokens: int
    """Tokens of the tool schemas, as the log counts them."""
    clocks: dict[int, ServerClock]
    """The times of each call, by the place of its answer."""


class Serving:
    """A run's conversations, ready to be served.

    Only conversations that every strategy finished are served, so that each server is sent the same. Raises RunError if
    there are none, or if the run's encoding has no token ids.
    """

    def __init__(self, run: Run) -> None:
        encoding = run.manifest.plan.encoding
        if encoding == "chars4":
            raise RunError(
                f"{run.folder}: it was counted in chars4, which has no token ids: run again with --encoding o200k_base"
            )
        self._run, self._ids = run, TokenIds(encoding)
        self.strategies = list(run.manifest.plan.strategies)
        failed = {name for names in run.failures.values() for name in names}
        tokens = run.table("conversations").set_index("conversation").tools_tokens
        self._talks = [
            self._talk(conversation, int(tokens[conversation.id]))
            for conversation in run.conversations()
            if conversation.id not in failed
        ]
        if not self._talks:
            raise RunError(f"{run.folder}: no conversation was finished by every strategy: there is nothing to serve")
        # Conversations that are left out.
        self.failed = len(failed)
        self._steps = {
            (str(strategy), str(name)): rows
            for (strategy, name), rows in run.table("steps").groupby(
                ["strategy", "conversation"], observed=True, sort=False
            )
        }

    @property
    def assumed(self) -> Assumed:
        """The times of calls that had to be assumed."""
        talks = [list(talk.clocks.values()) for talk in self._talks]
        clocks = [clock for talk in talks for clock in talk]
        return Assumed(
            len(clocks),
            sum(clock.pause is None for talk in talks for clock in talk[1:]),
            sum(clock.took is None for clock in clocks),
            sum(bool(talk) and talk[0].started is None for talk in talks),
        )

    def rows(
        self,
        make: Callable[[int | None], KvCache[Any]],
        memories: Sequence[int | None],
        concurrency: int | None,
        longest: float = math.inf,
    ) -> Iterator[ServerRow]:
        """Yield every strategy with every memory size.

        `concurrency` is the number of conversations served at a time, where the next begins as one ends; None serves
        them as they were recorded. `longest` caps the seconds between calls.
        """
        starts = self._starts(concurrency)
        for strategy in self.strategies:
            written = self._written(strategy)
            for memory in memories:
                cache = make(memory)
                talks = [self._calls(talk, strategy, written.get(talk.name, []), longest) for talk in self._talks]
                done = serve(talks, cache, starts)
                yield ServerRow(strategy, memory, cache.evicted, [call for calls in done for call in calls])

    def recorded(self, strategy: str) -> Iterator[tuple[float, Iterator[ServedCall]]]:
        """Yield for each conversation the seconds from the first one's recorded start to its own, and its calls."""
        written = self._written(strategy)
        for start, talk in zip(self._starts(None), self._talks, strict=True):
            yield start or 0.0, self._calls(talk, strategy, written.get(talk.name, []), math.inf)

    def _talk(self, conversation: Conversation, tools_tokens: int) -> _Talk:
        ids = [self._ids.message(message) for message in conversation.messages]
        clocks = dict(zip(conversation.calls(), _clocks(conversation), strict=True))
        return _Talk(conversation.id, ids, self._ids.tools(conversation.tools), tools_tokens, clocks)

    def _starts(self, concurrency: int | None) -> list[float | None]:
        if concurrency is not None:
            return [0.0 if at < concurrency else None for at in range(len(self._talks))]
        recorded = [next((clock.started for clock in talk.clocks.values()), None) for talk in self._talks]
        first = min((start for start in recorded if start is not None), default=0.0)
        return [0.0 if start is None else start - first for start in recorded]

    def _written(self, strategy: str) -> Mapping[str, list[Ids]]:
        """Map each conversation to the token ids of the messages that a strategy wrote in it."""
        ids_by_conversation: dict[str, list[Ids]] = {}
        for name, message in self._run.all_written(strategy):
            ids_by_conversation.setdefault(name, []).append(self._ids.message(message))
        return ids_by_conversation

    def _calls(self, talk: _Talk, strategy: str, written: Sequence[Ids], longest: float) -> Iterator[ServedCall]:
        rows = self._steps.get((strategy, talk.name))
        return iter(()) if rows is None else _requests(talk, rows, [*talk.ids, *written], longest)


def _requests(talk: _Talk, rows: pd.DataFrame, ids: Sequence[Ids], longest: float) -> Iterator[ServedCall]:
    """Yield the requests of a conversation. Only what is not shared with the request before is written again."""
    prompt = np.empty(1024, np.int32)
    ends: list[int] = []
    added: dict[tuple[int, tuple[str, ...]], int] = {}
    for at, shared, starts, stops, tools, tokens in rows[list(_STEP)].itertuples(index=False):
        parts = [ids[number] for start, stop in zip(starts, stops, strict=True) for number in range(start, stop)]
        if shared:
            del ends[1 + shared :]
        else:
            # what the log counts beside messages and recorded tools is of the tools that the strategy adds
            others = tokens - PRIMING - talk.tools_tokens - sum(map(len, parts)) if len(tools) else 0
            number = added.setdefault((others, tuple(tools)), OTHERS + len(added))
            ends, parts = [], [np.concatenate((talk.tools, np.full(others, number, np.int32))), *parts]
        prompt = _written(prompt, ends, [*parts, REPLY])
        _, pause, took = talk.clocks[at]
        pause = None if pause is None else min(pause, longest)
        yield ServedCall(prompt[: ends.pop()].copy(), answer(talk.ids[at]), pause, took)


def _written(prompt: Ids, ends: list[int], parts: Sequence[Ids]) -> Ids:
    """Return the prompt with `parts` after the last of `ends`, and append the ends of the parts to `ends`."""
    end = ends[-1] if ends else 0
    size = end + sum(map(len, parts))
    if size > len(prompt):
        prompt = np.concatenate((prompt[:end], np.empty(2 * size - end, np.int32)))
    for part in parts:
        prompt[end : end + len(part)] = part
        end += len(part)
        ends.append(end)
    return prompt


def _clocks(conversation: Conversation) -> Iterator[ServerClock]:
    """Yield when each call began and how long it took; times that go backwards count as not known.

    A call began when its record says so, else when the message before it was complete.
    """
    messages = conversation.messages
    answered: float | None = None
    for at in conversation.calls():
        call = messages[at].call
        started = call.started if call is not None and call.started is not None else messages[at - 1].time
        yield ServerClock(started, _between(answered, started), _between(started, messages[at].time))
        answered = messages[at].time


def _between(earlier: float | None, later: float | None) -> float | None:
    return later - earlier if earlier is not None and later is not None and later >= earlier else None
