"""The acceptance scenarios of design document 004 §7, as conversations: a log of plant records that is gone back to.

    mem_001   messages of some 200 tokens come in one by one: what is sent must stay within its limit
    mem_002   10 000 messages, some 2M tokens; then 1000 questions, 80 % of them about a fifth of the messages
    mem_003   100K tokens of dialogue, to be archived: a personal assistant's, at length

Each record has a number of its own, a few fields, and sentences around them. A question names the number, or quotes a
sentence; its answer stands in that message alone. Before it is put to the assistant it is asked as a probe, whose
evidence is the message. Which fifth is popular is drawn by chance. The sentences are made from forms: a compressor
finds more in them than in what people write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import msgspec

from ..model import Conversation
from . import assistant
from .memory_words import KINDS, WORDS, Words
from .script import Script
from .wording import one

TURNS = {"mem_001": 120, "mem_002": 6_000, "mem_003": 120}
"""User turns, where not told otherwise. Of mem_002's every sixth is a question."""
HOT, HOT_SHARE = 0.2, 0.8
EVERY = 10
"""In mem_001 a probe after so many records."""


class Record(NamedTuple):
    """What one message says."""

    number: str
    fields: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]


def memory(name: str, seed: int, turns: int | None, languages: tuple[str, ...]) -> Iterator[Conversation]:
    """The conversations of a scenario, one a language."""
    make = {"mem_001": _mem_001, "mem_002": _mem_002, "mem_003": _mem_003}[name]
    for language in languages:
        yield make(seed, TURNS[name] if turns is None else turns, language)


def _mem_001(seed: int, turns: int, language: str) -> Conversation:
    rng = Random(f"mem_001 {seed} {language}")
    plant = _Plant(f"mem_001/{language}-{seed}", rng, WORDS[language])
    script, words = plant.script, plant.words
    script.system("\n".join((words.rules, *words.house)))
    for at in range(turns):
        record = plant.report(script.user)
        script.assistant(words.noted.format(number=record.number))
        if at % EVERY == EVERY - 1:
            plant.ask(one(rng, plant.said))
        script.wait(seconds=20 + 60 * rng.random())
    return script.done()


def _mem_002(seed: int, turns: int, language: str) -> Conversation:
    rng = Random(f"mem_002 {seed} {language}")
    plant = _Plant(f"mem_002/{language}-{seed}", rng, WORDS[language])
    script, questions = plant.script, turns // 6
    script.system(plant.words.rules)
    for _ in range(turns - questions):
        plant.report(script.user)
        plant.report(script.assistant)
        script.wait(seconds=20 + 60 * rng.random())
    order = rng.sample(plant.said, len(plant.said))
    hot = max(round(HOT * len(order)), 1)
    for _ in range(questions):
        question, answer = plant.ask(one(rng, order[:hot] if rng.random() < HOT_SHARE else order[hot:]))
        script.user(question)
        script.assistant(answer)
        script.wait(seconds=20 + 60 * rng.random())
    return script.done()


def _mem_003(seed: int, turns: int, language: str) -> Conversation:
    return msgspec.structs.replace(assistant.make(seed, turns, language), id=f"mem_003/{language}-{seed}")


class _Plant:
    """A log that is being written."""

    def __init__(self, name: str, rng: Random, words: Words) -> None:
        language = next(each for each, known in WORDS.items() if known is words)
        self.script = Script(name, language=language, start="2026-03-02T08:00:00")
        self.words, self._rng = words, rng
        self.said: list[tuple[str, Record]] = []
        """The id of each record's message, and what it says."""
        self._sentences: set[str] = set()

    def report(self, say: Callable[[str], str]) -> Record:
        """One record more."""
        rng, words = self._rng, self.words
        number = f"{one(rng, KINDS)}-{10_000 + 7 * len(self.said) + int(7 * rng.random())}"
        chosen = rng.sample(words.fields, 3)
        fields = tuple((field, f"{rng.randint(100, 99_999) / 10:.1f} {unit}") for field, unit in chosen)
        sentences = tuple(self._sentence() for _ in range(words.sentences))
        head = words.head.format(number=number, place=one(rng, words.places), person=one(rng, words.people))
        told = (words.field.format(field=field, value=value) for field, value in fields)
        middle = words.sentences // 2
        text = words.space.join((head, *sentences[:middle], *told, *sentences[middle:]))
        record = Record(number, fields, sentences)
        self.said.append((say(text), record))
        return record

    def ask(self, about: tuple[str, Record]) -> tuple[str, str]:
        """Ask about a record, as a probe. The question, and what the assistant answers."""
        name, record = about
        rng, words = self._rng, self.words
        field, value = one(rng, record.fields)
        form = words.by_number if rng.random() < 0.5 else words.by_quote
        quote = one(rng, record.sentences).rstrip(".。")
        question = form.format(number=record.number, quote=quote, field=field)
        self.script.probe(question, [value], [name], "single_hop")
        return question, words.answer.format(field=field, value=value, number=record.number)

    def _sentence(self) -> str:
        """One that is in no record yet."""
        rng, words = self._rng, self.words
        while True:
            made = one(rng, words.forms).format(
                thing=one(rng, words.things),
                other=one(rng, words.things),
                place=one(rng, words.places),
                person=one(rng, words.people),
                colleague=one(rng, words.people),
                shift=one(rng, words.shifts),
                state=one(rng, words.states),
                count=rng.randint(11, 99),
            )
            if made not in self._sentences:
                self._sentences.add(made)
                return made
