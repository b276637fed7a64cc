"""A run as data frames, as a notebook has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ctxbench.harness
import numpy as np
import pytest
from ctxbench.harness.gating.comparing import compare
from ctxbench.harness.gating.measured import measured
from ctxbench.harness.gating.policy import REST, Asked, Policy
from ctxbench.harness.loading import Run
from ctxbench.harness.run import execute
from ctxbench.harness.steps import rows_of, steps_of
from ctxbench.metrics import figures
from ctxbench.strategies.window import Window

from tests.harness.runs import fail, plan, recording


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of five conversations and three strategies."""
    folder = tmp_path_factory.mktemp("frames")
    execute(plan(recording(folder, conversations=5, turns=6)), folder / "run")
    return ctxbench.harness.load(folder / "run")


def test_load_is_imported_when_it_is_asked_for(run: Run) -> None:
    """As an attribute of the package and imported from it; pandas comes with it, not before; nothing else is there."""
    code = (
        "import sys; import ctxbench.harness as harness; assert 'pandas' not in sys.modules;"
        "from ctxbench.harness import load; assert harness.load(PATH) == load(PATH); assert 'pandas' in sys.modules"
    ).replace("PATH", repr(str(run.folder)))
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="lord"):
        ctxbench.harness.lord  # noqa: B018


def test_summary_is_what_compare_has(run: Run) -> None:
    """A row a strategy in the run's order, each figure to the last digit."""
    summary = run.summary("claude-sonnet-5")
    assert list(summary.index) == run.manifest["plan"]["strategies"]
    found = measured(run, rows_of, ["claude-sonnet-5"])
    compared = compare(found, found, [(name, "none") for name in summary.index], Policy({REST: Asked()}).rule)
    checked = 0
    for each in compared.comparisons:
        if each.found is not None and isinstance(each.found.after, float):
            assert summary.loc[each.strategy, each.metric] == each.found.after
            checked += 1
    assert checked > 40
    assert summary["cost(claude-sonnet-5)"].gt(0).all()


def test_summary_says_what_is_missing(run: Run) -> None:
    """NaN, never 0: nothing was summarised here."""
    assert run.summary().survival.isna().all()
    assert run.summary().saving["none"] == 0


def test_figures_are_over_what_all_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that one strategy did not finish counts for none, in the summary and in the growth."""
    path = recording(tmp_path, conversations=4, turns=4)
    fail(monkeypatch, Window, "question 1")
    execute(plan(path), tmp_path / "run")
    run = ctxbench.harness.load(tmp_path / "run")
    steps = steps_of(run)
    kept = steps[steps.conversation != "c1"]
    assert run.summary().tokens_sent["none"] == kept[kept.strategy == "none"].tokens_sent.sum()
    assert run.growth().equals(figures.growth(kept))
    fail(monkeypatch, Window, "question")
    execute(plan(path), tmp_path / "run", overwrite=True)
    run = ctxbench.harness.load(tmp_path / "run")
    assert run.summary().loc["window(max_tokens=400)"].isna().all()
    assert run.summary().tokens_sent["none"] == steps[steps.strategy == "none"].tokens_sent.sum()
    assert np.isfinite(run.growth().tokens_sent).all()


def test_bill(run: Run) -> None:
    """A row for each conversation, strategy and model; the whole history costs what it is compared with."""
    bills = run.bill("claude-sonnet-5", "gpt-5.6")
    assert len(bills) == 5 * 3 * 2
    none = bills[bills.strategy == "none"]
    assert none.cost.equals(none.base)
