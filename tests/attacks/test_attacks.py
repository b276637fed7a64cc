"""A small share of the attacks that have no test module of their own; `make attack` makes all for 15 minutes."""

from __future__ import annotations

import pytest

from tests.attacks.__main__ import ATTACKS, Attack
from tests.harness.models.server import UNCLOSED


@UNCLOSED
@pytest.mark.parametrize("attack", [each for each in ATTACKS if each.in_ci], ids=lambda attack: attack.name)
def test_nothing_is_lost(attack: Attack) -> None:
    """Everything that is tried holds."""
    outcome = attack.attack(20, attack.in_ci)
    assert not outcome.lost
    assert outcome.held == outcome.tried >= attack.in_ci
