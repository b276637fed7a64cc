"""A small share of the attacks that have no test module of their own; `make attack` makes all for 15 minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.__main__ import ATTACKS, Attack
from tests.attacks.sizes import long_line
from tests.harness.models.server import UNCLOSED


@UNCLOSED
@pytest.mark.parametrize("attack", [each for each in ATTACKS if each.in_ci], ids=lambda attack: attack.name)
def test_nothing_is_lost(attack: Attack) -> None:
    """Everything that is tried holds."""
    outcome = attack.attack(20, attack.in_ci)
    assert not outcome.lost
    assert outcome.held == outcome.tried >= attack.in_ci


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the highest memory of a step is Linux's to tell"
)
def test_a_long_line_takes_three_times_its_size() -> None:
    """A line of 40 MB takes at most 120 MB more than one of some bytes; `make attack` has one of 200 MB."""
    outcome = long_line(1, 1, 40 << 20)
    assert not outcome.lost
