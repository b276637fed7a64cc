"""One conversation as `archive` sends it: placeholders, the results that the turn brings back, the tool, its note."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cache

from msgspec.structs import replace

from ctxbench.metrics.tfidf import best
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.scenarios.view import Messages, Span, shared_prefix

from ..base import Context, ModelError, StrategyContext
from ..events import Failed, Loaded
from ..parts.memories import VectorSearch, WordSearch
from .archives import Archives, ArchiveSettings, Trigger
from .record import TOOL, WORDING, Card, NotArchived, load_tool
from .store import StoreError

_NOTHING = Messages()


class ArchiveSession:
    """The view of one conversation. Each message of the history is read once, as long as its start does not change."""

    def __init__(self, services: StrategyContext, settings: ArchiveSettings) -> None:
        self.archives = Archives(services, settings)
        self._services, self._settings = services, settings
        self._search = ArchiveSearch(services)
        self._spliced = SplicedHistory()
        # Place of the placeholder of each uuid.
        self._places: dict[str, int] = {}
        # Results that this turn brings back: ours by uuid, in the place of their placeholder; those of other
        # conversations before the turn.
        self._loaded: dict[str, Message] = {}
        self._foreign: tuple[Message, ...] = ()
        self._turn: Message | None = None
        self._note: Message | None = None  # written with the first offer
        # The tools of the context, and the tuple with ours added: one object, so that it compares fast.
        self._tools: tuple[tuple[Tool, ...], tuple[Tool, ...]] | None = None
        self._forget()

    def __call__(self, context: Context) -> Context:
        history = context.messages
        self.archives.language.read(history)
        self._read(history)
        tools = self._offer(context.tools)
        self._archive(history)
        self.archives.delete_expired()
        newest = history[self._newest] if self._newest is not None else None
        # Identity first: a long question is compared word by word
        # only where a stage before this one makes messages anew.
        if newest is not None and newest is not self._turn and newest != self._turn:
            self._turn, self.archives.question = newest, newest.text
            # A result is brought back for one turn.
            self._loaded, self._foreign = {}, ()
            self._load(history, self._chosen_cards())
        messages = self._spliced_messages(history)
        if messages is history and tools is context.tools:
            return context
        return Context(messages, (), tools)

    def _forget(self) -> None:
        self._seen = _NOTHING
        self._calls: dict[str, ToolCall] = {}
        # Places of long results that are sent whole: the model has not answered them yet, or storing them failed.
        self._waiting: list[int] = []
        # Place of the newest message of the model, which has answered everything before it.
        self._answered = 0
        # Place of the newest user message.
        self._newest: int | None = None
        # Number of system messages at the start of the history.
        self._leading = 0

    def _offer(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Return the tools with ours: from the first call on if there are any, else from the first tool call on.

        Tools and note come before the history, so they must not change once the history is worth caching.
        """
        if not self.archives.offered or (self._tools is None and not tools and not self._calls):
            return tools
        if self._tools is None or self._tools[0] is not tools:
            if any(given.name == TOOL for given in tools):
                self.archives.offered, self._tools = False, None
                self._services.record(
                    Failed("load", f"the conversation has a tool {TOOL} of its own", "ours is not offered")
                )
                return tools
            language = self.archives.language.decided
            if self._note is None:
                self._note = Message("archive:note", "system", WORDING[language].note)
                self._services.offer(load_tool(language), self.archives.answer)
            self._tools = tools, (*tools, load_tool(language))
        return self._tools[1]

    def _read(self, history: Messages) -> None:
        same = shared_prefix(self._seen, history)
        if same < len(self._seen):
            self._forget()
            self._spliced.keep(history, same)
            self._places = {uuid: at for uuid, at in self._places.items() if at < same}
            same = 0
        # After a change everything is read again; a result whose
        # placeholder still stands must not wait to be archived twice.
        replaced = set(self._places.values()) if same == 0 else ()
        for at, message in enumerate(history[same:], same):
            if message.role == "tool":
                if len(message.text) > self._settings.threshold and at not in replaced:
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
        """Put placeholders in place of the results that are due. If the store fails, they wait for the next call."""
        due = [at for at in self._waiting if at < self._answered or not self._settings.fresh]
        for at in due:
            message = history[at]
            try:
                processed = self.archives.process(message, self._calls.get(message.answers or ""))
            except StoreError as error:
                self._services.record(Failed("archive", str(error), "what is left is sent whole, for now"))
                return
            self._waiting.remove(at)
            if processed is not message:
                self._spliced.put(history, at, processed)
                self._places[self.archives.uuids[message.id]] = at

    def _chosen_cards(self) -> list[Card]:
        settings = self._settings
        if settings.trigger == "model":
            return []
        order = sorted(self._places, key=self._places.__getitem__)
        cards = self.archives.other_cards() + [
            self.archives.cards[uuid] for uuid in order if uuid in self.archives.cards
        ]
        return self._search.chosen(
            settings.trigger, self.archives.question, cards, settings.keywords, settings.similarity, settings.limit
        )

    def _load(self, history: Messages, cards: list[Card]) -> None:
        """Bring archived results back for the calls of this turn."""
        for card in cards:
            try:
                text = self.archives.load(card.uuid)
            except (NotArchived, StoreError) as error:
                self._services.record(Failed("load", str(error), "the placeholder is sent"))
                continue
            self._services.record(Loaded(card.uuid, self._settings.trigger, len(text)))
            if card.uuid in self._places:
                message = history[self._places[card.uuid]]
                self._loaded[card.uuid] = message if message.text == text else replace(message, text=text)
            else:
                heading = WORDING[self.archives.language.decided].recalled
                text = heading.format(uuid=card.uuid, tool=card.tool, query=card.query) + text
                self._foreign += (Message(f"archive:{card.uuid}", "system", text),)

    def _spliced_messages(self, history: Messages) -> Messages:
        """Return the history with placeholders, loaded results and the note in their places."""
        if self._tools is not None and self._note is not None:
            self._spliced.insert(history, self._leading, self._note)
        messages, place = self._spliced.messages(history), self._spliced.place
        if not self._loaded and not self._foreign:
            return messages
        # (start, stop, messages) in places of the spliced history. An insertion has start = stop, so it sorts before a
        # replacement that begins at the same place.
        changes: list[tuple[int, int, tuple[Message, ...]]] = [
            (place(at), place(at) + 1, (message,))
            for uuid, message in self._loaded.items()
            if (at := self._places.get(uuid)) is not None
        ]
        if self._newest is not None:
            changes.append((place(self._newest), place(self._newest), self._foreign))
        spans: list[Span] = []
        passed = 0
        # Messages have no order, so they stay out of the key.
        for start, stop, put in sorted(changes, key=lambda change: change[:2]):
            spans += messages[passed:start].spans
            spans += Messages.of(put).spans
            passed = stop
        return Messages((*spans, *messages[passed:].spans))


