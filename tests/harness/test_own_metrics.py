"""Metrics of the user's own, declared with `@ctxbench.metric`: measured with all others, by the function's name."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ctxbench
from ctxbench.harness.export.bench import bench
from ctxbench.metrics.figures import OWN
from ctxbench.metrics.value import Missing
from tests.harness.command import ctxbench as command

FILE = """
import ctxbench

FROM = 0

@ctxbench.metric(unit="tokens", better="lower")
def longest_call(steps):
    "Tokens of the longest call."
    return steps.tokens_sent[FROM:].max()

@ctxbench.metric(better="higher")
def broken(steps):
    return steps.no_such_column.sum()
"""


@pytest.fixture(autouse=True)
def undeclared() -> Iterator[None]:
    """No metric outlives its test."""
    yield
    OWN.clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ctxbench.BenchmarkRun:
    """A run of two strategies."""
    folder = tmp_path_factory.mktemp("own") / "run"
    return ctxbench.run("smoke", strategies=["none", "last_turn"], out=folder)


def longest(steps: Any) -> Any:
    return steps.tokens_sent.max()


def declared(of: Callable[..., Any], name: str, better: Any = "lower", **about: Any) -> Callable[..., Any]:
    """Declare a function under a name."""
    of.__name__ = name
    return ctxbench.metric(better=better, **about)(of)


def test_each_table_that_a_function_may_take(made: ctxbench.BenchmarkRun) -> None:
    """Steps, probes, answers, and what was sent: the mean over the conversations, in the summary by its name."""
    for table in ("steps", "probes", "answers", "contexts"):
        declared(lambda rows: len(rows) or None, f"of_{table}", table=table)
    summary, steps, probes = made.summary(), made.table("steps"), made.table("probes")
    assert summary.of_steps.tolist() == summary.of_contexts.tolist() == [len(steps) / 2 / 25] * 2
    assert summary.of_probes["none"] == (probes.strategy == "none").sum() / probes.conversation.nunique()
    assert summary.of_answers.tolist() == summary.of_probes.tolist()


def test_it_stands_wherever_metrics_stand(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """Comparisons by its name or its function, the report's tables and page, and what trackers are sent."""
    function = declared(longest, "longest_call", unit="tokens")
    assert "longest_call" in set(made.compare().metric)
    for given in ("longest_call", function, [function]):
        assert made.compare(metrics=given).better_in.tolist() == [20]
    assert "longest call" in made.report(tmp_path).read_text("utf-8")
    assert "| longest call" in (tmp_path / "report.md").read_text("utf-8")
    assert (tmp_path / "tables" / "own_metrics.csv").read_text().startswith("strategy,longest_call\nnone,")
    assert all("longest_call" in entry.numbers for entry in bench(made.reader).entries)


