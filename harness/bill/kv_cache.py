"""A stored run on an own server: the requests of each strategy through one KV cache, conversations side by side.

The context log has what stood in each request, the recordings have the texts; nothing is run again. Each strategy has a
server of its own, which begins empty. A tool that a strategy adds is known by name and size: its schema is one id as
often as it has tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...metrics.serving.serve import OTHERS, REPLY, Ids, KvCache, Served, ServedCall, TokenIds, answer, serve
from ...metrics.tokens import PRIMING
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from ..folder.run import Run

_STEP = ("at", "kept", "added_from", "added_to", "tools_added", "tokens_sent")


class ServerClock(NamedTuple):
    """What is known of the time of a call."""

    started: float | None
    """Seconds since 1970."""
    pause: float | None
    """Seconds since the answer before it."""
    took: float | None
    """Seconds to the end of its answer."""


class Assumed(NamedTuple):
    """What the recordings do not say."""

    calls: int
    """In all, of one strategy."""
    no_pause: int
    """Calls after the first of their conversation, of which it is not known when they began or the last one ended."""
    no_time: int
    """Calls of which it is not known how long they took."""
    no_start: int
    """Conversations of which it is not known when they began."""


class ServerRow(NamedTuple):
    """What one strategy cost a server with a cache of one size."""

    strategy: str
    memory: int | None
    """Tokens; None = all that ever came."""
    evicted: int
    """Tokens."""
    calls: Sequence[Served]
    """In the order of the conversations and their calls: the same calls under every strategy."""


@dataclass(frozen=True, slots=True)
class _Talk:
    """A conversation, ready to be served under any strategy."""

    name: str
    ids: list[Ids]
    """Of each recorded message."""
    tools: Ids
    tools_tokens: int
    """As the log counts them."""
    clocks: dict[int, ServerClock]
    """Of each call, by its place."""


class Serving:
    """A run's conversations, ready to be served. Raises RunError if there are none, or no token ids for them.

    Only conversations that every strategy finished are served: the servers are asked the same.
    """

    def __init__(self, run: Run) -> None:
        encoding = run.manifest["plan"]["encoding"]
        if encoding == "chars4":
            raise RunError(
                f"{run.folder}: it was counted in chars4, which has no token ids: run again with --encoding o200k_base"
            )
        self._run, self._ids = run, TokenIds(encoding)
        self.strategies: list[str] = list(run.manifest["plan"]["strategies"])
        cells = run.table("results")
        failed = set(cells.conversation[cells.status != "ok"])
        tokens = run.table("conversations").set_index("conversation").tools_tokens
        self._talks = [self._talk(each, int(tokens[each.id])) for each in run.conversations() if each.id not in failed]
        if not self._talks:
            raise RunError(f"{run.folder}: no conversation was finished by every strategy: there is nothing to serve")
        self.failed = len(failed)
        """Conversations that are left out."""
        self._steps = {
            (str(strategy), str(name)): rows
            for (strategy, name), rows in run.table("steps").groupby(
                ["strategy", "conversation"], observed=True, sort=False
            )
        }

    @property
    def assumed(self) -> Assumed:
        """What had to be assumed of the time of calls."""
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
        """Every strategy with every memory size.

        `concurrency`: so many conversations at a time, as one ends the next begins; None = as they were recorded.
        `longest`: seconds; a longer pause between calls is cut to that.
        """
        starts = self._starts(concurrency)
        for strategy in self.strategies:
            written = self._written(strategy)
            for memory in memories:
                cache = make(memory)
                talks = [self._calls(talk, strategy, written.get(talk.name, []), longest) for talk in self._talks]
                done = serve(talks, cache, starts)
                yield ServerRow(strategy, memory, cache.evicted, [call for each in done for call in each])

    def _talk(self, conversation: Conversation, tools_tokens: int) -> _Talk:
        ids = [self._ids.message(message) for message in conversation.messages]
        clocks = dict(zip(conversation.calls(), _clocks(conversation), strict=True))
        return _Talk(conversation.id, ids, self._ids.tools(conversation.tools), tools_tokens, clocks)

    def _starts(self, concurrency: int | None) -> list[float | None]:
        if concurrency is not None:
            return [0.0 if at < concurrency else None for at in range(len(self._talks))]
        known = [next((clock.started for clock in talk.clocks.values()), None) for talk in self._talks]
        first = min((start for start in known if start is not None), default=0.0)
        return [0.0 if start is None else start - first for start in known]

    def _written(self, strategy: str) -> Mapping[str, list[Ids]]:
        """The messages that a strategy wrote, by conversation."""
        found: dict[str, list[Ids]] = {}
        for name, message in self._run.all_written(strategy):
            found.setdefault(name, []).append(self._ids.message(message))
        return found

    def _calls(self, talk: _Talk, strategy: str, written: Sequence[Ids], longest: float) -> Iterator[ServedCall]:
        rows = self._steps.get((strategy, talk.name))
        return iter(()) if rows is None else _requests(talk, rows, [*talk.ids, *written], longest)


def _requests(talk: _Talk, rows: pd.DataFrame, ids: Sequence[Ids], longest: float) -> Iterator[ServedCall]:
    """The requests of a cell. Only what is not kept of the one before is written again."""
    prompt = np.empty(1024, np.int32)
    ends: list[int] = []
    added: dict[tuple[int, tuple[str, ...]], int] = {}
    for at, kept, starts, stops, tools, tokens in rows[list(_STEP)].itertuples(index=False):
        parts = [ids[each] for start, stop in zip(starts, stops, strict=True) for each in range(start, stop)]
        if kept:
            del ends[1 + kept :]
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
    """The prompt with these parts after the last of `ends`, to which theirs are added."""
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
    """When each call began, and how long it took. Clocks that go backwards say nothing.

    A call began when it says so, else when the message before it was complete.
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
