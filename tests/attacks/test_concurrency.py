"""Two processes on one cassette, one archive and one run folder lose nothing and get what each gets alone."""

from __future__ import annotations

import pytest

from tests.attacks.concurrency import attack


@pytest.mark.parametrize("tries", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_two_processes_at_once(tries: int) -> None:
    """Replies, results and a run's bytes are those of one process; a second run is refused in one line."""
    assert attack(seed=4, tries=tries) == (3 * tries, 3 * tries, [])
