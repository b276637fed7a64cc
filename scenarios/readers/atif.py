"""Trajectories in ATIF, which Harbor writes for all of its agents: one JSON object each.

    {schema_version: "ATIF-v1.6", session_id, agent: {name, model_name, tool_definitions}, steps: [{step_id, source,
      timestamp, message, reasoning_content, tool_calls: [{tool_call_id, function_name, arguments}],
      observation: {results: [{source_call_id, content}]}, metrics: {prompt_tokens, completion_tokens, cached_tokens}}]}

Source: github.com/laude-institute/harbor, docs/rfcs/0001-trajectory-format.md (ATIF 1.0 to 1.6). There are no starts of
calls and no cache marks; times are those of the steps.

- A step of the agent is a call, and its results are messages behind it. A result that names no call answers the only
  one of its step; else it is a user's message, as it is sent.
- `prompt_tokens` include `cached_tokens`. Tokens written to a cache stand in `metrics.extra`, as Anthropic names them,
  and a stop reason in the step's `extra.stop_reason`.
- Steps with `is_copied_context` repeat another trajectory: they are messages without a call of their own.
- A system step behind the first answer is no message: one that refers to other agents' trajectories is a compaction,
  the rest are counted in the notes. The agents that summarised have files of their own, or stand in
  `subagent_trajectories`: these are conversations `<session>/<agent>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Scalar, ToolCall
from ..source import Problems, as_text, convert, decode, records
from . import Recordings, anywhere
from .messages import ChatTool, History, chat_tools, iso_seconds, texts
from .requests import dollars, usage

# Counts of Anthropic's usage that stand in `metrics.extra`.
_WRITTEN = ("cache_creation_input_tokens", "cache_creation")
_Content = str | list[dict[str, Any] | str] | None


class _AgentExtra(msgspec.Struct):
    parent_session_id: str | None = None


class _Agent(msgspec.Struct):
    name: str = ""
    model_name: str | None = None
    tool_definitions: list[ChatTool] | None = None
    extra: _AgentExtra | None = None


class _StepCall(msgspec.Struct):
    tool_call_id: str
    function_name: str
    arguments: Any = None


class _Result(msgspec.Struct):
    source_call_id: str | None = None
    content: _Content = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Step(msgspec.Struct):
    source: str
    message: _Content = None
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[_StepCall] | None = None
    observation: _Observation | None = None
    metrics: dict[str, Any] | None = None
    extra: Any = None
    is_copied_context: bool = False


class _Trajectory(msgspec.Struct):
    schema_version: str
    agent: _Agent
    steps: list[Any]
    session_id: str = ""
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[Any] = []


@dataclass(frozen=True, slots=True)
class Atif:
    """Trajectories of Harbor's agents."""

    about: ClassVar[str] = "ATIF trajectories (Harbor)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".schema_version", ".agent", ".steps", ".steps[].step_id", ".steps[].source")
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield from _conversations(decode(raw, _Trajectory, place), path.stem, {}, place, problems)


def _conversations(
    trajectory: _Trajectory, name: str, meta: dict[str, Scalar], place: Place, problems: Problems
) -> Recordings:
    """Yield a trajectory's conversation, then those of the agents that it started."""
    name, agent = trajectory.session_id or name, trajectory.agent
    history, compactions = History(problems), list[Compaction]()
    names = (f"m{number}" for number in count())
    for at, recorded in enumerate(trajectory.steps):
        where = place.below(f"steps[{at}]")
        with problems.collect():
            step = convert(recorded, _Step, where)
            if step.source == "system" and any(message.role == "assistant" for message in history.messages):
                compactions += _compactions(step, history, where, problems)
            else:
                for message in _messages(step, agent, names, where, problems):
                    history.add(message, where)
    if history.messages:
        about: dict[str, Scalar] = {"agent": agent.name, **meta}
        if agent.extra is not None and agent.extra.parent_session_id:
            about["parent"] = agent.extra.parent_session_id
        if trajectory.continued_trajectory_ref:
            about["continued_in"] = trajectory.continued_trajectory_ref
        tools = chat_tools(agent.tool_definitions)
        yield place, Conversation(name, history.in_order(), tools=tools, compactions=tuple(compactions), meta=about)
    for at, recorded in enumerate(trajectory.subagent_trajectories):
        where = place.below(f"subagent_trajectories[{at}]")
        with problems.collect():
            started = convert(recorded, _Trajectory, where)
            started.session_id = f"{name}/{started.agent.name or at}"
            yield from _conversations(started, name, {"parent": name}, where, problems)


def _compactions(step: _Step, history: History, place: Place, problems: Problems) -> Iterator[Compaction]:
    """Yield the compaction that a system step stands for."""
    results = step.observation.results if step.observation is not None else []
    if any(result.subagent_trajectory_ref for result in results):
        text, _, _ = texts(step.message, place.below("message"), problems)
        yield Compaction(history.last, text, time=_time(step, place), hidden="another trajectory has it")
    else:
        problems.unknown("atif: step of the system behind the first answer", place)


def _messages(step: _Step, agent: _Agent, names: Iterator[str], place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a step's message and its results."""
    text, media, thinking = texts(step.message, place.below("message"), problems)
    time = _time(step, place)
    if step.source == "system":
        yield Message(next(names), "system", text, time=time, media=media)
    elif step.source == "user":
        yield Message(next(names), "user", text, time=time, media=media)
    elif step.source == "agent":
        name, calls = next(names), step.tool_calls or []
        made = (ToolCall(c.tool_call_id, c.function_name, as_text(c.arguments or {})) for c in calls)
        thinking = step.reasoning_content or thinking
        call = None if step.is_copied_context else _call(step, agent, place, problems)
        yield Message(name, "assistant", text, tuple(made), time=time, thinking=thinking, media=media, call=call)
    else:
        raise RecordingError(place.below("source"), f"unknown source {step.source!r}", "use system, user or agent")
    only = step.tool_calls[0].tool_call_id if step.tool_calls and len(step.tool_calls) == 1 else None
    for at, result in enumerate(step.observation.results if step.observation is not None else ()):
        text, media, _ = texts(result.content, place.below(f"observation.results[{at}].content"), problems)
        answers = result.source_call_id or only
        if answers:
            yield Message(next(names), "tool", text, answers=answers, media=media)
        elif text:
            yield Message(next(names), "user", text, media=media)


def _call(step: _Step, agent: _Agent, place: Place, problems: Problems) -> Call:
    provider, _, model = (step.model_name or agent.model_name or "").rpartition("/")
    provider = provider or (agent.model_name or "").rpartition("/")[0]
    stop = step.extra.get("stop_reason") if isinstance(step.extra, dict) else None
    call = Call(model, provider, effort=str(step.reasoning_effort or ""), stop=stop if isinstance(stop, str) else "")
    metrics, where = step.metrics, place.below("metrics")
    if metrics is None:
        return call
    extra = metrics.get("extra")
    written = {name: extra.get(name) for name in _WRITTEN} if isinstance(extra, dict) else {}
    cost = dollars(metrics.get("cost_usd"), where.below("cost_usd"), problems)
    used = usage({**written, **metrics}, where, problems, cost)
    return msgspec.structs.replace(call, usage=used)


def _time(step: _Step, place: Place) -> float | None:
    return iso_seconds(step.timestamp, place.below("timestamp")) if step.timestamp else None
