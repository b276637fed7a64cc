"""SWE-agent trajectories, `<instance>.traj`: one JSON object each.

    {environment, trajectory: [steps], info: {exit_status, model_stats}, replay_config: {agent: {model: {name}}},
      history: [{role, content, thought, action, agent, is_demo, tool_calls: [chat form], tool_call_ids: [id]}]}

Source: github.com/SWE-agent/SWE-agent, `sweagent/agent/agents.py`. `history` is read; `trajectory` tells the same by
steps. There are no times, no usage of single calls and no tool schemas: totals are in `meta`.

- Messages of a demonstration are sent, and answers in one are no calls.
- The history is whole: what a history processor left out of a request (old observations) is not recorded.
- Further agents of a run are conversations of their own, `<instance>/<agent>`.
- `replay_config` may be a JSON text; only the model's name is read of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call, Conversation, Message, Scalar
from ..source import Problems, convert, decode, records
from . import Recordings
from .messages import ChatMessage, History, chat_message

_TOTALS = ("tokens_sent", "tokens_received", "api_calls", "instance_cost")


class _Turn(ChatMessage):
    agent: str = ""
    is_demo: bool = False
    tool_call_ids: list[str] | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    model_stats: dict[str, Any] = {}


class _Trajectory(msgspec.Struct):
    history: list[Any]
    info: _Info = msgspec.field(default_factory=_Info)
    environment: str = ""
    replay_config: Any = None


class _Model(msgspec.Struct):
    name: str = ""


class _Agent(msgspec.Struct):
    model: _Model = msgspec.field(default_factory=_Model)


class _Replay(msgspec.Struct):
    agent: _Agent = msgspec.field(default_factory=_Agent)


@dataclass(frozen=True, slots=True)
class SweAgent:
    """Trajectories of SWE-agent."""

    about: ClassVar[str] = "SWE-agent trajectories (.traj)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".trajectory", ".history", ".history[].role", ".history[].content", ".info"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield from _conversations(decode(raw, _Trajectory, place), path.stem, place, problems)


def _conversations(trajectory: _Trajectory, name: str, place: Place, problems: Problems) -> Recordings:
    model = _model(trajectory.replay_config, place.at("replay_config"), problems)
    histories: dict[str, History] = {}
    for at, recorded in enumerate(trajectory.history):
        where = place.at(f"history[{at}]")
        with problems.collect():
            turn = convert(recorded, _Turn, where)
            history = histories.setdefault(turn.agent, History(problems))
            for message in _messages(turn, f"m{at}", model, where, problems):
                history.add(message, where)
    stats, meta = trajectory.info.model_stats, dict[str, Scalar]()
    if trajectory.info.exit_status:
        meta["exit_status"] = trajectory.info.exit_status
    for total in _TOTALS:
        if isinstance(stats.get(total), (int, float)) and stats[total]:
            meta[total] = stats[total]
    main = next(iter(histories), "")
    for agent, history in histories.items():
        if history.messages and agent == main:
            yield place, Conversation(name, history.in_order(), meta=meta)
        elif history.messages:
            yield place, Conversation(f"{name}/{agent or 'main'}", history.in_order(), meta={"parent": name})


def _model(config: Any, place: Place, problems: Problems) -> str:
    """Return the name of the model in the configuration of the run; empty if there is none."""
    if config is None:
        return ""
    with problems.collect():
        if isinstance(config, str):
            return decode(config.encode(), _Replay, place).agent.model.name
        return convert(config, _Replay, place).agent.model.name
    return ""


def _messages(turn: _Turn, name: str, model: str, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a message; one for each call that a tool's message answers."""
    called = turn.role == "assistant" and not turn.is_demo
    message = chat_message(turn, name, place, problems, call=Call(model) if called else None)
    if message.role != "tool" or not turn.tool_call_ids:
        yield message
    else:
        for at, answers in enumerate(turn.tool_call_ids):
            yield msgspec.structs.replace(message, id=f"{name}.{at}" if at else name, answers=answers)
