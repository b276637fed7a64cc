"""OpenTelemetry spans in several files, in protobuf, and as its SDK writes them; the goldens have all other forms."""

import json
import sys
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


def spans() -> list[Flat]:
    """A span of an agent, and two calls in it, later one first."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "cats", "session.id": "s1"}
    return [
        {"id": "c", "parent": "a", "start": 5, "attributes": conventions(LATER, SAID)},
        {"id": "b", "parent": "a", "start": 2, "attributes": conventions(PROMPT, CALLED)},
        {"id": "a", "parent": "", "start": 1, "attributes": agent},
    ]


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(one) for one in value]}}
    if isinstance(value, bytes):
        return {"bytesValue": value.decode()}
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
                "spanId": span["spanId"] and span["spanId"] + "w==",
                "parentSpanId": span["parentSpanId"] and "aw==",
            }
        return bytes(json_format.ParseDict(export, traces()).SerializeToString())

    path = tmp_path / "one.pb"
    recorded = spans()
    for span in recorded:
        span["attributes"]["gen_ai.conversation.id"] = b"UyB0"  # bytes are no text
    path.write_bytes(message(*recorded))
    assert type(detect(path)) is Otel
    problems = Problems()
    check(list(read(find([path], problems), problems)), problems)
    several = [message(span) for span in spans()]
    path.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in several))
    problems = Problems()
    check(list(read(find([path], problems), problems)), problems)
    path.write_bytes(message({**spans()[1], "id": ""}))
    [chat] = read(find([path], problems), problems)
    assert (len(chat.messages), problems.errors) == (3, [])
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


def test_what_each_version_of_the_ai_sdk_means_by_its_input(tmp_path: Path) -> None:
    """Of Claude, all in one file: 5's input is that of the API, 6's the sum, whether it tells the parts or not."""
    own = {"input_tokens": 5000, "cache_read_input_tokens": 3000, "cache_creation_input_tokens": 1200}
    attributes = {
        "ai.operationId": "ai.generateText.doGenerate", "ai.model.provider": "anthropic.messages",
        "ai.prompt.messages": '[{"role":"user","content":"Hi"}]', "ai.response.model": "claude-sonnet-4-5",
        "ai.response.text": "Hello", "ai.response.providerMetadata": json.dumps({"anthropic": {"usage": own}}),
        "ai.usage.outputTokens": 20, "ai.usage.cachedInputTokens": 3000,
    }  # fmt: skip
    parts = {"ai.usage.inputTokenDetails.cacheReadTokens": 3000, "ai.usage.inputTokenDetails.cacheWriteTokens": 1200}
    told = ({"ai.usage.inputTokens": 5000}, {"ai.usage.inputTokens": 9200}, {"ai.usage.inputTokens": 9200, **parts})
    spans = [{"id": str(at), "parent": "", "start": at, "attributes": attributes | one} for at, one in enumerate(told)]
    (path := tmp_path / "spans.json").write_text(json.dumps(otlp(*spans)))
    found = read(find([path], problems := Problems()), problems)
    assert [used for chat in found for used in usages(chat)] == [Usage(9200, 20, 3000, 1200)] * 3
