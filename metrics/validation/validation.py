"""Agreement of recorded calls with the cache models and the prices: everything that `ctxbench lab validate` shows.

Recorded costs are compared with two formulas: with the provider's prices for cache reads and writes, and with every
token of the prompt at the plain price, as loggers compute that know nothing of caches (LiteLLM in 2024).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ctxbench.scenarios.model import Conversation

from ..cache.prefixes import CacheUsage
from ..prices import Prices
from ..prices import TokenUsage as Billed
from ..value import Missing, Value
from .comparison import CacheReplay, ComparedCall, Counters
from .requests import RecordedRequest

Figures = dict[str, Any]  # figures by their keys in --json; those of a part are nested


@dataclass(frozen=True, slots=True)
class Validation:
    """Compared calls, their agreement and costs, and the state behind them."""

    rows: list[ComparedCall]
    agreements: list[Figures]
    """One for each model and the day from which its rule is in force, in order of appearance (`agreement`)."""
    costs: list[Figures]  # one for each model of which costs are recorded (`recorded_costs`)
    special: list[Figures]  # one for each model and what of its calls has a price of its own (`special_prices`)
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
    costs, special = recorded_costs(replayed.counted, prices), special_prices(replayed.counted, prices)
    return Validation(rows, agreements, costs, special, replayed, counters, prices)


def _over(top: float, bottom: float, undefined: str) -> Value:
    return top / bottom if bottom else Missing("undefined", undefined)


CLOSE = 0.005  # relative error up to which a cost counts as reproduced
_UNPRICED = Missing("unsupported", "the price of this model is not known")
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
    readable = [row for row in later if row.readable]
    hit, gone = ("miss", "hit"), ("kept", "gone")
    money, own_money_error = _money(calls, prices)
    return {
        "calls": len(calls),
        "exact": sum(row.exact for row in calls),
        "readable": len(readable),
        "readable_exact": sum(row.exact for row in readable),
        "later_calls": len(later),
        "later_exact": sum(row.exact for row in later),
        "reuse": _share(later),
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
    reported = predicted = expected = own = 0.0
    priced = unpriced = unreported = 0
    share_of = _shares(rows)
    for row in rows:
        usage, price = row.usage, prices.then(row.asked.call, row.model, row.usage, row.asked.dated)
        output, wrote, hour = usage.output or 0, usage.cache_write or 0, usage.cache_write_1h
        # What a first call read, earlier runs left: a bill has it as recorded.
        cached = row.predicted.with_read(max(row.predicted.read, row.read if row.gap is None else 0))
        used = _billed(cached, output)
        if price is None:
            unpriced += 1
        # What was written and not reported cannot be told from plain input; at one price it makes no difference.
        elif usage.cache_write is None and used.written and price.write != price.input:
            unreported += 1
        else:
            if hour is None:  # not split: as the request's marks were, by the share that is predicted
                hour = round(wrote * used.written_1h / used.written) if used.written else 0
            priced, more = priced + 1, price.beyond_text(usage)
            reported += price.of(Billed(usage.input or 0, output, row.read, wrote, hour)) + more
            predicted += price.of(used) + more
            found = cached.with_read(round(cached.read * share_of.get(id(row), 1.0)))
            expected += price.of(_billed(found, output)) + more
            own += price.of(_billed(row.own, output)) + more

    def error(dollars: float) -> Value:
        if not reported and unpriced:
            return _UNPRICED
        return _over(dollars - reported, reported, "nothing that costs anything")

    figures: Figures = {"calls": priced, "unpriced": unpriced, "not_reported": unreported, "reported_usd": reported}
    figures |= {"predicted_usd": predicted, "error": error(predicted), "error_at_hit_rate": error(expected)}
    return figures, error(own)


def _share(rows: Sequence[ComparedCall]) -> Value:
    """Return the tokens read for each that was predicted."""
    return _over(sum(row.read for row in rows), sum(row.predicted.read for row in rows), "nothing to be read")


def _shares(rows: Sequence[ComparedCall]) -> dict[int, float]:
    """Map each later call to the share of the other half of the calls, every second one: a bill is judged on others."""
    later, share_of = [row for row in rows if row.gap is not None], dict[int, float]()
    for half, others in ((later[::2], later[1::2]), (later[1::2], later[::2])):
        share = _share(others)
        share_of.update((id(row), 1.0 if isinstance(share, Missing) else share) for row in half)
    return share_of


def _own_counts(rows: Sequence[ComparedCall]) -> Figures:
    """Return the errors of prompts and reads by our own counts, of calls after the first, which gives the constant."""
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


def special_prices(calls: Iterable[RecordedRequest], prices: Prices) -> list[Figures]:
    """Return what of each model's calls has another price than usual text, if it is `listed`, its bill's `share`."""
    bill, touched = defaultdict[str, float](float), defaultdict[tuple[str, str, bool], list[float]](list)
    for recorded in calls:
        for model, used in recorded.call.billed:
            if (price := prices.then(recorded.call, model, used, recorded.dated)) is not None:
                bill[model] += (cost := price.recorded(used))
                for what, listed in prices.special(prices.sold_as(recorded.call, model), recorded.call, used).items():
                    touched[model, what, listed].append(cost)
    keys = ("model", "part", "listed", "calls", "share")
    rows = ((*key, len(costs), _over(sum(costs), bill[key[0]], "a bill of 0")) for key, costs in touched.items())
    return [dict(zip(keys, row, strict=True)) for row in rows]


def recorded_costs(calls: Iterable[RecordedRequest], prices: Prices) -> list[Figures]:
    """Return how recorded costs agree with the prices, one for each model with any."""
    # For each call its recorded cost, and what its usage costs: with the provider's cache prices, with every token of
    # the prompt at the plain price, and as text at the usual tier.
    costs: dict[str, list[tuple[float, ...]]] = {}
    unpriced, free, special = Counter[str](), Counter[str](), defaultdict[str, set[str]](set)
    for recorded in calls:
        usage, model, call = recorded.call.usage, recorded.call.model, recorded.call
        if usage is None or usage.cost is None or usage.input is None:
            continue
        of_model, parts = costs.setdefault(model, []), list[tuple[float, float, float]]()
        for name, used in call.billed:
            price, usual = (prices.then(call, name, used, recorded.dated, is_usual) for is_usual in (False, True))
            if price is None or usual is None:
                unpriced[model] += 1
                break
            plain = price.of(Billed(used.input or 0, used.output or 0)) + price.beyond_text(used)
            parts.append((price.recorded(used), plain, usual.of(Billed.recorded(used))))
            its_own = prices.special(prices.sold_as(call, name), call, used)
            special[model] |= {what for what, is_listed in its_own.items() if is_listed}
        else:
            if usage.cost:
                of_model.append((usage.cost, *map(sum, zip(*parts, strict=True))))
            else:  # a subscription, or a logger that did not know the price
                free[model] += any(used.input or used.output for _, used in recorded.call.billed)
    return [_cost_figures(model, each, unpriced[model], free[model], special[model]) for model, each in costs.items()]


def _cost_figures(
    model: str, costs: Sequence[tuple[float, ...]], unpriced: int, free: int, special: Collection[str]
) -> Figures:
    """Return the relative differences of the computed costs, of all calls and of the one that is furthest off.

    `follows` says which formula gives the recorded sum to half a percent, and which prices of their own (`special`) it
    has, or has not.
    """
    recorded, cached, plain, usual = ([cost[at] for cost in costs] for at in range(4))
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
    formulas = {(True, True): "both", (True, False): "cache prices", (False, True): "plain prices"}
    follows, own = formulas.get((by_cache, by_plain), "neither"), " and ".join(sorted(special))
    if own and (by_cache or by_plain):
        follows = f"{own} ({follows})"
    elif own and errors(usual)[2]:
        follows = f"cache prices, not {own}"
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
        "follows": follows if missing is None else missing,
    }
