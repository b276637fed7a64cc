"""Rows over `compare`: sums by conversation, with intervals that cannot be impossible, and verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.claims.claim import Verdict
from ctxbench.harness.claims.inputs import MODELS, SETS, of_sums
from ctxbench.harness.claims.rows import Row, measure_row
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing
from ctxbench.strategies.chain import RECIPES
from tests.harness.claims.builders import MANY, SIZES, WORDS, Stored, figures, inputs, saving, spread, verdict

SMART, WIDE = "smart(window=32000)", "window(max_tokens=32000)"


def test_a_saving_is_of_sums() -> None:
    """1 − (10 + 30) / (100 + 100) = 80 %, whatever the conversations' own savings average to."""
    found = of_sums([(10.0, 100.0), (30.0, 100.0)], "saving")
    assert isinstance(found, Interval)
    assert found.mean == pytest.approx(0.8)


def test_one_conversation_has_a_value_and_no_interval() -> None:
    """What cannot be known is missing, and says why; so is a figure of nothing. One unit is one draw."""
    few, other = (Missing("few", "one conversation is too few", (value, value)) for value in (0.5, 0.25))
    assert of_sums([(1.0, 2.0)]) == (0.5, few, few)
    assert of_sums([(1.0, 2.0), (0.0, 2.0)], units=["generator"] * 2) == (0.25, other, other)
    assert isinstance(of_sums([]), Missing)
    assert isinstance(of_sums([(0.0, 0.0)]), Missing)


def test_an_interval_has_no_impossible_ends() -> None:
    """A share is at most 1, a time at least 0, a saving at most 1; what may be negative is left alone."""
    share = of_sums([(1.0, 1.0), (0.2, 1.0), (1.0, 1.0)] * 5)
    time = of_sums([(1.0, 1.0), (90.0, 2.0), (2.0, 1.0)] * 5)
    error = of_sums([(-9.0, 10.0), (1.0, 9.0), (2.0, 10.0)] * 5)
    assert isinstance(share, Interval)
    assert isinstance(time, Interval)
    assert isinstance(error, Interval)
    assert share.high == pytest.approx(1.0, abs=0.06)
    assert time.low >= 1  # type: ignore[operator]
    assert error.low < 0  # type: ignore[operator]


def test_a_share_that_is_the_same_everywhere_is_not_known_exactly() -> None:
    """Of 8 units that all lose nothing, up to 1 − 0.025^(1/8) = 0.37 may be lost; 8 of 8 mirrors it."""
    assert of_sums([(0.0, 5.0)] * 8) == (0.0, 0.0, pytest.approx(1 - 0.025**0.125))
    assert of_sums([(0.0, 5.0)] * 8, "saving") == (1.0, pytest.approx(0.025**0.125), 1.0)


def test_strategies_are_compared_in_pairs() -> None:
    """Conversations differ far more than the strategies do, and the difference is still found."""
    base = [(50.0 + 40 * (at % 2), 100.0) for at in range(8)]
    better = [(sent - 5 + at % 2, full) for at, (sent, full) in enumerate(base)]
    made = inputs(figures=figures({"none": {"net_saving": base}, "window": {"net_saving": better}}))
    (row,) = measure_row(Row("more", "window", "net_saving", against="none"), made)
    assert row.setting == "window − none"
    assert row.found.low > 0  # type: ignore[union-attr,operator]
    (row,) = measure_row(Row("more", "window", "grounding", against="none"), made)
    assert row.found == Missing("undefined", "there is no grounding under window")
    assert measure_row(Row("more", "window", "grounding", optional=True), made) == []


def test_what_does_not_move_is_no_evidence() -> None:
    """Two strategies that did the same everywhere: the recordings do not tell them apart."""
    made = inputs(figures=figures({name: {"net_saving": saving(0.5)} for name in ("none", "window")}))
    (row,) = measure_row(Row("more", "window", "net_saving", against="none"), made)
    still = Missing("undefined", "in no conversation did anything move")
    assert row.found == (0.0, still, still)


def test_kinds_stand_beside_the_whole() -> None:
    """A row for each kind of conversation, which is the part of a name before the slash."""
    made = inputs(figures=figures({"window": {"net_saving": saving(0.5)}}))
    whole, kind = measure_row(Row("saved", "window", "net_saving", by_kind=True), made)
    assert (whole.setting, kind.setting, kind.of) == ("window", "window · kind", "15 conversations")
    assert whole.found == kind.found


def test_a_saving() -> None:
    """The cost decides, as the document's column says, neither side cached; tokens stand beside.

    A saving within the range holds, one far below fails, one conversation cannot tell.
    """
    for value, size, word in zip((0.5, 0.1, 0.5), SIZES, WORDS, strict=True):
        known = {name: {"net_saving": saving(0, size)} for name in ("window(max_tokens=8000)", WIDE)}
        made = inputs(figures=figures(known))

        def costs(
            strategy: str, model: str, base: str = "cost", value: float = value, size: int = size
        ) -> dict[str, float]:
            left = 1 - value * (strategy != "none" and base == "uncached")
            return {f"kind/{at}": left + 0.01 * (at % 3) for at in range(size)}

        made.costs = costs  # type: ignore[method-assign]
        assert verdict("C01", made) == word


