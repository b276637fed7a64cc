"""Make docs_qa conversations: questions on an invented product, answered from its documentation.

Nearly every turn searches. A search returns 5 000 to 50 000 characters (`mix` about 45 000, `local` and `naive` about
12 000), and later turns refer back to earlier results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import NamedTuple

import msgspec

from ...model import Conversation, Tool
from ..forms import say
from ..script import Pauses, Quiz, Script
from .pages import Mode, Pages, Retriever
from .world import Chapter, ProductSetting, World, load_language

# The kind of sentence from the documentation that an answer ends with; other answers end with any kind.
_NOTES = {
    "answer_procedure": "outcome",
    "answer_trouble": "trouble_note",
    "answer_plan": "prerequisite",
    "answer_step": "step_note",
}
# Probes whose answer is worked out: two defaults together, days between two dates.
_COMPUTED = ("probe_sum", "probe_moved")


class Override(NamedTuple):
    """Value, with its unit, that the user gave to a setting at one site."""

    setting: ProductSetting
    site: str
    value: str


class SessionPlan(NamedTuple):
    """Plan of the user for a day; `message` is the id of the message that states it."""

    site: str
    occasion: str
    day: datetime
    message: str


def make(seed: int, turns: int, language: str) -> Conversation:
    """Return a conversation with this many user turns, in `en` or `zh`: the same arguments give the same bytes."""
    rng = Random(f"docs_qa/{seed}/{language}")
    session = Session(rng, f"docs_qa/{language}-{seed}-{turns}", turns, language)
    for _ in islice(_turns(session), turns):
        session.probe_unanswerable()
        session.quiz.turn_over()
        session.pauses.pause()
    return session.script.done()


class Session:
    """State of the conversation: questions and answers so far, and the user's facts about their own sites."""

    def __init__(self, rng: Random, name: str, turns: int, code: str) -> None:
        start = datetime(2025, 3, 3, 8, 30) + timedelta(days=rng.randrange(300), minutes=rng.randrange(120))
        self.rng, self.world = rng, World(load_language(code), rng, start)
        self.forms, self.pages = self.world.language.forms, Pages(self.world)
        self.script = Script(name, language=code, start=start.isoformat(), tools=[_tool(self.world)])
        # 2: questions use other words than the answers; pauses are those of recorded sessions.
        self.script.note("version", 2)
        self.quiz, self.pauses = Quiz(self.script, rng, turns), Pauses(self.script, rng)
        self.quotes: dict[str, ProductSetting] = {}
        """Settings whose default the assistant has quoted, by key."""
        self.locks: set[str] = set()
        """Keys whose default, and `key site` whose override, a probe relies on: they must not change any more."""
        self.changes: set[str] = set()
        """Keys whose default a new version has changed."""
        self.procedures: list[tuple[Chapter, str]] = []
        self.overrides: list[Override] = []
        self.plans: list[SessionPlan] = []
        self.occasions = [(site, occasion) for site in self.world.sites for occasion in self.forms["occasions"]]
        rng.shuffle(self.occasions)
        self._retriever = Retriever(self.pages)
        self._fresh: list[ProductSetting] = []
        self._modes: list[Mode] = []
        world, (version, _) = self.world, self.world.versions[-1]
        self.script.system(world.text("system", company=world.company, product=world.product, version=version))

    def search(self, chapter: Chapter, query: str, passages: Sequence[str], key: str = "search") -> str:
        """Search for these passages; return the id of the result's message. `key`: forms of the assistant's text."""
        text = self.world.deal(key)
        return self.searches([(chapter, query, passages)], text)[0]

    def search_hard(self, chapter: Chapter, query: str, second_query: str, passage: str) -> str:
        """Search like `search`, but often only a second query brings the passage."""
        if self.rng.random() < 0.6:
            self.search(chapter, query, [])
            return self.search(chapter, second_query, [passage], "search_again")
        return self.search(chapter, query, [passage])

    def searches(self, searches: Sequence[tuple[Chapter, str, Sequence[str]]], text: str) -> list[str]:
        """Search in parallel for (chapter, query, passages); return the ids of the results' messages."""
        calls, results = [], []
        for chapter, query, passages in searches:
            mode = self._mode()
            result, count = self._retriever.result(query, mode, chapter, list(passages))
            top_k = -(-count // 5) * 5
            calls.append(self.script.call("search_docs", {"query": query, "mode": mode, "top_k": top_k}))
            results.append(result)
        self.script.assistant(text, calls)
        return [self.script.result(call, result) for call, result in zip(calls, results, strict=True)]

    def _mode(self) -> Mode:
        if not self._modes:
            self._modes = ["mix", "local", "local", "naive", "naive", "local"]
            self.rng.shuffle(self._modes)
        return self._modes.pop()

    def next_setting(self) -> ProductSetting:
        """Return a setting that was not talked about lately."""
        if not self._fresh:
            self._fresh = self.rng.sample(self.world.settings, len(self.world.settings))
        return self._fresh.pop()

    def other_value(self, setting: ProductSetting, *exceptions: str) -> str:
        """Return a value that this setting may have, with its unit, but none of the exceptions."""
        values = (f"{value} {setting.aspect.unit}".rstrip() for value in setting.aspect.values)
        return self.rng.choice([value for value in values if value not in exceptions])

    def reference(self, setting: ProductSetting) -> str:
        """Return the passage that gives a setting's default."""
        return self.pages.reference(setting.chapter, setting.thing)

    def query(self, setting: ProductSetting) -> str:
        """Return a search query about a setting."""
        return self.say("query", setting, aspect=setting.aspect.search)

    def facts(self, setting: ProductSetting) -> dict[str, str]:
        """Return the facts about a setting by slot."""
        chapter, thing, aspect, value = setting.chapter, setting.thing, setting.aspect, self.world.value(setting)
        return {
            "key": setting.key,
            "value": value,
            "question": self.world.clause(aspect.question, chapter, thing),
            "statement": self.world.clause(aspect.statement, chapter, thing, value=value),
            "path": self.pages.path("reference", chapter, thing),
        }

    def say(self, key: str, setting: ProductSetting, /, **facts: str) -> str:
        """Return a sentence of the forms under this key about this setting; `facts` override its own facts."""
        chapter, thing = setting.chapter, setting.thing
        if key.startswith("answer"):
            same = {name: facts[name] for name in ("site", "person") if name in facts}
            notes = [
                self.world.say(_NOTES.get(key, "note"), chapter, thing, **same) for _ in range(self.rng.randint(1, 3))
            ]
            facts.setdefault("note", self.world.language.joint.join(notes))
        return self.world.say(key, chapter, thing, **(self.facts(setting) | facts))

    def probe(
        self,
        category: str,
        key: str,
        setting: ProductSetting,
        /,
        answers: Sequence[str],
        evidence: Sequence[str],
        **facts: str,
    ) -> None:
        """Hand a question of the forms under this key to the quiz, with its accepted answers and its evidence."""
        self.quiz.ask(category, self.say(key, setting, **facts), answers, evidence, computed=key in _COMPUTED)

    def probe_unanswerable(self) -> None:
        """Ask something that nothing in the conversation answers, if such a question is due."""
        if self.quiz.wants("unanswerable"):
            setting, site = self.rng.choice(self.world.near_misses), self.rng.choice(self.world.sites)
            decoy = self.rng.choice(self.forms["decoys"])
            question = self.say("probe_unanswerable", setting, unknown_key=setting.key, site=site, decoy=decoy)
            self.quiz.ask("unanswerable", question)

    def plan_facts(self, site: str, occasion: str, day: datetime) -> dict[str, str]:
        """Return the facts about a plan by slot."""
        return {"site": site, "occasion": occasion, "date": self.dates(day)[0]}

    def dates(self, day: datetime) -> list[str]:
        """Return the ways to write a day, the one for running text first."""
        month = self.forms["month"][day.month - 1]
        facts = {"day": str(day.day), "month": month, "year": str(day.year)}
        return [say(self.rng, form, facts) for form in self.forms["date"]]


def _tool(world: World) -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": world.text("tool_query")},
            "mode": {"type": "string", "enum": ["mix", "local", "naive"], "description": world.text("tool_mode")},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 200, "description": world.text("tool_top_k")},
        },
        "required": ["query", "mode"],
    }
    return Tool("search_docs", world.text("tool"), msgspec.json.encode(schema).decode())


