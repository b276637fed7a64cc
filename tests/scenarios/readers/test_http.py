"""HTTP recordings: whole prompts of four APIs, what requests refer to instead of repeating it, and streams."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Call, ContextEdit, Conversation, Iteration, Mark, ToolCall, Usage, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.http import HttpRecordings
from ctxbench.scenarios.source import Problems
from tests.examples import examples

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
MESSAGES = "https://api.anthropic.com/v1/messages?beta=true"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def interaction(url: str, asked: Any, replied: Any, status: Any = 200, **reply: Any) -> dict[str, Any]:
    """A request and its response as newer cassettes hold them."""
    response = {"status": {"code": status}, "headers": {"Date": ["Tue, 14 Nov 2023 22:13:20 GMT"]}}
    response |= reply or {"parsed_body": replied}
    return {"request": {"method": "POST", "uri": url, "parsed_body": asked}, "response": response}


def load(path: Path, *interactions: Any) -> tuple[list[Conversation], Problems]:
    text = {"version": 1, "interactions": interactions}
    path.write_text(json.dumps(text) if path.suffix == ".json" else yaml.safe_dump(text, allow_unicode=True))
    assert isinstance(detect(path), HttpRecordings)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def shown(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


def chat(messages: list[Any], answer: Any, name: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    counts = {"prompt_tokens": 2000, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1024}}
    choice = {"finish_reason": "stop", "index": 0, "message": message}
    replied = {"id": name, "model": "gpt-4o-2024", "created": 1_700_000_000, "choices": [choice], "usage": counts}
    return interaction(CHAT, {"model": "gpt-4o", "messages": messages, **fields}, replied)


@pytest.mark.parametrize("name", ["some.yaml", "some.json"])
def test_requests_that_extend_each_other_are_a_conversation(tmp_path: Path, name: str) -> None:
    """A cassette in YAML or JSON: two requests are one conversation; what is no call, or failed, is counted."""
    system, asked = {"role": "system", "content": "Be short."}, {"role": "user", "content": "Look."}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    first = {"role": "assistant", "content": None, "tool_calls": [call]}
    more = [system, asked, first, {"role": "tool", "tool_call_id": "c1", "content": "a cat"}]
    tools = [{"type": "function", "function": {"name": "look", "description": "Looks"}}]
    [told], problems = load(
        tmp_path / name,
        interaction("https://telemetry.example/v1/batch", {}, {}),
        chat([system, asked], first, "r1", tools=tools),
        interaction(CHAT, {"messages": more}, {"error": {}}, status=429),
        chat(more, "A cat.", "r2", tools=tools, reasoning_effort="low"),
    )
    assert not problems.errors
    assert shown(told) == [
        *(("system", "Be short."), ("user", "Look."), ("assistant", "")),
        *(("tool", "a cat"), ("assistant", "A cat.")),
    ]
    used, started = Usage(2000, 2, 1024), 1_700_000_000.0
    first = Call("gpt-4o-2024", "openai", used, started, stop="stop", request_id="r1", requested="gpt-4o")
    assert told.messages[2].call == first
    assert told.messages[2].time == started
    assert told.messages[4].call == msgspec.structs.replace(first, effort="low", request_id="r2")
    assert [tool.name for tool in told.tools] == ["look"]
    [note] = problems.notes
    assert note.startswith("http: request that is no model call, or that failed: 2 not read")


def test_breakpoints_of_openai(tmp_path: Path) -> None:
    """A marked content part is a breakpoint behind its message, with the lifetime that the request sets."""
    part = {"type": "text", "text": "Long.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    asked = [{"role": "user", "content": [part, {"type": "text", "text": "Go."}]}]
    options = {"mode": "explicit", "ttl": "30m"}
    item = {"role": "user", "content": [{**part, "type": "input_text"}]}
    response = {"id": "resp_1", "model": "gpt", "output": [], "status": "completed"}
    told, problems = load(
        tmp_path / "some.yaml",
        chat(asked, "OK", "r1", prompt_cache_options=options),
        interaction(RESPONSES, {"input": [item], "instructions": "S"}, response),
    )
    assert not problems.errors
    assert [m.call.marks for one in told for m in one.messages if m.call] == [
        (Mark("m0", "30m"),),
        (Mark("m1", "30m"),),
    ]


def answered(name: str, *output: Any, read: int = 0, tokens: int = 100) -> dict[str, Any]:
    """A response of the Responses API."""
    used = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": read}, "output_tokens": 7}
    times = {"created_at": 1_700_000_000, "completed_at": 1_700_000_003}
    return {"id": name, "model": "gpt-5", "status": "completed", "output": output, "usage": used, **times}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


USE = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}


def test_an_earlier_response_stands_for_its_messages(tmp_path: Path) -> None:
    """`previous_response_id` brings the messages before and the answer, but not the instructions."""
    result = {"type": "function_call_output", "call_id": "c1", "output": "a cat"}
    web = {"type": "web_search_call", "action": {}}
    [told], problems = load(
        tmp_path / "some.yaml",
        interaction(
            RESPONSES,
            {"input": "Look.", "instructions": "Be short.", "tools": [TOOL], "reasoning": {"effort": "low"}},
            answered("r1", THOUGHT, USE),
        ),
        interaction(
            RESPONSES,
            {"input": [result], "instructions": "Be short.", "tools": [TOOL], "previous_response_id": "r1"},
            answered("r2", web, said("A cat."), read=64),
        ),
    )
    assert not problems.errors
    assert [name.partition(": 1")[0] for name in problems.notes] == ["http: hosted tool call of type 'web_search_call'"]
    assert shown(told) == [
        *(("system", "Be short."), ("user", "Look."), ("assistant", "")),
        *(("tool", "a cat"), ("assistant", "A cat.")),
    ]
    first, last = told.messages[2], told.messages[4]
    assert (first.calls, first.thinking, first.time) == ((ToolCall("c1", "look", '{"at": 1}'),), "hm", 1_700_000_003)
    call = Call("gpt-5", "openai", Usage(100, 7, 0), 1_700_000_000.0, effort="low", stop="completed", request_id="r1")
    assert first.call == call
    assert last.call is not None
    assert last.call.usage == Usage(100, 7, 64)


def test_an_unknown_earlier_response_is_counted(tmp_path: Path) -> None:
    """The request is read as it stands, and a note says what is missing."""
    asked = {"input": "Go on.", "previous_response_id": "r0"}
    [told], problems = load(tmp_path / "some.yaml", interaction(RESPONSES, asked, answered("r1", said("Yes."))))
    assert shown(told) == [("user", "Go on."), ("assistant", "Yes.")]
    [note] = problems.notes
    assert "previous_response_id of a response that is not in the file: 1 not read" in note


@pytest.mark.parametrize("separate", [True, False])
def test_a_compaction_keeps_the_history(tmp_path: Path, separate: bool) -> None:
    """A compaction item, made by its own request or within an answer, is beside the messages it stands for."""
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    asked: list[Any] = [{"role": "user", "content": "One"}]
    both = [*asked, {"role": "assistant", "content": "1"}]
    first = [interaction(RESPONSES, {"input": asked}, answered("r1", said("1"), *([] if separate else [item])))]
    if separate:
        first.append(interaction(f"{RESPONSES}/compact", {"input": both}, answered("r2", *asked, item, tokens=156)))
    after = [item, {"role": "user", "content": "Two"}]
    [told], problems = load(
        tmp_path / "some.yaml", *first, interaction(RESPONSES, {"input": after}, answered("r3", said("2")))
    )
    assert not problems.errors
    assert shown(told) == [("user", "One"), ("assistant", "1"), ("user", "Two"), ("assistant", "2")]
    [cut] = told.compactions
    assert (cut.after, cut.first_kept, cut.tokens_before) == ("m1", None, 156 if separate else 100)
    assert "encrypted" in cut.summary


def test_a_usage_of_a_compaction_that_cannot_be_is_a_problem(tmp_path: Path) -> None:
    """A compaction whose response says an impossible usage stands without its tokens, and the usage is reported."""
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    compact = interaction(f"{RESPONSES}/compact", {"input": "One"}, answered("r1", item, tokens=-156))
    after = interaction(RESPONSES, {"input": [item, {"role": "user", "content": "Two"}]}, answered("r2", said("2")))
    [told], problems = load(tmp_path / "some.json", compact, after)
    assert [cut.tokens_before for cut in told.compactions] == [None]
    [error] = problems.errors
    assert error.place.field.endswith("usage.input_tokens")


def test_anthropic_with_marks_iterations_and_a_compaction(tmp_path: Path) -> None:
    """Marks, a summary by the API and a response that was two requests are read as in logs of that API."""
    marked = {"type": "ephemeral", "ttl": "1h"}
    turns = [
        {"role": "user", "content": "One"},
        {
            "role": "assistant",
            "content": [{"type": "compaction", "content": "In short: 1"}, {"type": "text", "text": "1"}],
        },
        {"role": "user", "content": [{"type": "text", "text": "Two", "cache_control": marked}]},
    ]
    part = {"type": "message", "input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 4}
    counts = {**part, "output_tokens": 9, "iterations": [{**part, "type": "compaction", "input_tokens": 500}, part]}
    replied = {"id": "msg", "model": "claude", "content": [{"type": "text", "text": "2"}], "usage": counts}
    [told], problems = load(tmp_path / "some.yaml", interaction(MESSAGES, {"messages": turns}, replied))
    assert not problems.errors
    assert not problems.notes
    [cut] = told.compactions
    assert (cut.after, cut.summary) == ("m0", "In short: 1")
    call = told.messages[-1].call
    assert call is not None
    assert (call.usage, call.marks, call.provider) == (Usage(93, 9, 90), (Mark("m2", "1h"),), "anthropic")
    assert call.iterations == (Iteration(Usage(590, 4, 90)), Iteration(Usage(93, 4, 90)))


def test_gemini_with_stored_content(tmp_path: Path) -> None:
    """`cachedContent` brings what was stored in front; a result answers the call of its name; thoughts are output."""
    made = f"{GEMINI}/models/gemini-2.5-flash:generateContent"
    stored = {
        "contents": [{"role": "user", "parts": [{"text": "Long."}]}],
        "systemInstruction": {"parts": [{"text": "S"}]},
    }
    asked = {"role": "user", "parts": [{"text": "Look."}]}
    use = {
        "role": "model",
        "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "look", "args": {"at": 1}}}],
    }
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "a cat"}}}]}
    counts = {
        "promptTokenCount": 3520,
        "cachedContentTokenCount": 3512,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 42,
    }

    def replied(name: str, content: Any) -> dict[str, Any]:
        candidate = {"content": content, "finishReason": "STOP"}
        return {"candidates": [candidate], "modelVersion": "gemini-2.5", "responseId": name, "usageMetadata": counts}

    answer = {"role": "model", "parts": [{"text": "A cat."}]}
    [told], problems = load(
        tmp_path / "some.yaml",
        interaction(f"{GEMINI}/cachedContents", stored, {"name": "cachedContents/1"}),
        interaction(made, {"cachedContent": "cachedContents/1", "contents": [asked]}, replied("a", use)),
        interaction(
            made, {"cachedContent": "cachedContents/1", "contents": [asked, use, result]}, replied("b", answer)
        ),
    )
    assert not problems.errors
    assert shown(told) == [
        *(("system", "S"), ("user", "Long."), ("user", "Look."), ("assistant", "")),
        *(("tool", "a cat"), ("assistant", "A cat.")),
    ]
    assert told.messages[3].calls == (ToolCall("m3c0", "look", '{"at":1}'),)
    assert (told.messages[3].thinking, told.messages[4].answers) == ("hm", "m3c0")
    assert [m.call.usage for m in told.messages if m.call] == [Usage(3520, 44, 3512, reasoning=42)] * 2


BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers"
CONVERSE_COUNTS = {
    "inputTokens": 12,
    "outputTokens": 5,
    "totalTokens": 1117,
    "cacheReadInputTokens": 1000,
    "cacheWriteInputTokens": 100,
}


def framed(kind: str, payload: Any) -> bytes:
    """One event in AWS's frames; the checksums are not looked at."""
    name, value, data = b":event-type", kind.encode(), json.dumps(payload).encode()
    headers = bytes([len(name)]) + name + b"\x07" + len(value).to_bytes(2, "big") + value
    size = 12 + len(headers) + len(data) + 4
    return size.to_bytes(4, "big") + len(headers).to_bytes(4, "big") + b"\0" * 4 + headers + data + b"\0" * 4


