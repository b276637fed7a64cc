"""A run as data frames, as a notebook has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ctxbench.harness import api
from ctxbench.harness.compare.compare import compare
from ctxbench.harness.compare.figures import measured
from ctxbench.harness.compare.gate import REST, GatePolicy, MetricPolicy
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, rows_of, steps_of
from ctxbench.metrics import figures
from ctxbench.strategies.window import Window
from tests.harness.runs import fail, plan, recording


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of five conversations and three strategies."""
    folder = tmp_path_factory.mktemp("frames")
    execute(plan(recording(folder, conversations=5, turns=6)), folder / "run")
    return api.load(folder / "run")


def test_the_package_is_imported_without_pandas() -> None:
    """`ctxbench --help` imports the package and must be quick; pandas comes with `api`, not before."""
    code = (
        "import sys; import ctxbench.harness; assert 'pandas' not in sys.modules;"
        "from ctxbench.harness import api; assert api.load; assert 'pandas' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_summary_is_what_compare_has(run: Run) -> None:
    """A row a strategy in the run's order, each figure to the last digit."""
    summary = api.summary(run, "claude-sonnet-5")
    assert tuple(summary.index) == run.manifest.plan.strategies
    found = measured(run, rows_of, ["claude-sonnet-5"])
    compared = compare(
        found, found, [(name, "none") for name in summary.index], GatePolicy({REST: MetricPolicy()}).rule
    )
    checked = 0
    for each in compared.comparisons:
        if each.found is not None and isinstance(each.found.after, float):
            assert summary.loc[each.strategy, each.metric] == each.found.after
            checked += 1
    assert checked > 40
    assert summary["cost(claude-sonnet-5)"].gt(0).all()


def test_summary_says_what_is_missing(run: Run) -> None:
    """NaN, never 0: nothing was summarised here."""
    assert api.summary(run).survival.isna().all()
    assert api.summary(run).saving["none"] == 0


def test_figures_are_over_what_all_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that one strategy did not finish counts for none, in the summary and in the growth."""
    path = recording(tmp_path, conversations=4, turns=4)
    fail(monkeypatch, Window, "question 1")
    execute(plan(path), tmp_path / "run")
    run = api.load(tmp_path / "run")
    steps = steps_of(run)
    kept = steps[steps.conversation != "c1"]
    assert api.summary(run).tokens_sent["none"] == kept[kept.strategy == "none"].tokens_sent.sum()
    assert api.growth(run).equals(figures.growth(kept))
    fail(monkeypatch, Window, "question")
    execute(plan(path), tmp_path / "run", overwrite=True)
    run = api.load(tmp_path / "run")
    assert api.summary(run).loc["window(max_tokens=400)"].isna().all()
    assert api.summary(run).tokens_sent["none"] == steps[steps.strategy == "none"].tokens_sent.sum()
    assert np.isfinite(api.growth(run).tokens_sent).all()


def test_bill(run: Run) -> None:
    """A row for each conversation, strategy and model; the whole history costs what it is compared with."""
    bills = api.bill(run, "claude-sonnet-5", "gpt-5.6")
    assert len(bills) == 5 * 3 * 2
    none = bills[bills.strategy == "none"]
    assert none.cost.equals(none.base)