def _turns(session: Session) -> Iterator[None]:
    """Take one user turn after the other, without end: the first dozen has every kind once, later ones repeat some."""
    needs: Mapping[str, Sized] = {
        "step": session.procedures,
        "override_change": session.overrides,
        "plan_change": session.plans,
        "plan": session.occasions,
    }
    first = session.rng.sample(("setting", "procedure"), 2)
    rest = session.rng.sample([kind for kind in _KINDS if kind not in (*first, "value")], len(_KINDS) - 3)
    deck = [first[0], rest.pop(), first[1], *rest]
    while True:
        ready = [kind for kind in deck if kind not in needs or needs[kind]]
        if ready:
            deck.remove(ready[0])
            yield from _KINDS[ready[0]](session)
        else:
            often = ("setting", "procedure", "pair", "trouble", "value", "step")
            deck = session.rng.sample((*_KINDS, *often), len(_KINDS) + len(often))


# The kinds of turns. Each yields when the assistant has answered.


def _setting(session: Session) -> Iterator[None]:
    """Ask for the default of a setting, and find it."""
    setting = session.next_setting()
    session.script.user(session.say("ask_setting", setting))
    query = session.query(setting)
    result = session.search_hard(setting.chapter, query, setting.key, session.reference(setting))
    answer = session.script.assistant(session.say("answer_setting", setting))
    session.quotes[setting.key] = setting
    if session.quiz.wants("single_hop") and session.rng.random() < 0.8:
        session.probe("single_hop", "probe_setting", setting, session.world.answers(setting), [result, answer])
        session.locks.add(setting.key)
    yield


