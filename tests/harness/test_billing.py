"""The bill of a stored run: by hand, the laws of its sums, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ctxbench.harness.billing import bills
from ctxbench.harness.load import Run, load
from ctxbench.harness.run import execute
from ctxbench.metrics.prices import price_of
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation, Message

from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

MODELS = ("claude-sonnet-5", "gpt-5.6", "gpt-4o", "deepseek-chat")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two conversations with long tool results, under a strategy of each sort."""
    folder = tmp_path_factory.mktemp("billing")
    strategies = ("none", "window(max_tokens=2000)", "summary(threshold=8)", "archive(threshold=20)", "cache_marks")
    execute(plan(recording(folder, conversations=2, turns=8, size=200), strategies=strategies), folder / "run")
    return load(folder / "run")


def test_by_hand(tmp_path: Path) -> None:
    """Two calls a minute apart: the first prompt is written, then read; what came since is written."""
    text = "word " * 3000
    said = (
        Message("s", "system", text, time=1.79e9),
        Message("u", "user", "hi", time=1.79e9),
        Message("a", "assistant", "yes", time=1.79e9 + 5),
        Message("v", "user", "and then?", time=1.79e9 + 60),
        Message("b", "assistant", "no", time=1.79e9 + 65),
    )
    (tmp_path / "t.jsonl").write_bytes(Conversation("t", said).to_json() + b"\n")
    execute(plan(tmp_path / "t.jsonl", strategies=("none",)), tmp_path / "run")
    (bill,) = bills(load(tmp_path / "run"), ["claude-sonnet-5"])
    count = TokenCounter().message
    first, more = count(said[0]) + count(said[1]) + 3, count(said[2]) + count(said[3])
    output = count(said[2]) + count(said[4])
    assert (bill.read, bill.written, bill.fresh, bill.output) == (first, first + more, 0, output)
    price = price_of("claude-sonnet-5")
    assert price is not None
    wanted = first * price.read + (first + more) * price.write + output * price.output
    assert bill.cost == pytest.approx(wanted)
    assert bill.uncached == pytest.approx((2 * first + more) * price.input + output * price.output)


def test_every_token_is_billed_once(run: Run) -> None:
    """Read, written and fresh are together what was sent, in every cell and under every model."""
    steps = run.table("steps")
    sent = steps.groupby(["conversation", "strategy"], observed=True).tokens_sent.sum()
    found = bills(run, MODELS)
    assert len(found) == 2 * 5 * len(MODELS)
    for bill in found:
        assert bill.read + bill.written + bill.fresh == sent[bill.conversation, bill.strategy]
        assert 0 <= bill.hits <= bill.calls
    assert {bill.model for bill in found if bill.written} == {"claude-sonnet-5", "gpt-5.6"}


def test_what_is_kept_bounds_what_is_read(run: Run) -> None:
    """No cache of prompts reads more than what requests share with those before them; DeepSeek caches answers too."""
    steps = run.table("steps")
    kept = steps.groupby(["conversation", "strategy"], observed=True).tokens_kept.sum()
    for bill in bills(run, MODELS[:3]):
        if bill.strategy in ("none", "cache_marks"):
            assert bill.read <= kept[bill.conversation, bill.strategy] + 3 * bill.calls


def test_marks_alone(run: Run) -> None:
    """With the placement "marked", what no strategy marked is not cached where marks are needed, and is elsewhere."""
    for bill in bills(run, MODELS[:2], "marked"):
        if bill.strategy == "none":
            assert (bill.read > 0) == (bill.model == "gpt-5.6")


def test_a_price_that_is_not_known(run: Run) -> None:
    """It is an error with the nearest name: an unknown price is not nothing."""
    with pytest.raises(RunError, match=r"the price of gpt-5\.66 is not known; did you mean"):
        bills(run, ["gpt-5.66"])


def test_the_command(run: Run) -> None:
    """A table a model, and JSON with the exact figures and what was assumed."""
    shown = ctxbench("bill", run.folder, "-m", "gpt-4o", cwd=run.folder).stdout
    assert "The bill under gpt-4o" in shown
    assert "2 conversations have no times" in shown
    found = json.loads(ctxbench("bill", run.folder, "-m", "gpt-4o", "--json", cwd=run.folder).stdout)
    assert [row["strategy"] for row in found["bills"]][:2] == ["none", "window(max_tokens=2000)"]
    none = found["bills"][0]
    assert none["saved_against_none"] == 0
    assert none["cost"] == pytest.approx(sum(bill.cost for bill in bills(run, ["gpt-4o"]) if bill.strategy == "none"))
