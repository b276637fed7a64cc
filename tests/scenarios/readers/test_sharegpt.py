"""ShareGPT: speakers become roles, and results find their calls without ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.chats import ShareGpt
from ctxbench.scenarios.source import Problems


def turns(*said: tuple[str, str]) -> list[dict[str, str]]:
    return [{"from": speaker, "value": value} for speaker, value in said]


def load(path: Path, *records: object) -> tuple[list[Conversation], list[RecordingError]]:
    path.write_text("\n".join(json.dumps(record) for record in records))
    assert isinstance(detect(path), ShareGpt)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


def test_function_call_and_observation_become_call_and_result(tmp_path: Path) -> None:
    """A function_call is an assistant's tool call, the observation its result, and system and tools are kept."""
    record = {
        "conversations": turns(
            ("human", "Weather?"),
            ("function_call", '{"name": "weather", "arguments": {"city": "Oslo"}}'),
            ("observation", "rain"),
            ("gpt", "It rains."),
        ),
        "system": "Be short.",
        "tools": '[{"name": "weather", "description": "d", "parameters": {}}]',
    }
    [chat], found = load(tmp_path / "s.json", record)
    assert not found
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "assistant"]
    call = chat.messages[2].calls[0]
    assert (call.name, call.arguments) == ("weather", '{"city": "Oslo"}')
    assert (chat.messages[3].answers, chat.messages[3].name) == (call.id, "weather")
    assert chat.tools[0].name == "weather"


def test_results_answer_parallel_calls_in_order(tmp_path: Path) -> None:
    """With two calls at once, the first observation answers the first and the second the second."""
    two = '[{"name": "a", "arguments": "{\\"x\\": 1}"}, {"name": "b"}]'
    said = turns(("human", "go"), ("function_call", two), ("observation", "1"), ("observation", "2"), ("gpt", "ok"))
    [chat], _ = load(tmp_path / "s.jsonl", {"conversations": said})
    assert [(call.name, call.arguments) for call in chat.messages[1].calls] == [("a", '{"x": 1}'), ("b", "{}")]
    assert [message.name for message in chat.messages[2:4]] == ["a", "b"]


def test_calls_in_hermes_text_are_calls(tmp_path: Path) -> None:
    """A <tool_call> block in the assistant's text is a call, and the tool turn after it its result."""
    text = 'Let me see.\n<tool_call>\n{"name": "find", "arguments": {"q": "x"}}\n</tool_call>'
    [chat], found = load(
        tmp_path / "s.jsonl", {"id": "h1", "conversations": turns(("human", "?"), ("gpt", text), ("tool", "y"))}
    )
    assert not found
    assert chat.id == "h1"
    assert (chat.messages[1].text, chat.messages[1].calls[0].name) == ("Let me see.", "find")
    assert chat.messages[2].answers == chat.messages[1].calls[0].id


@pytest.mark.parametrize(("who", "said"), [("role", "content"), ("role", "value")])
def test_turns_with_roles_are_read(tmp_path: Path, who: str, said: str) -> None:
    """Data sets that name turns by `role` and `content` are read as those with `from` and `value`."""
    parts = [("system", "S"), ("user", "?"), ("function_call", '{"name": "find"}'), ("tool", "y"), ("assistant", "ok")]
    record = {"id": "r", "conversations": [{who: speaker, said: text} for speaker, text in parts]}
    [chat], found = load(tmp_path / "s.json", record)
    assert not found
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert chat.messages[3].answers == chat.messages[2].calls[0].id


def test_an_array_is_read_and_numbered(tmp_path: Path) -> None:
    """Every element of a JSON array is a conversation."""
    chats, found = load(tmp_path / "s.json", [{"conversations": turns(("human", "hi"), ("gpt", "ho"))}] * 2)
    assert [chat.id for chat in chats] == ["s", "s.2"]
    assert not found


@pytest.mark.parametrize(
    ("said", "field", "what"),
    [
        (turns(("wizard", "hm")), "conversations[0].from", "unknown role 'wizard'"),
        (turns(("function_call", '{"name": ')), "conversations[0].value", "the JSON ends in the middle"),
        (turns(("function_call", '{"nam": "a"}')), "conversations[0].value", "missing required field name"),
        (turns(("observation", "x")), "conversations[0]", "no call before it"),
        ([{"role": "wizard", "content": "hm"}], "conversations[0].role", "unknown role 'wizard'"),
        ([{"from": "human"}], "conversations[0]", "a turn needs value or content"),
        ([{"value": "hm"}], "conversations[0]", "a turn needs from or role"),
        ([{"from": "human", "value": 3}], "conversations[0].value", "expected str | null, got int"),
    ],
)
def test_a_bad_record_is_one_clear_error(tmp_path: Path, said: object, field: str, what: str) -> None:
    """A bad line is named by line, field and reason, and its neighbour is read."""
    good = {"conversations": turns(("human", "hi"), ("gpt", "ho"))}
    chats, [error] = load(tmp_path / "s.jsonl", good, {"conversations": said})
    assert len(chats) == 1
    assert (error.place.line, error.place.field) == (2, field)
    assert what in error.what
