"""ShareGPT: `{"conversations": [{"from": "human", "value": "…"}], "system"?, "tools"?}`, a JSON array or JSON Lines.

Also read: turns as `{"role", "content"}` or `{"role", "value"}`. Source: the form that FastChat, Axolotl and
LLaMA-Factory train on. `function_call` is the assistant calling a tool: its value is the JSON of one `{name,
arguments}` or a list of them. `observation` and `tool` are a result: it answers the oldest call without a result.
Hermes' way of calling, `<tool_call>{…}</tool_call>` in the assistant's text, is read too. The form has no ids of calls,
no usage and no times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message, Role, Tool, ToolCall
from ..source import Problems, decode, json_text, records
from . import Recordings
from .messages import tool
from .requests import numbered

_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "tool": "tool",
}
_HERMES = re.compile(r"<tool_call>\s*(\{(?:(?!<tool_call>).)*?\})\s*</tool_call>\s*", re.DOTALL)


class _Turn(msgspec.Struct):
    speaker: str | None = msgspec.field(name="from", default=None)
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    role: str | None = None
    content: str | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.speaker is None and self.role is None:
            raise ValueError("a turn needs from or role")
        if self.value is msgspec.UNSET and self.content is msgspec.UNSET:
            raise ValueError("a turn needs value or content")


class Share(msgspec.Struct):
    """A recorded conversation."""

    conversations: list[_Turn]
    system: str | None = None
    tools: str | list[dict[str, Any]] | None = None
    id: str | int | None = None


class _Function(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class ShareGpt:
    """ShareGPT conversations."""

    about: ClassVar[str] = "ShareGPT conversations ({from, value})"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".conversations", ".conversations[].from", ".conversations[].value"}),
        frozenset({"[].conversations", "[].conversations[].from", "[].conversations[].value"}),
        *(
            frozenset({f"{outer}.conversations", f"{outer}.conversations[].role", f"{outer}.conversations[].{said}"})
            for outer in ("", "[]")
            for said in ("value", "content")
        ),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            unnamed = 0
            for place, raw in records(path, problems):
                with problems.collect():
                    share = decode(raw, Share, place)
                    unnamed += share.id is None
                    name = numbered(path.stem, unnamed) if share.id is None else str(share.id)
                    messages = ShareMessages(place).all(share)
                    yield place, Conversation(name, messages, tools=share_tools(share.tools, place.at("tools")))


@dataclass(slots=True)
class ShareMessages:
    """Messages of one conversation, and its calls that have no result yet."""

    place: Place
    messages: list[Message] = field(default_factory=list)
    open: list[ToolCall] = field(default_factory=list)

    def all(self, share: Share) -> tuple[Message, ...]:
        """Return all messages of the conversation in our form."""
        if share.system:
            self.messages.append(Message("m0", "system", share.system))
        for at, turn in enumerate(share.conversations):
            self.messages.append(self._message(turn, self.place.at(f"conversations[{at}]")))
        return tuple(self.messages)

    def _message(self, turn: _Turn, place: Place) -> Message:
        speaker = turn.role or "" if turn.speaker is None else turn.speaker
        if speaker not in _ROLES:
            where = place.below("role" if turn.speaker is None else "from")
            raise RecordingError(where, f"unknown role {speaker!r}", f"use {', '.join(_ROLES)}")
        name, role = f"m{len(self.messages)}", _ROLES[speaker]
        text = next((said for said in (turn.value, turn.content) if isinstance(said, str)), "")
        if role == "tool":
            if not self.open:
                raise RecordingError(place, "a tool result with no call before it", "put its function_call before it")
            # the last call stays open, so a surplus result answers it again instead of being an error
            call = self.open.pop(0) if len(self.open) > 1 else self.open[0]
            return Message(name, role, text, answers=call.id, name=call.name)
        calls: tuple[ToolCall, ...] = ()
        if speaker == "function_call":
            field = "value" if isinstance(turn.value, str) else "content"
            calls, text = _function_calls(text, name, place.below(field)), ""
        elif role == "assistant":
            calls, text = _hermes_calls(text, name, place)
        if calls:
            self.open = list(calls)
        return Message(name, role, text, calls)


def _function_calls(text: str, name: str, place: Place) -> tuple[ToolCall, ...]:
    """Return the calls of a function_call's value."""
    raw, several = text.encode(), text.lstrip().startswith("[")
    functions = decode(raw, list[_Function], place) if several else [decode(raw, _Function, place)]
    return tuple(_call(function, f"{name}c{n}", place) for n, function in enumerate(functions))


def _hermes_calls(text: str, name: str, place: Place) -> tuple[tuple[ToolCall, ...], str]:
    """Return the calls in an assistant's text, and the text without them. A call that is no JSON stays text."""
    calls: list[ToolCall] = []

    def take(match: re.Match[str]) -> str:
        try:
            calls.append(_call(decode(match[1].encode(), _Function, place), f"{name}c{len(calls)}", place))
        except RecordingError:
            return match[0]
        return ""

    rest = _HERMES.sub(take, text)
    return tuple(calls), rest.strip() if calls else text


def _call(function: _Function, name: str, place: Place) -> ToolCall:
    """Return a call with the id `name`. Its arguments are recorded as an object, or as the text of one."""
    text = json_text(function.arguments)
    return ToolCall(name, function.name, decode(text.encode(), str, place) if text.startswith('"') else text)


def share_tools(recorded: str | list[dict[str, Any]] | None, place: Place) -> tuple[Tool, ...]:
    """Return the tools of a list of `{name, …}` or `{"type": "function", "function": {name, …}}`, or of its text."""
    if not recorded or (isinstance(recorded, str) and not recorded.strip()):
        return ()
    schemas = decode(recorded.encode(), list[dict[str, Any]], place) if isinstance(recorded, str) else recorded
    functions = [schema.get("function", schema) for schema in schemas]
    return tuple(tool(function) for function in functions if isinstance(function, dict))
