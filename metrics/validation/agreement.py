"""How well predictions agree with what providers reported, over the calls of one model under one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from ..cache.prefixes import CacheUsage
from ..prices import Price, Prices
from ..prices import TokenUsage as Billed
from ..value import Missing, Value
from .comparison import ComparedCall
from .costs import price_of_call

NO_CALLS = Missing("undefined", "no calls")
NO_LATER = Missing("undefined", "no calls after a first one")
NO_TOKENS = Missing("undefined", "no prompt tokens")


@dataclass(slots=True)
class Money:
    """Reported usage, and what is predicted instead, at the same prices, in US dollars."""

    calls: int = 0
    reported: float = 0.0
    predicted: float = 0.0
    own: float = 0.0
    """By our own token counts."""
    unpriced: int = 0
    """Calls whose model has no known price: they are in none of the sums."""
    unreported: int = 0
    """Calls whose usage does not say what was written, which is not billed as other tokens are."""


@dataclass(slots=True)
class OwnCounts:
    """Prompts and reads by our own token counts, of calls after the first: the constant is from that."""

    calls: int = 0
    prompts: int = 0
    """Tokens, as reported; so is `reads`."""
    reads: int = 0
    raw_off: int = 0
    """Sum of the differences of our count alone, without their sign."""
    off: int = 0
    """The same calibrated."""
    read_off: int = 0
    shares: list[float] = field(default_factory=list)
    """Of each call, by how much of its prompt the calibrated count is off."""
    own_prompts: int = 0
    own_reads: int = 0

    @property
    def raw_error(self) -> Value:
        """Of the prompt tokens, how many our count alone is off."""
        return self.raw_off / self.prompts if self.prompts else NO_LATER

    @property
    def error(self) -> Value:
        """Of the prompt tokens, how many the calibrated count is off."""
        return self.off / self.prompts if self.prompts else NO_LATER

    @property
    def median_error(self) -> Value:
        """The same of the middle call."""
        return median(self.shares) if self.shares else NO_LATER

    @property
    def read_error(self) -> Value:
        """Of the tokens read, how many the prediction by our counts is off."""
        return self.read_off / self.reads if self.reads else Missing("undefined", "nothing was read")

    @property
    def hit_rate_error(self) -> Value:
        """Predicted share of tokens read less the reported one."""
        if not self.prompts or not self.own_prompts:
            return NO_LATER
        return self.own_reads / self.own_prompts - self.reads / self.prompts


@dataclass(slots=True)
class CacheAgreement:
    """Sums over recorded calls. Tokens are the provider's."""

    calls: int = 0
    exact: int = 0
    """Calls of which the tokens read are predicted to the token."""
    later: int = 0
    """Calls after the first of their conversation: what the first reads depends on runs before it."""
    later_exact: int = 0
    unreported: int = 0
    """Calls whose usage does not say what was read, where something is predicted: they are in none of the sums."""
    tokens: int = 0
    """Of all prompts."""
    read: int = 0
    """As reported."""
    predicted: int = 0
    offs: list[int] = field(default_factory=list)
    """Of each call, how many tokens the prediction of what is read is off."""
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
        """Of all calls, those predicted to the token."""
        return self.exact / self.calls if self.calls else NO_CALLS

    @property
    def later_share(self) -> Value:
        """The same without the first call of each conversation."""
        return self.later_exact / self.later if self.later else NO_LATER

    @property
    def off(self) -> int:
        """Tokens read: sum of the differences, without their sign."""
        return sum(self.offs)

    @property
    def median_off(self) -> Value:
        """The same of the middle call."""
        return median(self.offs) if self.offs else NO_CALLS

    @property
    def hit_rate(self) -> Value:
        """Of all prompt tokens, those read, as reported."""
        return self.read / self.tokens if self.tokens else NO_TOKENS

    @property
    def hit_rate_error(self) -> Value:
        """What is predicted, less that; a share of all prompt tokens."""
        return (self.predicted - self.read) / self.tokens if self.tokens else NO_TOKENS

    @property
    def money_error(self) -> Value:
        """What the predicted usage costs, less what the reported one does, by that."""
        return self._money_error(self.money.predicted)

    @property
    def own_money_error(self) -> Value:
        """The same by our own token counts."""
        return self._money_error(self.money.own)

    def _money_error(self, dollars: float) -> Value:
        money = self.money
        if money.reported:
            return (dollars - money.reported) / money.reported
        if money.unpriced:
            return Missing("unsupported", "the price of this model is not known")
        return Missing("undefined", "nothing that costs anything")


def agreement(rows: Iterable[ComparedCall], prices: Prices) -> dict[tuple[str, str], CacheAgreement]:
    """By model and the day from which its rule is in force, in the order they come."""
    found: dict[tuple[str, str], CacheAgreement] = {}
    for row in rows:
        found.setdefault((row.model, row.rule.since), CacheAgreement()).add(row, price_of_call(prices, row.asked))
    return found


def _billed(used: CacheUsage, output: int) -> Billed:
    return Billed(_tokens(used), output, used.read, used.written + used.written_1h, used.written_1h)


def _tokens(used: CacheUsage) -> int:
    return used.read + used.written + used.written_1h + used.fresh
