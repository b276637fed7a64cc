"""The verdict, worked by hand: what is worth choosing, what to ship, what is struck out, and how it is told."""

from dataclasses import replace
from math import nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.api.verdict import BenchmarkVerdict
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.figures import OF_STEPS
from ctxbench.metrics.statistics.intervals import FEWEST
from ctxbench.metrics.value import Missing
from ctxbench.reports.figures.style import legible
from ctxbench.reports.html.sections import sections
from ctxbench.reports.render import Table, html, markdown, plain
from ctxbench.reports.results import Results
from ctxbench.reports.verdict import Doubt, MeasuredQuality, RunVerdict, _shares, as_json, breakage, quality, verdict
from ctxbench.reports.verdict_text import (
    answer,
    choices_table,
    first_screen,
    five_measures,
    gain_range,
    headline,
    is_traps,
    live_runs,
    tags,
    trap_faults,
    trap_table,
    why_placed,
)
from tests.reports.html.builders import nine, ran, recorded, results, usual


def by_hand(
    costs: dict[str, list[float]],
    shares: dict[str, list[float]],
    faults: dict[str, int] | None = None,
    units: dict[str, str] | None = None,
    lose: float = 5.0,
    wanted: int = 10,
) -> RunVerdict:
    """Return the verdict on strategies with these costs and qualities in each conversation; each wants some values.

    `faults` are their calls that lack the newest message.
    """
    keys = [(name, f"c{at}", at) for name in costs for at in range(len(costs[name]))]
    rows = [
        {"conversation": at, "strategy": name, "model": "m", "cost": costs[name][number], "cost_own": 0.0}
        for name, at, number in keys
    ]
    got = [
        {"conversation": at, "strategy": name, "got": wanted * shares[name][number], "wanted": wanted}
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
        compared=8,
        subagents=0,
        messages=80,
        calls=40,
        failed_conversations=dict.fromkeys(costs, 0),
        failed=[],
        unanswered=[],
        answers=None,
        recorded={},
        unrepeatable={},
    )
    fake: Any = SimpleNamespace(
        run=SimpleNamespace(
            name="runs/by hand",
            units=units or {},
            manifest=SimpleNamespace(plan=SimpleNamespace(strategies=tuple(costs)), strategy_names={}),
        ),
        models=("m",),
        named=("m",),
        lose=lose,
        bills=bills,
        totals=totals,
        is_sampled=False,
        sampling_notes=[],
        billed=SimpleNamespace(requests=SimpleNamespace(results=[])),
        strategies=list(costs),
        summary=summary,
        common=pd.DataFrame(steps),
    )
    return RunVerdict(fake, MeasuredQuality("grounding", "what is kept", values, pd.DataFrame(got)), "m")


def told(table: Table) -> dict[str, str]:
    """Return the lines of an answer by their labels."""
    return {label or "and": text for label, text in table.rows}


COSTS = {"none": [10.0] * 8, "cheap": [2.0, 3.0] * 4, "good": [4.0, 5.0] * 4, "broken": [1.0] * 8, "dark": [nan] * 8}
SHARES = {
    "none": [0.9, 0.8] * 4,
    "cheap": [0.5, 0.4] * 4,
    "good": [0.9, 0.76, 0.92, 0.78] * 2,
    "broken": [0.9, 0.8] * 4,
    "dark": [1.0] * 8,
}


def test_what_one_conversation_carries_is_not_recommended() -> None:
    """`short` cuts one conversation of half the bill, and all others grow: without it, it would cost 10 % more. The
    answer names the conversation, and the same strategy is no choice at any loss."""
    costs = {"none": [9.0, *[1.0] * 8], "short": [2.0, *[1.1] * 8], "plain": [7.2, *[0.8] * 8]}
    found = by_hand(costs, dict.fromkeys(costs, [0.9] * 9))
    assert found.places == {"none": "beaten", "short": "doubtful", "plain": "chosen"}
    assert [found.choice(points) for points in found.losses] == ["plain"] * 4
    told_of = told(answer(found))
    assert told_of["doubtful"] == (
        "short: $10.80 instead of $17.00 here (−36.5 %), cheaper in 1 of 9 conversations; "
        "but that rests on one conversation, c0: the others cost 10.0 % more"
    )
    assert told_of["largest"] == "one conversation, c0: 52.9 % of the bill; without it plain costs 20.0 % less"
    del costs["plain"]
    alone = by_hand(costs, dict.fromkeys(costs, [0.9] * 9))
    assert alone.shipped is None
    assert headline(alone) == "Keep the whole history: short costs less here, but that rests on one conversation, c0"
    assert choices_table(alone).notes == ("Why none: of what costs less, short may do worse elsewhere.",)


