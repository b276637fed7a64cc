"""When the gate passes, and when it fails."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.harness.compare.compare import ComparisonRule
from ctxbench.harness.compare.figures import About
from ctxbench.harness.compare.gate import GatePolicy, MetricPolicy, gate, read_policy
from ctxbench.metrics.statistics.comparison import Margin, Verdict
from ctxbench.scenarios.errors import RunError, SetupError
from tests.harness.compare.builders import ABOUT, made

TOKENS = [100.0, 250, 80, 400, 120, 90]
MORE, FEWER = ([each * share for each in TOKENS] for share in (1.05, 0.9))
ONE_MORE, TWICE = [*TOKENS[:5], 91.0], [*TOKENS[:5], 190.0]
RUN = made({"a": {"tokens_sent": TOKENS}, "b": {"tokens_sent": TOKENS}})


@pytest.mark.parametrize(
    ("tokens", "policy", "result"),
    [
        (TOKENS, GatePolicy(), "passes"),
        (ONE_MORE, GatePolicy(), "fails"),
        (MORE, GatePolicy({"tokens_sent": MetricPolicy(relative=0.1)}), "passes"),
        (MORE, GatePolicy({"tokens_sent": MetricPolicy(relative=0.04)}), "fails"),
        (MORE, GatePolicy({"tokens_sent": MetricPolicy(better="higher")}), "passes"),
        (MORE, GatePolicy(strategies=("b",)), "passes"),
        (MORE, GatePolicy({"grounding": MetricPolicy()}), "fails"),
        (MORE, GatePolicy({"*": MetricPolicy(relative=0.1)}), "passes"),
        (FEWER, GatePolicy(), "passes"),
        (TWICE, GatePolicy({"tokens_sent": MetricPolicy(each=50)}), "fails"),
        (TWICE, GatePolicy({"tokens_sent": MetricPolicy(each=100)}), "passes"),
        (TWICE, GatePolicy({"tokens_sent": MetricPolicy(each=100, relative=0.05)}), "fails"),
        (TWICE, GatePolicy({"tokens_sent": MetricPolicy(absolute=100)}), "passes"),
        ([*TOKENS[:5], None], GatePolicy(), "fails"),
    ],
)
def test_results(tokens: list[float], policy: GatePolicy, result: str) -> None:
    """By what became of one of two strategies: the same, a token more in one of six conversations, 5 % more in each,
    10 % fewer, twice as many in one, no figure in one."""
    found = gate(RUN, made({"a": {"tokens_sent": tokens}, "b": {"tokens_sent": TOKENS}}), policy)
    assert found.result == result


def test_what_fails_is_named_with_the_conversation() -> None:
    """The comparison has both figures and the conversation, however much better all others are."""
    found = gate(RUN, made({"a": {"tokens_sent": [*FEWER[:5], 91.0]}, "b": {"tokens_sent": TOKENS}}), GatePolicy())
    (failing,) = found.failing
    assert (failing.strategy, failing.metric, failing.beyond) == ("a", "tokens_sent", ("c5",))
    assert failing.moved[0][:3] == ("c5", 90.0, 91.0)
    assert failing.verdict == Verdict("worse", "in 1 of 6")


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ((0.125, 1), (0.125 * (1 + 1e-7), 1), "passes"),
        ((0.125, 1), (0.125 * (1 + 1e-5), 1), "fails"),
        ((3, 4), (6, 8), "passes"),
        ((99_999, 100_000), (99_998, 100_000), "fails"),
        ((1, 2), (0, 0), "fails"),
        ((0, 0), (1, 2), "passes"),
    ],
)
def test_digits(before: tuple[float, float], after: tuple[float, float], result: str) -> None:
    """Sums that are no whole numbers may differ in the seventh digit, as floating embeddings do; counts in none. A
    figure that is gone in a conversation fails."""
    metric = "cost(claude-sonnet-5)" if before[1] == 1 else "grounding"
    sides = [made({"a": {metric: [(1, 1), side]}}) for side in (before, after)]
    assert gate(*sides, GatePolicy()).result == result


def test_figures_of_live_models_are_judged_by_statistics() -> None:
    """One conversation of six moved under a strategy that a live model summarises for, or in answers of one: that may
    be chance, and passes unless the policy says otherwise."""
    for live in ("a", "tokens_sent"):
        after = made({"a": {"tokens_sent": TWICE}, "b": {"tokens_sent": TOKENS}}, live=frozenset([live]))
        assert gate(RUN, after, GatePolicy()).result == "passes"
        assert gate(RUN, after, GatePolicy(cannot_tell="fail")).result == "fails"


def test_a_strategy_that_is_gone_fails() -> None:
    """Unless the policy does not guard it; one that is new passes, and is named."""
    less = made({"a": {"tokens_sent": TOKENS}})
    assert gate(RUN, less, GatePolicy()).result == "fails"
    assert gate(RUN, less, GatePolicy(strategies=("a",))).result == "passes"
    assert gate(less, RUN, GatePolicy(strategies=("b",))).result == "fails"
    found = gate(less, RUN, GatePolicy())
    assert found.result == "passes"
    assert [(each.word, each.names) for each in found.compared.unpaired] == [("new", ("b",))]


def test_a_metric_that_is_gone_fails() -> None:
    """A measurement that was there is not passed over; a new one passes."""
    both = made({"a": {"tokens_sent": TOKENS, "grounding": [(1, 2)] * 6}})
    one = made({"a": {"tokens_sent": TOKENS}})
    assert gate(both, one, GatePolicy()).result == "fails"
    assert gate(one, both, GatePolicy()).result == "passes"
    assert gate(both, one, GatePolicy({"tokens_sent": MetricPolicy(relative=1)})).result == "fails"
    left_out = gate(both, one, GatePolicy({"grounding": MetricPolicy(guarded=False)}))
    assert (left_out.result, left_out.not_guarded) == ("passes", ("grounding",))
    elsewhere = [made({"a": {"grounding": [(1, 2), None] if at else [None, (1, 2)]}}) for at in (0, 1)]
    assert gate(*elsewhere, GatePolicy()).result == "fails"


def test_a_gate_that_compares_nothing_is_an_error() -> None:
    """A baseline without figures, and a policy that guards none."""
    for baseline, policy in (
        (replace(RUN, sums={}), GatePolicy()),
        (RUN, GatePolicy({"*": MetricPolicy(guarded=False)})),
    ):
        with pytest.raises(RunError, match="run: no figure in it is guarded, so every run would pass"):
            gate(baseline, RUN, policy)


def test_what_is_incomparable_fails() -> None:
    """Another version of a metric, another recording under a name: nobody knows whether it got worse."""
    other = replace(RUN, metrics={"tokens_sent": About("tokens", "lower", "total", "2")})
    assert gate(RUN, other, GatePolicy()).result == "fails"
    changed = replace(RUN, digests={**RUN.digests, "c0": "of something else"})
    assert gate(RUN, changed, GatePolicy()).result == "fails"
    worse = made({"a": {"tokens_sent": MORE}, "b": {"tokens_sent": TOKENS}})
    assert gate(RUN, replace(worse, digests=changed.digests), GatePolicy()).result == "fails"


def policy(folder: Path, text: str) -> GatePolicy:
    file = folder / "gate.toml"
    file.write_text(text)
    return read_policy(file, list(ABOUT), ["a", "summary(every=5)"])


def test_a_policy_file(tmp_path: Path) -> None:
    """A policy sets the limits of the metrics that it names; no other metric may get worse."""
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
    assert found.rule("tokens_sent", ABOUT["tokens_sent"]) == ComparisonRule("lower")
    rest = policy(tmp_path, '[metrics."*"]\nguarded = false\n[metrics.grounding]')
    assert rest.rule("tokens_sent", ABOUT["tokens_sent"]) is None
    assert rest.rule("grounding", ABOUT["grounding"]) == ComparisonRule("higher")
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
