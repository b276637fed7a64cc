"""C05, C08, C09, C10, C29: the part of the bill that caching saves, and what providers charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ctxbench.metrics.cache.mechanisms import AutomaticRules, BoundaryRules, ExplicitRules
from ctxbench.metrics.cache.rules import rule_for
from ctxbench.metrics.figures import units_of
from ctxbench.metrics.prices import Price, Prices, TokenUsage
from ctxbench.metrics.statistics.intervals import Floats, Interval, by_unit
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import RECIPES

from .claim import Claimed, ClaimRow, Measurement, exact
from .inputs import MODELS, ClaimInputs, Measures, of_groups, of_sums, over_conversations, units_among

SAVED = "of the bill saved"
DISCOUNTS = {"gpt-5.6": 0.5, "claude-sonnet-5": 0.9, "deepseek/deepseek-chat": 0.5}
"""Discounts on cached input, as 000 §2.5 lists them."""
LEAST = {"gpt-5.6": 1024, "claude-sonnet-5": 1024, "deepseek/deepseek-chat": 64}
"""Tokens of the shortest prompts that are cached, as 000 §3.1.2 lists them."""
COMPOSED = tuple(recipe.chain for recipe in RECIPES.values())
ALL = RECIPES["all_of_000"].chain


def caching(inputs: ClaimInputs) -> Measurement:
    """Measure C05: the whole history with the provider's cache, against the same requests without one."""
    claimed = Claimed(least=0.5, upper=0.9)
    rows: list[ClaimRow] = []
    for strategy in ("none", "cache_marks"):
        for model, saving in _uncached(inputs, strategy).items():
            where = "the provider's own caching" if strategy == "none" else "marks as `cache_marks` puts them"
            rows.append(
                ClaimRow(
                    setting=f"{model}, {where}",
                    figure=SAVED,
                    found=saving,
                    claimed=claimed,
                    of=inputs.of,
                    decides=strategy == "none",
                )
            )
    return Measurement(tuple(rows))


def _uncached(inputs: ClaimInputs, strategy: str) -> dict[str, Interval | Missing]:
    """Return by model the share saved of the bill of the same requests without a cache."""
    bills = inputs.bills(strategy)
    return {model: _saving(bills[bills.model == model], "cost", "uncached", inputs.units) for model in MODELS}


def _saving(bills: pd.DataFrame, ours: str, base: str, units: Mapping[str, str]) -> Interval | Missing:
    return of_groups(list(zip(bills[ours], bills[base], strict=True)), "saving", units_of(bills, units))


def together(inputs: ClaimInputs) -> Measurement:
    """Measure C08: the best composition against `none`, chosen for each conversation by the others."""
    # As long as the summaries of `offline` cost nothing this held, at 74.3 % (decision 29).
    claimed = Claimed(least=0.6, upper=0.8)
    rows: list[ClaimRow] = []
    for model in MODELS:
        saving, composition = _best(inputs, model)
        rows.append(
            ClaimRow(
                setting=f"{model}, the cheapest composition ({composition})",
                figure=f"{SAVED}, against `none`, cached as well",
                found=saving,
                claimed=claimed,
                of=inputs.of,
            )
        )
    for model in MODELS:
        rows += [
            ClaimRow(
                setting=f"{model}, everything together",
                figure=f"{SAVED}, against `none`, {base}",
                found=_everything(inputs, model, column),
                claimed=claimed,
                of=inputs.of,
                decides=False,
            )
            for base, column in (("cached as well", "cost"), ("without any cache", "uncached"))
        ]
    return Measurement(tuple(rows))


def _costs(inputs: ClaimInputs, strategy: str, model: str) -> pd.DataFrame:
    """Return by conversation the cost of a strategy with its own model calls, and of its requests without a cache."""
    bills = inputs.bills(strategy)
    bills = bills[bills.model == model].assign(conversation=lambda rows: rows.conversation.astype(str))
    costs = bills.set_index("conversation")[["cost", "cost_own", "uncached"]].astype(float)
    return costs.assign(cost=costs.cost + costs.cost_own)


def _best(inputs: ClaimInputs, model: str) -> tuple[Interval | Missing, str]:
    """Return the saving of the composition that is cheapest on all other conversations, and its usual name."""
    costs = {name: _costs(inputs, name, model).cost for name in COMPOSED}
    table = pd.DataFrame({**costs, "none": _costs(inputs, "none", model).cost}).dropna()
    return chosen_by_others(
        list(COMPOSED),
        table[list(COMPOSED)].to_numpy(),
        table["none"].to_numpy(),
        units_of(table.reset_index(), inputs.units),
    )


