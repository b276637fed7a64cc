"""The tables of the probes: over the same probes for all, missing with a reason, by kind where that is wanted."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ctxbench.metrics.figures import OF_PROBES, fixed
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Interval
from ctxbench.metrics.value import Missing
from ctxbench.reports.probes import probes_of
from ctxbench.reports.probes import tables as probe_tables
from ctxbench.reports.render import plain
from ctxbench.reports.results import summarise
from ctxbench.reports.tables import tables
from ctxbench.scenarios.model import Probe
from tests.harness.command import ctxbench
from tests.harness.probes.probe_strategies import PLUGIN, asking, run, some

GATE = Probe("gate", "Which code in turn 3?", ("K300",), ("m7",), category="single_hop")
NOBODY = Probe("nobody", "Who won?", category="unanswerable", answerable=False)
BOTH = Probe("both", "Turns 0 and 9?", ("K999",), ("m1", "m19"), category="multi_hop")


def test_figures_by_hand(tmp_path: Path) -> None:
    """Of two probes with evidence the window keeps one of three messages: (0 + ½) / 2, and one answer of one."""
    made = run(tmp_path / "run", asking(GATE, NOBODY, BOTH), "none", "window(messages=2)", "retrieval(recent=1)")
    found = summarise(made).probes
    assert found is not None
    assert (found.asked, found.compared, found.without_evidence) == (3, 1, 1)
    window = found.strategies["window(messages=2)"]
    assert window["context_recall"] == pytest.approx((0 + 0.5) / 2)
    assert window["answer_in_context"] == 0.0
    assert window["evidence_absent"] == pytest.approx((1 + 0.5) / 2)
    assert found.bounds["evidence_only"]["context_recall"] == 1.0
    assert found.kinds["single_hop"]["none"]["context_recall"] == 1.0
    nobody = found.kinds["unanswerable"]["none"]
    assert nobody["context_recall"] == Missing("undefined", "no probe rests on what was said")
    assert list(found.retrieval) == ["retrieval(recent=1)"]
    assert found.retrieval["retrieval(recent=1)"]["all"]["recall@10"] > 0  # type: ignore[operator]
    assert isinstance(found.retrieval["retrieval(recent=1)"]["unanswerable"]["MRR"], Missing)
    assert found.context_recall_interval["window(messages=2)"].low.why == "few"  # type: ignore[union-attr]


def test_what_is_so_by_construction_has_no_interval(tmp_path: Path) -> None:
    """`none`, `cache_marks` and the ceiling send all evidence in any recording: 100 %, without an interval. Every value
    that is declared fixed is what a run measures."""
    made = run(tmp_path / "run", some(), "none", "cache_marks", "window(messages=2)")
    summary = summarise(made)
    assert summary.probes is not None
    for name in ("none", "cache_marks", "evidence_only"):
        assert summary.probes.context_recall_interval[name] == Interval(1.0, BY_CONSTRUCTION, BY_CONSTRUCTION)
    window = summary.probes.context_recall_interval["window(messages=2)"]
    assert isinstance(window, Interval)
    assert isinstance(window.low, Missing)
    shown = plain(list(probe_tables(summary.probes)))
    assert "Fixed: it is so by construction" in shown
    assert "[0.0 to 50.0 %]" in shown
    assert "[ ] is the range over conversations, no interval: 3 independent conversations are too few" in shown
    assert "85.7 to 100" not in shown
    measured = {**summary.strategies, "evidence_only": {}}
    for name, values in measured.items():
        probes = summary.probes.bounds if name == "evidence_only" else summary.probes.strategies
        for metric, value in {**values, **{key: probes[name][key] for key in OF_PROBES}}.items():
            expected = fixed(metric, name)
            assert expected is None or value == expected, (metric, name)


def test_a_strategy_that_fails_a_probe_is_compared_elsewhere(tmp_path: Path) -> None:
    """Its conversation is left out for all, and said; one that fails every probe takes no part."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    one, other = asking(replace(GATE, question="boom?")), replace(asking(GATE), id="other")
    never = f"{tmp_path}/mine.py:Counts(fails_on='?')"
    made = run(tmp_path / "run", [one, other], "none", f"{tmp_path}/mine.py:Counts(fails_on='boom')", never)
    found = probes_of(made, frozenset(), [])
    assert found is not None
    assert (found.conversations, found.compared) == (2, 1)
    assert len(found.strategies) == 2
    assert found.strategies["none"]["probes"] == 1
    assert {row["detail"].partition(" (")[0] for row in found.failed} == {"ValueError: no idea"}
    assert len(found.failed) == 3
    titles = [table.title for table in tables(summarise(made))]
    assert "Probes without a context" in titles


def test_as_a_user_sees_it(tmp_path: Path) -> None:
    """The command line: the table by kind, and what was sent for one question."""
    (tmp_path / "chat.jsonl").write_bytes(asking(GATE, NOBODY, BOTH).to_json() + b"\n")
    ctxbench("run", "chat.jsonl", "-s", "none", "-s", "window(messages=2)", "-o", "r", cwd=tmp_path)
    assert "single_hop" in ctxbench("report", "r", "--all", cwd=tmp_path).stdout
    shown = ctxbench("show", "r", "1", "--probe", "both", "-s", "window(messages=2)", cwd=tmp_path).stdout
    assert "probe both (multi_hop): Turns 0 and 9?" in shown
    assert "accepted: K999" in shown
    assert "m1 absent · m19 verbatim" in shown
    assert "question Turns 0 and 9?" in shown
    assert "not in context" in shown


@pytest.mark.parametrize(
    ("metric", "strategy", "value"),
    [
        ("context_recall", "cache_marks(ttl='1h')", 1.0),
        ("context_recall", "cache_marks | window(max_tokens=100)", None),
        ("context_recall", "window(max_tokens=100)", None),
        ("cost_saving(gpt-4o)", "none", 0.0),
        ("cost_saving(gpt-4o)", "cache_marks", None),
        ("overflows", "none", None),
    ],
)
def test_what_is_fixed(metric: str, strategy: str, value: float | None) -> None:
    """By metric and strategy, whatever the parameters; a chain may drop what its first part keeps."""
    assert fixed(metric, strategy) == value
