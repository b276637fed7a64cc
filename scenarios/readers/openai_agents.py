"""Traces of OpenAI's Agents SDK: traces and spans as its exporters write them, JSON Lines or batches `{data}`.

    {object: "trace", id, workflow_name, group_id}
    {object: "trace.span", id, trace_id, parent_id, started_at, ended_at, error,
      span_data: {type: "generation", input, output, model, model_config, usage} | {type: "agent", name}
        | {type: "function", name, input, output} | {type: "response", response_id, usage}}

Source: github.com/openai/openai-agents-python, `src/agents/tracing`. Written from it, without a recorded sample. A span
of type `generation` is a model call, with its whole prompt. The SDK's own exporter leaves out the prompts of spans of
type `response` (it counts them in the notes); those that an exporter adds (`input`, `response`) are read. `group_id` is
the thread. All files of a folder are read together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, convert
from . import Recordings, anywhere
from .prompts import as_object, exchange, text_of
from .requests import effort, tier, usage
from .spans import Kind, TraceSpan, counted, moments, paged_traces

_KINDS: dict[str, Kind] = {"generation": "llm", "response": "llm", "agent": "agent", "function": "tool"}


class _Exported(msgspec.Struct):
    id: str
    object: str = "trace.span"
    trace_id: str = ""
    parent_id: str | None = None
    group_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    span_data: Any = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class OpenAIAgents:
    """Traces of the OpenAI Agents SDK."""

    about: ClassVar[str] = "OpenAI Agents SDK traces (spans as its exporters write them)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".object", ".id", ".trace_id", ".span_data", ".span_data.type"), under=("", "[]", ".data[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from paged_traces(files, _span, problems, "openai_agents", "data")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    exported = convert(fields, _Exported, place)
    if exported.object == "trace":  # the root of its spans
        return TraceSpan(place, exported.id, exported.id, thread=exported.group_id or "")
    data = as_object(exported.span_data)
    kind = _KINDS.get(text_of(data.get("type")), "other")
    start, end = moments(place, started_at=exported.started_at, ended_at=exported.ended_at)
    span = TraceSpan(
        place,
        exported.id,
        exported.trace_id,
        exported.parent_id or exported.trace_id,
        kind,
        agent=text_of(data.get("name")) if kind == "agent" else "",
        end=end,
    )
    if kind != "llm":
        return span
    response, settings = as_object(data.get("response")), as_object(data.get("model_config"))
    names = ("span_data.input", "span_data.output")
    answer = data.get("output") or response or None
    said = exchange(
        data.get("input"), answer, place, problems, "openai_agents", names=names, tools=settings.get("tools")
    )
    call = Call(
        model=text_of(data.get("model")) or text_of(response.get("model")),
        provider="openai" if data.get("type") == "response" else "",
        usage=usage(_counts(data.get("usage") or response.get("usage")), place.below("span_data.usage"), problems),
        started=start,
        request_id=text_of(response.get("id")),
        tier=tier(response),
        effort=effort(as_object(settings.get("reasoning")).get("effort")),
        stop="error" if exported.error and said.answer is None else "",
    )
    return replace(span, exchange=said, call=call, response=text_of(data.get("response_id")))


def _counts(reported: Any) -> Any:
    """Return usage whose `input_tokens` are the whole prompt, as the SDK has it."""
    if not isinstance(reported, Mapping) or "input_tokens" not in reported:
        return reported
    details = as_object(reported.get("input_tokens_details"))
    counts = (reported.get("input_tokens"), reported.get("output_tokens"), details.get("cached_tokens"))
    reasoning = as_object(reported.get("output_tokens_details")).get("reasoning_tokens")
    return counted(*counts, total=reported.get("total_tokens"), reasoning=reasoning)
