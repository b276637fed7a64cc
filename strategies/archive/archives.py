"""One conversation's archived tool results: the operations of the design's ToolResultManager (001 §3.4)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ctxbench.scenarios.model import Message, ToolCall

from ..base import ModelError, Prompt, StrategyContext
from ..events import Archived, Deleted, Failed, Loaded
from ..parts.language import ConversationLanguage, LanguageSetting
from ..parts.passages import relevant_passages
from ..parts.units import at_least
from .record import (
    WORDING,
    Card,
    NotArchived,
    StoreError,
    Visibility,
    arguments_of,
    clean_lines,
    identify,
    is_placeholder,
    placeholder,
    query_of,
    single_line,
    sources_of,
    summary_of,
)

if TYPE_CHECKING:
    from .store import ResultStore

Trigger = Literal["model", "keyword", "semantic", "hybrid"]

# The three of 001 §4.2, and their English.
KEYWORDS = ("之前", "刚才", "上次", "earlier", "previously", "you said", "last time")

_MEMORY = "sqlite://"
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The parameters of `archive`, which the strategy itself explains."""

    threshold: int = 10_000
    fresh: bool = True
    trigger: Trigger = "model"
    keywords: tuple[str, ...] = KEYWORDS
    similarity: float = 0.15
    limit: int = 1
    load_tokens: int | None = None
    summariser: str = "offline"
    summary_chars: int = 200
    stored_chars: int = 500
    query_chars: int = 500
    sources: int = 3
    read_chars: int = 200_000
    store: str = _MEMORY
    wait: float = 1.0
    scope: Literal["conversation", "thread", "all"] = "conversation"
    thread: str = ""
    reach: int = 1000
    keep_days: float | None = None
    language: LanguageSetting = "auto"

    def __post_init__(self) -> None:
        at_least(1, threshold=self.threshold, limit=self.limit, load_tokens=self.load_tokens, reach=self.reach)
        at_least(1, summary_chars=self.summary_chars, read_chars=self.read_chars)
        if self.stored_chars < self.summary_chars:
            raise ValueError(f"stored_chars={self.stored_chars} is less than summary_chars={self.summary_chars}")
        at_least(1, at_most=500, query_chars=self.query_chars)
        at_least(0, sources=self.sources)
        at_least(-1, at_most=1, similarity=self.similarity)
        if not self.summariser:
            raise ValueError("summariser is 'offline', 'run' (the run's own) or a model's name")
        if not all(self.keywords) or (self.trigger in ("keyword", "hybrid") and not self.keywords):
            raise ValueError(f"keywords must not be empty, nor any of them: {self.keywords}")
        at_least(0, below=3600, wait=self.wait)
        if self.keep_days is not None and not 0 < self.keep_days < 1e6:
            raise ValueError(f"keep_days must be above 0 and below 1000000, not {self.keep_days}")
        if self.scope == "thread" and not self.thread:
            raise ValueError("scope='thread' needs thread='…', a name that conversations share")
        if self._in_memory() and self.scope != "conversation":
            raise ValueError(
                f"scope={self.scope!r} needs a store that conversations share: store='sqlite:///archive.db'"
            )

    def _in_memory(self) -> bool:
        """Return whether the store is a conversation's own. Raises ValueError if the store cannot be used."""
        if self.store == _MEMORY:
            return True
        from .store import address_problem, in_memory  # SQLAlchemy takes 0.3 s

        problem = address_problem(self.store)
        if problem is not None:
            raise ValueError(f"store cannot be used: {problem}")
        return in_memory(self.store)

    @property
    def copyable(self) -> bool:
        """Whether a copy behaves like the original: not where other conversations or deletions change the store."""
        return self.scope == "conversation" and self.keep_days is None

    @property
    def offers(self) -> bool:
        """Whether the model is offered the tool."""
        return self.trigger in ("model", "hybrid")


