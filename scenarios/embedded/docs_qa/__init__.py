"""Scenario kind docs_qa: an agent that answers questions from the documentation of an invented product.

The load is that of a documentation agent in production: nearly every turn searches, a search brings 5 000 to 50 000
characters (`mix` about 45 000, `local` and `naive` about 12 000), and later turns refer back to what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from datetime import datetime, timedelta
from itertools import islice
from random import Random

from ...model import Conversation
from . import en, zh
from .pack import Area
from .session import Session


def make(seed: int, turns: int, language: str) -> Conversation:
    """One conversation with this many user turns, in `en` or `zh`: the same arguments give the same bytes."""
    rng = Random(f"docs_qa/{seed}/{language}")
    pack = {"en": en.pack, "zh": zh.pack}[language]()
    talk = Session(pack, rng, f"docs_qa/{language}-{seed}-{turns}", turns)
    for _ in islice(_turns(talk), turns):
        talk.none_probe()
        talk.quiz.turn_over()
        talk.hours.pause()
    return talk.script.done()


def _turns(talk: Session) -> Iterator[None]:
    """One user turn after the other, without end: the first dozen has every kind once, later ones repeat some."""
    needs: Mapping[str, Sized] = {
        "step": talk.procedures,
        "own_new": talk.own,
        "plan_new": talk.plans,
        "plan": talk.occasions,
    }
    first = talk.rng.sample(("setting", "procedure"), 2)
    rest = talk.rng.sample([kind for kind in _KINDS if kind not in (*first, "value")], len(_KINDS) - 3)
    deck = [first[0], rest.pop(), first[1], *rest]
    while True:
        ready = [kind for kind in deck if kind not in needs or needs[kind]]
        if ready:
            deck.remove(ready[0])
            yield from _KINDS[ready[0]](talk)
        else:
            often = ("setting", "procedure", "pair", "trouble", "value", "step")
            deck = talk.rng.sample((*_KINDS, *often), len(_KINDS) + len(often))


# The kinds of turns. Each yields when the assistant has answered.


def _setting(talk: Session) -> Iterator[None]:
    setting = talk.next_setting()
    talk.script.user(talk.say("ask_setting", setting))
    shown = _searched(talk, setting.area, talk.query(setting), setting.key, talk.reference(setting))
    said = talk.script.assistant(talk.say("answer_setting", setting))
    talk.asked[setting.key] = setting, said
    if talk.quiz.wants("single_hop") and talk.rng.random() < 0.8:
        talk.probe("single_hop", "probe_setting", setting, talk.world.accepted(setting), [shown, said])
        talk.fixed.add(setting.key)
    yield


def _value(talk: Session) -> Iterator[None]:
    known = [one for one, _ in talk.asked.values() if one.key not in talk.changed]
    if not known:
        yield from _setting(talk)
        return
    setting = talk.rng.choice(known)
    talk.script.user(talk.say("ask_value", setting))
    talk.script.assistant(talk.say("answer_value", setting))
    yield


def _procedure(talk: Session) -> Iterator[None]:
    area = talk.rng.choice(talk.pack.areas)
    goal = talk.rng.choice(area.goals)
    thing = talk.pages.subject(area, goal)
    setting = talk.world.keys_of[area.slug, thing.slug][0]
    steps = talk.pages.steps(area, goal)
    talk.script.user(talk.say("ask_procedure", setting, goal=goal))
    query = talk.say("query_goal", setting, goal=goal)
    shown = _searched(talk, area, query, goal, talk.pages.procedure(area, goal))
    listed = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
    path = talk.pages.path("procedure", area, thing)
    said = talk.script.assistant(talk.say("answer_procedure", setting, goal=goal, list=listed, path=path))
    talk.procedures.append((area, goal))
    if talk.quiz.wants("single_hop"):
        page = talk.world.page(area, thing)
        talk.probe(
            "single_hop",
            "probe_step",
            setting,
            [page, page.split(" › ", 1)[1], page.rsplit(" › ", 1)[1]],
            [shown, said],
            goal=goal,
        )
    yield


def _step(talk: Session) -> Iterator[None]:
    area, goal = talk.rng.choice(talk.procedures[-8:])
    steps = talk.pages.steps(area, goal)
    at = talk.rng.randrange(1, len(steps))
    ordinal = talk.pack.labels["ordinals"].split("|")[at]
    setting = talk.world.keys_of[area.slug, talk.pages.subject(area, goal).slug][0]
    given = {"goal": goal, "ordinal": ordinal, "number": str(at + 1), "before": str(at), "step": steps[at]}
    talk.script.user(talk.say("ask_step", setting, **given))
    if talk.rng.random() < 0.5:
        talk.search(area, goal, [talk.pages.procedure(area, goal)], "again")
    talk.script.assistant(talk.say("answer_step", setting, **given))
    yield


def _pair(talk: Session) -> Iterator[None]:
    first = talk.next_setting()
    peers = [one for one in talk.world.settings if one.aspect is first.aspect and one.thing is not first.thing]
    second = talk.rng.choice(peers)
    other = {f"{name}2": text for name, text in talk.facts(second).items()}
    talk.script.user(talk.say("ask_pair", first, **other))
    wanted = [(one.area, talk.query(one), [talk.reference(one)]) for one in (first, second)]
    shown = talk.searches(wanted, talk.world.deal("look"))
    said = talk.script.assistant(talk.say("answer_pair", first, **other))
    for one in (first, second):
        talk.asked[one.key] = one, said
    if talk.quiz.wants("multi_hop"):
        total = talk.world.values[first.key] + talk.world.values[second.key]
        answers = talk.world.spellings(total, first.aspect.unit)
        talk.probe("multi_hop", "probe_sum", first, answers, [*shown, said], **other)
        talk.fixed |= {first.key, second.key}
    yield


def _release(talk: Session) -> Iterator[None]:
    setting = talk.next_setting()
    version, day = talk.world.versions[talk.world.since(setting)]
    given = {"version": version, "day": day, "date": talk.dates(datetime.fromisoformat(day))[0]}
    talk.script.user(talk.say("ask_since", setting))
    found = talk.search(setting.area, setting.key, [talk.reference(setting)])
    since = talk.script.assistant(talk.say("answer_since", setting, **given))
    yield
    talk.script.user(talk.say("ask_release", setting, **given))
    notes = talk.pages.changes(setting.area, setting.thing, version)
    shown = talk.search(setting.area, f"{talk.world.product} {version}", [notes])
    given["path"] = talk.pages.path("change", setting.area, setting.thing)
    said = talk.script.assistant(talk.say("answer_release", setting, **given))
    dates = [*talk.dates(datetime.fromisoformat(day)), day]
    if talk.quiz.wants("multi_hop"):
        talk.probe("multi_hop", "probe_bridge", setting, dates, [found, since, shown, said])
    if talk.quiz.wants("temporal"):
        talk.probe("temporal", "probe_release", setting, dates, [shown, said], version=version)
    yield


def _trouble(talk: Session) -> Iterator[None]:
    area, at = talk.rng.choice(talk.pack.areas), talk.rng.randrange(3)
    thing = talk.rng.choice(area.things)
    setting = talk.world.keys_of[area.slug, thing.slug][0]
    code = talk.world.code(area, at)
    symptom, cause, remedy = (talk.world.clause(text, area, thing) for text in area.troubles[at])
    given = {"code": code, "symptom": symptom, "cause": cause, "remedy": remedy}
    talk.script.user(talk.say("ask_trouble", setting, **given))
    shown = _searched(talk, area, code, symptom, talk.pages.trouble(area, thing, at))
    given["path"] = talk.pages.path("trouble", area, thing)
    said = talk.script.assistant(talk.say("answer_trouble", setting, **given))
    if talk.quiz.wants("single_hop"):
        talk.probe("single_hop", "probe_trouble", setting, [code], [shown, said], **given)
    yield


def _own(talk: Session) -> Iterator[None]:
    setting = talk.next_setting()
    site = talk.rng.choice([one for one in talk.world.sites if f"{setting.key} {one}" not in talk.fixed])
    own = talk.another(setting, talk.world.value(setting))
    talk.script.user(talk.say("ask_own", setting, site=site, own=own))
    talk.search(setting.area, setting.key, [talk.reference(setting)])
    talk.script.assistant(talk.say("answer_own", setting, site=site, own=own))
    talk.own.append((setting, site, own))
    yield


def _own_new(talk: Session) -> Iterator[None]:
    setting, site, old = talk.own.pop(talk.rng.randrange(len(talk.own)))
    own = talk.another(setting, old, talk.world.value(setting))
    told = talk.script.user(talk.say("ask_own_new", setting, site=site, own=own))
    if talk.rng.random() < 0.5:
        talk.search(setting.area, talk.query(setting), [talk.reference(setting)])
    said = talk.script.assistant(talk.say("answer_own_new", setting, site=site, own=own, old=old))
    if talk.quiz.wants("updated_fact"):
        answers = talk.world.spellings(int(own.split(" ")[0]), setting.aspect.unit)
        talk.probe("updated_fact", "probe_own", setting, answers, [told, said], site=site)
        talk.fixed.add(f"{setting.key} {site}")
    yield


def _plan(talk: Session) -> Iterator[None]:
    (site, occasion), setting = talk.occasions.pop(), talk.rng.choice(talk.world.settings)
    day = talk.script.now + timedelta(days=talk.rng.randint(9, 60))
    given = talk.plan(site, occasion, day)
    told = talk.script.user(talk.say("ask_plan", setting, **given))
    talk.search(setting.area, talk.query(setting), [])
    path = talk.pages.path("overview", setting.area, setting.thing)
    talk.script.assistant(talk.say("answer_plan", setting, path=path, **given))
    talk.plans.append((site, occasion, day, told))
    yield


def _plan_new(talk: Session) -> Iterator[None]:
    site, occasion, before, first = talk.plans.pop(talk.rng.randrange(len(talk.plans)))
    setting = talk.rng.choice(talk.world.settings)
    after = max(before, talk.script.now) + timedelta(days=talk.rng.randint(2, 25))
    given = talk.plan(site, occasion, after) | {"old": talk.dates(before)[0]}
    told = talk.script.user(talk.say("ask_plan_new", setting, **given))
    said = talk.script.assistant(talk.say("answer_plan_new", setting, **given))
    if talk.quiz.wants("temporal"):
        talk.probe("temporal", "probe_first_date", setting, talk.dates(before), [first, said], **given)
    if talk.quiz.wants("temporal"):
        count = (after.date() - before.date()).days
        answers = talk.world.spellings(count, talk.pack.labels["days"])
        talk.probe("temporal", "probe_moved", setting, answers, [first, told, said], **given)
    if talk.quiz.wants("updated_fact"):
        talk.probe("updated_fact", "probe_plan", setting, talk.dates(after), [told, said], **given)
    yield


def _news(talk: Session) -> Iterator[None]:
    free = [one for one, _ in talk.asked.values() if one.key not in talk.fixed]
    setting = talk.rng.choice(free) if free else talk.next_setting()
    old = talk.world.value(setting)
    talk.world.values[setting.key] = int(talk.another(setting, old).split(" ")[0])
    talk.changed.add(setting.key)
    version = talk.world.release(talk.script.now)
    line = talk.pack.labels["new_default"].format(key=setting.key, old=old, new=talk.world.value(setting))
    talk.script.user(talk.say("ask_news", setting, version=version))
    notes = talk.pages.changes(setting.area, setting.thing, version, line)
    shown = _searched(talk, setting.area, f"{version} {setting.key}", setting.key, notes)
    path = talk.pages.path("change", setting.area, setting.thing)
    said = talk.script.assistant(talk.say("answer_news", setting, version=version, old=old, path=path))
    if talk.quiz.wants("updated_fact"):
        talk.probe("updated_fact", "probe_news", setting, talk.world.accepted(setting), [shown, said])
        talk.fixed.add(setting.key)
    yield


def _searched(talk: Session, area: Area, query: str, closer: str, passage: str) -> str:
    """A search that finds the passage, or only the second one does."""
    if talk.rng.random() < 0.6:
        talk.search(area, query, [])
        return talk.search(area, closer, [passage], "again")
    return talk.search(area, query, [passage])


_KINDS: Mapping[str, Callable[[Session], Iterator[None]]] = {
    "setting": _setting,
    "procedure": _procedure,
    "plan": _plan,
    "own": _own,
    "pair": _pair,
    "release": _release,
    "step": _step,
    "own_new": _own_new,
    "trouble": _trouble,
    "plan_new": _plan_new,
    "news": _news,
    "value": _value,
}
