"""mini-swe-agent trajectories: `<run>/<task>.traj.json`, `{info, messages, instance_id}`.

Source: github.com/SWE-agent/mini-swe-agent (formats 1 and 1.1). A message is in the OpenAI form with an `extra`: the
raw response of the model call, its cost, and when it was complete. `response.created` is when the provider took the
request, in whole seconds, so it may be up to a second before the message that it answers. The last message, role
`exit`, was never sent: its status goes to `meta`. The files have no tool schema (there is one tool, `bash`), and no
times of system and user messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place
from ..model import Call, Conversation, Scalar
from ..source import Problems, decode, records
from . import Recordings
from .messages import ChatMessage, History, chat_message
from .requests import Responses, dollars, usage


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    model: str = ""
    created: float | None = None
    usage: Any = None
    choices: list[_Choice] = []


class _Extra(msgspec.Struct):
    response: _Response | None = None
    cost: Any = None
    timestamp: float | None = None
    exit_status: str | None = None


class _Message(ChatMessage):
    extra: _Extra = msgspec.field(default_factory=_Extra)


class _Model(msgspec.Struct):
    model_name: str = ""


class _Config(msgspec.Struct):
    model: _Model = msgspec.field(default_factory=_Model)


class _Info(msgspec.Struct):
    exit_status: str | None = None
    mini_version: str | None = None
    config: _Config = msgspec.field(default_factory=_Config)


class _Trajectory(msgspec.Struct):
    messages: list[_Message]
    info: _Info
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class MiniSwe:
    """Trajectories of mini-swe-agent, one per task."""

    about: ClassVar[str] = "mini-swe-agent trajectories (.traj.json)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".info", ".info.exit_status", ".messages", ".messages[].role", ".messages[].extra"}),
        frozenset({".info", ".info.mini_version", ".messages", ".messages[].role"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    yield place, _conversation(decode(raw, _Trajectory, place), place, problems)


def _conversation(run: _Trajectory, place: Place, problems: Problems) -> Conversation:
    status = run.info.exit_status
    name = run.instance_id or Path(place.file).name.partition(".")[0]
    provider, slash, _ = run.info.config.model.model_name.partition("/")
    history, responses = History(problems), Responses(problems)
    for at, message in enumerate(run.messages):
        extra = message.extra
        if message.role == "exit":
            status = extra.exit_status or status
            continue
        where = place.at(f"messages[{at}]")
        call = None
        if message.role == "assistant" and responses.new(extra.response.id if extra.response else None, where):
            call = _call(extra, provider if slash else "", where, problems)
        history.add(chat_message(message, f"m{at}", where, problems, time=extra.timestamp, call=call), where)
    meta: dict[str, Scalar] = {"task": name, "exit_status": status, "agent_version": run.info.mini_version}
    return Conversation(name, history.in_order(), meta={k: v for k, v in meta.items() if v is not None})


def _call(extra: _Extra, provider: str, place: Place, problems: Problems) -> Call | None:
    response, field = extra.response, f"{place.field}.extra"
    if response is None:
        return None
    cost = dollars(extra.cost, place.at(f"{field}.cost"), problems)
    return Call(
        model=response.model,
        provider=provider,
        usage=usage(response.usage, place.at(f"{field}.response.usage"), problems, cost),
        started=response.created,
        stop=(response.choices[0].finish_reason if response.choices else None) or "",
        request_id=response.id or "",
    )
