"""OpenTelemetry traces of model calls, by the GenAI conventions and those before them (`attributes.py`).

    OTLP       {resourceSpans: [{scopeSpans: [{spans: [{traceId, spanId, attributes: [{key, value: {intValue}}]}]}]}]}
               as JSON, JSON Lines (the collector's file exporter), or protobuf (`.pb`, `.binpb`, `.otlp`; extra: otlp)
    Tempo      the same with `batches`, older exports with `instrumentationLibrarySpans`
    Jaeger     {data: [{traceID, spans: [{spanID, operationName, references, startTime, tags: [{key, value}]}]}]}
    SDKs       the objects that exporters print: {name, spanContext | context, attributes, startTime | start_time}
    Phoenix    {name, context.span_id, parent_id, attributes} with flat or nested attributes
    Logfire    rows of its table `records`: {span_name, span_id, parent_span_id, start_timestamp, attributes}, as its
               API answers: {rows: [row]} or {columns: [{name, values}]}

All files of a folder are read together, for a session may have several traces. Spans that are no model call, agent or
tool only connect the others. Times of prompts are not recorded; an answer has the end of its span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import MissingExtra, Place, RecordingError
from ..model import Call
from ..source import Problems, decode, whole_file
from . import Reader, Recordings
from .attributes import Attributes, model_call, seconds_of
from .fields import as_object, decoded
from .messages import iso_seconds
from .spans import TraceSpan, sound, span_records, traces

_PROTOBUF = (".pb", ".binpb", ".otlp")
_LENGTH = 4
"""Bytes of the length before each message in the collector's protobuf files."""
_SPAN_IDS = ("spanContext.spanId", "context.span_id", "context.spanId", "span_id", "spanId")
_TRACE_IDS = ("spanContext.traceId", "context.trace_id", "context.traceId", "trace_id", "traceId")
_PARENT_IDS = ("parentSpanContext.spanId", "parentSpanId", "parent_id", "parent_span_id")
_ERRORS = (2, "STATUS_CODE_ERROR", "ERROR")


class _KeyValue(msgspec.Struct):
    key: str
    value: Any = None


class _OtlpEvent(msgspec.Struct):
    name: str = ""
    attributes: list[_KeyValue] = []


class _Status(msgspec.Struct):
    code: Any = None


class _OtlpSpan(msgspec.Struct, rename="camel"):
    span_id: str
    trace_id: str = ""
    parent_span_id: str | None = None
    name: str = ""
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    attributes: list[_KeyValue] = []
    events: list[_OtlpEvent] = []
    status: _Status | None = None


class _Scope(msgspec.Struct):
    spans: list[msgspec.Raw] = []


class _Resource(msgspec.Struct, rename="camel"):
    scope_spans: list[_Scope] | None = None
    instrumentation_library_spans: list[_Scope] | None = None


class _Reference(msgspec.Struct, rename={"span_id": "spanID", "kind": "refType"}):
    span_id: str
    kind: str = ""


class _Log(msgspec.Struct):
    fields: list[_KeyValue] = []


class _JaegerSpan(msgspec.Struct, rename={"span_id": "spanID", "trace_id": "traceID"}):
    span_id: str
    trace_id: str = ""
    operation: str = msgspec.field(default="", name="operationName")
    references: list[_Reference] = []
    start: int | None = msgspec.field(default=None, name="startTime")
    duration: int = 0
    tags: list[_KeyValue] = []
    logs: list[_Log] = []


class _JaegerTrace(msgspec.Struct):
    spans: list[msgspec.Raw] = []


class _Column(msgspec.Struct):
    name: str = ""
    values: list[Any] | None = None


class _Record(msgspec.Struct, rename="camel"):
    resource_spans: list[_Resource] | None = None
    batches: list[_Resource] | None = None
    trace: Any = None
    data: list[_JaegerTrace] | None = None
    rows: list[msgspec.Raw] | None = None
    columns: list[_Column] | None = None


class _TempoTrace(msgspec.Struct, rename="camel"):
    resource_spans: list[_Resource] = []


class _Recorded(NamedTuple):
    """A span of any form."""

    span: TraceSpan
    name: str
    attributes: Attributes
    events: list[tuple[str, Attributes]]
    failed: bool


