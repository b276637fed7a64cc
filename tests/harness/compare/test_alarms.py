"""How often the gate alarms when nothing changed, and how often it finds what did."""

import numpy as np
import pytest

from ctxbench.harness.compare.gate import GatePolicy, MetricPolicy, gate
from ctxbench.metrics.statistics.comparison import Difference, Margin, Pairs, difference, holm, judge
from ctxbench.metrics.value import Missing
from tests.harness.compare.builders import Steps

POLICY = GatePolicy(
    {"tokens_sent": MetricPolicy(relative=0.05), "grounding": MetricPolicy(absolute=0.03), "*": MetricPolicy()}
)


def alarms(samples: int, strategies: int = 4, **planted: float) -> float:
    """The share of comparisons of two samples of the same steps that fail."""
    steps, random = Steps(seed=1, strategies=strategies), np.random.default_rng(2)
    found = [gate(steps.sample(random), steps.sample(random, **planted), POLICY) for _ in range(samples)]
    return sum(each.result == "fails" for each in found) / samples


def test_no_false_alarms() -> None:
    """Of 20 comparisons of what is the same, at most one alarms; with twice a margin more tokens or fewer values, all
    do but one."""
    assert alarms(20, 2) <= 0.05
    assert alarms(20, 2, dearer=0.1) >= 0.95
    assert alarms(20, 2, lost=0.06) >= 0.95


def heavy_tails(conversations: int, effect: float, samples: int, metrics: int = 8) -> tuple[float, float]:
    """The share of comparisons of totals with any alarm, and with the one metric caught that grew by `effect`.

    Sizes of conversations are log-normal (σ = 1.2), the noise of each is 10 %, and p-values are adjusted for all.
    """
    random = np.random.default_rng(4)
    any_alarm = caught = 0
    for _ in range(samples):
        sizes, changes = np.exp(random.normal(9, 1.2, conversations)), list[Difference]()
        for metric in range(metrics):
            after = sizes * np.exp(random.normal(0, 0.1, conversations)) * (1 + effect * (not metric))
            sums = [np.column_stack([side, np.zeros(conversations)]) for side in (sizes, after)]
            changes.append(difference(Pairs("total", *sums), relative=True, draws=1000))
        # Where one conversation is too much of the whole, nothing is tested.
        adjusted = holm([1.0 if isinstance(change.p, Missing) else float(change.p) for change in changes])
        words = [
            judge(change, Margin(0.01, relative=True), "lower", p).word
            for change, p in zip(changes, adjusted, strict=True)
        ]
        any_alarm += any(word in ("better", "worse") for word in words)
        caught += words[0] == "worse"
    return any_alarm / samples, caught / samples


@pytest.mark.slow
@pytest.mark.parametrize(("conversations", "power"), [(10, 0.0), (15, 0.05), (24, 0.2), (100, 0.92)])
def test_heavy_tails(conversations: int, power: float) -> None:
    """Totals that a few conversations dominate: at most 5 % of false alarms, and power that grows with their number."""
    samples = 300
    chance = 2 * (0.05 * 0.95 / samples) ** 0.5
    assert heavy_tails(conversations, 0.0, samples)[0] <= 0.05 + chance
    assert heavy_tails(conversations, 0.05, samples)[1] >= power
