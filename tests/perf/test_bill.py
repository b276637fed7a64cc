"""`make perf`: what the bill takes, beside the run that it is made of."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from ctxbench.harness.bill.bill import bill
from ctxbench.harness.bill.simulation import Scheme
from ctxbench.harness.engine.plan import Plan, RunInputs, default_strategies, execute
from ctxbench.harness.folder.run import load
from tests.conftest import RECORDINGS

pytestmark = pytest.mark.perf
Bench = Any
MODELS = (
    *("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5", "claude-opus-4-7", "gpt-4o", "gpt-4.1", "gpt-5.4"),
    *("gpt-5.6", "deepseek-chat", "deepseek-v4-pro", "gemini-2.5-pro", "gemini-3.8-flash"),
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    folders = ("openhands", "mini-swe-agent", "pi-sessions", "tau-bench")
    names = [str(RECORDINGS / name) for name in folders] if RECORDINGS.is_dir() else ["standard"]
    inputs = RunInputs(tuple(names))
    return Plan(inputs, default_strategies(inputs)[0])


@pytest.mark.benchmark(group="the bill of a run for twelve models, and the run on one worker (asked: a tenth)")
class TestBill:
    def test_the_run(self, benchmark: Bench, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> None:
        """All standard strategies, measured and stored."""
        folder = tmp_path_factory.getbasetemp() / "billed"
        benchmark.pedantic(execute, (plan, folder), rounds=1)

    def test_the_bill(self, benchmark: Bench, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Read from its folder, every call and conversation."""
        folder: Path = tmp_path_factory.getbasetemp() / "billed"

        def whole() -> None:
            bill(load(folder), [Scheme(model) for model in MODELS]).conversations()

        def setup() -> None:
            rmtree(folder / "bills", ignore_errors=True)

        benchmark.pedantic(whole, setup=setup, rounds=3)
