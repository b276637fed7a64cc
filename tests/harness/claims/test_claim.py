"""How sums become intervals and these verdicts, in pairs of conversations, and what is said of them."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

from ctxbench.harness.claims import measures
from ctxbench.harness.claims.claim import (
    Claimed,
    ClaimRow,
    Finding,
    Measured,
    Verdict,
    ends,
    exact,
    interval,
    judged,
    sentence,
    shown,
    verdict_of,
)
from ctxbench.harness.claims.measures import Figures
from ctxbench.harness.claims.registry import CLAIMS, Claim, Figure
from ctxbench.harness.claims.rows import MODELS, SETS, ClaimInputs, ClaimSettings, Row, measure_row, of_sums
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError
from ctxbench.strategies.chain import RECIPES
from tests.harness.claims.builders import MANY, SIZES, WORDS, Stored, figures, inputs, saving, spread, verdict

FEW = Missing("undefined", "one conversation")
RANGE = Claimed(least=0.3, upper=0.6)


def row(
    found: Interval | Missing, claimed: Claimed | None = RANGE, *, decides: bool = True, timed: bool = False
) -> ClaimRow:
    return ClaimRow(
        setting="window", figure="saved", unit="share", found=found, claimed=claimed, decides=decides, timed=timed
    )


@pytest.mark.parametrize(
    ("low", "high", "claimed", "word"),
    [
        (0.30, 0.50, RANGE, "holds"),
        (0.61, 0.90, RANGE, "holds"),  # more than promised is no failure
        (0.29, 0.50, RANGE, "cannot tell"),
        (0.10, 0.29, RANGE, "fails"),
        (0.10, 0.30, RANGE, "cannot tell"),
        (0.00, 0.20, Claimed(least=0.0, above=True), "cannot tell"),
        (0.01, 0.20, Claimed(least=0.0, above=True), "holds"),
        (-0.2, 0.00, Claimed(least=0.0, above=True), "fails"),
        (0.00, 0.00, Claimed(least=0.0), "holds"),
        (5.00, 9.00, Claimed(most=10.0), "holds"),
        (9.00, 11.0, Claimed(most=10.0), "cannot tell"),
        (10.1, 11.0, Claimed(most=10.0), "fails"),
        (-0.2, 0.20, Claimed(least=-0.25, most=0.25), "holds"),
        (-0.3, 0.20, Claimed(least=-0.25, most=0.25), "cannot tell"),
        (-0.8, -0.3, Claimed(least=-0.25, most=0.25), "fails"),
        (400.0, 400.0, Claimed(least=400.0, most=400.0), "holds"),
        (350.0, 350.0, Claimed(least=400.0, most=400.0), "fails"),
    ],
)
def test_the_interval_decides(low: float, high: float, claimed: Claimed, word: Verdict) -> None:
    """Within holds, wholly outside fails, both sides cannot be told; the mean plays no part."""
    assert {judged(Interval(mean, low, high), claimed) for mean in (low, high)} == {word}


@pytest.mark.parametrize("found", [FEW, Interval(0.9, FEW, FEW)])
def test_what_has_no_interval_cannot_be_told(found: Interval | Missing) -> None:
    """A point alone never decides, however far it is from what is claimed."""
    assert judged(found, RANGE) == "cannot tell"


def test_all_settings_of_the_claim_must_hold() -> None:
    """One that fails fails the claim; one that cannot be told leaves it open; none at all is no proof."""
    holds, open_, fails = (row(Interval(0.4, low, 0.5)) for low in (0.3, 0.1, 0.1))
    fails = row(Interval(0.1, 0.0, 0.2))
    assert verdict_of([holds, holds]) == "holds"
    assert verdict_of([holds, open_, fails]) == "fails"
    assert verdict_of([holds, open_]) == verdict_of([]) == "cannot tell"


def test_rows_beside_the_claim_decide_nothing() -> None:
    """A row of another setting, and one of which nothing is claimed, leave the verdict as it is."""
    good, bad = Interval(0.5, 0.4, 0.6), Interval(0.1, 0.0, 0.2)
    rows = [row(good), row(bad, decides=False), row(bad, None)]
    assert verdict_of(rows) == "holds"
    assert [each.verdict for each in rows] == ["holds", "fails", None]


def test_the_sentence_is_of_the_row_that_decides() -> None:
    """It has the value, the interval and where that lies, also against the upper end of a range."""
    good, high, bad = Interval(0.5, 0.4, 0.55), Interval(0.7, 0.65, 0.8), Interval(0.1, 0.0, 0.2)
    told = "window: saved is"
    assert sentence([row(good), row(bad)], "fails") == f"{told} 10.0 % (0.0 to 20.0 %), not ≥ 30.0 % (to 60.0 %)."
    assert sentence([row(good)], "holds") == f"{told} 50.0 % (40.0 to 55.0 %), within ≥ 30.0 % (to 60.0 %)."
    assert sentence([row(high)], "holds").endswith("within ≥ 30.0 % (to 60.0 %), and above its upper end.")
    assert sentence([row(FEW)], "cannot tell") == "window: saved is not measured: one conversation."
    assert sentence([row(Interval(0.9, FEW, FEW))], "cannot tell") == (
        "window: saved is 90.0 %, without an interval: one conversation."
    )


def test_figures_in_words() -> None:
    """Each unit has its own form; what is exact has no interval."""
    assert interval(exact(350), "tokens") == "350 tokens"
    assert [shown(*each) for each in ((-0.021, "points"), (0.021, "points"), (0.5, "times"), (0.4, "ms"))] == [  # type: ignore[arg-type]
        "−2.1 points",
        "+2.1 points",
        "0.50×",
        "0.40 ms",
    ]
    assert ends(Claimed(least=-0.25, most=0.25), "share") == "≥ −25.0 % and ≤ 25.0 %"
    assert ends(Claimed(least=5, most=5), "count") == "= 5"
    assert ends(Claimed(least=500, above=True), "MB/s") == "> 500 MB/s"


def test_what_is_claimed_may_depend_on_the_setting() -> None:
    """One end for all settings or one by setting; of a setting without one nothing is claimed."""
    figure = Figure("took", "ms", most={"a read": 5.0}, decides=("a read",))
    read, other = (figure.row(Measured("took", setting, exact(4.0))) for setting in ("a read", "a write"))
    assert (read.claimed, read.decides, read.verdict) == (Claimed(most=5.0), True, "holds")
    assert (other.claimed, other.decides) == (None, False)
    assert Figure("price", least=2.0, most=2.0).row(Measured("price", "", exact(2.0))).claimed == Claimed(2.0, 2.0)


def _claim(remark: str = "So.", slow: bool = False) -> Claim:
    figures = {"saved": Figure("saved", least=0.3)}
    return Claim("It saves.", "000", "look", remark, "More.", figures, measure="popularity", slow=slow)


def test_a_claim_says_what_would_be_needed_only_where_it_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """And --quick leaves out what is slow, with the reason."""

    def found(low: float, high: float, claim: Claim) -> Finding:
        measured = Measured("saved", "window", Interval((low + high) / 2, low, high))
        monkeypatch.setattr(measures, "popularity", lambda _: iter([measured, {"load": 2.14}]))
        return claim.finding(inputs())

    assert found(0.4, 0.6, _claim()).needed == ""
    assert found(0.0, 0.2, _claim()).needed == "More."
    assert found(0.4, 0.6, _claim("Busy: {load:.1f}.")).why.endswith("Busy: 2.1.")
    left_out = _claim(slow=True).finding(inputs(ClaimSettings("", quick=True)))
    assert (left_out.verdict, left_out.rows) == ("cannot tell", ())
    assert "--effort quick" in left_out.why


def test_what_cannot_be_measured_stops_no_other_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extra that is not installed, a part that is damaged: the claim says so."""

    def measure(_: ClaimInputs) -> Figures:
        yield Measured("saved", "window", exact(0.5))
        raise RunError("a part is damaged")

    monkeypatch.setattr(measures, "popularity", measure)
    found = _claim().finding(inputs())
    assert (found.verdict, found.why) == ("cannot tell", "It cannot be measured: a part is damaged.")


