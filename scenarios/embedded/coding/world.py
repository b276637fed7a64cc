"""The invented service of one coding conversation: its modules, people, commits, ports. All of it from the seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from ..wording import one, say
from .module import Module
from .source import article, write
from .words import DOMAINS, PEOPLE, PEOPLE_ZH, ROLES, Domain

_SUBJECTS = (
    "«Fix|Mend|Correct» $num of a $state ${thing}«, see $ticket| ($ticket)|»",
    "«Keep|Hold|Remember» the $other_thing while a $thing is $state",
    "«Rename|Move|Split» the $role of $thing« and $other_thing|»«, no change in behaviour|»",
    "$ticket: «$verb|do not $verb» a $thing «twice|without $text|over the limit»",
    "«Log|Count|Measure» how often we $verb a $thing",
    "«Raise|Lower|Tune» the limit of the $thing $role«, asked for in $ticket|»",
    "«Test|Cover» $text of the $thing $role «with old rows|with gaps|on month ends»",
    "«Drop|Remove» the old $other_thing «interface|columns|flag»«; nobody reads it|»",
    "«Bump|Pin» the $thing fixtures to «the spring export|the new format|version $small»",
)


@dataclass(frozen=True)
class Commit:
    """A commit in the log."""

    id: str
    author: int
    when: datetime
    subject: str
    module: Module | None = None


@dataclass
class World:
    """What is true of the service. Changes only through the turns of the conversation."""

    rng: Random
    chinese: bool
    domain: Domain
    package: str
    start: datetime
    people: list[tuple[str, str]] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    """Oldest first."""
    ports: dict[str, int] = field(default_factory=dict)
    tests: int = 0
    tickets: int = 0

    def __post_init__(self) -> None:
        pool = PEOPLE_ZH if self.chinese else tuple((name, name) for name in PEOPLE)
        self.people = self.rng.sample(pool, 8)
        self.prefix = self.package[:2].upper() + self.package[-1].upper()
        self.codes = f"E{self.package[:2].upper()}"
        self.tests = 180 + int(self.rng.random() * 240)
        self.tickets = 1000 + int(self.rng.random() * 300)
        self._names: list[tuple[tuple[str, str], tuple[str, str] | None, tuple[str, str, str]]] = []
        self._round = 0
        self._codes: set[int] = set()
        self._ports: set[int] = set()
        self._ids: set[str] = set()
        when = self.start - timedelta(days=41)
        while when < self.start - timedelta(days=1):
            self.commit(when, self.invented_subject())
            when += timedelta(hours=3 + self.rng.random() * 26)

    def fresh(self) -> Module:
        """A module that nobody has looked at yet."""
        if not self._names:
            self._name_more()
        (thing, thing_zh), second, (role, role_zh, area) = self._names.pop()
        if second is not None:
            thing, thing_zh = f"{thing}_{second[0]}", f"{thing_zh}{second[1]}"
        name = f"{thing}_{role}" if self._round == 1 else f"{thing}_{role}_v{self._round}"
        module = Module(
            name=name,
            area=area,
            package=self.package,
            thing=thing,
            thing_zh=thing_zh,
            role=role,
            role_zh=role_zh,
            owner=int(self.rng.random() * len(self.people)),
            runbook=f"RB-{100 + len(self.modules)}{int(self.rng.random() * 10)}",
            code=f"{self.codes}-{_free(self.rng, self._codes, 1000, 10_000)}",
        )
        person = self.people[int(self.rng.random() * len(self.people))]
        facts = {
            "prefix": self.prefix,
            "owner": self.people[module.owner][1],
            "who": person[1].split()[0],
            "who_zh": person[0],
        }
        size = int(self.rng.triangular(3200, 24_000, 6500))
        write(self.rng, self.domain, module, size, facts, self.chinese)
        self.modules.append(module)
        self.ports[name] = self.port()
        return module

    def known(self) -> Module:
        """A module that was opened before, rather a recent one."""
        last = len(self.modules) - 1
        return self.modules[max(0, last - int(self.rng.expovariate(1 / 6)))]

    def port(self) -> int:
        """A port that no service has."""
        return _free(self.rng, self._ports, 7100, 9990)

    def _name_more(self) -> None:
        """Single things first, then pairs of them, in a random order; when all are used up, second versions."""
        things, rng = self.domain.things, self.rng
        names = [(thing, None, role) for thing in things for role in ROLES]
        more = [(thing, second, role) for thing in things for second in things if thing != second for role in ROLES]
        self._names = [*rng.sample(more, len(more)), *rng.sample(names, len(names))]
        self._round += 1

    def ticket(self) -> str:
        """The next ticket."""
        self.tickets += 1 + int(self.rng.random() * 7)
        return f"{self.prefix}-{self.tickets}"

    def person(self) -> int:
        """Somebody of the team."""
        return int(self.rng.random() * len(self.people))

    def commit(self, when: datetime, subject: str, module: Module | None = None, author: int | None = None) -> Commit:
        """A new commit on top."""
        name = f"{self.rng.getrandbits(28):07x}"
        while name in self._ids or name.isdigit():
            name = f"{self.rng.getrandbits(28):07x}"
        self._ids.add(name)
        made = Commit(name, self.person() if author is None else author, when, subject, module)
        self.commits.append(made)
        return made

    def invented_subject(self, module: Module | None = None) -> str:
        """What a commit of the past was about."""
        rng, domain = self.rng, self.domain
        text = say(
            rng,
            one(rng, _SUBJECTS),
            {
                "thing": (module.thing if module else one(rng, domain.things)[0]).replace("_", " "),
                "other_thing": one(rng, domain.things)[0].replace("_", " "),
                "role": module.role if module else one(rng, ROLES)[0],
                "num": one(rng, domain.numbers),
                "text": one(rng, domain.texts),
                "state": one(rng, domain.states),
                "verb": one(rng, domain.verbs).replace("_", " "),
                "ticket": f"{self.prefix}-{100 + int(rng.random() * 880)}",
                "small": str(2 + int(rng.random() * 30)),
            },
        )
        return article(text[0].upper() + text[1:])


def _free(rng: Random, taken: set[int], low: int, high: int) -> int:
    """A number from `low` on that is not taken, and take it; above `high` when most below it are taken."""
    high = high if len(taken) < (high - low) * 3 // 4 else 60_000
    while (number := low + int(rng.random() * (high - low))) in taken:
        pass
    taken.add(number)
    return number


def found(rng: Random, chinese: bool, start: datetime) -> World:
    """A world of its own for this conversation."""
    domain = one(rng, DOMAINS)
    return World(rng, chinese, domain, one(rng, domain.projects), start)
