"""The gate's answer in words, Markdown, XML: whatever recordings and strategies are called."""

from xml.etree import ElementTree

import pandas as pd

from ctxbench.harness.compare.figures import worst_of
from ctxbench.harness.compare.gate import Gate, GatePolicy, gate
from ctxbench.metrics.figures import METRICS
from ctxbench.metrics.value import Ratio
from ctxbench.reports.compare import as_junit, gate_tables
from ctxbench.reports.render import markdown
from tests.harness.compare.builders import ABOUT, made

HOSTILE = "<script>alert(1)</script>|**\x00\x1b[31m\u202e&#\ud7ff javascript:"
TOKENS = [100.0, 250, 80, 400, 120, 90]


def found(names: list[str], strategy: str = "a", policy: GatePolicy = GatePolicy()) -> Gate:  # noqa: B008
    before = made({strategy: {"tokens_sent": TOKENS, "rejected_openai": [0] * 6}}, names)
    more = [each * (1.1 + at / 100) for at, each in enumerate(TOKENS)]
    return gate(before, made({strategy: {"tokens_sent": more, "rejected_openai": [0] * 5 + [1]}}, names), policy)


def test_hostile_names() -> None:
    """They are text in Markdown and in XML, and steer neither."""
    answer = found([HOSTILE, *"bcdef"], strategy=HOSTILE)
    assert answer.result == "fails"
    text = markdown(list(gate_tables(answer, lambda *_: 3)))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    root = ElementTree.fromstring(as_junit(answer))
    assert root.find(".//failure") is not None


def test_the_models_of_the_baseline() -> None:
    """The answer names the models that the baseline is billed under."""
    cheap, dear = (made({"a": {"cost(claude-sonnet-5)": [cost] * 6}}) for cost in (1.0, 2.0))
    text = markdown(list(gate_tables(gate(cheap, dear, GatePolicy()), lambda *_: None)))
    assert "whatever the run was billed under: claude-sonnet-5." in text
    about = {f"cost({of})": ABOUT["cost(claude-sonnet-5)"] for of in ("a", "recorded models")}
    both = [made({"a": dict.fromkeys(about, [cost] * 6)}, about=about) for cost in (1.0, 2.0)]
    text = markdown(list(gate_tables(gate(*both, GatePolicy()), lambda *_: None)))
    assert "got worse, billed under recorded models?" in text


def test_a_total_that_improved() -> None:
    """Beside a figure that got worse in one conversation alone, and better over all, stand the figures of that one."""
    before, after = (made({"a": {"tokens_sent": tokens}}) for tokens in (TOKENS, [110.0, *[50.0] * 5]))
    text = markdown(list(gate_tables(gate(before, after, GatePolicy()), lambda *_: None)))
    assert "in 1 of 6: 100 → 110 |" in text


def test_the_step_to_look_at() -> None:
    """Where most tokens were sent; where most values were lost; none for what is asked before any step."""
    rows = pd.DataFrame({"step": [0, 1, 2], "tokens_sent": [5, 9, 7], "demands": [9, 4, 4], "demands_kept": [9, 4, 1]})
    assert worst_of(rows, METRICS["tokens_sent"]) == 1
    assert worst_of(rows, METRICS["grounding"]) == 2
    assert worst_of(rows[:0], METRICS["grounding"]) is None
    assert isinstance(METRICS["grounding"].of, Ratio)
    assert worst_of(rows.assign(step=None), METRICS["grounding"]) is None
