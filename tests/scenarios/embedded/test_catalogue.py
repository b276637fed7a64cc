"""The catalogue of embedded scenarios: what each name holds, how much of it, and that its bytes stay."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
import quicktok

from ctxbench.scenarios.embedded import KINDS, LANGUAGES, SCENARIOS, SEEDED, scenario
from ctxbench.scenarios.errors import Place, SpecError
from ctxbench.scenarios.model import Conversation, check, independent_units

COUNT = quicktok.get_encoding("o200k_base").count

PINNED = {
    "docs_qa": "fb689b58a54f11c6",
    "coding": "e66ce43b25ad5416",
    "customer_service": "ce04855c89ff3de2",
    "assistant": "0e3ba77a559cd794",
    "research": "cbf456aaa44d5e76",
    "friends": "dedeea3b1f9cee14",
    "traps": "4d6fc28795683b51",
}
"""The start of the SHA-256 over the digests of a group of the smoke scenario. Change one only on purpose: results on
the old bytes and on the new ones do not compare."""


def tokens(conversations: Iterator[Conversation]) -> int:
    return sum(
        COUNT(message.text) + sum(COUNT(call.arguments) for call in message.calls)
        for conversation in conversations
        for message in conversation.messages
    )


def test_smoke_is_small_and_holds_every_kind() -> None:
    """The smoke scenario has every kind in both languages and all traps but one, in under 80 000 tokens."""
    found = list(scenario("smoke"))
    assert [c.id.split("/")[0] for c in found[:12]] == [kind for kind in KINDS for _ in LANGUAGES]
    assert [c.language for c in found[:12]] == [*LANGUAGES] * 6
    traps = {c.id for c in scenario("traps")}
    assert {c.id for c in found[12:]} == traps - {"traps/enormous_result"}
    assert tokens(iter(found)) < 80_000


def test_standard_is_large_enough() -> None:
    """The standard scenario has 48 conversations, no two of one kind with the same seed, and 1 to 2 million tokens."""
    found = list(scenario("standard"))
    assert len(found) == 48
    assert len({(c.id.split("/")[0], c.id.split("-")[1]) for c in found}) == len(found)
    assert not any("trap" in c.meta for c in found)
    assert 1_000_000 <= tokens(iter(found)) <= 2_000_000


def test_twins_and_traps_are_one_unit() -> None:
    """A generator's conversations are alike in any language, and traps are one list; `questions` were written one by
    one. The digest is that of the content: a unit does not change it."""
    units_of = {
        "standard": {f"{kind}-{seed}" for kind in KINDS for seed in range(8)},
        "smoke": {*(f"{kind}-0" for kind in KINDS), "traps"},
        "fleet": {"fleet"},
        "mem_001": {"mem_001"},
    }
    for name, units in units_of.items():
        found = {c.id: c for c in scenario(name)}
        assert set(independent_units({c.id: c.meta for c in found.values()}).values()) == units
    questions = {c.id: c.meta for c in scenario("questions")}
    assert independent_units(questions) == {name: name for name in questions}
    (made, *_) = scenario("docs_qa", 1)
    assert made.meta["unit"] == "docs_qa-0"
    assert made.digest() == KINDS["docs_qa"](0, 1, "en").digest()


@pytest.mark.parametrize("name", SEEDED)
def test_any_number_of_conversations(name: str) -> None:
    """They come from consecutive seeds, no two with one id, and where they are cut changes none of them."""
    whole = list(scenario(name, 1, 0, 100))
    assert len({conversation.id for conversation in whole}) == 100
    of_one_seed = sum(1 for _ in scenario(name, 1, 0))
    assert [c.digest() for c in whole[:of_one_seed]] == [c.digest() for c in scenario(name, 1, 0)]
    again = [*scenario(name, 1, 0, 2 * of_one_seed), *scenario(name, 1, 2, 3)]
    assert [c.digest() for c in again] == [c.digest() for c in whole[: len(again)]]


def test_a_thousand_million() -> None:
    """The first of a thousand million is there at once."""
    assert next(scenario("friends", 1, 0, 10**9)).id == "friends/en-0-1"


def test_a_number_that_cannot_be() -> None:
    """A fixed set has no other number of conversations, and none is no number."""
    with pytest.raises(SpecError, match="traps: how many conversations it has is fixed"):
        scenario("traps", conversations=9)
    with pytest.raises(SpecError, match="0 conversations: ask for 1 or more"):
        scenario("coding", conversations=0)


def test_sessions_belong_to_the_one_that_started_them() -> None:
    """By `meta["parent"]`, read or not, or by the id before a slash; a circle ends; a unit that is named wins."""
    metas = {
        "s": {}, "s/agent": {}, "s/agent/deeper": {}, "fork": {"parent": "s"}, "of fork": {"parent": "fork"},
        "one": {"parent": "not read"}, "two": {"parent": "not read"}, "round": {"parent": "trip"},
        "trip": {"parent": "round"}, "lone/some": {}, "mine": {"parent": "s", "unit": 7},
    }  # fmt: skip
    assert independent_units(metas) == {
        **dict.fromkeys(("s", "s/agent", "s/agent/deeper", "fork", "of fork"), "s"),
        **dict.fromkeys(("one", "two"), "not read"),
        "round": "trip",
        "trip": "round",
        "lone/some": "lone/some",
        "mine": "7",
    }


@pytest.mark.parametrize("group", PINNED)
def test_the_bytes_of_smoke_stay(group: str) -> None:
    """What the smoke scenario holds has not changed by accident."""
    digests = [c.digest() for c in scenario("smoke") if c.id.startswith(f"{group}/")]
    assert hashlib.sha256("".join(digests).encode()).hexdigest().startswith(PINNED[group])


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_conversation_is_valid(name: str) -> None:
    """Every conversation of every scenario passes the check."""
    for conversation in scenario(name, turns=2):
        check(conversation, Place("embedded"))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("turns", [1, 7])
def test_a_kind_by_its_name(name: str, turns: int) -> None:
    """A kind's name gives it in both languages, with the turns asked for."""
    found = list(scenario(name, turns=turns, seed=3))
    assert [c.language for c in found] == ["en", "zh"]
    for conversation in found:
        assert conversation.id.startswith(f"{name}/")
        assert sum(message.role == "user" for message in conversation.messages) == turns


