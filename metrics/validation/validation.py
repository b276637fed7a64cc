"""Agreement of recorded calls with the cache models and the prices: everything that `ctxbench lab validate` shows.

Recorded costs are compared with two formulas: with the provider's prices for cache reads and writes, and with every
token of the prompt at the plain price, as loggers compute that know nothing of caches (LiteLLM in 2024). A cost that is
a hundred times the other, or a thousand …, is in another unit: that is reported, and neither compared nor corrected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from ctxbench.scenarios.model import Conversation, Usage

from ..cache.prefixes import CacheUsage
from ..prices import Price, Prices
from ..prices import TokenUsage as Billed
from ..value import Missing, Value
from .calibration import Counters
from .comparison import EARLIER, CacheReplay, ComparedCall
from .requests import RecordedRequest


@dataclass(frozen=True, slots=True)
class Validation:
    """Compared calls, their agreement and costs, and the state behind them."""

    rows: list[ComparedCall]
    agreements: dict[tuple[str, str], CacheAgreement]
    """By model and the day from which its rule is in force."""
    costs: dict[str, Costs]
    """By model, where costs are recorded."""
    replayed: CacheReplay
    counters: Counters
    prices: Prices

    @property
    def empty(self) -> bool:
        """Whether no recorded call reports its usage."""
        replayed = self.replayed
        return not (self.rows or self.costs or replayed.without_rule or replayed.left_out)


def validation(conversations: Iterable[Conversation], counters: Counters, prices: Prices) -> Validation:
    """Validate every recorded call against the cache of its model and date and the prices of its day."""
    replayed = CacheReplay(counters.of, prices)
    rows = list(replayed.compare(conversations))
    return Validation(
        rows, agreement(rows, prices), recorded_costs(replayed.counted, prices), replayed, counters, prices
    )


NO_CALLS = Missing("undefined", "no calls")

NO_LATER = Missing("undefined", "no calls after a first one")

NO_TOKENS = Missing("undefined", "no prompt tokens")


@dataclass(slots=True)
class Money:
    """US dollars of reported and of predicted usage, at the same prices."""

    calls: int = 0
    reported: float = 0.0
    predicted: float = 0.0
    own: float = 0.0
    """By our own token counts."""
    unpriced: int = 0
    """Calls whose model has no known price: they are in none of the sums."""
    unreported: int = 0
    """Calls whose usage lacks the tokens written, which have a price of their own."""


@dataclass(slots=True)
class OwnCounts:
    """Prompts and reads by our own token counts, of calls after the first, which gives the constant."""

    calls: int = 0
    prompts: int = 0
    """Prompt tokens, as reported; `reads` are reported, too."""
    reads: int = 0
    raw_off: int = 0
    """Sum of the absolute errors of our count alone."""
    off: int = 0
    """Sum of the absolute errors of the calibrated count."""
    read_off: int = 0
    shares: list[float] = field(default_factory=list)
    """Relative error of the calibrated count of each prompt."""
    own_prompts: int = 0
    own_reads: int = 0

    @property
    def raw_error(self) -> Value:
        """Error of our count alone, as a share of the prompt tokens."""
        return self.raw_off / self.prompts if self.prompts else NO_LATER

    @property
    def error(self) -> Value:
        """Error of the calibrated count, as a share of the prompt tokens."""
        return self.off / self.prompts if self.prompts else NO_LATER

    @property
    def median_error(self) -> Value:
        """Median relative error of the calibrated count."""
        return median(self.shares) if self.shares else NO_LATER

    @property
    def read_error(self) -> Value:
        """Error of the tokens read predicted by our counts, as a share of the tokens read."""
        return self.read_off / self.reads if self.reads else Missing("undefined", "nothing was read")

    @property
    def hit_rate_error(self) -> Value:
        """Predicted hit rate less the reported one."""
        if not self.prompts or not self.own_prompts:
            return NO_LATER
        return self.own_reads / self.own_prompts - self.reads / self.prompts


@dataclass(slots=True)
class CacheAgreement:
    """Sums over recorded calls of one model and rule, in the provider's tokens."""

    calls: int = 0
    exact: int = 0
    """Calls whose tokens read are predicted to the token."""
    later: int = 0
    """Calls after the first of their conversation, whose reads depend on earlier runs."""
    later_exact: int = 0
    found: int = 0
    """Later calls that read the newest prefix that is cached."""
    earlier: int = 0
    """Calls that read what an earlier call could: another server answered, or the cache was written late."""
    unreported: int = 0
    """Calls whose usage lacks the tokens read, where some are predicted: they are in none of the sums."""
    tokens: int = 0
    """Tokens of all prompts."""
    read: int = 0
    """Tokens read, as reported."""
    predicted: int = 0
    offs: list[int] = field(default_factory=list)
    """Absolute error of each call's predicted tokens read."""
    hits: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """Calls by (predicted to read, reported to read)."""
    expired: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """Gaps longer than the lifetime, by (predicted to be gone, reported to be gone)."""
    reasons: Counter[str] = field(default_factory=Counter)
    money: Money = field(default_factory=Money)
    own: OwnCounts = field(default_factory=OwnCounts)

    def add(self, row: ComparedCall, price: Price | None) -> None:
        """Count one call."""
        if row.reason:
            self.reasons[row.reason] += 1
        if not row.reported:
            self.unreported += 1
            return
        self.calls += 1
        self.exact += row.exact
        self.later += row.gap is not None
        self.later_exact += row.gap is not None and row.exact
        self.found += row.gap is not None and row.exact and row.read > 0
        self.earlier += row.gap is not None and row.reason == EARLIER
        self.tokens += row.usage.input or 0
        self.read += row.read
        self.predicted += row.predicted.read
        self.offs.append(abs(row.predicted.read - row.read))
        self.hits[row.predicted.read > 0, row.read > 0] += 1
        if row.expired is not None:
            self.expired[row.expired] += 1
        self._add_money(row, price)
        if row.gap is not None:
            self._add_own(row)

    def _add_money(self, row: ComparedCall, price: Price | None) -> None:
        usage, money = row.usage, self.money
        written = row.predicted.written + row.predicted.written_1h
        if price is None:
            money.unpriced += 1
        # What was written and not reported cannot be told from plain input; at one price it makes no difference.
        elif usage.cache_write is None and written and price.write != price.input:
            money.unreported += 1
        else:
            output, reported = usage.output or 0, usage.input or 0
            wrote = usage.cache_write or 0
            hour = usage.cache_write_1h
            if hour is None:  # not split: as the request's marks were, by the share that is predicted
                hour = round(wrote * row.predicted.written_1h / written) if written else 0
            billed = Billed(reported, output, row.read, wrote, hour)
            money.calls += 1
            money.reported += price.of(billed)
            money.predicted += price.of(_billed(row.predicted, output))
            money.own += price.of(_billed(row.own, output))

    def _add_own(self, row: ComparedCall) -> None:
        own, prompt, counted = self.own, row.usage.input or 0, _tokens(row.own)
        own.calls += 1
        own.prompts += prompt
        own.reads += row.read
        own.raw_off += abs(row.own_raw - prompt)
        own.off += abs(counted - prompt)
        own.read_off += abs(row.own.read - row.read)
        own.own_prompts += counted
        own.own_reads += row.own.read
        if prompt:
            own.shares.append(abs(counted - prompt) / prompt)

    @property
    def exact_share(self) -> Value:
        """Share of the calls predicted to the token."""
        return self.exact / self.calls if self.calls else NO_CALLS

    @property
    def later_share(self) -> Value:
        """Share of the later calls of conversations predicted to the token."""
        return self.later_exact / self.later if self.later else NO_LATER

    @property
    def reuse(self) -> Value:
        """Probability that a later call finds the newest prefix that is cached, and not an earlier one."""
        read = self.found + self.earlier
        return self.found / read if read else Missing("undefined", "no later call is predicted right")

    @property
    def off(self) -> int:
        """Sum of the absolute errors of the tokens read."""
        return sum(self.offs)

    @property
    def median_off(self) -> Value:
        """Median absolute error of the tokens read."""
        return median(self.offs) if self.offs else NO_CALLS

    @property
    def hit_rate(self) -> Value:
        """Reported hit rate: share of the prompt tokens that were read."""
        return self.read / self.tokens if self.tokens else NO_TOKENS

    @property
    def hit_rate_error(self) -> Value:
        """Predicted hit rate less the reported one."""
        return (self.predicted - self.read) / self.tokens if self.tokens else NO_TOKENS

    @property
    def money_error(self) -> Value:
        """Relative error of the cost of the predicted usage."""
        return self._money_error(self.money.predicted)

    @property
    def own_money_error(self) -> Value:
        """Relative error of the cost predicted by our own token counts."""
        return self._money_error(self.money.own)

    def _money_error(self, dollars: float) -> Value:
        money = self.money
        if money.reported:
            return (dollars - money.reported) / money.reported
        if money.unpriced:
            return Missing("unsupported", "the price of this model is not known")
        return Missing("undefined", "nothing that costs anything")


