"""Make the logs of design document 004 §7: plant records, and questions about earlier ones.

    mem_001   messages of some 200 tokens are added one by one: the context must stay within its limit
    mem_002   10 000 messages, some 2M tokens; then 1000 questions, 80 % of them about a fifth of the messages

Each record has a unique number, a few fields, and sentences around them. A question names the number, or quotes a
sentence; only that message has its answer. It is asked as a probe, with the message as evidence, before it is put to
the assistant. The popular fifth is drawn by chance. The sentences are made from forms, so they compress better than
texts that people write.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from ..model import Conversation
from .language import LANGUAGES, fill, load, one
from .script import Script

HOT, HOT_SHARE = 0.2, 0.8  # share of the records that are popular, and share of the questions that are about them
EVERY = 10  # records between two probes in mem_001
SENTENCES = {"en": 7, "zh": 6}  # sentences around a record's fields: some 200 tokens with them
PREFIXES = ("INS", "DEL", "REP", "CAL", "AUD", "LOG")  # the starts of record numbers
_SLOTS = dict.fromkeys(("thing", "other"), "things") | {"place": "places"}
_SLOTS |= dict.fromkeys(("person", "colleague"), "people") | {"shift": "shifts", "state": "states"}
"""Slots of the sentences, in the order in which they are drawn, and where their words stand."""


def mem_001(seed: int, turns: int, language: str) -> Conversation:
    """Return a log to which records are added one by one."""
    log = _Log("mem_001", seed, language)
    script, rng = log.script, log.rng
    house = (f"{number}. {rule}" for number, rule in enumerate(log.forms["house rules"] * 5, 1))
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
    log = _Log("mem_002", seed, language)
    script, rng, questions = log.script, log.rng, turns // 6
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


class Record(NamedTuple):
    """Content of one message of the log, and its id."""

    message: str
    number: str
    fields: list[tuple[str, str]]
    sentences: list[str]


class _Log:
    """A log of plant records that is being written."""

    def __init__(self, name: str, seed: int, language: str) -> None:
        self.script = Script(f"{name}/{language}-{seed}", language=language, start="2026-03-02T08:00:00")
        self.rng, self._length = Random(f"{name} {seed} {language}"), SENTENCES[language]
        self._space = LANGUAGES[language].space
        self.forms = load(f"{language}_memory")
        self._words = {"shifts": self.forms["shifts"], "states": self.forms["states"][0].split()}
        for key in ("places", "people", "things"):
            first, second = map(str.split, self.forms[key])
            self._words[key] = [f"{start}{self._space}{end}" for start in first for end in second]
        self.records: list[Record] = []
        self._sentences: set[str] = set()

    def report(self, speak: Callable[[str], str]) -> Record:
        """Write one record more, by a method of the script, and return it."""
        rng = self.rng
        number = f"{one(rng, PREFIXES)}-{10_000 + 7 * len(self.records) + int(7 * rng.random())}"
        units = [line.split() for line in rng.sample(self.forms["fields with units"], 3)]
        fields = [(name, f"{rng.randint(100, 99_999) / 10:.1f} {unit}") for name, unit in units]
        sentences = [self._sentence() for _ in range(self._length)]
        place, person = one(rng, self._words["places"]), one(rng, self._words["people"])
        head = self.form("head", number=number, place=place, person=person)
        values = [self.form("field", field=name, value=value) for name, value in fields]
        middle = self._length // 2
        text = self._space.join((head, *sentences[:middle], *values, *sentences[middle:]))
        self.records.append(Record(speak(text), number, fields, sentences))
        return self.records[-1]

    def ask(self, record: Record) -> tuple[str, str]:
        """Ask about a record, as a probe; return the question and what the assistant answers."""
        field, value = one(self.rng, record.fields)
        form = "question by number" if self.rng.random() < 0.5 else "question by quote"
        quote = one(self.rng, record.sentences).rstrip(".。")
        question = self.form(form, number=record.number, quote=quote, field=field)
        self.script.probe(question, [value], [record.message], "single_hop")
        return question, self.form("answer", field=field, value=value, number=record.number)

    def form(self, key: str, **facts: str) -> str:
        """Return the form of a key with its slots filled."""
        return fill(self.forms[key][0], lambda options: one(self.rng, options), facts.__getitem__)

    def _sentence(self) -> str:
        """Return a sentence that is in no record yet."""
        while True:
            form = one(self.rng, self.forms["sentences"])
            facts = {slot: one(self.rng, self._words[key]) for slot, key in _SLOTS.items()}
            facts["count"] = str(self.rng.randint(11, 99))
            sentence = fill(form, lambda options: one(self.rng, options), facts.__getitem__)
            if sentence not in self._sentences:
                self._sentences.add(sentence)
                return sentence
