"""`make perf`: what the adaptive tuner and the cool-down are worth, and what a call of migration costs.

`pytest -m perf tests/perf/test_migration.py -s` prints the table of decision 20.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from ctxbench.harness.claims.tiers import access, followed, opened

pytestmark = pytest.mark.perf
SEEDS, STUDENT = 5, 2.776
"""Student's t for four degrees of freedom, 95 %."""


@pytest.mark.parametrize("load", ["80-20", "shifting", "scan", "loop"])
def test_the_tuner_and_the_cool_down(load: str) -> None:
    """Hit rate and moves with each and without; differences seed by seed, with 95 % intervals."""
    plain = np.array([followed(load, seed) for seed in range(SEEDS)])
    print(f"\n{load}: hit rate {plain[:, 0].mean():.4f}, {plain[:, 1].mean():,.0f} moves")
    moves = {}
    for name, tuner, cooldown in (("tuner", True, 30.0), ("cool-down 0", False, 0.0), ("cool-down 120", False, 120.0)):
        other = np.array([followed(load, seed, tuner, cooldown) for seed in range(SEEDS)])
        change, moves[name] = other[:, 0] - plain[:, 0], other[:, 1].mean()
        half = STUDENT * change.std(ddof=1) / SEEDS**0.5
        print(f"  {name}: {100 * change.mean():+.2f} ± {100 * half:.2f} points, {moves[name]:,.0f} moves")
    assert moves["cool-down 120"] < moves["cool-down 0"]


def test_a_call_over_ten_thousand_items_is_fast() -> None:
    """Working of 128K tokens, 10,000 items of 200: p50 < 2 ms, p99 < 50 ms an access, moves and victims included."""
    migration, chance = opened(30, 10_000, 131_072), np.random.default_rng(0)
    took = []
    for now, item in enumerate(chance.integers(0, 10_000, 5_000), 1):
        start = perf_counter()
        access(migration, f"m{item}", now)
        took.append(perf_counter() - start)
    p50, p99 = np.percentile(took, [50, 99])
    print(f"\nan access: p50 {1e3 * p50:.3f} ms, p99 {1e3 * p99:.3f} ms, longest {1e3 * max(took):.1f} ms")
