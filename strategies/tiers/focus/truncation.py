"""The four ways in which Focus cuts a conversation that does not fit (design document 004 §5.4)."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.extract import extract
from ctxbench.metrics.grounding import said as spelled
from ctxbench.metrics.language import Language, is_constraint, is_decision
from ctxbench.metrics.rows import Rows
from ctxbench.metrics.tfidf import Scores
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages

from ...base import Context, StrategyContext
from ...parts.fact_extraction import is_preference
from ...parts.language import ConversationLanguage
from ...parts.memories import WordSearch
from ...parts.passages import both_ends
from ...parts.summarize import Summariser
from ...parts.units import Dialogue, select_newest
from ...smart import LISTING
from ...summary import RollingSummary


class Truncation:
    """A way to cut a conversation that does not fit. This one is `tail_cutoff`: the newest messages stay.

    The document says "simple cut of the tail". But the tail of a conversation is its newest message, and a request
    without it asks the model nothing: so here the tail is the part that stays.
    """

    def __init__(self, services: StrategyContext) -> None:
        self._services = services

    def read(self, messages: Messages, same: int) -> None:
        """Take in all messages but the system's. The first `same` have not changed since the previous call."""

    def cut(self, history: Messages, dialogue: Dialogue, room: int) -> Messages:  # noqa: ARG002
        """Return all system messages of a history, and other messages that take at most `room` tokens.

        The newest unit of the history fits in the room, the whole conversation does not.
        """
        # With the user message that opened their turn.
        head, tail = select_newest(self._services, history, 0, room)
        return head + tail


EMPHASISED, USER = 1.0, 0.5
"""Emphasis of user messages that decide, demand or prefer something, and of all other user messages."""

_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


class ImportanceWeights(NamedTuple):
    """Weight of each part of a score."""

    semantic: float
    recency: float
    emphasis: float
    structure: float


class Importance(Truncation):
    """`importance`: the messages with the best scores stay, in their order (design document 004 §5.4).

    The document names the parts of a score without defining them. Here each is from 0 to 1:

    - semantic: the share of the newest user message's words that the message has, rare words weighing more;
    - recency: its place among the messages, from 0 for the first to 1 for the newest. Not its age: recordings without
      times have none, and after a night's pause all earlier messages would be equally old;
    - emphasis: `EMPHASISED` or `USER`, and 0 for other roles. Recordings know of no favourites and copies;
    - structure: 1 with a heading, a list or a code block.

    A call and its results are one unit, with the highest of their scores. The newest unit stays, then the user message
    that opened its turn. Then units are taken by score while they fit, the later one of equal scores first. If the
    first message taken is the assistant's, the user message before it is taken too if it fits; otherwise that first
    unit is dropped, because providers reject such requests.
    """

    def __init__(self, services: StrategyContext, weights: ImportanceWeights, read: int) -> None:
        super().__init__(services)
        self._weights, self._read = weights, read
        self._index = WordSearch()
        # For each message its row in the index; tokens; whether it is a tool's result; and the score for emphasis and
        # structure, which never changes.
        self._rows, self._tokens = Rows(np.int64), Rows(np.int64)
        self._results, self._base = Rows(np.bool_), Rows(np.float64)

    def read(self, messages: Messages, same: int) -> None:
        columns = self._rows, self._tokens, self._results, self._base
        for column in columns:
            column.size = min(same, column.size)
        new = list(messages[self._base.size :])
        texts = [both_ends(spelled(message), self._read) for message in new]
        base = list[float]()
        for message, text in zip(new, texts, strict=True):
            emphasis = 0.0
            if message.role == "user":
                stressed = is_preference(text) or is_decision(text) or is_constraint(text)
                emphasis = EMPHASISED if stressed else USER
            own = both_ends(message.text, self._read)  # a heading, a list or a code block
            has_parts = "```" in own or LISTING.search(own) is not None or _HEADING.search(own) is not None
            base.append(self._weights.emphasis * emphasis + self._weights.structure * has_parts)
        self._rows.add(self._index.rows(texts))
        self._tokens.add(np.array(list(map(self._services.tokens, new)), np.int64))
        self._results.add(np.array([message.role == "tool" for message in new], np.bool_))
        self._base.add(np.array(base, np.float64))

    def cut(self, history: Messages, dialogue: Dialogue, room: int) -> Messages:
        messages = MessageColumns(self.scores(dialogue), self._tokens.all, self._results.all)
        return dialogue.some(history, important_units(dialogue.units.starts, dialogue.users, messages, room))

    def scores(self, dialogue: Dialogue) -> Scores:
        """Return the score of each message, to 6 decimals: further ones differ between machines."""
        question, count = dialogue.question(), len(dialogue.messages)
        similar = self._index.scores(both_ends(question.text, self._read) if question else "")[self._rows.all]
        recent = np.arange(1.0, count + 1) / count
        scores: Scores = self._weights.semantic * similar + self._weights.recency * recent + self._base.all
        return scores.round(6)


