"""Scenario kind coding: a coding agent in an invented Python service, with long files and test runs.

The user asks for fixes, changed constants, features, renames, history and ports; the agent greps, reads, runs, edits
and commits. Tool outputs are in English in both languages, as in real life.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from ...model import Conversation, Tool
from ..forms import load, one, other_than_last, say, table
from ..script import Pauses, Quiz, Script
from . import output
from .repository import Module, NamedConstant, Person, World, add_method

_TOOLS = tuple(Tool(**record) for record in table(__package__, "tools")["tools"])
_QUALIFIERS = table(__package__, "words")["qualifiers"]


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation of `turns` user turns in `en` or `zh`. The same arguments give the same bytes."""
    rng = Random(f"coding/{seed}/{language}")
    start = f"2026-{1 + int(rng.random() * 9):02d}-{1 + int(rng.random() * 28):02d}T08:{int(rng.random() * 60):02d}:00"
    script = Script(f"coding/{language}-{seed}-{turns}", language=language, start=start, tools=_TOOLS)
    session = Session(rng, script, turns, language)
    # 3: questions use other words than the answers; pauses are those of recorded sessions.
    script.note("version", 3)
    session.system()
    pauses = Pauses(script, rng)
    deck: list[Callable[[Session], None]] = []
    for turn in range(1, turns + 1):
        deck = deck or _deck(rng)
        session.begin_turn()
        deck.pop()(session)
        session.finish_turn()
        if turn < turns:
            pauses.pause()
    return script.done()


def _deck(rng: Random) -> list[Callable[[Session], None]]:
    """Return the next turns, shuffled: bugs and changes twice as often as the rest."""
    turns: list[Callable[[Session], None]] = [
        _bug, _change, _feature, _ops, _history, _decide, _refactor, _bug, _change,
    ]  # fmt: skip
    rng.shuffle(turns)
    return turns


# Kinds of turn: the user wants something, the agent works with the tools and sums up, and probes are offered.


def _bug(s: Session) -> None:
    """Fix a bug: find where its error code is raised, see a test fail, mend the line, see it pass, commit."""
    world = s.world
    module = world.new_module()
    bug = module.bug
    ticket, first_day = world.new_ticket(), s.days_ago(2, 19)
    s.speak_of(module)
    s.speak_of_somebody()
    s.facts |= {
        "ticket": ticket,
        "day": s.days(first_day)[0],
        "method": bug.method,
        "test": bug.test_name,
        "symptom": say(s.rng, bug.symptom[s.language], bug.facts),
        "cause": say(s.rng, bug.cause[s.language], bug.facts),
    }
    request = s.user("bug")
    second_look = shell(f"tail -n 200 /var/log/{world.package}.log", output.log_tail(world, module, s.now))
    if s.rng.random() < 0.5:
        second_look = shell("git log -n 20 --date=iso", output.git_log(world, 20))
    hits, _ = s.use_all("look", s.search(module, module.code, f"src/{world.package}"), second_look)
    listing = s.use("read", read_file(module.path, module.text))
    world.tests += 1
    test, end = f"\n\ndef {bug.test_name}():\n{bug.test}", "# end of file\n"
    result = f"{module.test_path}: 1 replacement\n{test}"
    s.use("add_test", edit_file(module.test_path, end, f"{test}\n\n{end}", result))
    command = f"python -m pytest -v {module.test_path} tests"
    s.use("run", shell(command, output.pytest_run(world, module, s.now, bug)[0]))
    s.edit("fix", module, bug.before + bug.wrong, bug.before + bug.right)
    text, passes = output.pytest_run(world, module, s.now)
    run = s.use("rerun", shell(command, text))
    commit = s.commit(module, "bug")
    s.assistant("bug_done")

    s.offer("multi_hop", "q_owner", module.owner.spellings, [request, hits, listing])
    s.offer("single_hop", "q_passed", [str(passes), f"{passes} passed"], [run])
    s.offer("single_hop", "q_commit", [world.commits[-1].id], [commit])
    s.offer("temporal", "q_since", s.days(first_day), [request])
    span = (world.commits[-1].when.date() - first_day.date()).days
    s.offer("temporal", "q_days", s.spans(span), [request, commit], computed=True)
    if s.commits:
        other, other_commit = one(s.rng, s.commits[-30:])
        s.facts["other"] = other
        s.offer("temporal", "q_first", [other], [other_commit, commit])
    s.commits.append((ticket, commit))
    s.offer_constant(module, one(s.rng, module.constants), listing)
    s.offer("single_hop", "q_code", [module.code], [listing, hits])
    s.offer("single_hop", "q_runbook", [module.runbook], [listing])


