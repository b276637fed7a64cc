"""Runs as figures by conversation, made by hand and by chance."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from ctxbench.harness.compare.figures import About, MeasuredRun
from ctxbench.harness.compare.gate import _BaselineFile, _digest


def signed(text: str) -> str:
    """Return the text of a baseline that was edited with the digest of what it says now."""
    baseline = msgspec.json.decode(text, type=_BaselineFile)
    return text.replace(baseline.digest, _digest(baseline))


ABOUT = {
    "tokens_sent": About("tokens", "lower", "total", "1"),
    "grounding": About("share", "higher", "ratio", "1"),
    "rejected_openai": About("steps", "lower", "total", "1"),
    "cost(claude-sonnet-5)": About("usd", "lower", "total", "1, prices 0"),
}


def made(
    figures: Mapping[str, Mapping[str, Sequence[object]]],
    names: Sequence[str] = (),
    about: Mapping[str, About] = ABOUT,
    source: str = "run",
    **more: object,
) -> MeasuredRun:
    """Figures by strategy and metric: numbers of a total, pairs of a ratio, None."""
    size = len(next(iter(next(iter(figures.values())).values())))
    names = names or [f"c{at}" for at in range(size)]
    sums = {
        strategy: {metric: np.array([_pair(each) for each in column], float) for metric, column in those.items()}
        for strategy, those in figures.items()
    }
    known = {metric: about[metric] for those in figures.values() for metric in those}
    return MeasuredRun(source, "o200k_base", {name: f"digest of {name}" for name in names}, known, sums, **more)  # type: ignore[arg-type]


def _pair(value: object) -> tuple[float, float]:
    if value is None:
        return np.nan, np.nan
    return value if isinstance(value, tuple) else (float(value), 1.0)  # type: ignore[arg-type]


class Steps:
    """The steps of some conversations under some strategies, of which samples are drawn."""

    def __init__(self, seed: int, conversations: int = 40, strategies: int = 4) -> None:
        random = np.random.default_rng(seed)
        self._steps = []
        for _ in range(strategies):
            these = []
            for _ in range(conversations):
                size = int(random.integers(15, 45))
                level, kept = random.lognormal(7.5, 0.5), random.beta(18, 2)
                tokens = (level * random.lognormal(0, 0.3, size)).round()
                demands = random.integers(0, 5, size)
                had = random.binomial(demands, kept)
                refused = random.random(size) < random.choice([0, 0, 0, 0.1])
                these.append(np.column_stack([tokens, had, demands, refused, tokens * 3e-6]))
            self._steps.append(these)

    def sample(self, random: np.random.Generator, dearer: float = 0.0, lost: float = 0.0) -> MeasuredRun:
        """Each conversation's steps, drawn with replacement. Planted in the first strategy: dearer, and values lost."""
        figures = {}
        for number, these in enumerate(self._steps):
            drawn = [each[random.integers(0, len(each), len(each))] for each in these]
            sums = np.array([each.sum(axis=0) for each in drawn])
            if not number:
                sums[:, 0] *= 1 + dearer
                sums[:, 1] = np.maximum(sums[:, 1] - lost * sums[:, 2], 0)
            figures[f"s{number}"] = {
                "tokens_sent": sums[:, 0].tolist(),
                "grounding": list(map(tuple, sums[:, 1:3].tolist())),
                "rejected_openai": sums[:, 3].tolist(),
                "cost(claude-sonnet-5)": sums[:, 4].tolist(),
            }
        return made(figures, live=frozenset(figures))
