"""Braintrust logs: rows as its API fetches them (`{events}`, `{data}`) and as it exports them (JSON, JSON Lines).

    {id, span_id, root_span_id, span_parents, span_attributes: {name, type}, input, output, error, metadata: {model},
      metrics: {start, end, prompt_tokens, completion_tokens, tokens, prompt_cached_tokens, estimated_cost}}

Source: www.braintrust.dev/docs/reference/api and github.com/braintrustdata/braintrust-sdk. Written from these, without
a recorded sample. A row of type `llm` is a model call; its output is a message, or the choices of a response. Whether
`prompt_tokens` includes what was read from the cache differs by provider and version (`spans.counted`). A session id
in the metadata is the thread. All files of a folder are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, as_text, convert
from . import Recordings, anywhere
from .prompts import as_object, exchange, text_of
from .requests import dollars, effort, usage
from .spans import Kind, TraceSpan, counted, paged_traces

_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool"}
_METRICS = (
    *("prompt_tokens", "completion_tokens", "prompt_cached_tokens", "prompt_cache_creation_tokens", "tokens"),
    "completion_reasoning_tokens",
)
_THREADS = ("session_id", "thread_id", "conversation_id", "sessionId", "threadId")


class _Row(msgspec.Struct):
    span_id: str
    root_span_id: str = ""
    span_parents: list[str] | None = None
    span_attributes: Any = None
    input: Any = None
    output: Any = None
    error: Any = None
    metadata: Any = None
    metrics: Any = None


class _Times(msgspec.Struct):
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Braintrust:
    """Logs and experiments of Braintrust."""

    about: ClassVar[str] = "Braintrust logs (API JSON, exports as JSON or JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".span_id", ".root_span_id", ".span_attributes", ".input", ".output"), under=("", "[]", ".events[]", ".data[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from paged_traces(files, _span, problems, "braintrust", "events", "data")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    row = convert(fields, _Row, place)
    metadata, metrics, about = as_object(row.metadata), as_object(row.metrics), as_object(row.span_attributes)
    times = convert(metrics, _Times, place.below("metrics"))
    span = TraceSpan(
        place,
        row.span_id,
        row.root_span_id,
        row.span_parents[0] if row.span_parents else "",
        _KINDS.get(text_of(about.get("type")), "other"),
        thread=next(filter(None, (text_of(metadata.get(name)) for name in _THREADS)), ""),
        end=times.end,
        call=Call(started=times.start),
    )
    if span.kind != "llm":
        return span
    tools = metadata.get("tools")
    said = exchange(row.input, row.output, place, problems, "braintrust", tools=tools, names=("input", "output"))
    wait = metrics.get("time_to_first_token")
    cost = dollars(metrics.get("estimated_cost"), place.below("metrics.estimated_cost"), problems)
    call = Call(
        model=text_of(metadata.get("model")),
        provider=text_of(metadata.get("provider")),
        usage=usage(counted(*map(metrics.get, _METRICS)), place.below("metrics"), problems, cost),
        started=times.start,
        effort=effort(metadata.get("reasoning_effort")),
        stop="error" if row.error and said.answer is None else "",
        first_token=times.start + wait if times.start is not None and isinstance(wait, (int, float)) else None,
        error=as_text(row.error) if row.error else "",
    )
    return replace(span, exchange=said, call=call)
