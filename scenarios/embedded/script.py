"""Write a scenario: messages with ids and a clock, the pauses between turns, and the probes.

script = Script("docs_qa/en-1", language="en", start="2026-03-02T09:00:00")
script.system("You answer from the documentation …")
fact = script.user("How long are audit logs kept?")
page = script.tool_call("search_docs", {"query": "audit log retention"}, result=long_text)
script.assistant("Audit logs are kept for 400 days.")
script.wait(hours=2)
script.probe("For how many days are audit logs kept?", ["400 days", "400"], [page], "single_hop")
conversation = script.done()
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import pow
from random import Random
from typing import NamedTuple

import msgspec

from ..model import Conversation, Message, Probe, Role, Scalar, Tool, ToolCall

CATEGORIES = ("single_hop", "multi_hop", "temporal", "updated_fact", "unanswerable", "preference")
"""Kinds of probe that embedded scenarios have."""


class Script:
    """Conversation being written. Every method that adds a message returns its id."""

    def __init__(
        self,
        name: str,
        *,
        language: str,
        start: str,
        tools: Sequence[Tool] = (),
        speakers: Mapping[Role, str] | None = None,
    ) -> None:
        """Start a conversation at an ISO time in UTC; `name` becomes its id. `speakers` have names, by role."""
        self._speakers = dict(speakers or {})
        self._name, self._language, self._tools = name, language, tuple(tools)
        self._now = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
        self._messages: list[Message] = []
        self._probes: list[Probe] = []
        self._computed: list[str] = []
        self._calls = 0
        self._meta: dict[str, Scalar] = {}

    @property
    def now(self) -> datetime:
        """Return the script's clock, in UTC."""
        return datetime.fromtimestamp(self._now, UTC)

    def __len__(self) -> int:
        """Return the number of messages so far."""
        return len(self._messages)

    def wait(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let time pass. Five minutes and an hour are the lifetimes of common prompt caches."""
        self._now += seconds + 60 * minutes + 3600 * hours + 86400 * days

    def until(self, moment: str) -> None:
        """Let time pass until an ISO time in UTC. Raises ValueError if it is over."""
        target = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
        if target < self._now:
            raise ValueError(f"it is already {self.now.isoformat()}, after {moment}")
        self._now = target

    def system(self, text: str) -> str:
        """Add a system message."""
        return self._say("system", text, 0)

    def user(self, text: str) -> str:
        """Add a user's message. The time before it grows with its length."""
        return self._say("user", text, 20 + len(text) / 12)

    def assistant(self, text: str, calls: Sequence[ToolCall] = ()) -> str:
        """Add an assistant's message: one model call, as long as its text takes to generate."""
        return self._say("assistant", text, 1.5 + len(text) / 250, calls=tuple(calls))

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolCall:
        """Return a tool call with an id of its own, for `assistant(…, calls=[…])`."""
        self._calls += 1
        text = msgspec.json.encode(dict(arguments)).decode()
        return ToolCall(id=f"call_{self._calls:04d}", name=name, arguments=text)

    def result(self, call: ToolCall, text: str) -> str:
        """Add the result of a tool call."""
        return self._say("tool", text, 0.4 + len(text) / 50_000, answers=call.id, name=call.name)

    def tool_call(self, name: str, arguments: Mapping[str, object], result: str, saying: str = "") -> str:
        """Let the assistant call one tool and get its result; return the id of the result's message."""
        call = self.call(name, arguments)
        self.assistant(saying, [call])
        return self.result(call, result)

    def probe(
        self,
        question: str,
        answers: Sequence[str],
        evidence: Sequence[str],
        category: str,
        *,
        after: str | None = None,
        computed: bool = False,
    ) -> None:
        """Ask a question with its gold after the message `after` (default: the last one).

        For `category="unanswerable"` there are no answers and no evidence. The answer of a `computed` probe (a sum, a
        number of days) is worked out from the evidence; every other answer stands in it word for word. The ids of
        computed probes are in `meta["computed_probes"]`, with spaces between them, where there are any.

        Raises ValueError for a category that is not in CATEGORIES, and for gold that does not go with it.
        """
        if category not in CATEGORIES:
            raise ValueError(f"unknown category {category!r}: use one of {CATEGORIES}")
        answerable = category != "unanswerable"
        if answerable != bool(answers) or answerable != bool(evidence):
            raise ValueError(f"{question!r}: answers and evidence go with every category but 'unanswerable'")
        name = f"p{len(self._probes)}"
        if computed:
            self._computed.append(name)
            self.note("computed_probes", " ".join(self._computed))
        self._probes.append(
            Probe(
                id=name,
                question=question,
                answers=tuple(answers),
                evidence=tuple(evidence),
                category=category,
                after=after if after is not None else self._messages[-1].id,
                answerable=answerable,
                time=self._now,
            )
        )

    def note(self, key: str, value: Scalar) -> None:
        """Set a value of `Conversation.meta`."""
        self._meta[key] = value

    def done(self) -> Conversation:
        """Return the finished conversation."""
        return Conversation(
            id=self._name,
            messages=tuple(self._messages),
            tools=self._tools,
            probes=tuple(self._probes),
            source=f"embedded:{self._name}",
            licence="Apache-2.0",
            language=self._language,
            meta=self._meta,
        )

    def _say(
        self,
        role: Role,
        text: str,
        seconds: float,
        calls: tuple[ToolCall, ...] = (),
        answers: str | None = None,
        name: str = "",
    ) -> str:
        self._now += round(seconds, 3)
        message = Message(
            id=f"m{len(self._messages)}",
            role=role,
            text=text,
            calls=calls,
            answers=answers,
            name=name or self._speakers.get(role, ""),
            time=round(self._now, 3),
        )
        self._messages.append(message)
        return message.id


# Quantiles of the pauses in seconds, between those of two groups of recorded agent sessions (decision 35): there, half
# are shorter than 50 and 129 s, nine in ten than 290 and 1,949 s. One in twenty is hours or longer.
_PAUSES = (
    (0.0, 3.0),
    (0.1, 15.0),
    (0.25, 40.0),
    (0.5, 95.0),
    (0.75, 320.0),
    (0.9, 1200.0),
    (0.95, 7200.0),
    (1.0, 1.3e5),
)


class Pauses:
    """Pauses between turns, as long as those of people who work with agents. Nobody works at night."""

    def __init__(self, script: Script, rng: Random) -> None:
        self._script, self._rng = script, rng

    def pause(self) -> bool:
        """Let some time pass; return whether the next turn is on another day."""
        before = self._script.now.date()
        quantiles, seconds = zip(*_PAUSES, strict=True)
        at = self._rng.random()
        place = bisect(quantiles, at)
        # Linear in the logarithm: half way from 40 to 95 s are 62 s, not 68.
        share = (at - quantiles[place - 1]) / (quantiles[place] - quantiles[place - 1])
        self._script.wait(seconds=seconds[place - 1] * pow(seconds[place] / seconds[place - 1], share))
        if not 7 <= self._script.now.hour < 20:
            days = int(self._script.now.hour >= 20)
            morning = (self._script.now + timedelta(days=days)).replace(hour=7, minute=40, second=0, microsecond=0)
            self._script.until(f"{morning + timedelta(minutes=self._rng.randint(0, 100)):%Y-%m-%dT%H:%M:%S}")
        return self._script.now.date() != before


_QUIZ_SHARES: Mapping[str, float] = {
    "single_hop": 0.28,
    "multi_hop": 0.18,
    "temporal": 0.18,
    "updated_fact": 0.18,
    "unanswerable": 0.18,
}


def size(turns: int) -> int:
    """Return the number of probes for a conversation of so many user turns: 11 at 12 turns, 26 at 100, 60 at most."""
    return round(min(60, 11 * pow(turns / 12, 0.4)))


class _Question(NamedTuple):
    category: str
    text: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...]
    about: frozenset[str]
    computed: bool


