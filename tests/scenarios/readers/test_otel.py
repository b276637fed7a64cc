"""OpenTelemetry spans: every container and every convention gives the same two calls, each counted once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.otel import Otel
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import FUNCTION
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, load, shown, usages

Flat = dict[str, Any]


def spread(prefix: str, messages: list[Any]) -> Flat:
    """Messages as attributes of their own: `prefix.0.role` …"""
    flat: Flat = {}

    def add(name: str, value: Any) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, dict | list):
                add(f"{name}.{key}", inner)
            else:
                flat[f"{name}.{key}"] = inner

    add(prefix, messages)
    return flat


def parts(message: dict[str, Any]) -> dict[str, Any]:
    """A chat message with OpenTelemetry's parts."""
    if message["role"] == "tool":
        response = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [response]}
    said = [{"type": "text", "content": message["content"]}] if message["content"] else []
    made = [
        {"type": "tool_call", "id": call["id"], "name": "look", "arguments": {"at": 1}}
        for call in message.get("tool_calls", [])
    ]
    return {"role": message["role"], "parts": [*said, *made]}


def conventions(prompt: list[Any], answer: Any) -> Flat:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.response.model": "m",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be short."}]),
        "gen_ai.input.messages": json.dumps([parts(message) for message in prompt[1:]]),
        "gen_ai.output.messages": json.dumps([{**parts(answer), "finish_reason": "stop"}]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **FUNCTION}]),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 60,
    }


def openllmetry(prompt: list[Any], answer: Any) -> Flat:
    def flat(message: dict[str, Any]) -> dict[str, Any]:
        calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", [])]
        content = message["content"]
        if message["role"] == "user":
            content = json.dumps([{"type": "text", "text": content}])
        return {**message, "content": content} | ({"tool_calls": calls} if calls else {})

    return {
        "llm.request.type": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "asked",
        "gen_ai.response.model": "m",
        **spread("gen_ai.prompt", [flat(message) for message in prompt]),
        **spread("gen_ai.completion", [{**flat(answer), "finish_reason": "stop"}]),
        **spread("llm.request.functions", [{**FUNCTION, "parameters": '{"type":"object"}'}]),
        "gen_ai.usage.prompt_tokens": 100,
        "gen_ai.usage.completion_tokens": 5,
        "gen_ai.usage.cache_read_input_tokens": 60,
        "llm.usage.total_tokens": 105,
    }


def openinference(prompt: list[Any], answer: Any) -> Flat:
    def nested(message: dict[str, Any]) -> dict[str, Any]:
        calls = [{"tool_call": call} for call in message.get("tool_calls", [])]
        return {"message": {**message, **({"tool_calls": calls} if calls else {})}}

    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.provider": "openai",
        **spread("llm.input_messages", [nested(message) for message in prompt]),
        **spread("llm.output_messages", [nested(answer)]),
        "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": FUNCTION}),
        "gen_ai.response.finish_reasons": ["stop"],
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 5,
        "llm.token_count.total": 105,
        "llm.token_count.prompt_details.cache_read": 60,
    }


def vercel(prompt: list[Any], answer: Any) -> Flat:
    calls = [{"toolCallId": "t1", "toolName": "look", "args": '{"at":1}'}] if "tool_calls" in answer else []
    return {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.provider": "openai",
        "ai.prompt.messages": json.dumps(prompt),
        "ai.prompt.tools": [json.dumps({"type": "function", **FUNCTION})],
        "ai.response.finishReason": "stop",
        **({"ai.response.toolCalls": json.dumps(calls)} if calls else {"ai.response.text": answer["content"]}),
        "gen_ai.response.model": "m",
        "ai.usage.inputTokens": 100,
        "ai.usage.outputTokens": 5,
        "ai.usage.cachedInputTokens": 60,
    }


def adk(prompt: list[Any], answer: Any) -> Flat:
    roles = {"assistant": "model", "tool": "user", "user": "user"}

    def content(message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] == "tool":
            result = {"id": "t1", "name": "look", "response": {"output": message["content"]}}
            return {"role": "user", "parts": [{"function_response": result}]}
        if "tool_calls" in message:
            return {"role": "model", "parts": [{"function_call": {"id": "t1", "name": "look", "args": {"at": 1}}}]}
        return {"role": roles[message["role"]], "parts": [{"text": message["content"]}]}

    config = {"system_instruction": "Be short.", "tools": [{"function_declarations": [FUNCTION]}]}
    asked = {"model": "m", "config": config, "contents": [content(message) for message in prompt[1:]]}
    return {
        "gen_ai.system": "openai",
        "gen_ai.request.model": "m",
        "gcp.vertex.agent.llm_request": json.dumps(asked),
        "gcp.vertex.agent.llm_response": json.dumps({"content": content(answer), "finish_reason": "stop"}),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read_input_tokens": 60,
    }


