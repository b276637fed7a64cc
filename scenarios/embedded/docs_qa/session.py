"""The conversation of docs_qa while it is written: what was asked, what was found, what the user told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec

from ...model import Tool
from ..hours import OfficeHours
from ..quiz import Quiz
from ..script import Script
from .pack import Area, Pack
from .pages import Pages
from .results import Mode, Retriever
from .world import Setting, World, capital

_NOTES = {
    "answer_procedure": "outcome",
    "answer_trouble": "trouble_note",
    "answer_plan": "prereq",
    "answer_step": "step_note",
}
"""Which sentences of the documentation an answer ends with, where it is not just any."""
_COMPUTED = ("probe_sum", "probe_moved")
"""Probes whose answer is worked out: two defaults together, days between two dates."""


class Session:
    """The conversation being written: what was asked, what was found, what the user told."""

    def __init__(self, pack: Pack, rng: Random, name: str, turns: int) -> None:
        start = datetime(2025, 3, 3, 8, 30) + timedelta(days=rng.randrange(300), minutes=rng.randrange(120))
        self.rng, self.pack, self.world = rng, pack, World(pack, rng, start)
        self.pages = Pages(self.world)
        self._retriever = Retriever(self.pages)
        self.script = Script(name, language=pack.language, start=start.isoformat(), tools=[_tool(pack)])
        self.quiz, self.hours = Quiz(self.script, rng, turns), OfficeHours(self.script, rng)
        self._fresh: list[Setting] = []
        self._modes: list[Mode] = []
        self.asked: dict[str, tuple[Setting, str]] = {}
        self.fixed: set[str] = set()
        self.changed: set[str] = set()
        self.procedures: list[tuple[Area, str]] = []
        self.own: list[tuple[Setting, str, str]] = []
        self.plans: list[tuple[str, str, datetime, str]] = []
        self.occasions = [(site, occasion) for site in self.world.sites for occasion in pack.names["occasions"]]
        rng.shuffle(self.occasions)
        named = {"company": self.world.company, "product": self.world.product, "version": self.world.versions[-1][0]}
        self.script.system(pack.system.format(**named))

    def none_probe(self) -> None:
        """Perhaps a question that nothing in the conversation answers."""
        if self.quiz.wants("unanswerable"):
            setting, site = self.rng.choice(self.world.reserved), self.rng.choice(self.world.sites)
            decoy = self.rng.choice(self.pack.names["decoys"])
            question = self.say("probe_none", setting, reserved=setting.key, site=site, decoy=decoy)
            self.quiz.ask("unanswerable", question)

    def search(self, area: Area, query: str, passages: Sequence[str], group: str = "look") -> str:
        """One search whose result holds these passages; returns the id of the result's message."""
        said = self.world.deal(group)
        return self.searches([(area, query, passages)], said)[0]

    def searches(self, wanted: Sequence[tuple[Area, str, Sequence[str]]], saying: str) -> list[str]:
        """Searches in parallel; returns the ids of the results' messages."""
        calls, texts = [], []
        for area, query, passages in wanted:
            mode = self._mode()
            text, count = self._retriever.found(query, mode, area, list(passages))
            asked = {"query": query, "mode": mode, "top_k": -(-count // 5) * 5}
            calls.append(self.script.call("search_docs", asked))
            texts.append(text)
        self.script.assistant(saying, calls)
        return [self.script.result(call, text) for call, text in zip(calls, texts, strict=True)]

    def _mode(self) -> Mode:
        if not self._modes:
            self._modes = ["mix", "local", "local", "naive", "naive", "local"]
            self.rng.shuffle(self._modes)
        return self._modes.pop()

    def next_setting(self) -> Setting:
        """A setting that was not talked about lately."""
        if not self._fresh:
            self._fresh = self.rng.sample(self.world.settings, len(self.world.settings))
        return self._fresh.pop()

    def another(self, setting: Setting, *not_these: str) -> str:
        """Another value that this setting may have, with its unit."""
        values = (f"{value} {setting.aspect.unit}".rstrip() for value in setting.aspect.values)
        return self.rng.choice([value for value in values if value not in not_these])

    def reference(self, setting: Setting) -> str:
        """The passage that gives a setting's default."""
        return self.pages.reference(setting.area, setting.thing)

    def query(self, setting: Setting) -> str:
        """What one would search for to learn about a setting."""
        aspect = setting.aspect.short or setting.aspect.suffix.replace("_", " ")
        return self.say("query", setting, aspect=aspect)

    def facts(self, setting: Setting) -> dict[str, str]:
        """What may be said of a setting."""
        area, thing, value = setting.area, setting.thing, self.world.value(setting)
        question = self.world.clause(setting.aspect.question, area, thing)
        statement = self.world.clause(setting.aspect.statement, area, thing, value=value)
        return {
            "key": setting.key,
            "value": value,
            "value_bold": f"**{value}**",
            "question": question,
            "Question": capital(question),
            "statement": statement,
            "Statement": capital(statement),
            "path": self.pages.path("reference", area, thing),
        }

    def say(self, group: str, setting: Setting, **given: str) -> str:
        """A sentence of the talk about this setting; `given` goes before what is known of it."""
        area, thing = setting.area, setting.thing
        if group.startswith("answer"):
            place = _NOTES.get(group, "note")
            same = {name: given[name] for name in ("site", "person") if name in given}
            notes = [self.world.say(place, area, thing, **same) for _ in range(self.rng.randint(1, 3))]
            given.setdefault("note", self.pack.joint.join(notes))
        return self.world.say(group, area, thing, **(self.facts(setting) | given))

    def probe(
        self, category: str, group: str, setting: Setting, answers: list[str], evidence: list[str], **given: str
    ) -> None:
        """Offer a question with its gold to the quiz."""
        question = self.say(group, setting, **given)
        self.quiz.ask(category, question, answers, evidence, computed=group in _COMPUTED)

    def plan(self, site: str, occasion: str, day: datetime) -> dict[str, str]:
        """How one speaks of something that is planned."""
        return {"site": site, "occasion": occasion, "Occasion": capital(occasion), "date": self.dates(day)[0]}

    def dates(self, day: datetime) -> list[str]:
        """Ways to write a day, the one for running text first."""
        labels = self.pack.labels
        month = labels["months"].split("|")[day.month - 1]
        forms = [labels["date"], *labels["date_also"].split("|")]
        return [form.format(day=day.day, month=month, year=day.year) for form in forms]


def _tool(pack: Pack) -> Tool:
    labels = pack.labels
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": labels["tool_query"]},
            "mode": {"type": "string", "enum": ["mix", "local", "naive"], "description": labels["tool_mode"]},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 200, "description": labels["tool_top_k"]},
        },
        "required": ["query", "mode"],
    }
    return Tool("search_docs", labels["tool"], msgspec.json.encode(schema).decode())