class Quiz:
    """Probes of one script, each asked some turns after its facts: at once, soon, or much later.

    The quiz takes as many questions per category as the length of the conversation calls for, spread over it. A
    generator either looks whether it `wants` a question and has it asked, or offers all that it has and leaves the
    choice to the quiz. When a fact changes, `forget` withdraws the questions about it that are not asked yet.
    """

    def __init__(self, script: Script, rng: Random, turns: int) -> None:
        self._script, self._rng, self._turns, self._turn = script, rng, turns, 0
        self._wanted = {category: max(1, round(share * size(turns))) for category, share in _QUIZ_SHARES.items()}
        self._taken = dict.fromkeys(_QUIZ_SHARES, 0)
        self._offers: list[_Question] = []
        self._waiting: list[tuple[int, _Question]] = []
        self._texts: set[str] = set()

    def wants(self, category: str) -> bool:
        """Return whether another probe of this category is due by now."""
        taken, wanted = self._taken[category], self._wanted[category]
        # No more than one ahead of an even spread over the conversation.
        return taken < wanted and taken <= 1 + wanted * (self._turn + 1) / self._turns

    def ask(
        self,
        category: str,
        question: str,
        answers: Sequence[str] = (),
        evidence: Sequence[str] = (),
        *,
        computed: bool = False,
    ) -> None:
        """Ask a question at the end of the present turn or of a later one, unless it has been asked already.

        The answer of a `computed` question is worked out from the evidence.
        """
        self._schedule(_question(category, question, answers, evidence, (), computed))

    def offer(
        self,
        category: str,
        question: str,
        answers: Sequence[str],
        evidence: Sequence[str],
        *,
        about: Sequence[str] = (),
        computed: bool = False,
    ) -> None:
        """Offer a question, which is asked if one of its category is wanted when the turn is over."""
        self._offers.append(_question(category, question, answers, evidence, about, computed))

    def forget(self, about: str) -> None:
        """Withdraw the questions about a fact, because it has changed; others may take their places."""
        self._offers = [question for question in self._offers if about not in question.about]
        for _, question in self._waiting:
            if about in question.about:
                self._taken[question.category] -= 1
                self._texts.remove(question.text)
        self._waiting = [(turn, question) for turn, question in self._waiting if about not in question.about]

    def turn_over(self) -> None:
        """Take the offers that are wanted, and ask the probes that are due after this turn."""
        # In a random order: else a turn's first offer would always be the one that is taken.
        for question in self._rng.sample(self._offers, len(self._offers)):
            if self.wants(question.category):
                self._schedule(question)
        self._offers.clear()
        due = [question for turn, question in self._waiting if turn <= self._turn]
        self._waiting = [(turn, question) for turn, question in self._waiting if turn > self._turn]
        for category, text, answers, evidence, _, computed in due:
            self._script.probe(text, answers, evidence, category, computed=computed)
        self._turn += 1

    def _schedule(self, question: _Question) -> None:
        if question.text in self._texts:
            return
        self._texts.add(question.text)
        left = max(0, self._turns - 1 - self._turn)
        # At once, soon, at any time, at the end. All are drawn, whichever is taken: a draw less, or in another order,
        # makes another conversation of the same seed.
        delay = self._rng.choice((0, min(left, self._rng.randint(1, 4)), self._rng.randint(0, left), left))
        self._taken[question.category] += 1
        self._waiting.append((self._turn + delay, question))


def _question(
    category: str,
    text: str,
    answers: Sequence[str],
    evidence: Sequence[str],
    about: Sequence[str],
    computed: bool,
) -> _Question:
    accepted, shown = tuple(dict.fromkeys(answers)), tuple(dict.fromkeys(evidence))
    return _Question(category, text, accepted, shown, frozenset(about), computed)