@pytest.mark.parametrize(
    ("smart", "window", "kept", "word"),
    [
        (0.7, 0.5, 0.9, "holds"),
        (0.7, 0.8, 0.9, "fails"),
        (0.7, 0.5, 0.3, "fails"),
        (0.2, 0.1, 0.9, "fails"),
        (0.7, 0.5, None, "cannot tell"),  # without probes: tokens alone are no quality
    ],
)
def test_smart_compression_must_save_more_and_lose_no_more(
    smart: float, window: float, kept: float | None, word: Verdict
) -> None:
    """It fails if it saves less than promised, less than a window, or loses more of what answers rest on."""
    both = {SMART: {"net_saving": saving(smart)}, WIDE: {"net_saving": saving(window, wobble=0.02)}}
    if kept is not None:
        both[SMART]["context_recall"] = spread(kept)
        both[WIDE]["context_recall"] = spread(0.6, wobble=0.02)
    assert verdict("C06", inputs(figures=figures(both))) == word


def test_growth_by_turn() -> None:
    """Every turn that the document names must be reached by its saving, each conversation counted once a turn."""
    for share, size, word in zip((0.9, 0.3, 0.9), SIZES, WORDS, strict=True):
        rows = [
            (f"kind/{at}", turn, 100 * (1 - share * (turn > 1)) + at % 3, 0, 100)
            for at in range(size)
            for turn in (1, 5, 10, 20)
        ]
        steps = pd.DataFrame(rows, columns=["conversation", "turn", "tokens_sent", "own_tokens", "tokens_full"])
        steps = steps.assign(strategy=RECIPES["all_of_000"].chain)
        assert verdict("C07", inputs(run=Stored({"steps": steps}))) == word


def test_focus_is_never_over_its_limit() -> None:
    """One call over it is enough to fail; a call at which it refused is counted; what finished nothing is missing."""
    events = pd.DataFrame([("kind/0", "focus", 0, "over_budget")], columns=["conversation", "strategy", "step", "kind"])
    over = Row("over", "focus", calls_with="tokens_over", tokens=8192, exactly=True)
    refused = Row("refused", "focus", calls_with="event", event="over_budget")
    for size, share in ((8192, 0.0), (9000, 1 / MANY)):
        rows = [(f"kind/{at}", at, 8192 if at else size) for at in range(MANY)]
        steps = pd.DataFrame(rows, columns=["conversation", "step", "tokens_sent"]).assign(strategy="focus")
        made = inputs(run=Stored({"steps": steps, "events": events}))
        (row,) = measure_row(over, made)
        assert row.found == (share, share, share)
        (row,) = measure_row(refused, made)
        assert row.found.mean == pytest.approx(1 / MANY)  # type: ignore[union-attr]
    (row,) = measure_row(Row("over", "tiered", calls_with="tokens_over", tokens=8192), made)
    assert row.found == Missing("failed", "tiered finished no conversation")


def test_archiving_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the document's load: 80 % of the tokens, an overflow without an archive, and none with one."""
    for share, without, word in ((0.9, 1.0, "holds"), (0.5, 1.0, "fails"), (0.9, 0.0, "fails")):
        overflows = {"none": [(without, 0.0)] * MANY, "archive": [(0.0, 0.0)] * MANY}
        known = {name: {"net_saving": saving(share), "overflows": rows} for name, rows in overflows.items()}
        made = inputs(figures=figures(known))
        made.once("conversations of archive_load", lambda: [True])
        assert verdict("C11", made) == word
    assert measure_row(Row("saved", "archive", "net_saving", on="recorded"), made) == []
    assert set(SETS) == {"mem_001", "archive_load", "recorded"}


def _costs(shares: Mapping[str, float], size: int) -> Callable[..., dict[str, float]]:
    """Costs of any strategy: what is left under a model of a bill of 1 without a cache."""

    def costs(strategy: str, model: str, base: str = "cost") -> dict[str, float]:
        cost = shares[model] + 0.01 * (np.arange(size) % 3) if base == "cost" else np.ones(size)
        return {f"kind/{at}": float(amount) for at, amount in enumerate(cost)}

    return costs


def test_caching_by_every_provider() -> None:
    """One provider's cache that saves too little fails the claim."""
    for worst, size, word in zip((0.7, 0.2, 0.7), SIZES, WORDS, strict=True):
        shares = {**dict.fromkeys(MODELS, 0.2), MODELS[0]: 1 - worst}
        made = inputs(figures=figures({"none": {"x": spread(1, size)}}))
        made.costs = _costs(shares, size)  # type: ignore[method-assign]
        assert verdict("C05", made) == word
