"""Sessions of GitHub Copilot CLI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place
from ..model import Call, Compaction, Conversation, Message, Scalar, ToolCall
from ..source import Problems, as_text, decode, objects
from . import Fields, Reader, Recordings, as_object
from .messages import History, Moment, joined
from .requests import usage

_UNSENT = ("hook.", "permission.", "session.", "assistant.", "tool.", "subagent.", "skill.")


class _Row(msgspec.Struct):
    type: str
    data: dict[str, Any]
    timestamp: Moment


class _ToolRequest(msgspec.Struct, rename="camel"):
    tool_call_id: str
    name: str
    arguments: Any = None


class CopilotCli(Reader):
    """GitHub Copilot CLI sessions: JSON Lines, `~/.copilot/session-state/<session>/events.jsonl`.

        {type: "user.message" | "assistant.message" | "tool.execution_complete" …, data, id, parentId, timestamp}

    Source: the files themselves (undocumented; version 1.0.72) and the events of github.com/github/copilot-sdk. There
    are no prompt tokens, no cache reads and no tool schemas; the tokens of an answer are recorded.

    - A call is one or several `assistant.message` rows with the same `apiCallId`, the last of which has the tokens.
      They become one message in the place of the first. The call starts at its `assistant.turn_start`.
    - Users' messages are read as they are sent (`transformedContent`), reminders of the program among them. A resumed
      session repeats its system message.
    - A `session.compaction_complete` that succeeded is a compaction. Rows of an agent that a tool call started
      (`parentToolCallId`) are a conversation of their own, `<session>/<agent>`, which begins with the `prompt` of that
      call. Both are read by the SDK's events, on written examples: no recorded one was at hand.
    - Hooks, permissions, and what else belongs to the session alone, are not sent.
    """

    about = "GitHub Copilot CLI sessions (JSON Lines)"
    shapes = (frozenset({".type", ".data", ".id", ".parentId", ".timestamp"}),)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            events = _Events(problems)
            for place, raw in objects(path, problems):
                with problems.collect():
                    row = decode(raw, _Row, place)
                    events.add(row.type, Fields(row.data, place.at("data")), row.timestamp.timestamp())
            name = events.name or (path.parent.name if path.stem == "events" else path.stem)
            yield from ((Place(str(path)), conversation) for conversation in events.conversations(name))


@dataclass(slots=True)
class _Events:
    """A session, to which its rows are added one by one."""

    problems: Problems
    name: str = ""
    version: str = ""
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

    def add(self, kind: str, data: Fields, time: float) -> None:
        """Add the next row. Raises RecordingError if it cannot be read."""
        match kind:
            case "session.start" | "session.resume":
                self.name, self.version = data.text("sessionId"), data.text("copilotVersion")
            case "session.model_change":
                self.effort = data.text("reasoningEffort") or self.effort
            case "system.message":
                text = data.typed("content", str) or ""
                known = self._history("").messages
                if not any(message.role == "system" and message.text == text for message in known):
                    self._say("", Message("", "system", text, time=time), data.place)
            case "user.message":
                text = data.typed("transformedContent", str) or data.typed("content", str) or ""
                self._say("", Message("", "user", text, time=time), data.place)
            case "assistant.turn_start":
                self._began[data.text("turnId")] = time
            case "assistant.message":
                self._answer(data, time)
            case "tool.execution_complete":
                failure = None if data.at("success") is not False else data.typed("error.message", str)
                text = data.typed("result.content", str) or "" if failure is None else failure
                message = Message("", "tool", text, answers=data.needed("toolCallId", str), time=time)
                self._say(data.text("parentToolCallId"), message, data.place)
            case "subagent.started":
                self._agents[data.needed("toolCallId", str)] = data.text("agentName")
            case "session.compaction_complete":
                self._compact(data, time)
            case _ if not kind.startswith(_UNSENT):
                self.problems.unknown(f"copilot_cli: row of type {kind!r}", Place(data.place.file, data.place.line))

    def conversations(self, name: str) -> list[Conversation]:
        """Return the session's conversation, and those of the agents that it started."""
        meta: dict[str, Scalar] = {"version": self.version} if self.version else {}
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
        history.add(replace(message, id=f"m{self._number}"), place)
        self._number += 1

    def _answer(self, data: Fields, time: float) -> None:
        """Add a row of an answer, or put it behind the rows of the same call."""
        agent, calls = data.text("parentToolCallId"), list[ToolCall]()
        for request in data.typed("toolRequests", list[_ToolRequest]) or ():
            calls.append(ToolCall(request.tool_call_id, request.name, as_text(request.arguments or {})))
            if isinstance(request.arguments, dict) and isinstance(request.arguments.get("prompt"), str):
                self._prompts[request.tool_call_id] = request.arguments["prompt"]
        used = usage({"outputTokens": data.at("outputTokens")}, data.place, self.problems)
        started = self._began.pop(data.text("turnId"), None)
        name = data.text("serviceRequestId")
        call = Call(data.text("model"), usage=used, started=started, effort=self.effort, request_id=name)
        text, thinking = data.typed("content", str) or "", data.typed("reasoningText", str) or ""
        key, history = (agent, data.text("apiCallId|messageId")), self._history(agent)
        if key not in self._answers:
            message = Message("", "assistant", text, tuple(calls), time=time, thinking=thinking, call=call)
            self._say(agent, message, data.place)
            self._answers[key] = len(history.messages) - 1
            return
        at = self._answers[key]
        history.extend(at, tuple(calls))
        before, earlier = history.messages[at], history.messages[at].call or Call()
        history.messages[at] = replace(
            before,
            text=joined((before.text, text)),
            thinking=joined((before.thinking, thinking)),
            time=time,
            call=replace(earlier, usage=used or earlier.usage),
        )

    def _compact(self, data: Fields, time: float) -> None:
        history, counts = self._history(""), as_object(data.at("compactionTokensUsed"))
        if data.at("success") is not True or not history.messages:
            return
        # Older versions have names of their own; both count the whole prompt as input.
        names = {"cacheReadTokens": "cachedInput", "inputTokens": "input", "outputTokens": "output"}
        used = {name: counts.get(name, counts.get(old)) for name, old in names.items()} if counts else None
        where, summary = data.place.below("compactionTokensUsed"), data.text("summaryContent")
        call = Call(str(counts.get("model") or ""), usage=usage(used, where, self.problems, whole_prompt=True))
        self.compactions.append(
            Compaction(
                history.last,
                summary,
                tokens_before=data.typed("preCompactionTokens", int),
                time=time,
                hidden="" if summary else "it is not recorded",
                call=call if counts else None,
            )
        )
