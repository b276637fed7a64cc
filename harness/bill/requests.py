"""Rebuild the requests of a stored run as the cache models need them: from its tables, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from ctxbench.metrics.cache.mechanisms import MOST_MARKS
from ctxbench.metrics.cache.prefixes import ContentBlocks
from ctxbench.metrics.cache.requests import MessageSizes, RequestStep
from ctxbench.metrics.cache.rules import day_of
from ctxbench.metrics.media import media_tokens
from ctxbench.metrics.thinking import (
    Keeps,
    KeptThinking,
    has_thinking,
    opens_turn,
    thinking_rule,
    thinking_tokens,
    without_thinking,
)
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message

from ..folder.contexts import Floats, Ints, LogColumns
from ..folder.run import Run
from .recorded import TokenFactors, hidden_prefixes, token_factors

AT_ONCE = 50_000
"""Steps whose requests are in memory at a time: they take four times as much as figures of the steps do."""

PAUSE = 10.0
"""Seconds between calls of a recording that has no times: an assumption, which is printed."""

SHARES = "shares_cache"
"""In a conversation's `meta`: conversations with the same name there share a prompt cache, as one account does."""


@dataclass(frozen=True)
class ConversationRequests:
    """The requests of one conversation under one strategy, as the context log has them."""

    conversation: str
    strategy: str
    log: tuple[object, ...]
    """Identity of the requests. Equal ones are sent at the same times: a strategy may have nothing to do."""
    make_steps: Callable[[], list[RequestStep]]
    messages: MessageSizes
    written: int
    """How many of the messages, the last ones, the strategy wrote."""
    began: float
    timed: bool
    """Whether the recording has any times."""
    shares: str
    """Name of the prompt cache that the conversation shares; empty = it has its own."""

    @cached_property
    def steps(self) -> list[RequestStep]:
        """The requests in order."""
        return self.make_steps()

    @property
    def day(self) -> str | None:
        """Date of the first request, or None where the recording has no times."""
        return day_of(self.began) if self.timed else None


_COLUMNS = (
    *("conversation", "strategy", "step", "turn", "at", "kept", "added_from", "added_to"),
    *("tokens_sent", "refetch_tokens", "marks", "tools_added"),
)

ALIKE = (
    "whole",
    "steps",
    "hidden",
    "at",
    "bounds",
    "output",
    "started",
    "recordings",
    "_blocks",
    "_table",
    "_log",
    "_messages",
    "_written",
)
"""Properties of the requests of a run that are the same whatever counts their media and reasoning: they are worked out
once."""


