"""Constraints: which sentences are standing rules, how well the rule finds them, and which of them are retained."""

import hashlib
import re
import tomllib
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.metrics.constraints import constraints, is_standing_rule, retained_constraints, rules_of, unmarked
from ctxbench.metrics.figures import LANGUAGE, METRICS
from ctxbench.metrics.grounding import said
from ctxbench.metrics.language import sentences
from ctxbench.metrics.value import Missing
from ctxbench.metrics.values import occurs
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message
from ctxbench.scenarios.source import Problems
from tests.builders import answering, sent, talk, when

LABELS = tomllib.loads((Path(__file__).parent / "constraint_labels.toml").read_text("utf-8"))
SYSTEM, USER = (136, 0.985, 0.694), (82, 0.744, 0.649)
"""Rules found in the embedded scenarios by role, and how many of these are rules, and of the rules are found."""


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        ("user", "Never push to main."),
        ("user", "Please do not touch the tests."),
        ("user", "If a test fails, don't delete it."),
        ("user", "From now on, answer in French."),
        ("user", "You must always run the linter."),
        ("user", "**IMPORTANT**: only use the tools that you have."),
        ("user", "以后邮件一律用中文写。"),
        ("user", "不要改动测试文件。"),
        ("system", "Answer in one sentence."),
        ("system", "Opened goods cannot be returned."),
        ("system", "If the customer is angry, offer a voucher."),
        ("system", "不得透露客户的地址。"),
    ],
)
def test_rules(role: str, sentence: str) -> None:
    """Orders, what holds from now on and what binds the assistant are rules; in a system message any modal verb too."""
    assert is_standing_rule(sentence, role)


@pytest.mark.parametrize(
    "sentence",
    [
        "Must I never push to main?",
        'He said "never push to main" and left.',
        "I never push to main.",
        "Never mind the train.",
        "Don't worry about that one.",
        "You must have pushed to main already.",
        "Opened goods were returned yesterday.",
        "Never!",
        "那必须的，他是一名导演。",
        "你要不要看看测试文件呢？",
        "Never " + "very " * 100 + "long.",
    ],
)
def test_no_rules(sentence: str) -> None:
    """Questions, quotes, talk of oneself and of the past, idioms, and what is too short or too long."""
    assert not is_standing_rule(sentence, "user")


def test_what_is_left_out_of_a_message() -> None:
    """Code, quotes, headings, tables and the content of elements are no speech; neither is what a tool says."""
    text = (
        "# Never a heading\n- Never push to main.\n> Never a quoted line.\n```\nNever in a fence.\n```\n"
        "| Never in | a table |\n<issue_description>\nNever in material.\n</issue_description>\n"
        "1. Always   run\tthe tests. Is it done?\n12: never = code;"
    )
    assert list(rules_of(Message("m", "user", text))) == ["Never push to main.", "Always run the tests."]
    assert list(rules_of(Message("m", "user", "<file> is a name.\nNever touch it."))) == ["Never touch it."]
    assert not list(rules_of(Message("m", "tool", "Never push to main.")))


TALK = talk(
    ("system", "You keep a garden. Never water at noon. Answer in one sentence."),
    ("user", "Hello."),
    ("assistant", "Hello."),
    ("user", "From now on,  call me Ada. Never water at noon."),
    ("assistant", "Yes, Ada."),
    answering("m5", "c", "Do not cut the roses."),
    ("user", "Do not cut the roses."),
    ("assistant", "I will not."),
)
"""Messages 0–7; the model was called for 2, 4 and 7."""


def test_retained_by_hand() -> None:
    """Two rules before the first call, three before the second, four before the third; each counts once."""
    found = constraints(TALK)
    assert found.rules == [
        *("Never water at noon.", "Answer in one sentence."),
        *("From now on, call me Ada.", "Do not cut the roses."),
    ]
    assert found.by_step.tolist() == [2, 3, 4]
    whole = sent([(0, 2)], [(0, 4)], [(0, 7)])
    assert retained_constraints(found, *when(found, whole)).tolist() == [2, 3, 4]
    # Without the system message the user still says one of its rules.
    assert retained_constraints(found, *when(found, sent([(1, 2)], [(3, 4)], [(3, 7)]))).tolist() == [0, 2, 3]
    # What only the tool said counts from the user's message on.
    assert retained_constraints(found, *when(found, sent([(5, 6)], [(5, 6)], [(5, 6)]))).tolist() == [0, 0, 1]


def test_a_summary_keeps_what_it_quotes() -> None:
    """A rule in other words is gone; white space does not matter."""
    summary = Message("s", "system", "The user wants:\nNever water\n  at noon. The user is called Ada.")
    steps = [[(8, 9)], [(8, 9)], [(8, 9)]]
    found = constraints(TALK)
    assert retained_constraints(found, *when(found, sent(*steps), [summary])).tolist() == [1, 1, 1]


