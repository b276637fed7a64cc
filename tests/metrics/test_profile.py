"""The profile of recordings, on conversations small enough to do by hand, and the embedded set beside recorded ones."""

from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import kendalltau

from ctxbench.api.runs import load as load_summary
from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, Plan, RunInputs, execute
from ctxbench.metrics.profile import FEATURES, profile
from ctxbench.metrics.tokens import text_counter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.scenarios.source import Problems

LONG = "this line is longer than twenty characters"


def words(text: str) -> int:
    return len(text.split())


def conversation() -> Conversation:
    messages = (
        Message("u0", "user", "where is my red bicycle", time=0.0),
        Message("a0", "assistant", "", calls=(ToolCall("c0", "look", "{}"),), time=10.0),
        Message("t0", "tool", f"{LONG}\n{LONG}\nend", answers="c0", time=11.0),
        Message("a1", "assistant", "in the shed", time=20.0),
        Message("u1", "user", "thanks", time=80.0),
        Message("a2", "assistant", "sure", time=81.0),
        Message("u2", "user", "bye now", time=81.0 + 7200),
    )
    probes = (
        Probe("p0", "Where is the red bicycle?", ("shed",), ("u0", "a1"), after="u2"),
        Probe("p1", "What colour is the car?", answerable=False, after="u2"),
    )
    return Conversation("c", messages, probes=probes)


def test_a_profile_worked_by_hand() -> None:
    """Seven messages of 5, 1, 15, 3, 1, 1 and 2 words: each figure as counted on paper."""
    figures = profile([conversation()], words)
    assert figures["conversations"] == 1
    assert figures["messages"] == 7
    assert figures["tokens"] == 5 + 1 + 15 + 3 + 1 + 1 + 2
    assert figures["user_tokens"] == 2  # of 5, 1, 2
    assert figures["assistant_tokens"] == 1  # of 1 (the call's arguments), 3, 1
    assert figures["tool_share"] == 15 / 28
    assert figures["tools_per_turn"] == 1 / 3
    assert figures["repeated"] == len(LONG) / (2 * len(LONG) + len("where is my red bicycle"))
    assert figures["pause"] == (60 + 7200) / 2
    assert figures["short_pauses"] == figures["long_pauses"] == 0.5
    assert figures["probes"] == 2
    assert figures["unanswerable"] == 0.5
    assert figures["evidence"] == 2
    assert figures["question_terms"] == 1  # "red", "bicycle": both in the first message
    assert figures["age"] == (28 - 2) / 28


def test_what_recordings_do_not_say_is_missing() -> None:
    """Without tools, times or questions their figures are missing, with a reason, and never 0."""
    figures = profile([Conversation("c", (Message("u", "user", "hi"), Message("a", "assistant", "ho")))], words)
    for key in ("tool_tokens", "tool_compression", "repeated", "pause", "question_terms", "age", "unanswerable"):
        assert isinstance(figures[key], Missing), key
    assert figures.keys() == FEATURES.keys() == profile([], words).keys()


SAMPLES = (
    "locomo", "memorybank", "mtrag", "kdconv-zh", "tau-bench", "claude-code", "codex", "mini-swe-agent", "openhands",
    "pi-sessions", "oh-my-pi", "gemini-cli",
)  # fmt: skip
FREE = ("conversations", "probes", "evidence", "age")
"""Figures that are ours to choose: how many there are, and where they are asked."""
SLACK = {"question_terms": 0.1}  # one sample alone knows its evidence: ours may differ by this much


@pytest.mark.slow
def test_standard_is_within_the_range_of_recordings(recordings: Path) -> None:
    """Every figure of `standard` lies between the least and the largest of the sample recordings'."""
    count = text_counter("o200k_base")
    samples = [profile(RunInputs((str(recordings / name),)).read(Problems()), count) for name in SAMPLES]
    standard = profile(scenario("standard"), count)
    outside = {}
    for key, value in standard.items():
        known = [figures[key] for figures in samples if not isinstance(figures[key], Missing)]
        assert not isinstance(value, Missing), key
        slack = SLACK.get(key, 0)
        if key not in FREE and not min(known) - slack <= value <= max(known) + slack:
            outside[key] = (value, min(known), max(known))
    assert outside == {}


@pytest.mark.slow
def test_strategies_rank_on_standard_as_on_locomo(recordings: Path, tmp_path: Path) -> None:
    """Kendall's tau of the strategies' order on `standard` with that on LoCoMo is 0.8 or more, in evidence, answers and
    tokens saved."""
    by_set = {}
    for name in ("standard", str(recordings / "locomo")):
        folder = tmp_path / Path(name).name
        execute(Plan(RunInputs((name,)), DEFAULT_STRATEGIES), folder, jobs=2)
        by_set[name] = load_summary(folder).summary()
    standard, locomo = by_set.values()
    for metric in ("context_recall", "answer_in_context", "net_saving"):
        assert tau(standard[metric], locomo[metric]) >= 0.8, metric


def tau(one: "pd.Series[float]", other: "pd.Series[float]") -> float:
    both = pd.concat([one, other], axis=1, join="inner").astype(float).dropna()
    assert len(both) >= 15
    return float(kendalltau(both.iloc[:, 0], both.iloc[:, 1]).statistic)
