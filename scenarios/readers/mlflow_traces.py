"""MLflow traces: `Trace.to_json()`, traces as artifacts, and rows of `mlflow.search_traces`.

    {info: {trace_id, trace_metadata: {"mlflow.trace.session"}}, data: {spans: [{span_id, parent_span_id, name,
      start_time_unix_nano, attributes: {"mlflow.spanType", "mlflow.spanInputs", "mlflow.chat.tokenUsage" …}}]}}
    {spans: […]} · {trace: the first form as text} · spans of MLflow 2: {context: {span_id}, parent_id, start_time …}

Source: github.com/mlflow/mlflow, `mlflow/entities/span.py` and `mlflow/tracing/constant.py` (version 3.17). Each
attribute is JSON text. A span of type LLM or CHAT_MODEL is a model call; `mlflow.spanInputs` and `spanOutputs` are
the request and response of whatever library was called. Token counts include what was read from and written to a cache.
All files of a folder are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call
from ..source import Problems, convert, decode
from . import Recordings, anywhere
from .attributes import seconds_of
from .prompts import as_object, decoded, exchange, text_of
from .requests import dollars, usage
from .spans import Kind, TraceSpan, counted, sound, span_records, traces

_KINDS: dict[str, Kind] = {"LLM": "llm", "CHAT_MODEL": "llm", "AGENT": "agent", "TOOL": "tool"}
_SESSION = "mlflow.trace.session"


class _Context(msgspec.Struct):
    span_id: str
    trace_id: str = ""


class _Span(msgspec.Struct):
    span_id: str = ""
    trace_id: str = ""
    parent_span_id: str | None = None
    context: _Context | None = None
    parent_id: str | None = None
    name: str = ""
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    start_time: Any = None
    end_time: Any = None
    attributes: dict[str, Any] = {}
    status: Any = None
    status_code: Any = None


@dataclass(frozen=True, slots=True)
class MlflowTraces:
    """Traces that MLflow's tracing wrote."""

    about: ClassVar[str] = "MLflow traces (Trace.to_json, trace artifacts, rows of search_traces)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".info", ".data.spans[].attributes", ".data.spans[].attributes.mlflow.spanType"),
        (".spans", ".spans[].attributes", ".spans[].attributes.mlflow.spanType"),
        (".trace", ".trace_id", ".trace_metadata"),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from traces(files, _spans, problems, "mlflow_traces")


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    for place, raw in span_records(path, problems):
        with problems.collect():
            record = decode(raw, dict[str, Any], place)
            record = as_object(record.get("trace")) or record
            information, data = as_object(record.get("info")), as_object(record.get("data"))
            metadata = as_object(information.get("trace_metadata", record.get("trace_metadata")))
            at = "data.spans" if "spans" in data else "spans"
            spans = convert(decoded(data.get("spans", record.get("spans"))), list[Any], place.below(at))
            session = text_of(metadata.get(_SESSION))
            for number, span in enumerate(spans):
                where = place.below(f"{at}[{number}]")
                yield from sound(partial(_span, span, session, where, problems), where, problems)


def _span(fields: Any, session: str, place: Place, problems: Problems) -> TraceSpan:
    span = convert(fields, _Span, place)
    attributes = {name: _value(value) for name, value in span.attributes.items()}
    kind = _KINDS.get(text_of(attributes.get("mlflow.spanType")), "other")
    own = span.span_id or (span.context.span_id if span.context is not None else "")
    if not own:
        raise RecordingError(place, "no span id", "correct it, or leave this span out")
    said = call = None
    start = seconds_of(span.start_time_unix_nano or span.start_time, place.below("start_time_unix_nano"))
    if kind == "llm":
        inputs, outputs = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
        tools = attributes.get("mlflow.chat.tools")
        names = ("attributes.mlflow.spanInputs", "attributes.mlflow.spanOutputs")
        said = exchange(inputs, outputs, place, problems, "mlflow_traces", tools=tools, names=names)
        call = _call(attributes, place, problems)
        # `status.code` may be ERROR or STATUS_CODE_ERROR, which end alike.
        if said.answer is None and "ERROR" in (span.status_code, text_of(as_object(span.status).get("code"))[-5:]):
            call = msgspec.structs.replace(call, stop="error")
    made = TraceSpan(
        place,
        own,
        span.trace_id or (span.context.trace_id if span.context is not None else ""),
        span.parent_span_id or span.parent_id or "",
        kind,
        agent=span.name if kind == "agent" else "",
        thread=session or text_of(attributes.get("session.id")),
        end=seconds_of(span.end_time_unix_nano or span.end_time, place.below("end_time_unix_nano")),
        call=msgspec.structs.replace(call or Call(), started=start),
    )
    return made if said is None else replace(made, exchange=said)


def _call(attributes: dict[str, Any], place: Place, problems: Problems) -> Call:
    inputs, outputs = as_object(attributes.get("mlflow.spanInputs")), as_object(attributes.get("mlflow.spanOutputs"))
    used = as_object(attributes.get("mlflow.chat.tokenUsage"))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "total_tokens")
    hour = used.get("cache_creation_input_tokens_above_1hr")
    reported = counted(*(used.get(name) for name in names))
    if reported is not None and hour is not None:
        reported["ephemeral_1h_input_tokens"] = hour
    where = place.below("attributes.mlflow.chat.tokenUsage")
    cost = dollars(as_object(attributes.get("mlflow.llm.cost")).get("total_cost"), where, problems)
    models = (outputs.get("model"), attributes.get("mlflow.llm.model"), inputs.get("model"))
    return Call(
        model=next(filter(None, map(text_of, models)), ""),
        provider=text_of(attributes.get("mlflow.llm.provider")),
        usage=usage(reported, where, problems, cost),
    )


def _value(value: Any) -> Any:
    """Return an attribute, which is JSON text, often of a text."""
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return value
    return value
