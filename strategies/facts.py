"""S8, `facts`: the facts that matter now, in a `<memory>` message before the history (design document 002)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar, Literal

import msgspec

from ..metrics.language import Language, words
from ..metrics.tfidf import best
from ..scenarios.model import Message
from ..scenarios.view import Messages
from .base import Context, ModelError, StrategyContext, View
from .events import Failed, Recalled
from .parts.fact_extraction import StatedFact, asked, stated
from .parts.fact_store import FactStore
from .parts.memories import Note, Place
from .parts.passages import passages
from .parts.units import Spoken, at_least

FORM = "<memory>\n{lines}\n</memory>"
_LEAST = 5
"""Tokens that a line takes at least: its mark, three words, its end."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The whole history, with the facts most relevant now in a system message after the leading system messages.

    A fact's score is `similarity` · TF-IDF cosine with the recent context + `confidence` · its confidence. Recent
    context is what the user and the final answers of the assistant say in the last `turns` turns: no tool results, no
    message that calls tools. Without any, confidence alone counts. The best are sent, best first, as many as fit:
    the message takes at most `max_tokens`, counted exactly. `limit` bounds their number as well.

    It only adds, as the document does, so alone it costs tokens. Chain it before what cuts: `facts | window(...)` reads
    all that was said, and the window keeps the memory, as it is the system's. After the window it would know what the
    window kept, and no more. The memory message changes when a turn brings other facts to the fore, and then nothing
    after it is a prefix that a cache can keep; `place="end"` puts it before the newest turn instead.

    002's behaviour before the change, the 15 surest facts: `facts(similarity=0, confidence=1, limit=15)`.

    The facts are those that the recording states (LoCoMo's observations), known once their message is said. Where it
    states none, or with `extractor="offline"`, they are taken from what the user and the final answers say, each
    message once, at most `per_message` of `max_fact_tokens` each (no more than a quarter of `max_tokens`), by rules
    (`stated.stated`); with `extractor="model"` by the model `summariser` (empty = the run's), one call a turn; what it
    fails at is done by the rules (Failed). What is said again is one fact. When a later fact says the same with other
    numbers or dates, the earlier one's confidence counts `outdated` times.
    """

    max_tokens: int = 2000
    similarity: float = 0.6
    confidence: float = 0.4
    turns: int = 3
    limit: int | None = None
    per_message: int = 8
    max_fact_tokens: int = 60
    outdated: float = 0.5
    place: Place = "start"
    extractor: Literal["recorded", "offline", "model"] = "recorded"
    summariser: str = ""
    max_reply_tokens: int = 500
    language: Language = "zh"

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "002"
    fails: ClassVar[str] = "what matters was not said as a fact, or came from a tool; alone it only adds tokens"

    def __post_init__(self) -> None:
        at_least(1, max_tokens=self.max_tokens, turns=self.turns, limit=self.limit, per_message=self.per_message)
        at_least(1, max_fact_tokens=self.max_fact_tokens, max_reply_tokens=self.max_reply_tokens)
        at_least(0, similarity=self.similarity, confidence=self.confidence)
        at_least(0, at_most=1, outdated=self.outdated)

    def start(self, desk: StrategyContext) -> View:
        heard, note = Heard(desk, self.turns), Note(desk, "facts", FORM)
        extractor, store = FactExtractor(desk, self), FactStore(self.outdated)
        found: list[tuple[StatedFact, float]] = []

        def view(context: Context) -> Context:
            nonlocal found
            history, before = context.messages, len(heard.places)
            same = heard.read(history)
            if same < before:
                store.forget()
                same = 0
            if same < len(heard.places) or before > len(heard.places):
                store.take(extractor.facts([heard.said[at] for at in heard.places[same:]]))
                found = self._best(store, heard.context())
            message, kept = note.of([f"- {fact.text}" for fact, _ in found], self.max_tokens, history)
            if message is None:
                return context
            sources, scores = zip(*((found[at][0].source, found[at][1]) for at in kept), strict=True)
            desk.record(Recalled(sources, scores))
            at = heard.first if self.place == "start" else heard.newest
            return context.sending(history[:at] + Messages.of((message,)) + history[at:])

        return view

    def _best(self, store: FactStore, context: list[str]) -> list[tuple[StatedFact, float]]:
        """The facts of the highest scores, best first, as many as can fit at most; of equal ones the later first."""
        scores = self.similarity * store.similar(context) + self.confidence * store.confidences
        most = min(self.max_tokens // _LEAST, len(scores) if self.limit is None else self.limit)
        places = best(scores, most)
        return [(store.facts[at], score) for at, score in zip(places, scores[places].round(4).tolist(), strict=True)]


class Heard:
    """What the user and the final answers said in a growing history: no tool results, no message that calls tools."""

    __slots__ = ("_spoken", "_turns", "_words", "places")

    def __init__(self, desk: StrategyContext, turns: int) -> None:
        self._spoken, self._turns = Spoken(desk), turns
        self._words: dict[str, tuple[Message, list[str]]] = {}
        self.places: list[int] = []
        """Where these messages are in `said`."""

    def read(self, history: Messages) -> int:
        """Bring the places up to date. Returns how many of the first are as they were."""
        read = self._spoken.read(history)
        same = bisect_left(self.places, read)
        del self.places[same:]
        for at, message in enumerate(self.said[read:], read):
            if message.role == "user" or (message.role == "assistant" and not message.calls):
                self.places.append(at)
        return same

    @property
    def said(self) -> Messages:
        """All messages but the system's."""
        return self._spoken.messages

    @property
    def first(self) -> int:
        """Where in the history the leading system messages end."""
        return self._spoken.place(0)

    @property
    def newest(self) -> int:
        """Where in the history the newest turn begins; the first message that is not the system's if no user spoke."""
        user = next((at for at in reversed(self.places) if self.said[at].role == "user"), 0)
        return self._spoken.place(self._spoken.units.before(user))

    def context(self) -> list[str]:
        """The words of the last turns, in order."""
        recent: list[Message] = []
        turns = 0
        for at in reversed(self.places):
            recent.append(self.said[at])
            turns += self.said[at].role == "user"
            if turns == self._turns:
                break
        known, self._words = self._words, {}
        for message in reversed(recent):
            before = known.get(message.id)
            self._words[message.id] = before if before and before[0] == message else (message, words(message.text))
        return [word for _, said in self._words.values() for word in said]


class FactExtractor:
    """Facts of messages, found once for each."""

    __slots__ = ("_desk", "_found", "_longest", "_with")

    def __init__(self, desk: StrategyContext, rules: Facts) -> None:
        self._desk, self._with = desk, rules
        self._longest = max(1, min(rules.max_fact_tokens, rules.max_tokens // 4))
        self._found: dict[str, tuple[Message, tuple[StatedFact, ...]]] = {}

    def facts(self, said: list[Message]) -> list[StatedFact]:
        """The facts of these messages in order. A model is asked once for all that are new."""
        new = [each for each in said if each.text.strip() and self._found.get(each.id, (None,))[0] != each]
        if new:
            match self._with.extractor:
                case "model":
                    found = self._by_model(new)
                case "offline":
                    found = self._by_rule(new)
                case "recorded":
                    recorded = self._recorded(new)
                    found = self._by_rule(new) if recorded is None else recorded
            for message in new:
                self._found[message.id] = message, tuple(fact for fact in found if fact.source == message.id)
        return [fact for message in said if message.id in self._found for fact in self._found[message.id][1]]

    def _recorded(self, said: list[Message]) -> list[StatedFact] | None:
        found: list[StatedFact] = []
        for message in said:
            stated = self._desk.facts(message)
            if stated is None:
                return None
            found += [StatedFact(self._cut(fact.text), fact.confidence, fact.source) for fact in stated]
        return found

    def _cut(self, text: str) -> str:
        return passages(text, self._longest, 1, self._desk.text_tokens)[0] if text else text

    def _by_model(self, said: list[Message]) -> list[StatedFact]:
        rules = self._with
        try:
            found = asked(self._desk, said, rules.language, rules.max_reply_tokens, rules.summariser)
        except ModelError as error:
            self._desk.record(Failed("facts", str(error), "extracted by rules"))
            return self._by_rule(said)
        return [
            msgspec.structs.replace(fact, text=self._cut(fact.text)) for fact in found[: rules.per_message * len(said)]
        ]

    def _by_rule(self, said: list[Message]) -> list[StatedFact]:
        rules, count = self._with, self._desk.text_tokens
        return [fact for each in said for fact in stated(each, rules.per_message, self._longest, count)]
