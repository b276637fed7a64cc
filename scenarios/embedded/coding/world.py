"""The invented service of one coding conversation: modules, people, commits, decisions, ports, all from the seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from ..forms import load, one, say
from .source import DOMAINS, PEOPLE, ROLES, Module, Person, Role, Thing, correct_articles, write_module

_FORMS = load(__package__, "history")


@dataclass(frozen=True)
class Commit:
    """Commit in the log. `id` has seven hexadecimal digits."""

    id: str
    author: Person
    when: datetime
    subject: str


class World:
    """Everything that is true of the service. It changes only through the turns of the conversation."""

    def __init__(self, rng: Random, language: str, start: datetime) -> None:
        """Make up a service whose team speaks a language, and its last 41 days before `start`."""
        self.rng, self.language = rng, language
        self.domain = one(rng, DOMAINS)
        self.package = one(rng, self.domain.projects)
        self.people = rng.sample(PEOPLE[language], 8)
        """The team; the first is who the agent works for."""
        self.prefix = self.package[:2].upper() + self.package[-1].upper()
        self.codes = f"E{self.package[:2].upper()}"
        self.tests = 180 + int(rng.random() * 240)
        """How many tests the service has."""
        self.tickets = 1000 + int(rng.random() * 300)
        """Number of the newest ticket."""
        self.modules: list[Module] = []
        """Modules that were looked at, oldest first."""
        self.ports: dict[str, int] = {}
        self._names: list[tuple[Thing, Thing | None, Role]] = []
        self._versions = 0
        self._used_codes: set[int] = set()
        self._used_ports: set[int] = set()
        self._used_ids: set[str] = set()

        self.commits: list[Commit] = []
        """Oldest first."""
        when = start - timedelta(days=41)
        while when < start - timedelta(days=1):
            self.commit(when, self.past_subject())
            when += timedelta(hours=3 + rng.random() * 26)

        self.newest_decision = 20 + int(rng.random() * 40)
        """Number of the newest decision."""
        numbers = range(self.newest_decision - 9, self.newest_decision + 1)
        self.decisions = [
            self._past_decision(number, start - timedelta(days=9 * (numbers.stop - number))) for number in numbers
        ]
        """Entries of docs/decisions.md, oldest first."""

    def new_module(self) -> Module:
        """Return a module that nobody has looked at yet."""
        rng = self.rng
        if not self._names:
            self._name_modules()
        thing, second, role = self._names.pop()
        if second is not None:
            thing = (f"{thing[0]}_{second[0]}", f"{thing[1]}{second[1]}")
        name = f"{thing[0]}_{role.name}" + (f"_v{self._versions}" if self._versions > 1 else "")
        owner = self.person()
        runbook = f"RB-{100 + len(self.modules)}{int(rng.random() * 10)}"
        code = f"{self.codes}-{_free_number(rng, self._used_codes, 1000, 10_000)}"
        colleague = self.person()
        module = write_module(
            rng,
            self.domain,
            self.language,
            int(rng.triangular(3200, 24_000, 6500)),
            package=self.package,
            area=role.area,
            name=name,
            thing=thing,
            role=role.name,
            owner=owner,
            runbook=runbook,
            code=code,
            facts={"prefix": self.prefix, "who": colleague.git_name.split()[0], "who_zh": colleague.name},
        )
        self.modules.append(module)
        self.ports[name] = self.new_port()
        return module

    def earlier_module(self) -> Module:
        """Return a module that was looked at before, rather a recent one."""
        last = len(self.modules) - 1
        return self.modules[max(0, last - int(self.rng.expovariate(1 / 6)))]

    def some_module(self) -> Module:
        """Return an earlier module or a new one."""
        return self.earlier_module() if len(self.modules) > 3 and self.rng.random() < 0.45 else self.new_module()

    def new_port(self) -> int:
        """Return a port that no service has."""
        return _free_number(self.rng, self._used_ports, 7100, 9990)

    def new_ticket(self) -> str:
        """Return the next ticket."""
        self.tickets += 1 + int(self.rng.random() * 7)
        return f"{self.prefix}-{self.tickets}"

    def person(self) -> Person:
        """Return somebody of the team."""
        return one(self.rng, self.people)

    def commit(self, when: datetime, subject: str, author: Person | None = None) -> Commit:
        """Put a commit on top, by somebody of the team if no author is given."""
        name = f"{self.rng.getrandbits(28):07x}"
        while name in self._used_ids or name.isdigit():
            name = f"{self.rng.getrandbits(28):07x}"
        self._used_ids.add(name)
        commit = Commit(name, author or self.person(), when, subject)
        self.commits.append(commit)
        return commit

    def past_subject(self, module: Module | None = None) -> str:
        """Return the subject of a commit of the past, on a module or on the service."""
        rng, domain = self.rng, self.domain
        form = one(rng, _FORMS["commit_subjects"])
        facts = {
            "thing": (module.thing if module else one(rng, domain.things)[0]).replace("_", " "),
            "other_thing": one(rng, domain.things)[0].replace("_", " "),
            "role": module.role if module else one(rng, ROLES).name,
            "num": one(rng, domain.numbers),
            "text": one(rng, domain.texts),
            "state": one(rng, domain.states),
            "verb": one(rng, domain.verbs).replace("_", " "),
            "ticket": f"{self.prefix}-{100 + int(rng.random() * 880)}",
            "small": str(2 + int(rng.random() * 30)),
        }
        text = say(rng, form, facts)
        return correct_articles(text[0].upper() + text[1:])

    def decisions_page(self) -> str:
        """Return docs/decisions.md: the newest fourteen decisions; older ones are said to be elsewhere."""
        facts = {"package": self.package, "entries": "\n".join(self.decisions[-14:])}
        return say(self.rng, _FORMS["decisions_page"][0], facts) + "\n"

    def _past_decision(self, number: int, when: datetime) -> str:
        rng, domain = self.rng, self.domain
        thing, other = (name.replace("_", " ") for name, _ in rng.sample(domain.things, 2))
        facts = {
            "thing": thing,
            "other": other,
            "role": one(rng, ROLES).name,
            "verb": one(rng, domain.verbs).replace("_", " "),
            "num": one(rng, domain.numbers),
            "text": one(rng, domain.texts),
            "state": one(rng, domain.states),
            "who": self.person().git_name,
            "ticket": f"{self.prefix}-{100 + int(rng.random() * 800)}",
            "n": str(3 + int(rng.random() * 60)),
            "m": str(70 + int(rng.random() * 800)),
            "number": f"D-{number:03d}",
            "day": f"{when:%Y-%m-%d}",
        }
        facts["title"] = say(rng, _FORMS["decision_title"][0], facts)
        forms = rng.sample(_FORMS["decision_paragraphs"], 2 + int(rng.random() * 2))
        facts["paragraphs"] = "\n\n".join([say(rng, form, facts) for form in forms])
        return correct_articles(say(rng, _FORMS["decision"][0], facts) + "\n")

    def _name_modules(self) -> None:
        """Put single things first, then pairs of them, in a random order; when all are used up, second versions."""
        things, rng = self.domain.things, self.rng
        single = [(thing, None, role) for thing in things for role in ROLES]
        pairs = [(thing, second, role) for thing in things for second in things if thing != second for role in ROLES]
        self._names = [*rng.sample(pairs, len(pairs)), *rng.sample(single, len(single))]
        self._versions += 1


def _free_number(rng: Random, used: set[int], low: int, high: int) -> int:
    """Return a number from `low` on that is not used yet; it is above `high` when most below are used."""
    high = high if len(used) < (high - low) * 3 // 4 else 60_000
    while (number := low + int(rng.random() * (high - low))) in used:
        pass
    used.add(number)
    return number
