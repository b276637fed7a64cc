"""Simulate how often an interval holds, and what is said of two strategies: `python -m` this prints decision 27's."""

import sys
from collections.abc import Callable, Sequence

import numpy as np

from ctxbench.harness.tier_bench.working import TRACES, Load, policy_row
from ctxbench.metrics.statistics.comparison import Margin, Pairs, difference, judge
from ctxbench.metrics.statistics.intervals import mean_of, over_units, quantile
from ctxbench.metrics.value import Missing

Random = np.random.Generator
ALIKE = "normal", "exponential", "log-normal, 0.5", "probes", "steps", "ratio, 0.5, 0.1", "ratio, 1.2, 0.1"
SKEWED = "log-normal, 1", "log-normal, 1.2", "log-normal, 1.5", "ratio, 1.2, 0.5", "ratio, 0.5, 1.2", "ratio, 1.2, 1.2"
SKEWED += "ratio, 0.5, 1.5", "ratio, 1.2, 1.5"


def clusters(kind: str, size: int, random: Random) -> tuple[np.ndarray, float]:
    """Conversations as (sum, weight), and the mean of those that there could be."""
    one, (name, *sigmas) = np.ones(size), kind.split(", ")
    match name:
        case "normal":
            return np.column_stack([random.normal(3, 1, size), one]), 3.0
        case "exponential":
            return np.column_stack([random.exponential(1, size), one]), 1.0
        case "log-normal":
            sigma = float(sigmas[0])
            return np.column_stack([random.lognormal(0, sigma, size), one]), float(np.exp(sigma**2 / 2))
        case "rare":  # one in ten fails
            return np.column_stack([random.random(size) < 0.1, one]), 0.1
        case "probes":
            asked = random.integers(1, 15, size)
            return np.column_stack([random.binomial(asked, random.beta(4, 1.5, size)), asked]), 4 / 5.5
        case "steps":  # long conversations weigh more
            steps = np.maximum(random.lognormal(3, 1, size).round(), 1)
            return np.column_stack([random.binomial(steps.astype(int), random.beta(8, 2, size)), steps]), 0.8
        case _:  # after over before, sizes of one σ, and noise of another
            sizes, noise = map(float, sigmas)
            before = random.lognormal(0, sizes, size)
            return np.column_stack([before * random.lognormal(0, noise, size), before]), float(np.exp(noise**2 / 2))


def coverage(kind: str, size: int, samples: int = 1000) -> tuple[float, float]:
    """Return the share of samples with an interval, and of these the share that holds what they were drawn from."""
    random, held = np.random.default_rng(11), list[bool]()
    bounds = (0.0, 1.0) if kind in ("probes", "steps", "rare") else (0.0,)
    for _ in range(samples):
        sums, true = clusters(kind, size, random)
        _, low, high = over_units(sums.astype(float), mean_of, *bounds, draws=600)
        if not isinstance(low, Missing) and not isinstance(high, Missing):
            held.append(low <= true <= high)
    return len(held) / samples, float(np.mean(held)) if held else np.nan


def answers(size: int, lost: float, gained: float, random: Random, asked: int = 1) -> Pairs:
    """Right answers of conversations with so many questions each, before and after, of which some change."""
    right = random.binomial(asked, 0.7, size)
    after = right - random.binomial(right, lost / 0.7) + random.binomial(asked - right, gained / 0.3)
    wanted = np.full(size, asked)
    return Pairs("ratio", np.column_stack([right, wanted]), np.column_stack([after, wanted]))


def lost_whole(size: int, lost: float, random: Random) -> Pairs:
    """Right answers of conversations with 20 questions each, amid noise; some conversations lose all of theirs."""
    right, wanted = random.binomial(20, 0.9, size), np.full(size, 20)
    after = random.binomial(20, 0.9, size) * (random.random(size) >= lost)
    return Pairs("ratio", np.column_stack([right, wanted]), np.column_stack([after, wanted]))


