"""S8, `facts`: the facts that matter now, in a `<memory>` message before the history (design document 002)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from ctxbench.metrics.language import LANGUAGES, SHORT, terms, unread, written_in
from ctxbench.metrics.tfidf import TfIdf, best
from ctxbench.scenarios.model import Fact, Message
from ctxbench.scenarios.spec import NonNegativeFloat, PositiveInt
from ctxbench.scenarios.view import Messages

from .base import Context, Grown, ModelError, StrategyContext, View
from .events import Failed, Recalled
from .parts.fact_extraction import StatedFact, extract_by_model, extract_by_rules
from .parts.language import ConversationLanguage, LanguageSetting
from .parts.memories import NoteMessage, Place
from .parts.passages import passages
from .parts.units import Dialogue

# The design's, the same in both languages.
FORM = dict.fromkeys(LANGUAGES, "<memory>\n{lines}\n</memory>")
# Tokens that a line takes at least: its dash, three words, its end.
_LEAST_LINE = 5
# A message is among the recent ones for several calls.
terms_of_recent = lru_cache(64)(terms)


@dataclass(frozen=True, slots=True)
class Facts:
    """The whole history, with the most relevant facts in a system message after the leading system messages.

    A fact's score is `similarity` · TF-IDF cosine with the recent context + `confidence` · its confidence. The recent
    context is the user's messages and the assistant's final answers of the last `turns` turns: no tool results, no
    message that calls tools. Without any, confidence alone counts. The best facts are sent, best first, as many as fit:
    the message takes at most `max_tokens`, counted exactly. `limit` bounds their number as well.
    `facts(similarity=0, confidence=1, limit=15)` gives the 15 surest facts, the behaviour that the design replaced.

    The strategy only adds, as the design does, so alone it costs tokens. Chain it before a stage that cuts: in
    `facts | window(...)` it reads the whole history, and the window keeps the memory, which is a system message. After
    the window it would know only the messages that the window kept. The memory changes when a turn brings other facts
    to the fore, and then nothing after it is a cached prefix; `place="end"` puts it before the newest turn instead.

    With `extractor="recorded"` the facts are those that the recording states (LoCoMo's observations), known once their
    message has come. Where it states none, or with `extractor="offline"`, rules extract them from user messages and
    final answers, each message once, at most `per_message` of `max_fact_tokens` each (no more than a quarter of
    `max_tokens`). With `extractor="model"` the model `summariser` (empty = the run's) extracts them, one call per turn;
    where it fails, the rules do (Failed). Its prompt is in `language`; "auto" is the user's.

    Rules know English and Chinese (else Failed). What a user quotes, gives to be translated, or commands is no fact. A
    repeated fact is one fact. A later one about the same (the same words with other numbers or dates; another home, job
    or taste of the speaker) takes the place of the earlier one.
    """

    max_tokens: PositiveInt = 2000
    similarity: NonNegativeFloat = 0.6
    confidence: NonNegativeFloat = 0.4
    turns: PositiveInt = 3
    limit: PositiveInt | None = None
    per_message: PositiveInt = 8
    max_fact_tokens: PositiveInt = 60
    place: Place = "start"
    extractor: Literal["recorded", "offline", "model"] = "recorded"
    summariser: str = ""
    max_reply_tokens: PositiveInt = 500
    language: LanguageSetting = "auto"

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the answer is in no extracted fact, or in a tool result; alone it only adds tokens"
    family: ClassVar[str] = "facts"

    def start(self, services: StrategyContext) -> View:
        language = ConversationLanguage(self.language)
        dialogue, note = Dialogue(services), NoteMessage(services, "facts", FORM, language)
        extractor, store = FactExtractor(services, self, language), FactStore()
        answers: list[int] = []  # places in the dialogue of user messages and final answers
        lines: list[str] = []
        ranked: list[tuple[int, float]] = []
        recalled: Recalled | None = None  # the event of these facts, which is the same at each call of the turn

        def view(context: Context) -> Context:
            nonlocal answers, lines, ranked, recalled
            history, before = context.messages, len(answers)
            language.read(history)
            read, messages = dialogue.read(history), dialogue.messages
            same = bisect_left(answers, read)
            del answers[same:]
            answers += [
                at
                for at, message in enumerate(messages[read:], read)
                if message.role == "user" or (message.role == "assistant" and not message.calls)
            ]
            if same < before:
                store.forget()
                same = 0
            if same < len(answers) or before > len(answers):
                store.take(extractor.facts([messages[at] for at in answers[same:]]))
                recent = recent_terms((messages[at] for at in reversed(answers)), self.turns)
                ranked, recalled = self._best(store, recent), None
                lines = [store.lines[number] for number, _ in ranked]
            message, shown = note.of(lines, self.max_tokens, history)
            if message is None:
                return context
            if recalled is None:
                numbers, scores = zip(*(ranked[at] for at in shown), strict=True)
                sources = tuple(store.facts[number].source for number in numbers)
                recalled = Recalled(sources, scores)
            services.record(recalled)
            # After the leading system messages, or before the newest turn; without a user's message there is one turn.
            newest = dialogue.units.before(dialogue.users[-1]) if dialogue.users else 0
            at = dialogue.place(0 if self.place == "start" else newest)
            return context.sending(history[:at] + Messages.of((message,)) + history[at:])

        return view

    def _best(self, store: FactStore, context: list[str]) -> list[tuple[int, float]]:
        """Return as many facts as may fit: their numbers and scores, the best first, of equal ones the later first."""
        superseded = np.asarray(store.superseded).view(np.bool_)
        scores = self.similarity * store.index.cosine(context) + self.confidence * np.asarray(store.confidences)
        scores[superseded] = -np.inf
        current = len(scores) - int(np.count_nonzero(superseded))
        most = min(self.max_tokens // _LEAST_LINE, current if self.limit is None else self.limit, current)
        places = best(scores, most)
        return list(zip(places, scores[places].round(4).tolist(), strict=True))


def recent_terms(answers: Iterable[Message], turns: int) -> list[str]:
    """Return the terms of the last turns, in order, from user messages and final answers, newest first."""
    recent: list[Message] = []
    for message in answers:
        recent.append(message)
        turns -= message.role == "user"
        if not turns:
            break
    return [term for message in reversed(recent) for term in terms_of_recent(message.text)]


class FactExtractor:
    """Extracts the facts of messages, once for each message."""

    def __init__(self, services: StrategyContext, rules: Facts, language: ConversationLanguage) -> None:
        self._services, self._rules, self._language = services, rules, language
        self._longest = max(1, min(rules.max_fact_tokens, rules.max_tokens // 4))
        self._facts: dict[str, tuple[Message, tuple[StatedFact, ...]]] = {}
        self._languages, self._has_failed = Counter[str](), False  # users' languages; whether they were not read

    def facts(self, messages: list[Message]) -> list[StatedFact]:
        """Return the facts of the messages, in order. A model is called once for all new messages."""
        new = [
            message
            for message in messages
            if message.text.strip() and self._facts.get(message.id, (None,))[0] != message
        ]
        facts = self._extract(new) if new else []
        for message in new:
            self._facts[message.id] = message, tuple(fact for fact in facts if fact.source == message.id)
        return [fact for message in messages if message.id in self._facts for fact in self._facts[message.id][1]]

    def _extract(self, messages: list[Message]) -> list[StatedFact]:
        rules, services = self._rules, self._services

        def cut(fact: StatedFact | Fact) -> StatedFact:
            text = passages(fact.text, self._longest, 1, services.text_tokens)[0] if fact.text else fact.text
            return StatedFact(text, fact.confidence, fact.source)

        if rules.extractor == "model":
            language, most = self._language.decided, rules.per_message * len(messages)
            try:
                facts = extract_by_model(services, messages, language, rules.max_reply_tokens, rules.summariser)
                return list(map(cut, facts[:most]))
            except ModelError as error:
                services.record(Failed("facts", str(error), "extracted by rules"))
        if rules.extractor == "recorded":
            stated = [services.facts(message) for message in messages]
            if None not in stated:
                return [cut(fact) for facts_of_message in stated for fact in facts_of_message or ()]
        most, count = rules.per_message, services.text_tokens
        facts = [fact for message in messages for fact in extract_by_rules(message, most, self._longest, count)]
        self._languages.update(written_in(message.text[:SHORT]) for message in messages if message.role == "user")
        if not facts and not self._has_failed and (code := unread(self._languages)):
            self._has_failed = True
            why = f"language: facts are read in English and Chinese, and this is {code}"
            services.record(Failed("language", why, "no facts"))
        return facts


class FactStore:
    """Facts of a conversation in the order of their first mention. A repeated fact is one; an update supersedes it."""

    def __init__(self) -> None:
        # Words, topic and terms of each fact. They outlive `forget`, so that taking a fact in again costs little.
        self._prepared: dict[StatedFact, tuple[str, str, tuple[str, ...]]] = Grown()
        self.forget()

    def forget(self) -> None:
        self.facts: list[StatedFact] = []
        self.lines: list[str] = []  # the line of each fact in the memory
        self.superseded = array("b")  # 1 for a fact that was updated since
        self.confidences = array("d")  # the highest confidence of each fact
        self.index = TfIdf()
        # Number of the fact with these words, and of the latest fact about the same thing.
        self._numbers: dict[str, int] = {}
        self._current: dict[str, int] = {}

    def take(self, facts: Iterable[StatedFact]) -> None:
        documents: list[Sequence[str]] = []
        for fact in facts:
            if fact not in self._prepared:
                self._prepared[fact] = " ".join(fact.words), fact.about, tuple(terms(fact.text))
            # Facts are told apart by all their words: without stop words "is" and "is not" would be one fact.
            fact_words, about, fact_terms = self._prepared[fact]
            if not fact_words:
                continue
            number = self._numbers.setdefault(fact_words, len(self.facts))
            if number == len(self.facts):
                self.facts.append(fact)
                self.lines.append(f"- {fact.text}")
                self.superseded.append(0)
                self.confidences.append(fact.confidence)
                documents.append(fact_terms)
            self.confidences[number] = max(self.confidences[number], fact.confidence)
            if about:
                self.superseded[self._current.get(about, number)] = 1
                self._current[about] = number
            self.superseded[number] = 0
        self.index.add(documents)
