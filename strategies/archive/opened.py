"""One conversation as `archive` sends it: placeholders in place, what the turn brings back, the tool and its note."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...scenarios.model import Message, Tool, ToolCall
from ...scenarios.view import Messages, Span, shared
from ..base import Context, Desk
from ..events import Failed, Loaded
from .archives import Archives
from .record import Card, NotArchived, StoreError
from .spliced import Spliced
from .triggers import Search
from .wording import TOOL, WORDING, tool

if TYPE_CHECKING:
    from . import Archive

_NOTHING = Messages()


class Opened:
    """Context → Context. Each message of the history is read once, as long as its start does not change."""

    def __init__(self, desk: Desk, settings: Archive) -> None:
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
