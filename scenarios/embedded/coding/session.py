"""The coding agent at work: it speaks in the conversation's language, and its tools act on the invented repository."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from ..asking import Questions
from ..forms import load, one, other_than_last, say
from ..script import Script
from . import output
from .source import Constant, Module, Person
from .world import World

_HISTORY = load(__package__, "history")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


class ToolUse(NamedTuple):
    """Call of a tool with its result."""

    tool: str
    arguments: dict[str, object]
    result: str


def shell(command: str, result: str) -> ToolUse:
    """Return the use of a shell command that prints the result."""
    return ToolUse("bash", {"command": command}, result)


def edit_file(path: str, old: str, new: str, result: str) -> ToolUse:
    """Return the use of the editor on a file."""
    return ToolUse("edit_file", {"path": path, "old": old, "new": new}, result)


def read_file(path: str, text: str) -> ToolUse:
    """Return the use of the reader on a whole file."""
    return ToolUse("read_file", {"path": path}, text)


class Session:
    """State of a conversation: the script, the world, the facts of this turn, the questions to ask.

    Methods that say something or use a tool return the id of the message that has it.
    """

    def __init__(self, rng: Random, script: Script, turns: int, language: str) -> None:
        self.rng, self.script, self.language = rng, script, language
        self.speech = load(__package__, f"speech_{language}")
        self.world = World(rng, language, self.now)
        self.questions = Questions(rng, turns, self._unanswerable)
        self.updates: list[tuple[Module, Constant]] = []
        """Constants that got another value, oldest first."""
        self.commits: list[tuple[str, str]] = []
        """Tickets with the id of the message that shows their commit, oldest first."""
        self.renames = 0
        self._last: dict[str, str] = {}
        world = self.world
        names = [person.name for person in world.people]
        self._project = {
            "project": world.package,
            "about": world.domain.about[language],
            "prefix": world.prefix,
            "codes": world.codes,
            "team": ("、" if language == "zh" else ", ").join(names),
        }
        self.facts: dict[str, str] = {}
        """Facts of this turn."""
        self.begin_turn()

    def begin_turn(self) -> None:
        """Forget the facts of the last turn."""
        self.facts = dict(self._project)

    @property
    def now(self) -> datetime:
        """Return the time of the clock, without its zone."""
        return self.script.now.replace(tzinfo=None)

    def days_ago(self, low: int, high: int) -> datetime:
        return self.now - timedelta(days=low + int(self.rng.random() * (high - low)))

    def words(self, key: str, **facts: str) -> str:
        """Return something to say, with the facts of this turn and these."""
        form = other_than_last(self.rng, self.speech[key], self._last, key)
        return say(self.rng, form, self.facts | facts)

    def system(self) -> None:
        """Say who the agent is and how the team works."""
        self.script.system(self.words("system"))

    def user(self, key: str) -> str:
        """Say something as the user."""
        return self.script.user(self._sentence(self.words(key)))

    def assistant(self, key: str) -> str:
        """Say something as the agent, without using a tool."""
        return self.script.assistant(self._sentence(self.words(key)))

    def use(self, key: str, tool_use: ToolUse) -> str:
        """Use a tool, saying something of `key` with the call, or nothing without a key; return the result's id."""
        saying = self._sentence(self.words(key).strip()) if key else ""
        return self.script.tool_call(tool_use.tool, tool_use.arguments, tool_use.result, saying)

    def use_all(self, key: str, *uses: ToolUse) -> list[str]:
        """Use several tools in one message; return the ids of their results, in the same order."""
        calls = [self.script.call(use.tool, use.arguments) for use in uses]
        self.script.assistant(self._sentence(self.words(key).strip()), calls)
        return [self.script.result(call, use.result) for call, use in zip(calls, uses, strict=True)]

    def edit(self, key: str, module: Module, old: str, new: str) -> str:
        """Edit the module's source, really."""
        module.text = module.text.replace(old, new)
        return self.use(key, edit_file(module.path, old, new, output.edit_file(module.path, module.text, new)))

    def commit(self, module: Module, kind: str) -> str:
        """Commit the module as the agent; `kind` of turn decides on the subject."""
        subject = say(self.rng, _HISTORY[f"{kind}_subject"][0], module.facts | self.facts)
        commit = self.world.commit(self.now, subject, self.world.people[0])
        return self.use("commit", shell(f"git commit -am '{subject}'", output.git_commit(self.world, commit)))

    def reading(self, module: Module, near: str) -> ToolUse:
        """Return the use of the reader on a whole module or, some of the time, on the lines around a place."""
        lines = module.text.split("\n")
        if len(lines) < 160 or self.rng.random() < 0.55:
            return read_file(module.path, module.text)
        place = next(number for number, line in enumerate(lines) if near in line)
        start = max(1, place - 20 - int(self.rng.random() * 40))
        end = min(len(lines), start + 110 + int(self.rng.random() * 120))
        arguments: dict[str, object] = {"path": module.path, "start": start, "end": end}
        return ToolUse("read_file", arguments, "\n".join(lines[start - 1 : end]))

    def search(self, module: Module, pattern: str, path: str) -> ToolUse:
        """Return a search of a folder for a pattern that the module has."""
        return ToolUse("grep", {"pattern": pattern, "path": path}, output.grep(self.world, module, pattern))

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
        """Offer a question on the facts of this turn."""
        self.questions.offer(category, self.words(key), answers, evidence, about=about, computed=computed)

    def offer_constant(self, module: Module, constant: Constant, listing: str) -> None:
        """Offer a question on the value of a constant that the message `listing` shows."""
        self.speak_of(module, constant)
        self.offer("single_hop", "q_const", self.amounts(constant), [listing], about=[constant.name])

    def speak_of(self, module: Module, constant: Constant | None = None) -> None:
        """Make a module, and one of its constants, facts of this turn."""
        self.facts |= {"name": module.name, "path": module.path, "code": module.code, "Err": module.facts["Err"]}
        if constant is not None:
            self.facts |= {
                "const": constant.name,
                "what": constant.kind.name[self.language],
                "old": str(constant.value),
                "unit": constant.kind.unit[self.language],
            }

    def speak_of_somebody(self) -> Person:
        """Make somebody of the team the fact `who` of this turn."""
        person = self.world.person()
        self.facts["who"] = person.name
        return person

    def amounts(self, constant: Constant) -> list[str]:
        """Return the accepted spellings of a constant's value."""
        value, unit = str(constant.value), constant.kind.unit[self.language]
        return [value, f"{value} {unit}", f"{value}{unit}"] if self.language == "zh" else [value, f"{value} {unit}"]

    def spans(self, days: int) -> list[str]:
        """Return the accepted spellings of a number of days."""
        return [f"{days} 天", f"{days}天", str(days)] if self.language == "zh" else [f"{days} days", str(days)]

    def days(self, day: datetime) -> list[str]:
        """Return the accepted spellings of a day, first the one that people use."""
        if self.language == "zh":
            return [f"{day.month}月{day.day}日", f"{day:%Y-%m-%d}", f"{day.year}年{day.month}月{day.day}日"]
        month = _MONTHS[day.month - 1]
        return [f"{day.day} {month}", f"{month} {day.day}", f"{day:%Y-%m-%d}"]

    def _unanswerable(self) -> str:
        module = one(self.rng, self.world.modules)
        return self.words("unanswerable", name=module.name, who=self.world.person().name, project=self.world.package)

    def _sentence(self, text: str) -> str:
        return text if self.language == "zh" else text[:1].upper() + text[1:]