def test_quality_that_one_conversation_carries() -> None:
    """`short` keeps all of the first conversation, which has the most questions, and loses 10 points of each other."""
    costs = {"none": [2.0] * 9, "short": [1.0] * 9}
    shares = {"none": [0.0, *[0.9] * 8], "short": [0.9, *[0.8] * 8]}
    found = by_hand(costs, shares)
    assert found.doubts["short"] == Doubt("but its quality rests on", "c0")
    assert by_hand(costs, shares, lose=20).shipped == "short"


def test_what_never_costs_more_is_cheaper() -> None:
    """Three of 24 conversations cost a fifth less and the others the same: the interval ends at 0, and that is no
    doubt. One that costs more would be."""
    costs = {"none": [1.0] * 24, "short": [*[0.8] * 3, *[1.0] * 21]}
    found = by_hand(costs, dict.fromkeys(costs, [0.9] * 24))
    assert found.cost_change("short").shown[1] == 0.0
    assert found.shipped == "short"
    costs["short"][-1] = 1.01
    assert by_hand(costs, dict.fromkeys(costs, [0.9] * 24)).shipped is None


def test_two_conversations_are_one_unit() -> None:
    """Where the unit that carries a saving has two conversations, the words say so."""
    costs = {"none": [5.0, 5.0, *[1.0] * 8], "short": [2.0, 2.0, *[1.1] * 8]}
    found = by_hand(costs, dict.fromkeys(costs, [0.9] * 10), units={"c0": "twins", "c1": "twins"})
    assert found.shipped is None
    assert "that rests on 2 conversations that are one unit, c0 …" in headline(found)


def test_another_base() -> None:
    """Against `good`, which costs 36, `cheap` (20) loses too much, `none` (80) is dearer, and nothing breaks `good`."""
    found = replace(by_hand(COSTS, SHARES, {"good": 3, "broken": 3}), base="good")
    assert found.shipped is None
    assert found.places["good"] == "chosen"  # the base itself
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


def test_what_to_use() -> None:
    """The cheapest that breaks nothing and lost at most 5 points: `cheap` loses 40, `broken` breaks, `dark` has no
    price."""
    found = by_hand(COSTS, SHARES, {"broken": 3})
    assert found.places == {
        "none": "frontier",
        "good": "chosen",
        "cheap": "frontier",
        "broken": "broken",
        "dark": "unknown",
    }
    assert headline(found) == "Try good: $36.00 instead of $80.00 here (−55.0 %), cheaper in 8 of 8 conversations"
    lines = told(answer(found))
    assert lines["quality"] == "grounding recall 84.0 % instead of 85.0 %: −1.0 points"
    few = "not known: 8 independent conversations are too few (it takes 15). In single conversations here: "
    assert lines["elsewhere"] == f"{few}50.0 to 60.0 % less cost and −4.0 to +2.0 points"
    assert lines["broken"] == "cheaper here, but breaks calls: broken (newest dropped: 3)"
    assert lines["next"] == "everything else: ctxbench report 'runs/by hand' --all -m m"
    assert len(answer(found).rows) + 1 <= 12
    exact = as_json(found)
    assert (exact["ship"], exact["breaks"]) == ("good", {"broken": ["newest dropped: 3"]})
    assert exact["choices"] == {"0": "none", "1": "good", "5": "good", "10": "good"}


def test_a_loss_that_cannot_be_ruled_out_is_told() -> None:
    """Eight conversations with a question each, of which none changed: 5 points more or less cannot be told."""
    costs = {"none": [2.0] * 8, "short": [1.0] * 8}
    found = by_hand(costs, {"none": [1.0, 0.0] * 4, "short": [1.0, 0.0] * 4}, wanted=1)
    assert (found.shipped, found.is_sure) == ("short", False)
    assert headline(found).startswith("Try short: ")
    assert told(answer(found))["elsewhere"].endswith("; more than 5 points may be lost")


