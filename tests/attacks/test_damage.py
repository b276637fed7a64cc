"""No damage to a cassette is silent, or raises another error than documented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.models.cassette import DamagedCassette, Repaired
from tests.attacks import cassettes
from tests.attacks.sqlite_files import Target


@pytest.fixture(scope="module")
def recorded() -> Iterator[Target]:
    """Make a cassette to damage."""
    with cassettes.target() as place:
        yield place


@given(damage=st.sampled_from(cassettes.DAMAGES), seed=st.integers(0, 2**32))
def test_any_damage_to_a_cassette_is_noticed(
    recorded: Target, damage: Callable[[Target, Random], str], seed: int
) -> None:
    """Damage its file or its rows in any way: each answer afterwards is right, or an error; so after a repair."""
    assert cassettes.try_damage(recorded, damage, Random(seed)) == ""


def test_a_whole_cassette_answers_everything(recorded: Target) -> None:
    """Nothing passes by refusing: on a whole file no answer is an error, and repairing it loses nothing."""
    recorded.file.write_bytes(recorded.whole)
    assert cassettes.answers(recorded.file) == recorded.expected
    with DamagedCassette(recorded.file) as whole:
        assert whole.repair() == Repaired(cassettes.REPLIES, len(cassettes.ACCOUNTS), (), ())
    assert cassettes.answers(recorded.file) == recorded.expected


@pytest.mark.parametrize("tries", [150, pytest.param(3_000, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_a_cassette_is_silent(tries: int) -> None:
    """No reply, and no sum of money, is another than was recorded."""
    assert cassettes.flips(seed=6, tries=tries) == (tries, tries, [])