@dataclass(frozen=True)
class RunRequests:
    """All requests of a run. Its columns have one row per row of the table `steps`.

    Images, sounds, films and files have the tokens that the provider of `model` counts for them, over `factor`, the
    tokens that it counts for each of ours. Those whose tokens are not known have none, and so have all without a model.

    With `thinking`, answers have their reasoning in later requests as the provider keeps it (`metrics/thinking.py`).
    Where a user's turn strips it, the message is another one from then on: it breaks the prefix.
    """

    run: Run
    model: str = ""
    factor: float = 1.0
    thinking: bool = False

    def counted_for(self, model: str, factor: float, thinking: bool = False) -> RunRequests:
        """Return the requests with media and reasoning by the rules of a model; these, where the run has none."""
        thinking = thinking and thinking_rule(model) is not None and bool(self.run.reasoned)
        if not self.run.media and not thinking:
            return self
        requests = replace(self, model=model, factor=factor, thinking=thinking)
        vars(requests).update({name: getattr(self, name) for name in ALIKE})
        return requests

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Conversation, strategy, step and turn of each row."""
        frame: pd.DataFrame = self._table.select(["conversation", "strategy", "step", "turn"]).to_pandas()
        return frame

    def pieces(self) -> Iterator[RunRequests]:
        """Yield the requests of some shards after the other (`Run.pieces`); all at once where conversations share a
        cache.
        """
        shared = any(f'"{SHARES}"' in (meta or "") for meta in self.run.table("conversations").meta)
        for run in [self.run] if shared else self.run.pieces(AT_ONCE):
            if run is self.run:
                yield self
                return
            piece = replace(self, run=run)
            vars(piece)["whole"] = self.whole
            yield piece

    @cached_property
    def whole(self) -> RunRequests:
        """The requests of the whole run, where these are a piece of it: its estimates are made of all of it."""
        return self

    def token_factors(self, model: str, thinking: bool = False) -> TokenFactors:
        """Return a model's token factors, of all recorded calls of the run; with `thinking`, beside its reasoning."""
        known = self.whole._known_factors
        if (model, thinking) not in known:
            known[model, thinking] = token_factors(self.whole.run, model, thinking)
        return known[model, thinking]

    @cached_property
    def _known_factors(self) -> dict[tuple[str, bool], TokenFactors]:
        return {}

    @property
    def _keeps(self) -> Keeps | None:
        rule = thinking_rule(self.model) if self.thinking else None
        return None if rule is None else rule.keeps

    @cached_property
    def _kept(self) -> dict[str, KeptThinking]:
        """The answers whose reasoning stays in later prompts, by conversation."""
        return {name: KeptThinking(self._keeps, recorded.messages) for name, recorded in self.recordings.items()}

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        return {
            name: {message.id: at for at, message in enumerate(recorded.messages)}
            for name, recorded in self.recordings.items()
        }

    @cached_property
    def _counter(self) -> TokenCounter:
        return TokenCounter(self.run.manifest.plan.encoding)

    @cached_property
    def hidden(self) -> dict[str, int]:
        """Estimated tokens in front of every prompt of a conversation that records no system prompt and no tools."""
        return hidden_prefixes(self.run) if self.whole is self else self.whole.hidden

    @cached_property
    def tokens(self) -> Ints:
        """Tokens of each request, those of a hidden prefix, of media and of reasoning included."""
        tokens = self._ints("tokens_sent") + self._of_recordings(
            lambda recording, at: [recording.hidden] * len(at)
        ).astype(np.int64)
        if self.model:
            for result, (first, last) in zip(self, pairwise(self.bounds), strict=True):
                shows = result.conversation in self.run.media or any(message.media for message in self.written(result))
                if self.thinking or shows:
                    tokens[first:last] = [step.tokens for step in result.steps]
        return tokens

    @cached_property
    def at(self) -> Ints:
        """Place of each request's recorded answer in its conversation."""
        return self._ints("at")

    @cached_property
    def refetch_tokens(self) -> Ints:
        """Tokens of the messages that have the values used next and that the request lacks."""
        return self._ints("refetch_tokens")

    @cached_property
    def bounds(self) -> list[int]:
        """The first row of each conversation and strategy, and the end of the last."""
        size = len(self._table)
        names, strategies = self._codes("conversation"), self._codes("strategy")
        new = np.flatnonzero((np.diff(names) != 0) | (np.diff(strategies) != 0)) + 1
        return [0, *new.tolist(), size] if size else [0]

    @cached_property
    def output(self) -> Ints:
        """Tokens of the recorded answer to each request."""
        return self._of_recordings(lambda recording, at: [recording.tokens[place] for place in at]).astype(np.int64)

    @cached_property
    def started(self) -> Floats:
        """When each request began, in seconds since 1970; NaN where the recording has no times."""
        return self._of_recordings(
            lambda recording, at: recording.times(at)[0] if recording.timed else [np.nan] * len(at)
        )

    @cached_property
    def gaps(self) -> Floats:
        """Seconds since the call before in the same conversation began; NaN for the first, and without times."""
        gaps = np.diff(self.started, prepend=np.nan)
        gaps[self.bounds[:-1]] = np.nan
        return gaps

    def __len__(self) -> int:
        """Return the number of results: conversations × strategies."""
        return len(self.bounds) - 1

    def _of_recordings(self, column: Callable[[_RecordingColumns, list[int]], list[float]]) -> Floats:
        """Return a column that is the same under every strategy."""
        names, codes, at = self._names("conversation"), self._codes("conversation"), self._ints("at")
        columns: dict[str, Floats] = {}
        parts = []
        for first, last in pairwise(self.bounds):
            name = names[codes[first]]
            if name not in columns:
                columns[name] = np.array(column(self._columns[name], at[first:last].tolist()), float)
            parts.append(columns[name])
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def overmarked(self) -> int:
        """Number of calls with more marks than a provider takes."""
        return int((np.diff(self._table.column("marks").combine_chunks().offsets.to_numpy()) > MOST_MARKS).sum())

    @cached_property
    def untimed(self) -> int:
        """Number of conversations without any recorded time; their calls are taken to be `PAUSE` seconds apart."""
        return sum(not recording.timed for recording in self._columns.values())

    def __iter__(self) -> Iterator[ConversationRequests]:
        """Yield the requests of every conversation and strategy, in the order of the tables."""
        names, strategies = self._names("conversation"), self._names("strategy")
        conversation_codes, strategy_codes = self._codes("conversation"), self._codes("strategy")
        for first, last in pairwise(self.bounds):
            name, strategy = names[conversation_codes[first]], strategies[strategy_codes[first]]
            recording, written = self._columns[name], self._written_by(name, strategy)
            sizes = [tokens + self._beyond_text(name, message) for message, tokens in written]
            messages, rows = recording.with_written(written, sizes, self._blocks[name]), slice(first, last)
            yield ConversationRequests(
                name,
                strategy,
                (name, strategy if self._written.get((name, strategy)) else "", *self._log.identity(rows)),
                partial(self._steps, name, rows, messages, self._times(name, rows), recording, written),
                messages,
                len(written),
                self._times(name, rows)[0][0],
                recording.timed,
                recording.shares,
            )

    def _steps(
        self,
        name: str,
        rows: slice,
        messages: MessageSizes,
        times: tuple[list[float], list[float]],
        recording: _RecordingColumns,
        written: Sequence[tuple[Message, int]],
    ) -> list[RequestStep]:
        log, hidden = self._log, recording.hidden
        at = log.at[rows].tolist()
        steps: Iterable[RequestStep] = (
            RequestStep(*step, started, answered, place, recording.tokens[place])
            for step, started, answered, place in zip(log.entries(rows), *times, at, strict=True)
        )
        if not self.model:
            return [step._replace(tokens=step.tokens + hidden) for step in steps] if hidden else list(steps)
        texts = [*recording.tokens, *(tokens for _, tokens in written)]
        beyond = [whole - text for whole, text in zip(messages.tokens, texts, strict=True)]
        sent, counted = [0], list[RequestStep]()
        if self._keeps == "turn":
            recorded = self.recordings[name].messages
            steps = _stripped(steps, (*recorded, *(message for message, _ in written)))
        for step in steps:
            del sent[step.kept + 1 :]
            sent[-1:] = accumulate((beyond[number] for number in _numbers(step)), initial=sent[-1])
            counted.append(step._replace(tokens=step.tokens + hidden + sent[-1]))
        return counted

    def _beyond_text(self, name: str, message: Message) -> int:
        """Return the tokens of a message's media and reasoning, in ours; those that are not known are left out."""
        if not self.model or not (message.media or self.thinking):
            return 0
        counts = (media_tokens(self.model, medium) for medium in message.media)
        beyond = round(sum(count for count in counts if not isinstance(count, Missing)) / self.factor)
        at = self._places[name].get(message.id) if self.thinking else None
        thought = thinking_tokens(message, self._counter.text, self.factor) if at is not None else 0
        return beyond + (0 if at is None or isinstance(thought, Missing) or not self._kept[name].of(at) else thought)

    def _times(self, name: str, rows: slice) -> tuple[list[float], list[float]]:
        """Return when each call of a conversation began and was answered: the same under every strategy."""
        if name not in self._known_times:
            self._known_times[name] = self._columns[name].times(self._log.at[rows].tolist())
        return self._known_times[name]

    @cached_property
    def _known_times(self) -> dict[str, tuple[list[float], list[float]]]:
        return {}

    @cached_property
    def _log(self) -> LogColumns:
        return LogColumns(self._table)

    @cached_property
    def recordings(self) -> dict[str, Conversation]:
        """The recorded conversations by their ids."""
        return {conversation.id: conversation for conversation in self.run.conversations()}

    def written(self, requests: ConversationRequests) -> list[Message]:
        """Return the messages that the strategy wrote in a conversation, by their numbers after the recorded ones."""
        return [message for message, _ in self._written_by(requests.conversation, requests.strategy)]

    def _written_by(self, name: str, strategy: str) -> list[tuple[Message, int]]:
        """Return the messages that a strategy wrote, with their tokens, and the answers that lose their reasoning."""
        written = self._written.get((name, strategy), [])
        if self._keeps != "turn":
            return written
        tokens = (*self._columns[name].tokens, *(size for _, size in written))
        messages = (*self.recordings[name].messages, *(message for message, _ in written))
        stripped = [
            (without_thinking(message), size)
            for message, size in zip(messages, tokens, strict=True)
            if has_thinking(message)
        ]
        return [*written, *stripped]

    @cached_property
    def _blocks(self) -> dict[str, list[ContentBlocks]]:
        """The content blocks of each recorded message, by conversation."""
        # One conversation is in memory at a time, unless something has read them all: the texts of a run may be many.
        known: dict[str, Conversation] | None = vars(self).get("recordings")
        recorded = self.run.conversations() if known is None else known.values()
        return {conversation.id: list(map(ContentBlocks.of, conversation.messages)) for conversation in recorded}

    @cached_property
    def _table(self) -> pa.Table:
        return self.run.arrow("steps", _COLUMNS)

    @cached_property
    def _messages(self) -> dict[str, tuple[list[Any], ...]]:
        """Tokens, role and time of each recorded message, by conversation."""
        return self.run.message_columns("tokens", "role", "time")

    @cached_property
    def _columns(self) -> dict[str, _RecordingColumns]:
        conversations = self.run.table("conversations")
        rows = zip(conversations.conversation, conversations.tools_tokens, conversations.meta, strict=True)
        about = {str(name): (int(tools), msgspec.json.decode(meta or "{}")) for name, tools, meta in rows}
        columns: dict[str, _RecordingColumns] = {}
        for name, (tokens, roles, time) in self._messages.items():
            tools, meta = about[name]
            shares = str(meta.get(SHARES, ""))
            hidden = self.hidden.get(name, 0)
            sizes = tokens
            if self.model:
                beyond = (self._beyond_text(name, message) for message in self.recordings[name].messages)
                sizes = [text + more for text, more in zip(tokens, beyond, strict=True)]
            columns[name] = _RecordingColumns(tokens, sizes, roles, time, tools, shares, hidden)
        return columns

    @cached_property
    def _written(self) -> dict[tuple[str, str], list[tuple[Message, int]]]:
        """Messages that strategies wrote, with their tokens, by conversation and strategy."""
        messages_by_result: dict[tuple[str, str], list[tuple[Message, int]]] = {}
        decode = msgspec.json.Decoder(Message).decode
        table = self.run.table("contexts")
        columns = (table[name].tolist() for name in ("conversation", "strategy", "tokens", "message"))
        for name, strategy, tokens, message in zip(*columns, strict=True):
            messages_by_result.setdefault((name, strategy), []).append((decode(message), tokens))
        return messages_by_result

    def _ints(self, name: str) -> Ints:
        values: Ints = self._table.column(name).to_numpy().astype(np.int64)
        return values

    def _codes(self, name: str) -> Ints:
        column = self._table.column(name).combine_chunks()
        codes: Ints = column.indices.to_numpy().astype(np.int64)
        return codes

    def _names(self, name: str) -> list[str]:
        names: list[str] = self._table.column(name).combine_chunks().dictionary.to_pylist()
        return names