@pytest.mark.parametrize("name", ["traps", "questions"])
def test_what_is_written_by_hand_ignores_turns_and_seed(name: str) -> None:
    """Neither turns nor seed change the traps and the scenario `questions`."""
    assert [c.digest() for c in scenario(name, turns=9, seed=4)] == [c.digest() for c in scenario(name)]


@pytest.mark.parametrize("name", KINDS)
def test_the_seed_reaches_each_kind(name: str) -> None:
    """Another seed gives another conversation of each kind."""
    assert next(scenario(name, turns=3, seed=1)).messages != next(scenario(name, turns=3, seed=2)).messages


def test_conversations_are_made_one_by_one() -> None:
    """The first conversation is there before the others are made."""
    made = scenario("smoke")
    assert next(made).id.startswith("docs_qa/")


def test_an_unknown_name_offers_the_nearest() -> None:
    """A misspelt scenario is refused at once, with the name that was meant."""
    with pytest.raises(SpecError, match="did you mean 'standard'"):
        scenario("standart")


def test_no_turns_at_all_are_refused() -> None:
    """A conversation of no turns is refused at once."""
    with pytest.raises(SpecError, match="1 or more"):
        scenario("coding", turns=0)


def test_every_scenario_says_what_it_is() -> None:
    """Each name has a line for `ctxbench list scenarios`, and each kind is a scenario."""
    assert set(KINDS) < set(SCENARIOS)
    assert all(line and "\n" not in line for line in SCENARIOS.values())
