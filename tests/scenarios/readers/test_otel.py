"""OpenTelemetry spans: every container and every convention gives the same two calls, each counted once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.otel import Otel
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import FUNCTION
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, load, sample_usages, shown, usages

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


def data_frame() -> list[Flat]:
    """Two calls as rows of Phoenix's `get_spans_dataframe`: their messages are lists of objects with flat names."""

    def message(said: Flat) -> Flat:
        calls = [
            {
                "tool_call.id": call["id"],
                **{f"tool_call.function.{key}": text for key, text in call["function"].items()},
            }
            for call in said.get("tool_calls", ())
        ]
        return {f"message.{key}": value for key, value in {**said, "tool_calls": calls}.items() if value}

    def cells(prompt: list[Flat], answer: Flat) -> Flat:
        counts = {"prompt": 100, "completion": 5, "prompt_details.cache_read": 60}
        return {
            "openinference.span.kind": "LLM",
            **{f"llm.token_count.{name}": count for name, count in counts.items()},
            "llm.input_messages": [message(one) for one in prompt],
            "llm.output_messages": [message(answer)],
            "llm.tools": [{"tool.json_schema": json.dumps({"type": "function", "function": {"name": "look"}})}],
        }

    rows = phoenix(
        {"id": "a", "parent": "", "start": 1, "attributes": cells(PROMPT, CALLED)},
        {"id": "b", "parent": "", "start": 5, "attributes": cells(LATER, SAID)},
    )
    return [{**{f"attributes.{key}": cell for key, cell in row.pop("attributes").items()}, **row} for row in rows]


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


@pytest.mark.parametrize("packed", [".parquet", ".csv", ".jsonl"])
def test_the_data_frame_of_phoenix(packed: str, tmp_path: Path) -> None:
    """Its flat names within lists are read as messages and tools, and the numbers of a CSV as numbers."""
    rows = data_frame()
    frame = pd.DataFrame(rows)
    if packed == ".parquet":
        frame.to_parquet(tmp_path / "spans.parquet")
    elif packed == ".csv":
        frame.map(lambda cell: json.dumps(cell) if isinstance(cell, list) else cell).to_csv(tmp_path / "spans.csv")
    else:
        (tmp_path / "spans.jsonl").write_text("\n".join(map(json.dumps, rows)))
    [chat], problems = load(tmp_path)
    assert not problems.errors
    assert not problems.notes
    assert shown(chat) == SHOWN
    assert usages(chat) == [Usage(100, 5, 60)] * 2
    assert [tool.name for tool in chat.tools] == ["look"]


def test_what_logfire_instruments_itself(tmp_path: Path) -> None:
    """The request and the response stand in two attributes, with the provider's usage; a stream has its text alone."""
    told = []
    for at, (prompt, answer) in enumerate([(PROMPT, CALLED), (LATER, SAID)]):
        counts = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
        request = {"model": "m", "messages": prompt, "tools": [{"type": "function", "function": {"name": "look"}}]}
        response = {"message": answer, "usage": counts} if at == 0 else {"combined_chunk_content": "A cat."}
        fields = {"gen_ai.request.model": "m", "request_data": request, "response_data": response}
        told.append({"id": f"b{at}", "parent": "", "start": at, "attributes": fields})
    [chat], problems = load(tmp_path, logfire(*told))
    assert not problems.errors
    assert shown(chat) == SHOWN
    assert usages(chat) == [Usage(100, 5, 60), None]
    assert [tool.name for tool in chat.tools] == ["look"]


def test_the_spans_of_a_trace_may_stand_in_several_files(tmp_path: Path) -> None:
    """The files of a folder are read together."""
    check(*load(tmp_path, *[otlp(span) for span in spans()]))


def test_messages_that_are_events(tmp_path: Path) -> None:
    """Prompts and answers of older conventions are events of the span, as fields, as JSON, or in one event each."""
    plain = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.response.model": "m",
             "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5,
             "gen_ai.usage.cache_read_input_tokens": 60, "gen_ai.response.finish_reasons": ["stop"]}  # fmt: skip
    calls = json.dumps(CALLED["tool_calls"])
    fields = [
        ("gen_ai.system.message", {"content": "Be short."}),
        ("gen_ai.user.message", {"gen_ai.event.content": json.dumps({"role": "user", "content": "What is it?"})}),
        ("gen_ai.choice", {"index": 0, "message": json.dumps({"tool_calls": CALLED["tool_calls"]})}),
    ]
    whole = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(LATER)}),
        ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([SAID])}),
    ]
    agent, first, last = (span for span in reversed(spans()))
    first |= {"attributes": plain, "events": fields}
    check(*load(tmp_path, otlp(agent, first, {**last, "attributes": plain, "events": whole})), has_tools=False)
    fields[2:] = [("gen_ai.assistant.message", {"content": "", "tool_calls": calls}),
                  ("gen_ai.tool.message", {"content": "a cat", "id": "t1"}),
                  ("gen_ai.choice", {"message": json.dumps(SAID)})]  # fmt: skip
    [chat], _ = load(tmp_path, otlp({**last, "attributes": plain, "events": fields}))
    assert shown(chat) == SHOWN
    details = {"gen_ai.input.messages": json.dumps(LATER), "gen_ai.output.messages": json.dumps([SAID])}
    event = ("gen_ai.client.inference.operation.details", details)
    [chat], _ = load(tmp_path, otlp({**last, "attributes": plain, "events": [event]}))
    assert shown(chat) == SHOWN


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