def binary(*parts: bytes) -> dict[str, Any]:
    return {"body": {"base64_string": base64.b64encode(b"".join(parts)).decode()}}


@pytest.mark.parametrize("streamed", [False, True])
def test_converse_of_bedrock(tmp_path: Path, streamed: bool) -> None:
    """Its parts, tools and cache points are read as its documentation has them, streamed or not."""
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    use = {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": 1}}}
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}}
    result = {"toolResult": {"toolUseId": "c1", "content": [{"text": "a cat"}], "status": "success"}}
    spec = {"toolSpec": {"name": "look", "description": "Looks", "inputSchema": {"json": {"type": "object"}}}}
    first = {"role": "user", "content": [{"text": "Look."}, point]}
    said = {"role": "assistant", "content": [thought, {"text": "Well."}, use]}
    request = {
        "system": [{"text": "Be short."}, point],
        "messages": [first],
        "toolConfig": {"tools": [spec, point]},
        "inferenceConfig": {"maxTokens": 100},
    }
    reply = {"output": {"message": said}, "stopReason": "tool_use", "usage": CONVERSE_COUNTS, "metrics": {}}
    body: dict[str, Any] = {}
    if streamed:
        deltas: list[tuple[int, Any]] = [
            *((0, {"reasoningContent": {"text": "h"}}), (0, {"reasoningContent": {"text": "m"}})),
            *((0, {"reasoningContent": {"signature": "x"}}), (1, {"text": "We"}), (1, {"text": "ll."})),
            *((2, {"toolUse": {"input": '{"at"'}}), (2, {"toolUse": {"input": ":1}"}})),
        ]
        start = {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c1", "name": "look"}}}
        events = [framed("contentBlockDelta", {"contentBlockIndex": at, "delta": delta}) for at, delta in deltas]
        body = binary(
            framed("messageStart", {"role": "assistant"}),
            *events[:5],
            framed("contentBlockStart", start),
            *events[5:],
            framed("messageStop", {"stopReason": "tool_use"}),
            framed("metadata", {"usage": CONVERSE_COUNTS, "metrics": {"latencyMs": 900}}),
        )
    answer = {"output": {"message": {"role": "assistant", "content": [{"text": "A cat."}]}}, "stopReason": "end_turn"}
    more = {**request, "messages": [first, said, {"role": "user", "content": [result]}]}
    [told], problems = load(
        tmp_path / "some.yaml",
        interaction(f"{BEDROCK}/converse{'-stream' if streamed else ''}", request, reply, **body),
        interaction(f"{BEDROCK}/converse", more, answer),
    )
    assert (problems.errors, problems.notes) == ([], [])
    assert shown(told) == [
        *(("system", "Be short."), ("user", "Look."), ("assistant", "Well.")),
        *(("tool", "a cat"), ("assistant", "A cat.")),
    ]
    assert [(call.name, json.loads(call.arguments)) for call in told.messages[2].calls] == [("look", {"at": 1})]
    assert (told.messages[2].thinking, [tool.name for tool in told.tools]) == ("hm", ["look"])
    call = told.messages[2].call
    assert call is not None
    assert (call.model, call.provider) == ("us.anthropic.claude-sonnet-4-20250514-v1:0", "bedrock")
    assert (call.usage, call.stop) == (Usage(1112, 5, 1000, 100), "tool_use")
    assert call.marks == (Mark(None, "1h"), Mark("m0", "1h"), Mark("m1", "1h"))


CLAUDE = {"type": "message", "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-20250514"}
CLAUDE_COUNTS = {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 4}


def test_models_in_their_own_words(tmp_path: Path) -> None:
    """Claude and Nova by InvokeModel, Claude and Gemini by Vertex; Bedrock's own name of a model is kept."""
    asked = {"max_tokens": 9, "messages": [{"role": "user", "content": "Go"}]}
    claude = {**CLAUDE, "content": [{"type": "text", "text": "Gone"}], "usage": CLAUDE_COUNTS}
    nova = {"output": {"message": {"role": "assistant", "content": [{"text": "Gone"}]}}, "usage": CONVERSE_COUNTS}
    gemini = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Gone"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2},
    }
    events = [
        {"type": "message_start", "message": {**CLAUDE, "id": "msg_2", "usage": CLAUDE_COUNTS}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Gone"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    ]
    chunks = (framed("chunk", {"bytes": base64.b64encode(json.dumps(one).encode()).decode()}) for one in events)
    bedrock, vertex = {**asked, "anthropic_version": "bedrock-2023-05-31"}, {**asked, "anthropic_version": "vertex"}
    nova_url = BEDROCK.partition("/model/")[0] + "/model/amazon.nova-lite-v1%3A0/invoke"
    nova_asked = {"schemaVersion": "messages-v1", "messages": [{"role": "user", "content": [{"text": "Go"}]}]}
    contents = {"contents": [{"role": "user", "parts": [{"text": "Go"}]}]}
    told, problems = load(
        tmp_path / "some.yaml",
        interaction(f"{BEDROCK}/invoke", bedrock, claude),
        interaction(f"{BEDROCK}/invoke-with-response-stream", bedrock, None, **binary(*chunks)),
        interaction(nova_url, nova_asked, nova),
        interaction(f"{VERTEX}/anthropic/models/claude-sonnet-4@20250514:rawPredict", vertex, {**claude, "id": "v"}),
        interaction(f"{VERTEX}/google/models/gemini-2.5-pro:generateContent", contents, gemini),
        interaction(f"{BEDROCK}/invoke", {"inputText": "Go"}, {"results": []}),
    )
    assert not problems.errors
    [note] = problems.notes[:1]
    assert note.startswith("http: InvokeModel of a model that is neither Claude nor Nova: 1 not read")
    assert {tuple(shown(one)) for one in told} == {(("user", "Go"), ("assistant", "Gone"))}
    name = "us.anthropic.claude-sonnet-4-20250514-v1:0"
    calls = [one.messages[-1].call for one in told]
    assert [(call.provider, call.model, call.usage) for call in calls if call] == [
        ("bedrock", name, Usage(93, 4, 90)),
        ("bedrock", name, Usage(93, 4, 90)),
        ("bedrock", "amazon.nova-lite-v1:0", Usage(1112, 5, 1000, 100)),
        ("vertex", "claude-sonnet-4-20250514", Usage(93, 4, 90)),
        ("vertex", "gemini-2.5-pro", Usage(9, 2)),
    ]


@pytest.mark.parametrize(("cut", "answers"), [(20, []), (150, ["Lo"]), (400, ["LoLo"])])
def test_frames_may_be_cut_off(tmp_path: Path, cut: int, answers: list[str]) -> None:
    """What a stream of Bedrock's holds until then is the answer so far; without a whole frame there is an error."""
    delta = framed("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Lo"}})
    assert 75 < len(delta) <= 150
    request = {"messages": [{"role": "user", "content": [{"text": "Go"}]}]}
    asked = interaction(f"{BEDROCK}/converse-stream", request, None, **binary((delta + delta)[:cut]))
    told, problems = load(tmp_path / "some.yaml", asked)
    assert [one.messages[-1].text for one in told] == answers
    assert len(problems.errors) == (not answers)


