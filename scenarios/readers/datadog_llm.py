"""Datadog LLM Observability: spans as they are sent (`{data: {attributes: {spans}}}`, `{spans}`) and exported.

    {span_id, trace_id, parent_id, name, start_ns, duration, status, session_id, metrics: {input_tokens, output_tokens},
      meta: {kind, model_name, model_provider, input: {messages | value}, output, tool_definitions}}

Source: docs.datadoghq.com/llm_observability (HTTP and Export API) and github.com/DataDog/dd-trace-py, `ddtrace/llmobs`.
Written from these, without a recorded sample. A span of kind `llm` is a model call. Exported spans have the fields of
`meta` beside the others, under `attributes`, and their kind in `span_kind`. Input tokens include what was read from a
cache. All files of a folder are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, convert, decode
from . import Recordings, anywhere
from .attributes import seconds_of
from .prompts import as_object, exchange, text_of
from .requests import usage
from .spans import Kind, TraceSpan, counted, sound, span_records, traces

_KINDS: dict[str, Kind] = {"llm": "llm", "agent": "agent", "tool": "tool"}
_METRICS = (
    *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_write_input_tokens"),
    *("total_tokens", "reasoning_output_tokens"),
)
_ROOT = ("undefined", "0")


class _Meta(msgspec.Struct):
    kind: str | None = None
    span_kind: str | None = None
    span: Any = None
    dotted_kind: str | None = msgspec.field(default=None, name="span.kind")
    model_name: str | None = None
    model_provider: str | None = None
    input: Any = None
    output: Any = None
    tool_definitions: Any = None


class _DatadogSpan(_Meta, kw_only=True):
    span_id: str | int
    trace_id: str | int = ""
    parent_id: str | int | None = None
    name: str = ""
    session_id: str | None = None
    start_ns: Any = None
    duration: int | float | None = None
    status: str | None = None
    meta: Any = None
    metrics: Any = None


@dataclass(frozen=True, slots=True)
class DatadogLLM:
    """Spans of Datadog's LLM Observability."""

    about: ClassVar[str] = "Datadog LLM Observability spans (as sent, or from the Export API)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        *anywhere(
            (".span_id", ".trace_id", ".parent_id", ".start_ns", ".meta"),
            under=("", "[]", ".spans[]", "[].spans[]", ".data.attributes.spans[]"),
        ),
        *anywhere(
            (".span_id", ".trace_id", ".parent_id", ".span_kind", ".input"),
            under=(".data[].attributes", "[].attributes", ".attributes"),
        ),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from traces(files, _spans, problems, "datadog_llm")


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    for place, raw in span_records(path, problems):
        with problems.collect():
            for where, fields, session in _unpacked(decode(raw, dict[str, Any], place), place, ""):
                yield from sound(partial(_span, fields, session, where, problems), where, problems)


def _unpacked(record: Any, place: Place, session: str) -> Iterator[tuple[Place, Any, str]]:
    """Yield the spans in a request to the API, in an answer of it, or the span itself; with the session around them."""
    if not isinstance(record, dict):
        yield place, record, session
        return
    session = text_of(record.get("session_id")) or session
    for name in ("data", "spans"):
        if isinstance(record.get(name), list):
            for number, one in enumerate(record[name]):
                yield from _unpacked(one, place.below(f"{name}[{number}]"), session)
            return
    for name in ("data", "attributes"):
        if isinstance(record.get(name), dict):
            yield from _unpacked(record[name], place.below(name), session)
            return
    yield place, record, session


def _span(fields: Any, session: str, place: Place, problems: Problems) -> TraceSpan:
    sent = convert(fields, _DatadogSpan, place)
    meta = sent if sent.meta is None else convert(sent.meta, _Meta, place.below("meta"))
    named = meta.span_kind or meta.kind or meta.dotted_kind or text_of(as_object(meta.span).get("kind"))
    kind = _KINDS.get(named, "other")
    start = seconds_of(sent.start_ns, place.below("start_ns"))
    span = TraceSpan(
        place,
        str(sent.span_id),
        str(sent.trace_id),
        "" if sent.parent_id is None or str(sent.parent_id) in _ROOT else str(sent.parent_id),
        kind,
        agent=sent.name if kind == "agent" else "",
        thread=sent.session_id or session,
        end=None if start is None or sent.duration is None else start + sent.duration / 1e9,
    )
    if kind != "llm":
        return span
    said = exchange(
        _said(meta.input), _said(meta.output), place, problems, "datadog_llm", tools=meta.tool_definitions,
        names=("input.messages", "output.messages"),
    )  # fmt: skip
    metrics = as_object(sent.metrics)
    call = Call(
        model=meta.model_name or "",
        provider=meta.model_provider or "",
        usage=usage(counted(*map(metrics.get, _METRICS)), place.below("metrics"), problems),
        started=start,
        stop="error" if sent.status == "error" and said.answer is None else "",
    )
    return replace(span, exchange=said, call=call)


def _said(io: Any) -> Any:
    """Return the messages of an input or output, or its value."""
    held = as_object(io)
    return held.get("messages") or held.get("value")