class Otel(Reader):
    """Traces of OpenTelemetry and of what writes its spans."""

    about = "OpenTelemetry GenAI spans: OTLP JSON or protobuf, Tempo, Jaeger, SDK exports, Phoenix, Logfire"
    shapes = tuple(
        frozenset(f"{outer}{key}" for key in keys)
        for outer in ("", "[]")
        for keys in (
            *(
                (f".{top}", f".{top}[].{scope}[].spans[].spanId", f".{top}[].{scope}[].spans[].traceId")
                for top in ("resourceSpans", "batches", "trace.resourceSpans")
                for scope in ("scopeSpans", "instrumentationLibrarySpans")
            ),
            (".data", ".data[].traceID", ".data[].spans[].spanID", ".data[].spans[].operationName"),
            (".name", ".spanContext.traceId", ".spanContext.spanId", ".attributes"),
            (".name", ".context.trace_id", ".context.span_id", ".start_time"),
            (".span_name", ".trace_id", ".span_id", ".start_timestamp", ".attributes"),
            (
                ".rows[].span_name",
                ".rows[].trace_id",
                ".rows[].span_id",
                ".rows[].start_timestamp",
                ".rows[].attributes",
            ),
            (".columns[].name", ".columns[].datatype", ".columns[].values"),
        )
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
        yield from traces(files, _spans, problems, "otel")


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    recorded = _protobuf(path, problems) if path.suffix.lower() in _PROTOBUF else _json(path, problems)
    for place, make in recorded:
        yield from sound(partial(_span, make, problems), place, problems)


def _span(make: Callable[[], _Recorded], problems: Problems) -> TraceSpan:
    recorded = make()
    return model_call(*recorded, problems, "otel")


def _json(path: Path, problems: Problems) -> Iterator[tuple[Place, Callable[[], _Recorded]]]:
    """Yield the place of every span of a JSON file, and a function that reads it."""
    for place, raw in span_records(path, problems):
        with problems.collect():
            record = decode(raw, _Record, place)
            yield from _record(record, raw, place)


def _record(record: _Record, raw: bytes, place: Place) -> Iterator[tuple[Place, Callable[[], _Recorded]]]:
    if record.data is not None:
        for number, trace in enumerate(record.data):
            for span_number, span in enumerate(trace.spans):
                where = place.below(f"data[{number}].spans[{span_number}]")
                yield where, partial(_jaeger, span, where)
        return
    if record.rows is not None:
        for number, row in enumerate(record.rows):
            yield place.below(f"rows[{number}]"), partial(_object, row, place.below(f"rows[{number}]"))
        return
    if record.columns is not None:
        named = {column.name: column.values for column in record.columns if column.values is not None}
        for number, cells in enumerate(zip(*named.values(), strict=False)):
            row_place = place.below(f"columns[].values[{number}]")
            yield row_place, partial(_object, msgspec.json.encode(dict(zip(named, cells, strict=True))), row_place)
        return
    several, key = record.resource_spans or record.batches, "resourceSpans" if record.resource_spans else "batches"
    if several is None and isinstance(record.trace, dict):
        several, key = decode(raw, _TempoRecord, place).trace.resource_spans, "trace.resourceSpans"
    if several is None:
        yield place, partial(_object, raw, place)
        return
    for number, resource in enumerate(several):
        name = "instrumentationLibrarySpans" if resource.scope_spans is None else "scopeSpans"
        for scope_number, scope in enumerate(resource.scope_spans or resource.instrumentation_library_spans or ()):
            for span_number, span in enumerate(scope.spans):
                where = place.below(f"{key}[{number}].{name}[{scope_number}].spans[{span_number}]")
                yield where, partial(_otlp, span, where)


class _TempoRecord(msgspec.Struct):
    trace: _TempoTrace


def _otlp(raw: msgspec.Raw, place: Place) -> _Recorded:
    span = decode(raw, _OtlpSpan, place)
    return _Recorded(
        _timed(
            TraceSpan(place, span.span_id, span.trace_id, span.parent_span_id or ""),
            seconds_of(span.start_time_unix_nano, place.below("startTimeUnixNano")),
            seconds_of(span.end_time_unix_nano, place.below("endTimeUnixNano")),
        ),
        span.name,
        _typed(span.attributes),
        [(event.name, _typed(event.attributes)) for event in span.events],
        span.status is not None and span.status.code in _ERRORS,
    )


def _timed(span: TraceSpan, start: float | None, end: float | None) -> TraceSpan:
    """Return a span that has its times."""
    return replace(span, call=Call(started=start), end=end)


def _typed(attributes: Sequence[_KeyValue]) -> Attributes:
    return Attributes({attribute.key: _value(attribute.value) for attribute in attributes})


def _value(typed: Any) -> Any:
    """Return the value in OTLP's typed form, `{"stringValue": …}`."""
    if not isinstance(typed, dict) or len(typed) != 1:
        return typed
    [(kind, value)] = typed.items()
    if kind == "intValue" and isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    if kind == "arrayValue" and isinstance(value, dict):
        values = value.get("values")
        return [_value(one) for one in values] if isinstance(values, list) else []
    if kind == "kvlistValue" and isinstance(value, dict):
        pairs = value.get("values")
        return {
            str(pair.get("key")): _value(pair.get("value"))
            for pair in (pairs if isinstance(pairs, list) else [])
            if isinstance(pair, dict)
        }
    return value


def _jaeger(raw: msgspec.Raw, place: Place) -> _Recorded:
    span = decode(raw, _JaegerSpan, place)
    parents = [reference.span_id for reference in span.references if reference.kind in ("", "CHILD_OF")]
    start = None if span.start is None else span.start / 1e6
    attributes = Attributes({tag.key: tag.value for tag in span.tags})
    events = [{field.key: field.value for field in log.fields} for log in span.logs]
    return _Recorded(
        _timed(
            TraceSpan(place, span.span_id, span.trace_id, parents[0] if parents else ""),
            start,
            None if start is None else start + span.duration / 1e6,
        ),
        span.operation,
        attributes,
        [(str(event.get("event") or ""), Attributes(event)) for event in events],
        attributes.get("otel.status_code") == "ERROR" or attributes.get("error") is True,
    )


def _object(raw: bytes | msgspec.Raw, place: Place) -> _Recorded:
    """Return a span as SDKs print it, and as Phoenix and Logfire write it."""
    fields = Attributes(decode(raw, dict[str, Any], place))
    own = fields.text(*_SPAN_IDS)
    if not own:
        raise RecordingError(place, f"no span id ({', '.join(_SPAN_IDS)})", "correct it, or leave this span out")
    attributes = fields.below("attributes")
    if isinstance(text := fields.get("attributes"), str):
        attributes = Attributes(as_object(text))
    if fields.get("kind") == "pending_span":  # Logfire's, before the span itself
        attributes = Attributes({})
    events = decoded(fields.get("events", "otel_events"))
    named = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    return _Recorded(
        _timed(
            TraceSpan(place, own, fields.text(*_TRACE_IDS), fields.text(*_PARENT_IDS)),
            _moment(fields.get("startTime", "start_time", "start_timestamp"), place.below("startTime")),
            _moment(fields.get("endTime", "end_time", "end_timestamp"), place.below("endTime")),
        ),
        fields.text("name", "span_name"),
        attributes,
        [
            (str(event.get("name") or event.get("event_name") or ""), Attributes(event).below("attributes"))
            for event in named
        ],
        fields.get("status.code", "status.status_code", "status_code", "otel_status_code") in _ERRORS,
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


def _protobuf(path: Path, problems: Problems) -> Iterator[tuple[Place, Callable[[], _Recorded]]]:
    """Yield the spans of OTLP in protobuf: one message, or several with their lengths before them."""
    try:
        traces = import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData
        broken = import_module("google.protobuf.message").DecodeError
    except ImportError:
        missing = MissingExtra("opentelemetry-proto", "otlp")
        raise RecordingError(
            Place(str(path)), str(missing).partition(": ")[0], str(missing).partition(": ")[2]
        ) from None
    data = whole_file(path, problems)
    messages = [data] if data[:1] == b"\n" else list(_framed(data))
    for number, message in enumerate(messages):
        place = Place(str(path), 0, f"message[{number}]" if len(messages) > 1 else "")
        try:
            export = traces.FromString(message)
        except broken:
            problems.add(RecordingError(place, "no OTLP traces in protobuf", "is it cut off, or another signal?"))
            continue
        for at, resource in enumerate(export.resource_spans):
            for scope_at, scope in enumerate(resource.scope_spans):
                for span_at, span in enumerate(scope.spans):
                    where = place.below(f"resourceSpans[{at}].scopeSpans[{scope_at}].spans[{span_at}]")
                    yield where, partial(_from_protobuf, span, where)


def _framed(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        size = int.from_bytes(data[start : start + _LENGTH], "big")
        yield data[start + _LENGTH : start + _LENGTH + size]
        start += _LENGTH + size


def _from_protobuf(span: Any, place: Place) -> _Recorded:
    return _Recorded(
        _timed(
            TraceSpan(place, span.span_id.hex(), span.trace_id.hex(), span.parent_span_id.hex()),
            seconds_of(span.start_time_unix_nano, place),
            seconds_of(span.end_time_unix_nano, place),
        ),
        span.name,
        Attributes({pair.key: _from_any(pair.value) for pair in span.attributes}),
        [
            (event.name, Attributes({pair.key: _from_any(pair.value) for pair in event.attributes}))
            for event in span.events
        ],
        span.status.code in _ERRORS,
    )


def _from_any(value: Any) -> Any:
    """Return the value of protobuf's AnyValue."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_from_any(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _from_any(pair.value) for pair in value.kvlist_value.values}
    return None if kind is None or kind == "bytes_value" else getattr(value, kind)