def pydantic_ai(prompt: list[Any], answer: Any) -> Flat:
    events: list[Any] = [{**message, "event.name": f"gen_ai.{message['role']}.message"} for message in prompt]
    for event in events:
        if event["role"] == "tool":
            event["id"] = event.pop("tool_call_id")
    choice = {"index": 0, "message": answer, "event.name": "gen_ai.choice"}
    offered = {
        "function_tools": [{"name": "look", "description": "Looks", "parameters_json_schema": {"type": "object"}}]
    }
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ["stop"],
        "events": json.dumps([*events, choice]),
        "model_request_parameters": json.dumps(offered),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.details.cache_read_tokens": 60,
    }


def spans(make: Callable[[list[Any], Any], Flat] = conventions) -> list[Flat]:
    """A span of an agent, and two calls in it, later one first."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "cats", "session.id": "s1"}
    return [
        {"id": "c", "parent": "a", "start": 5, "attributes": make(LATER, SAID)},
        {"id": "b", "parent": "a", "start": 2, "attributes": make(PROMPT, CALLED)},
        {"id": "a", "parent": "", "start": 1, "attributes": agent},
    ]


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(one) for one in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp(*recorded: Flat, top: str = "resourceSpans", scope: str = "scopeSpans") -> Flat:
    listed = [
        {
            "traceId": "T",
            "spanId": span["id"],
            "parentSpanId": span["parent"],
            "name": "x",
            "startTimeUnixNano": f"{span['start']}000000000",
            "endTimeUnixNano": span["start"] * 10**9 + 10**9,
            "attributes": [{"key": key, "value": typed(value)} for key, value in span["attributes"].items()],
            "events": [
                {"name": name, "attributes": [{"key": key, "value": typed(value)} for key, value in event.items()]}
                for name, event in span.get("events", [])
            ],
            "status": span.get("status", {}),
        }
        for span in recorded
    ]
    return {top: [{"resource": {}, scope: [{"spans": listed}]}]}


def jaeger(*recorded: Flat) -> Flat:
    listed = [
        {
            "traceID": "T",
            "spanID": span["id"],
            "operationName": "x",
            "references": [{"refType": "CHILD_OF", "traceID": "T", "spanID": span["parent"]}] if span["parent"] else [],
            "startTime": span["start"] * 10**6,
            "duration": 10**6,
            "tags": [
                {"key": key, "type": "string", "value": json.dumps(value) if isinstance(value, list) else value}
                for key, value in span["attributes"].items()
            ],
        }
        for span in recorded
    ]
    return {"data": [{"traceID": "T", "spans": listed, "processes": {}}]}


def javascript(*recorded: Flat) -> list[Flat]:
    return [
        {
            "name": "x",
            "spanContext": {"traceId": "T", "spanId": span["id"]},
            **({"parentSpanContext": {"traceId": "T", "spanId": span["parent"]}} if span["parent"] else {}),
            "attributes": span["attributes"],
            "startTime": [span["start"], 0],
            "endTime": [span["start"] + 1, 0],
            "events": [],
        }
        for span in recorded
    ]


def python(*recorded: Flat) -> list[Flat]:
    return [
        {
            "name": "x",
            "context": {"trace_id": "0xT", "span_id": span["id"]},
            "parent_id": span["parent"] or None,
            "start_time": f"1970-01-01T00:00:0{span['start']}.000000Z",
            "end_time": f"1970-01-01T00:00:0{span['start'] + 1}.000000Z",
            "attributes": span["attributes"],
            "status": {"status_code": "UNSET"},
        }
        for span in recorded
    ]


def phoenix(*recorded: Flat) -> list[Flat]:
    return [
        {
            "name": "x",
            "context.span_id": span["id"],
            "context.trace_id": "T",
            "parent_id": span["parent"],
            "start_time": f"1970-01-01T00:00:0{span['start']}+00:00",
            "end_time": f"1970-01-01T00:00:0{span['start'] + 1}+00:00",
            "attributes": span["attributes"],
        }
        for span in recorded
    ]


def logfire(*recorded: Flat) -> list[Flat]:
    rows = [
        {
            "span_name": "x",
            "kind": "span",
            "trace_id": "T",
            "span_id": span["id"],
            "parent_span_id": span["parent"] or None,
            "start_timestamp": f"1970-01-01T00:00:0{span['start']}Z",
            "end_timestamp": f"1970-01-01T00:00:0{span['start'] + 1}Z",
            "attributes": span["attributes"],
            "otel_status_code": None,
        }
        for span in recorded
    ]
    pending = [{**row, "kind": "pending_span", "span_id": f"p{row['span_id']}"} for row in rows]
    return [*pending, *rows]


def columns(rows: list[Flat]) -> Flat:
    """Rows as Logfire's API answers, a list of values for each column."""
    names = {name: None for row in rows for name in row}
    return {"columns": [{"name": n, "datatype": "x", "values": [row.get(n) for row in rows]} for n in names]}


