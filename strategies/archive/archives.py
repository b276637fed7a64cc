"""One conversation's archived tool results: the operations of the design's ToolResultManager (001 §3.4)."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.scenarios.spec import NonNegativeInt, PositiveInt

from ..base import ModelError, Prompt, StrategyContext
from ..events import Archived, Deleted, Failed, Loaded
from ..parts.language import ConversationLanguage, LanguageSetting
from ..parts.passages import relevant_passages
from .record import (
    WORDING,
    Card,
    NotArchived,
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
from .store import ResultTable, StoreError

Trigger = Literal["model", "keyword", "semantic", "hybrid"]

# The three of 001 §4.2, and their English.
KEYWORDS = ("之前", "刚才", "上次", "earlier", "previously", "you said", "last time")

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Parameters of the strategy `archive`."""

    threshold: PositiveInt = 10_000
    fresh: bool = True
    trigger: Trigger = "model"
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
    keep_days: float | None = None
    language: LanguageSetting = "auto"

    @property
    def offers(self) -> bool:
        """Whether the model is offered the tool."""
        return self.trigger in ("model", "hybrid")


class Archives:
    """The archived results of one conversation, and the access to those of others."""

    def __init__(self, services: StrategyContext, settings: ArchiveSettings) -> None:
        self.cards: dict[str, Card] = {}
        """Cards of this conversation by uuid, without deleted ones."""
        self.uuids: dict[str, str] = {}
        """Uuid of each archived result, by its message's id."""
        self.question = ""
        """The newest user message, which chooses the passages of a partial load."""
        self.offered = settings.offers
        """Whether placeholders may name the tool."""
        self.language = ConversationLanguage(settings.language)
        self._services, self._settings = services, settings
        self._store = ResultTable(settings.store, settings.wait)
        # By message id: the result, and what is sent in its place (itself, if it cannot be archived for good).
        self._processed: dict[str, tuple[Message, Message]] = {}
        self._prepared: dict[str, tuple[Message, Card]] = {}
        # Time of the oldest result that retention may delete.
        # In a wider scope other conversations may have left what is due by now, which only the store knows.
        self._oldest = -inf if settings.scope != "conversation" else inf

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
            self._services.record(
                Failed("archive", f"{card.uuid} is taken by another result", f"{message.id} is sent whole")
            )
            return False
        if existing is not None and (existing[0].tool, existing[0].arguments) != (card.tool, card.arguments):
            why = f"{card.uuid} is the result of another call too"
            self._services.record(Failed("archive", why, "the row that was there first stands"))
        self.cards[card.uuid], self.uuids[message.id] = card, card.uuid
        if card.created is not None:
            self._oldest = min(self._oldest, card.created)
        self._services.record(Archived(message.id, card.uuid, card.length))
        return True

    def _placeholder(self, card: Card) -> str:
        most = self._settings.summary_chars
        summary = single_line(summary_of(card.summary, most), most)
        return placeholder(card, summary, self.language.decided, self.offered)

    def _saves(self, text: str, message: Message) -> bool:
        return self._services.text_tokens(text) < self._services.text_tokens(message.text)

    def load(self, uuid: str) -> str:
        """Return an archived result, whole or (with `load_tokens`) the passages nearest to the question.

        Raises NotArchived, also for results that may not be seen, and StoreError.
        """
        visibility = None if uuid in self.cards else self.visibility()
        row = self._store.load(uuid, visibility) if uuid in self.cards or visibility is not None else None
        if row is None:
            raise NotArchived(uuid)
        card, text = row
        budget, count = self._settings.load_tokens, self._services.text_tokens
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
            self._services.record(
                Failed("load", "the arguments cannot be read", "the model is told how to call the tool")
            )
            return wording.unreadable
        try:
            text = self.load(uuid)
        except NotArchived:
            self._services.record(Failed("load", f"{single_line(uuid, 100)} is not archived", "the model is told so"))
            return wording.not_found.format(uuid=single_line(uuid, 100))
        except StoreError as error:
            self._services.record(Failed("load", str(error), "the model is told so"))
            return wording.not_loaded.format(uuid=uuid, why=error.what)
        self._services.record(Loaded(uuid, "model", len(text)))
        return text

    def visibility(self) -> Visibility | None:
        """Return what may be seen of other conversations; None = nothing, also where the recording has no clock."""
        settings, now = self._settings, self._services.now
        if settings.scope == "conversation" or now is None:
            return None
        return Visibility(self._services.conversation, now, settings.thread if settings.scope == "thread" else None)

    def other_cards(self) -> list[Card]:
        """Return the newest `reach` visible cards of other conversations, oldest first."""
        visibility = self.visibility()
        if visibility is None:
            return []
        try:
            return self._store.cards(visibility, self._settings.reach)[::-1]
        except StoreError as error:
            self._services.record(Failed("load", str(error), "only what this conversation archived is searched"))
            return []

    def delete_expired(self) -> None:
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
        own = self._services.conversation if settings.scope == "conversation" else None
        try:
            deleted, oldest = self._store.delete(before, own, settings.thread if settings.scope == "thread" else None)
        except StoreError as error:
            self._services.record(Failed("archive", str(error), "what is too old is kept until the next call"))
            return
        for uuid in deleted:
            self.cards.pop(uuid, None)
        # In a wider scope other conversations archive results from now on, of which this one is not told.
        self._oldest = oldest if own is not None else min(oldest, now)
        if deleted:
            self._services.record(Deleted(deleted))

    def _bare_card(self, message: Message, call: ToolCall | None) -> Card:
        """Return the card without summary and sources: reading the result for these takes some 20 ms."""
        arguments = arguments_of(call.arguments) if call is not None else None
        return Card(
            uuid=identify(self._services.conversation, message.id, message.text),
            conversation=self._services.conversation,
            message=message.id,
            thread=self._settings.thread,
            tool=single_line(message.name or (call.name if call is not None else ""), 100),
            arguments=arguments,
            query=query_of(arguments, self._settings.query_chars),
            summary="",
            length=len(message.text),
            sources=(),
            created=message.time if message.time is not None else self._services.now,
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
            reply = self._services.complete(Prompt(instruction, (text,), most, (message,), model=model))
        except ModelError as error:
            self._services.record(Failed("summary", str(error), "the offline summary stands"))
            return summary_of(text, most)
        return clean_lines(reply, most)
