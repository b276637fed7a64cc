"""Recorded costs beside what the reported usage costs at the dated prices.

Two formulas are tried: with the provider's prices for what its cache read and took in, and with every token of the
prompt at the plain price, as loggers compute that know nothing of caches (LiteLLM in 2024). A cost that is a hundred
times the other, or a thousand …, is in another unit: that is said, and it is not compared, nor corrected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from ...scenarios.model import Usage
from ..prices import Price, Prices
from ..prices import TokenUsage as Billed
from ..value import Missing, Value
from .requests import RecordedRequest

CLOSE = 0.005
"""By how much of it a cost may be off that counts as reproduced."""
UNITS = (100.0, 1e3, 1e6, 1e9, 1e-3, 1e-6)
"""What a dollar may be: in cents, in thousandths …; or the costs are in thousands of dollars, in millions."""
SCALE = 0.02
"""By how much of it the middle cost may be off a unit."""


def price_of_call(prices: Prices, asked: RecordedRequest) -> Price | None:
    """The price of a recorded call on its day; None if it is not known.

    Where the recording says which host answered, that host's price counts, if there is one.
    """
    call, usage = asked.call, asked.call.usage
    names = ([f"{call.provider}/{call.model}"] if call.provider else []) + [call.model]
    tariff = next((found for name in names if (found := prices.tariff(name)) is not None), None)
    if tariff is None:
        return None
    return tariff.at((usage and usage.input) or 0, asked.started if asked.dated else None)


@dataclass(slots=True)
class Costs:
    """Recorded costs of one model, in the recording's unit, and what its usage costs."""

    recorded: list[float] = field(default_factory=list)
    cached: list[float] = field(default_factory=list)
    """By the prices of caches."""
    plain: list[float] = field(default_factory=list)
    """With every token of the prompt at the plain price."""
    unpriced: int = 0
    """Calls with a cost whose model has no known price."""
    free: int = 0
    """Calls recorded to have cost nothing though tokens were used: a subscription, or a logger that did not know."""

    def add(self, usage: Usage, price: Price | None) -> None:
        """Count a call that has a recorded cost."""
        if price is None:
            self.unpriced += 1
            return
        prompt, output = usage.input or 0, usage.output or 0
        whole = Billed(prompt, output, usage.cache_read or 0, usage.cache_write or 0, usage.cache_write_1h or 0)
        if not usage.cost:
            self.free += bool(prompt or output)
            return
        self.recorded.append(usage.cost)
        self.cached.append(price.of(whole))
        self.plain.append(price.of(Billed(prompt, output)))

    @property
    def unit(self) -> float:
        """How many of the recording's units a dollar is: 100 for cents; 1 if nothing says that they are not dollars."""
        ratios = [
            median(cost / ours for cost, ours in zip(self.recorded, computed, strict=True) if ours)
            for computed in (self.plain, self.cached)
            if any(computed)
        ]
        for unit in (1.0, *UNITS):
            if any(abs(ratio / unit - 1) <= SCALE for ratio in ratios):
                return unit
        return 1.0

    @property
    def follows(self) -> str:
        """Which formula the recorded costs follow: `cache prices`, `plain prices`, `both`, or `neither`."""
        cached, plain = (isinstance(each, float) and abs(each) <= CLOSE for each in (self.error, self.plain_error))
        return "both" if cached and plain else "cache prices" if cached else "plain prices" if plain else "neither"

    @property
    def error(self) -> Value:
        """What the usage costs by the prices of caches, less what is recorded, by that."""
        return self._error(self.cached)

    @property
    def plain_error(self) -> Value:
        """The same with every token of the prompt at the plain price."""
        return self._error(self.plain)

    @property
    def worst(self) -> Value:
        """The same as `error`, of the call that is furthest off."""
        return self._worst(self.cached)

    @property
    def plain_worst(self) -> Value:
        """The same as `plain_error`, of the call that is furthest off."""
        return self._worst(self.plain)

    def _error(self, computed: list[float]) -> Value:
        missing = self._missing()
        return (sum(computed) - sum(self.recorded)) / sum(self.recorded) if missing is None else missing

    def _worst(self, computed: list[float]) -> Value:
        missing = self._missing()
        errors = ((ours - cost) / cost for ours, cost in zip(computed, self.recorded, strict=True))
        return max(errors, key=abs) if missing is None else missing

    def _missing(self) -> Missing | None:
        if not self.recorded:
            why = "the price of this model is not known" if self.unpriced else "no cost above 0 is recorded"
            return Missing("unsupported" if self.unpriced else "undefined", why)
        if self.unit != 1.0:
            return Missing("unsupported", "the costs are in another unit")
        return None


def recorded_costs(calls: Iterable[RecordedRequest], prices: Prices) -> dict[str, Costs]:
    """By model, of the calls that have a cost."""
    found: dict[str, Costs] = {}
    for asked in calls:
        usage = asked.call.usage
        if usage is not None and usage.cost is not None and usage.input is not None:
            found.setdefault(asked.call.model, Costs()).add(usage, price_of_call(prices, asked))
    return found