def test_a_file_on_the_command_line(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """`compare`, `gate` and `report` take FILE.py:NAME; what its file uses is part of its version."""
    file = tmp_path / "own.py"
    file.write_text(FILE)
    name, run = "own.py:longest_call", made.folder

    def said(*words: object, code: int = 0) -> str:
        done = command(*words, cwd=tmp_path, code=code)
        return done.stdout + done.stderr

    assert "longest call" in said("compare", run, "--metric", name)
    said("gate", run, "--update", "-b", "b.json")
    assert "longest_call is not in it" in said("gate", run, "-b", "b.json", "--metric", name, code=2)
    assert "unknown metric 'longest'" in said("gate", run, "--update", "--metric", "longest", code=2)
    said("gate", run, "--update", "-b", "b.json", "--metric", name)
    assert "The gate passes" in said("gate", run, "-b", "b.json", "--metric", name)
    assert "--metric FILE.py:longest_call" in said("gate", run, "-b", "b.json", code=2)
    figures = json.loads(said("report", run, "--json", "--metric", name))["own_metrics"]
    assert figures["none"]["longest_call"] > figures["last_turn"]["longest_call"]
    for words in ((), ("--all",)):
        assert "Your own metrics" in said("report", run, "--print-only", "--metric", name, *words)
    assert "unknown metric 'longest'" in said("report", run, "--print-only", "--metric", "longest", code=2)
    assert "has no metric 'FROM'" in said("compare", run, "--metric", "own.py:FROM", code=2)
    broken = said("compare", run, "--metric", "own.py:broken", "--metric", name)
    assert "warning: metric broken (own.py:13): AttributeError" in broken
    assert "Incomparable: broken (metric broken (own.py:13): AttributeError" in broken
    assert "longest call" in broken
    assert "Nothing could be compared." in said("compare", run, "--metric", "own.py:broken")
    assert "(your own is FILE.py:NAME)" in said("compare", run, "--metric", "longest_cal", code=2)
    for command_name in ("gate", "report"):
        (tmp_path / "ctxbench.toml").write_text(f'[{command_name}]\nmetric = ["{name}"]\n')
        assert "runs code" in said(command_name, run, code=2)
    file.write_text(FILE.replace("FROM = 0", "FROM = 1"))
    failed = said("gate", run, "-b", "b.json", "--metric", name, code=1)
    assert "Incomparable: longest_call" in failed
    assert f"--update --baseline b.json --metric {name}" in failed
    assert "may get worse" not in failed  # no policy makes figures of two versions comparable


@pytest.mark.filterwarnings("ignore:metric bad")
def test_one_that_fails_takes_no_other_figure_with_it(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """It is missing everywhere, with its line, what it raised and where; everything else is measured."""
    good, bad = declared(longest, "good"), declared(lambda _: 7, "bad")
    baseline = made.write_baseline(tmp_path / "b.json")
    assert made.gate(baseline).passes
    bad = declared(lambda steps: 1 / (steps.conversation.iloc[0] != "coding/en-0-2"), "bad")
    why = r"metric bad \(test_own_metrics.py:\d+\): Zero.* by zero, in coding/en-0-2 under none"
    with pytest.warns(UserWarning, match=why):
        summary = made.summary()
    assert summary.bad.isna().all()
    assert summary.good.notna().all()
    assert made.compare(metrics=bad).verdict.tolist() == ["incomparable"]
    assert re.search(why, made.compare(metrics=[bad, good]).why[1])
    assert re.search(f"Failed: {why}", (made.report(tmp_path / "report").parent / "report.md").read_text("utf-8"))
    assert re.search(why, bench(made.reader).entries[0].missing["bad"])
    gate = made.gate(baseline)
    assert re.search(why, gate.comparisons.set_index("verdict").why["lost"].iloc[0])
    baseline = made.write_baseline(baseline)  # without it
    assert list(made.summary(metrics=["tokens_sent", good])) == ["tokens_sent", "good"]
    assert made.summary("gpt-4o", metrics="cost(gpt-4o)").shape == (2, 1)
    assert made.compare(metrics=good).metric.tolist() == ["good"]
    assert made.gate(baseline).passes
    assert str(made.verdict())
    with pytest.raises(ctxbench.UserError, match="unknown metric 'goood'; did you mean 'good'"):
        made.summary(metrics="goood")


def test_a_function_stands_for_its_own_metric(made: ctxbench.BenchmarkRun) -> None:
    """It is measured though another function of its name was declared later, and refused if it declares none."""
    one, _ = declared(longest, "mine"), declared(lambda _: 7, "mine")
    assert made.summary().mine.tolist() == [7, 7]
    assert made.summary(metrics=one).mine["none"] > 7
    with pytest.raises(ctxbench.UserError, match="declared is no metric: write @ctxbench"):
        made.compare(metrics=declared)


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: declared(longest, "answer_quality"), "answer_quality: is a name that ctxbench uses"),
        (lambda: declared(longest, "strategy"), "strategy: is a name that ctxbench uses"),
        (lambda: ctxbench.metric(better="lower")(lambda steps: 1), "write it with def"),
        (lambda: declared(longest, "mine", better="bigger"), "'bigger': give one of 'lower', 'higher', ''"),
        (lambda: ctxbench.metric(longest), r'write @ctxbench.metric\(better="lower"\)'),
        (lambda: ctxbench.metric(unit="tokens"), r'write @ctxbench.metric\(better="lower"\)'),
    ],
)
def test_a_mistake_is_said_where_it_is_declared(declare: Callable[[], Any], said: str) -> None:
    """A name that is taken, what is no function, and what does not say which way is better."""
    with pytest.raises(ctxbench.UserError, match=said):
        declare()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda steps: 10**400, r"metric mine \(test_own_metrics.py:\d+\): OverflowError"),
        (lambda steps: steps.no, r"metric mine \(test_own_metrics.py:\d+\): AttributeError"),
        (lambda steps: "x", "metric mine: returned a str: return a number, None or Missing"),
        (lambda: 1, r"metric mine .*TypeError.* takes 0 positional"),
    ],
)
def test_a_mistake_is_said_where_it_is_measured(
    made: ctxbench.BenchmarkRun, function: Callable[..., Any], said: str
) -> None:
    """One warning has the user's own line."""
    declared(function, "mine")
    with pytest.warns(UserWarning, match=said):
        assert made.summary().mine.isna().all()


def test_what_is_missing_counts_in_no_mean(made: ctxbench.BenchmarkRun, tmp_path: Path) -> None:
    """The mean is over the conversations that have a number; it is missing where none has, and compared with why."""
    for value in (None, Missing("undefined", "why"), float("nan")):
        declared(lambda steps, value=value: 2 if steps.conversation.iloc[0] == "coding/en-0-2" else value, "two")
        assert made.summary().two.tolist() == [2, 2]
    for value in (None, float("nan")):
        two = declared(lambda _, value=value: value, "two")
        assert made.summary().two.isna().all()
        assert made.gate(made.write_baseline(tmp_path / "b.json")).passes
        [row] = made.compare(metrics=two).itertuples()
        why = f"no value in any conversation: two returned {value}"
        assert (row.verdict, row.why) == ("incomparable", why)
    declared(lambda answers: answers.correct.mean(), "right", table="answers")
    asked = ctxbench.run("smoke", strategies=["none", "last_turn"], answers=False)
    [row] = asked.compare(metrics="right").itertuples()
    assert row.why == "the run has no answers to measure it by"