def agreement(rows: Iterable[ComparedCall], prices: Prices) -> dict[tuple[str, str], CacheAgreement]:
    """Return the agreement by model and first day of its rule, in order of appearance."""
    agreement_of: dict[tuple[str, str], CacheAgreement] = {}
    for row in rows:
        agreement_of.setdefault((row.model, row.rule.since), CacheAgreement()).add(
            row, price_of_call(prices, row.asked)
        )
    return agreement_of


def _billed(used: CacheUsage, output: int) -> Billed:
    return Billed(_tokens(used), output, used.read, used.written + used.written_1h, used.written_1h)


def _tokens(used: CacheUsage) -> int:
    return used.read + used.written + used.written_1h + used.fresh


CLOSE = 0.005
"""Relative error up to which a cost counts as reproduced."""

UNITS = (100.0, 1e3, 1e6, 1e9, 1e-3, 1e-6)
"""Units of recorded costs per dollar: cents, thousandths …; or thousands of dollars, millions."""

SCALE = 0.02
"""Relative error up to which the median cost fits a unit."""


def price_of_call(prices: Prices, recorded: RecordedRequest) -> Price | None:
    """Return the price of a recorded call on its day; None if it is not known.

    Where the recording says which host answered, that host's price counts, if there is one.
    """
    return _price(prices, recorded, recorded.call.model, recorded.call.usage)


