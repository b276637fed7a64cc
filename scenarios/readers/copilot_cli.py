"""GitHub Copilot CLI sessions: JSON Lines, `~/.copilot/session-state/<session>/events.jsonl`.

    {type: "user.message" | "assistant.message" | "tool.execution_complete" …, data, id, parentId, timestamp}

Source: the files themselves (undocumented; version 1.0.72) and the events of github.com/github/copilot-sdk. There are
no prompt tokens, no cache reads and no tool schemas; the tokens of an answer are recorded.

- A call is one or several `assistant.message` rows with the same `apiCallId`, the last of which has the tokens. They
  become one message in the place of the first. The call starts at its `assistant.turn_start`.
- Users' messages are read as they are sent (`transformedContent`), reminders of the program among them. A resumed
  session repeats its system message.
- A `session.compaction_complete` that succeeded is a compaction. Rows of an agent that a tool call started
  (`parentToolCallId`) are a conversation of their own, `<session>/<agent>`, which begins with the `prompt` of that
  call. Both are read by the SDK's events, on written examples: no recorded one was at hand.
- Hooks, permissions, and what else belongs to the session alone, are not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place
from ..model import Call, Compaction, Conversation, Message, Scalar, ToolCall
from ..source import Problems, decode, objects
from . import Reader, Recordings
from .fields import as_object
from .messages import History, Moment
from .requests import usage

_UNSENT = ("hook.", "permission.", "session.", "assistant.", "tool.", "subagent.", "skill.")


class _Row(msgspec.Struct):
    type: str
    data: msgspec.Raw
    timestamp: Moment


class _Session(msgspec.Struct, rename="camel"):
    session_id: str = ""
    copilot_version: str = ""


class _ModelChange(msgspec.Struct, rename="camel"):
    reasoning_effort: str | None = None


class _Said(msgspec.Struct, rename="camel"):
    content: str = ""
    transformed_content: str | None = None


class _ToolRequest(msgspec.Struct, rename="camel"):
    tool_call_id: str
    name: str
    arguments: Any = None


class _Answer(msgspec.Struct, rename="camel"):
    content: str = ""
    model: str = ""
    reasoning_text: str | None = None
    tool_requests: list[_ToolRequest] | None = None
    output_tokens: Any = None
    api_call_id: str | None = None
    service_request_id: str | None = None
    turn_id: str | None = None
    message_id: str = ""
    parent_tool_call_id: str | None = None


class _Shown(msgspec.Struct):
    content: str = ""


class _Failure(msgspec.Struct):
    message: str = ""


class _Result(msgspec.Struct, rename="camel"):
    tool_call_id: str
    success: bool = True
    result: _Shown | None = None
    error: _Failure | None = None
    parent_tool_call_id: str | None = None


class _Agent(msgspec.Struct, rename="camel"):
    tool_call_id: str
    agent_name: str = ""


class _Compacted(msgspec.Struct, rename="camel"):
    success: bool = False
    summary_content: str | None = None
    pre_compaction_tokens: int | None = None
    compaction_tokens_used: Any = None


class CopilotCli(Reader):
    """Sessions of GitHub Copilot CLI."""

    about = "GitHub Copilot CLI sessions (JSON Lines)"
    shapes = (frozenset({".type", ".data", ".id", ".parentId", ".timestamp"}),)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            events = _Events(problems)
            for place, raw in objects(path, problems):
                with problems.collect():
                    events.add(decode(raw, _Row, place), place)
            name = events.session.session_id or (path.parent.name if path.stem == "events" else path.stem)
            yield from ((Place(str(path)), conversation) for conversation in events.conversations(name))


@dataclass(slots=True)
class _Events:
    """A session, to which its rows are added one by one."""

    problems: Problems
    session: _Session = field(default_factory=_Session)
    effort: str = ""
    compactions: list[Compaction] = field(default_factory=list)
    # By the tool call that started the agent; "" = the session's own.
    _histories: dict[str, History] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)
    _prompts: dict[str, str] = field(default_factory=dict)
    # Place of each call's message in its history.
    _answers: dict[tuple[str, str], int] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _number: int = 0

    def add(self, row: _Row, place: Place) -> None:
        """Add the next row. Raises RecordingError if it cannot be read."""
        where, time = place.at("data"), row.timestamp.timestamp()
        match row.type:
            case "session.start" | "session.resume":
                self.session = decode(row.data, _Session, where)
            case "session.model_change":
                self.effort = decode(row.data, _ModelChange, where).reasoning_effort or self.effort
            case "system.message":
                text = decode(row.data, _Said, where).content
                known = self._history("").messages
                if not any(message.role == "system" and message.text == text for message in known):
                    self._say("", Message("", "system", text, time=time), where)
            case "user.message":
                said = decode(row.data, _Said, where)
                self._say("", Message("", "user", said.transformed_content or said.content, time=time), where)
            case "assistant.turn_start":
                self._began[decode(row.data, _Answer, where).turn_id or ""] = time
            case "assistant.message":
                self._answer(decode(row.data, _Answer, where), time, where)
            case "tool.execution_complete":
                result = decode(row.data, _Result, where)
                shown = result.result.content if result.result is not None else ""
                text = result.error.message if result.error is not None and not result.success else shown
                message = Message("", "tool", text, answers=result.tool_call_id, time=time)
                self._say(result.parent_tool_call_id or "", message, where)
            case "subagent.started":
                agent = decode(row.data, _Agent, where)
                self._agents[agent.tool_call_id] = agent.agent_name
            case "session.compaction_complete":
                self._compact(decode(row.data, _Compacted, where), time, where)
            case _ if not row.type.startswith(_UNSENT):
                self.problems.unknown(f"copilot_cli: row of type {row.type!r}", place)

    def conversations(self, name: str) -> list[Conversation]:
        """Return the session's conversation, and those of the agents that it started."""
        version = self.session.copilot_version
        meta: dict[str, Scalar] = {"version": version} if version else {}
        conversations = []
        for agent, history in self._histories.items():
            if history.messages and not agent:
                compactions = tuple(self.compactions)
                conversations.append(Conversation(name, history.in_order(), compactions=compactions, meta=meta))
            elif history.messages:
                full = f"{name}/{self._agents.get(agent) or agent}"
                conversations.append(Conversation(full, history.in_order(), meta={**meta, "parent": name}))
        return conversations

    def _history(self, agent: str) -> History:
        return self._histories.setdefault(agent, History(self.problems))

    def _say(self, agent: str, message: Message, place: Place) -> None:
        history = self._history(agent)
        if agent and not history.messages and agent in self._prompts:
            history.add(Message("prompt", "user", self._prompts[agent]), place)
        history.add(msgspec.structs.replace(message, id=f"m{self._number}"), place)
        self._number += 1

    def _answer(self, answer: _Answer, time: float, place: Place) -> None:
        """Add a row of an answer, or put it behind the rows of the same call."""
        agent, requests = answer.parent_tool_call_id or "", answer.tool_requests or []
        calls = []
        for request in requests:
            arguments = request.arguments
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
            calls.append(ToolCall(request.tool_call_id, request.name, text))
            if isinstance(arguments, dict) and isinstance(arguments.get("prompt"), str):
                self._prompts[request.tool_call_id] = arguments["prompt"]
        used = usage({"outputTokens": answer.output_tokens}, place, self.problems)
        started = self._began.pop(answer.turn_id or "", None)
        call = Call(
            answer.model, usage=used, started=started, effort=self.effort, request_id=answer.service_request_id or ""
        )
        thinking = answer.reasoning_text or ""
        key = agent, answer.api_call_id or answer.message_id
        history = self._history(agent)
        if key not in self._answers:
            message = Message("", "assistant", answer.content, tuple(calls), time=time, thinking=thinking, call=call)
            self._say(agent, message, place)
            self._answers[key] = len(history.messages) - 1
            return
        before = history.messages[self._answers[key]]
        earlier = before.call or Call()
        history.extend(self._answers[key], tuple(calls))
        history.messages[self._answers[key]] = msgspec.structs.replace(
            history.messages[self._answers[key]],
            text="\n".join(text for text in (before.text, answer.content) if text),
            thinking="\n".join(text for text in (before.thinking, thinking) if text),
            time=time,
            call=msgspec.structs.replace(earlier, usage=used or earlier.usage),
        )

    def _compact(self, compacted: _Compacted, time: float, place: Place) -> None:
        history = self._history("")
        if not compacted.success or not history.messages:
            return
        reported, where = compacted.compaction_tokens_used, place.below("compactionTokensUsed")
        counts = as_object(reported)
        # Older versions have names of their own; both count the whole prompt as input.
        names = {"cacheReadTokens": "cachedInput", "inputTokens": "input", "outputTokens": "output"}
        used = {name: counts.get(name, counts.get(old)) for name, old in names.items()} if counts else None
        call = Call(str(counts.get("model") or ""), usage=usage(used, where, self.problems, whole_prompt=True))
        self.compactions.append(
            Compaction(
                history.last,
                compacted.summary_content or "",
                tokens_before=compacted.pre_compaction_tokens,
                time=time,
                hidden="" if compacted.summary_content else "it is not recorded",
                call=call if counts else None,
            )
        )
