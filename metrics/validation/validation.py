"""Agreement of recorded calls with the cache models and the prices: everything that `ctxbench lab validate` shows.

Recorded costs are compared with two formulas: with the provider's prices for cache reads and writes, and with every
token of the prompt at the plain price, as loggers compute that know nothing of caches (LiteLLM in 2024).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ctxbench.scenarios.model import Conversation, Usage

from ..cache.prefixes import CacheUsage
from ..prices import Price, Prices
from ..prices import TokenUsage as Billed
from ..value import Missing, Value
from .comparison import EARLIER, CacheReplay, ComparedCall, Counters
from .requests import RecordedRequest

Figures = dict[str, Any]  # figures by their keys in --json; those of a part are nested


@dataclass(frozen=True, slots=True)
class Validation:
    """Compared calls, their agreement and costs, and the state behind them."""

    rows: list[ComparedCall]
    agreements: list[Figures]
    """One for each model and the day from which its rule is in force, in order of appearance (`agreement`)."""
    costs: list[Figures]  # one for each model of which costs are recorded (`recorded_costs`)
    replayed: CacheReplay
    counters: Counters
    prices: Prices


def validation(conversations: Iterable[Conversation], counters: Counters, prices: Prices) -> Validation:
    """Validate every recorded call against the cache of its model and date and the prices of its day."""
    replayed = CacheReplay(counters, prices)
    rows = list(replayed.compare(conversations))
    groups = defaultdict[tuple[str, str], list[ComparedCall]](list)
    for row in rows:
        groups[row.model, row.rule.since].append(row)
    agreements, calibration = [], replayed.calibration
    for (model, since), calls in groups.items():
        figures = {"model": model, "rule_since": since, **agreement(calls, prices)}
        figures["own_counts"] |= {
            "encoding": counters[model].encoding,
            "factor": calibration.factor(model),
            "factors": {name: calibration.factor(model, name) for name in calibration.growths.get(model, {})},
        }
        agreements.append(figures)
    return Validation(rows, agreements, recorded_costs(replayed.counted, prices), replayed, counters, prices)


def _over(top: float, bottom: float, undefined: str) -> Value:
    return top / bottom if bottom else Missing("undefined", undefined)


_NO_CALLS, _NO_LATER, _NO_TOKENS = "no calls", "no calls after a first one", "no prompt tokens"


def agreement(rows: Sequence[ComparedCall], prices: Prices) -> Figures:
    """Return how calls of one model and rule agree with what is predicted for them, in the provider's tokens.

    Calls whose usage lacks the tokens read, where some are predicted, are in none of the sums but `not_reported`. Later
    calls are those after the first of their conversation, whose reads depend on earlier runs.
    """
    calls = [row for row in rows if row.reported]
    later = [row for row in calls if row.gap is not None]
    tokens, read = sum(row.usage.input or 0 for row in calls), sum(row.read for row in calls)
    predicted, offs = sum(row.predicted.read for row in calls), [abs(row.predicted.read - row.read) for row in calls]
    # Calls that read the newest prefix that is cached, and those that read what an earlier call could.
    found, earlier = sum(row.exact and row.read > 0 for row in later), sum(row.reason == EARLIER for row in later)
    hit, gone = ("miss", "hit"), ("kept", "gone")
    money, own_money_error = _money(calls, prices)
    return {
        "calls": len(calls),
        "exact": sum(row.exact for row in calls),
        "later_calls": len(later),
        "later_exact": sum(row.exact for row in later),
        "earlier_prefix": earlier,
        "reuse": _over(found, found + earlier, "no later call is predicted right"),
        "not_reported": len(rows) - len(calls),
        "prompt_tokens": tokens,
        "read_reported": read,
        "read_predicted": predicted,
        "read_absolute_error": sum(offs),
        "read_absolute_error_median": median(offs) if offs else Missing("undefined", _NO_CALLS),
        "hit_rate": _over(read, tokens, _NO_TOKENS),
        "hit_rate_error": _over(predicted - read, tokens, _NO_TOKENS),
        "money": money,
        "hits": dict(Counter(f"{hit[row.predicted.read > 0]} / {hit[row.read > 0]}" for row in calls)),
        "pauses": dict(Counter(f"{gone[row.expired[0]]} / {gone[row.expired[1]]}" for row in calls if row.expired)),
        "own_counts": {**_own_counts(later), "money_error": own_money_error},
        "reasons": dict(Counter(row.reason for row in rows if row.reason)),
    }


def _money(rows: Sequence[ComparedCall], prices: Prices) -> tuple[Figures, Value]:
    """Return US dollars of reported and of predicted usage at the same prices, and the error by our own counts."""
    reported = predicted = own = 0.0
    priced = unpriced = unreported = 0
    for row in rows:
        usage, price = row.usage, _price(prices, row.asked, row.model, row.usage)
        output, wrote, hour = usage.output or 0, usage.cache_write or 0, usage.cache_write_1h
        used = _billed(row.predicted, output)
        if price is None:
            unpriced += 1
        # What was written and not reported cannot be told from plain input; at one price it makes no difference.
        elif usage.cache_write is None and used.written and price.write != price.input:
            unreported += 1
        else:
            if hour is None:  # not split: as the request's marks were, by the share that is predicted
                hour = round(wrote * used.written_1h / used.written) if used.written else 0
            priced += 1
            reported += price.of(Billed(usage.input or 0, output, row.read, wrote, hour))
            predicted += price.of(used)
            own += price.of(_billed(row.own, output))

    def error(dollars: float) -> Value:
        if not reported and unpriced:
            return _UNPRICED
        return _over(dollars - reported, reported, "nothing that costs anything")

    figures = {"calls": priced, "unpriced": unpriced, "not_reported": unreported, "reported_usd": reported}
    return {**figures, "predicted_usd": predicted, "error": error(predicted)}, error(own)


def _own_counts(rows: Sequence[ComparedCall]) -> Figures:
    """Return the errors of prompts and reads by our own token counts, of calls after the first, which gives the
    constant."""
    sizes = [(row.own.prompt, row.usage.input or 0) for row in rows]
    counted, prompts = (sum(size[at] for size in sizes) for at in range(2))
    shares = [abs(ours - theirs) / theirs for ours, theirs in sizes if theirs]
    reads, own_reads = sum(row.read for row in rows), sum(row.own.read for row in rows)
    raw = sum(abs(row.asked.counted - (row.usage.input or 0)) for row in rows)
    none = Missing("undefined", _NO_LATER)
    return {
        "calls": len(rows),
        "prompt_error_raw": _over(raw, prompts, _NO_LATER),
        "prompt_error": _over(sum(abs(ours - theirs) for ours, theirs in sizes), prompts, _NO_LATER),
        "prompt_error_median": median(shares) if shares else none,
        "read_error": _over(sum(abs(row.own.read - row.read) for row in rows), reads, "nothing was read"),
        "hit_rate_error": own_reads / counted - reads / prompts if prompts and counted else none,
    }


def _billed(used: CacheUsage, output: int) -> Billed:
    return Billed(used.prompt, output, used.read, used.written + used.written_1h, used.written_1h)


CLOSE = 0.005  # relative error up to which a cost counts as reproduced
_UNPRICED = Missing("unsupported", "the price of this model is not known")


def _price(prices: Prices, recorded: RecordedRequest, model: str, usage: Usage) -> Price | None:
    """Return the price of a recorded call on its day, or of a part of it; None if it is not known."""
    # The price is that of who answered: hosts sell the same model at prices of their own.
    host = recorded.call.provider
    tariff = (prices.tariff(f"{host}/{model}") if host else None) or prices.tariff(model)
    return tariff and tariff.then(usage.input or 0, recorded.started if recorded.dated else None)


def recorded_costs(calls: Iterable[RecordedRequest], prices: Prices) -> list[Figures]:
    """Return how recorded costs agree with the prices, one for each model with any."""
    # For each call its recorded cost, and what its usage costs: with the provider's cache prices, and with every token
    # of the prompt at the plain price.
    costs: dict[str, list[tuple[float, float, float]]] = {}
    unpriced, free = Counter[str](), Counter[str]()
    for recorded in calls:
        usage, model = recorded.call.usage, recorded.call.model
        if usage is None or usage.cost is None or usage.input is None:
            continue
        of_model, cached, plain, is_used = costs.setdefault(model, []), 0.0, 0.0, False
        for name, used in recorded.call.billed:
            price, sizes = _price(prices, recorded, name, used), (used.input or 0, used.output or 0)
            if price is None:
                unpriced[model] += 1
                break
            parts = (used.cache_read or 0, used.cache_write or 0, used.cache_write_1h or 0)
            cached, plain = cached + price.of(Billed(*sizes, *parts)), plain + price.of(Billed(*sizes))
            is_used = is_used or any(sizes)
        else:
            if usage.cost:
                of_model.append((usage.cost, cached, plain))
            else:  # a subscription, or a logger that did not know the price
                free[model] += is_used
    return [_cost_figures(model, each, unpriced[model], free[model]) for model, each in costs.items()]


def _cost_figures(model: str, costs: Sequence[tuple[float, float, float]], unpriced: int, free: int) -> Figures:
    """Return the relative differences of the computed costs, of all calls and of the one that is furthest off.

    `follows` says which formula gives the recorded sum to half a percent.
    """
    recorded, cached, plain = ([cost[at] for cost in costs] for at in range(3))
    missing = None
    if not costs:
        missing = _UNPRICED if unpriced else Missing("undefined", "no cost above 0 is recorded")

    def errors(computed: list[float]) -> tuple[Value, Value, bool]:
        """Return the error of the sum, and of the call that is furthest off, and whether the sum is reproduced."""
        if missing is not None:
            return missing, missing, False
        of_calls = ((ours - cost) / cost for cost, ours in zip(recorded, computed, strict=True))
        error = (sum(computed) - sum(recorded)) / sum(recorded)
        return error, max(of_calls, key=abs), abs(error) <= CLOSE

    (error, worst, by_cache), (plain_error, plain_worst, by_plain) = errors(cached), errors(plain)
    follows = {(True, True): "both", (True, False): "cache prices", (False, True): "plain prices"}
    return {
        "model": model,
        "calls": len(costs),
        "unpriced": unpriced,
        "free": free,
        "recorded": sum(recorded),
        "by_cache_prices_usd": sum(cached),
        "error": error,
        "worst": worst,
        "by_plain_prices_usd": sum(plain),
        "plain_error": plain_error,
        "plain_worst": plain_worst,
        "follows": follows.get((by_cache, by_plain), "neither") if missing is None else missing,
    }