def chosen_by_others(
    names: list[str], costs: Floats, base: Floats, units: Sequence[str]
) -> tuple[Interval | Missing, str]:
    """Choose for each independent unit the composition (column) that is cheapest on the others."""
    costs, base = by_unit(costs, units), by_unit(base, units)
    if len(costs) < 2:
        return Missing("undefined", "one conversation has no others to choose by"), "none was chosen"
    # Leave one out: a composition chosen by the very conversation that it is measured on would be flattered.
    # Units × compositions: row u of the difference has what each composition costs on all units but u.
    choices = np.argmin(costs.sum(axis=0) - costs, axis=1)
    usual = names[int(np.bincount(choices, minlength=len(names)).argmax())]
    return of_sums(np.column_stack([costs[np.arange(len(costs)), choices], base]), "saving"), usual


def _everything(inputs: ClaimInputs, model: str, base: str) -> Interval | Missing:
    """Return the share that all strategies together save of the bill of `none`, with caching (cost) or without any."""
    both = pd.DataFrame({"ours": _costs(inputs, ALL, model).cost, "base": _costs(inputs, "none", model)[base]}).dropna()
    return _saving(both.reset_index(), "ours", "base", inputs.units)


def discounts(_: ClaimInputs) -> Measurement:
    """Measure C09: today's prices and rules, as they are listed."""
    prices, rows = Prices(), []
    for model, claimed in DISCOUNTS.items():
        tariff = prices.tariff(model)
        rule = rule_for(model, None)
        unknown = Missing("unsupported", "no price is listed")
        rows.append(
            ClaimRow(
                setting=model,
                figure="discount on input that is read from the cache",
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
    rule_of_deepseek = rule_for("deepseek/deepseek-chat", None)
    rows.append(
        ClaimRow(
            setting="deepseek/deepseek-chat",
            figure="providers of these whose cache takes `cache_control`",
            unit="count",
            found=exact(float(rule_of_deepseek is not None and isinstance(rule_of_deepseek.rules, ExplicitRules))),
            claimed=Claimed(least=1.0, most=1.0),
        )
    )
    return Measurement(tuple(rows))


def _discount(price: Price) -> Interval:
    return exact(round(1 - price.read / price.input, 6))


def _least(rules: object) -> float | Missing:
    """Return the tokens of the shortest prompt that some rules cache."""
    match rules:
        case ExplicitRules() | AutomaticRules() | BoundaryRules():
            return float(rules.least)
    return Missing("unsupported", "the provider caches whole messages, and names no shortest prompt")


def example(_: ClaimInputs) -> Measurement:
    """Measure C10: the example of 000 §3.1.1, computed by the code that bills."""
    price = Price(1.0, 0.0, 0.1, 1.0, 1.0)  # a token-equivalent is the price of a fresh token
    equivalents = price.of(TokenUsage(2600, 0, cached=2500))
    row = ClaimRow(
        setting="2000 + 500 tokens cached at 10 %, 100 fresh",
        figure="token-equivalents",
        unit="tokens",
        found=exact(round(equivalents, 9)),
        claimed=Claimed(least=400.0, most=400.0),
    )
    return Measurement((row,))


CACHED, FRESH = 0.5, 0.1
"""Shares of a prompt read from the cache: a call with at least the first counts as cached, with at most the second as
not."""
NONE = Missing("unsupported", "no recording was given that has calls of both kinds, with times and the cache's usage")


def latencies(inputs: ClaimInputs) -> Measurement:
    """Measure C29: the recorded seconds of a cached call over those of one that is not."""
    sums = np.array([_sums(conversation) for conversation in inputs.recorded], np.float64).reshape(-1, 4)
    has_both = (sums[:, 1] > 0) & (sums[:, 3] > 0)
    both, units = (
        sums[has_both],
        [unit for unit, here in zip(units_among(inputs.recorded), has_both, strict=True) if here],
    )
    rows = (
        ClaimRow(
            setting="recorded calls, by what the provider read from its cache",
            figure="time of a call, cached over not",
            unit="times",
            found=_ratio(by_unit(both, units)) if units else NONE,
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
    return Measurement(rows)


def _sums(conversation: Conversation) -> tuple[float, float, float, float]:
    """Return seconds and number of the cached calls, then of the others."""
    seconds, calls = [0.0, 0.0], [0, 0]
    for message in conversation.messages:
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
    def statistic(totals: Floats) -> Floats:
        ratio: Floats = (totals[..., 0] / totals[..., 1]) / (totals[..., 2] / totals[..., 3])
        return ratio

    return over_conversations(sums, statistic, least=0.0)


MEASURES: Measures = {
    "C05": (caching, ("none", "cache_marks")),
    "C08": (together, ("none", *COMPOSED)),
    "C09": (discounts, ()),
    "C10": (example, ()),
    "C29": (latencies, ()),
}
