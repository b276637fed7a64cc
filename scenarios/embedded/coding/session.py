"""The coding agent at work: it speaks in the conversation's language, and its tools act on the invented repository."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from ..asking import Questions
from ..script import Script
from ..wording import one, other_than_last, say
from . import speech_en, speech_zh
from .decisions import old_decision
from .module import Constant, Module
from .output import edit_result
from .world import World, found

_NAMES = "January February March April May June July August September October November December"
_MONTHS = tuple(_NAMES.split())


ToolUse = tuple[str, dict[str, object], str]
"""A tool, its arguments, its result."""


class Session:
    """What every kind of turn needs: the script, the world, words in one language, the questions to ask."""

    def __init__(self, rng: Random, script: Script, turns: int, language: str) -> None:
        self.rng, self.script = rng, script
        self.chinese = language == "zh"
        words = speech_zh if self.chinese else speech_en
        self.speech, self.reasons = words.SPEECH, words.REASONS
        self.world: World = found(rng, self.chinese, self.now)
        self.questions = Questions(rng, turns, self._nowhere)
        self.facts: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self.changed: list[tuple[Module, Constant]] = []
        self.renamed = 0
        self.fixed: list[tuple[str, str]] = []
        """Tickets with the messages that show them fixed, oldest first."""
        self.decided = 20 + int(rng.random() * 40)
        past = range(self.decided - 9, self.decided + 1)
        self.decisions = [old_decision(self.world, at, self.now - timedelta(days=9 * (past.stop - at))) for at in past]

    @property
    def now(self) -> datetime:
        """The clock without its zone."""
        return self.script.now.replace(tzinfo=None)

    def words(self, key: str, **facts: str) -> str:
        """Something to say, with the facts of this turn and these."""
        form = other_than_last(self.rng, self.speech[key], self._said, key)
        return say(self.rng, form, self.facts | facts)

    def user(self, key: str) -> str:
        return self.script.user(self._sentence(self.words(key)))

    def says(self, key: str) -> str:
        return self.script.assistant(self._sentence(self.words(key)))

    def tool(self, key: str, name: str, arguments: dict[str, object], result: str) -> str:
        """One call; `key` is what is said with it. Returns the id of the result."""
        saying = self._sentence(self.words(key).strip()) if key else ""
        return self.script.tool_call(name, arguments, result, saying)

    def both(self, key: str, calls: Sequence[ToolUse]) -> list[str]:
        """Several calls in one message, answered in order. Returns the ids of the results."""
        made = [self.script.call(name, arguments) for name, arguments, _ in calls]
        self.script.assistant(self._sentence(self.words(key).strip()), made)
        return [self.script.result(call, result) for call, (_, _, result) in zip(made, calls, strict=True)]

    def edit(self, key: str, module: Module, old: str, new: str) -> str:
        """Edit the module's source, really."""
        module.text = module.text.replace(old, new)
        arguments: dict[str, object] = {"path": module.path, "old": old, "new": new}
        return self.tool(key, "edit_file", arguments, edit_result(module.path, module.text, new))

    def offer(
        self,
        category: str,
        key: str,
        answers: Sequence[str],
        evidence: Sequence[str],
        *,
        about: Sequence[str] = (),
        computed: bool = False,
    ) -> None:
        """A question about the facts of this turn."""
        self.questions.offer(category, self.words(key), answers, evidence, about=about, computed=computed)

    def look_at(self, module: Module) -> None:
        """Put what is known of the module into the facts of this turn."""
        self.facts |= {"name": module.name, "path": module.path, "code": module.code, "Err": module.facts["Err"]}

    def look_at_constant(self, constant: Constant) -> None:
        kind = constant.kind
        self.facts |= {
            "const": constant.name,
            "what": kind.name_zh if self.chinese else kind.name,
            "old": str(constant.value),
            "unit": kind.unit,
            "unit_zh": kind.unit_zh,
        }

    def who(self) -> int:
        """Somebody, put into the facts as `who`."""
        person = self.world.person()
        self.facts["who"] = self.world.people[person][0]
        return person

    def person_answers(self, person: int) -> list[str]:
        """Accepted spellings of a name; the first is as the tools print it."""
        spoken, written = self.world.people[person]
        return [written, spoken] if spoken != written else [written]

    def amount(self, constant: Constant, value: int) -> list[str]:
        """Accepted spellings of a constant's value."""
        kind = constant.kind
        return (
            [str(value), f"{value} {kind.unit_zh}", f"{value}{kind.unit_zh}"]
            if self.chinese
            else [
                str(value),
                f"{value} {kind.unit}",
            ]
        )

    def day(self, when: datetime) -> list[str]:
        """Accepted spellings of a day; the first is as people say it here."""
        if self.chinese:
            return [f"{when.month}月{when.day}日", f"{when:%Y-%m-%d}", f"{when.year}年{when.month}月{when.day}日"]
        month = _MONTHS[when.month - 1]
        return [f"{when.day} {month}", f"{month} {when.day}", f"{when:%Y-%m-%d}"]

    def days_ago(self, low: int, high: int) -> datetime:
        return self.now - timedelta(days=low + int(self.rng.random() * (high - low)))

    def _nowhere(self) -> str:
        module = one(self.rng, self.world.modules)
        person = self.world.people[self.world.person()][0]
        return self.words("nowhere", name=module.name, who=person, project=self.world.package)

    def _sentence(self, text: str) -> str:
        return text[:1].upper() + text[1:] if not self.chinese else text
