"""Which settings are tried."""

from __future__ import annotations

import sys

import pytest

from ctxbench.harness.tune.space import BATCH, SearchedStrategy, SearchSpace, Trial, batch, check, space
from ctxbench.harness.tune.space import searched as parse_search
from ctxbench.metrics.frontier import Point
from ctxbench.scenarios.errors import MissingExtra

SEARCH = parse_search("window(max_tokens=?, reserve=?)")
SPACE = space(SEARCH, {"max_tokens": 64_000, "messages": 9})


def searched(trials: int, of: SearchSpace = SPACE, seed: int = 0, search: SearchedStrategy = SEARCH) -> list[Trial]:
    """Trials whose cost is the first parameter, and whose quality is best with a last one of 0.3."""
    made: list[Trial] = []
    while len(made) < trials:
        for each in batch(search, of, made, seed, trials):
            first, *_, last = [float(str(value)) for value in (0, *each.values.values())][-2:]
            made.append(each._replace(point=Point(first, 1 - abs(last - 0.3))))
    return made[:trials]


def test_the_same_seed_gives_the_same_trials() -> None:
    """All different from each other; another seed gives others."""
    one, two = (searched(2 * BATCH) for _ in range(2))
    settings = [each.name for each in one]
    assert settings == [each.name for each in two]
    assert len(set(settings)) == len(settings)
    assert settings != [each.name for each in searched(2 * BATCH, seed=1)]


def test_it_begins_with_the_defaults() -> None:
    """Where every free parameter has one."""
    search = parse_search("summary(threshold=?, every=?)")
    made = batch(search, space(search, {}), [], 0, 20)
    assert made[0].name == "summary"


def test_a_small_space_is_gone_through() -> None:
    """Six settings and ten trials: each once, then no more."""
    search = parse_search("window(max_tokens=?[500, 900, 1000], reserve=?[0.1, 0.2])")
    small = space(search, {})
    made = searched(6, small, search=search)
    assert len({each.name for each in made}) == 6
    assert batch(search, small, made, 0, 10) == []


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tune\]'"):
        check()