BEST = 256  # number of messages whose units are sorted first; four times as many then, and so on


class MessageColumns(NamedTuple):
    """For each message its score, its tokens, and whether it is a tool's result."""

    scores: Scores
    tokens: NDArray[np.int64]
    results: NDArray[np.bool_]


def important_units(starts: array[int], users: list[int], messages: MessageColumns, room: int) -> list[int]:
    """Return the numbers of the units that stay, in order, from the units' starts and the user messages' places.

    The newest must fit. A unit that begins with a result has lost its call: it is never taken.
    """
    newest, stay, (scores, tokens, results) = len(starts) - 1, set[int](), messages
    firsts = np.frombuffer(starts, np.int64)

    def opening(unit: int) -> int | None:
        """Return the unit of the user message that opened this unit's turn; None if it is this unit, or missing."""
        before = bisect_right(users, starts[unit])
        opener = bisect_right(starts, users[before - 1]) - 1 if before else unit
        return None if opener == unit else opener

    def size_of(unit: int) -> int:
        return int(tokens[starts[unit] : starts[unit + 1] if unit < newest else None].sum())

    def take(units: Iterable[int], sizes: Iterable[int]) -> None:
        nonlocal room
        for unit, size in zip(units, sizes, strict=True):
            if size <= room and unit not in stay:
                stay.add(unit)
                room -= size

    def take_best_first(places: NDArray[np.int64], low: float, high: float) -> None:
        """Take the units of these messages whose score is from `low` to below `high`."""
        units = firsts.searchsorted(places, "right") - 1
        units = units[units > np.append(-1, units)[:-1]]
        if not len(units):
            return
        start = firsts[units]
        lengths = np.where(units < newest, firsts[np.minimum(units + 1, newest)], len(scores)) - start
        # The members of these units one after another: only they are looked at, and not all messages.
        offsets = np.cumsum(lengths) - lengths
        members = np.repeat(start - offsets, lengths) + np.arange(lengths.sum())
        best, sizes = np.maximum.reduceat(scores[members], offsets), np.add.reduceat(tokens[members], offsets)
        likely = np.flatnonzero((best >= low) & (best < high) & (sizes <= room) & ~results[start])
        order = likely[np.lexsort((-units[likely], -best[likely]))]
        take(units[order].tolist(), sizes[order].tolist())

    turn = opening(newest)
    first_of_all = (newest,) if turn is None else (newest, turn)
    take(first_of_all, map(size_of, first_of_all))
    # The best ones first: behind them most units are longer than the room that is left, and none of them is sorted.
    # All messages of a unit that fits are short enough, so none that counts is missing among these places.
    left, most, high = scores, BEST, np.inf
    while high > 0 and len(left):
        least = max(np.partition(left, len(left) - most)[len(left) - most], 0.0) if most < len(left) else 0.0
        take_best_first(np.flatnonzero((scores >= least) & (scores < high) & (tokens <= room)), least, high)
        left, most, high = scores[(scores < least) & (tokens <= room)], 4 * most, least
    # They begin with a user message: the one that opened the first unit's turn is added, or that unit goes.
    kept = sorted(stay)
    for at, first in enumerate(kept):
        turn = opening(first)
        if turn is None:
            return kept[at:]
        if size_of(turn) <= room:
            return sorted({turn, *kept[at:]})
        room += size_of(first)
    return kept[-1:]


FORM: dict[Language, str] = {"zh": "[合并的对话]\n{text}", "en": "[Merged conversation]\n{text}"}

READ = 20_000  # characters from the start of a message that sentences are extracted from


class _Run(NamedTuple):
    """A span of merged messages."""

    stop: int
    merged: Message | None  # None if no sentence of the span fits into its share
    tokens: int  # of the merged messages up to this one
    saved: int  # what the spans up to this one have more tokens than their messages; it never falls


def _first(runs: list[_Run], least: int, key: Callable[[_Run], int]) -> int:
    """Return how many of the first spans have `least` tokens by a running sum; all of them if they have fewer."""
    return min(bisect_left(runs, least, key=key) + 1, len(runs)) if least > 0 else 0