def stream(*chunks: Any) -> dict[str, Any]:
    """A response's body as a stream of events."""
    lines = [f"event: {chunk.get('type')}\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return {"body": {"string": "".join(lines) + "data: [DONE]\n\n"}}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


STREAMS: dict[str, tuple[str, Any, list[Any]]] = {
    "chat": (
        CHAT,
        {"messages": [{"role": "user", "content": "Go"}]},
        [
            delta(role="assistant", content="Lo"),
            delta(content="ok"),
            delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a'}}]),
            delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": 't":1}'}}]),
            {"id": "r", "model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        ],
    ),
    "responses": (
        RESPONSES,
        {"input": "Go"},
        [
            {"type": "response.created", "response": {"id": "r"}},
            {
                "type": "response.completed",
                "response": {
                    "id": "r",
                    "model": "m",
                    "output": [said("Look"), {**USE, "arguments": '{"at":1}'}],
                    "usage": {"input_tokens": 9, "input_tokens_details": {}, "output_tokens": 3},
                },
            },
        ],
    ),
    "anthropic": (
        MESSAGES,
        {"messages": [{"role": "user", "content": "Go"}]},
        [
            {"type": "message_start", "message": {"id": "r", "model": "m", "usage": {"input_tokens": 9}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Lo"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at'}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '":1}'}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        ],
    ),
    "gemini": (
        f"{GEMINI}/models/m:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Go"}]}]},
        [
            {"candidates": [{"content": {"parts": [{"text": "Look"}]}}], "modelVersion": "m"},
            {
                "candidates": [
                    {"content": {"parts": [{"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}}]}}
                ],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
            },
        ],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(tmp_path: Path, name: str) -> None:
    """A streamed response of each API is the response that it would have been."""
    url, asked, chunks = STREAMS[name]
    [told], problems = load(tmp_path / "some.yaml", interaction(url, asked, None, **stream(*chunks)))
    assert not problems.errors
    answer = told.messages[-1]
    assert (answer.text, answer.calls) == ("Look", (ToolCall("c1", "look", '{"at":1}'),))
    assert answer.call is not None
    assert (answer.call.model, answer.call.usage) == ("m", Usage(9, 3))


def bodies() -> Iterable[Any]:
    text = json.dumps({"model": "m", "choices": [{"message": {"role": "assistant", "content": "Yes"}}]})
    yield {"body": {"string": text}}
    yield {"body": {"string": gzip.compress(text.encode(), mtime=0)}}
    yield {"body": {"base64_string": base64.b64encode(text.encode()).decode()}}
    yield {"content": {"data": base64.b64encode(text.encode()).decode()}}
    yield {"parsed_body": json.loads(text)}


@pytest.mark.parametrize("body", list(bodies()))
def test_bodies(tmp_path: Path, body: dict[str, Any]) -> None:
    """A body may be text, compressed, base64, or parsed already."""
    asked = {"messages": [{"role": "user", "content": "Go"}]}
    [told], problems = load(tmp_path / "some.yml", interaction(CHAT, asked, None, **body))
    assert not problems.errors
    assert told.messages[-1].text == "Yes"


def test_har(tmp_path: Path) -> None:
    """A HAR file has the times at which requests began and ended."""
    replied = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "Yes"}}]}
    entry = {
        "startedDateTime": "2023-11-14T22:13:20.000Z",
        "time": 1500,
        "request": {
            "method": "POST",
            "url": CHAT,
            "postData": {"text": json.dumps({"messages": [{"role": "user", "content": "Go"}]})},
        },
        "response": {"status": 200, "content": {"mimeType": "application/json", "text": json.dumps(replied)}},
    }
    page = {"request": {"method": "GET", "url": "https://example.org"}, "response": {"status": 200, "content": {}}}
    path = tmp_path / "some.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [page, entry]}}))
    assert isinstance(detect(path), HttpRecordings)
    problems = Problems()
    [told] = read(find([path], problems), problems)
    assert not problems.errors
    assert told.messages[-1].time == 1_700_000_001.5
    assert told.messages[-1].call == Call("m", "openai", started=1_700_000_000.0)


@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        (interaction(CHAT, {"messages": 5}, {}), "interactions[1].request.parsed_body.messages", "expected array"),
        (
            interaction(CHAT, {"messages": []}, {"choices": []}),
            "interactions[1].response.parsed_body.choices",
            "no answer",
        ),
        (
            interaction(RESPONSES, {"input": [{"type": "function_call"}]}, {}),
            "interactions[1].request",
            "a tool call needs",
        ),
        (
            interaction(RESPONSES, {"input": "a"}, None, body={"string": "data: {}\n\n"}),
            "interactions[1]",
            "the stream ends",
        ),
        (interaction(CHAT, {"messages": []}, None, body={"base64_string": "!"}), "interactions[1]", "no text"),
        ({"request": {"uri": 5}, "response": {}}, "interactions[1].request.uri", "expected str"),
        (
            interaction(
                RESPONSES, {"input": [{"type": "function_call_output", "call_id": "x"}]}, answered("r9", said("a"))
            ),
            "interactions[1].request.parsed_body.input[0]",
            "tool result for 'x'",
        ),
    ],
)
def test_a_bad_interaction_is_one_clear_error(tmp_path: Path, bad: Any, field: str, what: str) -> None:
    """It is named by its field, and its neighbours are read."""
    asked = [{"role": "user", "content": "One"}]
    told, problems = load(tmp_path / "some.json", chat(asked, "1", "r1"), bad, chat(asked, "1", "r2"))
    assert sum(shown(one) == [("user", "One"), ("assistant", "1")] for one in told) == 2
    [error] = problems.errors
    assert error.place.field.startswith(field)
    assert what in error.what


