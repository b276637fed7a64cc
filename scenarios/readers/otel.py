"""Traces of OpenTelemetry and of what writes its spans: the containers, and attributes as a model call.

    gen_ai.*                OpenTelemetry's semantic conventions (github.com/open-telemetry/semantic-conventions,
                            docs/gen-ai): messages as JSON in `gen_ai.input.messages`, or as events of the span
    gen_ai.prompt.N.*       OpenLLMetry, before it took over those conventions
    llm.input_messages.N.*  OpenInference (Phoenix)
    ai.*                    Vercel's AI SDK
    gcp.vertex.agent.*      Google's ADK: request and response as JSON
    events, *_parameters    Pydantic AI
    request_data, response_data   Logfire's own instrumentations of OpenAI and Anthropic

Attributes are flat (`a.0.b`) or nested; both are read alike. `ai.generateText` repeats what the calls inside it have,
so it is an agent and no call; so does everything that its convention calls a chain, a workflow or a task.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import MissingExtra, Place, RecordingError
from ..files import shipped
from ..model import Call
from ..source import Problems, as_text, convert, decode, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings, anywhere, as_object, decoded
from .messages import iso_seconds
from .prompts import exchange
from .requests import LoggedCall, dollars, other_than, tier, usage
from .spans import CACHED, Kind, TraceSpan, conversations, counted, number, sound, span_records, spans_of

_PROTOBUF = (".pb", ".binpb", ".otlp")
_LENGTH = 4  # bytes of the length before each message in the collector's protobuf files
_SPAN_IDS = "spanContext.spanId|context.span_id|context.spanId|span_id|spanId"
_TRACE_IDS = "spanContext.traceId|context.trace_id|context.traceId|trace_id|traceId"
_PARENT_IDS = "parentSpanContext.spanId|parentSpanId|parent_id|parent_span_id"
_ERRORS = (2, "STATUS_CODE_ERROR", "ERROR")


class _KeyValue(msgspec.Struct):
    key: str
    value: Any = None


_Event = tuple[str, Fields]  # name and attributes of an event of a span


class _Recorded(NamedTuple):
    """A span of any form."""

    span: TraceSpan
    name: str
    attributes: Fields
    events: list[_Event]
    failed: bool


class Otel(Reader):
    """OpenTelemetry traces of model calls, by the GenAI conventions and those before them.

        OTLP       {resourceSpans: [{scopeSpans: [{spans: [{traceId, spanId, attributes: [{key, value}]}]}]}]}
                   as JSON, JSON Lines (the collector's file exporter), or protobuf (`.pb`, `.binpb`, `.otlp`)
        Tempo      the same with `batches`, older exports with `instrumentationLibrarySpans`
        Jaeger     {data: [{traceID, spans: [{spanID, operationName, references, startTime, tags: [{key, value}]}]}]}
        SDKs       the objects that exporters print: {name, spanContext | context, attributes, startTime | start_time}
        Phoenix    {name, context.span_id, parent_id, attributes} with flat or nested attributes
        Logfire    rows of its table `records`: {span_name, span_id, parent_span_id, start_timestamp, attributes}, as
                   its API answers: {rows: [row]} or {columns: [{name, values}]}

    All files of a folder are read together, for a session may have several traces. Spans that are no model call, agent
    or tool only connect the others. Times of prompts are not recorded; an answer has the end of its span.
    """

    about = "OpenTelemetry GenAI spans: OTLP JSON or protobuf, Tempo, Jaeger, SDK exports, Phoenix, Logfire"
    shapes = anywhere(
        *(
            (f".{top}", f".{top}[].{scope}[].spans[].spanId", f".{top}[].{scope}[].spans[].traceId")
            for top in ("resourceSpans", "batches", "trace.resourceSpans")
            for scope in ("scopeSpans", "instrumentationLibrarySpans")
        ),
        (".data", ".data[].traceID", ".data[].spans[].spanID", ".data[].spans[].operationName"),
        (".name", ".spanContext.traceId", ".spanContext.spanId", ".attributes"),
        (".name", ".context.trace_id", ".context.span_id", ".start_time"),
        *(
            tuple(f"{row}.{key}" for key in ("span_name", "trace_id", "span_id", "start_timestamp", "attributes"))
            for row in ("", ".rows[]")
        ),
        (".columns[].name", ".columns[].datatype", ".columns[].values"),
    )
    folder = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is OTLP in protobuf, by its name and its first field."""
        # The byte 0x0A begins field 1 (`resource_spans`) with its length; in the collector's files the message's
        # length, of four bytes, comes before it.
        first = head[: _LENGTH + 1]
        return path.suffix.lower() in _PROTOBUF and (first[:1] == b"\n" or first[_LENGTH:] == b"\n")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from conversations(spans_of(files, _spans, problems), problems, "otel")


_Reading = tuple[Callable[[Fields], _Recorded], Fields]  # a function that reads a span, and the span


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    recorded = _protobuf(path, problems) if path.suffix.lower() in _PROTOBUF else _json(path, problems)
    for read, fields in recorded:
        yield from sound(partial(_model_call, read, fields, problems), fields.place, problems)


def _json(path: Path, problems: Problems) -> Iterator[_Reading]:
    for place, raw in span_records(path, problems):
        with problems.collect():
            yield from _unpacked(Fields(decode(raw, OBJECT, place), place))


def _unpacked(record: Fields) -> Iterator[_Reading]:
    """Yield the spans of a record, each with the function that reads it."""
    if record.at("data") is not None:
        for trace in record.each("data"):
            yield from ((_jaeger, span) for span in trace.each("spans"))
    elif record.at("rows") is not None:
        yield from ((_object, row) for row in record.each("rows"))
    elif record.at("columns") is not None:
        columns = [column for column in record.each("columns") if column.at("values") is not None]
        names = [column.text("name") for column in columns]
        values = (column.needed("values", LIST) for column in columns)
        for at, cells in enumerate(zip(*values, strict=False)):
            row = dict(zip(names, cells, strict=True))
            yield _object, Fields(row, record.place.below(f"columns[].values[{at}]"))
    elif (name := record.first("resourceSpans|batches|trace.resourceSpans")) and record.at(name) is not None:
        for resource in record.each(name):
            for scope in resource.each(resource.first("scopeSpans|instrumentationLibrarySpans")):
                yield from ((_otlp, span) for span in scope.each("spans"))
    else:
        yield _object, record


def _otlp(span: Fields) -> _Recorded:
    names = ("startTimeUnixNano", "endTimeUnixNano")
    start, end = (seconds_of(span.at(name), span.place.below(name)) for name in names)
    own = span.needed("spanId", str, blank=True)
    trace, parent = (span.typed(name, str) or "" for name in ("traceId", "parentSpanId"))
    return _Recorded(
        TraceSpan(span.place, own, trace, parent, end=end, call=Call(started=start)),
        span.text("name"),
        _typed(span),
        [(event.text("name"), _typed(event)) for event in span.each("events")],
        span.at("status.code") in _ERRORS,
    )


def _typed(fields: Fields) -> Fields:
    listed = fields.typed("attributes", list[_KeyValue]) or ()
    return tree_of({attribute.key: _value(attribute.value) for attribute in listed}, fields.place)


def _value(typed: Any) -> Any:
    """Return the value in OTLP's typed form, `{"stringValue": …}`."""
    if not isinstance(typed, dict) or len(typed) != 1:
        return typed
    [(kind, value)] = typed.items()
    if kind == "bytesValue":
        return None  # no text: JSON has it in base64
    if kind == "intValue" and isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    if kind not in ("arrayValue", "kvlistValue") or not isinstance(value, dict):
        return value
    values: Any = value.get("values")
    values = values if isinstance(values, list) else []
    if kind == "arrayValue":
        return list(map(_value, values))
    return {str(pair.get("key")): _value(pair.get("value")) for pair in values if isinstance(pair, dict)}


def _jaeger(span: Fields) -> _Recorded:
    references = [each for each in span.each("references") if each.at("refType") in (None, "", "CHILD_OF")]
    start, duration = span.typed("startTime", int), span.typed("duration", int) or 0
    start_time = None if start is None else start / 1e6
    end = None if start_time is None else start_time + duration / 1e6
    own, trace = span.needed("spanID", str), span.typed("traceID", str) or ""
    tags = {tag.key: tag.value for tag in span.typed("tags", list[_KeyValue]) or ()}
    logs = (log.typed("fields", list[_KeyValue]) or () for log in span.each("logs"))
    events = [{field.key: field.value for field in log} for log in logs]
    parent = references[0].text("spanID") if references else ""
    return _Recorded(
        TraceSpan(span.place, own, trace, parent, end=end, call=Call(started=start_time)),
        span.text("operationName"),
        tree_of(tags, span.place),
        [(str(event.get("event") or ""), tree_of(event, span.place)) for event in events],
        tags.get("otel.status_code") == "ERROR" or tags.get("error") is True,
    )


def _object(span: Fields) -> _Recorded:
    """Return a span as SDKs print it, and as Phoenix and Logfire write it."""
    place, fields = span.place, tree_of(convert(span.record, OBJECT, span.place), span.place)
    own = fields.text(_SPAN_IDS)
    if not own:
        what = f"no span id ({_SPAN_IDS.replace('|', ', ')})"
        raise RecordingError(place, what, "correct it, or leave this span out")
    # Logfire writes a pending span before the span itself.
    attributes = {} if fields.at("kind") == "pending_span" else as_object(fields.at("attributes"))
    events = decoded(fields.get("events|otel_events"))
    named = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    start = _moment(fields.get("startTime|start_time|start_timestamp"), place.below("startTime"))
    end = _moment(fields.get("endTime|end_time|end_timestamp"), place.below("endTime"))
    trace, parent = fields.text(_TRACE_IDS), fields.text(_PARENT_IDS)
    return _Recorded(
        TraceSpan(place, own, trace, parent, end=end, call=Call(started=start)),
        fields.text("name|span_name"),
        tree_of(attributes, place),
        [
            (str(event.get("name") or event.get("event_name") or ""), tree_of(event.get("attributes"), place))
            for event in named
        ],
        any(
            fields.at(path) in _ERRORS
            for path in ("status.code", "status.status_code", "status_code", "otel_status_code")
        ),
    )


def _moment(time: Any, place: Place) -> float | None:
    """Return the seconds of a time: ISO, nanoseconds, or seconds and nanoseconds."""
    if isinstance(time, str) and not time.isdecimal():
        return iso_seconds(time, place)
    if isinstance(time, list):
        whole = [part for part in time if isinstance(part, int) and not isinstance(part, bool)]
        if len(whole) != 2 or len(time) != 2:
            raise RecordingError(place, "this is no time", "write [seconds, nanoseconds]")
        return whole[0] + whole[1] / 1e9
    return seconds_of(time, place)


def _protobuf(path: Path, problems: Problems) -> Iterator[_Reading]:
    """Yield the spans of OTLP in protobuf: one message, or several with their lengths before them."""
    try:
        traces = import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData
        as_json = import_module("google.protobuf.json_format").MessageToDict
        broken = import_module("google.protobuf.message").DecodeError
    except ImportError:
        what, _, remedy = str(MissingExtra("opentelemetry-proto", "otlp")).partition(": ")
        raise RecordingError(Place(str(path)), what, remedy) from None
    data = whole_file(path, problems)
    messages, start = [data] if data[:1] == b"\n" else [], len(data) if data[:1] == b"\n" else 0
    while start < len(data):
        size = int.from_bytes(data[start : start + _LENGTH], "big")
        messages.append(data[start + _LENGTH : start + _LENGTH + size])
        start += _LENGTH + size
    for at, message in enumerate(messages):
        place = Place(str(path), 0, f"message[{at}]" if len(messages) > 1 else "")
        try:
            export = Fields(as_json(traces.FromString(message)), place)
        except broken:
            problems.add(RecordingError(place, "no OTLP traces in protobuf", "is it cut off, or another signal?"))
            continue
        for read, span in _unpacked(export) if export.record else ():
            # Ids are bytes there, which its JSON has in base64; OTLP's own JSON has them in hex.
            for name in ("traceId", "spanId", "parentSpanId"):
                span.record[name] = b64decode(span.record.get(name, "")).hex()
            yield read, span


_CONVENTIONS = shipped("otel")
_PATHS: dict[str, str] = {part: "|".join(names) for part, names in _CONVENTIONS["attributes"].items()}
"""Paths of the attributes that hold each part of a model call."""
AGENT = _PATHS["agent"]
"""Paths of the name of the agent that a span is or belongs to."""
_KINDS: dict[str, Kind] = {"llm": "llm", "agent": "agent", "tool": "tool"}
_OPERATIONS: dict[str, Kind] = _CONVENTIONS["operations"]
_VERCEL: dict[str, Kind] = _CONVENTIONS["vercel"]
_WRITTEN_1H = "ctxbench.usage.cache_write_1h_input_tokens"
"""No convention has a name for it: this is what `ctxbench convert` writes."""
# Nested attributes are read down to this level; what is below stays one value.
_DEEPEST = 12


def tree_of(recorded: Any, place: Place) -> Fields:
    """Return attributes by their full names, `a.b.c`, however they were nested."""
    return Fields(_tree(_flat(recorded if isinstance(recorded, dict) else {}, "", 0)), place)


def _flat(recorded: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in recorded.items():
        if isinstance(value, dict) and value and depth < _DEEPEST:
            yield from _flat(value, f"{before}{name}.", depth + 1)
        else:
            yield f"{before}{name}", value


def _tree(flat: Iterable[tuple[str, Any]]) -> Any:
    """Return values by their full names as objects and lists."""
    root: dict[str, Any] = {}
    for key, value in flat:
        *path, last = key.split(".", _DEEPEST)
        inner = root
        for step in path:
            if not isinstance(inner.get(step), dict):
                inner[step] = {}
            inner = inner[step]
        # A name may have a value and names below it. What is below counts, in whichever order they come.
        if not isinstance(inner.get(last), dict):
            inner[last] = value
    return _listed(root)


def _nested(value: Any) -> Any:
    """Return a list whose objects have flat names, `{"message.role": …}`, as in Phoenix's data frames, with trees."""
    if isinstance(value, list):
        return [_nested(one) for one in value]
    return _tree((key, _nested(one)) for key, one in _flat(value, "", 0)) if isinstance(value, dict) else value


def _listed(tree: Any) -> Any:
    """Return a tree in which objects whose keys are all numbers are lists."""
    if not isinstance(tree, dict):
        return tree
    inner = {key: _listed(value) for key, value in tree.items()}
    if inner and all(key.isascii() and key.isdigit() and len(key) < 9 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _model_call(read: Callable[[Fields], _Recorded], fields: Fields, problems: Problems) -> TraceSpan:
    """Return a span, which has ids, place and times, with what its attributes and events say.

    Raises RecordingError for a prompt or answer that cannot be read.
    """
    span, name, attributes, events, failed = read(fields)
    kind, agent = span_kind(attributes), attributes.text(AGENT)
    if kind == "agent":
        agent = agent or attributes.text("traceloop.entity.name") or name
    span = replace(span, kind=kind, agent=agent, thread=attributes.text(_PATHS["thread"]))
    if kind != "llm":
        return span
    said = _exchange(attributes, events, span.place, problems)
    reported = reported_counts(attributes)
    where = span.place.below("attributes")
    cost = dollars(number(attributes.at(attributes.first(_PATHS["cost"]))), where, problems)
    reason = decoded(attributes.get("gen_ai.response.finish_reasons|ai.response.finishReason"))
    reason = reason[0] if isinstance(reason, list) and reason else reason
    effort = attributes.text(_PATHS["effort"])
    model, started = attributes.text(_PATHS["model"]), span.call.started
    wait = attributes.at("ai.response.msToFirstChunk")
    metadata = as_object(attributes.at("ai.response.providerMetadata"))  # what each provider told the AI SDK
    call = Call(
        model=model,
        provider=attributes.text(_PATHS["provider"]),
        usage=usage(reported, where, problems, cost),
        started=started,
        effort=effort if effort.isalpha() else "",
        stop="error" if failed and said.answer is None else said.stop or (reason if isinstance(reason, str) else ""),
        tier=attributes.text(_PATHS["tier"]) or tier(*metadata.values()),
        requested=other_than(model, attributes.text(_PATHS["requested"]) or model),
        first_token=started + wait / 1000 if started is not None and isinstance(wait, (int, float)) else None,
        error=attributes.text("exception.message|error.message") if failed else "",
    )
    response = attributes.text("gen_ai.response.id|ai.response.id")
    return replace(span, exchange=said, call=call, response=response, cached=(reported or {}).get(CACHED, ""))


def reported_counts(attributes: Fields) -> dict[str, Any] | None:
    """Return the usage that attributes report, under the names that `requests.usage` knows; None if there is none.

    The AI SDK's input includes the cached tokens from version 6 on, which tells them apart (`inputTokenDetails`). Until
    then it is that of the provider: Anthropic's leaves them out, and only its own block has what was written.
    """
    if isinstance(told := attributes.at("response_data.usage"), dict):
        return told  # Logfire's: the provider's own block, with what was read from caches
    parts = ("input", "output", "read", "written", "total", "reasoning")
    counts = [attributes.at(attributes.first(_PATHS[part])) for part in parts]
    whole, output, read, written, total, reasoning = (None if count == "" else count for count in counts)
    where, metadata = "within", as_object(attributes.at("ai.response.providerMetadata"))
    is_ai_sdk = attributes.at("ai.usage") is not None
    provider = {**as_object(metadata.get("bedrock")), **as_object(metadata.get("anthropic"))}
    own = as_object(provider.get("usage"))
    if is_ai_sdk and attributes.at("ai.usage.inputTokenDetails") is None:
        by = f"{attributes.text(_PATHS['provider'])} {' '.join(metadata)} {attributes.text(_PATHS['model'])}".lower()
        # Hosts with OpenAI's API have the sum, of Claude too, and the first of version 6, without its parts.
        has_sum = "openrouter" in by or "openai" in by or str(own.get("input_tokens", whole)) != str(whole)
        where = "beside" if not has_sum and any(name in by for name in ("anthropic", "bedrock", "claude")) else where
        told = {name: count for name, count in (*provider.items(), *own.items()) if count}
        read = read or told.get("cache_read_input_tokens", told.get("cacheReadInputTokens", read))
        names = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheCreationInputTokens")
        written = next((told[name] for name in names if name in told), written)
    reported = counted(whole, output, read, written, total, reasoning, cached_at=where)
    if is_ai_sdk and reported:
        reported.pop(CACHED, None)  # its version tells, and no other call
    if (hour := attributes.at(_WRITTEN_1H)) is None:
        hour = as_object(own.get("cache_creation")).get("ephemeral_1h_input_tokens")
    return reported if hour is None else {**(reported or {}), "ephemeral_1h_input_tokens": hour}


def span_kind(attributes: Fields) -> Kind:
    """Return what a span is. Whoever names a kind of its own is believed; else a prompt makes a model call."""
    for name in ("openinference.span.kind", "langsmith.span.kind"):
        if named := attributes.text(name):
            return _KINDS.get(named.lower(), "other")
    if operation := attributes.text("gen_ai.operation.name"):
        return _OPERATIONS.get(operation, "other")
    if operation := attributes.text("ai.operationId"):
        return "llm" if operation.endswith((".doGenerate", ".doStream")) else _VERCEL.get(operation, "other")
    if kind := attributes.text("traceloop.span.kind"):
        return _KINDS.get(kind, "other")
    if attributes.text("llm.request.type") in ("chat", "completion"):
        return "llm"
    if len(attributes.text("gcp.vertex.agent.llm_request")) > len("{}"):
        return "llm"
    if attributes.text("agent_name"):
        return "agent"
    return "llm" if attributes.get(_PATHS["prompt"]) else "other"


def _exchange(attributes: Fields, events: Sequence[_Event], place: Place, problems: Problems) -> LoggedCall:
    """Return prompt and answer, from wherever the tracer put them."""
    details = [attributes, *(event for name, event in events if name == "gen_ai.client.inference.operation.details")]
    prompts, answers, system = (
        next(filter(None, (one.at(f"gen_ai.{name}") for one in details)), None)
        for name in ("input.messages", "output.messages", "system_instructions")
    )
    logged = list(_logged(attributes, events))
    prompt = (
        prompts
        or _with_blocks(attributes.at("gen_ai.prompt"))
        or _nested(attributes.at("llm.input_messages"))
        or attributes.get("ai.prompt.messages|gcp.vertex.agent.llm_request")
        or [message for kind, message in logged if kind != "choice"]
        or attributes.get("request_data|input.value|ai.prompt")
    )
    answer = (
        answers
        or _with_blocks(attributes.at("gen_ai.completion"))
        or _nested(attributes.at("llm.output_messages"))
        or _vercel_answer(attributes)
        or attributes.get("gcp.vertex.agent.llm_response")
        or [message for kind, message in logged if kind == "choice"]
        # Of a call that Logfire traced; that of a streamed one is its text alone.
        or attributes.get("response_data.message|response_data.combined_chunk_content|output.value")
    )
    return exchange(prompt, answer, place, problems, "otel", decoded(system), offered_tools(attributes))


def offered_tools(attributes: Fields) -> Any:
    """Return the logged schemas of the tools that a call offered; None or an empty list if there are none."""
    # Pydantic AI's request has functions, and tools by which the model gives its output.
    lists = (attributes.at(f"model_request_parameters.{name}") for name in ("function_tools", "output_tools"))
    of_pydantic_ai = [tool for tools in lists if isinstance(tools, list) for tool in tools]
    return attributes.get(_PATHS["tools"]) or _nested(attributes.at("llm.tools")) or of_pydantic_ai


def _with_blocks(messages: Any) -> Any:
    """Return OpenLLMetry's messages with contents that are lists of blocks, not their JSON."""
    if not isinstance(messages, list):
        return messages
    read = list[Any]()
    for message in messages:
        held = decoded(message.get("content")) if isinstance(message, dict) else None
        is_blocks = isinstance(held, list) and all(isinstance(b, dict) and {"type", "text"} & b.keys() for b in held)
        read.append({**message, "content": held} if is_blocks else message)
    return read


def _vercel_answer(attributes: Fields) -> Any:
    """Return the answer of a call of the AI SDK, which stands in attributes of its own."""
    text = attributes.get("ai.response.text|ai.response.object")
    reasoning, calls = attributes.get("ai.response.reasoning"), decoded(attributes.get("ai.response.toolCalls"))
    parts: list[Any] = [{"type": "reasoning", "text": reasoning}] if reasoning else []
    parts += [{"type": "text", "text": as_text(text)}] if text is not None else []
    for call in calls if isinstance(calls, list) else []:
        parts.append({**call, "type": "tool-call"} if isinstance(call, dict) else call)
    return {"role": "assistant", "content": parts} if parts else None


def _logged(attributes: Fields, events: Sequence[_Event]) -> Iterator[tuple[str, Any]]:
    """Yield the messages that are events of the span, or of Pydantic AI's `events`: what they are, and the message."""
    for name, event in events:
        if name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            kind = "choice" if name.endswith("completion") else "user"
            whole = decoded(event.at("gen_ai.completion" if kind == "choice" else "gen_ai.prompt"))
            yield from ((kind, message) for message in (whole if isinstance(whole, list) else [whole]) if message)
        elif name.startswith("gen_ai."):
            body = decoded(event.at("gen_ai.event.content"))
            fields = body if isinstance(body, dict) else {key: event.at(key) for key in _EVENT_FIELDS}
            yield from _event(name, fields)
    recorded = decoded(attributes.get("events"))
    for event in recorded if isinstance(recorded, list) else []:
        if isinstance(event, dict) and isinstance(event.get("event.name"), str):
            yield from _event(event["event.name"], event)


_EVENT_FIELDS = ("role", "content", "tool_calls", "id", "name", "message", "finish_reason")


def _event(name: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the message of one event, `gen_ai.user.message` or `gen_ai.choice`; nothing for another event."""
    kind = name.removeprefix("gen_ai.").removesuffix(".message")
    message = {key: decoded(value) if key != "content" else value for key, value in fields.items() if value is not None}
    if kind == "choice":
        inner = message.get("message", message)
        yield kind, {"role": "assistant", **(inner if isinstance(inner, dict) else {"content": inner})}
    elif kind in ("system", "user", "assistant", "tool"):
        if kind == "tool" and "id" in message:
            message["tool_call_id"] = message["id"]
        yield kind, {**message, "role": message.get("role") or kind}


def seconds_of(time: Any, place: Place) -> float | None:
    """Return the seconds since 1970 of nanoseconds as OTLP has them: a number, or its digits."""
    if time in (None, "", 0, "0"):
        return None
    try:
        return int(time) / 10**9  # of integers, so that the result is the nearest float
    except (TypeError, ValueError, OverflowError):
        raise RecordingError(place, f"{as_text(time)[:60]} is no time", "write nanoseconds since 1970") from None