def _value(session: Session) -> Iterator[None]:
    """Ask again for a default that was quoted before."""
    settings = [setting for setting in session.quotes.values() if setting.key not in session.changes]
    if not settings:
        yield from _setting(session)
        return
    setting = session.rng.choice(settings)
    session.script.user(session.say("ask_value", setting))
    session.script.assistant(session.say("answer_value", setting))
    yield


def _procedure(session: Session) -> Iterator[None]:
    """Ask how to do something, and list the steps."""
    chapter = session.rng.choice(session.world.language.chapters)
    goal = session.rng.choice(chapter.goals)
    thing = session.pages.subject(chapter, goal)
    setting = session.world.settings_of[chapter.slug, thing.slug][0]
    steps = session.pages.steps(chapter, goal)
    session.script.user(session.say("ask_procedure", setting, goal=goal))
    query = session.say("query_goal", setting, goal=goal)
    result = session.search_hard(chapter, query, goal, session.pages.procedure(chapter, goal))
    listing = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
    path = session.pages.path("procedure", chapter, thing)
    answer = session.script.assistant(session.say("answer_procedure", setting, goal=goal, list=listing, path=path))
    session.procedures.append((chapter, goal))
    if session.quiz.wants("single_hop"):
        page = session.world.page(chapter, thing)
        answers = [page, page.split(" › ", 1)[1], page.rsplit(" › ", 1)[1]]
        session.probe("single_hop", "probe_step", setting, answers, [result, answer], goal=goal)
    yield


def _step(session: Session) -> Iterator[None]:
    """Come back to one step of a procedure."""
    chapter, goal = session.rng.choice(session.procedures[-8:])
    steps = session.pages.steps(chapter, goal)
    at = session.rng.randrange(1, len(steps))
    setting = session.world.settings_of[chapter.slug, session.pages.subject(chapter, goal).slug][0]
    ordinal = session.forms["ordinal"][at]
    facts = {"goal": goal, "ordinal": ordinal, "number": str(at + 1), "previous": str(at), "step": steps[at]}
    session.script.user(session.say("ask_step", setting, **facts))
    if session.rng.random() < 0.5:
        session.search(chapter, goal, [session.pages.procedure(chapter, goal)], "search_again")
    session.script.assistant(session.say("answer_step", setting, **facts))
    yield


