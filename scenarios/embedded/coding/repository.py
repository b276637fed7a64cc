"""The repository of an invented Python service: its modules, tests and bugs, its people, history and decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any, NamedTuple

from ..forms import load, one, say, table

Thing = tuple[str, str]
"""Something that a service deals with: its name in code, its Chinese word."""

ByLanguage = Mapping[str, str]
"""A text in each language."""


class Domain(NamedTuple):
    """Line of business: the words that a service's code is made of."""

    about: ByLanguage
    projects: Sequence[str]
    things: Sequence[Thing]
    numbers: Sequence[str]
    texts: Sequence[str]
    states: Sequence[str]
    verbs: Sequence[str]


class Role(NamedTuple):
    """Task of a module, and the folder of such modules."""

    name: str
    area: str


class Person(NamedTuple):
    """Member of the team: the name as people say it, and as git has it."""

    name: str
    git_name: str

    @property
    def spellings(self) -> list[str]:
        """Return the accepted spellings of the name, first the one that the tools print."""
        return [self.git_name, self.name]


class ConstantKind(NamedTuple):
    """Kind of constant: the unit follows the number; values go from `low` to `high` by `step`."""

    suffix: str
    name: ByLanguage
    unit: ByLanguage
    low: int
    high: int
    step: int


class BugPattern(NamedTuple):
    """Forms of a bug: `before + wrong + after` is the method; pytest prints `error` at the last line of `test`."""

    symptom: ByLanguage
    cause: ByLanguage
    before: str
    wrong: str
    right: str
    after: str
    test: str
    error: str


@dataclass
class NamedConstant:
    """Constant of a module. `value` is kept up to date with the source."""

    name: str
    kind: ConstantKind
    value: int

    def other_value(self, rng: Random) -> int:
        """Return a value that the constant does not have."""
        value = _value(rng, self.kind)
        if value != self.value:
            return value
        return value + self.kind.step if value + self.kind.step <= self.kind.high else value - self.kind.step


@dataclass(frozen=True)
class Bug:
    """Bug in a module: the text to replace, and the test that shows it. All is filled in but symptom and cause."""

    symptom: ByLanguage
    cause: ByLanguage
    facts: Mapping[str, str]
    method: str
    before: str
    wrong: str
    right: str
    test_name: str
    test: str
    error: str


@dataclass
class Module:
    """Source file and the facts about it. `text` changes when the agent edits it."""

    package: str
    area: str
    name: str
    thing: str
    role: str
    owner: Person
    runbook: str
    code: str
    text: str
    bug: Bug
    constants: list[NamedConstant]
    methods: list[str]
    """Names of the methods and of the functions outside the class."""
    facts: dict[str, str]
    """Slots with the same value throughout the file."""

    @property
    def path(self) -> str:
        return f"src/{self.package}/{self.area}/{self.name}.py"

    @property
    def test_path(self) -> str:
        return f"tests/{self.area}/test_{self.name}.py"


def _bug_pattern(record: Mapping[str, Any]) -> BugPattern:
    """Return the pattern of a record, whose `method` is a diff of one change. Raises ValueError for another diff."""
    diff = re.fullmatch(r"((?: .*\n)*)((?:-.*\n)+)((?:\+.*\n)+)((?: .*\n)*)", record["method"])
    if diff is None:
        raise ValueError(f"not a method with one change: {record['method']}")
    before, wrong, right, after = (re.sub("(?m)^.", "", part) for part in diff.groups())
    return BugPattern(record["symptom"], record["cause"], before, wrong, right, after, record["test"], record["error"])


_WORDS = table(__package__, "words")

DOMAINS = tuple(Domain(**record | {"things": tuple(record["things"].items())}) for record in _WORDS["domains"])

ROLES = tuple(Role(*record) for record in _WORDS["roles"])

PEOPLE = {language: [Person(*names) for names in people] for language, people in _WORDS["people"].items()}
"""People to choose a team from, by language."""

_CONSTANT_KINDS = tuple(ConstantKind(**record) for record in _WORDS["constants"])

_BUG_PATTERNS = tuple(map(_bug_pattern, table(__package__, "bugs")["bugs"]))

