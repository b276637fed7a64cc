"""One conversation's archived tool results: the operations of the document's ToolResultManager (001 §3.4)."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from ...metrics.extract import extract
from ...metrics.language import sentences, words
from ...metrics.tfidf import TfIdf, best
from ...metrics.values import exact_values
from ...scenarios.model import Message, ToolCall
from ..base import ModelError, Prompt, StrategyContext
from ..events import Archived, Deleted, Failed, Loaded
from .placeholders import WORDING, is_placeholder, placeholder
from .record import Card, NotArchived, StoreError, Visible, identify

if TYPE_CHECKING:
    from .settings import ArchiveSettings
    from .store import ResultStore


_DAY = 86_400.0


class Archives:
    """What is archived of one conversation, and what it may see of others."""

    def __init__(self, desk: StrategyContext, settings: ArchiveSettings) -> None:
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
    def _store(self) -> ResultStore:
        from .store import ResultStore

        return ResultStore(self._settings.store, self._settings.wait)

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


_BLANK = re.compile("[\\s\x00-\x1f\x7f\ud800-\udfff]+")
_TITLE = re.compile(
    r"""^\#{1,6}[ \t]+(?P<heading>[^\n]{1,200})$
    | ["'](?:title|标题|source|filename|file_name|文件名)["'][ \t]*:[ \t]*["'](?P<field>[^"'\n]{1,200})["']
    | ^(?:title|source|标题|来源|文档)[ \t]*[:：][ \t]*(?P<line>[^\n]{1,200})$
    | 《(?P<book>[^》\n]{1,100})》""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def line(text: str, most: int) -> str:
    """A text in one line of at most `most` characters, without what no database or tokenizer takes."""
    flat = _BLANK.sub(" ", text).strip()
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def arguments_of(text: str) -> object:
    """A call's arguments as JSON values, or as they are where they are no (finite) JSON."""
    try:
        found: object = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return found


def query_of(arguments: object, most: int) -> str:
    """What was asked: a lone argument by itself, several with their names, `name=value; …`."""
    if isinstance(arguments, dict):
        shown = [(str(name), value if isinstance(value, str) else _json(value)) for name, value in arguments.items()]
        if len(shown) == 1:
            return line(shown[0][1], most)
        return line("; ".join(f"{name}={value}" for name, value in shown), most)
    return line("" if arguments is None else arguments if isinstance(arguments, str) else _json(arguments), most)


def lines(text: str, most: int) -> str:
    """A text of at most `most` characters, each of its lines as by `line`, none empty."""
    kept = [flat for each in text.splitlines() if (flat := line(each, most))]
    made = "\n".join(kept)
    return made if len(made) <= most else made[: most - 1] + "…"


def summary_of(text: str, most: int) -> str:
    """The sentences that matter most, in their order, a line each, at most `most` characters together."""
    return lines(extract([text], most, len), most) or lines(text, most)


def sources_of(text: str, most: int) -> tuple[str, ...]:
    """The addresses, then the paths, then the titles that the content names, in its order: search results rank."""
    found: dict[str, list[str]] = {"url": [], "path": [], "title": []}
    for kind, value in exact_values(text):
        if kind in found:
            found[kind].append(line(value, 200))
    for title in _TITLE.finditer(text):
        found["title"].append(line(next(filter(None, title.groups())), 200))
    names = dict.fromkeys(name for kind in found.values() for name in kind if name)
    return tuple(names)[:most]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


PIECE = 400
"""Characters that a passage has at most; lines are put together up to it, longer ones taken by sentences."""

GAP = "…\n"
"""Stands where something was left out."""


def passages(text: str, question: str, budget: int, count: Callable[[str], int]) -> str:
    """The passages nearest to a question, in the order of the text, at most `budget` tokens by `count`.

    Nearest = most words in common, rare ones weighing more (`TfIdf.overlap`). Where nothing is in common they are taken
    from the start. A text that fits is whole. Empty only if not one passage's first character fits.
    """
    if count(text) <= budget:
        return text
    pieces = _pieces(text)
    index = TfIdf()
    index.add(map(words, pieces))
    scores = index.overlap(words(question))
    order = [at for at in best(scores, len(pieces)) if scores[at] > 0] or list(range(len(pieces)))
    order.sort(key=lambda at: (-scores[at], at))
    gap = count(GAP)
    chosen: list[int] = []
    left = budget
    for at in order:
        cost = count(pieces[at]) + gap
        if cost <= left:
            chosen.append(at)
            left -= cost
    while chosen:
        made = _joined(pieces, sorted(chosen))
        if count(made) <= budget:
            return made
        chosen.pop()
    return _cut(pieces[order[0]], budget, count) if order else ""


def _pieces(text: str) -> list[str]:
    """The text in pieces of at most PIECE characters, each ending with its line end; none blank."""
    made: list[str] = []
    for row in text.splitlines():
        parts = [row] if len(row) <= PIECE else [s[at : at + PIECE] for s in sentences(row) for at in _steps(s)]
        for part in parts:
            if not part or part.isspace():
                continue
            if made and len(made[-1]) + len(part) < PIECE:
                made[-1] += part + "\n"
            else:
                made.append(part + "\n")
    return made


def _steps(text: str) -> range:
    return range(0, len(text), PIECE)


def _joined(pieces: list[str], places: list[int]) -> str:
    """Pieces in order, with a gap wherever one was left out."""
    ends = np.diff([-1, *places, len(pieces)]) > 1
    return "".join((GAP if gap else "") + pieces[at] for at, gap in zip(places, ends[:-1], strict=True)) + (
        GAP if ends[-1] else ""
    )


def _cut(text: str, budget: int, count: Callable[[str], int]) -> str:
    """The longest start of a text that is within the budget, by halving."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]