def costs(size: int, effect: float, random: Random) -> Pairs:
    """Costs of conversations of any size, with noise of 10 % each, and an effect."""
    before = random.lognormal(0, 1, size)
    after = before * random.lognormal(0, 0.1, size) * (1 + effect)
    one = np.ones(size)
    return Pairs("total", np.column_stack([before, one]), np.column_stack([after, one]))


def said(make: Callable[[Random], Pairs], margin: Margin, samples: int = 1000) -> dict[str, float]:
    """Return how often each word is said."""
    random, words = np.random.default_rng(12), list[str]()
    for _ in range(samples):
        words.append(judge(difference(make(random), margin.relative, draws=600), margin, "higher").word)
    return {word: words.count(word) / samples for word in ("better", "same", "worse", "cannot tell")}


SIZES = 8, 15, 24, 30, 100
CHANGES = {
    "false same: 16 points lost": (answers, (0.16, 0.0), Margin(0.05), "same"),
    "false same: 5 points lost": (answers, (0.05, 0.0), Margin(0.05), "same"),
    "false same: 10 points lost, 5 gained": (answers, (0.1, 0.05), Margin(0.05), "same"),
    "false same: one conversation in 18 lost whole": (lost_whole, (1 / 18,), Margin(0.05), "same"),
    "false alarm: 10 points lost and gained": (answers, (0.1, 0.1), Margin(0.01), "better or worse"),
    "false alarm: costs": (costs, (0.0,), Margin(0.01, relative=True), "better or worse"),
    "found: 16 points lost": (answers, (0.16, 0.0), Margin(0.01), "worse"),
    "found: 5 % more costs": (costs, (0.05,), Margin(0.01, relative=True), "better"),
    "found: the same answers but for 1 in 200": (answers, (0.005, 0.005), Margin(0.05), "same"),
}
"""By what is true: how pairs are made, the margin, and the word whose rate is asked for."""


def rate(change: str, size: int, samples: int = 1000) -> float:
    """Return how often the word of CHANGES is said of so many conversations."""
    make, effect, margin, word = CHANGES[change]
    words = said(lambda random: make(size, *effect, random=random), margin, samples)
    return sum(words[part] for part in word.split(" or "))


def seeds(load: str, sizes: Sequence[int] = (2, 3, 5), samples: int = 4000) -> dict[str, list[float]]:
    """Return how often Student's interval of a few seeds of a load holds the mean of 40: LRU, LRU-K, the difference."""
    random, seeds = np.random.default_rng(3), range(40)
    rates = {
        policy: np.array([policy_row(Load(load, [TRACES[load](at)]), 131_072, policy).hit_rate.mean for at in seeds])  # type: ignore[union-attr]
        for policy in ("lru", "lru_k")
    }
    held = dict[str, list[float]]()
    for name, each in {**rates, "difference": rates["lru_k"] - rates["lru"]}.items():
        held[name] = []
        for size in sizes:
            some = np.array([random.choice(each, size, replace=False) for _ in range(samples)])
            # The 40 are all that there are: a sample of most of them is nearer to their mean.
            reach = quantile(0.975, size - 1) * some.std(axis=1, ddof=1) * ((1 / size - 1 / len(each)) ** 0.5)
            held[name].append(float((abs(some.mean(axis=1) - each.mean()) <= reach).mean()))
    return held


if __name__ == "__main__":
    if "seeds" in sys.argv:
        print(*(f"{load}: {seeds(load)}" for load in TRACES), sep="\n")
        sys.exit()
    for kind in ("rare", *ALIKE, *SKEWED):
        cells = (coverage(kind, size) for size in SIZES)
        print(f"| {kind} |", *(f"{held:.1%} ({some:.0%}) |" if some else "– |" for some, held in cells))
    for change in CHANGES:
        print(f"| {change} |", *(f"{rate(change, size):.1%} |" for size in (2, 3, 5, *SIZES)))
