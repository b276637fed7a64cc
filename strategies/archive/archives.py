"""One conversation's archived tool results: the operations of the document's ToolResultManager (001 §3.4)."""

from __future__ import annotations

import dataclasses
import json
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...scenarios.model import Message, ToolCall
from ..base import Desk, ModelError, Prompt
from ..events import Archived, Deleted, Failed, Loaded
from .digest import arguments_of, line, lines, query_of, sources_of, summary_of
from .partial import passages
from .record import Card, NotArchived, StoreError, Visible, identify
from .wording import WORDING, is_placeholder, placeholder

if TYPE_CHECKING:
    from . import Archive
    from .store import Store

_DAY = 86_400.0


class Archives:
    """What is archived of one conversation, and what it may see of others."""

    def __init__(self, desk: Desk, settings: Archive) -> None:
        self.cards: dict[str, Card] = {}
        """What this conversation has archived and not deleted, by uuid."""
        self.uuids: dict[str, str] = {}
        """The uuid of each, by its message's id."""
        self.question = ""
        """The newest user message: what a partial load is about."""
        self.offered = settings.offers
        """Whether placeholders may name the tool."""
        self._desk, self._settings = desk, settings
        self._made: dict[str, tuple[Message, Message]] = {}
        """By message id: the result, and what is sent in its place (itself, if it could not be archived for good)."""
        self._prepared: dict[str, tuple[Message, Card]] = {}
        self._oldest = -inf if settings.scope != "conversation" else inf

    @cached_property
    def _store(self) -> Store:
        from .store import Store

        return Store(self._settings.store, self._settings.wait)

    def process(self, message: Message, call: ToolCall | None) -> Message:
        """A tool result: itself up to the threshold, else its placeholder, and it is stored. Raises StoreError.

        A placeholder stays: archived itself, it would hide the only name that what it stands for has. And a result
        stays that has no more tokens than its placeholder would.
        """
        if len(message.text) <= self._settings.threshold or is_placeholder(message.text):
            return message
        known = self._made.get(message.id)
        if known is not None and (known[0] is message or known[0] == message):
            return known[1]
        bare = self._bare(message, call)
        made = message
        if self._saves(self._shown(bare), message):  # else no placeholder does, with a summary least of all
            card = self._card(message, bare)
            shown = self._shown(card)
            if self._saves(shown, message) and self._stored(message, card):
                made = replace(message, text=shown)
        self._made[message.id] = message, made
        self._prepared.pop(message.id, None)
        return made

    def _stored(self, message: Message, card: Card) -> bool:
        """Store a result; False if it cannot be, for good.

        One that was stored before is not stored again. The same uuid with other content: the result is sent whole. The
        same uuid and content from a call with other arguments: the row that was there first stands.
        """
        there = self._store.save(card, message.text)
        if there is not None and there[1] != message.text:
            self._desk.record(
                Failed("archive", f"{card.uuid} is taken by another result", f"{message.id} is sent whole")
            )
            return False
        if there is not None and (there[0].tool, there[0].arguments) != (card.tool, card.arguments):
            why = f"{card.uuid} is the result of another call too"
            self._desk.record(Failed("archive", why, "the row that was there first stands"))
        self.cards[card.uuid], self.uuids[message.id] = card, card.uuid
        if card.created is not None:
            self._oldest = min(self._oldest, card.created)
        self._desk.record(Archived(message.id, card.uuid, card.length))
        return True

    def _shown(self, card: Card) -> str:
        most = self._settings.summary_chars
        summary = line(summary_of(card.summary, most), most)
        return placeholder(card, summary, self._settings.language, self.offered)

    def _saves(self, shown: str, message: Message) -> bool:
        return self._desk.text_tokens(shown) < self._desk.text_tokens(message.text)

    def load(self, uuid: str) -> str:
        """An archived result, whole or (with `load_tokens`) what of it is about the question.

        Raises NotArchived, also for those that may not be seen, and StoreError, also where the content was changed.
        """
        visible = None if uuid in self.cards else self.visible()
        found = self._store.load(uuid, visible) if uuid in self.cards or visible is not None else None
        if found is None:
            raise NotArchived(uuid)
        card, text = found
        if uuid in self.cards and identify(self._desk.conversation, self.cards[uuid].message, text) != uuid:
            raise StoreError(f"the content of {uuid} is not what was stored")
        budget, count = self._settings.load_tokens, self._desk.text_tokens
        if budget is None or count(text) <= budget:
            return text
        heading = WORDING[self._settings.language].part.format(uuid=uuid, length=card.length)
        return heading + passages(text, self.question, max(0, budget - count(heading)), count)

    def answer(self, arguments: str) -> str:
        """What the tool gives a model that calls it: the content, or a text that says why not."""
        said = WORDING[self._settings.language]
        try:
            uuid = json.loads(arguments)["uuid"].strip().lower()
        except (ValueError, RecursionError, TypeError, LookupError, AttributeError):
            self._desk.record(Failed("load", "the arguments cannot be read", "the model is told how to call the tool"))
            return said.unreadable
        try:
            text = self.load(uuid)
        except NotArchived:
            self._desk.record(Failed("load", f"{line(uuid, 100)} is not archived", "the model is told so"))
            return said.not_found.format(uuid=line(uuid, 100))
        except StoreError as error:
            self._desk.record(Failed("load", str(error), "the model is told so"))
            return said.not_loaded.format(uuid=uuid, why=error)
        self._desk.record(Loaded(uuid, "model", len(text)))
        return text

    def visible(self) -> Visible | None:
        """What may be seen besides one's own; None = nothing, also where the recording has no clock."""
        settings, now = self._settings, self._desk.now
        if settings.scope == "conversation" or now is None:
            return None
        return Visible(self._desk.conversation, now, settings.thread if settings.scope == "thread" else None)

    def others(self) -> list[Card]:
        """The newest `reach` cards of other conversations that may be seen, oldest first."""
        visible = self.visible()
        if visible is None:
            return []
        try:
            return self._store.cards(visible, self._settings.reach)[::-1]
        except StoreError as error:
            self._desk.record(Failed("load", str(error), "only what this conversation archived is searched"))
            return []

    def clean(self) -> None:
        """Delete what is older than it is kept, by the recorded clock: this conversation's, or all in its scope.

        Their placeholders stay. The store is asked only when something is due; in a wider scope, at the first call too.
        """
        settings, now = self._settings, self._desk.now
        if settings.keep_days is None or now is None:
            return
        before = now - settings.keep_days * _DAY
        if self._oldest >= before:
            return
        own = self._desk.conversation if settings.scope == "conversation" else None
        try:
            deleted = self._store.delete(before, own, settings.thread if settings.scope == "thread" else None)
        except StoreError as error:
            self._desk.record(Failed("archive", str(error), "what is too old is kept until the next call"))
            return
        for uuid in deleted:
            self.cards.pop(uuid, None)
        self._oldest = min((card.created for card in self.cards.values() if card.created is not None), default=inf)
        if deleted:
            self._desk.record(Deleted(deleted))

    def _bare(self, message: Message, call: ToolCall | None) -> Card:
        """The card without what the result has to be read for, which takes some 20 ms."""
        arguments = arguments_of(call.arguments) if call is not None else None
        return Card(
            uuid=identify(self._desk.conversation, message.id, message.text),
            conversation=self._desk.conversation,
            message=message.id,
            thread=self._settings.thread,
            tool=line(message.name or (call.name if call is not None else ""), 100),
            arguments=arguments,
            query=query_of(arguments, self._settings.query_chars),
            summary="",
            length=len(message.text),
            sources=(),
            created=message.time if message.time is not None else self._desk.now,
        )

    def _card(self, message: Message, bare: Card) -> Card:
        """The whole card. Made once, however often storing it fails."""
        known = self._prepared.get(message.id)
        if known is not None and known[0] == message:
            return known[1]
        read = message.text[: self._settings.read_chars]
        sources = sources_of(read, self._settings.sources)
        card = dataclasses.replace(bare, summary=self._summary(message, read), sources=sources)
        self._prepared[message.id] = message, card
        return card

    def _summary(self, message: Message, read: str) -> str:
        settings, most = self._settings, self._settings.stored_chars
        if settings.summariser == "offline":
            return summary_of(read, most)
        model = "" if settings.summariser == "run" else settings.summariser
        instruction = WORDING[settings.language].prompt.replace("{characters}", str(most))
        try:
            reply = self._desk.complete(Prompt(instruction, (read,), most, (message,), model=model))
        except ModelError as error:
            self._desk.record(Failed("summary", str(error), "the offline summary stands"))
            return summary_of(read, most)
        return lines(reply, most)