def check(found: list[Conversation], problems: Problems, has_tools: bool = True) -> None:
    assert not problems.errors
    [chat] = found
    assert shown(chat) == SHOWN
    assert usages(chat) == [Usage(100, 5, 60)] * 2
    last = chat.messages[-1].call
    assert last is not None
    assert (last.model, last.provider, last.stop, last.started, chat.messages[-1].time) == ("m", "openai", "stop", 5, 6)
    assert (chat.id, chat.meta) == ("s1", {"agent": "cats"})
    assert [tool.name for tool in chat.tools] == ["look"] * has_tools
    assert not problems.notes


@pytest.mark.parametrize("make", [conventions, openllmetry, openinference, vercel, adk, pydantic_ai])
def test_every_convention(make: Callable[[list[Any], Any], Flat], tmp_path: Path) -> None:
    """Two calls of an agent are one conversation with usage, tools, times and the session's id."""
    check(*load(tmp_path, otlp(*spans(make))))


@pytest.mark.parametrize(
    "container",
    [
        otlp(*spans()),
        [otlp(span) for span in spans()],
        otlp(*spans(), top="batches"),
        otlp(*spans(), top="batches", scope="instrumentationLibrarySpans"),
        {"trace": otlp(*spans())},
        jaeger(*spans()),
        javascript(*spans()),
        json.dumps(javascript(*spans())),
        python(*spans()),
        phoenix(*spans()),
        logfire(*spans()),
        {"rows": [{**row, "attributes": json.dumps(row["attributes"])} for row in logfire(*spans())]},
        columns(logfire(*spans())),
        phoenix(*[{**span, "attributes": {"llm": {"model_name": "m", "provider": "openai", "token_count": {
            "prompt": 100, "completion": 5, "prompt_details": {"cache_read": 60}}}, **span["attributes"]}}
            for span in spans()]),
    ],
)  # fmt: skip
def test_every_container(container: Any, tmp_path: Path) -> None:
    """Each is recognised, and holds the same conversation, also with its spans on lines or in files of their own."""
    check(*load(tmp_path, container))


def test_the_spans_of_a_trace_may_stand_in_several_files(tmp_path: Path) -> None:
    """The files of a folder are read together."""
    check(*load(tmp_path, *[otlp(span) for span in spans()]))


def test_protobuf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTLP in protobuf reads like its JSON, also message by message; without the extra, an error names it."""
    json_format = pytest.importorskip("google.protobuf.json_format")
    traces = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2").TracesData

    def message(*recorded: Flat) -> bytes:
        export = otlp(*recorded)
        for span in export["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            span |= {
                "traceId": "q80=",
                "spanId": span["spanId"] + "w==",
                "parentSpanId": span["parentSpanId"] and "aw==",
            }
        return bytes(json_format.ParseDict(export, traces()).SerializeToString())

    path = tmp_path / "one.pb"
    path.write_bytes(message(*spans()))
    assert type(detect(path)) is Otel
    problems = Problems()
    check(list(read(find([path], problems), problems)), problems)
    several = [message(span) for span in spans()]
    path.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in several))
    problems = Problems()
    check(list(read(find([path], problems), problems)), problems)
    path.write_bytes(several[0][:-9])
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    assert [str(error) for error in problems.errors] == [
        f"{path}: no OTLP traces in protobuf (is it cut off, or another signal?)"
    ]
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    assert [str(error) for error in problems.errors] == [
        f"{path}: opentelemetry-proto is not installed (pip install 'ctxbench[otlp]')"
    ]


@pytest.mark.parametrize("file", ["spans.jsonl", "spans.pb"])
def test_what_the_sdk_writes(file: str, tmp_path: Path) -> None:
    """Spans of OpenTelemetry's own SDK read alike from the objects that it prints and from its encoder of OTLP."""
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    simple = pytest.importorskip("opentelemetry.sdk.trace.export")
    provider, memory = sdk.TracerProvider(), export.InMemorySpanExporter()
    provider.add_span_processor(simple.SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "cats", "session.id": "s1"}
    with tracer.start_as_current_span("agent", attributes=agent):
        for prompt, answer in ((PROMPT, CALLED), (LATER, SAID)):
            with tracer.start_as_current_span("chat m", attributes=conventions(prompt, answer)):
                pass
    finished = memory.get_finished_spans()
    path = tmp_path / file
    if file == "spans.pb":
        encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
        path.write_bytes(encoder.encode_spans(finished).SerializeToString())
    else:
        path.write_text("\n".join(span.to_json(indent=None) for span in finished))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    assert not problems.errors
    assert (chat.id, chat.meta, shown(chat), usages(chat)) == ("s1", {"agent": "cats"}, SHOWN, [Usage(100, 5, 60)] * 2)
