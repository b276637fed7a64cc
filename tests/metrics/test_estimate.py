"""The error of a quarter of the characters as a count of tokens, and how kinds of text are told apart."""

from pathlib import Path

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.metrics.tokens import content_of, estimates, text_counter
from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.scenarios.source import Problems

CODE = "def total(rows):\n    made = 0\n    for row in rows:\n        made += row.price\n    return made"


def test_the_error_is_that_of_each_text() -> None:
    """By hand: exact counts 4, 5, 10 of texts of 20 characters (5): +25 %, 0 %, −50 %."""
    exact = {"a" * 20: 4, "b" * 20: 5, "c" * 20: 10}
    (found,) = estimates([Message(text[0], "user", text) for text in exact], exact.__getitem__)
    assert (found.language, found.content, found.texts, found.tokens) == ("en", "prose", 3, 19)
    assert found.p50 == 0
    assert found.p10 == pytest.approx(-0.4)  # a fifth of the way from -0.5 to 0
    assert found.p90 == pytest.approx(0.2)
    assert found.absolute == pytest.approx(0.25)
    assert found.total == pytest.approx(15 / 19 - 1)


def test_each_language_and_kind_has_a_row() -> None:
    """Arguments of tool calls count as texts; empty texts do not."""
    call = ToolCall("c", "search", '{"query": "北京的天气今天怎么样"}')
    messages = [
        Message("1", "user", "What is the weather like?"),
        Message("2", "user", "北京今天的天气怎么样？"),
        Message("3", "assistant", "", calls=(call,)),
        Message("4", "tool", "sunny, 21 degrees", answers="c"),
        Message("5", "assistant", CODE),
    ]
    found = [(row.language, row.content, row.texts) for row in estimates(messages, len)]
    assert found == [
        ("en", "code", 1),
        ("en", "prose", 1),
        ("en", "tool result", 1),
        ("zh", "json", 1),
        ("zh", "prose", 1),
    ]
    assert estimates([Message("1", "user", "")], len) == []


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"a": [1, 2]}', "json"),
        (" [1, 2]\n", "json"),
        ("[1, 2] and more", "prose"),
        ("{broken", "prose"),
        ("[" * 100_000, "code"),  # not JSON, however deep: its one line ends in a bracket
        (CODE, "code"),
        ("Here:\n```python\nprint(1)\nprint(2)\n```", "code"),
        ("     1\tdef f(x):\n     2\t    return x", "code"),
        ("int main() {\n  return 0;\n}", "code"),
        ("For example, we return in the morning.\nThen we go home.", "prose"),
        ("一、先看日志；二、再改代码。", "prose"),
        ("\n\n", "prose"),
    ],
)
def test_kinds_of_text(text: str, content: str) -> None:
    """The first rule that fits says what a text is."""
    assert content_of(text) == content
    assert content_of(text, by_tool=True) == ("tool result" if content == "prose" else content)


def test_the_sample_recordings_bear_out_the_readme(recordings: Path) -> None:
    """002 speaks of ±25 %: English prose is within that, Chinese and tools' JSON are not (MemoryBank, τ-bench)."""
    total: dict[tuple[str, str], float] = {}
    for name in ("memorybank", "tau-bench"):
        chats = RunInputs((str(recordings / name),)).read(Problems())
        found = estimates((message for chat in chats for message in chat.messages), text_counter("o200k_base"))
        total |= {(row.language, row.content): row.total for row in found}
    assert total["zh", "prose"] == pytest.approx(-0.66, abs=0.01)
    assert total["en", "prose"] == pytest.approx(0.17, abs=0.01)
    assert total["en", "json"] == pytest.approx(-0.30, abs=0.01)
