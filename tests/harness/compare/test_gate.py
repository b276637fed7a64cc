"""When the gate passes, when it fails, and when it cannot say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.harness.compare.figures import About
from ctxbench.harness.compare.gate import CODES, GatePolicy, MetricPolicy, gate, read_policy
from ctxbench.metrics.statistics.comparison import Margin
from ctxbench.scenarios.errors import SetupError
from tests.harness.compare.builders import ABOUT, made

TOKENS = [100.0, 250, 80, 400, 120, 90]
MORE = [each * 1.05 for each in TOKENS]
RUN = made({"a": {"tokens_sent": TOKENS}, "b": {"tokens_sent": TOKENS}})


@pytest.mark.parametrize(
    ("tokens", "policy", "result"),
    [
        (TOKENS, GatePolicy(), "passes"),
        (MORE, GatePolicy(), "fails"),
        (MORE, GatePolicy({"tokens_sent": MetricPolicy(relative=0.1)}), "passes"),
        (MORE, GatePolicy({"tokens_sent": MetricPolicy(better="higher")}), "passes"),
        (MORE, GatePolicy(strategies=("b",)), "passes"),
        (MORE, GatePolicy({"grounding": MetricPolicy()}), "must be mended"),
        ([each * 0.9 for each in TOKENS], GatePolicy(), "passes"),
        ([*TOKENS[:5], 190.0], GatePolicy(), "passes"),
        ([*TOKENS[:5], 190.0], GatePolicy(cannot_tell="fail"), "fails"),
        ([*TOKENS[:5], 190.0], GatePolicy({"tokens_sent": MetricPolicy(each=50)}), "fails"),
        ([*TOKENS[:5], 190.0], GatePolicy({"tokens_sent": MetricPolicy(each=100)}), "passes"),
        ([*TOKENS[:5], None], GatePolicy(), "fails"),
    ],
)
def test_results(tokens: list[float], policy: GatePolicy, result: str) -> None:
    """By what became of one of two strategies: the same, 5 % more tokens, 10 % fewer, twice as many in one of six
    conversations, no figure in one."""
    found = gate(RUN, made({"a": {"tokens_sent": tokens}, "b": {"tokens_sent": TOKENS}}), policy)
    assert found.result == result
    assert list(CODES.values()) == [0, 1, 2]


def test_a_strategy_that_is_gone_fails() -> None:
    """Unless the policy does not guard it; one that is new passes, and is named."""
    less = made({"a": {"tokens_sent": TOKENS}})
    assert gate(RUN, less, GatePolicy()).result == "fails"
    assert gate(RUN, less, GatePolicy(strategies=("a",))).result == "passes"
    assert gate(less, RUN, GatePolicy(strategies=("b",))).result == "must be mended"
    found = gate(less, RUN, GatePolicy())
    assert found.result == "passes"
    assert [(each.word, each.names) for each in found.compared.unpaired] == [("new", ("b",))]


def test_a_metric_that_is_gone_fails() -> None:
    """A measurement that was there is not passed over; a new one passes."""
    both = made({"a": {"tokens_sent": TOKENS, "grounding": [(1, 2)] * 6}})
    one = made({"a": {"tokens_sent": TOKENS}})
    assert gate(both, one, GatePolicy()).result == "fails"
    assert gate(one, both, GatePolicy()).result == "passes"
    assert gate(both, one, GatePolicy({"tokens_sent": MetricPolicy()})).result == "passes"
    assert gate(both, one, GatePolicy({"tokens_sent": MetricPolicy()})).not_guarded == ("grounding",)


def test_what_is_incomparable_must_be_mended() -> None:
    """Another version of a metric, another recording under a name: but what fails is said first."""
    other = replace(RUN, metrics={"tokens_sent": About("tokens", "lower", "total", "2")})
    assert gate(RUN, other, GatePolicy()).result == "must be mended"
    changed = replace(RUN, digests={**RUN.digests, "c0": "of something else"})
    assert gate(RUN, changed, GatePolicy()).result == "must be mended"
    worse = made({"a": {"tokens_sent": MORE}, "b": {"tokens_sent": TOKENS}})
    assert gate(RUN, replace(worse, digests=changed.digests), GatePolicy()).result == "fails"


def policy(folder: Path, text: str) -> GatePolicy:
    file = folder / "gate.toml"
    file.write_text(text)
    return read_policy(file, list(ABOUT), ["a", "summary(every=5)"])


def test_a_policy_file(tmp_path: Path) -> None:
    """What it says is what is asked; metrics that it does not name are guarded by `*` alone."""
    found = policy(
        tmp_path,
        """
        cannot_tell = "fail"
        strategies = ["a"]
        [metrics.grounding]
        absolute = 0.02
        each = 0.2
        [metrics."cost(claude-sonnet-5)"]
        relative = 0.05
        [metrics.steps]
        better = "lower"
        """,
    )
    assert (found.cannot_tell, found.strategies) == ("fail", ("a",))
    rule = found.rule("grounding", ABOUT["grounding"])
    assert rule is not None
    assert (rule.margin, rule.each) == (Margin(0.02), 0.2)
    cost = found.rule("cost(claude-sonnet-5)", ABOUT["cost(claude-sonnet-5)"])
    assert cost is not None
    assert cost.margin == Margin(0.05, relative=True)
    assert found.rule("tokens_sent", ABOUT["tokens_sent"]) is None
    assert policy(tmp_path, '[metrics."*"]').rule("tokens_sent", ABOUT["tokens_sent"]) is not None
    assert policy(tmp_path, "") == GatePolicy()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[metrics.groundng]", r"gate.toml:1: metrics.groundng: unknown metric; did you mean 'grounding'"),
        ("\n[metrics.latency_p50]", r"gate.toml:2: .*wall clock"),
        ("[metrics.steps]", r"has no direction of its own \(add better"),
        ("[metrics.grounding]\nabsolute = 0.1\nrelative = 0.1", r"gate.toml:3: .*absolute margin as well"),
        ("[metrics.grounding]\nabsolute = -1", r"gate.toml:2: metrics.grounding.absolute: expected float >= 0.0"),
        ("[metrics.grounding]\nabsolute = nan", "expected float >= 0.0"),
        ("[metrics.grounding]\nmargin = 1", r"metrics.grounding.margin: unknown key"),
        ("[metrics.grounding]\nabsolute = '1 %'", r"must be a number, not text"),
        ("cannot_tell = 'maybe'", r"gate.toml:1: cannot_tell: invalid enum value 'maybe'"),
        ("strategies = ['summary']", r"gate.toml:1: strategies: 'summary' was not run; .*summary\(every=5\)"),
        ("strategies = ['']", r"gate.toml:1: strategies: '' was not run"),
        ("[metrics", "gate.toml:1: not TOML"),
    ],
)
def test_bad_policies(tmp_path: Path, text: str, said: str) -> None:
    """One error, with the line, what is wrong and what was meant."""
    with pytest.raises(SetupError, match=said):
        policy(tmp_path, text)
