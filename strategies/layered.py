"""S5, `layered`: working, short-term and long-term memory (design document 000 §2.4, §3.3)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import isnan, nan
from typing import Any, ClassVar, Literal

import numpy as np

from ctxbench.metrics.tfidf import Scores, best
from ctxbench.scenarios.spec import NonNegativeFloat, PositiveInt

from .base import Context, LongTermMemory, ModelError, StoredSummary, StrategyContext, View
from .events import Event, Failed, Moved, Recalled
from .parts.language import ConversationLanguage
from .parts.memories import (
    FORM,
    KINDS,
    ConversationMemory,
    Memory,
    NoteMessage,
    RecallSettings,
    RowNumbers,
    TextSearch,
    Tier,
    VectorSearch,
    WordSearch,
)
from .parts.passages import passages

HOUR = 3600.0


# A recalled memory, its place among all, its tier, and its weighted score.
LayerHit = tuple[Memory, int, Tier, float]


@dataclass(frozen=True, slots=True)
class Layered(RecallSettings):
    """System messages, what three memories recall for the newest user message, and the last `recent` turns.

    * Working memory: the tasks and tool results of this session, searched by the words of the question, rare ones
      first. When a session ends (no message for `session_hours`) it becomes session history.
    * Short-term memory: session history, searched by vectors. It lives `ttl_hours`; each turn that recalls it renews
      that, up to `longest_ttl_hours` after its message. Then it is dropped (Moved to nowhere).
    * Long-term memory: preferences, facts, procedures, summaries of at least `long_importance`, for ever, searched by
      vectors. Those of less importance stay session history; the design drops them without a word.
    * A memory recalled in `promote_after` turns is promoted to long-term memory whatever its importance (Moved). The
      design applies its own threshold again there, and so loses what it promotes.

    Each of `tiers` gives its best `limit`; a score counts `working`, `short` or `long` times; the best `limit` of all
    are sent as one system message. Type and importance of a memory follow rules, as in `retrieval`.

    Time is the recorded one. Without times the whole recording is one session that takes no time: nothing ends or
    expires. A message without a time has that of the message before it; the first, that of the first model call.

    `search="document"` follows the design's code: working memory is recalled only if it contains the whole question,
    and short-term memory never.

    In a chain, the summaries that a later stage stores (`session_summary`) are long-term memories too, from the next
    turn on, cut into passages like messages. The newest is not recalled: it is sent anyway.

    Parameters shared with `retrieval` mean the same, and so do the budget and what happens if the embedder fails.
    """

    tiers: tuple[Tier, ...] = ("working", "short", "long")
    working: NonNegativeFloat = 1.0
    short: NonNegativeFloat = 0.8
    long: NonNegativeFloat = 0.6
    long_importance: float = 6.0
    ttl_hours: NonNegativeFloat = 24.0
    longest_ttl_hours: NonNegativeFloat = 168.0
    session_hours: NonNegativeFloat = 6.0
    promote_after: PositiveInt = 3
    search: Literal["full", "document"] = "full"

    copyable: ClassVar[bool] = True
    shares_memory: ClassVar[bool] = True
    fails: ClassVar[str] = "the question does not name its subject: the memories that it needs are not recalled"
    family: ClassVar[str] = "retrieval"

    def __post_init__(self) -> None:
        if not self.tiers or len(set(self.tiers)) < len(self.tiers):
            raise ValueError(f"tiers must name at least one of 'working', 'short', 'long', each once, not {self.tiers}")
        if self.ttl_hours > self.longest_ttl_hours:
            longest = self.longest_ttl_hours
            raise ValueError(f"ttl_hours must be at most longest_ttl_hours, {longest}, not {self.ttl_hours}")

    def start(self, services: StrategyContext, memory: LongTermMemory | None = None) -> View:
        past = ConversationMemory(services, self)
        language = ConversationLanguage(self.language)
        note = NoteMessage(services, "layered", FORM, language)
        layers, vectors, words = Layers(self, services.record), VectorSearch(services), WordSearch()
        hits: list[LayerHit] = []
        lines: list[str] = []
        last: tuple[str, str | None] | None = None

        def view(context: Context) -> Context:
            nonlocal hits, lines, last
            past.read(context.messages)
            turn = past.turn
            if last is not None and turn != last[0]:
                layers.end_turn()
                last = None
            changed = layers.follow(past, services.now)
            if last is None:
                layers.take_summaries((memory or [])[:-1], services.text_tokens)
            query = past.question()
            if changed or (turn, query) != last:
                hits, embedded = [], True
                if query:
                    hits, embedded = self._best(services, (vectors, words), (layers.items, layers.summaries), query)
                last, lines = (turn, query if embedded else None), []
            layers.note_recalled((at for _, at, _, _ in hits), services.now)
            language.read(context.messages)
            if not lines:
                lines = [f"- [{memory.kind}] {memory.quote(language.decided)}" for memory, _, _, _ in hits]
            message, shown = note.of(lines, past.room, context.messages)
            for tier in self.tiers:
                recalled = [hits[at] for at in shown]
                in_tier = [(memory.source, score) for memory, _, where, score in recalled if where == tier]
                if in_tier:
                    sources, scores = zip(*in_tier, strict=True)
                    services.record(Recalled(sources, scores, tier))
            return past.context(context, message)

        return view

    def _best(
        self,
        services: StrategyContext,
        searches: tuple[VectorSearch, WordSearch],
        parts: tuple[LayerItems, LayerItems],
        query: str,
    ) -> tuple[list[LayerHit], bool]:
        """Return the best items of both parts, best first, equal ones the later first, and if the embedder answered."""
        weights = {"working": self.working, "short": self.short, "long": self.long}
        by_meaning, by_words = searches
        size = len(parts[0].items)

        def item(at: int) -> Memory:
            return parts[0].items[at] if at < size else parts[1].items[at - size]

        def all_of(name: str) -> RowNumbers:
            columns = [np.asarray(getattr(part, name)) for part in parts]
            return np.concatenate(columns) if len(columns[1]) else columns[0]  # mostly there are no summaries

        tiers = all_of("tiers")
        inside = {tier: np.flatnonzero(tiers == CODES[tier]) for tier in self.tiers}
        nowhere = np.zeros(0, np.int64)
        if self.search == "document":
            inside["short"] = nowhere

        def take(index: TextSearch, name: str, places: RowNumbers) -> None:
            new = places[all_of(name)[places] < 0]
            if len(new):
                rows, first = index.rows([item(at).search_text for at in new.tolist()]), new < size
                np.asarray(getattr(parts[0], name))[new[first]] = rows[first]
                np.asarray(getattr(parts[1], name))[new[~first] - size] = rows[~first]

        cosines: Scores | None = None
        try:
            below = [places for tier, places in inside.items() if tier != "working"]
            take(by_meaning, "vectors", np.concatenate([nowhere, *below]))
            cosines = by_meaning.scores(query)
        except ModelError as error:
            services.record(Failed("embedding", str(error), "ranked by words in common"))
        hits: list[tuple[float, int, Tier]] = []
        for tier, places in inside.items():
            scores: Scores
            if tier != "working" and cosines is not None:
                scores = cosines[all_of("vectors")[places]]
            elif tier == "working" and self.search == "document":
                scores = np.array([float(query.lower() in item(at).text.lower()) for at in places.tolist()])
            else:
                take(by_words, "words", places)
                scores = by_words.scores(query)[all_of("words")[places]]
            weighted = scores * weights[tier]
            for number in best(scores, self.limit):
                if scores[number] > 0 or tier != "working":
                    at = int(places[number])
                    hits.append((float(weighted[number].round(4)), at, tier))
        hits.sort(key=lambda hit: hit[:2], reverse=True)
        return [(item(at), at, tier, score) for score, at, tier in hits[: self.limit]], cosines is not None


CODES: dict[Tier | None, int] = {None: -1, "working": 0, "short": 1, "long": 2}


class LayerItems:
    """Memories by place, and columns of them, so that a search looks at no memory that it does not return."""

    def __init__(self) -> None:
        self.items: list[Memory] = []
        self.tiers = array("q")  # codes
        self.vectors, self.words = array("q"), array("q")  # rows in the two searches; -1 = not searched yet
        self.references = array("q")  # in how many turns each was recalled
        self.due = array("q")  # number of its entry among those that are due
        self.created, self.expires = array("d"), array("d")  # NaN = unknown

    def add(self, memory: Memory, tier: Tier, created: float | None) -> None:
        self.items.append(memory)
        new = CODES[tier], -1, -1, 0, 0, nan if created is None else created, nan
        for column, value in zip(self._columns, new, strict=True):
            column.append(value)

    def cut(self, size: int) -> None:
        """Forget the memories from number `size` on."""
        del self.items[size:]
        for column in self._columns:
            del column[size:]

    @property
    def _columns(self) -> tuple[array[Any], ...]:
        return self.tiers, self.vectors, self.words, self.references, self.due, self.created, self.expires


class Layers:
    """All memories of one conversation, one for each of `past.memories`, and their moves between tiers."""

    def __init__(self, rules: Layered, record: Callable[[Event], None]) -> None:
        self._rules, self._record = rules, record
        self.items, self.summaries = LayerItems(), LayerItems()
        """Memories of messages, and passages of the stored summaries, in long-term memory."""
        self._taken = 0
        self._due: list[tuple[float, int, int]] = []  # when a memory expires, the number of the entry, and its place
        self._number = 0
        self._referenced: dict[int, None] = {}
        # Time of the newest message, of the newest model call, and of the session's begin: older items are of
        # sessions before it.
        self._clock: float | None = None
        self._last: float | None = None
        self._session: float | None = None

    def follow(self, past: ConversationMemory, now: float | None) -> bool:
        """Take in new memories, end a session, let memories expire. Returns whether anything changed."""
        rules, items, before = self._rules, self.items, len(self.items.items)
        ended = now is not None and self._last is not None and now - self._last > rules.session_hours * HOUR
        if ended and now is not None and self._last is not None:
            self._session = (self._last + now) / 2
        self._clock = now if self._clock is None else self._clock
        self._last = now if now is not None else self._last
        if past.changed < before:  # the others are other memories now
            items.cut(past.changed)
            self._referenced = {at: None for at in self._referenced if at < past.changed}
        for memory in past.memories[past.changed :]:
            self._enter(memory)
        moved = False
        if ended and self._session is not None:  # the working memory of a session that has ended is session history
            is_working = np.asarray(items.tiers) == CODES["working"]
            is_old = np.asarray(items.created) < self._session
            moved = self._move(np.flatnonzero(is_working & is_old).tolist(), "working", "short")
        expired: list[int] = []
        while now is not None and self._due and self._due[0][0] <= now:
            _, number, at = heappop(self._due)
            # A memory whose life was extended has a later entry in the heap; one that was cut has none.
            if at < len(items.items) and (items.tiers[at], items.due[at]) == (CODES["short"], number):
                expired.append(at)
        return self._move(expired, "short", None) or moved or not before == past.changed == len(items.items)

    def take_summaries(self, stored: Sequence[StoredSummary], count: Callable[[str], int]) -> None:
        rules, (_, importance) = self._rules, KINDS["session_summary"]
        for source, summary in stored[self._taken :]:
            for text in passages(summary, rules.max_memory_tokens, rules.passages, count):
                self.summaries.add(Memory(source, "system", text, "session_summary", importance), "long", self._clock)
        self._taken = max(self._taken, len(stored))

    def note_recalled(self, places: Iterable[int], now: float | None) -> None:
        """Note that memories were recalled in this turn; those in short-term memory live on from now."""
        for at in places:
            if at < len(self.items.items):  # behind them are the summaries, which are in long-term memory for good
                self._referenced[at] = None
                if self.items.tiers[at] == CODES["short"]:
                    self._extend_life(at, now)

    def end_turn(self) -> None:
        """Promote to long-term memory what was recalled in the turn, and in enough turns before it."""
        tiers, references = self.items.tiers, self.items.references
        for at in self._referenced:
            references[at] += 1
        often = [at for at in self._referenced if references[at] >= self._rules.promote_after]
        self._referenced = {}
        lower: tuple[Tier, ...] = ("working", "short")
        for tier, promoted in [(tier, [at for at in often if tiers[at] == CODES[tier]]) for tier in lower]:
            self._move(promoted, tier, "long")

    def _enter(self, memory: Memory) -> None:
        self._clock = memory.time if memory.time is not None else self._clock
        tier = KINDS[memory.kind][0]
        if (tier == "long" and memory.importance < self._rules.long_importance) or (
            tier == "working" and self._is_old(self._clock)
        ):
            tier = "short"
        self.items.add(memory, tier, self._clock)
        if tier == "short":
            self._extend_life(len(self.items.items) - 1, self._clock)

    def _is_old(self, created: float | None) -> bool:
        return self._session is not None and created is not None and created < self._session

    def _extend_life(self, at: int, now: float | None) -> None:
        """Let a memory live for `ttl_hours` from now, but never longer than `longest_ttl_hours` after its message."""
        created, before = self.items.created[at], self.items.expires[at]
        if now is None or isnan(created):
            return
        expires = min(now + self._rules.ttl_hours * HOUR, created + self._rules.longest_ttl_hours * HOUR)
        if expires != before:
            self._number += 1
            self.items.expires[at], self.items.due[at] = expires, self._number
            heappush(self._due, (expires, self._number, at))

    def _move(self, places: list[int], source: Tier, to: Tier | None) -> bool:
        if not places:
            return False
        for at in places:
            self.items.tiers[at] = CODES[to]
            if to == "short":
                self._extend_life(at, self.items.created[at])
        sources = (self.items.items[at].source for at in places)
        self._record(Moved(tuple(dict.fromkeys(sources)), source, to or ""))
        return True