def test_nothing_stated() -> None:
    """A conversation without rules has none to keep."""
    found = constraints(talk(("user", "hi"), ("assistant", "hello")))
    assert found.by_step.tolist() == [0]
    assert retained_constraints(found, *when(found, sent([(0, 1)]), [Message("s", "system", "x")])).tolist() == [0]
    steps = pd.DataFrame({"constraints": found.by_step, "constraints_kept": [0], "demands": 0, "demands_kept": 0})
    recall = METRICS["constraint_recall"].of
    assert recall(steps) == Missing("undefined", "no standing rule was found")
    unread = constraints(talk(("user", "한국어로만 대답하세요."), ("assistant", "네."))).by_step
    assert unread.tolist() == [-1]
    for metric in ("constraint_recall", "grounding"):
        assert METRICS[metric].of(steps.assign(constraints=unread)) == Missing("unsupported", LANGUAGE)
    some = steps.assign(constraints=[2], constraints_kept=[1])
    assert recall(pd.concat([some, steps.assign(constraints=unread)])) == 0.5


TEXTS = st.lists(
    st.sampled_from(["Never go.", "Never go home.", "Always be kind.", "不要改动测试。", "Well."]), max_size=3
)


@given(st.data())
def test_equals_looking_at_every_message(data: st.DataObject) -> None:
    """What is retained is what reading every message of every context gives, on any runs."""
    roles = data.draw(st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1, max_size=10))
    texts = [" ".join(data.draw(TEXTS)) for _ in roles]
    messages = tuple(
        answering(f"m{at}", "c", text) if role == "tool" else Message(f"m{at}", role, text)  # type: ignore[arg-type]
        for at, (role, text) in enumerate(zip(roles, texts, strict=True))
    )
    conversation = Conversation("any", messages)
    written = [Message("s", "system", data.draw(st.sampled_from(" \n")).join(data.draw(TEXTS)))]
    steps = []
    for at in conversation.calls():
        spans = data.draw(st.lists(st.tuples(st.integers(0, at - 1), st.integers(1, at)), max_size=3))
        runs = [(start, stop) for start, stop in spans if start < stop]
        steps.append(runs + [(len(messages), len(messages) + 1)] * data.draw(st.integers(0, 1)))
    found, everything = constraints(conversation), [*messages, *written]
    for step, at in enumerate(conversation.calls()):
        stated = {rule for message in messages[:at] for rule in rules_of(message)}
        context = [said(message) for start, stop in steps[step] for message in everything[start:stop]]
        kept = sum(any(occurs(rule, text) for text in context) for rule in stated)
        assert found.by_step[step] == len(stated)
        assert retained_constraints(found, *when(found, sent(*steps), written))[step] == kept


def test_how_well_rules_are_found_in_the_embedded_scenarios() -> None:
    """Precision and recall against the labels are what docs/metrics.md says."""
    labelled = {
        role: re.compile("|".join(".*".join(map(re.escape, rule.split("*"))) for rule in rules))
        for role, rules in LABELS["embedded"].items()
    }
    seen: set[tuple[str, str]] = set()
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for name in ("standard", "traps", "questions"):
        for message in (message for conversation in scenario(name) for message in conversation.messages):
            if message.role not in labelled:
                continue
            found = set(rules_of(message))
            for sentence in {unmarked(text) for text in sentences(message.text)}:
                if (message.role, sentence) not in seen:
                    seen.add((message.role, sentence))
                    is_rule = labelled[message.role].fullmatch(sentence) is not None
                    counts[message.role, is_rule, sentence in found] += 1
    measured = {}
    for role in labelled:
        right, wrong, missed = (counts[role, *key] for key in ((True, True), (False, True), (True, False)))
        measured[role] = (right + wrong, round(right / (right + wrong), 3), round(right / (right + missed), 3))
    assert measured == {"system": SYSTEM, "user": USER}


@pytest.mark.slow
def test_how_well_rules_are_found_in_the_sample_recordings(recordings: Path) -> None:
    """All labelled sentences are found there; 83 of 99 are rules, as docs/metrics.md says."""
    names = sorted(path.name for path in recordings.iterdir() if path.name not in ("evouna", "halluqa-zh", "mtrag"))
    paths = RunInputs(tuple(str(recordings / name) for name in names))
    found = {
        hashlib.sha256(rule.encode()).hexdigest()[:16]
        for conversation in paths.read(Problems(strict=False))
        for message in conversation.messages
        for rule in rules_of(message)
    }
    rules, none = (set(LABELS["samples"][label]) for label in ("rules", "none"))
    assert rules | none <= found
    assert (len(rules), len(none)) == (83, 16)
