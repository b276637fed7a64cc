"""C08, C09, C10, C29: the cheapest composition, what providers charge, and how long cached calls took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ctxbench.metrics.cache.mechanisms import AutomaticRules, BoundaryRules, ExplicitRules
from ctxbench.metrics.cache.rules import rule_for
from ctxbench.metrics.prices import Price, Prices, TokenUsage
from ctxbench.metrics.statistics.intervals import Floats, Interval, by_unit, over_units
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.chain import RECIPES

from .claim import Measured, exact
from .inputs import MODELS, ClaimInputs, of_sums, units_among
from .rows import costs


def together(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C08: the best composition against `none`, chosen for each conversation by the others."""
    # As long as the summaries of `offline` cost nothing this held, at 74.3 % (decision 29).
    names = [recipe.chain for recipe in RECIPES.values()]
    for model in MODELS:
        by_strategy = [costs(inputs, name, model) for name in (*names, "none")]
        conversations = [name for name in by_strategy[-1] if all(name in amounts for amounts in by_strategy)]
        table = np.array([[amounts[name] for amounts in by_strategy] for name in conversations])
        units = [inputs.run.units.get(name, name) for name in conversations]
        saving, usual = chosen_by_others(names, table[:, :-1], table[:, -1], units)
        yield Measured("best", f"{model}, the cheapest composition ({usual})", saving, inputs.of)


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


def discounts(_: ClaimInputs) -> Iterator[Measured]:
    """Measure C09: today's prices and rules, as they are listed."""
    prices = Prices()
    for model in MODELS:
        tariff, rule = prices.tariff(model), rule_for(model, None)
        price = None if tariff is None else tariff.at(1)
        unlisted = Missing("unsupported", "no price is listed")
        yield Measured("discount", model, exact(round(1 - price.read / price.input, 6)) if price else unlisted)
        least: Interval | Missing = Missing(
            "unsupported", "the provider caches whole messages, and names no shortest prompt"
        )
        if rule is not None and isinstance(rule.rules, ExplicitRules | AutomaticRules | BoundaryRules):
            least = exact(float(rule.rules.least))
        yield Measured("shortest", model, least)
    takes_marks = rule is not None and isinstance(rule.rules, ExplicitRules)
    yield Measured("marks", MODELS[-1], exact(float(takes_marks)))


def example(_: ClaimInputs) -> Iterator[Measured]:
    """Measure C10: the example of 000 §3.1.1, computed by the code that bills."""
    price = Price(1.0, 0.0, 0.1, 1.0, 1.0)  # a token-equivalent is the price of a fresh token
    equivalents = round(price.of(TokenUsage(2600, 0, cached=2500)), 9)
    yield Measured("equivalents", "2000 + 500 tokens cached at 10 %, 100 fresh", exact(equivalents))


def latencies(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C29: the recorded seconds of a cached call over those of one that is not."""
    sums = np.array([_seconds(conversation) for conversation in inputs.recorded]).reshape(-1, 4)
    has_both = (sums[:, 1] > 0) & (sums[:, 3] > 0)
    units = [unit for unit, here in zip(units_among(inputs.recorded), has_both, strict=True) if here]
    found: Interval | Missing = Missing(
        "unsupported", "no recording was given that has calls of both kinds, with times and the cache's usage"
    )
    if units:

        def ratio(totals: Floats) -> Floats:
            times: Floats = (totals[..., 0] / totals[..., 1]) / (totals[..., 2] / totals[..., 3])
            return times

        found = over_units(by_unit(sums[has_both], units), ratio, least=0.0)
    setting = "recorded calls, by what the provider read from its cache"
    yield Measured("cached", setting, found, f"{len(units)} conversations")
    twice = Missing("unsupported", "the same dialogue is in no recording twice")
    yield Measured("long", "a long dialogue, optimised over not", twice)


def _seconds(conversation: Conversation) -> tuple[float, float, float, float]:
    """Return seconds and number of the cached calls, then of the others, of which a tenth was read at most."""
    seconds, calls = [0.0, 0.0], [0, 0]
    for message in conversation.messages:
        call = message.call
        if call is None or call.started is None or message.time is None or call.usage is None:
            continue
        read, whole = call.usage.cache_read, call.usage.input
        if read is None or not whole or message.time <= call.started:
            continue
        kind = 0 if read >= 0.5 * whole else 1 if read <= 0.1 * whole else None
        if kind is not None:
            seconds[kind] += message.time - call.started
            calls[kind] += 1
    return seconds[0], calls[0], seconds[1], calls[1]
