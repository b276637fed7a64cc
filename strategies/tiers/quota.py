"""Token counters with quotas, one a tier (design document 004 §3): warning, soft limit, hard limit, an event at each
crossing.

    quotas = Quotas({"focus": Quota(8192), "working": Quota(131_072)}, record)
    quotas.want("focus", 8000)      # True: it may; records that the warning and the soft limit are crossed
    quotas.add("working", 200)      # True: it holds 200 more

A tier is any name: a segment or a reserve that is to have a limit of its own is one more ("working.hot").

Where the document is silent: the soft limit is at 95 % of the hard one, its own alarm for Focus (§6.1). The warning and
the soft limit are crossed where they are reached, the hard limit where more is wanted than it allows. Nothing is ever
held above a hard limit: what would be is refused, and what the tier held it goes on holding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ...metrics.tokens import TokenCounter
from ..events import LimitReached
from ..parts.units import at_least

Level = Literal["warning", "soft", "hard"]


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tier may hold, in tokens. `soft` and `warning` are shares of `hard`."""

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
        """Each level and its limit in tokens, the lowest first."""
        return ("warning", int(self.warning * self.hard)), ("soft", int(self.soft * self.hard)), ("hard", self.hard)

    def level(self, tokens: int) -> int:
        """How many of the levels are crossed with so many tokens, 0 to 3."""
        (_, warning), (_, soft), (_, hard) = self.limits
        return (tokens >= warning) + (tokens >= soft) + (tokens > hard)


class QuotaError(ValueError):
    """A tier was to hold more than its hard limit, or less than nothing, or has no quota. The text says which."""


class Quotas:
    """What each tier holds, beside its quota. Crossings go to `record`, in the order in which they happen."""

    __slots__ = ("_crossed", "_held", "_quotas", "_record")

    def __init__(self, quotas: Mapping[str, Quota], record: Callable[[LimitReached], None]) -> None:
        self._quotas, self._record = dict(quotas), record
        self._held = dict.fromkeys(self._quotas, 0)
        self._crossed = dict.fromkeys(self._quotas, 0)
        """Of each tier, how many of its levels are crossed."""

    def held(self, tier: str) -> int:
        """Tokens that a tier holds."""
        self._quota(tier)
        return self._held[tier]

    def fits(self, tier: str, more: int) -> bool:
        """Whether a tier may hold so many tokens more. Nothing is recorded."""
        return self.held(tier) + more <= self._quota(tier).hard

    def want(self, tier: str, tokens: int) -> bool:
        """What a tier is to hold in all, whether it may or not: this is what crosses limits. True if it may."""
        quota = self._quota(tier)
        if tokens < 0:
            raise QuotaError(f"{tier} is to hold {tokens} tokens: it holds 0 at least")
        before, now = self._crossed[tier], quota.level(tokens)
        self._crossed[tier] = now
        for level, limit in quota.limits[before:now]:
            self._record(LimitReached(tier, level, tokens, limit))
        for level, limit in reversed(quota.limits[now:before]):
            self._record(LimitReached(tier, level, tokens, limit, up=False))
        return tokens <= quota.hard

    def hold(self, tier: str, tokens: int) -> None:
        """A tier holds so many tokens now. Raises QuotaError above its hard limit."""
        if not 0 <= tokens <= (hard := self._quota(tier).hard):
            raise QuotaError(f"{tier} cannot hold {tokens:,} tokens: it holds 0 to {hard:,}")
        self._held[tier] = tokens

    def add(self, tier: str, tokens: int) -> bool:
        """So many tokens more (less, where negative). False, and nothing is added, if the hard limit forbids it."""
        wanted = self.held(tier) + tokens
        allowed = self.want(tier, wanted)
        if allowed:
            self.hold(tier, wanted)
        return allowed

    def _quota(self, tier: str) -> Quota:
        found = self._quotas.get(tier)
        if found is None:
            raise QuotaError(f"{tier!r} has no quota; these have one: {', '.join(self._quotas)}")
        return found


def count(texts: Iterable[str], counter: TokenCounter) -> dict[str, int]:
    """The tokens of each different text. The counter remembers every text: counted before, it costs a look-up."""
    return {text: counter.text(text) for text in texts}