class Archives:
    """The archived results of one conversation, and the access to those of others."""

    def __init__(self, desk: StrategyContext, settings: ArchiveSettings) -> None:
        self.cards: dict[str, Card] = {}
        """Cards of this conversation by uuid, without deleted ones."""
        self.uuids: dict[str, str] = {}
        """Uuid of each archived result, by its message's id."""
        self.question = ""
        """The newest user message, which chooses the passages of a partial load."""
        self.offered = settings.offers
        """Whether placeholders may name the tool."""
        self.language = ConversationLanguage(settings.language)
        self._desk, self._settings = desk, settings
        # By message id: the result, and what is sent in its place (itself, if it cannot be archived for good).
        self._processed: dict[str, tuple[Message, Message]] = {}
        self._prepared: dict[str, tuple[Message, Card]] = {}
        # Time of the oldest result that retention may delete.
        # In a wider scope other conversations may have left what is due by now, which only the store knows.
        self._oldest = -inf if settings.scope != "conversation" else inf

    @cached_property
    def _store(self) -> ResultStore:
        from .store import ResultStore

        return ResultStore(self._settings.store, self._settings.wait)

    def process(self, message: Message, call: ToolCall | None) -> Message:
        """Store a tool result over the threshold, and return its placeholder. Raises StoreError.

        Returns the result itself up to the threshold, if its placeholder would have as many tokens, and if it is a
        placeholder: archived in turn, that would hide the only name of the result that it stands for.
        """
        if len(message.text) <= self._settings.threshold or is_placeholder(message.text):
            return message
        known = self._processed.get(message.id)
        if known is not None and (known[0] is message or known[0] == message):
            return known[1]
        bare = self._bare_card(message, call)
        processed = message
        # If a placeholder without a summary saves nothing, one with a summary saves even less.
        if self._saves(self._placeholder(bare), message):
            card = self._card(message, bare)
            text = self._placeholder(card)
            if self._saves(text, message) and self._stored(message, card):
                processed = replace(message, text=text)
        self._processed[message.id] = message, processed
        self._prepared.pop(message.id, None)
        return processed

    def _stored(self, message: Message, card: Card) -> bool:
        """Store a result once; False if it can never be stored, because its uuid has another content.

        The same uuid and content from a call with other arguments is possible: then the first row stays.
        """
        existing = self._store.save(card, message.text)
        if existing is not None and existing[1] != message.text:
            self._desk.record(
                Failed("archive", f"{card.uuid} is taken by another result", f"{message.id} is sent whole")
            )
            return False
        if existing is not None and (existing[0].tool, existing[0].arguments) != (card.tool, card.arguments):
            why = f"{card.uuid} is the result of another call too"
            self._desk.record(Failed("archive", why, "the row that was there first stands"))
        self.cards[card.uuid], self.uuids[message.id] = card, card.uuid
        if card.created is not None:
            self._oldest = min(self._oldest, card.created)
        self._desk.record(Archived(message.id, card.uuid, card.length))
        return True

    def _placeholder(self, card: Card) -> str:
        most = self._settings.summary_chars
        summary = single_line(summary_of(card.summary, most), most)
        return placeholder(card, summary, self.language.decided, self.offered)

    def _saves(self, text: str, message: Message) -> bool:
        return self._desk.text_tokens(text) < self._desk.text_tokens(message.text)

    def load(self, uuid: str) -> str:
        """Return an archived result, whole or (with `load_tokens`) the passages nearest to the question.

        Raises NotArchived, also for results that may not be seen, and StoreError, also if the content was changed.
        """
        visibility = None if uuid in self.cards else self.visibility()
        row = self._store.load(uuid, visibility) if uuid in self.cards or visibility is not None else None
        if row is None:
            raise NotArchived(uuid)
        card, text = row
        budget, count = self._settings.load_tokens, self._desk.text_tokens
        if budget is None or count(text) <= budget:
            return text
        heading = WORDING[self.language.decided].part.format(uuid=uuid, length=card.length)
        return heading + relevant_passages(text, self.question, max(0, budget - count(heading)), count)

    def answer(self, arguments: str) -> str:
        """Return the result of a call of the tool: the content, or a text that says why there is none."""
        wording = WORDING[self.language.decided]
        try:
            uuid = json.loads(arguments)["uuid"].strip().lower()
        except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
            self._desk.record(Failed("load", "the arguments cannot be read", "the model is told how to call the tool"))
            return wording.unreadable
        try:
            text = self.load(uuid)
        except NotArchived:
            self._desk.record(Failed("load", f"{single_line(uuid, 100)} is not archived", "the model is told so"))
            return wording.not_found.format(uuid=single_line(uuid, 100))
        except StoreError as error:
            self._desk.record(Failed("load", str(error), "the model is told so"))
            return wording.not_loaded.format(uuid=uuid, why=error.what)
        self._desk.record(Loaded(uuid, "model", len(text)))
        return text

    def visibility(self) -> Visibility | None:
        """Return what may be seen of other conversations; None = nothing, also where the recording has no clock."""
        settings, now = self._settings, self._desk.now
        if settings.scope == "conversation" or now is None:
            return None
        return Visibility(self._desk.conversation, now, settings.thread if settings.scope == "thread" else None)

    def other_cards(self) -> list[Card]:
        """Return the newest `reach` visible cards of other conversations, oldest first."""
        visibility = self.visibility()
        if visibility is None:
            return []
        try:
            return self._store.cards(visibility, self._settings.reach)[::-1]
        except StoreError as error:
            self._desk.record(Failed("load", str(error), "only what this conversation archived is searched"))
            return []

    def delete_expired(self) -> None:
        """Delete results older than `keep_days` by the recorded clock: this conversation's, or all in its scope.

        Their placeholders stay. The store is called only when a result is due; in a wider scope, at the first call too,
        and when one may be due that another conversation has archived since.
        """
        settings, now = self._settings, self._desk.now
        if settings.keep_days is None or now is None:
            return
        before = now - settings.keep_days * _DAY
        if self._oldest >= before:
            return
        own = self._desk.conversation if settings.scope == "conversation" else None
        try:
            deleted, oldest = self._store.delete(before, own, settings.thread if settings.scope == "thread" else None)
        except StoreError as error:
            self._desk.record(Failed("archive", str(error), "what is too old is kept until the next call"))
            return
        for uuid in deleted:
            self.cards.pop(uuid, None)
        # In a wider scope other conversations archive results from now on, of which this one is not told.
        self._oldest = oldest if own is not None else min(oldest, now)
        if deleted:
            self._desk.record(Deleted(deleted))

    def _bare_card(self, message: Message, call: ToolCall | None) -> Card:
        """Return the card without summary and sources: reading the result for these takes some 20 ms."""
        arguments = arguments_of(call.arguments) if call is not None else None
        return Card(
            uuid=identify(self._desk.conversation, message.id, message.text),
            conversation=self._desk.conversation,
            message=message.id,
            thread=self._settings.thread,
            tool=single_line(message.name or (call.name if call is not None else ""), 100),
            arguments=arguments,
            query=query_of(arguments, self._settings.query_chars),
            summary="",
            length=len(message.text),
            sources=(),
            created=message.time if message.time is not None else self._desk.now,
        )

    def _card(self, message: Message, bare: Card) -> Card:
        """Return the whole card, which is made once, however often storing it fails."""
        known = self._prepared.get(message.id)
        if known is not None and known[0] == message:
            return known[1]
        text = message.text[: self._settings.read_chars]
        sources = sources_of(text, self._settings.sources)
        card = dataclasses.replace(bare, summary=self._summary(message, text), sources=sources)
        self._prepared[message.id] = message, card
        return card

    def _summary(self, message: Message, text: str) -> str:
        settings, most = self._settings, self._settings.stored_chars
        if settings.summariser == "offline":
            return summary_of(text, most)
        model = "" if settings.summariser == "run" else settings.summariser
        instruction = WORDING[self.language.decided].prompt.replace("{characters}", str(most))
        try:
            reply = self._desk.complete(Prompt(instruction, (text,), most, (message,), model=model))
        except ModelError as error:
            self._desk.record(Failed("summary", str(error), "the offline summary stands"))
            return summary_of(text, most)
        return clean_lines(reply, most)