def _change(s: Session) -> None:
    """Give a constant another value; some get one more than once."""
    repeated = bool(s.updates) and s.rng.random() < 0.3
    if repeated:
        module, constant = one(s.rng, s.updates[-12:])
    else:
        module = s.world.some_module()
        constant = one(s.rng, module.constants)
    before, after = constant.value, constant.other_value(s.rng)
    s.speak_of(module, constant)
    s.speak_of_somebody()
    reason = one(s.rng, s.speech["reasons"])
    s.facts |= {"new": str(after), "reason": reason}
    request = s.user("change_again" if repeated else "change")
    s.quiz.forget(constant.name)
    search = s.search(module, constant.name, ".")
    _, listing = s.use_all("parallel", search, s.reading(module, f"{constant.name} ="))
    # The diff is of the source before the edit, so it is made first.
    old, new = f"{constant.name} = {before}\n", f"{constant.name} = {after}\n"
    diff = output.git_diff(module.path, module.text, old, new)
    edit = s.edit("edit", module, old, new)
    constant.value = after
    s.use("rerun", shell(f"pytest -v {module.test_path}", output.pytest_run(s.world, module, s.now)[0]))
    s.use("", shell("git diff", diff))
    s.assistant("change_done")

    about = [constant.name]
    s.updates.append((module, constant))
    s.offer("updated_fact", "q_now", s.amounts(constant), [request, edit], about=about)
    s.offer("single_hop", "q_why", [reason], [request], about=about)
    if not repeated:
        s.offer("multi_hop", "q_rise", [str(abs(after - before))], [listing, request], about=about, computed=True)


def _decide(s: Session) -> None:
    """Keep a constant as it is, for a reason, and file the decision."""
    world = s.world
    module = world.some_module()
    constant = one(s.rng, module.constants)
    s.speak_of(module, constant)
    person = s.speak_of_somebody()
    world.newest_decision += 1
    number, reason = f"D-{world.newest_decision:03d}", one(s.rng, s.speech["reasons"])
    s.facts |= {"reason": reason, "decision": number}
    request = s.user("decide")
    path, page, mark = "docs/decisions.md", world.decisions_page(), "<!-- next -->"
    s.use_all("parallel", read_file(path, page), s.reading(module, f"{constant.name} ="))
    facts = s.facts | {"person": person.git_name, "today": f"{s.now:%Y-%m-%d}"}
    entry = say(s.rng, s.speech["decision_entry"][0], facts) + "\n"
    line = page.count("\n")
    result = f"{path}: 1 replacement, lines {line}-{line + 4}\n{entry}"
    s.use("edit", edit_file(path, mark, f"{entry}\n{mark}", result))
    world.decisions.append(entry)
    commit = s.commit(module, "decide")
    s.assistant("decide_done")

    about = [constant.name]
    s.offer("single_hop", "q_decision", [number], [commit], about=about)
    s.offer("single_hop", "q_keep", [reason], [request], about=about)
    s.offer("temporal", "q_decided", [f"{s.now:%Y-%m-%d}", *s.days(s.now)], [request, commit], about=about)


def _feature(s: Session) -> None:
    """Add a method to a module, after a look at another module."""
    world = s.world
    model = world.earlier_module() if world.modules else world.new_module()
    module = world.new_module()
    name, body = add_method(s.rng, world.domain, s.language, module)
    ticket = world.new_ticket()
    s.speak_of(module)
    s.speak_of_somebody()
    s.facts |= {"method": name, "model": model.name, "ticket": ticket}
    request = s.user("feature")
    reading = s.reading(model, f"class {model.facts['Role']}:")
    _, listing = s.use_all("parallel", reading, read_file(module.path, module.text))
    anchor = next(line for line in module.text.split("\n") if line.startswith("    def ") and "__init__" not in line)
    s.edit("edit", module, anchor, f"{body}\n{anchor}")
    world.tests += 2
    text, passes = output.pytest_run(world, module, s.now)
    run = s.use("rerun", shell(f"pytest -v {module.test_path} tests/{module.area}", text))
    s.use("", shell("git status", output.git_status(world, module, ticket.lower())))
    commit = s.commit(module, "feature")
    s.assistant("feature_done")

    s.offer("single_hop", "q_commit", [world.commits[-1].id], [commit])
    s.offer("multi_hop", "q_owner_feature", module.owner.spellings, [request, listing])
    s.offer("single_hop", "q_total", [str(passes), f"{passes} passed"], [run])
    s.commits.append((ticket, commit))
    s.offer_constant(module, one(s.rng, module.constants), listing)


