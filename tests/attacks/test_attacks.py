"""A small share of the attacks that have no test module of their own; `make attack` makes all for 15 minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.attacks import recordings
from tests.attacks.__main__ import ATTACKS, Attack, attacked
from tests.attacks.sizes import long_line
from tests.harness.models.server import UNCLOSED


@UNCLOSED
@pytest.mark.parametrize("attack", [each for each in ATTACKS if each.in_ci], ids=lambda attack: attack.name)
def test_nothing_is_lost(attack: Attack) -> None:
    """Everything that is tried holds."""
    outcome = attack.attack(20, attack.in_ci)
    assert not outcome.lost
    assert outcome.held == outcome.tried >= attack.in_ci


def test_what_is_lost_is_written_down_by_its_smallest_example(tmp_path: Path) -> None:
    """The file has the command that does it again, and of all that fails the smallest that was drawn."""

    def fail(data: st.DataObject) -> None:
        assert data.draw(st.integers(0, 10_000)) < 8, "too large"

    attack = Attack("large, numbers", lambda seed, tries: recordings.searched(seed, tries, fail), 200, 0)
    found, last = attacked(attack, 0, 3, 1, tmp_path)
    assert (len(found.lost), last) == (1, 3)
    text = (tmp_path / "large-numbers-3.txt").read_text()
    assert text.startswith(
        "python -m tests.attacks --only 'large, numbers' --seed 3 --rounds 1\n\nAssertionError('too large"
    )
    assert "Draw 1: 8" in text


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the highest memory of a step is Linux's to tell"
)
def test_a_long_line_takes_three_times_its_size() -> None:
    """A line of 40 MB takes at most 120 MB more than one of some bytes; `make attack` has one of 200 MB."""
    outcome = long_line(1, 1, 40 << 20)
    assert not outcome.lost