def test_the_choice_for_each_loss() -> None:
    """The reader's loss is a row of its own, and the headline is that row."""
    for lose, name in ((0.5, "none"), (2.5, "good"), (45, "cheap")):
        found = by_hand(COSTS, SHARES, {"broken": 3}, lose=lose)
        rows = {row[0]: row[1] for row in choices_table(found).rows}
        assert rows[f"{lose:g} points (--lose)"] == name == (found.shipped or "none")
        expected = ("Keep the whole history",) if name == "none" else (f"Use {name}:", f"Try {name}:")
        assert headline(found).startswith(expected)


@st.composite
def any_run(draw: st.DrawFn) -> RunVerdict:
    """A run of up to six strategies and twelve conversations, some of them twins, with faults, at any accepted loss."""
    names = ["none", "last_turn", "a", "b", "c", "d"]
    size = draw(st.integers(1, 12))
    money, kept = st.sampled_from([0.1, 1.0, 1.1, 2.0, 50.0]), st.sampled_from([0.0, 0.5, 0.8, 0.9, 1.0])
    costs = {name: draw(st.lists(money, min_size=size, max_size=size)) for name in names}
    shares = {name: draw(st.lists(kept, min_size=size, max_size=size)) for name in names}
    faults = draw(st.dictionaries(st.sampled_from(names[1:]), st.integers(1, 3), max_size=2))
    units = draw(st.dictionaries(st.sampled_from([f"c{at}" for at in range(size)]), st.just("twins"), max_size=3))
    return by_hand(costs, shares, faults, units, draw(st.sampled_from([0.0, 0.3, 1, 5, 10, 100])))


@settings(max_examples=60, deadline=None)
@given(any_run())
def test_frontier_colours_and_words_agree(found: RunVerdict) -> None:
    """Each strategy has one place. The chosen one is on the frontier, in the headline and in the table, and would be
    chosen without any single unit. Nothing beats the frontier. No bound, and nothing that breaks, is chosen."""
    places, few = found.places, found.units < FEWEST
    chosen = [name for name, place in places.items() if place == "chosen"]
    assert len(chosen) == (0 if few else 1)
    assert {name for name, place in places.items() if place in ("chosen", "frontier")} == set(found.best)
    assert (found.shipped or "none") == (chosen or ["none"])[0]
    rows = {row[0]: row[1] for row in choices_table(found).rows}
    [at_loss] = [name for label, name in rows.items() if label.endswith("(--lose)")]
    assert few or at_loss == chosen[0]
    assert set(rows.values()) <= (set(found.points) - set(found.broken) if few else set(found.best) | {"none"})
    words = headline(found)
    assert words.startswith("No recommendation" if few else f"Use {at_loss}" if found.is_sure else ("Try", "Keep"))
    for name, point in found.points.items():
        if places[name] in ("chosen", "frontier"):
            assert not any(found.points[other].dominates(point) for other in found.best)
        elif places[name] == "beaten":
            better = found.points[found.beaten_by[name]]
            assert better.dominates(point) or point == better == found.points["none"]
            assert places[found.beaten_by[name]] in ("chosen", "frontier")
    if found.shipped is not None:
        without = found.without_each(found.shipped)
        assert (without.change <= 1e-6).all()
        assert (without.loss <= found.accepted + 1e-6).all()
        assert places[found.shipped] not in ("bound", "broken", "doubtful")
    assert all(why_placed(found, name) for name, place in places.items() if place in ("beaten", "broken", "doubtful"))


def test_a_cost_that_is_open_elsewhere_is_only_tried() -> None:
    """One conversation is half the bill, so no interval of the cost is shown: what saves in each is tried, not used,
    and against `none`, which cannot lose any quality, nothing is open but that."""
    costs = {"none": [14.0, *[1.0] * 14], "short": [7.0, *[0.5] * 14]}
    found = by_hand(costs, dict.fromkeys(costs, [1.0] * 15))
    assert isinstance(found.cost_change("short").shown, Missing)
    assert (found.shipped, found.is_sure) == ("short", False)
    assert headline(found).startswith("Try short: $14.00 instead of $28.00 here (−50.0 %)")
    assert any("not known: one conversation is 50 %" in text for text in BenchmarkVerdict(found).objections("short"))
    turned = by_hand({"none": [4.0] * 15, "short": [8.0] * 15}, dict.fromkeys(costs, [1.0] * 15))
    turned = replace(turned, base="short")
    assert turned.surely_keeps("none")
    assert turned.is_sure_of("none")


