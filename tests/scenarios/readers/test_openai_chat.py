"""OpenAI chats: every way they are stored reads the same, and what is wrong with one names its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.chats import OpenAIChat
from ctxbench.scenarios.source import Problems

CHAT = [
    {"role": "developer", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    {"role": "assistant", "content": "A cat."},
]
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object"}}}


def load(path: Path, *, reader: type[Any] = OpenAIChat) -> tuple[list[Conversation], list[RecordingError]]:
    assert isinstance(detect(path), reader)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


FORMS = {
    "object.json": json.dumps({"messages": CHAT, "tools": [TOOL]}, indent=2),
    "line.jsonl": json.dumps({"messages": CHAT}) + "\n",
    "array.json": json.dumps([{"messages": CHAT}]),
    "bare.json": json.dumps(CHAT, indent=1),
    "bare_line.jsonl": json.dumps(CHAT) + "\n",
    "nested.json": json.dumps([CHAT]),
    "messages.jsonl": "\n".join(json.dumps(message) for message in CHAT),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_messages(tmp_path: Path, name: str) -> None:
    """However a chat is stored, it is detected and becomes the same five messages, named after its file."""
    (tmp_path / name).write_text(FORMS[name])
    [chat], found = load(tmp_path / name)
    assert not found
    assert chat.id == Path(name).stem
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (chat.messages[1].text, len(chat.messages[1].media)) == ("What is this?", 1)
    assert chat.messages[2].calls[0].arguments == '{"at": 1}'
    assert chat.messages[3].answers == "c1"


def test_a_truncated_file_keeps_what_stands_before(tmp_path: Path) -> None:
    """An array that was cut off gives its whole elements and one error."""
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"messages": CHAT}, {"messages": CHAT}])[:-40])
    chats, [error] = load(path)
    assert len(chats) == 1
    assert "ends in the middle" in error.what


def test_what_follows_an_array_is_not_lost_in_silence(tmp_path: Path) -> None:
    """A second JSON value after an array that spans lines is a problem."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT, indent=1) + "\n" + json.dumps(CHAT, indent=1))
    chats, [error] = load(path)
    assert len(chats) == 1
    assert "more than one JSON value" in error.what
