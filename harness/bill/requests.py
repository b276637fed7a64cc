"""Rebuild the requests of a stored run as the cache models need them: from its tables, without running anything.

A run is billed under the model that was recorded, in tokens as that model's provider counts them, unless the user names
another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, chain, pairwise
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ctxbench.metrics.cache.mechanisms import FIVE_MINUTES, MOST_MARKS
from ctxbench.metrics.cache.prefixes import ContentBlocks
from ctxbench.metrics.cache.requests import MessageSizes, RequestStep
from ctxbench.metrics.cache.rules import day_of
from ctxbench.metrics.media import media_tokens
from ctxbench.metrics.prices import Prices
from ctxbench.metrics.thinking import (
    Keeps,
    KeptThinking,
    ThinkingRule,
    has_thinking,
    opens_turn,
    reported_thinking,
    thinking_rule,
    thinking_tokens,
    without_thinking,
)
from ctxbench.metrics.tokens import TokenCounter, TokenFactor, token_factor
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Message

from ..folder.run import Floats, Ints, Run, recorded_models, values_of
from . import MODELS, OWN_MODELS, usual_prices

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 50_000
"""Steps whose requests are in memory at a time: they take four times as much as figures of the steps do."""

PAUSE = 10.0  # seconds between calls of a recording that has no times: an assumption, which is printed

_LOG = ("kept", "added_from", "added_to", "tokens_sent", "marks", "tools_added")
_COLUMNS = ("conversation", "strategy", "step", "turn", "at", "refetch_tokens", "tokens_sent")


class RunRequests:
    """The requests of a run, or of a piece of one. Its columns have one row per row of the table `steps`.

    They are the same whatever model is billed; `CountedRequests` are those that a model's provider counts.
    """

    def __init__(self, run: Run, whole: RunRequests | None = None) -> None:
        """`whole` are the requests of the whole run, if this is a piece of it: estimates are made of all of it."""
        self.run = run
        self._whole = self if whole is None else whole  # not `or`, which asks for a length and reads the steps
        self.is_whole = self._whole is self
        self._factors: dict[tuple[str, bool], TokenFactors] = {}
        self._reads: dict[str, RecordedReads] = {}

    def pieces(self) -> Iterator[RunRequests]:
        """Yield the requests of some shards after the other (`Run.pieces`)."""
        for run in self.run.pieces(AT_ONCE):
            yield self if run is self.run else RunRequests(run, self._whole)

    def counted_for(self, model: str, factor: float, thinking: bool = False) -> CountedRequests:
        """Return the requests with media and reasoning counted by the rules of a model, where the run has any."""
        beyond = self.run.beyond_text.values()
        thinking = thinking and thinking_rule(model) is not None and any(map(has_thinking, beyond))
        is_plain = not thinking and not any(message.media for message in beyond)
        return CountedRequests(self) if is_plain else CountedRequests(self, model, factor, thinking)

    def token_factors(self, model: str, thinking: bool = False) -> TokenFactors:
        """Return a model's token factors, of all recorded calls of the run; with `thinking`, beside its reasoning."""
        known = self._whole._factors
        if (model, thinking) not in known:
            known[model, thinking] = token_factors(self._whole.run, model, thinking)
        return known[model, thinking]

    @cached_property
    def recorded(self) -> dict[str, int]:
        """Number of recorded calls of each model in the whole run, the largest first."""
        return recorded_models(self.run) if self.is_whole else self._whole.recorded

    @cached_property
    def hidden(self) -> dict[str, int]:
        """Estimated tokens in front of every prompt of a conversation that records no system prompt and no tools."""
        return hidden_prefixes(self.run) if self.is_whole else self._whole.hidden

    def recorded_reads(self, model: str) -> RecordedReads:
        """Return what the cache had for a model's recorded calls, in the whole run."""
        if model not in (known := self._whole._reads):
            known[model] = recorded_reads(self._whole.run, model)
        return known[model]

    @cached_property
    def recordings(self) -> dict[str, Recording]:
        """The recorded conversations by their ids, without their texts."""
        # Not `groupby`, which makes a frame of each conversation: six times as slow for short ones.
        messages = self.run.arrow("messages", ["tokens", "time"])
        tokens, times = (messages.column(name).to_numpy().tolist() for name in ("tokens", "time"))
        rows = self.run.arrow("conversations", ["conversation", "messages", "tools_tokens"])
        names, sizes, tools_tokens = map(values_of, rows.columns)
        of_conversation = zip(names, tools_tokens, pairwise(accumulate(sizes, initial=0)), strict=True)
        return {
            name: Recording(tokens[first:last], times[first:last], tools, self.hidden.get(name, 0))
            for name, tools, (first, last) in of_conversation
        }

    @cached_property
    def conversations(self) -> dict[str, Conversation]:
        """Recorded conversations by id, whole; a large run has those of one piece at a time."""
        return {conversation.id: conversation for conversation in self.run.conversations()}

    @cached_property
    def blocks(self) -> dict[str, list[ContentBlocks]]:
        """The content blocks of each recorded message, by conversation."""
        return {name: list(map(ContentBlocks.of, said.messages)) for name, said in self.conversations.items()}

    @cached_property
    def written(self) -> dict[tuple[str, str], list[tuple[Message, int]]]:
        """Messages that strategies wrote, with their tokens, by conversation and strategy."""
        messages_by_result: dict[tuple[str, str], list[tuple[Message, int]]] = {}
        decode = msgspec.json.Decoder(Message).decode
        table = self.run.arrow("contexts")
        columns = (values_of(table.column(name)) for name in ("conversation", "strategy", "tokens", "message"))
        for name, strategy, tokens, message in zip(*columns, strict=True):
            messages_by_result.setdefault((name, strategy), []).append((decode(message), tokens))
        return messages_by_result

    @cached_property
    def _table(self) -> pa.Table:
        return self.run.arrow("steps", _COLUMNS)

    def ints(self, name: str) -> Ints:
        """Return a column of whole numbers of the table `steps`."""
        values: Ints = self._table.column(name).to_numpy().astype(np.int64)
        return values

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Conversation, strategy, step and turn of each row."""
        frame: pd.DataFrame = self._table.select(["conversation", "strategy", "step", "turn"]).to_pandas()
        return frame

    @cached_property
    def at(self) -> Ints:
        """Place of each request's recorded answer in its conversation."""
        return self.ints("at")

    @cached_property
    def bounds(self) -> list[int]:
        """The first row of each conversation and strategy, and the end of the last."""
        # The steps of one conversation under one strategy stand together, and each has a step 0.
        return [*np.flatnonzero(self.ints("step") == 0).tolist(), *[len(self._table)] * bool(len(self._table))] or [0]

    @cached_property
    def results(self) -> list[tuple[str, str, slice]]:
        """Every conversation and strategy with its rows, in the order of the tables."""
        firsts = self._table.select(["conversation", "strategy"]).take(pa.array(self.bounds[:-1], pa.int64()))
        rows = (slice(first, last) for first, last in pairwise(self.bounds))
        return list(zip(*map(values_of, firsts.columns), rows, strict=True))

    def __len__(self) -> int:
        """Return the number of results: conversations × strategies."""
        return len(self.bounds) - 1

    @cached_property
    def output(self) -> Ints:
        """Tokens of the recorded answer to each request."""
        parts = [np.array(self.recordings[name].tokens, np.int64)[self.at[rows]] for name, _, rows in self.results]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    @cached_property
    def started(self) -> Floats:
        """When each request began, in seconds since 1970; NaN where the recording has no times."""
        parts = [
            self.times[name][0] if self.recordings[name].timed else [np.nan] * (rows.stop - rows.start)
            for name, _, rows in self.results
        ]
        return np.array(list(chain.from_iterable(parts)), np.float64)

    @cached_property
    def gaps(self) -> Floats:
        """Seconds since the call before in the same conversation began; NaN for the first, and without times."""
        gaps = np.diff(self.started, prepend=np.nan)
        gaps[self.bounds[:-1]] = np.nan
        return gaps

    @cached_property
    def times(self) -> dict[str, tuple[list[float], list[float]]]:
        """When each call of a conversation began and was answered: the same under every strategy."""
        places = {name: self.at[rows].tolist() for name, _, rows in self.results}
        return {name: self.recordings[name].times(calls) for name, calls in places.items()}

    @property
    def overmarked(self) -> int:
        """Number of calls with more marks than a provider takes."""
        marks = self.run.arrow("steps", ["marks"]).column("marks")
        return int((np.diff(marks.combine_chunks().offsets.to_numpy()) > MOST_MARKS).sum())

    @cached_property
    def log(self) -> list[tuple[int, tuple[tuple[int, int], ...], tuple[str, ...], int, tuple[int, ...]]]:
        """Rows of the context log, one a request: the first fields of a `RequestStep`."""
        # Not with the other columns: lists take most of the time and memory, and usages that are stored need none.
        columns = dict(zip(_LOG, map(values_of, self.run.arrow("steps", _LOG).columns), strict=True))
        spans = zip(columns["added_from"], columns["added_to"], strict=True)
        added = [tuple(zip(*both, strict=True)) for both in spans]
        tools, marks = (list(map(tuple, columns[name])) for name in ("tools_added", "marks"))
        return list(zip(columns["kept"], added, tools, columns["tokens_sent"], marks, strict=True))

    def logged(self, name: str, rows: slice) -> Iterator[RequestStep]:
        """Yield the requests of some rows as the context log has them."""
        at, output = self.at[rows].tolist(), self.recordings[name].tokens
        for step, started, answered, place in zip(self.log[rows], *self.times[name], at, strict=True):
            yield RequestStep(*step, started, answered, place, output[place])


