"""The verdict, worked by hand: what is worth choosing, what to ship, what is struck out, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.figures import OF_STEPS
from ctxbench.reports.html.sections import sections
from ctxbench.reports.render import Table
from ctxbench.reports.results import Results
from ctxbench.reports.verdict import MeasuredQuality, RunVerdict, as_json, breakage, verdict
from ctxbench.reports.verdict_text import answer, five_measures, is_traps, trap_faults, trap_table
from tests.reports.html.builders import ran, recorded, results, usual


def by_hand(
    costs: dict[str, list[float]],
    shares: dict[str, list[float]],
    faults: dict[str, int] | None = None,
    units: dict[str, str] | None = None,
) -> RunVerdict:
    """Return the verdict on strategies with these costs and qualities in each conversation; each wants ten values.

    `faults` are their calls that lack the newest message.
    """
    keys = [(name, f"c{at}", at) for name in costs for at in range(len(costs[name]))]
    rows = [
        {"conversation": at, "strategy": name, "model": "m", "cost": costs[name][number], "cost_own": 0.0}
        for name, at, number in keys
    ]
    got = [
        {"conversation": at, "strategy": name, "got": 10 * shares[name][number], "wanted": 10}
        for name, at, number in keys
        if name in shares
    ]
    steps = [
        {"conversation": at, "strategy": name, "tokens_full": 100, "tokens_sent": 10, "own_tokens": 5}
        for name, at, _ in keys
    ]
    bills = pd.DataFrame(rows)
    totals = bills.groupby(["model", "strategy"], sort=False)[["cost", "cost_own"]]
    totals = totals.agg(lambda column: column.sum(skipna=False)).reset_index()
    totals["saved_against_none"], totals["hit_rate"] = 0.25, 0.5
    values: dict[str, Any] = {name: sum(these) / len(these) for name, these in shares.items()}
    figures = {name: dict.fromkeys(OF_STEPS, 0) | {"without_newest": (faults or {}).get(name, 0)} for name in costs}
    summary = SimpleNamespace(
        manifest=SimpleNamespace(libraries=dict),
        strategies=figures,
        conversations=8,
        units=8,
        subagents=0,
        messages=80,
        calls=40,
        failed_conversations=dict.fromkeys(costs, 0),
        unanswered=[],
        answers=None,
        recorded={},
        unrepeatable={},
    )
    fake: Any = SimpleNamespace(
        run=SimpleNamespace(name="runs/by hand", units=units or {}),
        models=("m",),
        bills=bills,
        totals=totals,
        is_sampled=False,
        sampling_notes=[],
        strategies=list(costs),
        summary=summary,
        common=pd.DataFrame(steps),
    )
    return RunVerdict(fake, MeasuredQuality("grounding", "what is kept", values, pd.DataFrame(got)), "m")


def told(table: Table) -> dict[str, str]:
    """Return the lines of an answer by their labels."""
    return {label or "and": text for label, text in table.rows}


COSTS = {
    "none": [10.0] * 8,
    "cheap": [2.0, 3.0] * 4,
    "good": [4.0, 5.0] * 4,
    "broken": [1.0] * 8,
    "dark": [nan] * 8,
}
SHARES = {
    "none": [0.9, 0.8] * 4,
    "cheap": [0.5, 0.4] * 4,
    "good": [0.9, 0.76, 0.92, 0.78] * 2,
    "broken": [0.9, 0.8] * 4,
    "dark": [1.0] * 8,
}


def test_resamples_that_few_conversations_decide() -> None:
    """Three of twelve conversations make up the bill and halve it, the others grow: cheaper in 96.7 % of the resamples,
    and an interval with zero in it, so it is not shipped, and the answer says why."""
    costs = {"none": [100.0, 90.0, 80.0, *[1.0] * 9], "short": [50.0, 45.0, 40.0, *[1.05] * 9]}
    found = by_hand(costs, dict.fromkeys(costs, [0.9] * 12))
    assert found.keeps["short"] == pytest.approx(0.967, abs=0.01)
    assert not found.is_cheaper("short")
    assert found.shipped is None
    assert "but few of these decide that: it saves 48." in told(answer(found))["nearest"]


def test_another_base() -> None:
    """Against `good`, which costs 36, `cheap` (20) loses too much, `none` (80) is dearer, and nothing breaks `good`."""
    found = replace(by_hand(COSTS, SHARES, {"good": 3, "broken": 3}), base="good")
    assert found.shipped is None
    assert found.keeps == {"none": 0.0, "cheap": 0.0, "broken": 1.0}
    assert found.cost_change("cheap").value == pytest.approx(20 / 36 - 1)
    assert found.token_change("cheap").value == 0
    assert list(found.broken) == ["broken"]
    assert set(as_json(found)["strategies"]) == {"none", "cheap", "broken"}


def test_what_was_recorded_was_answered() -> None:
    """Calls of `recorded` without the newest message are no fault of it, as a provider answered them, nor are
    conversations whose recording does not say what was sent."""
    shares = {"none": SHARES["none"], "recorded": SHARES["good"]}
    found = by_hand({"none": COSTS["none"], "recorded": COSTS["good"]}, shares, {"recorded": 3})
    assert found.broken == {}
    assert found.shipped == "recorded"
    found.results.summary.failed_conversations["recorded"] = 2
    assert breakage(found.results.summary, "recorded", "m") == []


def test_over_the_window_where_the_base_is_not() -> None:
    """`none` overflows in two calls and the base in none: against that base `none` is broken."""
    found = by_hand(COSTS, SHARES)
    found.results.summary.strategies["none"]["overflows"] = 2
    assert "none" not in found.broken
    assert replace(found, base="good").broken == {"none": ["over the window: 2"]}


def test_what_to_ship() -> None:
    """The cheapest that breaks nothing and surely loses at most 5 points: `cheap` loses 40, `broken` breaks, `dark` has
    no price."""
    found = by_hand(COSTS, SHARES, {"broken": 3})
    assert found.shipped == "good"
    assert found.keeps == {"cheap": 0.0, "good": 1.0, "broken": 1.0}
    lines = told(answer(found))
    assert answer(found).title == "Ship good"
    assert lines["saves"] == "55.0 % (50.0 to 59.5 %) of the bill under m: $36.00 instead of $80.00"
    assert lines["and"] == "85.0 % (85.0 to 85.0 %) of the tokens, its own model calls included"
    assert lines["quality"].startswith("grounding recall: 84.0 %, of the whole history 85.0 %: −1.0 points (")
    assert lines["how sure"] == (
        "cheaper, and at most 5 points worse, in 100.0 % of 2,000 resamples of 8 conversations"
    )
    assert lines["not"] == "broken: would do but for what it breaks"
    assert lines["next"] == "everything else: ctxbench report 'runs/by hand' --all"
    assert len(answer(found).rows) + 1 <= 12
    exact = as_json(found)
    assert (exact["ship"], exact["breaks"]) == ("good", {"broken": ["newest message missing: 3"]})


def test_a_gain_within_its_interval_is_none() -> None:
    """`none` is dearer than `good`, and its gain of one point may be none: it is not worth choosing."""
    found = by_hand(COSTS, SHARES, {"broken": 3})
    assert found.best == ["good", "cheap"]
    assert found.beaten_by == {"none": "good"}
    steady = {**SHARES, "good": [0.8, 0.7] * 4}
    assert by_hand(COSTS, steady, {"broken": 3}).best == ["none", "good", "cheap"]


def test_a_weak_answer_model_hides_no_loss() -> None:
    """Where the whole history answers 20 % right, 3 points less are too much, 1 point is not: a tenth counts."""
    low = {"none": [0.2] * 8, "good": [0.17] * 8, "cheap": [0.05] * 8}
    found = by_hand({name: COSTS[name] for name in low}, low)
    assert found.shipped is None
    assert found.accepted == pytest.approx(0.02)
    assert "to lose at most 2 points" in told(answer(found))["why"]
    assert by_hand({name: COSTS[name] for name in low}, {**low, "good": [0.19] * 8}).shipped == "good"


def test_nothing_is_sure_enough() -> None:
    """Where all that is cheaper may lose more, the whole history stays, and the surest is named."""
    shares = {**SHARES, "good": [0.9, 0.9, 0.5, 0.8] * 2}
    found = by_hand(COSTS, shares, {"broken": 3})
    assert found.shipped is None
    table = answer(found)
    assert table.title == "Keep the whole history"
    why = "no strategy without broken calls is 95 % sure to cost less and to lose at most 5 points"
    assert told(table)["why"] == why
    assert told(table)["nearest"].startswith("good: cheaper, and at most 5 points worse, in ")
    assert len(table.rows) + 1 <= 12


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ({"good": [1.0] * 4, "cheap": [1.0] * 4}, "the whole history was not run: add --strategy none"),
        ({"none": [1.0] * 4}, "there is one strategy: add others with --strategy"),
        ({"none": [nan] * 4, "good": [nan] * 4}, "the bill under m is not known"),
    ],
)
def test_no_verdict(costs: dict[str, list[float]], why: str) -> None:
    """Without the whole history, another strategy or a price there is none, and the reason is told."""
    table = answer(by_hand(costs, {name: [0.5] * 4 for name in costs}))
    assert (table.title, told(table)["why"]) == ("No verdict", why)


def test_a_few_conversations_are_never_sure() -> None:
    """It has no resamples, and three that agree say no more: nothing is recommended."""
    for number, words in ((1, "1 conversation"), (3, "3 conversations")):
        found = by_hand(
            {"none": [9.0] * number, "good": [1.0] * number}, dict.fromkeys(("none", "good"), [0.9] * number)
        )
        assert found.shipped is None
        assert answer(found).title == "Keep the whole history"
        assert told(answer(found))["why"] == f"{words} can make nothing sure: it takes 8 or more"


def test_twins_make_nothing_surer() -> None:
    """Every conversation twice, as twins of one unit: the same intervals and shares as of the units, and as few."""
    costs = {"none": [9.0, 7, 8, 9, 5, 6, 9, 8], "good": [2.0, 1, 3, 1, 2, 6, 1, 2]}
    shares = {"none": [0.9] * 8, "good": [0.9, 0.8, 0.9, 0.9, 0.7, 0.9, 0.8, 0.9]}
    alone = by_hand(costs, shares)
    twice = [{name: values * 2 for name, values in table.items()} for table in (costs, shares)]
    twins = by_hand(*twice, units={f"c{at}": f"kind {at % 8}" for at in range(16)})
    assert (twins.conversations, twins.units) == (16, 8)
    assert dict(twins.keeps) == dict(alone.keeps)
    assert twins.gain("good", "none").shown == pytest.approx(alone.gain("good", "none").shown)
    assert twins.cost_change("good").shown == pytest.approx(alone.cost_change("good").shown)
    assert as_json(twins)["independent_units"] == 8
    few = by_hand(*twice, units={f"c{at}": f"kind {at % 4}" for at in range(16)})
    assert few.shipped is None
    assert told(answer(few))["why"] == (
        "16 conversations can make nothing sure: they are 4 independent units, and it takes 8 or more"
    )


def test_the_five_measures() -> None:
    """The strategy to ship stands first, then from cheap to dear; what breaks is struck out, last, with the reason."""
    table = five_measures(by_hand(COSTS, SHARES, {"broken": 3}))
    assert [row[0] for row in table.rows] == ["good", "cheap", "none", "dark", "✗ broken"]
    assert table.rows[0][2:4] == ("25.0 %", "50.0 %")
    assert table.notes[1].endswith("Broken calls: newest message missing: broken 3.")
    assert "(fixed)" not in table.notes[0]


def test_only_the_billed_model_s_provider_rejects(tmp_path: Path) -> None:
    """A request that OpenAI alone rejects breaks nothing for Claude; for a model of another provider both count."""
    summary = results(usual(tmp_path)).summary
    rejected = {**summary.strategies["none"], "rejected_openai": 3, "rejected_anthropic": 0}
    found = replace(summary, strategies={**summary.strategies, "last_turn": rejected})
    assert breakage(found, "last_turn", "claude-opus-4-5") == []
    assert breakage(found, "last_turn", "azure/gpt-5.6") == ["rejected: 3 by OpenAI"]
    assert breakage(found, "last_turn", "deepseek-chat") == ["rejected: 3 by OpenAI"]


def test_the_best_measure_counts(tmp_path: Path) -> None:
    """Answers; where there are none the evidence that is sent, without questions what the recorded model used next."""
    assert verdict(results(usual(tmp_path / "usual"))).quality.metric == "answer_quality"
    asked = recorded("one", ["a", "b"], probes=[{"id": "q", "question": "Which?", "evidence": ["u0"]}])
    unanswered = ran(tmp_path / "unanswered", asked, strategies=("none", "last_turn"), answers=False)
    assert verdict(results(unanswered)).quality.metric == "context_recall"
    plain = ran(tmp_path, recorded("one", ["a", "b"]), strategies=("none", "last_turn"))
    found = verdict(results(plain)).quality
    assert found.metric == "grounding"
    sums = found.sums.groupby("strategy")[["got", "wanted"]].sum()
    assert sums.got["last_turn"] / sums.wanted["last_turn"] == found.values["last_turn"]


def test_subagents_are_counted(tmp_path: Path) -> None:
    """A session and the agent that it started are two conversations, one of them a subagent's."""
    for name in ("s", "s/agent"):
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
        with (tmp_path / "chats.jsonl").open("a") as file:
            file.write(json.dumps({"id": name, "messages": messages}) + "\n")
    execute(Plan(RunInputs((str(tmp_path / "chats.jsonl"),)), ("none", "last_turn")), tmp_path / "run")
    of_run = Results(load(tmp_path / "run"), ["claude-sonnet-5"])
    assert of_run.summary.subagents == 1
    assert five_measures(verdict(of_run)).title.startswith(
        "2 conversations, 1 independent unit, 1 of them of subagents, 4 messages"
    )


def test_a_window_falls_into_the_traps_of_its_size(tmp_path: Path) -> None:
    """A window of 8,000 tokens loses the newest message where one is larger; the whole history loses none."""
    strategies = ("none", "last_turn", "window(max_tokens=8000)")
    execute(Plan(RunInputs(("traps",)), strategies), tmp_path / "run")
    found = Results(load(tmp_path / "run"), ["claude-sonnet-5"])
    assert is_traps(found)
    faults = trap_faults(found)
    assert faults["none"] == faults["last_turn"] == {}
    assert set(faults["window(max_tokens=8000)"]) == {"enormous_result", "long_single_user_message"}
    assert all("newest message missing: 1" in what for what in faults["window(max_tokens=8000)"].values())
    table = trap_table(found)
    assert table.title == "Which of 14 traps break a strategy? 2 of 3 strategies pass them all"
    assert [row[1] for row in table.rows] == ["0", "0", "2"]
    names = [section.name for section in sections(found)]
    assert names[0] == "traps"
    assert not {"overview", "strategies"} & set(names)  # neither a verdict nor savings