def _stripped(steps: Iterable[RequestStep], messages: Sequence[Message]) -> Iterator[RequestStep]:
    """Yield the requests as they are sent to a model that strips the reasoning of earlier turns.

    `messages` are all by their numbers; the last are those that stand for the others without their reasoning.
    """
    thoughtful = [number for number, message in enumerate(messages) if has_thinking(message)]
    twins = dict(zip(thoughtful, range(len(messages) - len(thoughtful), len(messages)), strict=True))
    logged, opening = list[int](), 0
    for step in steps:
        kept, before = step.kept, opening
        logged[kept:] = _numbers(step)
        # The newest user's message that opens a turn: among the new messages, or where it was.
        first = kept if before < kept else 0
        new = (at for at in range(len(logged) - 1, first - 1, -1) if _opens_turn(logged, at, messages))
        opening = next(new, before if before < kept else 0)
        # Between both openings, reasoning is gone now, or is there again since the strategy cut its prompt.
        moved = range(min(before, opening), min(max(before, opening), kept))
        kept = next((at for at in moved if logged[at] in twins), kept)
        now = [twins.get(number, number) if at < opening else number for at, number in enumerate(logged[kept:], kept)]
        yield step._replace(kept=kept, added=[(number, number + 1) for number in now])


def _opens_turn(sent: Sequence[int], at: int, messages: Sequence[Message]) -> bool:
    return opens_turn(messages[sent[at]], (messages[sent[before]] for before in range(at - 1, -1, -1)))


