"""Recorded reasoning is counted by the rules of its provider, which say what later prompts keep."""

import pytest

from ctxbench.metrics.thinking import Keeps, KeptThinking, thinking_rule, thinking_tokens
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Call, Message, ToolCall, Usage


@pytest.mark.parametrize(
    ("model", "keeps"),
    [
        ("claude-opus-4-5-20251101", "all"),
        ("anthropic/claude-sonnet-4.6", "all"),
        ("us.anthropic.claude-opus-5-5-v1:0", "all"),
        ("claude-fable-5-1", "all"),
        ("claude-mythos-5", "all"),
        ("claude-opus-4-1-20250805", "turn"),
        ("claude-sonnet-4-5", "turn"),
        ("claude-3-7-sonnet-20250219", "turn"),
        ("claude-haiku-4-5", "turn"),
        ("claude-haiku-5-5", None),
        ("gpt-5.6-sol", "all"),
        ("gpt-5.5", "turn"),
        ("gpt-5-2025-08-07", "turn"),
        ("o3", "turn"),
        ("gpt-4o", None),
        ("deepseek-v4-flash", "tools"),
        ("gemini-2.5-flash", "none"),
        ("gemini-3-pro", None),
    ],
)
def test_rules_by_model(model: str, keeps: Keeps | None) -> None:
    """The documented defaults by model; None where nothing is documented or the model does not reason."""
    rule = thinking_rule(model)
    assert (rule.keeps if rule else None) == keeps


def test_the_providers_count_goes_before_the_text() -> None:
    """A summary is shorter than what was reasoned: reported tokens count, in ours by the model's factor."""
    call = Call(usage=Usage(100, 60, reasoning=50))
    assert thinking_tokens(Message("a", "assistant", thinking="short", call=call), len, 1.25) == 40
    assert thinking_tokens(Message("a", "assistant", thinking="short"), len) == 5
    assert thinking_tokens(Message("a", "assistant"), len) == 0


def test_hidden_reasoning_is_missing() -> None:
    """Reasoning without a text and a count is not 0; where the provider reports 0, it is."""
    said_none = Call(usage=Usage(100, 10, reasoning=0))
    assert thinking_tokens(Message("a", "assistant", thinking_hidden=True, call=said_none), len) == 0
    assert isinstance(thinking_tokens(Message("a", "assistant", thinking_hidden=True), len), Missing)


HISTORY = (
    Message("u1", "user"),
    Message("a1", "assistant", thinking="1", calls=(ToolCall("c", "look"),)),
    Message("r1", "tool", answers="c"),
    Message("steered", "user"),
    Message("a2", "assistant", thinking="2"),
    Message("u2", "user"),
    Message("a3", "assistant", thinking="3"),
    Message("u3", "user"),
)


@pytest.mark.parametrize(
    ("keeps", "kept"),
    [
        ("all", [["a1"], ["a1", "a2"], ["a1", "a2", "a3"]]),
        ("turn", [["a1"], [], []]),
        ("tools", [["a1"], ["a1", "a2"], ["a1", "a2"]]),
        ("none", [[], [], []]),
        (None, [[], [], []]),
    ],
)
def test_what_is_kept(keeps: Keeps | None, kept: list[list[str]]) -> None:
    """At the prompts that a2, a3 and a later answer were given to; a user's message behind a result ends no turn."""
    rule = KeptThinking(keeps, HISTORY)
    for size, names in zip((4, 6, 8), kept, strict=True):
        places = range(rule.stripped(size), size)
        assert [HISTORY[at].id for at in places if rule.of(at)] == names
