"""`make perf`: what the bill takes, beside the run that it is made of, and a step of all models."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from ctxbench.cli.run import default_strategies
from ctxbench.harness.bill.bill import bill
from ctxbench.harness.bill.simulation import FOLDER, Scheme
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.cache.prefixes import CacheMark
from ctxbench.metrics.cache.requests import MessageSizes, RequestStep, requests
from ctxbench.metrics.cache.rules import cache_of, rule_for
from tests.conftest import RECORDINGS

pytestmark = pytest.mark.perf
Bench = Any
MODELS = (
    *("claude-sonnet-5", "claude-opus-5", "claude-haiku-4-5", "claude-opus-4-7", "gpt-4o", "gpt-4.1", "gpt-5.4"),
    *("gpt-5.6", "deepseek-chat", "deepseek-v4-pro", "gemini-2.5-pro", "gemini-3.8-flash"),
)
STEPS = 1900


@pytest.mark.benchmark(group="twelve models over 1,900 steps that keep their prefix (asked: 20 µs each, 38 ms)")
def test_a_step_of_all_models(benchmark: Bench) -> None:
    """The requests made, and each distinct rule's cache asked."""
    roles = ("system", *("user", "assistant", "tool", "assistant") * 1000)
    messages = MessageSizes((200,) * len(roles), roles, 500)
    steps = []
    for number in range(STEPS):
        seen, upto = max(0, 2 * number), 2 + 2 * number
        added = [(seen, upto)]
        steps.append(RequestStep(seen, added, (), 503 + 200 * upto, (), 10.0 * number, 10.0 * number + 2, upto, 200))
    rules = {rule.rules for model in MODELS if (rule := rule_for(model, None)) and rule.rules}

    def every() -> None:
        caches = [cache_of(each).request for each in rules]
        for request in requests(steps, messages):
            request.marks = (CacheMark(len(request.prefixes) - 1),)
            for ask in caches:
                ask(request)

    benchmark.pedantic(every, rounds=9, warmup_rounds=1)


@pytest.fixture(scope="module")
def plan() -> Plan:
    folders = ("openhands", "mini-swe-agent", "pi-sessions", "tau-bench")
    names = [str(RECORDINGS / name) for name in folders] if RECORDINGS.is_dir() else ["standard"]
    return Plan(RunInputs(tuple(names)), default_strategies())


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
            rmtree(folder / FOLDER, ignore_errors=True)

        benchmark.pedantic(whole, setup=setup, rounds=3)

    def test_the_bill_again(self, benchmark: Bench, tmp_path_factory: pytest.TempPathFactory) -> None:
        """What was simulated before is read."""
        folder: Path = tmp_path_factory.getbasetemp() / "billed"
        schemes = [Scheme(model) for model in MODELS]
        benchmark.pedantic(lambda: bill(load(folder), schemes).conversations(), rounds=3)
