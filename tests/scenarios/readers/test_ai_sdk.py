"""Vercel's AI SDK: steps of an answer are calls, whichever version stored them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.stored_chats import AiSdk
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import ai_sdk

QUESTION = {"id": "a", "role": "user", "content": "What is this?", "parts": [{"type": "text", "text": "What is this?"}]}
INVOCATION = {"state": "result", "toolCallId": "c1", "toolName": "look", "args": {"at": 1}, "result": "a cat"}
ANSWER = {"type": "text", "text": "A cat."}
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {"at": 1}}
RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "look", "output": {"type": "text", "value": "a cat"}}
FORMS: dict[str, list[dict[str, Any]]] = {
    "version 4, parts": [
        QUESTION,
        {
            "id": "b",
            "role": "assistant",
            "content": "A cat.",
            "parts": [{"type": "tool-invocation", "toolInvocation": INVOCATION}, ANSWER],
        },
    ],
    "version 4, invocations": [
        {"id": "a", "role": "user", "content": "What is this?"},
        {"id": "b", "role": "assistant", "content": "A cat.", "toolInvocations": [INVOCATION]},
    ],
    "model": [
        {"role": "user", "content": "What is this?"},
        {"role": "assistant", "content": [CALL]},
        {"role": "tool", "content": [RESULT]},
        {"role": "assistant", "content": [ANSWER]},
    ],
    "dynamic tool": [
        QUESTION,
        {
            "id": "b",
            "role": "assistant",
            "parts": [{**CALL, "type": "dynamic-tool", "state": "output-error", "errorText": "a cat"}, ANSWER],
        },
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_messages(tmp_path: Path, form: str) -> None:
    """An answer with a tool is the call, the tool's result or error, and the text behind it."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(FORMS[form], indent=1))
    assert isinstance(detect(path), AiSdk)
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert not problems.notes
    assert [(message.role, message.text) for message in chat.messages] == [
        ("user", "What is this?"),
        ("assistant", ""),
        ("tool", "a cat"),
        ("assistant", "A cat."),
    ]
    assert [(call.id, call.name, call.arguments) for call in chat.messages[1].calls] == [("c1", "look", '{"at":1}')]


def test_steps_of_an_answer_are_calls(tmp_path: Path) -> None:
    """Each step-start begins a call; reasoning and pictures are kept, and an output that is an object is JSON."""
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(ai_sdk("one")))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert (chat.id, len(chat.messages[0].media), chat.messages[1].thinking) == ("one", 1, "hm")
    assert chat.messages[2].text == '{"seen":"a cat"}'