class _RecordingColumns(NamedTuple):
    """One recorded conversation as columns."""

    tokens: list[int]
    """Of the texts and tool calls alone."""
    sizes: list[int]
    """The same with media."""
    roles: list[str]
    time: list[float]
    tools: int
    shares: str
    hidden: int
    """Tokens in front of every prompt that are not recorded: they are cached as tools are."""

    @property
    def timed(self) -> bool:
        """Whether any of its messages has a time."""
        return any(time == time for time in self.time)

    def with_written(
        self, written: Sequence[tuple[Message, int]], sizes: Sequence[int], blocks: list[ContentBlocks]
    ) -> MessageSizes:
        """Return the sizes of the recorded messages, followed by those that a strategy wrote."""
        if not written:
            return MessageSizes(self.sizes, self.roles, self.tools + self.hidden, blocks=blocks)
        tokens = [*self.sizes, *sizes]
        roles = [*self.roles, *(message.role for message, _ in written)]
        blocks = [*blocks, *(ContentBlocks.of(message) for message, _ in written)]
        return MessageSizes(tokens, roles, self.tools + self.hidden, blocks=blocks)

    def times(self, calls: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return when each call began and was answered; `calls` are the places of their answers.

        A call begins when the message before it was there, or where that has no time when it was answered. A clock that
        goes backwards stands still.
        """
        if not self.timed:
            # Shorter than any lifetime: a recording without times never lets a cache expire.
            assumed = [PAUSE * number for number in range(len(calls))]
            return assumed, assumed
        starts, ends, clock = list[float](), list[float](), -np.inf
        for at in calls:
            times = [time for time in (self.time[at - 1], self.time[at]) if time == time]  # NaN is not itself
            clock = max(clock, times[0] if times else clock)
            starts.append(clock)
            ends.append(max(clock, times[-1] if times else clock))
        first = next((time for time in starts if time > -np.inf), 0.0)  # calls before any time come with the first
        return [max(time, first) for time in starts], [max(time, first) for time in ends]


class Break(NamedTuple):
    """One call that broke the prefix of the prompt before it.

    A call breaks the prefix where it does not begin with all of the previous prompt. The cost of a break is the tokens
    of the previous prompt behind it: they could have been read from the cache, and were not. `cause` is what happened
    to the first message that is no longer where it was, the same for every strategy:

    tools       other tools are offered: nothing of the prompt is left
    inserted    it is still sent, further back: something was put before it
    dropped     it is not sent any more, and nothing that the strategy wrote stands in its place
    replaced    it was a recorded message, and one that the strategy wrote stands in its place
    rewritten   the strategy wrote it, and wrote it anew
    taken back  the strategy wrote it, and no longer sends it
    """

    conversation: str
    strategy: str
    step: int
    kept: int
    """Messages that stayed where they were."""
    lost: int
    """Tokens of the prompt before that stood behind them: they could have been read."""
    before: int
    """Tokens of all its messages."""
    cause: str
    deeds: str
    """Kinds of events that the strategy reported at this step, in order, without repetition."""


def breaks(requests: RunRequests) -> pd.DataFrame:
    """Return every broken prefix of a run, in the order of its steps, with the columns of `Break`."""
    rows: list[Break] = []
    for piece in requests.pieces():
        actions = _actions(piece)
        rows += (row for conversation in piece for row in _breaks(conversation, actions))
    return pd.DataFrame(rows, columns=list(Break._fields))


def _breaks(conversation: ConversationRequests, actions: dict[tuple[str, str, int], str]) -> Iterator[Break]:
    sent: list[int] = []
    ends = [0]
    tokens = conversation.messages.tokens
    recorded = len(tokens) - conversation.written
    tools: tuple[str, ...] | None = None
    for number, step in enumerate(conversation.steps):
        shared, new = step.kept, _numbers(step)
        if shared < len(sent) or step.tools != tools:
            if tools is not None and (lost := ends[-1] - ends[shared]):
                cause = "tools" if step.tools != tools else _cause(sent[shared], new, recorded)
                reported = actions.get((conversation.conversation, conversation.strategy, number), "")
                yield Break(
                    conversation.conversation, conversation.strategy, number, shared, lost, ends[-1], cause, reported
                )
            del sent[shared:], ends[shared + 1 :]
        tools = step.tools
        sent += new
        ends[-1:] = accumulate((tokens[message] for message in new), initial=ends[-1])


def _cause(gone: int, new: list[int], recorded: int) -> str:
    """Return what happened to a message that is no longer where it was; `new` is what stands there and behind it."""
    if gone in new:
        return "inserted"
    instead_written = bool(new) and new[0] >= recorded
    if gone < recorded:
        return "replaced" if instead_written else "dropped"
    return "rewritten" if instead_written else "taken back"


def _numbers(step: RequestStep) -> list[int]:
    return [number for start, stop in step.added for number in range(start, stop)]


def _actions(requests: RunRequests) -> dict[tuple[str, str, int], str]:
    """Map conversation, strategy and step to the kinds of events that the strategy reported."""
    events = requests.run.table("events")[["conversation", "strategy", "step", "kind"]].drop_duplicates()
    kinds: dict[tuple[str, str, int], str] = {}
    columns = (events[name].tolist() for name in events)
    for name, strategy, step, kind in zip(*columns, strict=True):
        key = (name, strategy, step)
        kinds[key] = f"{kinds[key]}, {kind}" if key in kinds else kind
    return kinds
