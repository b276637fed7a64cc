"""Logs of {request, response}, whoever answered, and the log of invocations that Bedrock keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Usage
from ctxbench.scenarios.read import detect
from ctxbench.scenarios.readers.call_logs import ApiCalls
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, load, shown, usages

SYSTEM, ASKED = "Be short.", "What is it?"


def chat(prompt: list[Any], answer: Any, number: int) -> dict[str, Any]:
    counts = {"prompt_tokens": 100 + number, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    choice = {"message": answer, "finish_reason": "stop"}
    response = {"id": f"r{number}", "model": "m", "choices": [choice], "usage": counts}
    return {"request": {"model": "m", "messages": prompt}, "response": response}


def responses(prompt: list[Any], answer: Any, number: int) -> dict[str, Any]:
    counts = {"input_tokens": 100 + number, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 60}}
    response = {"id": f"r{number}", "model": "m", "output": answer, "usage": counts, "status": "completed"}
    return {"request": {"model": "m", "instructions": SYSTEM, "input": prompt}, "response": response}


def gemini(prompt: list[Any], answer: Any, number: int) -> dict[str, Any]:
    counts = {"promptTokenCount": 100 + number, "candidatesTokenCount": 7, "cachedContentTokenCount": 60}
    response = {"candidates": [{"content": {"role": "model", "parts": answer}}], "usageMetadata": counts}
    request = {"model": "m", "contents": prompt, "systemInstruction": {"parts": [{"text": SYSTEM}]}}
    return {"request": request, "response": response}


def converse(prompt: list[Any], answer: Any, number: int) -> dict[str, Any]:
    counts = {"inputTokens": 40 + number, "cacheReadInputTokens": 60, "outputTokens": 7}
    said = {"message": {"role": "assistant", "content": answer}}
    request = {"modelId": "m", "messages": prompt, "system": [{"text": SYSTEM}]}
    return {"request": request, "response": {"output": said, "stopReason": "end_turn", "usage": counts}}


def ollama(prompt: list[Any], answer: Any, number: int) -> dict[str, Any]:
    counts = {"prompt_eval_count": 100 + number, "eval_count": 7}
    response = {"model": "m", "message": answer, "done": True, "done_reason": "stop", **counts}
    return {"request": {"model": "m", "messages": prompt, "stream": False}, "response": response}


USE, RESULT = (
    {"toolUseId": "t1", "name": "look", "input": {"at": 1}},
    {"toolUseId": "t1", "content": [{"text": "a cat"}]},
)
BLOCKS = [
    {"role": "user", "content": [{"text": ASKED}]},
    {"role": "assistant", "content": [{"toolUse": USE}]},
    {"role": "user", "content": [{"toolResult": RESULT}]},
]
ITEMS = [
    {"role": "user", "content": ASKED},
    {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at":1}'},
    {"type": "function_call_output", "call_id": "t1", "output": "a cat"},
]
SPOKEN = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]}]
CONTENTS = [
    {"role": "user", "parts": [{"text": ASKED}]},
    {"role": "model", "parts": [{"functionCall": {"id": "t1", "name": "look", "args": {"at": 1}}}]},
    {"role": "user", "parts": [{"functionResponse": {"id": "t1", "name": "look", "response": {"output": "a cat"}}}]},
]
CONVERSE = [converse(BLOCKS[:1], BLOCKS[1]["content"], 0), converse(BLOCKS, [{"text": "A cat."}], 1)]
LOGS = {
    "chat": [chat(PROMPT, CALLED, 0), chat(LATER, SAID, 1)],
    "responses": [responses(ITEMS[:1], ITEMS[1:2], 0), responses(ITEMS, SPOKEN, 1)],
    "gemini": [gemini(CONTENTS[:1], CONTENTS[1]["parts"], 0), gemini(CONTENTS, [{"text": "A cat."}], 1)],
    "converse": CONVERSE,
    "ollama": [ollama(PROMPT, CALLED, 0), ollama(LATER, SAID, 1)],
}


def invocation(call: dict[str, Any], operation: str = "Converse") -> dict[str, Any]:
    """A call as Bedrock logs it."""
    about = {"schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": "2023-11-14T22:13:20Z"}
    request = {key: value for key, value in call["request"].items() if key != "modelId"}
    sides = {"input": {"inputBodyJson": request}, "output": {"outputBodyJson": call["response"]}}
    return {**about, "modelId": "m", "operation": operation, "requestId": "r", **sides}


@pytest.mark.parametrize("provider", LOGS)
def test_pairs_of_all_providers_are_the_same_conversation(tmp_path: Path, provider: str) -> None:
    """Two requests that extend each other are one conversation, with what each response reports."""
    [told], problems = load(tmp_path, LOGS[provider])
    assert isinstance(detect(tmp_path / "trace0.json"), ApiCalls)
    assert not problems.errors
    assert not problems.notes
    assert [(role, text.replace("call_0", "t1")) for role, text in shown(told)] == SHOWN
    read = None if provider == "ollama" else 60
    assert usages(told) == [Usage(100, 7, read), Usage(101, 7, read)]
    assert {m.call.model for m in told.messages if m.call} == {"m"}


def test_the_invocation_log_of_bedrock(tmp_path: Path) -> None:
    """Its calls are Converse's, with the time of each; a call whose bodies are elsewhere is counted in the notes."""
    elsewhere = {**invocation(CONVERSE[1]), "input": {"inputBodyS3Path": "s3://x"}}
    [told], problems = load(tmp_path, [*map(invocation, CONVERSE), elsewhere])
    assert not problems.errors
    assert shown(told) == SHOWN
    assert usages(told) == [Usage(100, 7, 60), Usage(101, 7, 60)]
    call = told.messages[2].call
    assert call is not None
    assert (call.provider, call.model, call.started) == ("bedrock", "m", 1_700_000_000)
    [note] = problems.notes
    assert "call without its request or its response: 1 not read" in note


