"""Which conversations are held out."""

from __future__ import annotations

import msgspec
import pytest

from ctxbench.harness.tune.tune import split
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Probe
from tests.builders import talk
from tests.harness.tune.builders import conversation

MANY = [conversation(number, 2) for number in range(20)]


def names(conversations: list[Conversation]) -> list[str]:
    return [each.id for each in conversations]


def test_a_share_is_held_out() -> None:
    """Half of twenty are ten; each is on one side, in the order in which it was read."""
    train, held = split(MANY)
    assert (len(train), len(held)) == (10, 10)
    assert sorted(names(train) + names(held)) == sorted(names(MANY))
    assert names(train) == [each.id for each in MANY if each.id in names(train)]


def test_the_order_changes_nothing_and_the_seed_does() -> None:
    """A conversation's side is by what it says and the seed."""
    held = set(names(split(MANY).held_out))
    assert set(names(split(MANY[::-1]).held_out)) == held
    assert set(names(split(MANY, seed=1).held_out)) != held


def test_what_says_the_same_is_on_one_side() -> None:
    """Else a copy of what chose the settings would judge them."""
    copies = [msgspec.structs.replace(each, id=f"{each.id} again") for each in MANY]
    held = set(names(split([*MANY, *copies]).held_out))
    assert held == {
        name for each in held for name in (each.removesuffix(" again"), f"{each.removesuffix(' again')} again")
    }


def test_a_unit_is_on_one_side() -> None:
    """A session and its subagents, and what names one unit, are held out together or not at all."""
    parts = [
        each
        for number, parent in enumerate(MANY[:10])
        for each in (parent, msgspec.structs.replace(MANY[10 + number], id=f"{parent.id}/agent"))
    ]
    held = set(names(split(parts).held_out))
    assert len(held) == 10
    assert {name.removesuffix("/agent") for name in held} == {name for name in held if "/" not in name}
    twins = [msgspec.structs.replace(each, meta={"unit": f"u{at // 2}"}) for at, each in enumerate(MANY)]
    sides = split(twins, seed=3)
    assert not {each.meta["unit"] for each in sides.train} & {each.meta["unit"] for each in sides.held_out}


def test_probes_are_on_both_sides() -> None:
    """Of twenty conversations two have probes: one of them is held out, whatever the seed."""
    probe = Probe("p", "What is the code?", answers=("KX",), evidence=("m1",))
    some = [msgspec.structs.replace(each, probes=(probe,)) if at < 2 else each for at, each in enumerate(MANY)]
    for seed in range(10):
        assert sum(bool(each.probes) for each in split(some, seed=seed).held_out) == 1


def test_few_conversations() -> None:
    """Of one nothing can be held out, and that is said; so it is of copies. Of two it is one."""
    assert len(split(MANY[:2]).held_out) == 1
    with pytest.raises(RunError, match=r"one conversation: none can be held out.*give more recordings"):
        split([talk(("user", "hello"))])
    with pytest.raises(RunError, match="2 conversations that say the same"):
        split([talk(("user", "hello"), name=name) for name in "ab"])
