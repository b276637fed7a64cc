"""Make logs of a water works, of any length: conversations in which each message is unlike all others.

    load      an assistant keeps the log with tools: records come in, are corrected, searched and asked about
    mem_001   messages of some 200 tokens are added one by one: the context must stay within its limit (004 §7)
    mem_002   10 000 messages, some 2M tokens; then 1000 questions, 80 % of them about a fifth of the messages (004 §7)

Each record has a unique number, a few fields, and sentences around them. A question names the number, or quotes a
sentence; only that message has its answer. It is asked as a probe, with the message as evidence. In `mem_002` it is
then put to the assistant, and the popular fifth is drawn by chance. The sentences are made from the forms of
`data/log_<language>.toml`, so they compress better than texts that people write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import sqrt
from random import Random
from string import Template
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..files import shipped
from ..model import Conversation, Message, Probe, Role, Tool, ToolCall

T = TypeVar("T")

HOT, HOT_SHARE = 0.2, 0.8  # share of the records that are popular, and share of the questions that are about them
EVERY = 10  # records between two probes in mem_001
SENTENCES = {"en": 7, "zh": 6}  # sentences around a record's fields: some 200 tokens with them
PREFIXES = ("INS", "DEL", "REP", "CAL", "AUD", "LOG")  # the starts of record numbers
REPORTED, CORRECTED = 0.5, 0.15  # shares of the user's turns of `load`; the others ask for a record
MATCHES = 6  # records that a search finds, beside the one that is asked for
BREAK, HOUR = 0.1, 3600.0  # share of the turns of `load` before which the user is away, for up to twelve hours
START = datetime(2026, 3, 2, 8, tzinfo=UTC).timestamp()
_SPACES = {"en": " ", "zh": ""}  # text between two sentences, and between two words of a name
_SLOTS = dict.fromkeys(("thing", "other"), "things") | {"place": "places"}
_SLOTS |= dict.fromkeys(("person", "colleague"), "people") | {"shift": "shifts", "state": "states"}
"""Slots of the sentences, in the order in which they are drawn, and where their words stand."""


def mem_001(seed: int, turns: int, language: str) -> Conversation:
    """Return a log to which records are added one by one."""
    log = _Log(f"mem_001/{language}-{seed}", f"mem_001 {seed} {language}", language)
    house = (f"{number}. {rule}" for number, rule in enumerate(log.forms["house_rules"] * 5, 1))
    log.system("\n".join((log.form("system"), *house)))
    for turn in range(turns):
        record = log.report(log.user)
        log.assistant(log.form("receipt", number=record.number))
        if turn % EVERY == EVERY - 1:
            log.ask(one(log.rng, log.records))
        log.wait()
    return log.done()


def mem_002(seed: int, turns: int, language: str) -> Conversation:
    """Return a log of records, and the questions that follow: every sixth user turn."""
    log = _Log(f"mem_002/{language}-{seed}", f"mem_002 {seed} {language}", language)
    rng, questions = log.rng, turns // 6
    log.system(log.form("system"))
    for _ in range(turns - questions):
        log.report(log.user)
        log.report(log.assistant)
        log.wait()
    records = rng.sample(log.records, len(log.records))
    hot = max(round(HOT * len(records)), 1)
    for _ in range(questions):
        question, answer = log.ask(one(rng, records[:hot] if rng.random() < HOT_SHARE else records[hot:]))
        log.user(question)
        log.assistant(answer)
        log.wait()
    return log.done()


def load(seed: int, turns: int, language: str) -> Conversation:
    """Return a log that an assistant keeps with tools, and questions all along it, each category in turn."""
    log = _Log(f"load/{language}-{seed}-{turns}", f"load {seed} {language}", language, tools=True)
    rng, asked = log.rng, 0
    log.system(log.form("system"))
    questions = min(60, max(1, round(2 * sqrt(turns))))
    for turn in range(1, turns + 1):
        task = rng.random()
        if turn == 1 or task < REPORTED:
            record = log.report(log.user)
            log.assistant(log.form("receipt", number=record.number))
        elif task < REPORTED + CORRECTED:
            log.correct(one(rng, log.records))
        else:
            log.look_up(one(rng, log.records))
        while asked < questions * turn // turns:
            log.probe(asked)
            asked += 1
        log.wait(BREAK)
    return log.done()


def one(rng: Random, options: Sequence[T]) -> T:
    """Return one of the options: `Random.choice`, but twice as fast."""
    return options[int(rng.random() * len(options))]


class Record(NamedTuple):
    """Content of one message of the log, and its id."""

    message: str
    text: str
    number: str
    fields: list[tuple[str, str]]  # without those that were corrected
    sentences: list[str]


class Correction(NamedTuple):
    """The value that a field of a record has from a message on."""

    record: Record
    field: str
    value: str
    message: str


class _Log:
    """A log of plant records that is being written."""

    def __init__(self, name: str, seed: str, language: str, *, tools: bool = False) -> None:
        self.forms = shipped(f"log_{language}")
        offered = [Tool(tool, about, '{"type":"object"}') for tool, about in self.forms["tools"].items()]
        self._name, self._language, self._tools = name, language, tuple(offered if tools else ())
        self.rng, self._length, self._space = Random(seed), SENTENCES[language], _SPACES[language]
        self._messages: list[Message] = []
        self._probes: list[Probe] = []
        self._now, self._calls = START, 0
        self._words = {"shifts": self.forms["shifts"], "states": self.forms["states"].split()}
        for key in ("places", "people", "things"):
            first, second = map(str.split, self.forms[key])
            self._words[key] = [f"{start}{self._space}{end}" for start in first for end in second]
        self._sentence_forms = list(map(Template, self.forms["sentences"]))
        self.records: list[Record] = []
        self._corrections: list[Correction] = []
        self._sentences: set[str] = set()

    def wait(self, away: float = 0.0) -> None:
        """Let a minute or so pass, and hours with a chance of `away`: caches live for five minutes, or an hour."""
        seconds = 20 + 60 * self.rng.random()
        if away and self.rng.random() < away:
            seconds += 12 * HOUR * self.rng.random()
        self._now += seconds

    def system(self, text: str) -> str:
        """Add the system message, and return its id, as do all that add a message."""
        return self._say("system", text, 0)

    def user(self, text: str) -> str:
        """Add a user's message. The time before it grows with its length."""
        return self._say("user", text, 20 + len(text) / 12)

    def assistant(self, text: str, *calls: ToolCall) -> str:
        """Add an assistant's message: one model call, as long as its text takes to generate."""
        return self._say("assistant", text, 1.5 + len(text) / 250, calls=calls)

    def done(self) -> Conversation:
        """Return the finished conversation."""
        return Conversation(
            self._name,
            tuple(self._messages),
            self._tools,
            probes=tuple(self._probes),
            source=f"embedded:{self._name}",
            licence="Apache-2.0",
            language=self._language,
        )

    def _say(self, role: Role, text: str, seconds: float, **fields: Any) -> str:
        self._now += round(seconds, 3)
        message = Message(f"m{len(self._messages)}", role, text, time=round(self._now, 3), **fields)
        self._messages.append(message)
        return message.id

    def report(self, speak: Callable[[str], str]) -> Record:
        """Write one record more, as what somebody says, and return it."""
        rng = self.rng
        number = f"{one(rng, PREFIXES)}-{10_000 + 7 * len(self.records) + int(7 * rng.random())}"
        fields = [(name, self._value(unit)) for name, unit in self._some_fields(3)]
        sentences = [self._sentence() for _ in range(self._length)]
        place, person = one(rng, self._words["places"]), one(rng, self._words["people"])
        head = self.form("head", number=number, place=place, person=person)
        values = [self.form("field", field=name, value=value) for name, value in fields]
        middle = self._length // 2
        text = self._space.join((head, *sentences[:middle], *values, *sentences[middle:]))
        self.records.append(Record(speak(text), text, number, fields, sentences))
        return self.records[-1]

    def correct(self, record: Record) -> None:
        """Let the user correct a field of a record, while it has another one, and the assistant change it."""
        if len(record.fields) == 1:
            self.look_up(record)
            return
        field, before = record.fields.pop()
        value = self._value(before.partition(" ")[2])
        message = self.user(self.form("correction", number=record.number, field=field, value=value))
        self._corrections.append(Correction(record, field, value, message))
        self._use("correct_record", {"record": record.number, field: value}, {"status": "ok", "before": before})
        self.assistant(self.form("corrected", number=record.number, field=field, value=value))

    def look_up(self, record: Record) -> None:
        """Let the user ask about a record, and the assistant search for it among others."""
        question, field, value = self._question(record)
        self.user(question)
        found = [record, *self.rng.sample(self.records, min(MATCHES, len(self.records)))]
        self._use("search_log", {"query": question}, list(dict.fromkeys(each.text for each in found)))
        self.assistant(self.form("answer", field=field, value=value, number=record.number))

    def probe(self, number: int) -> None:
        """Ask the number-th question of `load`, as a probe, of a category that the log has by now."""
        category = ("single_hop", "updated_fact", "unanswerable", "multi_hop")[number % 4]
        if category == "unanswerable":  # no record has a number below 10 000
            unknown, ((field, _),) = f"{one(self.rng, PREFIXES)}-{self.rng.randint(1_000, 9_999)}", self._some_fields(1)
            self._probe(self.form("question_by_number", number=unknown, field=field), (), (), category)
        elif category == "single_hop" or not self._corrections:
            self.ask(one(self.rng, self.records))
        else:
            record, field, value, message = one(self.rng, self._corrections)
            is_quoted = category == "multi_hop"  # the record has the sentence, the correction the value
            question = self._asked(record, field, is_quoted)
            self._probe(question, [value], [*[record.message] * is_quoted, message], category)

    def ask(self, record: Record) -> tuple[str, str]:
        """Ask about a record, as a probe; return the question and what the assistant answers."""
        question, field, value = self._question(record)
        self._probe(question, [value], [record.message], "single_hop")
        return question, self.form("answer", field=field, value=value, number=record.number)

    def form(self, key: str, **facts: str) -> str:
        """Return the form of a key with its slots filled."""
        return Template(self.forms[key]).substitute(facts)

    def _question(self, record: Record) -> tuple[str, str, str]:
        """Return a question about a record, and the field and the value that it asks for."""
        field, value = one(self.rng, record.fields)
        return self._asked(record, field, self.rng.random() >= 0.5), field, value

    def _asked(self, record: Record, field: str, is_quoted: bool) -> str:
        """Return the question for a field of a record, by a sentence of it or by its number."""
        quote = one(self.rng, record.sentences).rstrip(".。")
        form = "question_by_quote" if is_quoted else "question_by_number"
        return self.form(form, number=record.number, quote=quote, field=field)

    def _use(self, tool: str, arguments: dict[str, str], result: object) -> None:
        """Let the assistant use a tool."""
        self._calls += 1
        call = ToolCall(f"call_{self._calls:04d}", tool, msgspec.json.encode(arguments).decode())
        self.assistant("", call)
        text = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
        self._say("tool", text, 0.4 + len(text) / 50_000, answers=call.id, name=tool)

    def _probe(self, question: str, answers: Sequence[str], evidence: Sequence[str], category: str) -> None:
        """Ask a question with its gold after the last message; an `unanswerable` one has none."""
        self._probes.append(
            Probe(
                f"p{len(self._probes)}",
                question,
                tuple(answers),
                tuple(evidence),
                category,
                after=self._messages[-1].id,
                answerable=category != "unanswerable",
                time=self._now,
            )
        )

    def _some_fields(self, count: int) -> list[list[str]]:
        """Return the names and units of some fields."""
        return [line.split() for line in self.rng.sample(self.forms["fields_with_units"], count)]

    def _value(self, unit: str) -> str:
        return f"{self.rng.randint(100, 99_999) / 10:.1f} {unit}"

    def _sentence(self) -> str:
        """Return a sentence that is in no record yet."""
        while True:
            form = one(self.rng, self._sentence_forms)
            facts = {slot: one(self.rng, self._words[key]) for slot, key in _SLOTS.items()}
            sentence = form.substitute(facts, count=self.rng.randint(11, 99))
            if sentence not in self._sentences:
                self._sentences.add(sentence)
                return sentence