_FORMS = load(__package__, "source")

_METHODS = tuple(f"{form}\n" for form in _FORMS["methods"])

_FUNCTIONS = tuple(f"{form}\n" for form in _FORMS["functions"])


def write_module(
    rng: Random,
    domain: Domain,
    language: str,
    size: int,
    *,
    package: str,
    area: str,
    name: str,
    thing: Thing,
    role: str,
    owner: Person,
    runbook: str,
    code: str,
    facts: Mapping[str, str],
) -> Module:
    """Return a module of about `size` characters of Python, with a bug and the constants that its methods use.

    `facts` are the slots of its comments that do not follow from the other arguments.
    """
    functions = rng.sample(_FUNCTIONS, min(1 + size // 6000, len(_FUNCTIONS)))
    methods = _choose_methods(rng, size - 2400 - sum(map(len, functions)))
    pattern = one(rng, _BUG_PATTERNS)
    forms = (*functions, *methods, pattern.before, pattern.wrong, pattern.after)
    constants = _constants(rng, name.upper(), set().union(*map(_suffixes, forms)))
    snake, chinese = thing
    module_facts = {
        **facts,
        "ent": snake,
        "ents": _plural(snake),
        "Ent": _camel(snake),
        "ent_word": snake.replace("_", " "),
        "ent_zh": chinese,
        "Err": f"{_camel(name)}Error",
        "role": role,
        "Role": _camel(name),
        "package": package,
        "area": area,
        "name": name,
        "title": name.replace("_", " "),
        "owner": owner.git_name,
        "runbook": runbook,
        "code": code,
        "attr": _plural(snake),
        **{constant.kind.suffix: constant.name for constant in constants},
    }
    writer = _Writer(rng, domain, language, module_facts)

    bug = writer.write_bug(pattern, constants)
    for form in methods:
        writer.write(form)
    bodies = list(writer.bodies.values())
    rng.shuffle(bodies)
    in_class = len(bodies)
    for form in functions:
        writer.write(form)
    text = writer.file(constants, bodies, list(writer.bodies.values())[in_class:])
    names = sorted(writer.bodies)
    return Module(package, area, name, snake, role, owner, runbook, code, text, bug, constants, names, module_facts)


def add_method(rng: Random, domain: Domain, language: str, module: Module) -> tuple[str, str]:
    """Give a module a method that uses its constants; return its name and text, which is not in `text` yet."""
    suffixes = {constant.kind.suffix for constant in module.constants}
    form = one(rng, [form for form in _METHODS if _suffixes(form) <= suffixes])
    writer = _Writer(rng, domain, language, module.facts, module.methods)
    name = writer.write(form)
    module.methods.append(name)
    return name, writer.bodies[name]


def correct_articles(text: str) -> str:
    """Return an English text with `an` for `a` before a vowel: `a empty row` becomes `an empty row`."""
    return _ARTICLE.sub(r"\1n ", text)


_ARTICLE = re.compile(r"\b([Aa]) (?=[aeio][a-z]{2})")


class _Writer:
    """Writer of one module's methods and functions, each under a name of its own."""

    def __init__(
        self, rng: Random, domain: Domain, language: str, facts: Mapping[str, str], names: Sequence[str] = ()
    ) -> None:
        """`facts` are the slots of the whole file; `names` are taken."""
        self._rng, self._domain, self._facts = rng, domain, facts
        self._notes = _FORMS[f"notes_{language}"]
        self.bodies: dict[str, str] = dict.fromkeys(names, "")
        """Text by name."""

    def write(self, form: str) -> str:
        """Write a method or function and return its name."""
        name = ""
        for _ in range(12):
            facts = self._local_facts()
            facts["note"] = self._note(facts)
            facts["tail"] = self._docstring_tail(facts, "        " if form.startswith("    ") else "    ")
            text = correct_articles(say(self._rng, form, facts))
            name = _function_name(text)
            if name not in self.bodies:
                self.bodies[name] = text
                return name
        free = f"{name}_{len(self.bodies)}"
        self.bodies[free] = text.replace(f"def {name}(", f"def {free}(", 1)
        return free

    def write_bug(self, pattern: BugPattern, constants: Sequence[NamedConstant]) -> Bug:
        """Write a method with a bug."""
        rng, facts = self._rng, self._local_facts()
        number = 12 + int(rng.random() * 180)
        if "BACKOFF_MS" in pattern.wrong:  # its test compares the number with the constant
            number = next(constant.value for constant in constants if constant.kind.suffix == "BACKOFF_MS")
        facts |= {
            "one": str(number),
            "two": str(number + 1),
            "three": str(number + 2),
            "sample": f"{facts['ent'][:2].upper()}-{1000 + int(rng.random() * 9000)}",
            "tail": self._docstring_tail(facts, "        "),
        }
        before = correct_articles(say(rng, pattern.before, facts))
        facts["method"] = method = _function_name(before)
        wrong, right, after, test, error = (
            say(rng, form, facts) for form in (pattern.wrong, pattern.right, pattern.after, pattern.test, pattern.error)
        )
        self.bodies[method] = before + wrong + after
        test_name = say(rng, _FORMS["bug_test"][0], facts)
        return Bug(pattern.symptom, pattern.cause, facts, method, before, wrong, right, test_name, test, error)

    def file(self, constants: Sequence[NamedConstant], methods: Sequence[str], functions: Sequence[str]) -> str:
        """Return the text of the whole file."""
        rng, domain, facts = self._rng, self._domain, self._local_facts()
        tails = [correct_articles(say(rng, tail, facts)) for tail in rng.sample(_FORMS["doc_tails"], 2)]
        lines = []
        for constant in constants:
            if rng.random() < 0.5:
                lines.append(f"# {self._note(facts)}")
            lines.append(f"{constant.name} = {constant.value}")
        row_doc = say(rng, _FORMS["row_doc"][0], facts)
        fields = [f"    {name}: str = ''" for name in rng.sample(domain.texts, len(domain.texts))]
        fields += [f"    {name}: int = 0" for name in rng.sample(domain.numbers, len(domain.numbers))]
        class_doc = correct_articles(say(rng, one(rng, _FORMS["class_docs"]), facts))
        facts |= {
            "doc_tails": "\n".join(tails),
            "constants": "\n".join(lines),
            "row_doc": row_doc,
            "fields": "\n".join(fields),
            "class_doc": f"{class_doc}.{self._docstring_tail(facts, '    ')}",
            "methods": "\n".join(methods),
            "functions": "\n\n".join(functions),
        }
        return say(rng, _FORMS["module"][0], facts)

    def _local_facts(self) -> dict[str, str]:
        """Return the facts with names for one method: another thing, fields, states, six local variables."""
        rng, domain, thing = self._rng, self._domain, self._facts["ent"]
        other, other_zh = one(rng, domain.things)
        if other == thing:
            # Its neighbour in the list, not another draw: so the number of draws is the same either way.
            other, other_zh = domain.things[domain.things.index((other, other_zh)) - 1]
        number, number2 = rng.sample(domain.numbers, 2)
        text, text2 = rng.sample(domain.texts, 2)
        state, state2 = rng.sample(domain.states, 2)
        verb = one(rng, domain.verbs)
        year = 2019 + int(rng.random() * 6)
        return {
            **self._facts,
            "other": other,
            "Other": _camel(other),
            "others": _plural(other),
            "other_word": other.replace("_", " "),
            "other_zh": other_zh,
            "num": number,
            "num2": number2,
            "text": text,
            "text2": text2,
            "state": state,
            "state2": state2,
            "verb": verb,
            "flag": one(rng, _WORDS["flags"]),
            "event": f"{thing}.{verb}",
            "small": str(2 + int(rng.random() * 60)),
            "ticket": f"{self._facts['prefix']}-{100 + int(rng.random() * 880)}",
            "year": str(year),
            "release": f"{year - 2016}.{int(rng.random() * 12)}",
            **dict(zip("abcdef", rng.sample(_WORDS["locals"], 6), strict=True)),
        }

    def _note(self, facts: Mapping[str, str]) -> str:
        return correct_articles(say(self._rng, one(self._rng, self._notes), facts))

    def _docstring_tail(self, facts: Mapping[str, str], indent: str) -> str:
        """Return nothing, or an empty line and one or two more sentences."""
        rng = self._rng
        if rng.random() < 0.4:
            return ""
        forms = rng.sample(_FORMS["doc_tails"], 1 + int(rng.random() * 2))
        tails = [correct_articles(say(rng, form, facts)) for form in forms]
        return f"\n\n{indent}" + f"\n{indent}".join(tails) + f"\n{indent}"


def _choose_methods(rng: Random, room: int) -> list[str]:
    """Return forms of methods for a number of characters, at least two; all are used before one is used again."""
    forms: list[str] = []
    deck: list[str] = []
    while room > 0 or len(forms) < 2:
        deck = deck or rng.sample(_METHODS, len(_METHODS))
        forms.append(deck.pop())
        room -= len(forms[-1])
    return forms


@cache
def _suffixes(form: str) -> frozenset[str]:
    """Return the kinds of constant that a form speaks of, by their suffixes."""
    return frozenset(kind.suffix for kind in _CONSTANT_KINDS if re.search(rf"\${kind.suffix}\b", form))


def _constants(rng: Random, prefix: str, suffixes: set[str]) -> list[NamedConstant]:
    """Return a constant of each of these kinds, and of others if that makes fewer than five."""
    rest = [kind for kind in _CONSTANT_KINDS if kind.suffix not in suffixes]
    kinds = [kind for kind in _CONSTANT_KINDS if kind.suffix in suffixes]
    kinds += rng.sample(rest, max(0, min(5 - len(suffixes), len(rest))))
    rng.shuffle(kinds)
    return [NamedConstant(f"{prefix}_{kind.suffix}", kind, _value(rng, kind)) for kind in kinds]


def _value(rng: Random, kind: ConstantKind) -> int:
    return kind.low + kind.step * int(rng.random() * ((kind.high - kind.low) // kind.step + 1))


def _function_name(text: str) -> str:
    return text[text.index("def ") + 4 : text.index("(")]


def _camel(name: str) -> str:
    """Return `ParcelRouter` for `parcel_router`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _plural(name: str) -> str:
    """Return a plural that is good enough for names in code."""
    if name.endswith(("ss", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2] not in "aeiou" else f"{name}s"


_HISTORY_FORMS = load(__package__, "history")


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
        form = one(rng, _HISTORY_FORMS["commit_subjects"])
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
        """Return docs/decisions.md: the newest fourteen decisions, and a pointer to older ones."""
        facts = {"package": self.package, "entries": "\n".join(self.decisions[-14:])}
        return say(self.rng, _HISTORY_FORMS["decisions_page"][0], facts) + "\n"

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
        facts["title"] = say(rng, _HISTORY_FORMS["decision_title"][0], facts)
        forms = rng.sample(_HISTORY_FORMS["decision_paragraphs"], 2 + int(rng.random() * 2))
        facts["paragraphs"] = "\n\n".join([say(rng, form, facts) for form in forms])
        return correct_articles(say(rng, _HISTORY_FORMS["decision"][0], facts) + "\n")

    def _name_modules(self) -> None:
        """Put single things first, then pairs of them, in a random order; when all are used up, second versions."""
        things, rng = self.domain.things, self.rng
        single = [(thing, None, role) for thing in things for role in ROLES]
        pairs = [(thing, second, role) for thing in things for second in things if thing != second for role in ROLES]
        # `pop` takes them from the end, so the single things come first.
        self._names = [*rng.sample(pairs, len(pairs)), *rng.sample(single, len(single))]
        self._versions += 1


def _free_number(rng: Random, used: set[int], low: int, high: int) -> int:
    """Return a number from `low` on that is not used yet; it is above `high` when most below are used."""
    # Else drawing until a free one is met would take ever longer, and at last for ever.
    high = high if len(used) < (high - low) * 3 // 4 else 60_000
    while (number := low + int(rng.random() * (high - low))) in used:
        pass
    used.add(number)
    return number
