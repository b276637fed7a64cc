"""W&B Weave calls: JSON Lines as its API streams them, JSON exports, and pages `{calls}`.

    {id, trace_id, parent_id, op_name, started_at, ended_at, inputs: {model, messages, tools}, output, exception,
      thread_id, summary: {usage: {<model>: {requests, prompt_tokens, completion_tokens}}}}

Source: github.com/wandb/weave, `weave/trace_server/trace_server_interface.py`. Written from it, without a recorded
sample. A call with usage is a model call, but Weave adds the usage of a call to those around it: the innermost counts.
Usage is that of the response, as the provider reported it, else that of the summary. All files of a folder are read
together.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from .spans import TraceSpan, moments, paged_traces

_USAGE = ("usage", "usage_metadata", "usageMetadata")


class _WeaveCall(msgspec.Struct):
    id: str
    trace_id: str = ""
    parent_id: str | None = None
    op_name: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    inputs: Any = None
    output: Any = None
    summary: Any = None
    exception: Any = None
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class Weave:
    """Calls that Weave traced."""

    about: ClassVar[str] = "W&B Weave calls (API or export, JSON or JSON Lines)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".id", ".trace_id", ".op_name", ".started_at", ".inputs"), under=("", "[]", ".calls[]")
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from paged_traces(files, _span, problems, "weave", "calls")


def _span(fields: Any, place: Place, problems: Problems) -> TraceSpan:
    traced = convert(fields, _WeaveCall, place)
    used = as_object(as_object(traced.summary).get("usage"))
    start, end = moments(place, started_at=traced.started_at, ended_at=traced.ended_at)
    thread = traced.thread_id or ""
    span = TraceSpan(place, traced.id, traced.trace_id, traced.parent_id or "", thread=thread, end=end)
    if not used:
        return span
    inputs = as_object(traced.inputs)
    said = exchange(traced.inputs, traced.output, place, problems, "weave", names=("inputs", "output"))
    [(model, reported), *others] = used.items()
    where, response = place.below(f"summary.usage.{model}"), as_object(traced.output)
    if told := next((response[name] for name in _USAGE if isinstance(response.get(name), dict)), None):
        reported, where = told, place.below("output.usage")
    call = Call(
        model=text_of(response.get("model")) or model,
        # the sum over several models is of no call, and this one is around them
        usage=None if others else usage(reported, where, problems),
        started=start,
        effort=effort(inputs.get("reasoning_effort"), inputs.get("reasoning")),
        stop="error" if traced.exception and said.answer is None else "",
        request_id=text_of(response.get("id")),
        tier=tier(traced.output),
        error=text_of(traced.exception),
    )
    return replace(span, kind="llm", exchange=said, call=call)