@dataclass(frozen=True)
class Recording:
    """One recorded conversation as columns: tokens and time of each message, NaN where no time is recorded."""

    tokens: list[int]  # of the texts and tool calls alone
    time: list[float]
    tools: int
    hidden: int  # tokens in front of every prompt that are not recorded: they are cached as tools are

    @cached_property
    def timed(self) -> bool:
        """Whether any message has a time."""
        return any(time == time for time in self.time)  # NaN is not itself

    def times(self, calls: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return when each call began and was answered; `calls` are the places of their answers.

        A call begins when the message before it was there, or where that has no time when it was answered. A clock that
        goes backwards stands still.
        """
        if not self.timed:
            # Shorter than any lifetime: a recording without times never lets a cache expire.
            assumed = [PAUSE * number for number in range(len(calls))]
            return assumed, assumed
        time, at = np.array(self.time), np.array(calls, np.int64)
        before, answered = time[at - 1], time[at]
        starts = np.maximum.accumulate(np.fmax(np.where(np.isnan(before), answered, before), -np.inf))
        ends = np.fmax(starts, np.where(np.isnan(answered), before, answered))
        first = min(starts[starts > -np.inf], default=0.0)  # calls before any time come with the first
        return np.maximum(starts, first).tolist(), np.maximum(ends, first).tolist()


@dataclass(frozen=True)
class ConversationRequests:
    """The requests of one conversation under one strategy, as the context log has them."""

    conversation: str
    strategy: str
    recording: Recording
    day: str | None  # date of the first request, or None where the recording has no times
    log: tuple[object, ...]
    """Identity of the requests. Equal ones are sent at the same times: a strategy may have nothing to do."""
    make_steps: Callable[[], list[RequestStep]]
    messages: MessageSizes
    texts: Sequence[Message]  # the messages by their numbers: the recorded ones, then those that the strategy wrote

    @cached_property
    def steps(self) -> list[RequestStep]:
        """The requests in order."""
        return self.make_steps()


@dataclass(frozen=True)
class CountedRequests:
    """The requests of a run with the tokens that a model's provider counts.

    Images, sounds, films and files have the tokens that the provider of `model` counts for them, over `factor`, the
    tokens that it counts for each of ours. Those whose tokens are not known have none, and so have all without a model.

    With `thinking`, answers have their reasoning in later requests as the provider keeps it (`metrics/thinking.py`).
    Where a user's turn strips it, the message is another one from then on: it breaks the prefix.
    """

    requests: RunRequests
    model: str = ""
    factor: float = 1.0
    thinking: bool = False

    @cached_property
    def tokens(self) -> Ints:
        """Tokens of each request, including hidden prefix, media and reasoning."""
        requests = self.requests
        hidden = np.array([requests.recordings[name].hidden for name, _, _ in requests.results], np.int64)
        tokens: Ints = requests.ints("tokens_sent") + np.repeat(hidden, np.diff(requests.bounds))
        for name, strategy, rows in requests.results if self.model else ():
            written = self._written(name, strategy)
            beyond = [*self._beyond[name], *(self._beyond_text(name, message) for message, _ in written)]
            if any(beyond):
                texts = (*requests.conversations[name].messages, *(message for message, _ in written))
                tokens[rows] = [step.tokens for step in self._steps(name, rows, beyond, texts)]
        return tokens

    def __iter__(self) -> Iterator[ConversationRequests]:
        """Yield the requests of every conversation and strategy, in the order of the tables."""
        requests = self.requests
        for name, strategy, rows in requests.results:
            recorded, recording = requests.conversations[name], requests.recordings[name]
            written = self._written(name, strategy)
            texts = (*recorded.messages, *(message for message, _ in written)) if written else recorded.messages
            beyond = [*self._beyond[name], *(self._beyond_text(name, message) for message, _ in written)]
            sizes = MessageSizes(
                list(map(add, (*recording.tokens, *(tokens for _, tokens in written)), beyond)),
                [message.role for message in texts],
                recording.tools + recording.hidden,
                blocks=[*requests.blocks[name], *(ContentBlocks.of(message) for message, _ in written)],
            )
            started = requests.times[name][0][0]
            yield ConversationRequests(
                name,
                strategy,
                recording,
                day_of(started) if recording.timed else None,
                (name, strategy if (name, strategy) in requests.written else "", *requests.log[rows]),
                partial(self._steps, name, rows, beyond, texts),
                sizes,
                texts,
            )

    def _steps(self, name: str, rows: slice, beyond: Sequence[int], texts: Sequence[Message]) -> list[RequestStep]:
        steps: Iterable[RequestStep] = self.requests.logged(name, rows)
        hidden = self.requests.recordings[name].hidden
        if not (self.thinking or any(beyond)):
            return [step._replace(tokens=step.tokens + hidden) for step in steps] if hidden else list(steps)
        sent, counted = [0], list[RequestStep]()
        for step in _stripped(steps, texts) if self._keeps == "turn" else steps:
            del sent[step.kept + 1 :]
            sent[-1:] = accumulate((beyond[number] for number in _numbers(step)), initial=sent[-1])
            counted.append(step._replace(tokens=step.tokens + hidden + sent[-1]))
        return counted

    @property
    def _keeps(self) -> Keeps | None:
        rule = thinking_rule(self.model) if self.thinking else None
        return None if rule is None else rule.keeps

    @cached_property
    def _beyond(self) -> dict[str, list[int]]:
        """Tokens of each recorded message's media and reasoning, by conversation."""
        said = {name: conversation.messages for name, conversation in self.requests.conversations.items()}
        return {name: [self._beyond_text(name, message) for message in said[name]] for name in said}

    @cached_property
    def _kept(self) -> dict[str, frozenset[str]]:
        """The ids of the recorded answers whose reasoning stays in later prompts, by conversation."""
        answers = dict[str, frozenset[str]]()
        for name, conversation in self.requests.conversations.items():
            kept = KeptThinking(self._keeps, conversation.messages)
            answers[name] = frozenset(said.id for at, said in enumerate(conversation.messages) if kept.of(at))
        return answers

    @cached_property
    def _counter(self) -> TokenCounter:
        return TokenCounter(self.requests.run.manifest.plan.encoding)

    def _beyond_text(self, name: str, message: Message) -> int:
        """Return the tokens of a message's media and reasoning, in ours; those that are not known are left out."""
        if not self.model or not (message.media or self.thinking):
            return 0
        counts = (media_tokens(self.model, medium) for medium in message.media)
        beyond = round(sum(count for count in counts if not isinstance(count, Missing)) / self.factor)
        if not self.thinking or message.id not in self._kept[name]:
            return beyond
        thought = thinking_tokens(message, self._counter.text, self.factor)
        return beyond + (0 if isinstance(thought, Missing) else thought)

    def _written(self, name: str, strategy: str) -> list[tuple[Message, int]]:
        """Return the messages that a strategy wrote, with their tokens, and the answers that lose their reasoning."""
        written = self.requests.written.get((name, strategy), [])
        if self._keeps != "turn":
            return written
        tokens = self.requests.recordings[name].tokens
        every = [*zip(self.requests.conversations[name].messages, tokens, strict=True), *written]
        return [*written, *((without_thinking(message), size) for message, size in every if has_thinking(message))]


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
        new = (
            at
            for at in range(len(logged) - 1, first - 1, -1)
            if opens_turn(messages[logged[at]], (messages[logged[earlier]] for earlier in range(at - 1, -1, -1)))
        )
        opening = next(new, before if before < kept else 0)
        # Between both openings, reasoning is gone now, or is there again since the strategy cut its prompt.
        moved = range(min(before, opening), min(max(before, opening), kept))
        kept = next((at for at in moved if logged[at] in twins), kept)
        now = [twins.get(number, number) if at < opening else number for at, number in enumerate(logged[kept:], kept)]
        yield step._replace(kept=kept, added=[(number, number + 1) for number in now])


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
    kept: int  # messages that stayed where they were
    lost: int  # tokens of the prompt before that stood behind them: they could have been read
    before: int  # tokens of all its messages
    cause: str
    actions: str  # kinds of events that the strategy reported at this step, in order, without repetition


def breaks(requests: RunRequests) -> pd.DataFrame:
    """Return every broken prefix of a run, in the order of its steps, with the columns of `Break`."""
    rows, keys = list[Break](), ["conversation", "strategy", "step"]
    for piece in requests.pieces():
        events = piece.run.table("events")[[*keys, "kind"]].drop_duplicates()
        actions: dict[Hashable, str] = {}
        for *key, kind in zip(*(events[name].tolist() for name in events), strict=True):
            place = tuple(key)
            actions[place] = f"{actions[place]}, {kind}" if place in actions else kind
        rows += _breaks(piece, actions)
    import pandas as pd

    return pd.DataFrame(rows, columns=list(Break._fields))


def _breaks(requests: RunRequests, actions: Mapping[Hashable, str]) -> Iterator[Break]:
    if not len(requests):
        return
    written = dict[tuple[str, str], list[int]]()
    own = requests.run.arrow("contexts", ["conversation", "strategy", "tokens"])
    for name, strategy, size in zip(*map(values_of, own.columns), strict=True):
        written.setdefault((name, strategy), []).append(size)
    # The lists of a column as one array: results that break nothing, which may be most, are not gone through.
    table = requests.run.arrow("steps", ["kept", "tools_added", "added_from", "added_to"])
    kept, tools = table.column("kept").to_numpy(), table.column("tools_added")
    added = [column.combine_chunks() for column in table.columns[2:]]
    places = added[0].offsets.to_numpy() - added[0].offsets[0].as_py()
    starts, stops = (column.flatten().to_numpy() for column in added)
    had = np.roll(kept + np.diff(np.cumsum([0, *(stops - starts)])[places]), 1)
    is_other = np.zeros(len(kept), bool)
    if pc.any(pc.greater(pc.list_value_length(tools), 0)).as_py():
        is_other[1:] = [before != now for before, now in pairwise(values_of(tools))]
    is_broken = is_other | (kept < had)
    is_broken[requests.bounds[:-1]] = False
    broken, shares, firsts, lasts, ends_of = (column.tolist() for column in (is_broken, kept, starts, stops, places))
    for name, strategy, rows in requests.results:
        recorded = requests.recordings[name].tokens
        tokens = [*recorded, *written.get((name, strategy), ())]
        sent, ends = list[int](), [0]
        # Behind the last break there is nothing to follow.
        for row in range(rows.start, rows.start + int(is_broken[rows].nonzero()[0].max(initial=-1)) + 1):
            shared, spans = shares[row], slice(ends_of[row], ends_of[row + 1])
            new = list(chain.from_iterable(map(range, firsts[spans], lasts[spans])))
            if broken[row] and (lost := ends[-1] - ends[shared]):
                cause = "tools" if is_other[row] else _cause(sent[shared], new, len(recorded))
                number = row - rows.start
                reported = actions.get((name, strategy, number), "")
                yield Break(name, strategy, number, shared, lost, ends[-1], cause, reported)
            del sent[shared:], ends[shared + 1 :]
            sent += new
            ends[-1:] = accumulate(map(tokens.__getitem__, new), initial=ends[-1])


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


def billed_models(run: Run, named: Sequence[str] = (), prices: Prices | None = None) -> tuple[str, ...]:
    """Return the models that a run is billed under, the most important first: those named, or else MODELS.

    Without any named, the recorded model is the first; where conversations were recorded with several, OWN_MODELS is,
    and then the one with the most calls. Models whose price is not known do not count.
    """
    if named:
        return tuple(dict.fromkeys(named))
    own = Counter(own_models(run, prices or usual_prices()).values())
    recorded = [model for model in recorded_models(run) if model in own][:1]
    return tuple(dict.fromkeys((*[OWN_MODELS] * (len(own) > 1), *recorded, *MODELS)))[: len(MODELS)]


def conversations_of(run: Run, own: Mapping[str, str]) -> dict[str, set[str]]:
    """Map each model in `own` to the conversations that it is the own model of, or recorded some calls of."""
    names: dict[str, set[str]] = {model: set() for model in own.values()}
    columns = run.arrow("messages", ["conversation", "model"]).columns if own else ()
    for name, model in {*own.items(), *zip(*(column.to_pylist() for column in columns), strict=True)}:
        if model in names:
            names[model].add(name)
    return names


def own_models(run: Run, prices: Prices, recorded: Iterable[str] | None = None) -> dict[str, str]:
    """Map each conversation to the model that it was recorded with: of those whose price is known, that of most calls.

    One that records none has the model of most calls in the run, or else the first of MODELS. `recorded` are the
    models of the whole run, the one with the most calls first, where `run` is a piece of it.
    """
    models = recorded_models(run) if recorded is None else recorded
    priced = [model for model in models if prices.tariff(model) is not None]
    names = values_of(run.arrow("conversations", ["conversation"]).column("conversation"))
    own = dict.fromkeys(names, priced[0] if priced else MODELS[0])
    if len(priced) < 2:
        return own
    keys = ["conversation", "model"]
    calls = run.arrow("messages", keys).drop_null().group_by(keys, use_threads=False).aggregate([([], "count_all")])
    for row in sorted(calls.to_pylist(), key=lambda row: row["count_all"]):  # the most calls come last
        if row["model"] in priced:
            own[str(row["conversation"])] = row["model"]
    return own


class TokenFactors(NamedTuple):
    """Tokens that a model's provider counts for each token that the run counts."""

    prompt: float = 1.0
    answer: float = 1.0
    family: TokenFactor | None = None
    """The family that the factors are of; None = they are of the recorded calls, or not known."""


def token_factors(run: Run, model: str, thinking: bool = False) -> TokenFactors:
    """Return a model's token factors: of its recorded calls, where they have usage, else of its family.

    The factor of prompts is the growth of the recorded prompts from call to call over the growth of our counts: what a
    recording lacks, such as a system prompt, cancels. A call is left out whose prompt shrank, since it was no history,
    or before which images or files came, which we do not count. The factor of answers is that of their sums, with
    reasoning that is not in the recording. Families were measured against `o200k_base`; else the factor is 1. With
    `thinking`, our prompts have the reasoning that the provider keeps, and the recorded ones not what it reports.
    """
    family = token_factor(model) if run.manifest.plan.encoding == FACTORED else None
    usual = TokenFactors(family.factor, family.factor, family) if family else TokenFactors()
    if not _has_usage(run):
        return usual
    messages = run.messages
    calls = messages[(messages.model == model) & messages.usage_input.notna()]
    if not len(calls):
        return usual
    calls = calls.assign(media=_media_before(run, calls))
    if thinking and (rule := thinking_rule(model)) is not None:
        counted, reported = _reasoning_before(run, calls, rule)
        calls = calls.assign(whole=calls.whole + counted, usage_input=calls.usage_input - reported)
    grown = calls.groupby("conversation", observed=True)[["usage_input", "whole", "media"]].diff()
    grown = grown[(grown.usage_input > 0) & ~calls.compacted & (grown.media == 0)]
    answered = calls[calls.usage_output > 0]
    otherwise = family.factor if family else 1.0
    return TokenFactors(
        _ratio(grown.usage_input.sum(), grown.whole.sum(), otherwise),
        _ratio(answered.usage_output.sum(), answered.tokens.sum(), otherwise),
    )


class RecordedReads(NamedTuple):
    """Cache reads of a model's recorded calls."""

    warm: dict[str, int]  # tokens that the first call of each conversation read: earlier sessions left them
    found: float  # share of the tokens that the call before, within five minutes, read and wrote


def recorded_reads(run: Run, model: str) -> RecordedReads:
    """Return how much the cache had for a model's recorded calls; `found` leaves out calls after a compaction."""
    fields = ("usage_input", "usage_cache_read", "usage_cache_write")
    table = run.arrow("messages", ["conversation", "at", "time", "model", *fields]).to_pandas().dropna(subset="model")
    calls = table.astype({"conversation": str}).sort_values(["conversation", "at"], kind="stable")
    firsts = calls.drop_duplicates("conversation")
    calls, firsts = (of[(of.model == model) & of.usage_cache_read.notna()] for of in (calls, firsts))
    before = calls.groupby("conversation")[["time", *fields]].shift()
    left = before.usage_cache_read + before.usage_cache_write.fillna(0)
    later = (calls.time - before.time < FIVE_MINUTES) & (calls.usage_input >= before.usage_input) & (left > 0)
    found = np.minimum(calls.usage_cache_read, left)[later].sum() / left[later].sum() if later.any() else 1.0
    warm = dict(zip(firsts.conversation, firsts.usage_cache_read.astype(int), strict=True))
    return RecordedReads(warm, float(found))


FACTORED = "o200k_base"  # encoding that the factors of families are against


def hidden_prefixes(run: Run) -> dict[str, int]:
    """Estimate the tokens, by our count, of what stood in front of every prompt and is not in the recording.

    By conversation, for those that record neither a system prompt nor tools: the first prompt with usage, in our tokens
    by the factor of its model, less what of it is recorded. `ctxbench lab validate` has it as a constant likewise.
    """
    if not _has_usage(run):
        return {}
    tools = run.table("conversations").astype({"conversation": str}).set_index("conversation").tools_tokens
    messages = run.messages
    starts = messages[messages["at"] == 0].astype({"conversation": str}).set_index("conversation").role
    calls = messages[messages.usage_input.notna() & ~messages.compacted]
    calls = calls.astype({"conversation": str, "model": str})
    firsts = calls.drop_duplicates("conversation").set_index("conversation")
    firsts = firsts[(starts.loc[firsts.index] != "system") & (tools.loc[firsts.index] == 0)]
    firsts = firsts[_media_before(run, firsts.reset_index()).to_numpy() == 0]
    factors = {model: token_factors(run, model).prompt for model in firsts.model.unique()}
    estimates = firsts.usage_input / firsts.model.map(factors).astype(float) - firsts.whole
    return {str(name): round(estimate) for name, estimate in estimates.items() if round(estimate) > 0}


def _has_usage(run: Run) -> bool:
    used = run.arrow("messages", ["usage_input"]).column("usage_input")
    return bool(used.null_count < len(used))


def _media_before(run: Run, calls: pd.DataFrame) -> pd.Series:
    """Return the number of messages with images, sounds, films or files that stand before each call."""
    places: dict[str, list[int]] = {}
    for (name, at), message in run.beyond_text.items():
        if message.media:
            places.setdefault(name, []).append(at)
    import pandas as pd

    asked = zip(calls.conversation.astype(str), calls["at"], strict=True)
    counts = [sum(place < at for place in places.get(name, ())) for name, at in asked]
    return pd.Series(counts, calls.index, dtype="int64")


def _reasoning_before(run: Run, calls: pd.DataFrame, rule: ThinkingRule) -> tuple[pd.Series, pd.Series]:
    """Return the tokens of the reasoning in each call's prompt: by our count, and as its provider reports it."""
    import pandas as pd

    counter = TokenCounter(run.manifest.plan.encoding)
    sums = dict[tuple[str, int], tuple[int, int]]()
    places = calls["at"].groupby(calls.conversation.astype(str)).agg(list)
    for conversation in run.conversations():
        if conversation.id not in places:
            continue
        kept = KeptThinking(rule.keeps, conversation.messages)
        # A sum up to each message, of both counts: a prompt has the difference of two of them.
        ours, theirs = [0], [0]
        for at, message in enumerate(conversation.messages):
            tokens = thinking_tokens(message, counter.text) if kept.of(at) else 0
            known = 0 if isinstance(tokens, Missing) else tokens
            said = bool(reported_thinking(message))
            ours.append(ours[-1] + known * (not said))
            theirs.append(theirs[-1] + known * said)
        for at in places[conversation.id]:
            start = kept.stripped(at)
            sums[conversation.id, at] = ours[at] - ours[start], theirs[at] - theirs[start]
    frame = pd.DataFrame(
        [sums[key] for key in zip(calls.conversation.astype(str), calls["at"], strict=True)], calls.index
    )
    return frame[0], frame[1]


def _ratio(recorded: float, ours: float, otherwise: float) -> float:
    return float(recorded / ours) if recorded > 0 and ours > 0 else otherwise
