"""Two friends write to each other for months: news that one tells the other, and much small talk in between.

What happened is told once, in passing, with a relative day ("last Friday"); some of it changes later, and some of it
happens to both of them, each in another way. The questions at the end use other words than the messages, name people
by what they did, and ask for what nobody said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from math import ceil
from random import Random
from typing import Any, NamedTuple

from ...model import Conversation
from ..forms import one, other_than_last, say, table
from ..script import CATEGORIES, Script

TURNS_PER_SESSION = (8, 20)
"""Fewest and most user turns of one meeting."""
SECONDS_BETWEEN = (3.6, 1.0)
"""Mean and deviation of the logarithm of the seconds that pass before the next message."""
DAYS_APART = (2, 3, 5, 7, 9, 12, 16, 24)
BOTH = 0.25
"""Share of the events that happen to both friends: only the name tells them apart."""
TURNS_PER_EVENT = 7
PROBES_PER_EVENT = 0.6


@dataclass(slots=True)
class Happening:
    """Event of one person: the day it was, the values that it has had, and the messages that say so."""

    event: Mapping[str, Any]
    who: str
    day: date = date.min
    values: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


class News(NamedTuple):
    """Plan to tell of a happening, or that it has changed, from a turn on."""

    turn: int
    happening: Happening


class FriendsQuestion(NamedTuple):
    """Question that can be asked as a probe."""

    text: str
    answers: Sequence[str] = ()
    evidence: Sequence[str] = ()
    is_computed: bool = False


@cache
def _texts(language: str) -> dict[str, Any]:
    tables = (table(__package__, f"{language}_talk"), table(__package__, f"{language}_events"))
    return {**tables[0], **tables[1], **table(__package__, "people")[language]}


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation of `turns` user turns, in "en" or "zh": the same arguments give the same bytes."""
    rng = Random(f"friends/{seed}/{language}")
    texts = _texts(language)
    user, assistant = rng.sample(texts["people"], 2)
    start = date(2025, 1, 6) + timedelta(days=rng.randrange(300))
    script = Script(
        f"friends/{language}-{seed}-{turns}",
        language=language,
        start=f"{start}T{rng.randint(7, 20):02d}:30:00",
        speakers={"user": user, "assistant": assistant},
    )
    friends = Friends(script, rng, texts, user, assistant)
    friends.write(turns)
    friends.ask(ceil(PROBES_PER_EVENT * len(friends.happenings)))
    return script.done()