def test_quality_of_too_few_conversations_recommends_nothing() -> None:
    """Fifteen conversations, of which seven have anything to measure quality by: one answer, that this is too few; a
    strategy that sends the same text loses nothing by construction."""
    costs = {"none": [2.0] * 15, "short": [0.5] * 15, "cache_marks": [1.0] * 15}
    found = by_hand(costs, dict.fromkeys(costs, [1.0] * 15))
    unmeasured = found.quality.sums.conversation.isin([f"c{at}" for at in range(8)])
    found.quality.sums.loc[unmeasured, ["got", "wanted"]] = 0
    assert found.doubts["short"].words == "but its quality is measured in 7 independent units, and it takes 8"
    assert found.shipped == "cache_marks"
    assert headline(found).startswith("Use cache_marks: ")
    few = "only 70 values in 7 independent units: too few to say what others would lose; it takes 8"
    assert ("", few) in answer(found).rows


def test_the_same_text_has_the_same_answers() -> None:
    """`cache_marks` sends what the whole history is, and `a | cache_marks` what `a` is, by construction; `window`
    happens to."""
    names = ("none", "cache_marks", "window", "archive", "archive | cache_marks")
    found = by_hand({name: [1.0] * 9 for name in names}, {name: [0.5] * 9 for name in names})
    found = replace(found, quality=replace(found.quality, metric="answer_quality"))
    assert gain_range(found.gain("cache_marks", "none")) == "0.0"
    assert gain_range(found.gain("archive | cache_marks", "archive")) == "0.0"
    assert gain_range(found.gain("window", "none")) == "−33.6 to +33.6"
    assert gain_range(found.gain("archive | cache_marks", "none")) == "−33.6 to +33.6"


def test_each_conversation_has_the_provider_of_its_own_model(tmp_path: Path) -> None:
    """Requests that do not start with the user are rejected by Anthropic: of a conversation with Claude, and not of one
    with GPT; of one with Gemini they may be."""
    (tmp_path / "late.py").write_text("def late(messages):\n    return messages[1:] or messages\n")
    made = []
    for model in ("claude-sonnet-5", "gpt-4o", "gemini-2.5-pro"):
        messages = recorded("", ["one", "two"])["messages"][1:]
        for message in messages:
            message.update({"call": {"model": model}} if message["role"] == "assistant" else {})
        made.append({"ctxbench": "1", "id": model, "messages": messages})
    run = ran(tmp_path, *made, strategies=("none", f"{tmp_path}/late.py:late"))
    rejected = results(run).sums.set_index("conversation").rejected_anthropic
    assert (rejected["claude-sonnet-5"].max(), rejected["gpt-4o"].max()) == (3, 3)
    broken = verdict(Results(run, [OWN_MODELS])).broken
    [reasons] = broken.values()
    assert "6 by Anthropic" in reasons[0]
    assert "9 by Anthropic" in breakage(results(run).summary, next(iter(broken)), "")[0]


def test_what_is_billed_without_a_cache(tmp_path: Path) -> None:
    """The verdict says so, and why: a host that had none on the day, or none whose rule is known."""
    said, cached = recorded("c", ["one", "two"]), "claude-3-5-sonnet-20241022"
    said["messages"] = [message | {"time": 1_733_313_600.0} for message in said["messages"]]
    found, amazon = results(ran(tmp_path, said, strategies=("none",))), f"anthropic.{cached}-v2:0"
    why = {amazon: f"{amazon} had none when they were recorded, before 2025-04-07", "xai/grok-4": "no rule of "}
    for model in (*why, cached):
        rows = answer(verdict(replace(found, models=[model], named=[model]))).rows
        told_of = [text for _, text in rows if "100.0 % of the calls are billed without a cache: " in text]
        assert [why.get(model, "") in text for text in told_of] == [True] * (model in why)


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
    assert answer(by_hand(costs, {name: [0.5] * 4 for name in costs})).title == f"No verdict: {why}"