def test_blocks_that_openllmetry_writes_as_text(tmp_path: Path) -> None:
    """A content that is the JSON of blocks is these blocks, results of tools among them; other JSON is text."""
    result = [{"tool_use_id": "t1", "type": "tool_result", "content": "a cat"}]
    messages = [
        {"role": "user", "content": "[1, 2]"},
        {"role": "assistant", "tool_calls": [{"id": "t1", "name": "look", "arguments": "{}"}]},
        {"role": "user", "content": json.dumps(result)},
    ]
    attributes = {"llm.request.type": "chat", **spread("gen_ai.prompt", messages)}
    [chat], problems = load(tmp_path, otlp({"id": "b", "parent": "", "start": 2, "attributes": attributes}))
    assert not problems.errors
    assert shown(chat) == [("user", "[1, 2]"), ("assistant", "look(t1)"), ("tool", "a cat"), ("assistant", "")]


def test_a_wrapper_counts_once(tmp_path: Path) -> None:
    """`ai.generateText` repeats the usage of the call inside it, and is none."""
    inner = {"id": "b", "parent": "a", "start": 2, "attributes": vercel(PROMPT, SAID)}
    attributes = {"ai.operationId": "ai.generateText", "ai.usage.inputTokens": 100, "ai.telemetry.functionId": "haiku"}
    [chat], _ = load(tmp_path, otlp({"id": "a", "parent": "", "start": 1, "attributes": attributes}, inner))
    assert (usages(chat), chat.meta) == ([Usage(100, 5, 60)], {"agent": "haiku"})


def test_a_failed_call_is_counted(tmp_path: Path) -> None:
    """A span with the status of an error and without an answer is no call."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(PROMPT)}
    span = {"id": "b", "parent": "", "start": 2, "attributes": attributes, "status": {"code": 2}}
    found, problems = load(tmp_path, otlp(span))
    assert not found
    assert problems.notes[0].startswith("otel: failed model call: 1 not read")


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("spanId", 5, ".spanId: expected str, got int"),
        ("startTimeUnixNano", "soon", ".startTimeUnixNano: soon is no time"),
        ("attributes", {}, ".attributes: expected array, got object"),
    ],
)
def test_a_bad_span_costs_only_itself(field: str, value: Any, what: str, tmp_path: Path) -> None:
    """Its error has file, line and field, and the other spans are read."""
    export = otlp(*spans())
    export["resourceSpans"][0]["scopeSpans"][0]["spans"][0][field] = value
    [chat], problems = load(tmp_path, export)
    assert shown(chat) == SHOWN[:3]
    [error] = problems.errors
    place = f"{tmp_path / 'trace0.json'}:1: resourceSpans[0].scopeSpans[0].spans[0]{what}"
    assert str(error).replace("`", "").startswith(place)


def test_bad_usage_costs_only_itself(tmp_path: Path) -> None:
    """A count that is none is a problem; the call stays."""
    one = {**spans()[1], "parent": ""}
    one["attributes"] = {**one["attributes"], "gen_ai.usage.input_tokens": "many"}
    [chat], problems = load(tmp_path, otlp(one))
    assert usages(chat) == [None]
    assert "is no number of tokens" in str(problems.errors[0])


def test_files_without_a_model_call_are_ignored(tmp_path: Path) -> None:
    """Traces of web servers are no recordings, and are named."""
    found, problems = load(tmp_path, otlp(spans()[2]))
    assert not found
    assert problems.ignored == [f"{tmp_path / 'trace0.json'}: no model call among its 1 spans"]


def test_the_samples(recordings: Path) -> None:
    """Each call of the sample traces counts once, however many spans show it, with its cache read."""
    assert sample_usages(recordings / "otel") == {
        "helm.json": [("gpt-4.1-mini-2025-04-14", 1820, 13, 0), ("gpt-4.1-mini-2025-04-14", 1956, 117, 1792)],
        "k8s.json": [("gpt-4.1-mini-2025-04-14", 2203, 139, 1792)],
        "tempo_export_with_batches.json": [
            ("gpt-4.1-mini-2025-04-14", 2256, 13, 0),
            ("gpt-4.1-mini-2025-04-14", 2392, 116, 0),
        ],
        "vercel-ai-sdk-v6_spans.json": [
            ("gpt-4o-mini-2024-07-18", 14, 20, None),
            ("gpt-4o-mini-2024-07-18", 50, 9, None),
            ("gpt-4o-mini-2024-07-18", 63, 156, None),
            ("gpt-4o-mini-2024-07-18", 15, 112, 0),
        ],
    }
