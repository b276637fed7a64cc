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


def test_tools_are_kept(tmp_path: Path) -> None:
    """Tool schemas become tools, with their parameters as JSON text."""
    path = tmp_path / "chat.json"
    path.write_text(FORMS["object.json"])
    [chat], _ = load(path)
    assert [(tool.name, tool.description, tool.parameters) for tool in chat.tools] == [
        ("look", "Looks", '{"type":"object"}')
    ]


def test_ids_come_from_the_record_or_the_file(tmp_path: Path) -> None:
    """An id, conversation_id or thread_id is used; chats without one are numbered after the file."""
    path = tmp_path / "chats.jsonl"
    keys: list[dict[str, object]] = [{"id": 7}, {"conversation_id": "c"}, {"thread_id": "t"}, {}, {}]
    path.write_text("\n".join(json.dumps({**key, "messages": CHAT}) for key in keys))
    chats, found = load(path)
    assert [chat.id for chat in chats] == ["7", "c", "t", "chats", "chats.2"]
    assert not found


def test_each_bare_list_of_a_line_is_a_chat(tmp_path: Path) -> None:
    """Lines that are lists of messages are a chat each."""
    path = tmp_path / "lists.jsonl"
    path.write_text(json.dumps(CHAT[:2]) + "\n" + json.dumps(CHAT) + "\n")
    chats, found = load(path)
    assert [(chat.id, len(chat.messages)) for chat in chats] == [("lists", 2), ("lists.2", 5)]
    assert not found


@pytest.mark.parametrize(
    ("record", "field", "what"),
    [
        ({"messages": [{"role": "wizard", "content": "hm"}]}, "messages[0].role", "unknown role 'wizard'"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "expected str | array | null, got int"),
        ({"messages": [{"content": "hm"}]}, "messages[0]", "object missing required field role"),
        ({"messages": "hm"}, "messages", "expected array, got str"),
        ({"messages": []}, "messages", "it has no messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "x"}]}, "messages[0].answers", "no earlier message called"),
    ],
)
def test_a_bad_record_is_one_clear_error(tmp_path: Path, record: object, field: str, what: str) -> None:
    """A bad line is named by file, line, field and reason, and its neighbours are read."""
    path = tmp_path / "chats.jsonl"
    good = json.dumps({"messages": CHAT})
    path.write_text("\n".join([good, json.dumps(record), good]))
    chats, [error] = load(path)
    assert len(chats) == 2
    assert (error.place.file, error.place.line, error.place.field) == (str(path), 2, field)
    assert what in error.what


def test_a_truncated_file_keeps_what_stands_before(tmp_path: Path) -> None:
    """An array that was cut off gives its whole elements and one error."""
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"messages": CHAT}, {"messages": CHAT}])[:-40])
    chats, [error] = load(path)
    assert len(chats) == 1
    assert "ends in the middle" in error.what


def test_a_damaged_message_line_takes_its_result_along(tmp_path: Path) -> None:
    """Where one line is a message, a lost call is one problem and its result, which answers nothing now, another."""
    lines = [json.dumps(message) for message in CHAT]
    lines[2] = lines[2][:30]
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(lines))
    [chat], found = load(path)
    assert [message.role for message in chat.messages] == ["system", "user", "assistant"]
    assert [error.place.line for error in found] == [3, 4]


def test_what_follows_an_array_is_not_lost_in_silence(tmp_path: Path) -> None:
    """A second JSON value after an array that spans lines is a problem."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT, indent=1) + "\n" + json.dumps(CHAT, indent=1))
    chats, [error] = load(path)
    assert len(chats) == 1
    assert "more than one JSON value" in error.what
