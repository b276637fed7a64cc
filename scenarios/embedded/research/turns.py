"""The turns of the research scenario: topics are opened, compared, left, and returned to; criteria change."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..wording import one
from .papers import Topic
from .review import Agreed, Review
from .words import CRITERIA, Criterion


def explore(r: Review) -> None:
    """A topic that was not talked about yet; when all were, one that has rested."""
    if not r.unvisited:
        back(r)
        return
    topic = r.unvisited.pop()
    r.topics.append(topic)
    r.script.user(r.words("explore", r.facts(topic)))
    r.search(topic, 7 + int(r.rng.random() * 3), topic.name)
    papers = r.rng.sample(topic.papers, 2)
    r.open(topic, papers)
    r.note("note_topic", r.facts(topic, papers[0]))
    r.answer(topic, papers)


def deeper(r: Review) -> None:
    """One more paper of the topic at hand."""
    topic = _current(r)
    unread = [paper for paper in topic.papers if not paper.shown] or topic.papers
    paper = one(r.rng, unread[-8:])
    r.script.user(r.words("deeper", r.facts(topic, paper)))
    r.open(topic, [paper])
    topic.last = r.turn
    r.answer(topic, [paper])


def disagree(r: Review) -> None:
    """Two papers that do not agree, read side by side."""
    topic = _current(r)
    ranked = sorted(topic.papers[-10:], key=lambda paper: (paper.effect, paper.id))
    first, second = ranked[0], ranked[-1]
    facts = r.facts(topic, first, second)
    r.script.user(r.words("disagree", facts))
    r.open(topic, [first, second])
    topic.last = r.turn
    r.answer(topic, [first, second], r.words("answer_compare", facts))


def criterion(r: Review) -> None:
    """A criterion is set, or revised when it was set before."""
    topic = _current(r)
    known = [rule for rule in CRITERIA if rule in r.criteria]
    fresh = [rule for rule in CRITERIA if rule not in r.criteria]
    settled = not any(len(values) == 1 for values in r.criteria.values())  # nothing waits to be revised
    rule = one(r.rng, fresh if fresh and (not known or (settled and r.rng.random() < 0.5)) else known)
    values = r.criteria.setdefault(rule, [])
    value, unit = _new_value(r.rng, rule, values), rule.unit[r.at]
    facts = r.facts(topic) | {
        "crit": rule.name[r.at],
        "value": str(value),
        "old": str(values[-1].value) if values else "",
        "cunit": f" {unit}" if unit else "",
    }
    said = r.script.user(r.words("criterion_change" if values else "criterion_set", facts))
    values.append(Agreed(value, said))
    noted, day = r.note("note_criterion", facts)
    r.search(topic, 5, f"{topic.name} {facts['crit']} {value}")
    papers = topic.papers[-1:]
    r.open(topic, papers)
    r.answer(topic, papers, r.words("answer_criterion", facts))

    about = [rule.name[0]]
    r.questions.forget(rule.name[0])
    if len(values) > 1:
        r.offer("updated_fact", "q_crit", facts, r.counted(value, unit), [said, noted], about=about)
        r.offer("temporal", "q_crit_old", facts, r.counted(values[0].value, unit), [values[0].said])
    r.offer("temporal", "q_noted", facts, [day], [noted], about=about)


def hypothesis(r: Review) -> None:
    """The working hypothesis gets a threshold, or another one."""
    topic = _current(r)
    old, moderator = r.hypotheses.get(topic.name), topic.moderator
    value = moderator.low + int(r.rng.random() * (moderator.high - moderator.low + 1))
    if value == old:
        value = old + 1 if old < moderator.high else old - 1
    facts = r.facts(topic) | {"value": str(value), "old": str(old)}
    said = r.script.user(r.words("hypothesis_set" if old is None else "hypothesis_change", facts))
    noted, _ = r.note("note_hypothesis", facts)
    r.search(topic, 5, f"{topic.name} {value}")
    papers = topic.papers[-1:]
    r.open(topic, papers)
    r.answer(topic, papers, r.words("answer_hypothesis", facts))

    r.hypotheses[topic.name] = value
    r.questions.forget(f"hypothesis {topic.name}")
    category = "single_hop" if old is None else "updated_fact"
    answers = r.counted(value, moderator.unit[r.at])
    r.offer(category, "q_hyp", facts, answers, [said, noted], about=[f"hypothesis {topic.name}"])


def back(r: Review) -> None:
    """Return to a topic after talking about others."""
    rested = [topic for topic in r.topics if topic.opened and topic.last < r.turn - 2]
    if not rested:
        explore(r)
        return
    topic = one(r.rng, rested)
    main = max(topic.opened, key=lambda paper: (paper.sample, paper.id))
    facts = r.facts(topic, main)
    said = r.script.user(r.words("back", facts))
    shown = main.shown
    r.search(topic, 6, f"{topic.name} {facts['moderator']}")
    papers = topic.papers[-2:] if r.rng.random() < 0.5 else topic.papers[-1:]
    r.open(topic, papers)
    r.answer(topic, papers, r.words("answer_recall", facts))

    r.questions.forget(f"main {topic.name}")
    r.offer(
        "multi_hop",
        "q_main",
        facts,
        r.counted(main.sample, facts["units"]),
        [said, shown],
        about=[f"main {topic.name}"],
    )


def plan(rng: Random) -> list[Callable[[Review], None]]:
    """The next turns, the first one last: a topic, others, and back to the first after the detour."""
    detour: list[Callable[[Review], None]] = [explore, disagree, criterion, explore, hypothesis, deeper]
    if rng.random() < 0.5:
        detour = [explore, criterion, deeper, hypothesis, explore, disagree]
    turns: list[Callable[[Review], None]] = [
        explore,
        criterion,
        hypothesis,
        *detour,
        back,
        criterion,
        hypothesis,
        back,
        disagree,
        back,
        criterion,
    ]
    return turns[::-1]


def _current(r: Review) -> Topic:
    return max(r.topics, key=lambda topic: topic.last)


def _new_value(rng: Random, rule: Criterion, values: list[Agreed]) -> int:
    value = rule.low + rule.step * int(rng.random() * ((rule.high - rule.low) // rule.step + 1))
    if values and values[-1].value == value:
        value += rule.step if value + rule.step <= rule.high else -rule.step
    return value
