"""C05, C08, C09, C10, C29: what caching saves of the bill, and what providers charge (design document 000)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...metrics.cache.automatic import AutomaticRules
from ...metrics.cache.boundary import BoundaryRules
from ...metrics.cache.explicit import ExplicitRules
from ...metrics.cache.rules import rule_for
from ...metrics.prices import Price, Prices, TokenUsage
from ...metrics.statistics.bootstrap import Floats, resampled
from ...metrics.statistics.intervals import Interval
from ...metrics.value import Missing
from ...scenarios.model import Conversation
from ...strategies.recipes import RECIPES
from .claim import Claim, Claimed, ClaimRow, Measurement, exact
from .inputs import MODELS, ClaimInputs
from .rows import of_groups, of_sums

SAVED = "of the bill saved"
DISCOUNTS = {"gpt-5.6": 0.5, "claude-sonnet-5": 0.9, "deepseek/deepseek-chat": 0.5}
"""What is taken off cached input by 000 §2.5."""
LEAST = {"gpt-5.6": 1024, "claude-sonnet-5": 1024, "deepseek/deepseek-chat": 64}
"""The shortest prompts that are cached, by 000 §3.1.2."""
COMPOSED = tuple(each.chain for each in RECIPES.values())
ALL = RECIPES["all_of_000"].chain


def caching(inputs: ClaimInputs) -> Measurement:
    """C05. The whole history with the provider's cache, against the same requests without one."""
    claimed = Claimed(least=0.5, upper=0.9)
    rows: list[ClaimRow] = []
    for strategy in ("none", "cache_marks"):
        for model, found in _uncached(inputs, strategy).items():
            where = "the provider's own caching" if strategy == "none" else "marks as `cache_marks` puts them"
            rows.append(
                ClaimRow(
                    setting=f"{model}, {where}",
                    figure=SAVED,
                    unit="share",
                    found=found,
                    claimed=claimed,
                    of=inputs.of,
                    decides=strategy == "none",
                )
            )
    return Measurement(
        tuple(rows),
        "The whole history is sent at every call, answers are paid for as well, and writing to the cache where it is "
        "charged.",
        "Longer conversations with shorter pauses; a first call has nothing to read.",
    )


def _uncached(inputs: ClaimInputs, strategy: str) -> dict[str, Interval | Missing]:
    """By model, what is saved of the bill of the same requests without a cache."""
    bills = inputs.bills(strategy)
    each = {model: bills[bills.model == model] for model in MODELS}
    return {
        model: of_groups(list(zip(rows.cost, rows.uncached, strict=True)), "saving") for model, rows in each.items()
    }


def together(inputs: ClaimInputs) -> Measurement:
    """C08. The best composition against `none`, chosen for each conversation by the others."""
    claimed = Claimed(least=0.6, upper=0.8)
    rows: list[ClaimRow] = []
    for model in MODELS:
        found, chosen = _best(inputs, model)
        rows.append(
            ClaimRow(
                setting=f"{model}, the cheapest composition ({chosen})",
                figure=f"{SAVED}, against `none`, cached as well",
                unit="share",
                found=found,
                claimed=claimed,
                of=inputs.of,
            )
        )
    for model in MODELS:
        against = {
            "cached as well": _everything(inputs, model, "cost"),
            "without any cache": _everything(inputs, model, "uncached"),
        }
        rows += [
            ClaimRow(
                setting=f"{model}, everything of 000",
                figure=f"{SAVED}, against `none`, {how}",
                unit="share",
                found=each,
                claimed=claimed,
                of=inputs.of,
                decides=False,
            )
            for how, each in against.items()
        ]
    return Measurement(
        tuple(rows),
        "The composition is chosen for each conversation by the bills of the others, so that it is not flattered. "
        "Summaries are charged at the price of the model billed, though `offline` makes them for nothing. What is lost "
        "by it is in C06 and in the report.",
        "A provider without a cache for the whole history: against the same requests uncached the saving is larger.",
    )