def test_a_few_conversations_recommend_nothing() -> None:
    """Of one or three conversations the exact figures are told, that they are too few, what rests on one alone, and
    that nothing cheaper keeps any answer; the table has what was cheapest here, whatever it rests on."""
    for number, words in ((1, "1 conversation is"), (3, "3 conversations are")):
        found = by_hand(
            {"none": [9.0] * number, "good": [1.0] * number}, dict.fromkeys(("none", "good"), [0.9] * number)
        )
        assert found.shipped is None
        takes = "it takes 8 to recommend a strategy, and 15 to say what others would cost"
        assert headline(found) == f"No recommendation: {words} too few: {takes}"
        assert told(answer(found))["nearest"].startswith(f"good: ${number}.00 instead of ${9 * number}.00 here")
        assert told(answer(found))["nearest"].endswith("; the cheapest that breaks no call and loses at most 5 points")
    doubted = by_hand({"none": [9.0] * 3, "one": [0.5, 9.5, 9.5]}, dict.fromkeys(("none", "one"), [0.9] * 3))
    assert choices_table(doubted).title == "What was cheapest here, and what it saved"
    assert {row[1] for row in choices_table(doubted).rows} == {doubted.choice(5)} == {"one"}
    assert told(answer(doubted))["nearest"].endswith("in 1 of 3 conversations; but that rests on one conversation, c0")
    empty = {"none": [9.0] * 3} | dict.fromkeys(("a", "b", "c"), [1.0] * 3)
    nothing = by_hand(empty, {name: [float(name == "none")] * 3 for name in empty})
    assert told(answer(nothing))["nearest"].endswith("cost less here keeps every call working and any of the answers")
    lost = "Why none: of what costs less, c loses more (100.0 points), and 2 others as much."
    assert choices_table(nothing).notes == (lost,)


def test_twins_make_nothing_surer() -> None:
    """Every conversation twice, as twins of one unit: the same intervals as of the units, and as few."""
    costs = {"none": [9.0, 7, 8, 9, 5, 6, 9, 8], "good": [2.0, 1, 3, 1, 2, 6, 1, 2]}
    shares = {"none": [0.9] * 8, "good": [0.9, 0.8, 0.9, 0.9, 0.7, 0.9, 0.8, 0.9]}
    alone = by_hand(costs, shares)
    twice = [{name: values * 2 for name, values in table.items()} for table in (costs, shares)]
    twins = by_hand(*twice, units={f"c{at}": f"kind {at % 8}" for at in range(16)})
    assert (twins.conversations, twins.units) == (16, 8)
    assert twins.places == alone.places
    assert twins.gain("good", "none").shown == pytest.approx(alone.gain("good", "none").shown)
    assert twins.cost_change("good").shown == pytest.approx(alone.cost_change("good").shown)
    assert as_json(twins)["independent_units"] == 8
    few = by_hand(*twice, units={f"c{at}": f"kind {at % 4}" for at in range(16)})
    assert headline(few).startswith("No recommendation: 16 conversations (4 independent units) are too few")


def test_the_five_measures() -> None:
    """The strategy to ship stands first, then from cheap to dear; what breaks has a row too, last, with the reason."""
    table = five_measures(by_hand(COSTS, SHARES, {"broken": 3}))
    assert [row[0] for row in table.rows] == ["good", "cheap", "none", "dark", "✗ broken"]
    assert table.rows[0][2:5] == ("25 %", "2.22 ×", "50 %")
    assert [row[-1] for row in table.rows] == ["", "", "", "", "newest dropped: 3"]
    alone = five_measures(by_hand({"none": [1.0] * 8}, {"none": [0.9] * 8}))
    assert "–" not in alone.rows[0]
    assert any(note.startswith("Not shown, ") and "break-even" in note for note in alone.notes)


def test_a_saving_that_live_runs_would_use_up_is_tried_live_first() -> None:
    """A sure saving of 6.5 %, of a family whose published runs made 27 to 106 % more calls: the first line says what
    has to be true. One of 60 % is used, and so is one of a family that sends the same text."""
    costs = {"none": [1.07] * 60, "retrieval": [1.0] * 60, "cache_marks": [1.01] * 60}
    kept = dict.fromkeys(["none", "retrieval", "cache_marks", "openhands.masking"], [1.0] * 60)
    found = by_hand(costs, kept)
    few = "cheaper only while live it makes at most 7 % more calls; published runs with retrieval made 27 to 106 % more"
    few += ", 3 of 3 more than that"
    assert headline(found).startswith("Try retrieval live first: $60.00 instead of $64.20 here (−6.5 %)")
    assert "Try live first: retrieval. 3 of 3 published runs of its kind made" in choices_table(found).notes[-1]
    assert headline(found).endswith(few)
    assert told(answer(found))["live runs"].endswith("ctxbench live BEFORE AFTER")
    assert BenchmarkVerdict(found).objections("retrieval") == [few]
    assert (found.shipped, found.is_sure, found.is_sure_of("retrieval")) == ("retrieval", False, True)
    assert BenchmarkVerdict(found).objections("cache_marks") == []
    assert headline(by_hand(costs | {"none": [2.5] * 60}, kept)).startswith("Use retrieval: ")
    assert "at most 7 % more calls" in headline(by_hand(costs | {"none": [1.079] * 60}, kept))
    masked = headline(by_hand({"none": [1.0] * 60, "openhands.masking": [0.995] * 60}, kept))
    assert masked.endswith(
        "less than 1 % more calls; published runs with masking made 12 % fewer to 123 % more, 13 of 16 more than that"
    )


