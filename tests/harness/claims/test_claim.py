"""How intervals become verdicts, and what is said of them."""

from __future__ import annotations

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
from ctxbench.harness.claims.inputs import ClaimInputs, ClaimSettings
from ctxbench.harness.claims.measures import Figures
from ctxbench.harness.claims.registry import CLAIMS, Claim, Figure
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError
from tests.harness.claims.builders import inputs

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
