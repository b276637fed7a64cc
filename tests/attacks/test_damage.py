"""No damage to an archive or a memory tier's files is silent, or raises another error than documented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.strategies.archive.store import ResultStore
from tests.attacks import archive, tiers


@pytest.fixture(scope="module")
def place() -> Iterator[archive.Target]:
    """Make an archive to damage."""
    with archive.target() as place:
        yield place


@given(damage=st.sampled_from(archive.DAMAGES), seed=st.integers(0, 2**32))
def test_any_damage_to_the_archive_is_noticed(
    place: archive.Target, damage: Callable[[archive.Target, Random], str], seed: int
) -> None:
    """Damage its file, its rows or its journal in any way: each answer afterwards is right, or a StoreError."""
    assert archive.try_damage(place, damage, Random(seed)) == ""


def test_another_archive_in_its_place_is_noticed(place: archive.Target) -> None:
    """A store that has read one file gives no answer from another one that takes its place."""
    for number in range(5):
        assert archive.try_exchange(place, Random(number)) == ""


def test_a_whole_archive_answers_everything(place: archive.Target) -> None:
    """Nothing passes by refusing: on a whole file, or one whose writer was killed, no answer is an error."""
    for data, journal in ((place.whole, b""), place.torn):
        place.file.write_bytes(data)
        if journal:
            place.journal.write_bytes(journal)
        store = ResultStore(archive.address(place.file), 1)
        assert archive.answers(store) == place.expected


@pytest.mark.slow
def test_thousands_of_damages_to_the_archive() -> None:
    """3,000 damages from one seed: none is silent."""
    assert archive.attack(seed=8, tries=3_000) == (3_000, 3_000, [])


@pytest.mark.parametrize("tries", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damage_to_tiers_is_noticed(tries: int) -> None:
    """Snapshots and the Archive tier's folder: damage is a SnapshotError or ArchiveError that names the file."""
    assert tiers.attack(seed=8, tries=tries) == (tries, tries, [])
