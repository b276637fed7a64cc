"""Token quotas of tiers (design document 004 §3): warning, soft and hard limit, and an event whenever one is crossed.

    quotas = Quotas({"focus": Quota(8192), "working": Quota(131_072)}, record)
    quotas.want("focus", 8000)      # True: it fits; records that the warning and the soft limit are crossed
    quotas.add("working", 200)      # True: it now holds 200 more

A tier is any name, so a segment or a reserve can have a quota of its own ("working.hot").

Where the document is silent: the soft limit is 95 % of the hard one, which is the document's alarm for Focus (§6.1).
The warning and the soft limit are crossed when they are reached, the hard limit when a tier wants more than it allows.
No tier ever holds more than its hard limit: an addition beyond it is rejected and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ctxbench.metrics.tokens import TokenCounter

from ..events import LimitReached
from ..parts.units import at_least

Level = Literal["warning", "soft", "hard"]


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one tier. `hard` is in tokens, `soft` and `warning` are shares of `hard`."""

    hard: int
    soft: float = 0.95
    warning: float = 0.8

    def __post_init__(self) -> None:
        at_least(1, hard=self.hard)
        at_least(0, at_most=1, soft=self.soft)
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


class QuotaError(ValueError):
    """A tier has no quota, or would hold more than its hard limit or less than nothing. The text says which."""


class Quotas:
    """Tokens that each tier holds, checked against its quota. Crossed limits go to `record` in order."""

    __slots__ = ("_crossed", "_held", "_quotas", "_record")

    def __init__(self, quotas: Mapping[str, Quota], record: Callable[[LimitReached], None]) -> None:
        self._quotas, self._record = dict(quotas), record
        self._held = dict.fromkeys(self._quotas, 0)
        self._crossed = dict.fromkeys(self._quotas, 0)  # number of crossed levels by tier

    def held(self, tier: str) -> int:
        """Return the tokens that a tier holds."""
        self._quota(tier)
        return self._held[tier]

    def fits(self, tier: str, more: int) -> bool:
        """Return whether a tier has room for `more` tokens, without recording anything."""
        return self.held(tier) + more <= self._quota(tier).hard

    def want(self, tier: str, tokens: int) -> bool:
        """Record the limits crossed if a tier held `tokens` in all. Return whether its hard limit allows that."""
        quota = self._quota(tier)
        if tokens < 0:
            raise QuotaError(f"{tier} is to hold {tokens} tokens: it holds 0 at least")
        before, now = self._crossed[tier], quota.level(tokens)
        self._crossed[tier] = now
        # From 700 to 960 of 1000 tokens (warning 800, soft 950): before = 0, now = 2, so the warning and the soft limit
        # are recorded, lowest first; on the way back the soft limit is left first.
        for level, limit in quota.limits[before:now]:
            self._record(LimitReached(tier, level, tokens, limit))
        for level, limit in reversed(quota.limits[now:before]):
            self._record(LimitReached(tier, level, tokens, limit, up=False))
        return tokens <= quota.hard

    def hold(self, tier: str, tokens: int) -> None:
        """Set the tokens that a tier holds now. Raises QuotaError above its hard limit."""
        if not 0 <= tokens <= (hard := self._quota(tier).hard):
            raise QuotaError(f"{tier} cannot hold {tokens:,} tokens: it holds 0 to {hard:,}")
        self._held[tier] = tokens

    def add(self, tier: str, tokens: int) -> bool:
        """Add tokens to a tier, or take some away. Return False and change nothing if the hard limit forbids it."""
        wanted = self.held(tier) + tokens
        allowed = self.want(tier, wanted)
        if allowed:
            self.hold(tier, wanted)
        return allowed

    def _quota(self, tier: str) -> Quota:
        quota = self._quotas.get(tier)
        if quota is None:
            raise QuotaError(f"{tier!r} has no quota; these have one: {', '.join(self._quotas)}")
        return quota


def count(texts: Iterable[str], counter: TokenCounter) -> dict[str, int]:
    """Return the tokens of each different text. A text that the counter knows already costs a look-up."""
    return {text: counter.text(text) for text in texts}
