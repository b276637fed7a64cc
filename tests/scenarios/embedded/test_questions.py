"""The scenario `questions`: short, balanced, and each answer where its evidence says that it is."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import chain

import pytest

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.embedded.questions import CONVERSATIONS, make, make_all
from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, Message, Probe, check
from tests.scenarios.embedded.test_kinds import computed_ids, without_gold

ALL = {name: make(name) for name in CONVERSATIONS}
LONG = {"questions/en/stock", "questions/zh/library"}
"""Conversations with two tool results that are much longer than what the archive puts in their place."""
PINNED = "b47413154f242799"
"""The start of the SHA-256 over the digests. Change it only on purpose, and record the replies of the model anew."""


@pytest.fixture(params=ALL, name="conversation")
def each_conversation(request: pytest.FixtureRequest) -> Conversation:
    return ALL[request.param]


def answerable(conversation: Conversation) -> list[Probe]:
    return [probe for probe in conversation.probes if probe.answerable]


def messages_with(text: str, conversation: Conversation) -> list[Message]:
    """The messages whose text or tool arguments have a text."""
    return [
        message
        for message in conversation.messages
        if text in message.text or any(text in call.arguments for call in message.calls)
    ]


def test_there_are_five_in_each_language() -> None:
    """Ten conversations in a fixed order, English and Chinese by turns."""
    found = list(scenario("questions"))
    assert [c.id for c in found] == [f"questions/{name}" for name in CONVERSATIONS]
    assert [c.language for c in found] == ["en", "zh"] * 5


def test_the_bytes_stay() -> None:
    """Nothing has changed by accident, and a second reading gives the same."""
    digests = [c.digest() for c in make_all()]
    assert digests == [c.digest() for c in make_all()]
    assert hashlib.sha256("".join(digests).encode()).hexdigest().startswith(PINNED)


def test_each_is_short(conversation: Conversation) -> None:
    """A small model reads each in less than a minute, and each has tool results that an archive can shorten."""
    check(conversation, Place("embedded"))
    counter = TokenCounter()
    assert 16 <= len(conversation.messages) <= 30
    long = conversation.id in LONG
    least, most = (2000, 2300) if long else (600, 900)
    assert least <= sum(map(counter.message, conversation.messages)) <= most
    results = [counter.text(message.text) for message in conversation.messages if message.role == "tool"]
    assert len(results) == 2 if long else 2 <= len(results) <= 4
    shortest, longest = (650, 800) if long else (60, 160)
    assert all(shortest <= size <= longest for size in results)


def test_each_takes_days(conversation: Conversation) -> None:
    """The sessions are on three or four days at least, so that it matters when something was said."""
    days = {int(message.time or 0) // 86_400 for message in conversation.messages}
    assert len(days) >= (3 if conversation.id in LONG else 4)


def test_each_asks_every_category(conversation: Conversation) -> None:
    """Eleven questions with an answer and two without, each asked once, at the end."""
    assert Counter(probe.category for probe in conversation.probes) == {
        "single_hop": 4,
        "multi_hop": 2,
        "updated_fact": 2,
        "temporal": 2,
        "preference": 1,
        "unanswerable": 2,
    }
    assert {probe.after for probe in conversation.probes} == {conversation.messages[-1].id}
    assert len({probe.question for probe in conversation.probes}) == len(conversation.probes)


def test_there_are_enough_questions() -> None:
    """Each category and each language has enough questions for a share to mean something."""
    probes = [(c.language, probe) for c in ALL.values() for probe in c.probes]
    assert len(probes) == 130
    assert Counter(language for language, probe in probes if probe.answerable) == {"en": 55, "zh": 55}
    assert min(Counter(probe.category for _, probe in probes).values()) == 10


def test_each_answer_stands_in_its_evidence(conversation: Conversation) -> None:
    """The first accepted answer stands there word for word, unless it is worked out: then it stands nowhere."""
    assert list(without_gold(conversation)) == []
    text = {message.id: message.text for message in conversation.messages}
    for probe in answerable(conversation):
        if probe.id in computed_ids(conversation):
            assert not any(messages_with(answer, conversation) for answer in probe.answers), probe.question
        else:
            assert any(probe.answers[0] in text[name] for name in probe.evidence), probe.question
        assert len(probe.evidence) > 1 or probe.category != "multi_hop"


def test_an_answer_does_not_stand_elsewhere(conversation: Conversation) -> None:
    """No message repeats an answer that is evidence elsewhere: what a strategy drops is really gone."""
    for probe in answerable(conversation):
        if probe.id not in computed_ids(conversation) and probe.category != "preference":
            places = {message.id for message in messages_with(probe.answers[0], conversation)}
            assert places <= set(probe.evidence), probe.question


def test_a_quarter_or_more_of_the_answers_is_in_tool_results_alone() -> None:
    """Strategies that shorten tool results lose something."""
    for conversation in ALL.values():
        roles = [
            {message.role for message in messages_with(probe.answers[0], conversation)}
            for probe in answerable(conversation)
        ]
        assert roles.count({"tool"}) in ({5} if conversation.id in LONG else {3, 4})


def test_facts_are_spread(conversation: Conversation) -> None:
    """Each third of a conversation is the place of two answers or more, and hardly any is in the last user turn."""
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    size = len(place)
    places = [max(place[name] for name in probe.evidence) for probe in answerable(conversation)]
    assert min(Counter(3 * at // size for at in places)[third] for third in range(3)) >= 2
    users = [at for at, message in enumerate(conversation.messages) if message.role == "user"]
    assert sum(at > min(places) for at in users) >= 4
    assert sum(at >= users[-1] for at in places) <= 1


def test_unanswerable_questions_have_no_gold() -> None:
    """Twenty questions have no answer, and it is right to say so."""
    lacking = [probe for probe in chain.from_iterable(c.probes for c in ALL.values()) if not probe.answerable]
    assert len(lacking) == 20
    assert not any(probe.answers or probe.evidence for probe in lacking)


def test_answers_are_short(conversation: Conversation) -> None:
    """A question and an answer take one line each, and the grader takes every accepted spelling for right."""
    for probe in answerable(conversation):
        assert len(probe.question) <= 110
        assert all(len(answer.split()) <= 6 and len(answer) <= 26 for answer in probe.answers)
        assert len(set(probe.answers)) == len(probe.answers)
        items = [GradedItem("", probe.question, probe.answers, f"{answer}.") for answer in probe.answers]
        assert all(isinstance(grade, Grade) and grade.correct for grade in RulesGrader().grade(items)), probe.question


def test_an_old_value_is_no_answer_to_the_new_question(conversation: Conversation) -> None:
    """The date before a change is wrong where the newest is asked for, and the other way round."""
    dated = [
        (old, new)
        for old in conversation.probes
        for new in conversation.probes
        if old.category == "temporal" and new.category == "updated_fact"
    ]
    items = [GradedItem("", new.question, new.answers, old.answers[0]) for old, new in dated]
    items += [GradedItem("", old.question, old.answers, new.answers[0]) for old, new in dated]
    assert not any(isinstance(grade, Grade) and grade.correct for grade in RulesGrader().grade(items))
