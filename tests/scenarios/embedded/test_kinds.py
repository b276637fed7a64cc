"""What is true of every kind of embedded conversation, in both languages."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest
from ctxbench.scenarios.check import check
from ctxbench.scenarios.embedded import KINDS, LANGUAGES
from ctxbench.scenarios.errors import Place

every = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("language", LANGUAGES)
CATEGORIES = {"single_hop", "multi_hop", "temporal", "updated_fact", "unanswerable"}


@every
@both
def test_the_seed_decides_the_bytes(kind: str, language: str) -> None:
    """The same seed makes the same bytes, another seed others."""
    make = KINDS[kind]
    assert make(5, 12, language).to_json() == make(5, 12, language).to_json()
    assert make(5, 12, language).to_json() != make(6, 12, language).to_json()


def test_the_order_of_sets_does_not_reach_the_bytes() -> None:
    """Two processes that hash text differently make the same scenario."""
    code = "from ctxbench.scenarios.embedded import scenario; print([c.digest() for c in scenario('smoke')])"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert printed[0] == printed[1]


@every
@both
@pytest.mark.parametrize("turns", [1, 3, 12, 100])
def test_has_the_turns_asked_for(kind: str, language: str, turns: int) -> None:
    """Any number of user turns is honoured, the conversation is sound, every call has its result, the agent answers."""
    conversation = KINDS[kind](2, turns, language)
    check(conversation, Place("made"))
    assert conversation.language == language
    assert sum(message.role == "user" for message in conversation.messages) == turns
    assert conversation.messages[-1].role == "assistant"
    calls = [call.id for message in conversation.messages for call in message.calls]
    assert len(calls) == len(set(calls))
    assert {message.answers for message in conversation.messages if message.role == "tool"} == set(calls)


@every
@both
def test_every_category_is_asked_after_its_evidence(kind: str, language: str) -> None:
    """A long conversation has probes of all categories, none asked before what it rests on was said."""
    conversation = KINDS[kind](3, 40, language)
    assert {probe.category for probe in conversation.probes} >= CATEGORIES
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    for probe in conversation.probes:
        assert all(place[name] <= place[probe.after] for name in probe.evidence)


@every
@both
@pytest.mark.parametrize("seed", range(3))
def test_text_is_varied(kind: str, language: str, seed: int) -> None:
    """Most stretches of 40 characters occur once: results are not one paragraph over and over."""
    messages = KINDS[kind](seed, 12, language).messages
    stretches = [message.text[at : at + 40] for message in messages for at in range(len(message.text) - 39)]
    assert len(set(stretches)) / len(stretches) > 0.5


@every
@both
def test_pauses_outlast_prompt_caches(kind: str, language: str) -> None:
    """Some pauses are over five minutes, some over an hour, some are nights."""
    times = [message.time or 0 for message in KINDS[kind](1, 40, language).messages]
    gaps = [later - before for before, later in pairwise(times)]
    assert any(gap > 300 for gap in gaps)
    assert any(gap > 3600 for gap in gaps)
    assert any(gap > 8 * 3600 for gap in gaps)
