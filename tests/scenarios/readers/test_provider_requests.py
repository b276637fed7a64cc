"""Requests to Gemini, Bedrock and Ollama, as plain files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.stored_chats import ProviderRequests
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import FUNCTION, provider_requests

BEDROCK: dict[str, Any] = {
    "modelId": "m",
    "system": [{"text": "Be short."}],
    "messages": [
        {"role": "user", "content": [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": ""}}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "a cat"}]}}]},
        {"role": "assistant", "content": [{"text": "A cat."}]},
    ],
    "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]},
}
OLLAMA = {
    "model": "m",
    "stream": False,
    "options": {"temperature": 0},
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is this?", "images": ["aGk="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]},
        {"role": "tool", "tool_name": "look", "content": "a cat"},
        {"role": "assistant", "content": "A cat."},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
}
REQUESTS = {"gemini": provider_requests("x"), "bedrock": BEDROCK, "ollama": OLLAMA}


@pytest.mark.parametrize("provider", REQUESTS)
def test_requests_of_all_providers_are_the_same(tmp_path: Path, provider: str) -> None:
    """System, picture, call, result, answer and tools are read alike, whoever the request was for."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUESTS[provider]))
    assert isinstance(detect(path), ProviderRequests)
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert not problems.notes
    said = [(message.role, message.text, len(message.media)) for message in chat.messages]
    assert said == [
        ("system", "Be short.", 0),
        ("user", "What is this?", 1),
        ("assistant", "", 0),
        ("tool", "a cat", 0),
        ("assistant", "A cat.", 0),
    ]
    call = chat.messages[2].calls[0]
    assert (call.name, call.arguments, chat.messages[3].answers) == ("look", '{"at":1}', call.id)
    assert [tool.name for tool in chat.tools] == ["look"]


def test_requests_to_the_responses_api(tmp_path: Path) -> None:
    """Their items are messages, calls and results, behind the instructions."""
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":1}'}
    items = [{"role": "user", "content": "What is this?"}, call]
    items += [{"type": "function_call_output", "call_id": "c1", "output": "a cat"}]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": "m", "instructions": "Be short.", "input": items, "tools": [FUNCTION]}))
    assert isinstance(detect(path), ProviderRequests)
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert [(m.role, m.text) for m in chat.messages] == [
        ("system", "Be short."), ("user", "What is this?"), ("assistant", ""), ("tool", "a cat")
    ]  # fmt: skip
    assert [tool.name for tool in chat.tools] == ["look"]


@pytest.mark.parametrize("provider", REQUESTS)
def test_requests_that_extend_each_other_are_one_conversation(tmp_path: Path, provider: str) -> None:
    """A log repeats the history in each request: it is read once. Requests with names of their own stay apart."""
    whole = {key: value for key, value in REQUESTS[provider].items() if key != "id"}
    name = "contents" if "contents" in whole else "messages"
    first = {**whole, name: whole[name][:-3]}
    path = tmp_path / "log.jsonl"
    for requests, expected in (([first, whole], [5]), ([{**first, "id": "x"}, {**whole, "id": "y"}], [2, 5])):
        path.write_text("\n".join(map(json.dumps, requests)))
        problems = Problems()
        chats = list(read(find([path], problems), problems))
        assert not problems.errors
        assert [len(chat.messages) for chat in chats] == expected


@pytest.mark.parametrize("provider", ["gemini", "bedrock"])
def test_a_bare_list_is_a_conversation(tmp_path: Path, provider: str) -> None:
    """The list of contents or messages alone is read too."""
    path = tmp_path / "list.json"
    request = REQUESTS[provider]
    path.write_text(json.dumps(request.get("contents") or request["messages"], indent=1))
    assert isinstance(detect(path), ProviderRequests)
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "assistant"]
