"""Token counters with quotas: what crosses which limit, and that no hard limit is ever broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.strategies.events import LimitReached
from ctxbench.strategies.tiers.quota import Quota, QuotaError, Quotas, count


def opened(hard: int = 100) -> tuple[Quotas, list[LimitReached]]:
    """One tier, and what it records."""
    found: list[LimitReached] = []
    return Quotas({"focus": Quota(hard)}, found.append), found


def test_each_limit_is_crossed_once_on_the_way_up_and_once_on_the_way_down() -> None:
    """80, 95 and over 100 of 100 tokens; nothing is recorded between."""
    quotas, found = opened()
    for tokens in (79, 80, 94, 95, 100, 101, 150, 100, 90, 10):
        quotas.want("focus", tokens)
    assert found == [
        LimitReached("focus", "warning", 80, 80),
        LimitReached("focus", "soft", 95, 95),
        LimitReached("focus", "hard", 101, 100),
        LimitReached("focus", "hard", 100, 100, up=False),
        LimitReached("focus", "soft", 90, 95, up=False),
        LimitReached("focus", "warning", 10, 80, up=False),
    ]


def test_one_step_may_cross_every_limit() -> None:
    """Up from below, down from above."""
    quotas, found = opened()
    assert not quotas.want("focus", 500)
    assert quotas.want("focus", 0)
    assert [(each.level, each.up) for each in found] == [
        *(("warning", True), ("soft", True), ("hard", True)),
        *(("hard", False), ("soft", False), ("warning", False)),
    ]


def test_what_the_hard_limit_forbids_is_not_added() -> None:
    """The tier goes on holding what it held."""
    quotas, found = opened()
    assert quotas.add("focus", 70)
    assert quotas.fits("focus", 30)
    assert not quotas.fits("focus", 31)
    assert not quotas.add("focus", 31)
    assert quotas.held("focus") == 70
    assert found[-1] == LimitReached("focus", "hard", 101, 100)
    assert quotas.add("focus", -70)
    assert quotas.held("focus") == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-60, 120))))
def test_the_counters_are_a_sum_that_stays_in_bounds(changes: list[tuple[str, int]]) -> None:
    """Beside an obvious version; the events, replayed, say which levels are crossed now."""
    found: list[LimitReached] = []
    quotas = Quotas({"a": Quota(100), "b": Quota(50, soft=0.9, warning=0.5)}, found.append)
    held = {"a": (0, 100), "b": (0, 50)}
    wanted = {"a": 0, "b": 0}
    for tier, change in changes:
        now, hard = held[tier]
        if now + change < 0:
            with pytest.raises(QuotaError):
                quotas.add(tier, change)
            continue
        wanted[tier] = now + change
        assert quotas.add(tier, change) == (now + change <= hard)
        held[tier] = (now + change if now + change <= hard else now, hard)
    for tier, (now, _) in held.items():
        assert quotas.held(tier) == now
        crossed: set[str] = set()
        for each in found:
            if each.tier == tier:
                assert (each.level in crossed) != each.up
                crossed ^= {each.level}
        quota = Quota(100) if tier == "a" else Quota(50, soft=0.9, warning=0.5)
        assert len(crossed) == quota.level(wanted[tier])


@pytest.mark.parametrize(
    ("change", "says"),
    [({"hard": 0}, "hard must be at least 1, not 0"), ({"soft": 1.5}, "soft"), ({"warning": 0.99}, "warning must be")],
)
def test_a_quota_that_is_none(change: dict[str, float], says: str) -> None:
    """No hard limit, limits in the wrong order: the error names the one."""
    with pytest.raises(ValueError, match=says):
        Quota(**{"hard": 100, **change})  # type: ignore[arg-type]


def test_a_tier_that_has_no_quota_or_cannot_hold_so_much() -> None:
    """The error says what there is."""
    quotas, _ = opened()
    with pytest.raises(QuotaError, match="'working' has no quota; these have one: focus"):
        quotas.want("working", 1)
    with pytest.raises(QuotaError, match="focus cannot hold 101 tokens: it holds 0 to 100"):
        quotas.hold("focus", 101)
    with pytest.raises(QuotaError, match="0 at least"):
        quotas.want("focus", -1)


def test_texts_are_counted_in_a_batch_each_once() -> None:
    """Equal to counting one by one; a text that was counted is not counted again."""
    counter, asked = TokenCounter(), []
    counted = counter._count
    counter._count = lambda text: asked.append(text) or counted(text)  # type: ignore[func-returns-value]
    texts = ["hello world", "你好", "hello world", ""]
    assert count(texts, counter) == {text: TokenCounter().text(text) for text in texts}
    count(texts, counter)
    assert asked == ["hello world", "你好"]