def _price(prices: Prices, recorded: RecordedRequest, model: str, usage: Usage | None) -> Price | None:
    # The price is that of who answered: hosts sell the same model at prices of their own.
    provider = recorded.call.provider
    names = ([f"{provider}/{model}"] if provider else []) + [model]
    tariff = next((listed for name in names if (listed := prices.tariff(name)) is not None), None)
    if tariff is None:
        return None
    return tariff.at((usage and usage.input) or 0, recorded.started if recorded.dated else None)


@dataclass(slots=True)
class Costs:
    """Recorded costs of one model, in the recording's unit, and the costs of its usage."""

    recorded: list[float] = field(default_factory=list)
    cached: list[float] = field(default_factory=list)
    """US dollars with the provider's cache prices."""
    plain: list[float] = field(default_factory=list)
    """US dollars with every token of the prompt at the plain price."""
    unpriced: int = 0
    """Calls with a cost whose model has no known price."""
    free: int = 0
    """Calls recorded to have cost nothing though tokens were used: a subscription, or a logger that did not know."""

    def add(self, cost: float, billed: Sequence[tuple[Usage, Price | None]]) -> None:
        """Count a call that has a recorded cost, with the usage and price of each request that it is for."""
        if any(price is None for _, price in billed):
            self.unpriced += 1
            return
        if not cost:
            self.free += any(usage.input or usage.output for usage, _ in billed)
            return
        self.recorded.append(cost)
        self.cached.append(sum(price.of(_reported(usage)) for usage, price in billed if price is not None))
        self.plain.append(
            sum(price.of(Billed(usage.input or 0, usage.output or 0)) for usage, price in billed if price is not None)
        )

    @property
    def unit(self) -> float:
        """Recording's units per dollar: 100 for cents; 1 if nothing says that they are not dollars."""
        ratios = [
            median(cost / ours for cost, ours in zip(self.recorded, computed, strict=True) if ours)
            for computed in (self.plain, self.cached)
            if any(computed)
        ]
        # By the median: a few calls at another price must not hide that the rest is in cents.
        for unit in (1.0, *UNITS):
            if any(abs(ratio / unit - 1) <= SCALE for ratio in ratios):
                return unit
        return 1.0

    @property
    def follows(self) -> str:
        """Formula that the recorded costs follow: `cache prices`, `plain prices`, `both`, or `neither`."""
        cached, plain = (isinstance(error, float) and abs(error) <= CLOSE for error in (self.error, self.plain_error))
        return "both" if cached and plain else "cache prices" if cached else "plain prices" if plain else "neither"

    @property
    def error(self) -> Value:
        """Relative difference of the costs with cache prices from the recorded ones."""
        return self._error(self.cached)

    @property
    def plain_error(self) -> Value:
        """Relative difference of the costs with plain prices from the recorded ones."""
        return self._error(self.plain)

    @property
    def worst(self) -> Value:
        """Relative difference with cache prices of the call that is furthest off."""
        return self._worst(self.cached)

    @property
    def plain_worst(self) -> Value:
        """Relative difference with plain prices of the call that is furthest off."""
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
    """Return the costs by model, of the calls that have a recorded cost."""
    costs: dict[str, Costs] = {}
    for recorded in calls:
        usage = recorded.call.usage
        if usage is not None and usage.cost is not None and usage.input is not None:
            billed = [(used, _price(prices, recorded, model, used)) for model, used in recorded.call.billed]
            costs.setdefault(recorded.call.model, Costs()).add(usage.cost, billed)
    return costs


def _reported(usage: Usage) -> Billed:
    read, written, hour = usage.cache_read or 0, usage.cache_write or 0, usage.cache_write_1h or 0
    return Billed(usage.input or 0, usage.output or 0, read, written, hour)
