"""Token quotas of tiers (design document 004 §3): warning, soft and hard limit, and an event whenever one is crossed.

    quotas = Quotas({"focus": Quota(8192), "working": Quota(131_072)}, record)
    quotas.want("focus", 8000)      # True: it fits; records that the warning and the soft limit are crossed

Where the document is silent: the soft limit is 95 % of the hard one, which is the document's alarm for Focus (§6.1).
The warning and the soft limit are crossed when they are reached, the hard limit when a tier wants more than it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ctxbench.scenarios.spec import PositiveInt, Share, check_bounds

from ..events import LimitReached

Level = Literal["warning", "soft", "hard"]


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one tier. `hard` is in tokens, `soft` and `warning` are shares of `hard`."""

    hard: PositiveInt
    soft: Share = 0.95
    warning: float = 0.8

    def __post_init__(self) -> None:
        check_bounds(self)
        if not 0 < self.warning <= self.soft:
            raise ValueError(f"warning must be above 0 and at most soft, {self.soft}, not {self.warning}")

    @property
    def limits(self) -> tuple[tuple[Level, int], ...]:
        """Levels with their limits in tokens, the lowest first."""
        return ("warning", int(self.warning * self.hard)), ("soft", int(self.soft * self.hard)), ("hard", self.hard)

    def level(self, tokens: int) -> int:
        """Return how many of the three levels a number of tokens crosses, 0 to 3."""
        (_, warning), (_, soft), (_, hard) = self.limits
        return (tokens >= warning) + (tokens >= soft) + (tokens > hard)


class Quotas:
    """Levels that each tier has crossed. Crossed limits go to `record` in order."""

    def __init__(self, quotas: Mapping[str, Quota], record: Callable[[LimitReached], None]) -> None:
        self._quotas, self._record = dict(quotas), record
        self._crossed = dict.fromkeys(self._quotas, 0)  # number of crossed levels by tier

    def want(self, tier: str, tokens: int) -> bool:
        """Record the limits crossed if a tier held `tokens` in all. Return whether its hard limit allows that."""
        quota = self._quotas[tier]
        before, now = self._crossed[tier], quota.level(tokens)
        self._crossed[tier] = now
        # From 700 to 960 of 1000 tokens (warning 800, soft 950): before = 0, now = 2, so the warning and the soft limit
        # are recorded, lowest first; on the way back the soft limit is left first.
        for level, limit in quota.limits[before:now]:
            self._record(LimitReached(tier, level, tokens, limit))
        for level, limit in reversed(quota.limits[now:before]):
            self._record(LimitReached(tier, level, tokens, limit, up=False))
        return tokens <= quota.hard