def _refactor(s: Session) -> None:
    """Give a method another name."""
    world = s.world
    module = world.some_module()
    before = one(s.rng, [name for name in module.methods if f"def {name}(self" in module.text])
    s.renames += 1
    after = f"{before.split('_')[0]}_{one(s.rng, _QUALIFIERS)}_{module.thing}"
    if after in module.methods:
        after = f"{after}_{s.renames}"
    s.speak_of(module)
    s.speak_of_somebody()
    s.facts |= {"before": before, "after": after, "ticket": world.new_ticket()}
    request = s.user("refactor")
    s.use_all("parallel", s.search(module, before, "."), s.reading(module, f"def {before}("))
    edit = s.edit("edit", module, f"def {before}(", f"def {after}(")
    module.methods[module.methods.index(before)] = after
    old, new, places = f".{before}(", f".{after}(", 2 + int(s.rng.random() * 5)
    s.use("", edit_file(module.test_path, old, new, f"{module.test_path}: {places} replacements of {old}"))
    s.use("rerun", shell(f"pytest -v {module.test_path}", output.pytest_run(world, module, s.now)[0]))
    s.use("", shell("git diff --stat", output.git_diff_stat(world, module)))
    s.assistant("refactor_done")

    s.quiz.forget(f"{module.name}.{before}")
    s.offer("updated_fact", "q_name", [after], [request, edit], about=[f"{module.name}.{after}"])


def _history(s: Session) -> None:
    """Tell who changed a module, from the log and one commit of it."""
    world = s.world
    module = world.some_module()
    when = max(world.commits[-1].when, s.now - timedelta(hours=3))
    commit = world.commit(when, world.past_subject(module))
    s.speak_of(module)
    s.speak_of_somebody()
    s.facts |= {"hash": commit.id, "subject": commit.subject}
    s.user("history")
    count = 24 + int(s.rng.random() * 30)
    log, _ = s.use_all(
        "parallel",
        shell(f"git log -n {count} --date=iso", output.git_log(world, count)),
        shell(f"git show {commit.id}", output.git_show(world, commit, module)),
    )
    reading = s.reading(module, "class ")
    listing = s.use("read", reading)
    s.use("", s.search(module, module.code, "src"))
    s.assistant("history_done")

    for entry in (commit, one(s.rng, world.commits[-count:-1])):
        s.facts["hash"] = entry.id
        s.offer("temporal", "q_when", [f"{entry.when:%Y-%m-%d}", *s.days(entry.when)[:2]], [log])
        s.offer("single_hop", "q_author", entry.author.spellings, [log])
    if module.runbook in reading.result:
        s.offer("single_hop", "q_runbook", [module.runbook], [listing])


def _ops(s: Session) -> None:
    """Give a service another port on staging."""
    world = s.world
    module = world.some_module()
    services = [other for other in world.modules[-12:] if other is not module] + [module]
    services += [world.new_module() for _ in range(max(0, 3 - len(services)))]
    before, after = world.ports[module.name], world.new_port()
    s.speak_of(module)
    s.speak_of_somebody()
    s.facts |= {"port": str(after), "old_port": str(before)}
    request = s.user("ops")
    path = "deploy/staging.toml"
    config, _ = s.use_all(
        "parallel",
        shell(f"cat {path}", output.staging(world, services)),
        shell(f"tail -n 80 /var/log/{module.name}.log", output.log_tail(world, module, s.now)),
    )
    old, new = f"[services.{module.name}]\nport = {before}", f"[services.{module.name}]\nport = {after}"
    world.ports[module.name] = after
    edit = s.use("edit", edit_file(path, old, new, f"{path}: 1 replacement\n{new}"))
    s.use("", shell(f"curl -s staging:{after}/health", output.staging_health(world, module)))
    constant = one(s.rng, module.constants)
    listing = s.use("read", s.reading(module, f"{constant.name} ="))
    s.assistant("ops_done")

    port = f"port of {module.name}"
    s.quiz.forget(port)
    s.offer("updated_fact", "q_port", [str(after)], [request, edit], about=[port])
    s.speak_of(module, constant)
    s.offer("multi_hop", "q_port_const", s.amounts(constant), [edit, listing], about=[constant.name, port])
    neighbour = next(service for service in services if service is not module)
    s.speak_of(neighbour)
    neighbour_port = world.ports[neighbour.name]
    s.offer("single_hop", "q_port", [str(neighbour_port)], [config], about=[f"port of {neighbour.name}"])


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
        self.quiz = Quiz(script, rng, turns)
        self.updates: list[tuple[Module, NamedConstant]] = []
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
        self.quiz.offer(category, self.words(key), answers, evidence, about=about, computed=computed)

    def offer_constant(self, module: Module, constant: NamedConstant, listing: str) -> None:
        """Offer a question on the value of a constant that the message `listing` shows."""
        self.speak_of(module, constant)
        self.offer("single_hop", "q_const", self.amounts(constant), [listing], about=[constant.name])

    def speak_of(self, module: Module, constant: NamedConstant | None = None) -> None:
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

    def amounts(self, constant: NamedConstant) -> list[str]:
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

    def finish_turn(self) -> None:
        """Ask the probes that are due, a question that nothing in the conversation answers among them."""
        if self.quiz.wants("unanswerable"):
            name, who = one(self.rng, self.world.modules).name, self.world.person().name
            self.quiz.ask("unanswerable", self.words("unanswerable", name=name, who=who, project=self.world.package))
        self.quiz.turn_over()

    def _sentence(self, text: str) -> str:
        return text if self.language == "zh" else text[:1].upper() + text[1:]