def test_what_sent_all_of_each_conversation_is_named() -> None:
    """Recordings that are shorter than a strategy's window say so, or nobody knows why it equals `none`; marks for the
    cache change nothing by construction, and what an agent sent has no limit: they are not named."""
    sent = {"none": 900, "recorded": 900, "retrieval": 900, "window": 900, "cache_marks": 900, "facts": 950}
    found = by_hand({name: [1.0] * 8 for name in sent}, {name: [1.0] * 8 for name in sent})
    for name, tokens in sent.items():
        found.results.summary.strategies[name]["tokens_sent"] = tokens
    short = "retrieval, window dropped nothing from 8 conversations: these are too short for that"
    assert told(answer(found))["short"] == short


def test_a_chain_has_one_name_everywhere() -> None:
    """A recipe's chain is called by the recipe's name in headline, table, notebook, page and figures; one that is part
    of a longer chain, or a class of that name in the user's file, is not."""
    chain = "layered(language='zh') | smart(language='zh') | session_summary(language='zh') | cache_marks"
    found = by_hand({"none": [9.0] * 60, chain: [1.0] * 60}, dict.fromkeys(["none", chain], [1.0] * 60))
    tables = first_screen(found)
    for text in (plain(tables), html(tables), markdown(tables), legible(chain)):
        assert "layered_smart_cached" in text
        assert "language" not in text
    own = "my.py:window(max_tokens=8000, user_first=False)"
    assert [*map(legible, (f"{chain} | last_turn", own))] == [f"{chain} | last_turn", own]
    assert found.shipped == chain


def test_break_even_and_live_runs() -> None:
    """A saving of a third is gone at 1.5 × the calls; beside it stands what was published, each figure with its own
    number of runs, or that nothing was. What an agent did with `recorded` is known."""
    costs = {"none": [3.0] * 8, "openhands.masking": [2.0] * 8, "tiered": [2.0] * 8, "facts": [4.0] * 8}
    costs |= {"recorded": [2.0] * 8, "archive": [2.0] * 8}
    found = by_hand(costs, dict.fromkeys(costs, [1.0] * 8))
    text = live_runs(found, "openhands.masking")
    assert "1.50 × as many calls; published live runs with masking made 0.88 to 2.23 × as many, median 1.06" in text
    assert "(16 runs of 1 study); tasks solved: −12 to +4 points, median −2 (" in text
    runs = "median 1.05 (3 runs of 1 study); tasks solved: −34 to +4 points, median −2 (15 runs of 1 study)"
    assert runs in live_runs(found, "archive")
    assert live_runs(found, "tiered").endswith("; how many more it makes with tiers is in no published live run")
    assert live_runs(found, "facts") == live_runs(found, "recorded") == ""
    table = five_measures(found)
    shown = {row[0]: row[table.heads.index("break-even")] for row in table.rows}
    assert shown == {
        "none": "–",
        "openhands.masking": "1.50 ×",
        "tiered": "1.50 ×",
        "facts": "–",
        "recorded": "–",
        "archive": "1.50 ×",
    }
    found.results.summary.strategies["none"]["overflows"] = 3
    cut_off = "with masking where the whole history outgrows the window is in no published live run"
    assert cut_off in live_runs(found, "openhands.masking")


def test_right_answers_are_compared_in_pairs() -> None:
    """The model cannot read `none` in two conversations, nor `short` in another: of the questions of the other five
    `none` has half right and `short` 3 of 5. Its quality is what `none` has right, and the gain in these pairs."""
    costs = {"none": [2.0] * 8, "short": [1.0] * 8}
    found = by_hand(costs, {"none": [0.5] * 8, "short": [0.6] * 8})
    sums = found.quality.sums.assign(base=lambda rows: 0.5 * rows.wanted)
    sums.loc[sums.conversation.isin(["c6", "c7"]), ["got", "wanted", "base"]] = 0
    sums.loc[(sums.conversation == "c0") & (sums.strategy == "none"), ["got", "base"]] = 10
    sums.loc[(sums.conversation == "c0") & (sums.strategy == "short"), ["got", "wanted", "base"]] = 0
    paired = replace(found, quality=replace(found.quality, metric="answer_quality", sums=sums))
    assert paired.gain("short", "none").value == pytest.approx(0.1)
    assert paired.without_each("short").loss.tolist() == pytest.approx([-0.1] * 8)
    assert _shares(sums) == pytest.approx({"none": 35 / 60, "short": 35 / 60 + 0.1})