def test_a_streamed_invocation_of_claude(tmp_path: Path) -> None:
    """The log has its events in a list, which are put together to the answer."""
    request = {"anthropic_version": "bedrock-2023-05-31", "system": SYSTEM, "messages": PROMPT[1:]}
    counts = {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": {"id": "msg", "model": "claude", "usage": counts}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "A cat."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    ]
    call = {"request": request, "response": events}
    [told], problems = load(tmp_path, [invocation(call, "InvokeModelWithResponseStream")])
    assert not problems.errors
    assert shown(told) == [*SHOWN[:2], SHOWN[-1]]
    assert usages(told) == [Usage(10, 7, 9)]


def test_pictures_and_reasoning_of_ollama(tmp_path: Path) -> None:
    """They stand beside the text there."""
    prompt = [{"role": "user", "content": "What is it?", "images": ["aGk="]}]
    [told], problems = load(tmp_path, [ollama(prompt, {**SAID, "thinking": "Fur."}, 0)])
    assert not problems.errors
    assert [medium.kind for medium in told.messages[0].media] == ["image"]
    assert told.messages[1].thinking == "Fur."


def test_a_bad_call_is_named_and_costs_only_itself(tmp_path: Path) -> None:
    """A message of an unknown role is an error with its line and field; the other calls are read."""
    bad = chat([{"role": "wizard", "content": "?"}], SAID, 5)
    [told], problems = load(tmp_path, [bad, *LOGS["chat"]])
    assert shown(told) == SHOWN
    [error] = problems.errors
    assert (error.place.line, error.place.field) == (1, "request.messages[0].role")


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (LOGS["responses"][0]["response"] | {"object": "response", "created_at": 1}, "responses of OpenAI"),
        (LOGS["chat"][0]["response"] | {"object": "chat.completion", "created": 1}, "completions of OpenAI"),
    ],
)
def test_a_response_alone_says_what_is_missing(tmp_path: Path, record: dict[str, Any], what: str) -> None:
    """It is refused with what it looks like."""
    (tmp_path / "response.json").write_text(json.dumps(record))
    told, problems = load(tmp_path)
    assert not told
    [ignored] = problems.ignored
    assert what in ignored
