"""How kinds of text are told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.tokens import content_of

CODE = "def total(rows):\n    made = 0\n    for row in rows:\n        made += row.price\n    return made"


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


@given(st.text(), st.booleans())
def test_any_text_has_a_kind(text: str, by_tool: bool) -> None:
    """No text is too odd, and only a tool's is a tool result."""
    assert content_of(text, by_tool) in ("json", "code", "tool result" if by_tool else "prose")
