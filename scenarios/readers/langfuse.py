"""Langfuse traces: `{trace, observations}`, a trace of the API with its observations, or lists and lines of either.

    {trace: {id, sessionId}, observations: [{id, traceId, parentObservationId, type, name, startTime, endTime, model,
      input, output, usageDetails, costDetails, metadata}]}

Source: github.com/langfuse/langfuse, `packages/shared/src/domain` and the public API. The export to blob storage has
the same names with underscores, and traces and observations in files of their own. All files of a folder are read
together.

- An observation of type GENERATION is a model call. `input` and `output` are what the framework logged. `metadata` has
  the span's attributes where it came by OpenTelemetry: tools and names of agents are read from them.
- The session of the trace, or LangGraph's `thread_id`, is the thread.
- The kinds of tokens in `usageDetails` add up to the total: the prompt is all that is not output. Where they do not,
  what was read from a cache is part of `input`. The cost is Langfuse's own estimate.
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
from .attributes import Attributes, agent_name, offered_tools, span_kind
from .prompts import as_object, decoded, exchange, text_of
from .requests import dollars, tier, usage
from .spans import Kind, TraceSpan, counted, moments, sound, span_records, traces

_KINDS: dict[str, Kind] = {"GENERATION": "llm", "AGENT": "agent", "TOOL": "tool"}
_READ = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read")
_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens", "prompt_details.cache_write")
_OUTPUTS = ("output", "completion")
_REASONING = ("output_reasoning_tokens", "output_reasoning", "reasoning_tokens", "completion_details.reasoning")


class _Observation(msgspec.Struct):
    id: str
    type: str
    trace_id: str = ""
    parent_observation_id: str | None = None
    session_id: str | None = None
    name: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    model: str | None = None
    provided_model_name: str | None = None
    level: str | None = None
    status_message: str | None = None
    completion_start_time: str | None = None
    input: Any = None
    output: Any = None
    usage_details: Any = None
    usage: Any = None
    cost_details: Any = None
    metadata: Any = None


class _Trace(msgspec.Struct):
    id: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Langfuse:
    """Traces of Langfuse, from its API or its exports."""

    about: ClassVar[str] = "Langfuse traces and observations (API JSON, exports as JSON or JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".id", ".traceId", ".type", ".parentObservationId", ".startTime"),
        (".id", ".trace_id", ".type", ".parent_observation_id", ".start_time"),
        # The columns of a table of observations without parents.
        (".id", ".traceId", ".type", ".startTime", ".input"),
        (".id", ".trace_id", ".type", ".start_time", ".input"),
        (".id", ".sessionId", ".timestamp", ".bookmarked", ".tags"),
        (".id", ".session_id", ".timestamp", ".bookmarked", ".tags"),
        under=("", "[]", ".data[]", ".observations[]", "[].observations[]"),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from traces(files, _spans, problems, "langfuse")


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    for place, raw in span_records(path, problems):
        with problems.collect():
            yield from _record(decode(raw, dict[str, Any], place), place, problems)


def _record(record: dict[str, Any], place: Place, problems: Problems) -> Iterator[TraceSpan]:
    """Yield the spans of a trace, of a page of the API, or of one observation. A trace is the root of its spans."""
    record = _snake(record)
    several = next((key for key in ("observations", "data") if isinstance(record.get(key), list)), "")
    if "trace" in record:
        where = place.below("trace")
        yield from sound(partial(_root, record["trace"], where), where, problems)
    elif "type" in record:
        yield from sound(partial(_span, record, place, problems), place, problems)
    elif several != "data":
        yield from sound(partial(_root, record, place), place, problems)
    for number, one in enumerate(record[several] if several else ()):
        where = place.below(f"{several}[{number}]")
        with problems.collect():
            yield from _record(convert(one, dict[str, Any], where), where, problems)


def _root(fields: Any, place: Place) -> TraceSpan:
    trace = convert(_snake(fields), _Trace, place)
    return TraceSpan(place, trace.id, trace.id, thread=trace.session_id or "")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    observation = convert(_snake(fields), _Observation, place)
    metadata = decoded(observation.metadata)
    metadata = metadata if isinstance(metadata, dict) else {}
    attributes = Attributes(inner if isinstance(inner := metadata.get("attributes"), dict) else {})
    kind = _KINDS.get(observation.type) or ("other" if span_kind(attributes) == "llm" else span_kind(attributes))
    thread = observation.session_id or metadata.get("thread_id")
    start, end = moments(place, startTime=observation.start_time, endTime=observation.end_time)
    span = TraceSpan(
        place,
        observation.id,
        observation.trace_id,
        # Without a parent it hangs on its trace, which is a span of that id (`_root`) and has the session.
        observation.parent_observation_id or observation.trace_id,
        kind,
        agent=agent_name(attributes) or (observation.name or "" if kind == "agent" else ""),
        thread=thread if isinstance(thread, str) else "",
        end=end,
        call=Call(started=start),
    )
    return _call(span, observation, attributes, problems) if kind == "llm" else span


def _call(span: TraceSpan, observation: _Observation, attributes: Attributes, problems: Problems) -> TraceSpan:
    # LangSmith's tracer of the Claude Agent SDK logs {"content": "role"} for a prompt of several messages: a list of
    # objects with these two keys, made into a dictionary. What the prompt was is lost: each call is a conversation.
    tools = offered_tools(attributes)
    said = exchange(
        observation.input, observation.output, span.place, problems, "langfuse", tools=tools, names=("input", "output")
    )
    where = span.place.below("usageDetails")
    costs = observation.cost_details
    cost = dollars(costs.get("total") if isinstance(costs, dict) else None, where, problems)
    response = as_object(observation.output)
    (first_token,) = moments(span.place, completionStartTime=observation.completion_start_time)
    call = Call(
        model=observation.model or observation.provided_model_name or "",
        usage=usage(_counts(observation.usage_details or observation.usage), where, problems, cost),
        started=span.call.started,
        stop="error" if observation.level == "ERROR" and said.answer is None else "",
        request_id=text_of(response.get("id")),
        tier=tier(response, response.get("response_metadata")),
        first_token=first_token,
        error=(observation.status_message or "") if observation.level == "ERROR" else "",
    )
    return replace(span, exchange=said, call=call)


def _counts(details: Any) -> Any:
    """Return the counts of `usageDetails`; what is no object of counts is left to be a problem."""
    details = decoded(details)
    if not isinstance(details, dict):
        return details
    numbers = {name: count for name, count in details.items() if isinstance(count, int) and name != "total"}
    read, written, reasoning = (
        next((numbers[key] for key in keys if key in numbers), None) for keys in (_READ, _WRITTEN, _REASONING)
    )
    # input 20, input_cache_read 80, output 10 and total 110 are kinds that add up: a prompt of 100. With input 100 they
    # do not, so the 80 are a part of it.
    if details.get("total") != sum(numbers.values()):
        return counted(details.get("input"), details.get("output"), read, written, details.get("total"), reasoning)
    output = sum(count for name, count in numbers.items() if name.startswith(_OUTPUTS) or name in _REASONING)
    prompt = sum(numbers.values()) - output
    return counted(prompt, output if "output" in details else None, read, written, prompt + output, reasoning)


def _snake(fields: Any) -> Any:
    """Return an object whose names have underscores: the API writes `traceId`, the export `trace_id`."""
    if not isinstance(fields, dict):
        return fields
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in fields.items()}