class SplicedHistory:
    """A history with substitutes for some of its messages, and one message inserted before one of them.

    The part before the last substitute is kept as spans from call to call; the part after it is the history's own.
    """

    __slots__ = ("_before", "_covered", "_head", "_inserted", "_places", "_substitutes")

    def __init__(self) -> None:
        self._substitutes: dict[int, Message] = {}
        self._places: list[int] = []
        # The inserted message, and the place of the message after it.
        self._inserted: Span | None = None
        self._before = 0
        # The history up to the last substitute as spans, and how many of its messages they replace.
        self._head: list[Span] = []
        self._covered = 0

    def insert(self, history: Messages, before: int, message: Message) -> None:
        """Insert a message before message `before` from now on, instead of the one inserted so far."""
        if self._inserted is None or before != self._before:
            self._inserted, self._before = Span((message,), 0, 1), before
            self._rebuild(history)

    def put(self, history: Messages, at: int, message: Message) -> None:
        """Substitute a message for message `at` from now on. Cheapest in the order of the history."""
        new = at not in self._substitutes
        self._substitutes[at] = message
        # Results come due in order, so this is the usual case: the spans before it stay. Only a result that had to wait
        # while a later one was archived, and what was changed, rebuilds all.
        if at >= self._covered:
            self._places.append(at)
            self._extend(history, at)
            return
        if new:
            insort(self._places, at)
        self._rebuild(history)

    def keep(self, history: Messages, size: int) -> None:
        """Forget the inserted message, and the substitutes from message `size` on, where the history has changed."""
        self._places = self._places[: bisect_left(self._places, size)]
        self._substitutes = {at: self._substitutes[at] for at in self._places}
        self._inserted = None
        self._rebuild(history)

    def place(self, at: int) -> int:
        """Return the place of message `at` of the history in `messages`."""
        return at + (self._inserted is not None and at >= self._before)

    def messages(self, history: Messages) -> Messages:
        """Return the history with the substitutes and the inserted message."""
        if self._inserted is None and not self._places:
            return history
        return Messages((*self._head, *self._spans(history, self._covered, len(history))))

    def _rebuild(self, history: Messages) -> None:
        self._head, self._covered = [], 0
        for at in self._places:
            self._extend(history, at)

    def _extend(self, history: Messages, at: int) -> None:
        self._head += self._spans(history, self._covered, at)
        # `_spans` up to `at` leaves the insertion to whatever holds message `before`, and here that is the substitute.
        if self._inserted is not None and self._before == at:
            self._head.append(self._inserted)
        self._head.append(Span((self._substitutes[at],), 0, 1))
        self._covered = at + 1

    def _spans(self, history: Messages, start: int, stop: int) -> tuple[Span, ...]:
        """Return history[start:stop], with the inserted message if it belongs before one of these, or at the end."""
        if self._inserted is None or not (start <= self._before < stop or self._before == stop == len(history)):
            return history[start:stop].spans
        return (*history[start : self._before].spans, self._inserted, *history[self._before : stop].spans)