def _costs(inputs: ClaimInputs, strategy: str, model: str) -> pd.DataFrame:
    """By conversation, what a strategy costs, own model calls with it, and what its requests would without a cache."""
    bills = inputs.bills(strategy)
    bills = bills[bills.model == model].assign(conversation=lambda rows: rows.conversation.astype(str))
    found = bills.set_index("conversation")[["cost", "cost_own", "uncached"]].astype(float)
    return found.assign(cost=found.cost + found.cost_own)


def _best(inputs: ClaimInputs, model: str) -> tuple[Interval | Missing, str]:
    """The saving of whichever composition is cheapest on all other conversations, and which that is mostly."""
    every = {name: _costs(inputs, name, model).cost for name in COMPOSED}
    table = pd.DataFrame({**every, "none": _costs(inputs, "none", model).cost}).dropna()
    return chosen_by_others(list(COMPOSED), table[list(COMPOSED)].to_numpy(), table["none"].to_numpy())


def chosen_by_others(names: list[str], costs: Floats, base: Floats) -> tuple[Interval | Missing, str]:
    """`costs`: a row a conversation, a column a composition."""
    if len(costs) < 2:
        return Missing("undefined", "one conversation has no others to choose by"), "none was chosen"
    picked = np.argmin(costs.sum(axis=0) - costs, axis=1)
    most = names[int(np.bincount(picked, minlength=len(names)).argmax())]
    return of_sums(np.column_stack([costs[np.arange(len(costs)), picked], base]), "saving"), most


def _everything(inputs: ClaimInputs, model: str, base: str) -> Interval | Missing:
    """What everything of 000 saves of the bill of `none`, as it is (cost) or without any cache: what 000 had before."""
    both = pd.DataFrame({"ours": _costs(inputs, ALL, model).cost, "base": _costs(inputs, "none", model)[base]}).dropna()
    return of_groups(list(zip(both.ours, both.base, strict=True)), "saving")


def discounts(_: ClaimInputs) -> Measurement:
    """C09. Today's prices and rules, as they are listed."""
    prices, rows = Prices(), []
    for model, claimed in DISCOUNTS.items():
        tariff = prices.tariff(model)
        rule = rule_for(model, None)
        unknown = Missing("unsupported", "no price is listed")
        rows.append(
            ClaimRow(
                setting=model,
                figure="discount on input that is read from the cache",
                unit="share",
                found=unknown if tariff is None else _discount(tariff.at(1)),
                claimed=Claimed(least=claimed, most=claimed),
            )
        )
        least = _least(rule.rules if rule else None)
        rows.append(
            ClaimRow(
                setting=model,
                figure="tokens of the shortest prompt that is cached",
                unit="tokens",
                found=least if isinstance(least, Missing) else exact(least),
                claimed=Claimed(least=LEAST[model], most=LEAST[model]),
            )
        )
    taken = rule_for("deepseek/deepseek-chat", None)
    rows.append(
        ClaimRow(
            setting="deepseek/deepseek-chat",
            figure="providers of these whose cache takes `cache_control`",
            unit="count",
            found=exact(float(taken is not None and isinstance(taken.rules, ExplicitRules))),
            claimed=Claimed(least=1.0, most=1.0),
        )
    )
    return Measurement(
        tuple(rows),
        "Prices are those of litellm's bundled map, rules those of the providers' pages, both as of this version; "
        "DeepSeek caches by itself and takes no marks.",
        "The document's table brought up to date: rules differ by model and change by the month.",
    )


def _discount(price: Price) -> Interval:
    return exact(round(1 - price.read / price.input, 6))


def _least(rules: object) -> float | Missing:
    """The shortest prompt that some rules cache."""
    match rules:
        case ExplicitRules() | AutomaticRules() | BoundaryRules():
            return float(rules.least)
    return Missing("unsupported", "the provider caches whole messages, and names no shortest prompt")