class Friends:
    """The two friends, what they have told each other, and what they still have to tell."""

    def __init__(self, script: Script, rng: Random, texts: Mapping[str, Any], user: str, assistant: str) -> None:
        self.script, self.rng, self.texts, self.user, self.assistant = script, rng, texts, user, assistant
        self.happenings: list[Happening] = []
        self._last: dict[str, str] = {}
        self._talks: list[Mapping[str, Any]] = []

    def write(self, turns: int) -> None:
        """Write so many user turns: meetings, days apart, with news spread evenly over them."""
        self.script.system(self._say("system", a=self.user, b=self.assistant))
        news, turn, end = self._news(turns), 0, 0
        while turn < turns:
            left = turns - turn
            if turn >= end:
                if turn:
                    self._days_pass()
                end = min(turns, turn + self.rng.randint(*TURNS_PER_SESSION))
                if left > 1:
                    self._turn("hello", "hello_back")
                    turn, left = turn + 1, left - 1
            if news and news[0].turn <= turn:
                turn += self._pass_on(news.pop(0).happening, left)
            else:
                turn += 1
                if turn == end:
                    self._turn("bye", "bye_back")
                else:
                    self._small_talk()
            self.script.wait(seconds=self.rng.lognormvariate(*SECONDS_BETWEEN))

    def ask(self, count: int) -> None:
        """Ask so many questions, each category in turn, at the end of the conversation."""
        questions = {category: self._questions(category) for category in CATEGORIES}
        for options in questions.values():
            self.rng.shuffle(options)
        while count > 0 and any(questions.values()):
            for category in CATEGORIES:
                if questions[category] and count > 0:
                    text, answers, evidence, is_computed = questions[category].pop()
                    self.script.probe(text, answers, evidence, category, computed=is_computed)
                    count -= 1

    def _questions(self, category: str) -> list[FriendsQuestion]:
        """Return all questions of a category; those about who did what never concern what both did."""
        match category:
            case "single_hop":
                return [*self._facts(), *self._people()]
            case "multi_hop":
                return list(self._described())
            case "temporal":
                return [*self._days(), *self._versions("before", 0)]
            case "updated_fact":
                return list(self._versions("now", -1))
            case "unanswerable":
                return [*self._never(), *self._mistaken()]
            case _:
                return []

    def _text(self, happening: Happening, key: str, who: str = "") -> str:
        return self._sentence(say(self.rng, one(self.rng, happening.event[key]), {"who": who or happening.who}))

    def _facts(self) -> Iterator[FriendsQuestion]:
        for happening in self.happenings:
            if "change" not in happening.event:
                yield FriendsQuestion(
                    self._text(happening, "what"), _spellings(happening.values[0]), happening.messages
                )

    def _alone(self) -> list[Happening]:
        return [one for one in self.happenings if [other.event for other in self.happenings].count(one.event) == 1]

    def _people(self) -> Iterator[FriendsQuestion]:
        names = {"a": self.user, "b": self.assistant}
        for happening in self._alone():
            clue = {**names, "clue": happening.event["clue"]}
            text = say(self.rng, one(self.rng, self.texts["which"]), clue)
            # The name is who wrote the message: it does not stand in it.
            yield FriendsQuestion(text, [happening.who], happening.messages[:1], is_computed=True)

    def _described(self) -> Iterator[FriendsQuestion]:
        """Name a person by something that they did, and ask for something else."""
        for happening in self.happenings:
            others = [other for other in self._alone() if other.who == happening.who and other is not happening]
            if others and "change" not in happening.event:
                other = one(self.rng, others)
                who = say(self.rng, self.texts["one_who"], {"clue": other.event["clue"]})
                evidence = [*other.messages[:1], *happening.messages]
                yield FriendsQuestion(self._text(happening, "what", who), _spellings(happening.values[0]), evidence)

    def _days(self) -> Iterator[FriendsQuestion]:
        for happening in self.happenings:
            day, months = happening.day, self.texts["months"]
            facts = {"day": str(day.day), "month": months[day.month - 1], "year": str(day.year)}
            answers = [say(self.rng, self.texts["date"], facts), day.isoformat()]
            yield FriendsQuestion(self._text(happening, "when"), answers, happening.messages[:1], is_computed=True)

    def _versions(self, key: str, at: int) -> Iterator[FriendsQuestion]:
        for happening in self.happenings:
            if len(happening.values) > 1:
                evidence = [happening.messages[at]]
                yield FriendsQuestion(self._text(happening, key), _spellings(happening.values[at]), evidence)

    def _never(self) -> Iterator[FriendsQuestion]:
        for happening in self.happenings:
            yield FriendsQuestion(self._text(happening, "never"))

    def _mistaken(self) -> Iterator[FriendsQuestion]:
        """Ask of one friend what the other one did."""
        for happening in self._alone():
            other = self.user if happening.who == self.assistant else self.assistant
            yield FriendsQuestion(self._text(happening, "what", other))

    def _news(self, turns: int) -> list[News]:
        """Plan who tells what, and when. News that changes comes up again in the later half."""
        rng, plan = self.rng, []
        for event in rng.sample(self.texts["events"], min(len(self.texts["events"]), 1 + turns // TURNS_PER_EVENT)):
            people = [self.user, self.assistant]
            rng.shuffle(people)
            # News that changes happens to one of them only: else one would have to ask whose changed.
            is_both = "change" not in event and rng.random() < BOTH
            for who in people[: 1 + is_both]:
                happening = Happening(event, who)
                # What changes is told in the first half, so that it can come up again; and nothing is told at the very
                # end.
                plan.append(News(int(turns * rng.random() * (0.5 if "change" in event else 0.95)), happening))
                if "change" in event:
                    plan.append(News(int(turns * rng.uniform(0.55, 0.95)), happening))
        return sorted(plan, key=lambda news: news.turn)

    def _pass_on(self, happening: Happening, left: int) -> int:
        """Let a friend tell the news, the first time or that it has changed; return how many user turns that took.

        The assistant tells it when asked, and is asked on if more than one user turn is left.
        """
        event = happening.event
        value = one(self.rng, [value for value in event["values"] if value not in self._values_of(event)])
        facts, told, back = {"value": value}, one(self.rng, event["tell"]), one(self.rng, event["back"])
        if happening.values:
            told = self._say("again") + self.texts["joint"] + one(self.rng, event["change"])
            back = one(self.rng, self.texts["so"])
        else:
            facts["ago"], happening.day = self._recent_day()
            self.happenings.append(happening)
        happening.values.append(value)
        text, answer = say(self.rng, told, facts), say(self.rng, back, {})
        if happening.who == self.user:
            happening.messages.append(self.script.user(text))
            self.script.assistant(answer + self.texts["joint"] + self._line(self._talk(), "open"))
            return 1
        self.script.user(self._say("ask"))
        happening.messages.append(self.script.assistant(text))
        if left == 1:
            return 1
        self.script.wait(seconds=self.rng.lognormvariate(*SECONDS_BETWEEN))
        self.script.user(answer + self.texts["joint"] + self._say("more"))
        self.script.assistant(self._say("more_back") + self.texts["joint"] + self._line(self._talk(), "open"))
        return 2

    def _values_of(self, event: Mapping[str, Any]) -> set[str]:
        return {value for other in self.happenings if other.event is event for value in other.values}

    def _small_talk(self) -> None:
        talks = [self._talk() for _ in range(self.rng.choice((1, 2, 2, 3)))]
        for part, write in (("open", self.script.user), ("back", self.script.assistant)):
            write(self.texts["joint"].join(self._line(talk, part) for talk in talks))

    def _line(self, talk: Mapping[str, Any], part: str) -> str:
        return self._sentence(say(self.rng, one(self.rng, talk[part]), self._slots()))

    def _talk(self) -> Mapping[str, Any]:
        if not self._talks:
            self._talks = self.rng.sample(self.texts["talk"], len(self.texts["talk"]))
        return self._talks.pop()

    def _turn(self, opening: str, answer: str) -> None:
        self.script.user(self._say(opening, other=self.assistant))
        self.script.assistant(self._say(answer, other=self.user))

    def _days_pass(self) -> None:
        self.script.wait(days=one(self.rng, DAYS_APART), hours=self.rng.uniform(-3, 3))
        if not 7 <= self.script.now.hour < 22:
            self.script.wait(hours=9)

    def _recent_day(self) -> tuple[str, date]:
        """Return how one speaks of a day of the last week, and the day."""
        today, texts = self.script.now.date(), self.texts
        ago = self.rng.randint(1, 6)
        day = today - timedelta(days=ago)
        # A day of last week that is also the nearest of its name: nobody can mistake it.
        if ago > 2 and day.weekday() > today.weekday():
            return say(self.rng, texts["last"], {"weekday": texts["weekdays"][day.weekday()]}), day
        if ago == 1 or self.rng.random() < 0.5:
            return texts["yesterday"], today - timedelta(days=1)
        return texts["day_before"], today - timedelta(days=2)

    def _slots(self) -> dict[str, str]:
        names = ("show", "food", "place", "chore", "mood")
        slots = {name: one(self.rng, self.texts[f"{name}s"]) for name in names}
        return {**slots, "person": one(self.rng, self.texts["people_around"])}

    def _say(self, key: str, **facts: str) -> str:
        return self._sentence(say(self.rng, other_than_last(self.rng, self.texts[key], self._last, key), facts))

    def _sentence(self, text: str) -> str:
        return text[:1].upper() + text[1:]


def _spellings(value: str) -> list[str]:
    """Return the accepted answers for a value: as it was said, and without its article."""
    bare = value.removeprefix("the ").removeprefix("an ").removeprefix("a ")
    return [value] if bare == value else [value, bare]