class ArchiveSearch:
    """A search by words and by meaning over the archived results that one conversation may see."""

    __slots__ = ("_services", "_vectors", "_words")

    def __init__(self, services: StrategyContext) -> None:
        self._services, self._vectors, self._words = services, VectorSearch(services), WordSearch()

    def chosen(
        self,
        trigger: Trigger,
        question: str,
        cards: Sequence[Card],
        keywords: Sequence[str],
        similarity: float,
        most: int,
    ) -> list[Card]:
        """Return at most `most` cards that the question brings back. If the embedder fails, keywords decide alone."""
        has_keyword = trigger in ("keyword", "hybrid") and mentions(question, keywords)
        chosen: list[Card] = []
        if trigger in ("semantic", "hybrid") and cards:
            try:
                chosen = [card for card, score in self.by_meaning(question, cards, most) if score >= similarity]
            except ModelError as error:
                self._services.record(Failed("embedding", str(error), "keywords decide what is loaded"))
                has_keyword = mentions(question, keywords)
        if has_keyword:
            chosen += [card for card in self.by_words(question, cards, most) if card not in chosen]
        return chosen[:most]

    def by_words(self, question: str, cards: Sequence[Card], most: int) -> list[Card]:
        """Return the cards with the most words of the question, rare words weighing more, best first.

        Equal ones come the later first. With no word in common ("say more about that"), the last card is returned.
        """
        return [card for card, score in _best(self._words, question, cards, most) if score > 0] or list(cards[-1:])

    def by_meaning(self, question: str, cards: Sequence[Card], most: int) -> list[tuple[Card, float]]:
        """Return the nearest cards with their cosines, best first, equal ones the later first. Raises ModelError."""
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
    """Return whether a keyword is in the text; one in Latin letters must match whole words, in any case."""
    return any(_pattern(keyword).search(text) for keyword in keywords)


@cache
def _pattern(keyword: str) -> re.Pattern[str]:
    pattern = re.escape(keyword)
    if keyword.isascii():
        pattern = rf"(?<![A-Za-z]){pattern}(?![A-Za-z])"
    return re.compile(pattern, re.IGNORECASE)
