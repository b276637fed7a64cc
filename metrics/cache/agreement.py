"""How well predictions agree with what providers reported, over the calls of one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..value import Missing, Value
from .recorded import Compared


@dataclass(slots=True)
class Agreement:
    """Sums over recorded calls. Tokens are the provider's."""

    calls: int = 0
    exact: int = 0
    """Calls of which the tokens read are predicted to the token."""
    later: int = 0
    """Calls after the first of their conversation: what the first reads depends on runs before it."""
    later_exact: int = 0
    tokens: int = 0
    """Of all prompts."""
    read: int = 0
    """As reported."""
    predicted: int = 0
    off: int = 0
    """Sum of the differences, without their sign."""
    hits: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """Calls by (predicted to read, reported to read)."""
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: Compared) -> None:
        """Count one call."""
        self.calls += 1
        self.exact += row.exact
        self.later += row.gap is not None
        self.later_exact += row.gap is not None and row.exact
        self.tokens += row.usage.input or 0
        self.read += row.read
        self.predicted += row.predicted.read
        self.off += abs(row.predicted.read - row.read)
        self.hits[row.predicted.read > 0, row.read > 0] += 1
        if row.reason:
            self.reasons[row.reason] += 1

    @property
    def exact_share(self) -> Value:
        """Of all calls, those predicted to the token."""
        return self.exact / self.calls if self.calls else Missing("undefined", "no calls")

    @property
    def later_share(self) -> Value:
        """The same without the first call of each conversation."""
        return self.later_exact / self.later if self.later else Missing("undefined", "no calls after a first one")

    @property
    def hit_rate(self) -> Value:
        """Of all prompt tokens, those read, as reported."""
        return self.read / self.tokens if self.tokens else Missing("undefined", "no prompt tokens")

    @property
    def hit_rate_error(self) -> Value:
        """What is predicted, less that; a share of all prompt tokens."""
        return (self.predicted - self.read) / self.tokens if self.tokens else Missing("undefined", "no prompt tokens")


def agreement(rows: Iterable[Compared]) -> dict[tuple[str, str], Agreement]:
    """By model and the day from which its rule is in force, in the order they come."""
    found: dict[tuple[str, str], Agreement] = {}
    for row in rows:
        found.setdefault((row.model, row.rule.since), Agreement()).add(row)
    return found
