"""Exports of ChatGPT and Claude.ai: the branch that is shown, with its tool calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import chatgpt, claude_ai


def load(path: Path, *records: object) -> tuple[list[Conversation], Problems]:
    path.write_text(json.dumps(records))
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_the_current_branch_of_chatgpt_is_read(tmp_path: Path) -> None:
    """The branch of current_node is the conversation, what is beside it is counted, and a recipient is a tool."""
    [chat], problems = load(tmp_path / "conversations.json", chatgpt("one"))
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "assistant"]
    question, call, result, answer = chat.messages
    assert (question.text, len(question.media)) == ("How many?", 1)
    assert (call.thinking, call.text, call.calls[0].name) == ("Count.", "", "python")
    assert json.loads(call.calls[0].arguments) == {"input": "1+1"}
    assert (result.text, result.answers) == ("2", call.calls[0].id)
    assert (answer.text, answer.time, answer.call and answer.call.model) == ("Two.", 4, "m")
    assert any("another branch: 1" in note for note in problems.notes)


ROOT = {"id": "n", "parent": None, "children": [], "message": None}


@pytest.mark.parametrize(
    "empty",
    [{**chatgpt("x"), "mapping": {"n": ROOT}, "current_node": "n"}, {**claude_ai("x"), "chat_messages": []}],
)
def test_conversations_that_were_never_begun_are_counted(tmp_path: Path, empty: dict[str, object]) -> None:
    """Exports are full of them: they are in the notes, and are no errors."""
    make = chatgpt if "mapping" in empty else claude_ai
    [_], problems = load(tmp_path / "conversations.json", make("one"), empty)
    assert not problems.errors
    assert any("conversation without messages: 1 not read" in note for note in problems.notes)


def test_a_broken_tree_is_one_error_and_costs_one_conversation(tmp_path: Path) -> None:
    """A current_node that is not in the mapping is named with its field, and the next conversation is read."""
    broken = {**chatgpt("one"), "current_node": "gone"}
    [chat], problems = load(tmp_path / "conversations.json", chatgpt("two"), broken)
    [error] = problems.errors
    assert (chat.id, error.place.field) == ("two", "[1].current_node")
    assert "'gone' names no message" in error.what


def test_an_answer_of_claude_ai_is_split_at_its_tools(tmp_path: Path) -> None:
    """A message with a tool in it becomes a call, its result, and the answer after it; attachments are read."""
    [chat], problems = load(tmp_path / "conversations.json", claude_ai("one"))
    assert not problems.errors
    question, call, result, answer = chat.messages
    assert question.text == "Rain?\nOslo"
    assert (call.thinking, call.calls[0].name, call.calls[0].arguments) == ("hm", "search", '{"q":"rain"}')
    assert (result.text, result.answers) == ("dry", call.calls[0].id)
    assert answer.text == "It is dry."


def test_the_last_branch_of_claude_ai_is_read(tmp_path: Path) -> None:
    """Where messages name their parents, an edited question and its answer replace the first ones."""
    root = "00000000-0000-4000-8000-000000000000"
    said = [
        {"uuid": "a", "sender": "human", "text": "one", "parent_message_uuid": root},
        {"uuid": "b", "sender": "assistant", "text": "1", "parent_message_uuid": "a"},
        {"uuid": "c", "sender": "human", "text": "two", "parent_message_uuid": root},
        {"uuid": "d", "sender": "assistant", "text": "2", "parent_message_uuid": "c"},
    ]
    [chat], problems = load(tmp_path / "conversations.json", {"uuid": "u", "chat_messages": said})
    assert [message.text for message in chat.messages] == ["two", "2"]
    assert any("another branch: 2" in note for note in problems.notes)
