"""Traces of OpenTelemetry and of what writes its spans."""

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
from ..source import Problems, convert, decode, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings, as_object, decoded
from .attributes import Attributes, model_call, seconds_of
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


class _Recorded(NamedTuple):
    """A span of any form."""

    span: TraceSpan
    name: str
    attributes: Attributes
    events: list[tuple[str, Attributes]]
    failed: bool


class Otel(Reader):
    """OpenTelemetry traces of model calls, by the GenAI conventions and those before them (`attributes.py`).

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
    return model_call(*make(), problems, "otel")


def _json(path: Path, problems: Problems) -> Iterator[tuple[Place, Callable[[], _Recorded]]]:
    """Yield the place of every span of a JSON file, and a function that reads it."""
    for place, raw in span_records(path, problems):
        with problems.collect():
            for read, fields in _unpacked(Fields(decode(raw, OBJECT, place), place)):
                yield fields.place, partial(read, fields)


def _unpacked(record: Fields) -> Iterator[tuple[Callable[[Fields], _Recorded], Fields]]:
    """Yield the spans of a record, each with the function that reads it."""
    if record.at("data") is not None:
        for trace in _each(record, "data"):
            yield from ((_jaeger, span) for span in _each(trace, "spans"))
    elif record.at("rows") is not None:
        yield from ((_object, row) for row in _each(record, "rows"))
    elif record.at("columns") is not None:
        columns = [column for column in _each(record, "columns") if column.at("values") is not None]
        names = [column.text("name") for column in columns]
        values = (column.needed("values", LIST) for column in columns)
        for number, cells in enumerate(zip(*values, strict=False)):
            row = dict(zip(names, cells, strict=True))
            yield _object, Fields(row, record.place.below(f"columns[].values[{number}]"))
    elif (name := record.first("resourceSpans|batches|trace.resourceSpans")) and record.at(name) is not None:
        for resource in _each(record, name):
            for scope in _each(resource, resource.first("scopeSpans|instrumentationLibrarySpans")):
                yield from ((_otlp, span) for span in _each(scope, "spans"))
    else:
        yield _object, record


def _each(fields: Fields, name: str) -> Iterator[Fields]:
    for at, one in enumerate(fields.typed(name, LIST) or ()):
        yield Fields(one, fields.place.below(f"{name}[{at}]"))


def _otlp(span: Fields) -> _Recorded:
    start, end = (
        seconds_of(span.at(name), span.place.below(name)) for name in ("startTimeUnixNano", "endTimeUnixNano")
    )
    own, trace, parent = span.needed("spanId", str), span.typed("traceId", str), span.typed("parentSpanId", str)
    return _Recorded(
        _timed(TraceSpan(span.place, own, trace or "", parent or ""), start, end),
        span.text("name"),
        _typed(span),
        [(event.text("name"), _typed(event)) for event in _each(span, "events")],
        span.at("status.code") in _ERRORS,
    )


def _timed(span: TraceSpan, start: float | None, end: float | None) -> TraceSpan:
    """Return a span that has its times."""
    return replace(span, call=Call(started=start), end=end)


def _typed(fields: Fields) -> Attributes:
    listed = fields.typed("attributes", list[_KeyValue]) or ()
    return Attributes({attribute.key: _value(attribute.value) for attribute in listed})


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


def _jaeger(span: Fields) -> _Recorded:
    references = [each for each in _each(span, "references") if each.at("refType") in (None, "", "CHILD_OF")]
    start, duration = span.typed("startTime", int), span.typed("duration", int) or 0
    start_time = None if start is None else start / 1e6
    end = None if start_time is None else start_time + duration / 1e6
    own, trace = span.needed("spanID", str), span.typed("traceID", str) or ""
    attributes = Attributes({tag.key: tag.value for tag in span.typed("tags", list[_KeyValue]) or ()})
    logs = (log.typed("fields", list[_KeyValue]) or () for log in _each(span, "logs"))
    events = [{field.key: field.value for field in log} for log in logs]
    return _Recorded(
        _timed(TraceSpan(span.place, own, trace, references[0].text("spanID") if references else ""), start_time, end),
        span.text("operationName"),
        attributes,
        [(str(event.get("event") or ""), Attributes(event)) for event in events],
        attributes.get("otel.status_code") == "ERROR" or attributes.get("error") is True,
    )


def _object(span: Fields) -> _Recorded:
    """Return a span as SDKs print it, and as Phoenix and Logfire write it."""
    place, fields = span.place, Attributes(convert(span.record, OBJECT, span.place))
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
    start = _moment(fields.get("startTime", "start_time", "start_timestamp"), place.below("startTime"))
    end = _moment(fields.get("endTime", "end_time", "end_timestamp"), place.below("endTime"))
    return _Recorded(
        _timed(TraceSpan(place, own, fields.text(*_TRACE_IDS), fields.text(*_PARENT_IDS)), start, end),
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