def test_every_claim_is_there() -> None:
    """C01 to C31, each with what measures it, its source and its protocol."""
    assert list(CLAIMS) == [f"C{number:02}" for number in range(1, 32)]
    assert all(claim.claim and claim.source and claim.protocol for claim in CLAIMS.values())
    assert all(claim.rows or claim.measure for claim in CLAIMS.values())
    assert all(callable(getattr(measures, claim.measure)) for claim in CLAIMS.values() if claim.measure)
    assert all(row.figure in claim.figures for claim in CLAIMS.values() for row in claim.rows)


SMART, WIDE = "smart(window=32000)", "window(max_tokens=32000)"


def test_a_saving_is_of_sums() -> None:
    """1 − (10 + 30) / (100 + 100) = 80 %, whatever the conversations' own savings average to."""
    found = of_sums([(10.0, 100.0), (30.0, 100.0)], "saving")
    assert isinstance(found, Interval)
    assert found.mean == pytest.approx(0.8)


def test_one_conversation_has_a_value_and_no_interval() -> None:
    """A figure that cannot be known is missing, and says why; so is one of nothing. One unit is one draw."""
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
        steps = steps.assign(strategy=RECIPES["layered_smart_cached"].chain)
        assert verdict("C07", inputs(run=Stored({"steps": steps}))) == word


def test_focus_is_never_over_its_limit() -> None:
    """One call over it is enough to fail; a call at which it refused is counted; what finished nothing is missing."""
    events = pd.DataFrame([("kind/0", "focus", 0, "over_budget")], columns=["conversation", "strategy", "step", "kind"])
    over = Row("over", "focus", over=8192, exactly=True)
    refused = Row("refused", "focus", event="over_budget")
    for size, share in ((8192, 0.0), (9000, 1 / MANY)):
        rows = [(f"kind/{at}", at, 8192 if at else size) for at in range(MANY)]
        steps = pd.DataFrame(rows, columns=["conversation", "step", "tokens_sent"]).assign(strategy="focus")
        made = inputs(run=Stored({"steps": steps, "events": events}))
        (row,) = measure_row(over, made)
        assert row.found == (share, share, share)
        (row,) = measure_row(refused, made)
        assert row.found.mean == pytest.approx(1 / MANY)  # type: ignore[union-attr]
    (row,) = measure_row(Row("over", "tiered", over=8192), made)
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
