"""The assistant scenario: seeded, bilingual, with probes whose answers are there to be found."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from itertools import pairwise
from random import Random

import pytest

from ctxbench.scenarios.embedded.assistant import make
from ctxbench.scenarios.embedded.assistant.generator import Examiner
from ctxbench.scenarios.embedded.assistant.language import ENGLISH, Writer
from ctxbench.scenarios.embedded.assistant.life import FactLedger, FactValue
from ctxbench.scenarios.model import Conversation

LANGUAGES = ("en", "zh")
SEEDS = range(8)


@cache
def conversation(seed: int, turns: int, language: str) -> Conversation:
    return make(seed, turns, language)


def spoken(dialogue: Conversation) -> str:
    return "\n".join(message.text for message in dialogue.messages if message.role in ("user", "assistant"))


def examiner(ledger: FactLedger) -> Examiner:
    write = Writer(Random(0), ENGLISH, {"friend": ("Gwen",)}, lambda: date(2026, 3, 1))
    return Examiner(ledger, write, ENGLISH)


def test_the_newest_value_is_the_gold() -> None:
    """After a change the updated fact is the new value with the message that changed it; the old one is history."""
    ledger = FactLedger()
    trip = ledger.subject("trip", "the trip to Porto")
    ledger.record(trip, "out", FactValue(("3 May",), "m1", day=date(2026, 5, 3)))
    assert examiner(ledger).questions("updated_fact") == []
    ledger.record(trip, "out", FactValue(("7 May",), "m9", day=date(2026, 5, 7)))
    (updated,) = examiner(ledger).questions("updated_fact")
    assert (updated.answers, updated.evidence) == (("7 May",), ("m9",))
    (former,) = examiner(ledger).questions("temporal")
    assert (former.answers, former.evidence) == (("3 May",), ("m1",))
    assert examiner(ledger).questions("single_hop") == []


def test_days_between_two_dates_are_counted() -> None:
    """3 May to 20 May are 17 days, and both messages are the evidence."""
    ledger = FactLedger()
    ledger.record(ledger.subject("trip", "the trip"), "out", FactValue(("3 May",), "m1", day=date(2026, 5, 3)))
    ledger.record(ledger.subject("race", "the race"), "day", FactValue(("20 May",), "m5", day=date(2026, 5, 20)))
    (gap,) = examiner(ledger).questions("temporal")
    assert gap.answers[0] == "17 days"
    assert gap.evidence == ("m1", "m5")


def test_two_prices_are_added() -> None:
    """£30 and £45 a month make £75."""
    ledger = FactLedger()
    for label, amount in (("the gym", 30), ("the broadband", 45)):
        ledger.record(ledger.subject("bill", label), "price", FactValue((f"£{amount}",), label, amount=amount))
    (total,) = examiner(ledger).questions("multi_hop")
    assert total.answers[0] == "£75"


def test_subjects_with_the_same_name_are_not_asked_about() -> None:
    """Two trips with one label cannot be told apart, so neither is asked about."""
    ledger = FactLedger()
    for source in ("m1", "m7"):
        ledger.record(ledger.subject("trip", "the trip to Porto"), "ref", FactValue((source.upper(),), source))
    assert not any(examiner(ledger).questions(category) for category in ("single_hop", "updated_fact"))


@pytest.mark.parametrize("seed", SEEDS)
def test_chinese_is_chinese(seed: int) -> None:
    """What is said and asked in Chinese has no English phrases in it and is mostly Chinese characters."""
    dialogue = conversation(seed, 40, "zh")
    text = spoken(dialogue) + "".join(probe.question for probe in dialogue.probes)
    letters = [c for c in text if c.isalpha()]
    assert sum("\u4e00" <= c <= "\u9fff" for c in letters) / len(letters) > 0.97
    assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", text)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_slot_is_left_open(seed: int, language: str) -> None:
    """No form leaves a slot, a choice or a line mark in the text."""
    dialogue = conversation(seed, 40, language)
    text = spoken(dialogue) + "".join(probe.question for probe in dialogue.probes)
    assert not re.search(r"[${}«»¶|\[\]]", text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tool_results_are_as_long_as_real_ones(language: str) -> None:
    """Results have 100 to 6000 characters, most of them over 300."""
    sizes = [len(message.text) for message in conversation(5, 200, language).messages if message.role == "tool"]
    assert max(sizes) <= 6000
    assert sum(size >= 300 for size in sizes) / len(sizes) > (0.9 if language == "en" else 0.5)


@pytest.mark.parametrize("language", LANGUAGES)
def test_months_go_by(language: str) -> None:
    """Forty turns last weeks at least, with pauses of minutes, hours and days."""
    times = [message.time or 0 for message in conversation(6, 40, language).messages]
    gaps = [(late - early) / 3600 for early, late in pairwise(times)]
    assert times[-1] - times[0] > 20 * 86_400
    assert max(gaps) > 48
    assert any(1 / 12 < gap < 1 for gap in gaps)