class ConversationMerge(Truncation):
    """`conversation_merge`: the oldest spans become one system message each, with sentences extracted from them.

    The document has the name only. A span is whole units of at least `run` tokens together. Its message takes at most
    `ratio` of its tokens, heading included, and at most `run`. No model is called, and a span is merged once, so its
    message never changes. If all but the newest unit are merged and still do not fit, the oldest merged messages are
    dropped.
    """

    def __init__(self, services: StrategyContext, run: int, ratio: float, language: ConversationLanguage) -> None:
        super().__init__(services)
        self._run, self._ratio, self._language = run, ratio, language
        self._runs: list[_Run] = []

    def read(self, messages: Messages, same: int) -> None:  # noqa: ARG002
        while self._runs and self._runs[-1].stop > same:
            self._runs.pop()

    def cut(self, history: Messages, dialogue: Dialogue, room: int) -> Messages:
        self._language.read(history)
        messages, starts, runs = dialogue.messages, dialogue.units.starts, self._runs
        # A late tool result joins all units since its call, so spans may end in the middle of one: these are forgotten.
        # If the last end is still one, the others are.
        while runs and ((at := bisect_left(starts, runs[-1].stop)) == len(starts) or starts[at] != runs[-1].stop):
            runs.pop()
        # As many of the oldest spans are merged as the rest needs to fit, as far as possible.
        over = self._services.total(messages) - room
        while over > (runs[-1].saved if runs else 0) and self._merge_next(messages, starts):
            pass
        count = _first(runs, over, key=lambda run: run.saved)
        start = dialogue.place(runs[count - 1].stop if count else 0)
        _, rest = select_newest(self._services, history, start)
        tokens = self._services.total(rest) - self._services.total(self._services.systems(rest))
        merged = runs[count - 1].tokens if count else 0
        dropped = _first(runs[:count], merged + tokens - room, key=lambda run: run.tokens)
        merged -= runs[dropped - 1].tokens if dropped else 0
        head, tail = select_newest(self._services, history, start, room - merged)
        sent = (run.merged for run in runs[dropped:count])
        return head + Messages.of(tuple(message for message in sent if message is not None)) + tail

    def _merge_next(self, messages: Messages, starts: array[int]) -> bool:
        """Merge the next span. Return False if there is none: the newest unit is never merged."""
        start, before, saved = (self._runs[-1].stop, *self._runs[-1][2:]) if self._runs else (0, 0, 0)
        first = bisect_left(starts, start)
        for stop in starts[first + 1 :]:
            span = messages[start:stop]
            tokens = self._services.total(span)
            if tokens >= self._run:
                form, most = FORM[self._language.decided], min(int(self._ratio * tokens), self._run)
                message = Message(f"focus:{span[-1].id}", "system", form)
                room, size = most - self._services.tokens(message), 0
                merged: Message | None = None
                lines = [f"{message.role}: {spelled(message)[:READ]}" for message in span]
                while room > 0 and merged is None and (text := extract(lines, room, self._services.text_tokens)):
                    message = Message(message.id, "system", form.replace("{text}", text))
                    size = self._services.tokens(message)
                    merged = message if size <= most else None
                    room -= size - most  # a text may have more tokens inside the form than alone
                size = size if merged is not None else 0
                self._runs.append(_Run(stop, merged, before + size, saved + tokens - size))
                return True
        return False


class DynamicSummary(Truncation):
    """`dynamic_summary`: all but the newest messages that fit in `keep` of the room are summarised.

    The previous summary is summarised with them. Messages that have been summarised are never sent again.
    """

    def __init__(self, services: StrategyContext, summariser: Summariser, keep: float) -> None:
        super().__init__(services)
        self._keep, self._longest = keep, summariser.max_tokens
        self._rolling = RollingSummary(services, summariser)

    def cut(self, history: Messages, dialogue: Dialogue, room: int) -> Messages:
        rolling, services, keep = self._rolling, self._services, int(self._keep * room)
        rolling.read(history)
        budget = rolling.system_tokens + room
        for _ in range(2):  # a summary may be longer than the messages that it replaces
            count = rolling.beyond(services.fit(rolling.rest, keep))
            if rolling.tokens <= budget or not rolling.summarise(count, spare=room - keep - self._longest):
                break
        sent, last = rolling.context(Context(history), budget).messages, dialogue.messages[-1]
        if any(message.id == last.id for message in reversed(sent)):
            return sent
        head, tail = select_newest(services, history, dialogue.place(dialogue.units.starts[-1]), room)
        return head + tail
