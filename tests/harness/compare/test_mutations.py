"""Twelve planted regressions of strategies and metrics fail the gate and are named; three changes of nothing pass."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ctxbench
from ctxbench.metrics.cache.mechanisms import AutomaticRules
from ctxbench.metrics.structure import Structure
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.strategies import retrieval
from ctxbench.strategies.archive.store import ResultTable
from ctxbench.strategies.parts.summarize import Summariser
from ctxbench.strategies.window import Window
from tests.judging import GATE, PAGE, Case, row, takes_another

MINE = '''
def _users(messages):
    return [at for at, message in enumerate(messages) if message["role"] == "user"]

def mine(messages, turns=3):
    """Send the system messages and the newest turns."""
    first = (_users(messages)[-turns:] or [0])[0]
    return [m for at, m in enumerate(messages) if at >= first or m["role"] == "system"]
'''
SHIPPED = {
    "none": "none",
    "mine": "my.py:mine",
    "window": "window(max_tokens=1500)",
    "recall": "retrieval(limit=10, recent=1)",
    "store": "archive(threshold=1000, trigger='keyword') | cache_marks",
    "marks": "cache_marks(min_tokens=256)",
    "digest": "summary(threshold=6)",
}
MODELS = ("claude-sonnet-5", "gpt-4o")
KEPT = ("coding/en-0-2", "research/en-0-1", "customer_service/en-0-4", "docs_qa/en-0-1", "traps/parallel_tool_calls")


class Project:
    """A folder with recordings, a strategy in a file, and the baseline of what is shipped."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, 0
        (folder / "some.jsonl").write_bytes(
            b"".join(each.to_json() + b"\n" for each in scenario("smoke") if each.id in KEPT)
        )
        self.mine(MINE)
        self.run().write_baseline(folder / "baseline.json")

    def mine(self, text: str) -> None:
        (self.folder / "my.py").write_text(text)

    def run(self, *names: str, jobs: int = 1, **changed: str) -> ctxbench.BenchmarkRun:
        """Run what is shipped, or some of it, with changed settings under the same names."""
        self.runs += 1
        shipped = {name: spec for name, spec in {**SHIPPED, **changed}.items() if name in (names or SHIPPED)}
        specs = [f"{name}={spec.replace('my.py', str(self.folder / 'my.py'))}" for name, spec in shipped.items()]
        out = self.folder / f"run{self.runs}"
        return ctxbench.run(self.folder / "some.jsonl", strategies=specs, model=MODELS, out=out, jobs=jobs)

    def gate(self, *names: str, jobs: int = 1, **changed: str) -> Any:
        """The gate's answer, for some of the strategies."""
        policy = self.folder / "policy.toml"
        policy.write_text(f"strategies = {list(names or SHIPPED)}\n")
        return self.run(*({"none", *names} if names else ()), jobs=jobs, **changed).gate(
            self.folder / "baseline.json", policy=policy
        )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


def fails(answer: Any, name: str, metric: str) -> None:
    """The first line and the table name the strategy and a metric."""
    text = str(answer)
    assert answer.result == "fails", text
    assert re.search(rf"The gate FAILS: .*\b{name}\b", text), text
    assert re.search(rf"^{re.escape(metric)} +{name}\b", text, re.MULTILINE), text


@pytest.mark.parametrize("case", GATE, ids=lambda case: case.name)
def test_what_is_said_now_is_right(project: Project, case: Case) -> None:
    """The planted changes that once passed: they fail, are named, and stand in docs/judging.md."""
    now = case.now(project)
    assert now[1], now[0]
    assert row(case, now) in PAGE.read_text()


def test_a_window_that_starts_anywhere(project: Project) -> None:
    now = takes_another("window", Window, "user_first", 0, "no user message")(project)
    assert now[1], now[0]


def test_a_private_function_has_another_name(project: Project) -> None:
    """The file has another digest, and sends the same."""
    project.mine(MINE.replace("_users", "_questions"))
    assert project.gate("mine").passes
    project.mine(MINE)


def test_workers_change_nothing(project: Project) -> None:
    """Two write the same figures as one."""
    assert project.gate("window", jobs=2).passes


def plant(patch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Have a function return something else."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(original(*given, **named)))


def test_an_archive_that_drops_its_last_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    save = ResultTable.save
    monkeypatch.setattr(ResultTable, "save", lambda self, card, text: save(self, card, text.rpartition("\n")[0]))
    fails(project.gate("store"), "store", "tokens sent")


def test_a_summary_that_loses_numbers(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Summariser, "write", lambda text: re.sub(r"\d", "", text))
    fails(project.gate("digest"), "digest", "fact survival")


def test_a_cache_rule_off_by_one_block(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    read = AutomaticRules.read
    monkeypatch.setattr(AutomaticRules, "read", lambda self, shared: read(self, shared - (self.block or self.step)))
    fails(project.gate("window"), "window", "cost")


def test_a_price_doubled(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project.folder / "prices.toml"
    file.write_text('[models."claude-sonnet-5"]\ninput = 6\noutput = 30\n')
    monkeypatch.setenv("CTXBENCH_PRICES", str(file))
    answer = project.gate("window")
    assert answer.result == "fails"
    assert "The gate FAILS: cost (claude-sonnet-5), " in str(answer)
    assert re.search(r"^cost +window .*\+[\d.]+ % +incomparable", str(answer), re.MULTILINE)


def test_results_without_their_calls(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Structure, "whole", lambda self, messages: messages)
    fails(project.gate("window"), "window", "rejected by OpenAI")


def test_tokens_counted_twice(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, TokenCounter, "message", lambda tokens: tokens + 1)
    fails(project.gate("none"), "none", "tokens sent")


def test_the_worst_memories(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    best = retrieval.best
    monkeypatch.setattr(retrieval, "best", lambda scores, size: best(-scores, size))
    fails(project.gate("recall"), "recall", "context recall")
