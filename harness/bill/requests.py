"""The cells of a stored run, as the cache models need them: from its tables, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ...metrics.cache.explicit import MOST_MARKS
from ...metrics.cache.prefixes import content_blocks
from ...metrics.cache.requests import MessageSizes, RequestStep
from ...metrics.cache.rules import day_of
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Message
from ..folder.contexts import Floats, Ints, ListColumn, LogColumns
from ..folder.run import Run

PAUSE = 10.0
"""Seconds between calls of a recording that has no times: an assumption, which is printed."""

SHARES = "shares_cache"
"""In a conversation's `meta`: all that give the same name share a prompt cache, as at one provider's account."""


@dataclass(frozen=True)
class ConversationRequests:
    """One conversation under one strategy, as its log has it."""

    conversation: str
    strategy: str
    log: tuple[object, ...]
    """Cells with equal ones make the same requests at the same times: a strategy may have nothing to do."""
    make_steps: Callable[[], list[RequestStep]]
    messages: MessageSizes
    written: int
    """How many of these messages, the last ones, the strategy wrote."""
    began: float
    timed: bool
    """Whether the recording has any times."""
    shares: str
    """Conversations of one name share a prompt cache; empty = this one has its own."""

    @cached_property
    def steps(self) -> list[RequestStep]:
        """Its requests in order."""
        return self.make_steps()

    @property
    def day(self) -> str | None:
        """Of its first request; None where the recording has no times."""
        return day_of(self.began) if self.timed else None


@dataclass(frozen=True)
class RunRequests:
    """All cells of a run. The columns are those of the table `steps`, row by row."""

    run: Run

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Conversation, strategy, step and turn of each row."""
        frame: pd.DataFrame = self._table.select(["conversation", "strategy", "step", "turn"]).to_pandas()
        return frame

    @cached_property
    def tokens(self) -> Ints:
        """Of each request."""
        return self._ints("tokens_sent")

    @cached_property
    def bounds(self) -> list[int]:
        """The first row of each cell, and the end of the last."""
        size = len(self._table)
        names, strategies = self._codes("conversation"), self._codes("strategy")
        new = np.flatnonzero((np.diff(names) != 0) | (np.diff(strategies) != 0)) + 1
        return [0, *new.tolist(), size] if size else [0]

    @cached_property
    def output(self) -> Ints:
        """Tokens of the recorded answer to each request."""
        return self._of_books(lambda book, at: [book.tokens[each] for each in at]).astype(np.int64)

    @cached_property
    def started(self) -> Floats:
        """When each request began, in seconds since 1970; NaN where the recording has no times."""
        return self._of_books(lambda book, at: book.times(at)[0] if book.timed else [np.nan] * len(at))

    @cached_property
    def gaps(self) -> Floats:
        """Seconds since the call before in the same conversation began; NaN for the first, and without times."""
        made = np.diff(self.started, prepend=np.nan)
        made[self.bounds[:-1]] = np.nan
        return made

    def __len__(self) -> int:
        """How many cells there are."""
        return len(self.bounds) - 1

    def _of_books(self, column: Callable[[_Book, list[int]], list[float]]) -> Floats:
        """A column that is the same under every strategy."""
        names, codes, at = self._names("conversation"), self._codes("conversation"), self._ints("at")
        known: dict[str, Floats] = {}
        made = []
        for first, last in pairwise(self.bounds):
            name = names[codes[first]]
            if name not in known:
                known[name] = np.array(column(self._books[name], at[first:last].tolist()), float)
            made.append(known[name])
        return np.concatenate(made) if made else np.empty(0)

    @cached_property
    def overmarked(self) -> int:
        """Calls with more marks than a provider takes."""
        return int((np.diff(self._table.column("marks").combine_chunks().offsets.to_numpy()) > MOST_MARKS).sum())

    @cached_property
    def untimed(self) -> int:
        """Conversations without any recorded time: their calls are taken to be `PAUSE` seconds apart."""
        return sum(not book.timed for book in self._books.values())

    def __iter__(self) -> Iterator[ConversationRequests]:
        """Every cell, in the order of the tables."""
        names, strategies = self._names("conversation"), self._names("strategy")
        conversations, arms = self._codes("conversation"), self._codes("strategy")
        for first, last in pairwise(self.bounds):
            name, strategy = names[conversations[first]], strategies[arms[first]]
            book, written = self._books[name], self._written.get((name, strategy), [])
            messages, rows = book.with_those(written), slice(first, last)
            if self._log.most(rows) > len(messages.tokens):
                raise RunError(f"{self.run.folder}: what {strategy} wrote is missing: run again with --overwrite")
            yield ConversationRequests(
                name,
                strategy,
                (name, strategy if written else "", *self._log.of(rows)),
                partial(self._steps, rows, messages, self._times(name, rows)),
                messages,
                len(written),
                self._times(name, rows)[0][0],
                book.timed,
                book.shares,
            )

    def _steps(self, rows: slice, messages: MessageSizes, times: tuple[list[float], list[float]]) -> list[RequestStep]:
        log = self._log
        at = log.at[rows].tolist()
        return [
            RequestStep(*step, asked, answered, place, messages.tokens[place])
            for step, asked, answered, place in zip(log.steps(rows), *times, at, strict=True)
        ]

    def _times(self, name: str, rows: slice) -> tuple[list[float], list[float]]:
        """When each call of a conversation began and was answered: the same under every strategy."""
        if name not in self._known_times:
            self._known_times[name] = self._books[name].times(self._log.at[rows].tolist())
        return self._known_times[name]

    @cached_property
    def _known_times(self) -> dict[str, tuple[list[float], list[float]]]:
        return {}

    @cached_property
    def _log(self) -> LogColumns:
        column = self._table.column
        starts, stops, marks = (ListColumn(column(name)) for name in ("added_from", "added_to", "marks"))
        tools = [tuple(each) for each in column("tools_added").to_pylist()]
        return LogColumns(self._ints("at"), self._ints("kept"), self.tokens, starts, stops, marks, tools)

    @cached_property
    def recordings(self) -> dict[str, Conversation]:
        """The recorded conversations, by their ids."""
        return {each.id: each for each in self.run.conversations()}

    def written(self, cell: ConversationRequests) -> list[Message]:
        """The messages that the strategy of a cell wrote, by their numbers after the recorded ones."""
        return [each for each, _ in self._written.get((cell.conversation, cell.strategy), [])]

    @cached_property
    def _table(self) -> pa.Table:
        return self.run.arrow("steps")

    @cached_property
    def _books(self) -> dict[str, _Book]:
        table = self.run.table("messages")
        conversations = self.run.table("conversations")
        known = zip(conversations.conversation, conversations.tools_tokens, conversations.meta, strict=True)
        about = {str(name): (int(tools), msgspec.json.decode(meta or "{}")) for name, tools, meta in known}
        blocks = {name: list(map(content_blocks, each.messages)) for name, each in self.recordings.items()}
        columns = (table[name].tolist() for name in ("conversation", "tokens", "role", "time"))
        found: dict[str, _Book] = {}
        for name, tokens, role, time in zip(*columns, strict=True):
            book = found.get(name)
            if book is None:
                tools, meta = about[name]
                book = found[name] = _Book([], [], [], tools, str(meta.get(SHARES, "")), blocks[name])
            book.tokens.append(tokens)
            book.roles.append(role)
            book.time.append(time)
        return found

    @cached_property
    def _written(self) -> dict[tuple[str, str], list[tuple[Message, int]]]:
        """Of the messages that strategies wrote, what they are and their tokens, by their numbers."""
        found: dict[tuple[str, str], list[tuple[Message, int]]] = {}
        decode = msgspec.json.Decoder(Message).decode
        table = self.run.table("contexts")
        columns = (table[name].tolist() for name in ("conversation", "strategy", "tokens", "message"))
        for name, strategy, tokens, message in zip(*columns, strict=True):
            found.setdefault((name, strategy), []).append((decode(message), tokens))
        return found

    def _ints(self, name: str) -> Ints:
        made: Ints = self._table.column(name).to_numpy().astype(np.int64)
        return made

    def _codes(self, name: str) -> Ints:
        column = self._table.column(name).combine_chunks()
        codes: Ints = column.indices.to_numpy().astype(np.int64)
        return codes

    def _names(self, name: str) -> list[str]:
        names: list[str] = self._table.column(name).combine_chunks().dictionary.to_pylist()
        return names


