"""One conversation as `archive` sends it: placeholders in place, what the turn brings back, the tool and its note."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...metrics.tfidf import best
from ...scenarios.model import Message, Tool, ToolCall
from ...scenarios.view import Messages, Span, shared
from ..base import Context, ModelError, StrategyContext
from ..events import Failed, Loaded
from ..parts.search import VectorSearch, WordSearch
from .archives import Archives
from .placeholders import TOOL, WORDING, tool
from .record import Card, NotArchived, StoreError

if TYPE_CHECKING:
    from .settings import ArchiveSettings, Trigger


_NOTHING = Messages()


class ArchiveSession:
    """Context → Context. Each message of the history is read once, as long as its start does not change."""

    def __init__(self, desk: StrategyContext, settings: ArchiveSettings) -> None:
        self.archives = Archives(desk, settings)
        self._desk, self._settings = desk, settings
        self._search = Search(desk)
        self._spliced = Spliced()
        self._places: dict[str, int] = {}
        """Where the placeholder of each uuid stands."""
        self._loaded: dict[str, Message] = {}
        """What the turn brings back, by uuid: it is sent in the placeholder's place."""
        self._foreign: tuple[Message, ...] = ()
        """What the turn brings from other conversations: it is sent before the turn."""
        self._turn: Message | None = None
        self._note = Message("archive:note", "system", WORDING[settings.language].note)
        self._tools: tuple[tuple[Tool, ...], tuple[Tool, ...]] | None = None
        """The tools given, and those with ours: the same object again while the same are given."""
        self._forget()

    def __call__(self, context: Context) -> Context:
        history = context.messages
        self._read(history)
        tools = self._offer(context.tools)
        self._archive(history)
        self.archives.clean()
        newest = history[self._newest] if self._newest is not None else None
        if newest is not None and newest is not self._turn and newest != self._turn:
            self._turn, self.archives.question = newest, newest.text
            self._restore()
            self._expand(history, self._chosen())
        messages = self._prepared(history)
        if messages is history and tools is context.tools:
            return context
        return Context(messages, (), tools)

    def _forget(self) -> None:
        self._seen = _NOTHING
        self._calls: dict[str, ToolCall] = {}
        self._waiting: list[int] = []
        """Results over the threshold that are sent whole: not answered by the model yet, or storing them failed."""
        self._answered = 0
        """Where the newest message of the model is: it has answered everything before it."""
        self._newest: int | None = None
        """Where the newest user message is."""
        self._leading = 0
        """How many system messages the history starts with."""

    def _offer(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools with ours: from the first call on if there are any, else from the first tool call on.

        So neither they nor the note, which both stand before the history, change once the history is worth caching.
        """
        if not self.archives.offered or (self._tools is None and not tools and not self._calls):
            return tools
        if self._tools is None or self._tools[0] is not tools:
            if any(each.name == TOOL for each in tools):
                self.archives.offered, self._tools = False, None
                self._desk.record(
                    Failed("load", f"the conversation has a tool {TOOL} of its own", "ours is not offered")
                )
                return tools
            if self._tools is None:
                self._desk.offer(tool(self._settings.language), self.archives.answer)
            self._tools = tools, (*tools, tool(self._settings.language))
        return self._tools[1]

    def _read(self, history: Messages) -> None:
        same = shared(self._seen, history)
        if same < len(self._seen):
            self._forget()
            self._spliced.keep(history, same)
            self._places = {uuid: at for uuid, at in self._places.items() if at < same}
            same = 0
        standing = set(self._places.values()) if same == 0 else ()
        for at, message in enumerate(history[same:], same):
            if message.role == "tool":
                if len(message.text) > self._settings.threshold and at not in standing:
                    self._waiting.append(at)
            elif message.role == "assistant":
                self._answered = at
                for call in message.calls:
                    self._calls[call.id] = call
            elif message.role == "user":
                self._newest = at
            elif at == self._leading:
                self._leading += 1
        self._seen = history

    def _archive(self, history: Messages) -> None:
        """Put placeholders for the results that are due. If the store fails, they wait for the next call."""
        due = [at for at in self._waiting if at < self._answered or not self._settings.fresh]
        for at in due:
            message = history[at]
            try:
                made = self.archives.process(message, self._calls.get(message.answers or ""))
            except StoreError as error:
                self._desk.record(Failed("archive", str(error), "what is left is sent whole, for now"))
                return
            self._waiting.remove(at)
            if made is not message:
                self._spliced.put(history, at, made)
                self._places[self.archives.uuids[message.id]] = at

    def _chosen(self) -> list[Card]:
        settings = self._settings
        if settings.trigger == "model":
            return []
        order = sorted(self._places, key=self._places.__getitem__)
        cards = self.archives.others() + [self.archives.cards[uuid] for uuid in order if uuid in self.archives.cards]
        return self._search.chosen(
            settings.trigger, self.archives.question, cards, settings.keywords, settings.similarity, settings.limit
        )

    def _expand(self, history: Messages, cards: list[Card]) -> None:
        """Bring archived results back for the calls of this turn."""
        for card in cards:
            try:
                text = self.archives.load(card.uuid)
            except (NotArchived, StoreError) as error:
                self._desk.record(Failed("load", str(error), "the placeholder is sent"))
                continue
            self._desk.record(Loaded(card.uuid, self._settings.trigger, len(text)))
            if card.uuid in self._places:
                message = history[self._places[card.uuid]]
                self._loaded[card.uuid] = message if message.text == text else replace(message, text=text)
            else:
                said = WORDING[self._settings.language].recalled
                text = said.format(uuid=card.uuid, tool=card.tool, query=card.query) + text
                self._foreign += (Message(f"archive:{card.uuid}", "system", text),)

    def _restore(self) -> None:
        """Placeholders again: what was brought back is used once."""
        self._loaded, self._foreign = {}, ()

    def _prepared(self, history: Messages) -> Messages:
        """The history with what stands in its places now."""
        if self._tools is not None:
            self._spliced.insert(history, self._leading, self._note)
        messages, place = self._spliced.messages(history), self._spliced.place
        if not self._loaded and not self._foreign:
            return messages
        changes: list[tuple[int, int, tuple[Message, ...]]] = [
            (place(at), place(at) + 1, (message,))
            for uuid, message in self._loaded.items()
            if (at := self._places.get(uuid)) is not None
        ]
        if self._newest is not None:
            changes.append((place(self._newest), place(self._newest), self._foreign))
        spans: list[Span] = []
        passed = 0
        for start, stop, put in sorted(changes, key=lambda change: change[:2]):
            spans += messages[passed:start].spans
            spans += Messages.of(put).spans
            passed = stop
        return Messages((*spans, *messages[passed:].spans))


class Spliced:
    """The stand-ins for messages of a history, one message put before one of them, and the history with all these.

    What comes before the last stand-in is kept as stretches from call to call; what comes after it is the history's.
    """

    __slots__ = ("_before", "_covered", "_head", "_inserted", "_places", "_standing")

    def __init__(self) -> None:
        self._standing: dict[int, Message] = {}
        self._places: list[int] = []
        self._inserted: Span | None = None
        self._before = 0
        """The message that the inserted one comes before."""
        self._covered = 0
        """How much of the history the head stands for."""
        self._head: list[Span] = []

    def insert(self, history: Messages, before: int, message: Message) -> None:
        """Let a message, the only one of its kind, come before message `before` from here on."""
        if self._inserted is None or before != self._before:
            self._inserted, self._before = Span((message,), 0, 1), before
            self._rebuild(history)

    def put(self, history: Messages, at: int, message: Message) -> None:
        """Let a message stand for message `at` from here on. Cheapest in the order of the history."""
        new = at not in self._standing
        self._standing[at] = message
        if at >= self._covered:
            self._places.append(at)
            self._extend(history, at)
            return
        if new:
            insort(self._places, at)
        self._rebuild(history)

    def keep(self, history: Messages, size: int) -> None:
        """Forget what stands at or after message `size`, where the history is now another, and what was inserted."""
        self._places = self._places[: bisect_left(self._places, size)]
        self._standing = {at: self._standing[at] for at in self._places}
        self._inserted = None
        self._rebuild(history)

    def place(self, at: int) -> int:
        """Where message `at` of the history is in `messages`."""
        return at + (self._inserted is not None and at >= self._before)

    def messages(self, history: Messages) -> Messages:
        """The history with the stand-ins and what was inserted."""
        if self._inserted is None and not self._places:
            return history
        return Messages((*self._head, *self._stretch(history, self._covered, len(history))))

    def _rebuild(self, history: Messages) -> None:
        self._head, self._covered = [], 0
        for at in self._places:
            self._extend(history, at)

    def _extend(self, history: Messages, at: int) -> None:
        self._head += self._stretch(history, self._covered, at)
        if self._inserted is not None and self._before == at:
            self._head.append(self._inserted)
        self._head.append(Span((self._standing[at],), 0, 1))
        self._covered = at + 1

    def _stretch(self, history: Messages, start: int, stop: int) -> tuple[Span, ...]:
        """history[start:stop], with what is inserted before one of these (or at the end of all)."""
        if self._inserted is None or not (start <= self._before < stop or self._before == stop == len(history)):
            return history[start:stop].spans
        return (*history[start : self._before].spans, self._inserted, *history[self._before : stop].spans)


class Search:
    """The archived results of one conversation (and those it may see of others), searched by words and by meaning."""

    __slots__ = ("_desk", "_vectors", "_words")

    def __init__(self, desk: StrategyContext) -> None:
        self._desk, self._vectors, self._words = desk, VectorSearch(desk), WordSearch()

    def chosen(
        self,
        trigger: Trigger,
        question: str,
        cards: Sequence[Card],
        keywords: Sequence[str],
        similarity: float,
        most: int,
    ) -> list[Card]:
        """The cards that the question brings back, at most `most`. If the embedder fails, keywords decide alone."""
        said = trigger in ("keyword", "hybrid") and mentions(question, keywords)
        found: list[Card] = []
        if trigger in ("semantic", "hybrid") and cards:
            try:
                found = [card for card, score in self.by_meaning(question, cards, most) if score >= similarity]
            except ModelError as error:
                self._desk.record(Failed("embedding", str(error), "keywords decide what is loaded"))
                said = mentions(question, keywords)
        if said:
            found += [card for card in self.by_words(question, cards, most) if card not in found]
        return found[:most]

    def by_words(self, question: str, cards: Sequence[Card], most: int) -> list[Card]:
        """The cards with the most words in common with the question, rare words weighing more, best first.

        Of equal ones the later. "Say more about what you just found" has no word of it: with none in common at all, the
        last card.
        """
        return [card for card, score in _best(self._words, question, cards, most) if score > 0] or list(cards[-1:])

    def by_meaning(self, question: str, cards: Sequence[Card], most: int) -> list[tuple[Card, float]]:
        """The nearest cards with their cosines, best first, of equal ones the later. Raises ModelError."""
        return _best(self._vectors, question, cards, most)


def _best(
    index: VectorSearch | WordSearch, question: str, cards: Sequence[Card], most: int
) -> list[tuple[Card, float]]:
    if not cards:
        return []
    rows = index.rows([card.text for card in cards])
    scores = index.scores(question)[rows]
    return [(cards[at], float(scores[at])) for at in best(scores, most)]


def mentions(text: str, keywords: Sequence[str]) -> bool:
    """Whether a keyword is in the text; one in Latin letters as whole words, whatever their case."""
    return any(_pattern(keyword).search(text) for keyword in keywords)


@cache
def _pattern(keyword: str) -> re.Pattern[str]:
    edged = re.escape(keyword)
    if keyword.isascii():
        edged = rf"(?<![A-Za-z]){edged}(?![A-Za-z])"
    return re.compile(edged, re.IGNORECASE)
