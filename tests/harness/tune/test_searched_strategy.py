"""Strategies with ? for values."""

from __future__ import annotations

import pytest

from ctxbench.harness.tune.space import searched
from ctxbench.scenarios.errors import SpecError


def test_one_free_parameter() -> None:
    """What is fixed stays, what is free is filled in, and the text is the one that a run has."""
    found = searched("window(max_tokens = ?, reserve=0.2)")
    assert [(each.name, each.default) for each in found.free] == [("max_tokens", None)]
    assert found.at({"max_tokens": 8000}) == "window(max_tokens=8000, reserve=0.2)"


def test_defaults_are_not_written() -> None:
    """A value that is the default gives the same text as none."""
    found = searched("summary(threshold=?, every=5)")
    assert found.at({"threshold": 20}) == found.at({}) == "summary(every=5)"


def test_names_in_a_chain() -> None:
    """A parameter has its stage's name only where another has its name, and a number where the stages are alike."""
    names = [each.name for each in searched("summary(every=?, max_tokens=?) | window(max_tokens=?)").free]
    assert names == ["every", "summary.max_tokens", "window.max_tokens"]
    found = searched("window(messages=?) | window(messages=?)")
    assert [each.name for each in found.free] == ["1.messages", "2.messages"]
    values = {"1.messages": 9, "2.messages": 4}
    assert found.at(values) == "window(messages=9) | window(messages=4)"


def test_a_question_mark_in_a_text_is_a_text() -> None:
    """Only a value that is ? alone is free."""
    found = searched("archive(threshold=?, thread='why = ?')")
    assert [each.name for each in found.free] == ["threshold"]
    assert found.at({"threshold": 500}) == "archive(threshold=500, thread='why = ?')"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("window(max_tokens=8000)", "nothing is to be found in .*write name=.*window takes max_tokens, messages"),
        ("window(maxtokens=?)", "has no parameter 'maxtokens'.*did you mean 'max_tokens'"),
        ("windw(max_tokens=?)", "unknown strategy 'windw'; did you mean 'window'"),
        ("window(max_tokens=?", "cannot read this strategy"),
        ("archive_window(max_tokens=?)", "recipe 'archive_window' takes no parameters"),
        ("window(?)", "cannot read this strategy"),
    ],
)
def test_what_cannot_be_searched(text: str, says: str) -> None:
    """Each is an error that says what to write."""
    with pytest.raises(SpecError, match=says):
        searched(text)
