"""τ²-bench results: `{info, tasks, simulations: [{id, task_id, trial, reward_info, messages}]}`, one object a file.

Source: github.com/sierra-research/tau2-bench, `data/tau2/simulations/*.json`, schema in `src/tau2/data_model`. Some
files have no info and no tasks. A simulation is a conversation, its id `<file>/<task>.<trial>`.

In τ² the simulated user has tools of its own (it restarts a phone, say). The agent never sees these calls and their
results, so they are left out (as in τ²'s own `is_valid_agent_history_message`) and counted in meta: the agent knew only
what the user then wrote about them.

If the file has the domain's policy, it becomes the system message. The agent was sent a few fixed sentences around it,
and tool schemas; the file has neither. The agent's first greeting is a fixed text, no model call: it has no `call`.
Times have no zone and are taken as UTC. Voice runs are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, ToolCall
from ..source import Problems, convert, decode, records
from . import Recordings
from .messages import forward, iso_seconds, role_of
from .requests import dollars, usage


class _Raw(msgspec.Struct):
    model: str | None = None
    usage: Any = None


class _ToolCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    id: str | None = None
    requestor: str = "assistant"
    tool_calls: list[_ToolCall] | None = None
    tool_messages: list[_Message] | None = None
    timestamp: str | None = None
    cost: Any = None
    usage: Any = None
    raw_data: _Raw | None = None
    is_audio: bool = False


class _Reward(msgspec.Struct):
    reward: float | None = None


class _Simulation(msgspec.Struct):
    task_id: str | int
    messages: list[_Message]
    id: str = ""
    trial: int | None = None
    start_time: str | None = None
    termination_reason: str | None = None
    reward_info: _Reward | None = None
    policy: str | None = None


class _Agent(msgspec.Struct):
    llm: str | None = None


class _Environment(msgspec.Struct):
    domain_name: str | None = None
    policy: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Agent | None = None
    environment_info: _Environment | None = None


class _Results(msgspec.Struct):
    simulations: list[Any]
    info: _Info | None = None


@dataclass(frozen=True, slots=True)
class Tau2:
    """τ²-bench's simulations, as the agent saw them."""

    about: ClassVar[str] = "τ²-bench results (one object with its simulations)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".simulations[].task_id", ".simulations[].messages", ".simulations[].messages[].role"}),
        frozenset({".info.environment_info", ".info.agent_info", ".info.user_info"}),  # tasks alone can fill the head
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                try:
                    results = decode(raw, _Results, place)
                except RecordingError as error:
                    problems.add(error)
                    continue
                for at, run in enumerate(results.simulations):
                    where = place.at(f"simulations[{at}]")
                    try:
                        simulation = convert(run, _Simulation, where)
                        yield where, _conversation(simulation, results.info, path.stem, where, problems)
                    except RecordingError as error:
                        problems.add(error)


def _conversation(run: _Simulation, info: _Info | None, file: str, place: Place, problems: Problems) -> Conversation:
    environment = (info and info.environment_info) or _Environment()
    model = (info and info.agent_info and info.agent_info.llm) or ""
    recorded = list(_flat(run.messages, place))
    visible = [(message, where) for message, where in recorded if not _hidden_from_agent(message)]
    times, dropped = forward(
        iso_seconds(m.timestamp, w.at(f"{w.field}.timestamp")) if m.timestamp else None for m, w in visible
    )
    messages = [
        _message(m, f"m{at}", time, model, w, problems)
        for at, ((m, w), time) in enumerate(zip(visible, times, strict=True))
    ]
    if policy := run.policy or environment.policy:
        messages.insert(0, Message(id="policy", role="system", text=policy))
    return Conversation(
        id=f"{file}/{run.task_id}.{run.id if run.trial is None else run.trial}",
        messages=tuple(messages),
        language="en",
        meta={
            "task": str(run.task_id),
            "trial": run.trial,
            "simulation": run.id,
            "domain": environment.domain_name,
            "reward": run.reward_info.reward if run.reward_info else None,
            "ended": run.termination_reason,
            "started": run.start_time,
            "users_tool_messages": len(recorded) - len(visible),
            "times_dropped": dropped,
        },
    )


def _flat(messages: Sequence[_Message], place: Place) -> Iterator[tuple[_Message, Place]]:
    """Yield the messages with their places; several results recorded as one message come one by one."""
    for at, message in enumerate(messages):
        where = place.at(f"{place.field}.messages[{at}]")
        if message.tool_messages is None:
            yield message, where
        else:
            yield from ((result, where.at(f"{where.field}.tool_messages")) for result in message.tool_messages)


def _hidden_from_agent(message: _Message) -> bool:
    """Return whether the message is a tool call of the simulated user, or its result."""
    return bool(message.role == "user" and message.tool_calls) or (
        message.role == "tool" and message.requestor == "user"
    )


def _message(message: _Message, name: str, time: float | None, model: str, place: Place, problems: Problems) -> Message:
    role = role_of(message.role, place)
    if message.is_audio:
        raise RecordingError(place.at(f"{place.field}.is_audio"), "speech, not text", "read text runs only")
    return Message(
        id=name,
        role=role,
        text=message.content or "",
        calls=tuple(_tool_call(call) for call in message.tool_calls or ()),
        answers=(message.id or "") if role == "tool" else None,
        time=time,
        call=_call(message, model, place, problems) if role == "assistant" else None,
    )


def _tool_call(call: _ToolCall) -> ToolCall:
    text = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    return ToolCall(id=call.id, name=call.name, arguments=text)


def _call(message: _Message, model: str, place: Place, problems: Problems) -> Call | None:
    raw = message.raw_data or _Raw()
    field, reported = ("raw_data.usage", raw.usage) if raw.usage else ("usage", message.usage)
    if not reported:
        return None
    cost = dollars(message.cost, place.at(f"{place.field}.cost"), problems)
    used = usage(reported, place.at(f"{place.field}.{field}"), problems, cost)
    return Call(model=raw.model or model, usage=used)
