"""Figures of steps that are read some shards at a time: those of all steps at once, to the last digit."""

from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load, steps_of
from ctxbench.metrics.figures import METRICS, figures, growth, turn_means
from ctxbench.reports.results import summarise
from ctxbench.reports.steps import REJECTED, SUMMED, MetricSums, step_figures
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.strategies.window import Window
from tests.harness.runs import fail, plan, recording

STRATEGIES = (
    "none",
    "window(max_tokens=400)",
    "summary(every=2)",
    "tiered(limit=160, working=60, archive=80, recall=50, k=2)",
)


def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a shard at a time."""
    whole = Run.pieces
    monkeypatch.setattr(Run, "pieces", lambda run, _=0: whole(run, 1))


@pytest.fixture
def failing() -> str:
    """The text at which a strategy fails."""
    return "question 3 "


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> Run:
    """A run of seven conversations in four shards: two models were recorded, and a strategy fails in a conversation."""
    path = recording(tmp_path, conversations=7, turns=6)
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        conversation, replace = msgspec.json.decode(line, type=Conversation), msgspec.structs.replace
        messages = []
        for at, message in enumerate(conversation.messages):
            if message.role == "tool":
                message = replace(message, text=f"It is in /srv/data/{number}/{at}.txt. {message.text}")
            if message.role == "assistant":
                called = Call(model=f"gpt-{4 + number % 2}", usage=Usage(input=40 + 31 * at + number, output=9))
                text = message.text and f"See /srv/data/{number}/{at - 1}.txt"
                message = replace(message, call=called, text=text)
            messages.append(message)
        lines.append(replace(conversation, messages=tuple(messages)).to_json())
    path.write_bytes(b"\n".join(lines))
    fail(monkeypatch, Window, failing)
    monkeypatch.setattr("ctxbench.harness.engine.plan.SHARD_CONVERSATIONS", 2)
    execute(plan(path, strategies=STRATEGIES), tmp_path / "run")
    return load(tmp_path / "run")


@pytest.mark.parametrize("failing", [f"question {number} " for number in (0, 3)])
def test_pieces_have_the_figures_of_all_steps(run: Run, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every metric by strategy, growth, sums by conversation and by turn, over what is compared, in the run's order.

    So also where a strategy fails in the first conversation.
    """
    steps, uneven = steps_of(run), f"c{failing.split()[1]}"
    assert uneven in run.failures["window(max_tokens=400)"]
    common = steps[steps.conversation != uneven]
    in_pieces(monkeypatch)
    assert len(list(run.pieces())) == 4
    found = step_figures(run, frozenset({uneven}))
    assert found.strategies == {name: figures(common[common.strategy == name]) for name in STRATEGIES}
    pd.testing.assert_frame_equal(found.growth, growth(turn_means(common)), check_exact=True)
    sums = steps.groupby(["conversation", "strategy"], observed=True)[[*SUMMED]].sum().reset_index()
    pd.testing.assert_frame_equal(found.by_conversation.drop(columns=["steps", *REJECTED]), sums, check_exact=True)
    assert found.by_conversation.steps.sum() == len(steps)
    by_turn = common.astype({"strategy": str}).groupby(["strategy", "turn"])[["demands", "demands_kept"]].sum()
    pd.testing.assert_frame_equal(found.by_turn, by_turn.reset_index(), check_exact=True)


def test_pieces_have_the_summary_of_the_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of our counts under both recorded models, and grounding by kind of value."""
    whole = summarise(run)
    in_pieces(monkeypatch)
    cut = summarise(load(run.folder))
    assert [row["model"] for row in whole.steps.counter] == ["gpt-4", "gpt-5"]
    assert cut.steps.counter == whole.steps.counter
    assert cut.grounding == whole.grounding
    assert any(whole.grounding.values())


@given(st.lists(st.lists(st.floats(0, 10) | st.just(0.0), max_size=9), max_size=9))
def test_dollars_add_up_as_in_one_column(pieces: list[list[float]]) -> None:
    """Sums of fractions depend on their order, and are those of the whole column."""
    metric = METRICS["own_cost"].of
    sums = MetricSums(metric)
    for piece in pieces:
        sums.add(pd.DataFrame({"own_cost": np.array(piece, float)}))
    assert sums.value() == metric(pd.DataFrame({"own_cost": np.array([each for piece in pieces for each in piece])}))
