"""LangSmith runs: JSON or JSON Lines of runs as its API and exports give them, or batches `{post, patch}` of clients.

    {id, trace_id, parent_run_id, run_type, name, start_time, end_time, inputs, outputs, error,
      extra: {metadata: {ls_model_name, ls_provider, thread_id}, invocation_params: {tools}}}

Source: github.com/langchain-ai/langsmith-sdk, `python/langsmith/schemas.py`. A batch posts a run at its start and
patches it with outputs at its end; both are joined by `id`. All files of a folder are read together.

- A run of type `llm` is a model call. Its inputs and outputs are LangChain's (`dumpd`), or those of a wrapped client.
- Usage is `usage_metadata`, whose input is the whole prompt; else that of the wrapped client's response, else the run's
  own token counts. The cost is LangSmith's own estimate.
- `thread_id`, `session_id` or `conversation_id` of the metadata is the thread, `lc_agent_name` the agent. A run's own
  `session_id` names a project, and is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call
from ..source import Problems, convert, decode
from . import Recordings, anywhere
from .langchain import metadata_counts
from .prompts import as_object, exchange, text_of
from .requests import dollars, effort, other_than, tier, usage
from .spans import TraceSpan, counted, moments, sound, span_records, traces

_THREADS = ("thread_id", "session_id", "conversation_id")


class _Run(msgspec.Struct):
    id: str
    run_type: str = ""
    trace_id: str | None = None
    parent_run_id: str | None = None
    name: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    first_token_time: str | None = None
    inputs: Any = None
    outputs: Any = None
    extra: Any = None
    error: str | None = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_token_details: Any = None
    completion_token_details: Any = None
    total_cost: Any = None


class _Batch(msgspec.Struct):
    post: list[Any] | None = None
    patch: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class LangSmith:
    """Runs of LangSmith."""

    about: ClassVar[str] = "LangSmith runs (API JSON, exports as JSON Lines, batches of its clients)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".id", ".run_type", ".inputs", ".start_time", ".trace_id"), under=("", "[]", ".runs[]", ".post[]", "[].post[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from traces(files, _spans, problems, "langsmith")


def _spans(path: Path, problems: Problems) -> Iterator[TraceSpan]:
    for place, run in _runs(path, problems):
        yield from sound(partial(_span, run, place, problems), place, problems)


def _runs(path: Path, problems: Problems) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield every run of a file, those of batches when they are complete."""
    begun: dict[str, tuple[Place, dict[str, Any]]] = {}
    for place, raw in span_records(path, problems):
        with problems.collect():
            record = decode(raw, dict[str, Any], place)
            batch = convert(record, _Batch, place)
            if batch.post is None and batch.patch is None:
                several = record["runs"] if isinstance(record.get("runs"), list) else None
                yield from [(place, record)] if several is None else _each(several, "runs", place, problems)
                continue
            for where, run in _each(batch.post or [], "post", place, problems):
                begun[str(run.get("id"))] = where, run
            for where, run in _each(batch.patch or [], "patch", place, problems):
                first, fields = begun.pop(str(run.get("id")), (where, {}))
                yield first, {**fields, **{name: value for name, value in run.items() if value is not None}}
    yield from begun.values()


def _each(runs: Sequence[Any], name: str, place: Place, problems: Problems) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, run in enumerate(runs):
        where = place.below(f"{name}[{number}]")
        with problems.collect():
            yield where, convert(run, dict[str, Any], where)


def _span(fields: dict[str, Any], place: Place, problems: Problems) -> TraceSpan:
    run = convert(fields, _Run, place)
    extra = as_object(run.extra)
    metadata = as_object(extra.get("metadata"))
    start, end = moments(place, start_time=run.start_time, end_time=run.end_time)
    span = TraceSpan(
        place,
        run.id,
        run.trace_id or "",
        run.parent_run_id or "",
        "tool" if run.run_type == "tool" else "other",
        agent=text_of(metadata.get("lc_agent_name")),
        thread=next(filter(None, (text_of(metadata.get(name)) for name in _THREADS)), ""),
        end=end,
        call=Call(started=start),
    )
    return _call(span, run, extra, metadata, problems) if run.run_type == "llm" else span


def _call(
    span: TraceSpan, run: _Run, extra: Mapping[str, Any], metadata: Mapping[str, Any], problems: Problems
) -> TraceSpan:
    outputs, settings = as_object(run.outputs), as_object(extra.get("invocation_params"))
    tools = settings.get("tools") or settings.get("functions")
    said = exchange(
        run.inputs, outputs or None, span.place, problems, "langsmith", tools=tools, names=("inputs", "outputs")
    )
    message = _message(outputs)
    model = (
        text_of(outputs.get("model"))
        or text_of(as_object(message.get("response_metadata")).get("model_name"))
        or text_of(as_object(outputs.get("llm_output")).get("model_name"))
        or text_of(metadata.get("ls_model_name"))
        or text_of(settings.get("model"))
    )
    where = span.place.below("outputs")
    (first_token,) = moments(span.place, first_token_time=run.first_token_time)
    call = Call(
        model=model,
        provider=text_of(metadata.get("ls_provider")),
        usage=usage(_reported(run, outputs, message), where, problems, dollars(run.total_cost, where, problems)),
        started=span.call.started,
        effort=effort(settings.get("reasoning_effort"), settings.get("reasoning")),
        stop="error" if run.error and said.answer is None else text_of(_stop(message)),
        tier=tier(outputs, message.get("response_metadata")),
        requested=other_than(model, text_of(settings.get("model")) or model),
        first_token=first_token,
        error=run.error or "",
    )
    return replace(span, exchange=said, call=call, kind="llm", response=text_of(outputs.get("id")))


def _reported(run: _Run, outputs: Mapping[str, Any], message: Mapping[str, Any]) -> Any:
    """Return the counts of a call, as they are or under names that `usage` knows."""
    for metadata in (outputs.get("usage_metadata"), message.get("usage_metadata")):
        if isinstance(metadata, dict):
            return metadata_counts(metadata)
    own = outputs.get("usage") or as_object(outputs.get("llm_output")).get("token_usage")
    if own:
        return own
    read = as_object(run.prompt_token_details).get("cache_read")
    reasoning = as_object(run.completion_token_details).get("reasoning")
    return counted(run.prompt_tokens, run.completion_tokens, read, total=run.total_tokens, reasoning=reasoning)


def _message(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of LangChain's message of an answer; nothing of another answer."""
    first = outputs.get("generations")
    while isinstance(first, list):
        first = first[0] if first else None
    message = as_object(as_object(first).get("message"))
    return as_object(message.get("kwargs")) or message


def _stop(message: Mapping[str, Any]) -> Any:
    response = as_object(message.get("response_metadata"))
    return response.get("finish_reason") or response.get("stop_reason")
