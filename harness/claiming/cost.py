"""C05, C08, C09, C10, C29: what caching saves of the bill, and what providers charge (design document 000)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...metrics.cache.automatic import AutomaticRules
from ...metrics.cache.boundary import BoundaryRules
from ...metrics.cache.explicit import ExplicitRules
from ...metrics.cache.rules import rule_for
from ...metrics.prices import Price, Prices, Usage
from ...metrics.statistics.bootstrap import Floats
from ...metrics.statistics.interval import Interval
from ...metrics.value import Missing
from ...strategies.recipes import RECIPES
from .claim import Claim, Claimed, Measured, Row, exact
from .figures import of_groups, of_sums
from .inputs import MODELS, Inputs
from .latency import recorded_latencies

SAVED = "of the bill saved"
DISCOUNTS = {"gpt-5.6": 0.5, "claude-sonnet-5": 0.9, "deepseek/deepseek-chat": 0.5}
"""What is taken off cached input by 000 §2.5."""
LEAST = {"gpt-5.6": 1024, "claude-sonnet-5": 1024, "deepseek/deepseek-chat": 64}
"""The shortest prompts that are cached, by 000 §3.1.2."""
COMPOSED = tuple(each.chain for each in RECIPES.values())
ALL = RECIPES["all_of_000"].chain


def caching(inputs: Inputs) -> Measured:
    """C05. The whole history with the provider's cache, against the same requests without one."""
    claimed = Claimed(least=0.5, upper=0.9)
    rows: list[Row] = []
    for strategy in ("none", "cache_marks"):
        for model, found in _uncached(inputs, strategy).items():
            where = "the provider's own caching" if strategy == "none" else "marks as `cache_marks` puts them"
            rows.append(
                Row(
                    setting=f"{model}, {where}",
                    figure=SAVED,
                    unit="share",
                    found=found,
                    claimed=claimed,
                    of=inputs.of,
                    decides=strategy == "none",
                )
            )
    return Measured(
        tuple(rows),
        "The whole history is sent at every call, answers are paid for as well, and writing to the cache where it is "
        "charged.",
        "Longer conversations with shorter pauses; a first call has nothing to read.",
    )


def _uncached(inputs: Inputs, strategy: str) -> dict[str, Interval | Missing]:
    """By model, what is saved of the bill of the same requests without a cache."""
    bills = inputs.bills(strategy)
    each = {model: bills[bills.model == model] for model in MODELS}
    return {
        model: of_groups(list(zip(rows.cost, rows.uncached, strict=True)), "saving") for model, rows in each.items()
    }


def together(inputs: Inputs) -> Measured:
    """C08. The best composition against `none`, chosen for each conversation by the others."""
    claimed = Claimed(least=0.6, upper=0.8)
    rows: list[Row] = []
    for model in MODELS:
        found, chosen = _best(inputs, model)
        rows.append(
            Row(
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
            Row(
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
    return Measured(
        tuple(rows),
        "The composition is chosen for each conversation by the bills of the others, so that it is not flattered. "
        "Summaries are charged at the price of the model billed, though `offline` makes them for nothing. What is lost "
        "by it is in C06 and in the report.",
        "A provider without a cache for the whole history: against the same requests uncached the saving is larger.",
    )


def _costs(inputs: Inputs, strategy: str, model: str) -> pd.DataFrame:
    """By conversation, what a strategy costs, own model calls with it, and what its requests would without a cache."""
    bills = inputs.bills(strategy)
    bills = bills[bills.model == model].assign(conversation=lambda rows: rows.conversation.astype(str))
    found = bills.set_index("conversation")[["cost", "cost_own", "uncached"]].astype(float)
    return found.assign(cost=found.cost + found.cost_own)


def _best(inputs: Inputs, model: str) -> tuple[Interval | Missing, str]:
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


def _everything(inputs: Inputs, model: str, base: str) -> Interval | Missing:
    """What everything of 000 saves of the bill of `none`, as it is (cost) or without any cache: what 000 had before."""
    both = pd.DataFrame({"ours": _costs(inputs, ALL, model).cost, "base": _costs(inputs, "none", model)[base]}).dropna()
    return of_groups(list(zip(both.ours, both.base, strict=True)), "saving")


def discounts(_: Inputs) -> Measured:
    """C09. Today's prices and rules, as they are listed."""
    prices, rows = Prices(), []
    for model, claimed in DISCOUNTS.items():
        tariff = prices.tariff(model)
        rule = rule_for(model, None)
        unknown = Missing("unsupported", "no price is listed")
        rows.append(
            Row(
                setting=model,
                figure="discount on input that is read from the cache",
                unit="share",
                found=unknown if tariff is None else _discount(tariff.at(1)),
                claimed=Claimed(least=claimed, most=claimed),
            )
        )
        least = _least(rule.rules if rule else None)
        rows.append(
            Row(
                setting=model,
                figure="tokens of the shortest prompt that is cached",
                unit="tokens",
                found=least if isinstance(least, Missing) else exact(least),
                claimed=Claimed(least=LEAST[model], most=LEAST[model]),
            )
        )
    taken = rule_for("deepseek/deepseek-chat", None)
    rows.append(
        Row(
            setting="deepseek/deepseek-chat",
            figure="providers of these whose cache takes `cache_control`",
            unit="count",
            found=exact(float(taken is not None and isinstance(taken.rules, ExplicitRules))),
            claimed=Claimed(least=1.0, most=1.0),
        )
    )
    return Measured(
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


def example(_: Inputs) -> Measured:
    """C10. 000 §3.1.1, by the code that bills."""
    price = Price(1.0, 0.0, 0.1, 1.0, 1.0)
    found = price.of(Usage(2600, 0, cached=2500))
    row = Row(
        setting="2000 + 500 tokens cached at 10 %, 100 fresh",
        figure="token-equivalents",
        unit="tokens",
        found=exact(round(found, 9)),
        claimed=Claimed(least=400.0, most=400.0),
    )
    return Measured(
        (row,),
        "The document adds 250 for all 2500 cached tokens and 50 more for the 500 among them, which are counted twice.",
        "2500 × 0.1 + 100 = 350.",
    )


def latencies(inputs: Inputs) -> Measured:
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