@pytest.mark.parametrize(("found", "place"), [(0.96, "chosen"), (0.6, "doubtful")])
def test_what_right_answers_cannot_tell_the_ceiling_guards(found: float, place: str) -> None:
    """With one question a conversation, 5 points more or less cannot be told: `short` is taken where its contexts have
    the answers, and not where 40 of 100 are not in them."""
    costs = {"none": [2.0] * 8, "short": [1.0] * 8}
    judged = by_hand(costs, {"none": [1.0, 0.0] * 4, "short": [1.0, 0.0] * 4}, wanted=1)
    graded: Any = SimpleNamespace(answerer="m", grader="rules(3)", answerable=8, of=lambda _: None)
    beside = replace(judged.quality, metric="answer_quality", graded=graded, found={"none": 1.0, "short": found})
    judged = replace(judged, quality=beside)
    assert judged.places["short"] == place
    if place == "doubtful":
        assert headline(judged).endswith(
            "here, but it may have fewer right answers, and 40 % of the answers are not in what it sends"
        )
    assert judged.careful == ("short" if place == "chosen" else "none")


def test_only_the_billed_model_s_provider_rejects(tmp_path: Path) -> None:
    """A request that OpenAI alone rejects breaks nothing for Claude; for a model of another provider both count."""
    summary = results(usual(tmp_path)).summary
    rejected = {**summary.strategies["none"], "rejected_openai": 3, "rejected_anthropic": 0}
    found = replace(summary, strategies={**summary.strategies, "last_turn": rejected})
    assert breakage(found, "last_turn", "claude-opus-4-5") == []
    assert breakage(found, "last_turn", "azure/gpt-5.6") == ["rejected: 3 by OpenAI"]
    assert breakage(found, "last_turn", "deepseek-chat") == ["rejected: 3 by OpenAI"]


def test_the_best_measure_counts(tmp_path: Path) -> None:
    """Quality is answers found; without accepted answers evidence sent, and without questions values used next."""
    found = verdict(results(usual(tmp_path / "usual"))).quality
    assert (found.metric, found.graded, found.reader is None) == ("answer_in_context", None, False)
    asked = recorded("one", ["a", "b"], probes=[{"id": "q", "question": "Which?", "evidence": ["u0"]}])
    unanswered = ran(tmp_path / "unanswered", asked, strategies=("none", "last_turn"), answers=False)
    judged = verdict(results(unanswered))
    assert judged.quality.metric == "context_recall"
    measures = five_measures(judged)
    assert "(undefined)" not in markdown([measures])
    assert "Not shown, as no strategy has it here: found. Undefined: no probe has an answer" in measures.notes[1]
    plain = ran(tmp_path, recorded("one", ["a", "b"]), strategies=("none", "last_turn"))
    found = verdict(results(plain)).quality
    assert found.metric == "grounding"
    sums = found.sums.groupby("strategy")[["got", "wanted"]].sum()
    assert sums.got["last_turn"] / sums.wanted["last_turn"] == found.values["last_turn"]


def test_subagents_are_counted(tmp_path: Path) -> None:
    """A session, its rest after a copy that was cut short, and the agent that it started: one is a subagent's."""
    made = list[dict[str, Any]]()
    for name, meta in (("s", {}), ("s/agent", {}), ("s~2", {"parent": "s"})):
        messages = [{"id": "u", "role": "user", "text": "hi"}, {"id": "a", "role": "assistant", "text": "yo"}]
        made.append({"ctxbench": "1", "id": name, "meta": meta, "messages": messages})
    of_run = Results(ran(tmp_path, *made, strategies=("none", "last_turn")), ["claude-sonnet-5"])
    assert of_run.summary.subagents == 1
    title = "3 conversations (1 of subagents or forks), 1 independent unit, 6 messages"
    assert five_measures(verdict(of_run)).title.startswith(title)