def _pair(session: Session) -> Iterator[None]:
    """Ask for the defaults of two settings at once; both are searched in parallel."""
    first, world = session.next_setting(), session.world
    peers = [peer for peer in world.settings if peer.aspect is first.aspect and peer.thing is not first.thing]
    second = session.rng.choice(peers)
    facts = {f"{name}2": text for name, text in session.facts(second).items()}
    session.script.user(session.say("ask_pair", first, **facts))
    searches = [(peer.chapter, session.query(peer), [session.reference(peer)]) for peer in (first, second)]
    results = session.searches(searches, world.deal("search"))
    answer = session.script.assistant(session.say("answer_pair", first, **facts))
    session.quotes |= {first.key: first, second.key: second}
    if session.quiz.wants("multi_hop"):
        total = world.defaults[first.key] + world.defaults[second.key]
        answers = world.spellings(total, first.aspect.unit)
        session.probe("multi_hop", "probe_sum", first, answers, [*results, answer], **facts)
        session.locks |= {first.key, second.key}
    yield


def _release(session: Session) -> Iterator[None]:
    """Ask for the version that introduced a setting, and in a second turn for its release date."""
    setting = session.next_setting()
    version, day = session.world.first_version(setting)
    dates = session.dates(datetime.fromisoformat(day))
    facts = {"version": version, "day": day, "date": dates[0]}
    session.script.user(session.say("ask_since", setting))
    reference = session.search(setting.chapter, setting.key, [session.reference(setting)])
    since = session.script.assistant(session.say("answer_since", setting, **facts))
    yield
    session.script.user(session.say("ask_release", setting, **facts))
    changes = session.pages.changes(setting.chapter, setting.thing, version)
    result = session.search(setting.chapter, f"{session.world.product} {version}", [changes])
    path = session.pages.path("change", setting.chapter, setting.thing)
    answer = session.script.assistant(session.say("answer_release", setting, **facts, path=path))
    answers = [*dates, day]
    if session.quiz.wants("multi_hop"):
        session.probe("multi_hop", "probe_bridge", setting, answers, [reference, since, result, answer])
    if session.quiz.wants("temporal"):
        session.probe("temporal", "probe_release", setting, answers, [result, answer], version=version)
    yield


def _trouble(session: Session) -> Iterator[None]:
    """Report an error code, and find its cause and remedy."""
    world = session.world
    chapter, at = session.rng.choice(world.language.chapters), session.rng.randrange(3)
    thing = session.rng.choice(chapter.things)
    setting = world.settings_of[chapter.slug, thing.slug][0]
    code = world.error_code(chapter, at)
    symptom, cause, remedy = (world.clause(form, chapter, thing) for form in chapter.troubles[at])
    facts = {"code": code, "symptom": symptom, "cause": cause, "remedy": remedy}
    session.script.user(session.say("ask_trouble", setting, **facts))
    result = session.search_hard(chapter, code, symptom, session.pages.trouble(chapter, thing, at))
    facts["path"] = session.pages.path("trouble", chapter, thing)
    answer = session.script.assistant(session.say("answer_trouble", setting, **facts))
    if session.quiz.wants("single_hop"):
        session.probe("single_hop", "probe_trouble", setting, [code], [result, answer], **facts)
    yield


def _override(session: Session) -> Iterator[None]:
    """Say that a site has a value of its own for a setting."""
    setting = session.next_setting()
    sites = [site for site in session.world.sites if f"{setting.key} {site}" not in session.locks]
    site = session.rng.choice(sites)
    value = session.other_value(setting, session.world.value(setting))
    session.script.user(session.say("ask_override", setting, site=site, override=value))
    session.search(setting.chapter, setting.key, [session.reference(setting)])
    session.script.assistant(session.say("answer_override", setting, site=site, override=value))
    session.overrides.append(Override(setting, site, value))
    yield


