"""τ²-bench results: `{info, tasks, simulations: [{id, task_id, trial, reward_info, messages}]}`, one object a file.

Source: github.com/sierra-research/tau2-bench, `data/tau2/simulations/*.json`, schema in `src/tau2/data_model`. Some
files have no info and no tasks. A simulation is a conversation of the agent, its id `<file>/<task>.<trial>`, and one of
the simulated user, `<file>/<task>.<trial>/user`, if usage is recorded for the user's messages: two models were called.

In τ² the simulated user has tools of its own (it restarts a phone, say). Neither side sees the other's tool calls and
results, so they are left out (as in τ²'s own `is_valid_agent_history_message` and `is_valid_user_history_message`), and
counted in meta. In the user's conversation the roles are swapped (as in `UserState.flip_roles`): what the user wrote
are the assistant's messages, what the agent wrote the user's.

If the file has the domain's policy, it becomes the agent's system message; the guidelines of the simulation become the
user's. The agent was sent a few fixed sentences around it, the user also the scenario of the task, and both tool
schemas; these are not in the messages. The agent's first greeting is a fixed text, no model call: it has no `call`.
Times have no zone and are taken as UTC. Voice runs are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, ToolCall
from ..source import Problems, as_text, convert, decode, records
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


class _User(msgspec.Struct):
    llm: str | None = None
    global_simulation_guidelines: str | None = None


class _Environment(msgspec.Struct):
    domain_name: str | None = None
    policy: str | None = None


class _Info(msgspec.Struct):
    agent_info: _Agent | None = None
    user_info: _User | None = None
    environment_info: _Environment | None = None


class _Results(msgspec.Struct):
    simulations: list[Any]
    info: _Info | None = None


@dataclass(frozen=True, slots=True)
class Tau2:
    """τ²-bench's simulations, as the agent saw them, and as the simulated user did."""

    about: ClassVar[str] = "τ²-bench results (one object with its simulations)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".simulations[].task_id", ".simulations[].messages", ".simulations[].messages[].role"}),
        frozenset({".info.environment_info", ".info.agent_info", ".info.user_info"}),  # tasks alone can fill the head
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    results = decode(raw, _Results, place)
                    for at, run in enumerate(results.simulations):
                        where = place.at(f"simulations[{at}]")
                        with problems.collect():
                            simulation = convert(run, _Simulation, where)
                            for conversation in _conversations(simulation, results.info, path.stem, where, problems):
                                yield where, conversation


class _Side(NamedTuple):
    """One of the two models of a simulation: what it was called with, and what it saw."""

    suffix: str
    """Of the conversation's id."""
    model: str
    system: Message | None
    roles: dict[str, str]
    """Roles by the recorded ones, where they differ."""
    speaker: str
    """Recorded role of its own messages, and requestor of its tools."""
    hidden: str
    """Key of meta that counts the tool messages of the other side."""


def _conversations(
    run: _Simulation, info: _Info | None, file: str, place: Place, problems: Problems
) -> Iterator[Conversation]:
    """Yield the agent's conversation, and the user's if usage is recorded for any of its messages."""
    info = info or _Info()
    environment, agent, user = info.environment_info or _Environment(), info.agent_info or _Agent(), info.user_info
    policy, guidelines = run.policy or environment.policy, user.global_simulation_guidelines if user else None
    sides = [_Side("", agent.llm or "", _system("policy", policy), {}, "assistant", "users_tool_messages")]
    recorded = list(_flat(run.messages, place))
    if any(message.role == "user" and _reported(message)[1] for message, _ in recorded):
        swapped = {"user": "assistant", "assistant": "user"}
        model = (user and user.llm) or ""
        sides.append(_Side("/user", model, _system("guidelines", guidelines), swapped, "user", "agents_tool_messages"))
    for side in sides:
        visible = [(message, where) for message, where in recorded if not _hidden_from(side, message)]
        times, dropped = forward(
            iso_seconds(m.timestamp, w.at(f"{w.field}.timestamp")) if m.timestamp else None for m, w in visible
        )
        messages = [
            _message(m, f"m{at}", time, side, w, problems)
            for at, ((m, w), time) in enumerate(zip(visible, times, strict=True))
        ]
        yield Conversation(
            id=f"{file}/{run.task_id}.{run.id if run.trial is None else run.trial}{side.suffix}",
            messages=tuple(messages if side.system is None else [side.system, *messages]),
            language="en",
            meta={
                "task": str(run.task_id),
                "trial": run.trial,
                "simulation": run.id,
                "domain": environment.domain_name,
                "reward": run.reward_info.reward if run.reward_info else None,
                "ended": run.termination_reason,
                "started": run.start_time,
                side.hidden: len(recorded) - len(visible),
                "times_dropped": dropped,
            },
        )


def _system(name: str, text: str | None) -> Message | None:
    return Message(id=name, role="system", text=text) if text else None


def _flat(messages: Sequence[_Message], place: Place) -> Iterator[tuple[_Message, Place]]:
    """Yield the messages with their places; several results recorded as one message come one by one."""
    for at, message in enumerate(messages):
        where = place.at(f"{place.field}.messages[{at}]")
        if message.tool_messages is None:
            yield message, where
        else:
            yield from ((result, where.at(f"{where.field}.tool_messages")) for result in message.tool_messages)


def _hidden_from(side: _Side, message: _Message) -> bool:
    """Return whether the message is a tool call of the other side, or its result."""
    if message.role == "tool":
        return message.requestor != side.speaker
    return message.role != side.speaker and bool(message.tool_calls)


def _message(
    message: _Message, name: str, time: float | None, side: _Side, place: Place, problems: Problems
) -> Message:
    role = role_of(side.roles.get(message.role, message.role), place)
    if message.is_audio:
        raise RecordingError(place.at(f"{place.field}.is_audio"), "speech, not text", "read text runs only")
    return Message(
        id=name,
        role=role,
        text=message.content or "",
        calls=tuple(_tool_call(call) for call in message.tool_calls or ()),
        answers=(message.id or "") if role == "tool" else None,
        time=time,
        call=_call(message, side.model, place, problems) if role == "assistant" else None,
    )


def _tool_call(call: _ToolCall) -> ToolCall:
    text = as_text(call.arguments)
    return ToolCall(id=call.id, name=call.name, arguments=text)


def _call(message: _Message, model: str, place: Place, problems: Problems) -> Call | None:
    field, reported = _reported(message)
    if not reported:
        return None
    cost = dollars(message.cost, place.at(f"{place.field}.cost"), problems)
    used = usage(reported, place.at(f"{place.field}.{field}"), problems, cost)
    return Call(model=(message.raw_data and message.raw_data.model) or model, usage=used)


def _reported(message: _Message) -> tuple[str, Any]:
    """Return the fullest usage that the message has, behind its field."""
    raw = message.raw_data
    return ("raw_data.usage", raw.usage) if raw is not None and raw.usage else ("usage", message.usage)