@pytest.mark.parametrize(
    ("strategies", "why"),
    [
        (["{bad}"], "no strategy finished a conversation"),
        (["none", "{bad}"], "no other strategy can be compared with the whole history"),
    ],
)
def test_why_a_strategy_failed_is_told_first(tmp_path: Path, strategies: list[str], why: str) -> None:
    """The first lines say that and why it failed; its row has no figure, no note counts to 0."""
    (tmp_path / "bad.py").write_text("def bad(messages):\n    raise ValueError('no such key')\n")
    bad = f"{tmp_path}/bad.py:bad"
    run = ran(tmp_path, recorded("one", ["a", "b"]), strategies=tuple(name.format(bad=bad) for name in strategies))
    found = verdict(results(run))
    first, measures = answer(found), five_measures(found)
    assert first.title == f"No verdict: {why}"
    assert first.rows[0][0] == "failed"
    assert first.rows[0][1].startswith(f"{bad} in 1 of 1 conversation, first one: ValueError: no such key")
    (row,) = [row for row in measures.rows if row[0].startswith("✗")]
    assert {*row[1:-1]} <= {"–"}
    assert row[-1] == "failed in 1 of 1"
    assert "0 of 1" not in " ".join(measures.notes)


def test_a_window_falls_into_the_traps_of_its_size(tmp_path: Path) -> None:
    """A window of 8,000 tokens loses the newest message where one is larger; the whole history loses none."""
    strategies = ("none", "last_turn", "window(max_tokens=8000)")
    execute(Plan(RunInputs(("traps",)), strategies), tmp_path / "run")
    found = Results(load(tmp_path / "run"), ["claude-sonnet-5"])
    assert is_traps(found)
    faults = trap_faults(found)
    assert faults["none"] == faults["last_turn"] == {}
    assert set(faults["window(max_tokens=8000)"]) == {"enormous_result", "long_single_user_message"}
    assert all("newest dropped: 1" in what for what in faults["window(max_tokens=8000)"].values())
    table = trap_table(found)
    assert table.title == "Which of 14 traps break a strategy? 2 of 3 strategies pass them all"
    assert [row[1] for row in table.rows] == ["0", "0", "2"]
    names = [section.name for section in sections(found)]
    assert names[0] == "traps"
    assert not {"overview", "strategies"} & set(names)  # neither a verdict nor savings


def test_one_session_is_most_of_the_bill(tmp_path: Path) -> None:
    """Nine conversations of one user, of which one is 82 % of the bill: what it alone saves is no recommendation."""
    found = verdict(Results(nine(tmp_path), ["claude-sonnet-5"]))
    keep = "Keep the whole history: retrieval costs less here, but that rests on one conversation, big"
    assert headline(found) == keep
    lines = told(answer(found))
    assert lines["largest"] == "one conversation, big: 81.9 % of the bill"
    doubt = "cheaper in 1 of 9 conversations; but that rests on one conversation, big: the others cost"
    assert doubt in lines["doubtful"]
    assert found.places["last_turn"] == "bound"
    [overview, *_] = sections(found.results)
    rows = {row["strategy"]: row for row in overview.frames["frontier"].to_dict("records")}
    assert {name: row["place"] for name, row in rows.items()} == found.places
    assert {name for name, row in rows.items() if row["on_frontier"]} == set(found.best)
    tagged = tags(found)
    assert tagged["verdict"] == headline(found)
    assert {name: tagged[f"place/{name}"] for name in found.places} == found.places


def test_a_failed_answer_model_hides_no_answers(tmp_path: Path) -> None:
    """Its answers come first and none counts: the next are the quality, and the verdict says who failed."""
    found = results(usual(tmp_path))
    [good] = found.summary.answers.figures  # type: ignore[union-attr]
    good = replace(good, answerer="openai/m")
    none = Missing("failed", "no answer")
    silent = tuple(replace(of, correct=none) for of in good.strategies)
    failed = replace(good, answerer="openai/gpt-4o", strategies=silent)
    found.summary.__dict__["answers"] = replace(found.summary.answers, figures=(failed, good))  # type: ignore[type-var]
    assert found.summary.answers.best is good  # type: ignore[union-attr]
    measured = quality(found)
    assert (measured.graded, measured.failed) == (good, ("openai/gpt-4o",))
    assert "openai/gpt-4o: none of its answers counts" in str(answer(verdict(found)).rows)
