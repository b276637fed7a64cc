"""The first screen, worked by hand: what is on the frontier, what dominates the rest, and what breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.metrics.value import Missing
from ctxbench.reports.html.verdict import ReportQuality, ReportVerdict, breakage, verdict
from tests.reports.html.builders import ran, recorded, results


def by_hand(costs: dict[str, list[float]], shares: dict[str, list[float]], **more: float) -> ReportVerdict:
    """Of strategies with these costs and qualities in each conversation; each wants ten values there."""
    rows = [
        {"conversation": f"c{at}", "strategy": name, "model": "m", "cost": cost, "cost_own": more.get(name, 0.0)}
        for name, those in costs.items()
        for at, cost in enumerate(those)
    ]
    got = [
        {"conversation": f"c{at}", "strategy": name, "got": 10 * share, "wanted": 10}
        for name, those in shares.items()
        for at, share in enumerate(those)
    ]
    bills = pd.DataFrame(rows)
    totals = bills.groupby(["model", "strategy"], sort=False)[["cost", "cost_own"]]
    totals = totals.agg(lambda column: column.sum(skipna=False)).reset_index()
    values = {name: sum(those) / len(those) for name, those in shares.items()}
    fake: Any = SimpleNamespace(models=("m",), bills=bills, totals=totals, is_sampled=False, strategies=list(costs))
    return ReportVerdict(fake, ReportQuality("grounded", "", values, pd.DataFrame(got)))


def test_the_frontier_by_hand() -> None:
    """The strategy's own model calls count; what has no quality, or no known cost, has no place."""
    costs = {"none": [5.0, 5.0], "half": [3.0, 1.0], "worse": [3.0, 2.0], "own": [1.0, 1.0], "dark": [0.1, 0.1]}
    shares = {"none": [1.0, 1.0], "half": [0.8, 0.8], "worse": [0.8, 0.7], "own": [0.8, 0.8], "dark": [1.0, 1.0]}
    found = by_hand(costs, shares, own=4.0, dark=float("nan"))
    assert found.best("m") == ["none", "half"]
    assert found.dominated_by == {"worse": ["half"], "own": ["half", "none"]}
    twice_the_first = pytest.approx(0.25, abs=0.05)  # in which it is as cheap and as good as `half`
    assert found.sure == {"none": 1.0, "half": 1.0, "worse": twice_the_first, "own": 0.0}
    blind = replace(found.quality, values={**found.quality.values, "half": Missing("undefined", "nothing")})
    assert ReportVerdict(found.results, blind).best("m") == ["none", "worse"]


def test_a_bound_dominates_nothing() -> None:
    """What is told the evidence is no choice."""
    costs, shares = {"none": [5.0], "evidence_only": [0.1]}, {"none": [0.9], "evidence_only": [1.0]}
    assert by_hand(costs, shares).best("m") == ["none"]


def test_what_breaks(tmp_path: Path) -> None:
    """Only what none does not break as well is told; without none, all of it."""
    conversation = recorded("one", ["a", "word " * 500, "b"])
    with_none = ran(tmp_path / "a", conversation, strategies=("none", "window(max_tokens=200)"))
    found = results(with_none).summary
    assert breakage(found, "none") == []
    assert any(each.startswith("newest message missing: ") for each in breakage(found, "window(max_tokens=200)"))


def test_the_best_measure_counts(run: Run, tmp_path: Path) -> None:
    """Answers; where there are none the evidence that is sent, without questions what the recorded model used next."""
    assert verdict(results(run)).quality.name == "correct"
    asked = recorded("one", ["a", "b"], probes=[{"id": "q", "question": "Which?", "evidence": ["u0"]}])
    unanswered = ran(tmp_path / "unanswered", asked, strategies=("none", "last_turn"), answers=False)
    assert verdict(results(unanswered)).quality.name == "context recall"
    plain = ran(tmp_path, recorded("one", ["a", "b"]), strategies=("none", "last_turn"))
    found = verdict(results(plain)).quality
    assert found.name == "grounding recall"
    sums = found.sums.groupby("strategy")[["got", "wanted"]].sum()
    assert sums.got["last_turn"] / sums.wanted["last_turn"] == found.values["last_turn"]
