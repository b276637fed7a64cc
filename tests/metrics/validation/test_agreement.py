"""Sums over compared calls, by hand: tokens, hits, money, and what is left out of each."""

import pytest

from ctxbench.metrics.prices import Prices
from ctxbench.metrics.validation.validation import Figures, agreement
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Conversation
from tests.metrics.validation.recordings import call, compared, said


def agreed(*conversations: Conversation) -> Figures:
    return agreement(compared(*conversations), Prices())


def test_tokens_and_hits() -> None:
    """Of four calls one is off by 10 000 tokens, and a hit is predicted that was none."""
    found = agreed(
        said(
            "talk",
            call(0, 5000, 0, 5000),
            call(60, 10_000, 5000, 5000),
            call(120, 15_000, 0, 15_000),
            call(180, 20_000, 15_000, 5000),
        )
    )
    assert [found[key] for key in ("calls", "exact", "later_calls", "later_exact")] == [4, 3, 3, 2]
    assert (found["read_absolute_error"], found["read_absolute_error_median"]) == (10_000, 0)
    assert found["hits"] == {"miss / miss": 1, "hit / hit": 2, "hit / miss": 1}
    assert (found["hit_rate"], found["hit_rate_error"]) == (20_000 / 50_000, 10_000 / 50_000)


def test_money_by_hand() -> None:
    """10 000 tokens predicted to be read at 0.30 $ a million, which were written at 3.75 $."""
    money = agreed(said("talk", call(0, 10_000, 0, 10_000), call(60, 10_010, 0, 10_010)))["money"]
    reported = 20_010 * 3.75e-6 + 20 * 15e-6
    assert money["reported_usd"] == pytest.approx(reported)
    assert money["predicted_usd"] == pytest.approx(reported - 10_000 * (3.75e-6 - 0.30e-6))
    assert money["error"] == pytest.approx(-10_000 * 3.45e-6 / reported)


def test_the_bill_at_the_hit_rate_of_the_other_half() -> None:
    """Every second later call misses: the one half is billed as if all missed, the other as if none did."""
    calls = [
        call(60 * at, 10_000 + at, (9_999 + at) * (at % 2), (10_000 + at) * (1 - at % 2) + at % 2) for at in range(5)
    ]
    found = agreed(said("talk", *calls))
    assert (found["readable"], found["readable_exact"], found["reuse"]) == (4, 2, pytest.approx(0.5, abs=1e-3))
    assert found["money"]["error"] < -0.5
    assert found["money"]["error_at_hit_rate"] == pytest.approx(0, abs=1e-3)


def test_what_a_first_call_read_stays_until_a_pause() -> None:
    """Other sessions keep 2,000 tokens: a bill has them from the start, and a prompt that changes behind them too."""
    rows = compared(
        said("talk", call(0, 5000, 2000, 3000), call(60, 6000, 2000, 4000, effort="high"), call(900, 7000, 0, 7000))
    )
    assert [row.predicted.read for row in rows] == [0, 2000, 0]
    assert agreement([rows[0]], Prices())["money"]["error"] == pytest.approx(0)


def test_an_assumed_mark_stands_where_the_tokens_written_end() -> None:
    """Of 6,000 tokens 5,000 were read or written: the rest is plain, in the prediction too."""
    [row] = compared(said("talk", call(0, 6000, 0, 5000)))
    assert (row.predicted.written, row.predicted.fresh) == (5000, 1000)


def test_a_model_without_a_price() -> None:
    """Its money is missing, not nothing; its tokens are compared."""
    found = agreed(said("talk", call(0, 5000, 0, 5000, model="claude-9-nobody")))
    assert (found["calls"], found["money"]["unpriced"]) == (1, 1)
    assert found["money"]["error"] == Missing("unsupported", "the price of this model is not known")


def test_a_provider_that_does_not_say_what_was_written_or_read() -> None:
    """Without what was written a call is not in the money; without what was read it is in no share, with its reason."""
    money = agreed(said("talk", call(0, 5000, 0, None, "u0")))["money"]
    assert (money["calls"], money["not_reported"]) == (0, 1)
    found = agreed(said("talk", call(0, 5000, 0, 5000, "u0"), call(60, 5300, None, None, "u1")))
    assert (found["calls"], found["not_reported"], found["reasons"]) == (1, 1, {"not reported": 1})


def test_pauses() -> None:
    """Two longer than the lifetime: after one it was gone, as predicted, after the other it was still there."""
    found = agreed(said("talk", call(0, 5000, 0, 5000), call(400, 5100, 0, 5100), call(800, 5200, 5100, 100)))
    assert found["pauses"] == {"gone / gone": 1, "gone / kept": 1}


def test_no_calls() -> None:
    """Every figure is missing, and says why."""
    empty = agreement([], Prices())
    figures = [empty[key] for key in ("reuse", "hit_rate", "hit_rate_error", "read_absolute_error_median")]
    figures += [empty["money"]["error"], *(each for key, each in empty["own_counts"].items() if key != "calls")]
    assert all(isinstance(each, Missing) for each in figures)
