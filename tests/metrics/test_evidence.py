"""Published live runs: each says where it is from, and their ranges are those that the sources give."""

from math import isclose

import pytest

from ctxbench.harness.engine.plan import family
from ctxbench.metrics.evidence import FAMILIES, family_of, published, studies
from ctxbench.strategies.chain import NAMED, strategies


def test_every_run_says_where_it_is_from() -> None:
    """Every arm has its study's source and year, a number of tasks, a grade, a known family, and a figure."""
    for study in studies():
        assert study.source
        assert study.arms
        for arm in study.arms:
            assert arm.n == "not stated" or arm.n >= 25
            assert arm.family in FAMILIES
            assert all((arm.setting, arm.agent, arm.model, arm.benchmark))
            assert arm.calls or arm.success is not None or arm.cost
            assert arm.grade == "B" or (arm.calls and arm.calls_interval), "grade A is computed from data per task"


@pytest.mark.parametrize(
    ("name", "calls", "success", "arms"),
    [
        ("masking", (0.876, 1.065, 2.23), (-12.1, -2.0, 4.0), (16, 1)),
        ("clearing", (0.912, 1.05, 1.06), (-4.0, -2.7, 5.0), (3, 3)),
        ("window", (1.06, 1.22, 1.76), (-10.2, -8.4, 8.0), (3, 1)),
        ("retrieval", (1.27, 1.41, 2.06), (-28.6, -11.6, -3.5), (3, 1)),
        ("archive", (1.03, 1.05, 1.30), (-33.6, -2.0, 4.0), (3, 1)),
    ],
)
def test_ranges(name: str, calls: tuple[float, ...], success: tuple[float, ...], arms: tuple[int, int]) -> None:
    """The ranges are those of the tables in the sources, and nothing is published of agents cut off by their window."""
    found, solved = published("calls", name), published("success", name)
    assert found
    assert solved
    assert found[3:5] == arms
    assert all(map(isclose, (*found[:3], *solved[:3]), (*calls, *success)))
    assert published("calls", name, cut_off=True) is None


def test_what_nobody_ran_live() -> None:
    """Tiers of memory and injected facts have no published run beside the whole history."""
    assert published("calls", "tiers") is published("success", "facts") is None


def test_every_strategy_has_a_family() -> None:
    """All strategies but the baseline, the bounds and the recorded context declare a family that is known."""
    without = {name for name, kind in strategies().items() if getattr(kind, "family", "whole") == "whole"}
    assert without == {"none", "evidence_only", "recorded"}
    assert {family(name) for name in strategies()} - {""} <= set(FAMILIES)
    assert [family(name) for name in ("openhands.masking(window=5)", "nobody", "file.py:f")] == ["masking", "", ""]


def test_the_family_of_a_chain() -> None:
    """A chain has the family of its one stage that drops; masking with summary is a hybrid; others have none."""
    assert family("smart | cache_marks") == family("facts | summary | cache_marks") == "summary"
    assert family_of(["masking", "summary", "caching"]) == "hybrid"
    assert (family("archive | window(max_tokens=3)"), family(next(iter(NAMED)))) == ("", "")
    assert family_of(["whole", "caching"]) == "caching"