class _Book(NamedTuple):
    """One recorded conversation, as columns."""

    tokens: list[int]
    roles: list[str]
    time: list[float]
    tools: int
    shares: str
    blocks: list[int]

    @property
    def timed(self) -> bool:
        """Whether any of its messages has a time."""
        return any(time == time for time in self.time)

    def with_those(self, written: Sequence[tuple[Message, int]]) -> MessageSizes:
        """Its messages, and after them those that a strategy wrote."""
        if not written:
            return MessageSizes(self.tokens, self.roles, self.tools, blocks=self.blocks)
        tokens = [*self.tokens, *(tokens for _, tokens in written)]
        roles = [*self.roles, *(message.role for message, _ in written)]
        blocks = [*self.blocks, *(content_blocks(message) for message, _ in written)]
        return MessageSizes(tokens, roles, self.tools, blocks=blocks)

    def times(self, calls: Sequence[int]) -> tuple[list[float], list[float]]:
        """When each call began and was answered, by the place of its answer.

        It begins when the message before it was there, or where that has no time when it was answered. A clock that
        goes backwards stands still.
        """
        if not self.timed:
            made = [PAUSE * number for number in range(len(calls))]
            return made, made
        asked, answered, clock = list[float](), list[float](), -np.inf
        for at in calls:
            known = [time for time in (self.time[at - 1], self.time[at]) if time == time]
            clock = max(clock, known[0] if known else clock)
            asked.append(clock)
            answered.append(max(clock, known[-1] if known else clock))
        first = next((time for time in asked if time > -np.inf), 0.0)  # calls before any time come with the first
        return [max(time, first) for time in asked], [max(time, first) for time in answered]