BOMB = "- [&a0 [x], " + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)) + "]\n"


@pytest.mark.parametrize(
    ("tail", "what"),
    [
        ("- request: {uri: [\n", "not YAML"),
        ("- request: !!int ''\n", "not YAML"),
        ("- &a [*a]\n", "over 20,000,000 values"),
        (BOMB, "over 20,000,000 values"),
    ],
)
def test_damaged_yaml(tmp_path: Path, tail: str, what: str) -> None:
    """What is no YAML, refers to itself, or stands for far more than its text is one clear error."""
    path = tmp_path / "some.yaml"
    path.write_text(f"interactions:\n- request: {{uri: 'x'}}\n  response: {{}}\n{tail}")
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    [error] = problems.errors
    assert what in error.what
    assert "looks for" not in error.what, "it is of this format"


WHOLE = yaml.safe_dump({"interactions": [chat([{"role": "user", "content": "é: One"}], "1", "r1")]}, allow_unicode=True)


@examples(200, ignored=HealthCheck)
@given(
    st.integers(0, len(WHOLE)), st.integers(0, 30), st.text(max_size=8) | st.sampled_from(["!!binary x", "? ", "&a *a"])
)
def test_any_change_of_a_cassette(at: int, cut: int, put: str) -> None:
    """Whatever stands in a cassette in YAML: only problems with its place, and sound conversations."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.yaml"
        path.write_text(WHOLE[:at] + put + WHOLE[at + cut :], encoding="utf-8", errors="surrogatepass")
        problems = Problems()
        for one in read(find([path], problems, "http"), problems):
            check(one, Place(str(path)))
        for error in problems.errors:
            assert error.place.file == str(path)
            str(error).encode()


# File: of each conversation its messages, and of each call its prompt, read and written tokens.
CASSETTES: dict[str, list[tuple[int, list[tuple[int, int, int | None]]]]] = {
    "openllmetry_langchain_agents": [(5, [])] * 4,
    "test_anthropic_cache_real_api": [(5, [(1114, 1111, 0), (1532, 1111, 418)])],
    "test_google_model_cached_content": [(4, [(3520, 3512, None)])] * 2,
    "test_mistral_history_uses_prompt_cache": [(5, [(253, 0, None), (268, 224, None)])],
    "test_openai_chat_prompt_cache_e2e": [(2, [(4020, 0, 4012)]), (2, [(4020, 4012, 0)])],
    "test_openai_responses_compact_messages": [(7, [(29, 0, None), (51, 0, None), (298, 0, None)])],
    "test_openai_responses_compact_stateful_mode": [
        (8, [(25, 0, None), (435, 0, None), (847, 0, None), (552, 0, None)])
    ],
    "test_openai_responses_prompt_cache_e2e": [(2, [(4020, 0, 4012)]), (2, [(4020, 4012, 0)])],
    "test_openai_responses_thinking_with_tool_calls": [(5, [(124, 0, None), (2087, 2048, None)])],
    "test_web_search_agent_run_in_workflow": [(2, [(12594, 3200, None)])],
}


@pytest.mark.parametrize("name", CASSETTES)
def test_recorded_cassettes(recordings: Path, name: str) -> None:
    """Ten cassettes, to the token. Prompts that were compacted (156 tokens) are beside the compaction."""
    problems = Problems()
    told = list(read(find([recordings / "http-cassettes" / f"{name}.yaml"], problems), problems))
    assert not problems.errors
    used = [[m.call.usage for m in one.messages if m.call and m.call.usage] for one in told]
    counts = [[(one.input, one.cache_read, one.cache_write) for one in calls] for calls in used]
    assert [(len(one.messages), calls) for one, calls in zip(told, counts, strict=True)] == CASSETTES[name]
    compacted = [cut.tokens_before for one in told for cut in one.compactions]
    assert compacted == {"messages": [156], "stateful_mode": [847]}.get(name.partition("_compact_")[2], [])
    if name.startswith("openllmetry"):
        assert sum(message.call is not None for one in told for message in one.messages) == 8


def test_a_stream_ends_with_the_edits_of_its_prompt(tmp_path: Path) -> None:
    """Anthropic reports in the last event of a stream what it cleared from the prompt."""
    url, asked, chunks = STREAMS["anthropic"]
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000}
    ending = {**chunks[-1], "context_management": {"applied_edits": [edit]}}
    replied = stream(*chunks[:-1], ending)
    [told], problems = load(tmp_path / "some.yaml", interaction(url, asked, None, **replied))
    assert not problems.errors
    [call] = [message.call for message in told.messages if message.call]
    assert call.edits == (ContextEdit("clear_tool_uses_20250919", 50_000, tool_uses=8),)
