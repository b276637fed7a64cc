"""Make the logs of design document 004 §7: plant records, and questions about earlier ones.

    mem_001   messages of some 200 tokens are added one by one: the context must stay within its limit
    mem_002   10 000 messages, some 2M tokens; then 1000 questions, 80 % of them about a fifth of the messages

Each record has a unique number, a few fields, and sentences around them. A question names the number, or quotes a
sentence; only that message has its answer. It is asked as a probe, with the message as evidence, before it is put to
the assistant. The popular fifth is drawn by chance. The sentences are made from forms, so they compress better than
texts that people write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple

from ..model import Conversation
from .forms import Forms, fill, load, one
from .script import Script

HOT, HOT_SHARE = 0.2, 0.8
"""Share of the records that are popular, and share of the questions that are about them."""
EVERY = 10
"""Records between two probes in mem_001."""
SENTENCES = {"en": 7, "zh": 6}
"""Sentences around a record's fields: some 200 tokens with them."""
PREFIXES = ("INS", "DEL", "REP", "CAL", "AUD", "LOG")
"""The starts of record numbers."""


def mem_001(seed: int, turns: int, language: str) -> Conversation:
    """Return a log to which records are added one by one."""
    rng = Random(f"mem_001 {seed} {language}")
    log = _Log(f"mem_001/{language}-{seed}", rng, language)
    script = log.script
    house = (f"{number}. {rule}" for number, rule in enumerate(log.words.forms["house rules"] * 5, 1))
    script.system("\n".join((log.form("system"), *house)))
    for turn in range(turns):
        record = log.report(script.user)
        script.assistant(log.form("receipt", number=record.number))
        if turn % EVERY == EVERY - 1:
            log.ask(one(rng, log.records))
        script.wait(seconds=20 + 60 * rng.random())
    return script.done()


def mem_002(seed: int, turns: int, language: str) -> Conversation:
    """Return a log of records, and the questions that follow: every sixth user turn."""
    rng = Random(f"mem_002 {seed} {language}")
    log = _Log(f"mem_002/{language}-{seed}", rng, language)
    script, questions = log.script, turns // 6
    script.system(log.form("system"))
    for _ in range(turns - questions):
        log.report(script.user)
        log.report(script.assistant)
        script.wait(seconds=20 + 60 * rng.random())
    records = rng.sample(log.records, len(log.records))
    hot = max(round(HOT * len(records)), 1)
    for _ in range(questions):
        question, answer = log.ask(one(rng, records[:hot] if rng.random() < HOT_SHARE else records[hot:]))
        script.user(question)
        script.assistant(answer)
        script.wait(seconds=20 + 60 * rng.random())
    return script.done()


@dataclass(frozen=True, slots=True)
class Words:
    """Forms and words that the records of one language are made of."""

    forms: Forms
    sentences: tuple[str, ...]
    """Forms of sentences."""
    places: tuple[str, ...]
    people: tuple[str, ...]
    things: tuple[str, ...]
    states: tuple[str, ...]
    shifts: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    """Names and units."""
    space: str
    """Text between words, and between sentences."""


@cache
def _words(language: str) -> Words:
    forms, space = load(f"{language}_memory"), "" if language == "zh" else " "

    def pairs(key: str) -> tuple[str, ...]:
        first, second = forms[key]
        return tuple(f"{start}{space}{end}" for start in first.split() for end in second.split())

    return Words(
        forms=forms,
        sentences=forms["sentences"],
        places=pairs("places"),
        people=pairs("people"),
        things=pairs("things"),
        states=tuple(forms["states"][0].split()),
        shifts=forms["shifts"],
        fields=tuple((name, unit) for name, unit in (line.split() for line in forms["fields with units"])),
        space=space,
    )


class Record(NamedTuple):
    """Content of one message of the log, and its id."""

    message: str
    number: str
    fields: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]


class _Log:
    """A log of plant records that is being written."""

    def __init__(self, name: str, rng: Random, language: str) -> None:
        self.script = Script(name, language=language, start="2026-03-02T08:00:00")
        self.words, self._rng, self._length = _words(language), rng, SENTENCES[language]
        self.records: list[Record] = []
        self._sentences: set[str] = set()

    def report(self, speak: Callable[[str], str]) -> Record:
        """Write one record more, by a method of the script, and return it."""
        rng, words = self._rng, self.words
        number = f"{one(rng, PREFIXES)}-{10_000 + 7 * len(self.records) + int(7 * rng.random())}"
        names = rng.sample(words.fields, 3)
        fields = tuple((name, f"{rng.randint(100, 99_999) / 10:.1f} {unit}") for name, unit in names)
        sentences = tuple(self._sentence() for _ in range(self._length))
        head = self.form("head", number=number, place=one(rng, words.places), person=one(rng, words.people))
        values = (self.form("field", field=name, value=value) for name, value in fields)
        middle = self._length // 2
        text = words.space.join((head, *sentences[:middle], *values, *sentences[middle:]))
        record = Record(speak(text), number, fields, sentences)
        self.records.append(record)
        return record

    def ask(self, record: Record) -> tuple[str, str]:
        """Ask about a record, as a probe; return the question and what the assistant answers."""
        rng = self._rng
        field, value = one(rng, record.fields)
        form = "question by number" if rng.random() < 0.5 else "question by quote"
        quote = one(rng, record.sentences).rstrip(".。")
        question = self.form(form, number=record.number, quote=quote, field=field)
        self.script.probe(question, [value], [record.message], "single_hop")
        return question, self.form("answer", field=field, value=value, number=record.number)

    def form(self, key: str, **facts: str) -> str:
        """Return the form of a key with its slots filled."""
        return self._say(self.words.forms[key][0], facts)

    def _sentence(self) -> str:
        """Return a sentence that is in no record yet."""
        rng, words = self._rng, self.words
        while True:
            form = one(rng, words.sentences)
            facts = {
                "thing": one(rng, words.things),
                "other": one(rng, words.things),
                "place": one(rng, words.places),
                "person": one(rng, words.people),
                "colleague": one(rng, words.people),
                "shift": one(rng, words.shifts),
                "state": one(rng, words.states),
                "count": str(rng.randint(11, 99)),
            }
            sentence = self._say(form, facts)
            if sentence not in self._sentences:
                self._sentences.add(sentence)
                return sentence

    def _say(self, form: str, facts: Mapping[str, str]) -> str:
        return fill(form, lambda options: one(self._rng, options), facts.__getitem__)