def example(_: ClaimInputs) -> Measurement:
    """C10. 000 §3.1.1, by the code that bills."""
    price = Price(1.0, 0.0, 0.1, 1.0, 1.0)
    found = price.of(TokenUsage(2600, 0, cached=2500))
    row = ClaimRow(
        setting="2000 + 500 tokens cached at 10 %, 100 fresh",
        figure="token-equivalents",
        unit="tokens",
        found=exact(round(found, 9)),
        claimed=Claimed(least=400.0, most=400.0),
    )
    return Measurement(
        (row,),
        "The document adds 250 for all 2500 cached tokens and 50 more for the 500 among them, which are counted twice.",
        "2500 × 0.1 + 100 = 350.",
    )


def latencies(inputs: ClaimInputs) -> Measurement:
    """C29."""
    return recorded_latencies(inputs.recorded)


CLAIMS = (
    Claim(
        "C05",
        "Prompt caching saves 50–90 % of the cost",
        "000 §1.1",
        "the providers' caches simulated over the run, in money, each provider",
        caching,
        ("none", "cache_marks"),
    ),
    Claim(
        "C08",
        "Together the cost falls by 60–80 %",
        "000 §8",
        "the best composition against `none`, in money",
        together,
        ("none", *COMPOSED),
    ),
    Claim(
        "C09",
        "Cached input is 50 % off at OpenAI, 90 % at Anthropic, 50 % at DeepSeek, which takes `cache_control`",
        "000 §2.5",
        "today's rules and prices against the document's",
        discounts,
    ),
    Claim(
        "C10",
        "2000 + 500 tokens cached at 10 % and 100 fresh ones are 400 token-equivalents",
        "000 §3.1.1",
        "the arithmetic",
        example,
    ),
    Claim(
        "C29",
        "A cached response takes 1.2 s instead of 2.0 s, one of a long dialogue 2.5 s instead of 5.0 s",
        "000 §5.2",
        "only from recorded latencies of providers",
        latencies,
    ),
)

CACHED, FRESH = 0.5, 0.1
"""Shares of a prompt read from the cache: a call with at least the first is cached, with at most the second is not."""
NONE = Missing("unsupported", "no recording was given that has calls of both kinds, with times and the cache's usage")


def recorded_latencies(said: Sequence[Conversation]) -> Measurement:
    """Seconds of a cached call over those of one that is not, and what cannot be compared."""
    sums = np.array([_sums(each) for each in said], np.float64).reshape(-1, 4)
    both = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    rows = (
        ClaimRow(
            setting="recorded calls, by what the provider read from its cache",
            figure="time of a call, cached over not",
            unit="times",
            found=_ratio(both),
            claimed=Claimed(most=1.2 / 2.0),
            of=f"{len(both)} conversations",
        ),
        ClaimRow(
            setting="a long dialogue, optimised over not",
            figure="time of a call",
            unit="times",
            found=Missing("unsupported", "the same dialogue is in no recording twice"),
            claimed=Claimed(most=2.5 / 5.0),
        ),
    )
    return Measurement(
        rows,
        "Latency is the provider's, and a replay has none; recorded calls differ in more than the cache.",
        "Recordings (--recordings) of the same calls with and without cache and compression.",
    )


def _sums(said: Conversation) -> tuple[float, float, float, float]:
    """Seconds and number of the cached calls, then of those that are not."""
    seconds, calls = [0.0, 0.0], [0, 0]
    for message in said.messages:
        call = message.call
        if call is None or call.started is None or message.time is None or call.usage is None:
            continue
        read, whole = call.usage.cache_read, call.usage.input
        if read is None or not whole or message.time <= call.started:
            continue
        kind = 0 if read >= CACHED * whole else 1 if read <= FRESH * whole else None
        if kind is not None:
            seconds[kind] += message.time - call.started
            calls[kind] += 1
    return seconds[0], calls[0], seconds[1], calls[1]


def _ratio(sums: Floats) -> Interval | Missing:
    if not len(sums):
        return NONE

    def statistic(each: Floats) -> Floats:
        found: Floats = (each[..., 0] / each[..., 1]) / (each[..., 2] / each[..., 3])
        return found

    found = resampled(sums, statistic)
    value = float(statistic(sums.sum(axis=0)))
    if isinstance(found, Missing):
        return Interval(value, found, found)
    ends = found.interval()
    return Interval(value, max(0.0, ends.low), ends.high)
