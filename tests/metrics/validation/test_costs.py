"""Recorded costs beside the prices: which formula they follow, and prices that are not known."""

from typing import Any

import pytest
from msgspec.structs import replace

from ctxbench.metrics.prices import Prices
from ctxbench.metrics.validation.validation import Figures, recorded_costs, special_prices
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation, Iteration, Usage
from tests.metrics.validation.recordings import call, replayed, said

CACHED, PLAIN = 0.01 * 3 + 0.04 * 0.3 + 0.05 * 3.75 + 1e-5 * 15, 0.1 * 3 + 1e-5 * 15
"""Of 100 000 tokens, 40 000 of them read and 50 000 written, and 10 of output, at 3, 0.30, 3.75 and 15 $ a million."""


def costs(conversation: Conversation) -> Figures:
    [found] = recorded_costs(replayed(conversation)[0].counted, Prices())
    return found


def spent(*dollars: float, **fields: Any) -> Conversation:
    calls = (call(60 * at, 100_000, 40_000, 50_000, cost=each, **fields) for at, each in enumerate(dollars))
    return said("talk", *calls)


@pytest.mark.parametrize(
    ("dollars", "follows"),
    [((CACHED, CACHED), "cache prices"), ((PLAIN, PLAIN), "plain prices"), ((0.5, 0.6), "neither")],
)
def test_which_formula_costs_follow(dollars: tuple[float, ...], follows: str) -> None:
    """The one that gives their sum to half a percent."""
    assert costs(spent(*dollars))["follows"] == follows


@pytest.mark.parametrize(
    ("tier", "dollars", "follows"),
    [
        ("standard", CACHED, "cache prices"),
        ("us", 1.1 * CACHED, "us (cache prices)"),
        ("us", CACHED, "cache prices, not us"),
        ("us", 3.0, "neither"),
    ],
)
def test_costs_at_a_tier_follow_it(tier: str, dollars: float, follows: str) -> None:
    """It is named where the recorded cost has its price, and where the logger did not know of it."""
    talk = spent(dollars, model="claude-sonnet-4-6")
    messages = tuple(
        replace(message, call=replace(message.call, tier=tier)) if message.call else message
        for message in talk.messages
    )
    calls = replayed(replace(talk, messages=messages))[0].counted
    [found] = recorded_costs(calls, Prices())
    assert found["follows"] == follows
    assert [row["part"] for row in special_prices(calls, Prices())] == ([] if tier == "standard" else ["us"])


def test_each_request_of_a_call_costs_what_its_model_does() -> None:
    """Of a call that was several requests all are billed, and those of another model at that model's price."""
    [answer] = [message for message in spent(CACHED).messages if message.call]
    assert answer.call
    assert answer.call.usage
    bill = (Iteration(answer.call.usage), Iteration(Usage(input=1_000, output=0), "claude-opus-4-5"))
    usage = replace(answer.call.usage, cost=CACHED + 1_000 * 5e-6)
    several = replace(answer, call=replace(answer.call, usage=usage, iterations=bill))
    talk = spent(CACHED)
    messages = tuple(several if message == answer else message for message in talk.messages)
    found = costs(replace(talk, messages=messages))
    assert found["error"] == pytest.approx(0)


def test_errors_of_the_sum_and_of_the_worst_call() -> None:
    """By what is recorded, with their sign."""
    found = costs(spent(CACHED, 2 * CACHED))
    assert found["error"] == pytest.approx(-1 / 3)
    assert found["worst"] == pytest.approx(-1 / 2)
    assert found["plain_error"] == pytest.approx((2 * PLAIN - 3 * CACHED) / (3 * CACHED))


def test_a_price_that_is_not_known() -> None:
    """The cost is missing, not free, and it is counted."""
    found = costs(spent(1.0, model="claude-9-nobody"))
    assert found["unpriced"] == 1
    assert isinstance(found["error"], Missing)


def test_what_cost_nothing() -> None:
    """A subscription, or a logger that did not know the price: counted apart."""
    found = costs(spent(0.0))
    assert found["free"] == 1
    assert isinstance(found["error"], Missing)


def test_the_host_has_a_price_of_its_own() -> None:
    """Where the recording says who answered, that host's price counts."""
    azure = said("talk", call(0, 100_000, 0, None, model="gpt-4o", provider="azure", cost=0.25))
    unknown = said("other", call(0, 100_000, 0, None, model="gpt-4o", provider="nobody", cost=0.25))
    assert costs(azure)["error"] == pytest.approx(0, abs=1e-3)
    assert costs(unknown)["unpriced"] == 0
