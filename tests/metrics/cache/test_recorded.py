"""Recorded calls beside the cache models: by hand, and on the sample recordings to the token."""

from __future__ import annotations

from pathlib import Path

import pytest
from ctxbench.harness.inputs import Inputs
from ctxbench.metrics.cache.automatic import AutomaticRules
from ctxbench.metrics.cache.boundary import BoundaryRules, UnitRules
from ctxbench.metrics.cache.recorded import Compared, Replayed
from ctxbench.metrics.cache.rules import rule_for
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.model import Call, Conversation, Mark, Message, Usage
from ctxbench.scenarios.source import Problems

COUNTER = TokenCounter()


def compared(folder: Path) -> list[Compared]:
    return list(Replayed(COUNTER).compare(Inputs((str(folder),)).open(Problems()).conversations()))


def of_family(rows: list[Compared], family: str) -> list[Compared]:
    return [row for row in rows if row.rule.family.startswith(family)]


def test_openhands(recordings: Path) -> None:
    """Explicit marks of 2024: 84 of 87 calls to the token; nothing is predicted for the host that had no cache yet."""
    rows = compared(recordings / "openhands")
    claude, bedrock = of_family(rows, "claude"), of_family(rows, "bedrock")
    assert (len(claude), sum(row.exact for row in claude)) == (87, 84)
    assert (len(bedrock), sum(row.predicted.read + row.predicted.written for row in bedrock)) == (77, 0)
    assert sorted(row.reason for row in claude if not row.exact) == [
        "a longer prefix was read",
        "still there after its lifetime",
        "warmed by another run",
    ]


def test_mini_swe_agent(recordings: Path) -> None:
    """Automatic units of 64: exact on 98 % of the calls after the first, the hit rate within 0.05 points."""
    rows = compared(recordings / "mini-swe-agent")
    later = [row for row in rows if row.gap is not None]
    assert (len(later), sum(row.exact for row in later)) == (1066, 1046)
    tokens = sum(row.usage.input or 0 for row in rows)
    predicted, reported = sum(row.predicted.read for row in rows), sum(row.read for row in rows)
    assert abs(predicted - reported) / tokens < 0.0005


def test_pi_sessions(recordings: Path) -> None:
    """A person at the keyboard: every pause over five minutes is an expiry, as predicted; other misses are named."""
    rows = compared(recordings / "pi-sessions")
    pauses = [row for row in rows if row.gap is not None and row.gap > 300]
    assert len(pauses) == 5
    assert all(row.exact and row.predicted.read == 0 for row in pauses)
    assert sum(row.exact for row in rows) == 862
    gone = [row.reason for row in rows if row.reason.startswith("gone before its lifetime")]
    assert (len(gone), gone.count("gone before its lifetime, at a user's turn")) == (42, 41)


def call(at: int, asked: float, read: int, written: int, tokens: int) -> Message:
    usage = Usage(tokens, 10, read, written)
    recorded = Call("claude-sonnet-4-5", "anthropic", usage, asked, (Mark(f"u{at}"),))
    return Message(f"a{at}", "assistant", f"answer {at}", time=asked + 2, call=recorded)


def test_by_hand() -> None:
    """One writes, one reads that and writes more, one after six minutes writes all; our own counts do not matter."""
    said: list[Message] = []
    reported = [(0, 0, 5000, 5007), (60, 5000, 300, 5307), (420, 0, 5600, 5607)]
    for at, (asked, read, written, tokens) in enumerate(reported):
        said += [Message(f"u{at}", "user", f"question {at}"), call(at, 1.79e9 + asked, read, written, tokens)]
    rows = list(Replayed(COUNTER).compare([Conversation("c", tuple(said))]))
    assert [row.predicted.read for row in rows] == [0, 5000, 0]
    assert [row.reason for row in rows] == ["", "", ""]
    assert [row.gap for row in rows] == [None, 60, 360]


@pytest.mark.parametrize(
    ("model", "day", "family", "look_back"),
    [
        ("litellm_proxy/claude-3-5-sonnet-20241022", 1733339403, "claude", 1),
        ("claude-sonnet-4-5", 1765233944, "claude", 20),
        ("litellm_proxy/anthropic.claude-3-5-sonnet-20241022-v2:0", 1733339403, "bedrock", None),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, "bedrock", 20),
    ],
)
def test_rules_have_dates(model: str, day: float | None, family: str, look_back: int | None) -> None:
    """A rule is found by the model's name, its host and the recording's date."""
    rule = rule_for(model, day)
    assert rule is not None
    assert rule.family.startswith(family)
    assert getattr(rule.rules, "look_back", None) == look_back


@pytest.mark.parametrize(
    ("model", "when", "kind"),
    [
        ("gpt-4o-2024-08-06", None, AutomaticRules),
        ("gpt-5.1-codex", None, AutomaticRules),
        ("openai/gpt-5.6", None, BoundaryRules),
        ("gpt-6.1-sol", None, BoundaryRules),
        ("deepseek-chat", 1776225559, AutomaticRules),
        ("deepseek-v4-pro", 1790000000, UnitRules),
        ("gemini/gemini-2.5-pro", None, AutomaticRules),
    ],
)
def test_mechanisms_by_model_and_date(model: str, when: float | None, kind: type[object]) -> None:
    """Which mechanism a model's cache has, and that every rule names its source."""
    rule = rule_for(model, when)
    assert rule is not None
    assert isinstance(rule.rules, kind)
    assert rule.source


def test_a_provider_that_places_breakpoints_itself() -> None:
    """GPT-5.6: the end of each user's message is a boundary, so the next call reads the prompt before it."""
    said: list[Message] = []
    for at, (read, tokens) in enumerate([(0, 3000), (3000, 4000)]):
        recorded = Call("gpt-5.6", "", Usage(tokens, 10, read), 1.79e9 + at)
        said += [Message(f"u{at}", "user", f"q {at}"), Message(f"a{at}", "assistant", "yes", call=recorded)]
    rows = list(Replayed(COUNTER).compare([Conversation("c", tuple(said))]))
    assert [row.predicted.read for row in rows] == [0, 3000]


def test_a_call_without_a_time_does_not_undate_the_others() -> None:
    """It is judged by the latest rule; a recording of 2024 beside it by that of its date."""
    old = Call("claude-sonnet-4", "", Usage(5000, 1), 1733339403.0)
    new = Call("claude-sonnet-4", "", Usage(5000, 1))
    talks = [
        Conversation(name, (Message("u", "user", "hi"), Message("a", "assistant", "yes", call=call)))
        for name, call in (("old", old), ("new", new))
    ]
    since = {row.conversation: row.rule.since for row in Replayed(COUNTER).compare(talks)}
    assert since == {"old": "", "new": "2025-03-13"}


def test_models_without_a_rule_are_counted() -> None:
    """Nothing is predicted where no rule is known, and it is said of how many calls."""
    usage = Call("nobody/knows", "", Usage(10, 1), 0.0)
    said = (Message("u", "user", "hi"), Message("a", "assistant", "yes", call=usage, time=1.0))
    replayed = Replayed(COUNTER)
    assert list(replayed.compare([Conversation("c", said)])) == []
    assert replayed.without_rule == {"nobody/knows": 1}
