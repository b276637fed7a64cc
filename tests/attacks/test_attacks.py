"""A small share of each attack; `make attack` makes them for 15 minutes."""

from __future__ import annotations

import pytest

from tests.attacks.__main__ import ATTACKS, Attack
from tests.harness.models.server import UNCLOSED


@UNCLOSED
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_nothing_is_lost(attack: Attack) -> None:
    """Everything that is tried holds."""
    if not attack.in_ci:
        pytest.skip("takes too long for every run: `make attack`")
    outcome = attack.attack(20, attack.in_ci)
    assert not outcome.lost
    assert outcome.held == outcome.tried >= attack.in_ci