def _override_change(session: Session) -> Iterator[None]:
    """Say that such a value has changed."""
    setting, site, old = session.overrides.pop(session.rng.randrange(len(session.overrides)))
    value = session.other_value(setting, old, session.world.value(setting))
    facts = {"site": site, "override": value}
    message = session.script.user(session.say("ask_override_change", setting, **facts))
    if session.rng.random() < 0.5:
        session.search(setting.chapter, session.query(setting), [session.reference(setting)])
    answer = session.script.assistant(session.say("answer_override_change", setting, **facts, old=old))
    if session.quiz.wants("updated_fact"):
        answers = session.world.spellings(int(value.split(" ")[0]), setting.aspect.unit)
        session.probe("updated_fact", "probe_override", setting, answers, [message, answer], site=site)
        session.locks.add(f"{setting.key} {site}")
    yield


def _plan(session: Session) -> Iterator[None]:
    """State the day of a plan."""
    (site, occasion), setting = session.occasions.pop(), session.rng.choice(session.world.settings)
    day = session.script.now + timedelta(days=session.rng.randint(9, 60))
    facts = session.plan_facts(site, occasion, day)
    message = session.script.user(session.say("ask_plan", setting, **facts))
    session.search(setting.chapter, session.query(setting), [])
    path = session.pages.path("overview", setting.chapter, setting.thing)
    session.script.assistant(session.say("answer_plan", setting, path=path, **facts))
    session.plans.append(SessionPlan(site, occasion, day, message))
    yield


def _plan_change(session: Session) -> Iterator[None]:
    """Put off something that was planned."""
    plan = session.plans.pop(session.rng.randrange(len(session.plans)))
    setting = session.rng.choice(session.world.settings)
    day = max(plan.day, session.script.now) + timedelta(days=session.rng.randint(2, 25))
    first_dates, dates = session.dates(plan.day), session.dates(day)
    facts = session.plan_facts(plan.site, plan.occasion, day) | {"old": first_dates[0]}
    message = session.script.user(session.say("ask_plan_change", setting, **facts))
    answer = session.script.assistant(session.say("answer_plan_change", setting, **facts))
    if session.quiz.wants("temporal"):
        session.probe("temporal", "probe_first_date", setting, first_dates, [plan.message, answer], **facts)
    if session.quiz.wants("temporal"):
        answers = session.world.spellings((day.date() - plan.day.date()).days, session.world.text("days"))
        session.probe("temporal", "probe_moved", setting, answers, [plan.message, message, answer], **facts)
    if session.quiz.wants("updated_fact"):
        session.probe("updated_fact", "probe_plan", setting, dates, [message, answer], **facts)
    yield


def _news(session: Session) -> Iterator[None]:
    """Release a version that changes a default."""
    world = session.world
    free = [setting for setting in session.quotes.values() if setting.key not in session.locks]
    setting = session.rng.choice(free) if free else session.next_setting()
    old = world.value(setting)
    world.defaults[setting.key] = int(session.other_value(setting, old).split(" ")[0])
    session.changes.add(setting.key)
    version = world.release(session.script.now)
    line = world.text("default_change", key=setting.key, old=old, new=world.value(setting))
    session.script.user(session.say("ask_news", setting, version=version))
    changes = session.pages.changes(setting.chapter, setting.thing, version, line)
    result = session.search_hard(setting.chapter, f"{version} {setting.key}", setting.key, changes)
    path = session.pages.path("change", setting.chapter, setting.thing)
    answer = session.script.assistant(session.say("answer_news", setting, version=version, old=old, path=path))
    if session.quiz.wants("updated_fact"):
        session.probe("updated_fact", "probe_news", setting, world.answers(setting), [result, answer])
        session.locks.add(setting.key)
    yield


_KINDS: Mapping[str, Callable[[Session], Iterator[None]]] = {
    "setting": _setting,
    "procedure": _procedure,
    "plan": _plan,
    "override": _override,
    "pair": _pair,
    "release": _release,
    "step": _step,
    "override_change": _override_change,
    "trouble": _trouble,
    "plan_change": _plan_change,
    "news": _news,
    "value": _value,
}
