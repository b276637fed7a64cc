"""Events that coding agents print for scripts: `claude -p --output-format stream-json` and `codex exec --json`.

Neither stream has the prompt that the command was given: the conversation begins with an empty message of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..errors import Place
from ..model import Call, Conversation, Scalar
from ..source import Problems, as_text, records
from . import OBJECT, UNNAMED, Fields, Recordings, Session, SessionReader, anywhere, as_object, text_of
from .claude_code import SessionLine, Tree, conversation_of
from .exchanges import updated
from .prompts import Stored, stored_messages
from .requests import usage

_SHARED = "claude_stream: answers have their share of the output tokens of their turn's result, by their length"
_PROMPT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class ClaudeStream(SessionReader):
    """Events of `claude -p --output-format stream-json`, which claude-code-action keeps in its execution file.

        {type: "system", subtype: "init" | "compact_boundary", session_id, claude_code_version}
        {type: "assistant" | "user", message, session_id, parent_tool_use_id, uuid} · {type: "result", usage, …}

    Source: code.claude.com/docs/en/headless and the Agent SDK's types; tested on written examples alone. Messages are
    those of the session files (`claude_code`), without times and parents: each event follows the one before it.

    - The events of a subagent name the call that started it (`parent_tool_use_id`): they are `<session>/<call>`.
    - An answer's event has the usage of when its message began, so few output tokens. Partial messages
      (`stream_event`) have all. Without them the output that a `result` reports is shared out over its turn's answers
      by their length, if what they were sent adds up to that of the `result`.
    """

    about = "Claude Code's stream-json output (JSON Lines), claude-code-action's execution file (an array)"
    checked = "Claude Code 2.1"
    shapes = anywhere((".type", ".message", ".message.role", ".session_id", ".parent_tool_use_id"))

    each_record = staticmethod(records)

    def session(self, problems: Problems) -> Session:
        return _ClaudeEvents(problems)


@dataclass(slots=True)
class _ClaudeEvents:
    """A stream, whose events become lines of a session file one by one."""

    problems: Problems
    lines: list[SessionLine] = field(default_factory=list)
    told: dict[str, Scalar] = field(default_factory=dict)
    _last: dict[tuple[str, str], str] = field(default_factory=dict)  # the last line of each session and agent
    _prompts: dict[str, str] = field(default_factory=dict)  # by the call that started the agent
    # Messages since the last result, by id: each the last one with it, its length so far, and its agent.
    _answers: dict[str, tuple[dict[str, Any], int, str]] = field(default_factory=dict)
    _partial: dict[str, str] = field(default_factory=dict)
    _uuids: set[str] = field(default_factory=set)

    def add(self, event: Fields) -> None:
        """Add the next event. Raises RecordingError if it cannot be read."""
        agent = event.typed("parent_tool_use_id", str) or ""
        match event.needed("type", str):
            case "assistant" | "user":
                said = event.needed("message", OBJECT)
                if event.at("type") == "assistant" and isinstance(said.get("content"), list):
                    for part in map(as_object, said["content"]):
                        self._prompts[text_of(part.get("id"))] = text_of(as_object(part.get("input")).get("prompt"))
                    if isinstance(said.get("usage"), dict):
                        _, length, _ = self._answers.get(text_of(said.get("id")), (said, 0, ""))
                        self._answers[text_of(said.get("id"))] = said, length + len(as_text(said["content"])), agent
                summary = bool(self.lines and self.lines[-1].is_boundary and event.at("isSynthetic"))
                self._line(event, agent, {"message": said, "isCompactSummary": summary})
            case "system" if event.at("subtype") == "compact_boundary":
                counts = {"preTokens": event.at("compact_metadata.pre_tokens")}
                self._line(event, agent, {"subtype": "compact_boundary", "compactMetadata": counts})
            case "system":
                self.problems.written_by(event.text("claude_code_version"), ClaudeStream.checked)
            case "stream_event":
                self._partial[agent] = event.text("event.message.id") or self._partial.get(agent, "")
                if (used := event.typed("event.usage", OBJECT)) and self._partial[agent] in self._answers:
                    said, *_ = self._answers[self._partial[agent]]
                    said["usage"] = updated(said["usage"], used)
            case "result":
                self._share(as_object(event.at("usage")))
                self.told |= {"cost": cost} if isinstance(cost := event.at("total_cost_usd"), float) else {}
            case kind if kind not in ("rate_limit_event", "auth_status") and not kind.startswith("tool_"):
                self.problems.unknown(f"claude_stream: event of type {kind!r}", event.place)

    def conversations(self, path: Path) -> Recordings:
        """Yield the session, and those of the agents that it started."""
        for name, branch, meta in Tree(self.lines).conversations(path.stem):
            meta |= {} if "parent" in meta else self.told
            yield branch[0].place, conversation_of(name, branch, meta, self.problems)

    def _line(self, event: Fields, agent: str, told: dict[str, Any]) -> None:
        """Add an event as the line that a session file would have, behind the last one of its agent."""
        session = event.text("session_id")
        before, uuid = self._last.get((session, agent)), event.text("uuid") or f"event {len(self.lines)}"
        if uuid in self._uuids:  # inputs are printed again where the command is told to
            return
        self._uuids.add(uuid)
        common = {"sessionId": session, "isSidechain": bool(agent), "agentId": agent or None}
        if before is None and event.at("type") == "assistant":
            asked = {"role": "user", "content": self._prompts.get(agent, "")}
            first = {**common, "type": "user", "uuid": (before := f"prompt of {uuid}"), "message": asked}
            self.lines.append(SessionLine(first, event.place))
        # A boundary has no parent, but the line that it goes on from.
        linked = {"logicalParentUuid" if "subtype" in told else "parentUuid": before, "uuid": uuid}
        self.lines.append(SessionLine({"type": event.at("type"), **common, **linked, **told}, event.place))
        self._last[session, agent] = uuid

    def _share(self, total: dict[str, Any]) -> None:
        """Share the output of a result over the answers of its turn, if their usage lacks some of it."""
        answers = [(said, length) for said, length, agent in self._answers.values() if not agent]
        self._answers = {}
        sums = {
            name: sum(_count(said["usage"], name) for said, _ in answers) for name in (*_PROMPT_COUNTS, "output_tokens")
        }
        output, whole, shared, before = _count(total, "output_tokens"), sum(length for _, length in answers), 0, 0
        if whole and sums.pop("output_tokens") < output and all(_count(total, name) == sums[name] for name in sums):
            for said, length in answers:
                before += length
                said["usage"] = said["usage"] | {"output_tokens": output * before // whole - shared}
                shared = output * before // whole
            if _SHARED not in self.problems.notes:
                self.problems.notes.append(_SHARED)


def _count(counts: dict[str, Any], name: str) -> int:
    return count if isinstance(count := counts.get(name), int) else 0


class CodexExec(SessionReader):
    """Events of `codex exec --json`: items of a thread, or, up to version 0.43, those of the protocol.

        {type: "thread.started", thread_id} · {type: "turn.started"} · {type: "item.started" | "item.completed", item:
          {id, type: "reasoning" | "agent_message", text} · {type: "command_execution", command, aggregated_output} ·
          {type: "mcp_tool_call", server, tool, arguments, result} · {type: "file_change", changes, status}} ·
          {type: "turn.completed", usage: {input_tokens, cached_input_tokens, output_tokens}}
        {prompt} · {id, msg: {type: "agent_reasoning" | "agent_message" | "exec_command_begin" | "token_count" …}}

    Source: github.com/openai/codex, `codex-rs/exec/src/exec_events.rs`; tested on written examples alone. Items have
    no model, no times and no system prompt.

    - Reasoning, messages and tool calls up to the first result are one answer. Tools that start before it run together.
    - Usage is a turn's: where one call made it, it is that call's, else its sums are in `meta`. The older events have
      it call by call.
    - What OpenAI ran itself (`web_search`) has no result: it is not read, and not counted.
    """

    about = "codex exec --json (JSON Lines)"
    checked = "Codex 0.144"
    shapes = anywhere(
        *((".type", ".item", ".item.id", f".item.{kind}") for kind in ("type", "item_type")),
        (".id", ".msg", ".msg.type"),
        under=("",),
    )

    def session(self, problems: Problems) -> Session:
        return _CodexEvents(problems)


_SAID = {"reasoning": "thinking", "agent_message": "text", "assistant_message": "text", "plan": "text"}
_TOOLS = {"command_execution": "shell", "file_change": "apply_patch", "todo_list": "update_plan"}
_OLDER = {"exec_command": "command_execution", "patch_apply": "file_change", "mcp_tool_call": "mcp_tool_call"}
_ARGUMENTS = ("arguments", "command", "changes", "items", "prompt")
_OUTPUTS = "aggregated_output|formatted_output|stdout|error.message|result.content|result.Ok.content|result.Err|status"


@dataclass(slots=True)
class _CodexEvents:
    """A stream, to which its events are added one by one: what it says is stored in Anthropic's form."""

    problems: Problems
    name: str = ""
    told: dict[str, Scalar] = field(default_factory=dict)
    stored: list[Stored] = field(default_factory=list)
    _model: str = ""
    _turn: int = 0
    _content: list[dict[str, Any]] = field(default_factory=list)
    _results: list[dict[str, Any]] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)

    def add(self, event: Fields) -> None:
        """Add the next event. Raises RecordingError if it cannot be read."""
        kind = event.text("msg.type|type")
        stem, _, phase = kind.rpartition("_")
        if (prompt := event.typed("prompt", str)) is not None or kind in ("turn.started", "task_started"):
            self.close()
            if prompt is not None or not self.stored or self.stored[-1].call:
                self._turn = len(self.stored)
                self.stored.append(Stored("", {"role": "user", "content": prompt or ""}))
        elif kind.startswith("item."):
            item = Fields(event.needed("item", OBJECT), event.below("item"))
            if kind != "item.updated" or item.at("type") == "todo_list":
                self._item(item, item.text("type|item_type"), kind == "item.completed")
        elif stem in _OLDER and phase in ("begin", "end"):
            msg = Fields(event.at("msg") | as_object(event.at("msg.invocation")), event.below("msg"))
            self._item(msg, _OLDER[stem], phase == "end")
        elif kind in ("agent_reasoning", "agent_message"):
            self._item(Fields(event.at("msg"), event.below("msg")), kind.replace("agent_r", "r"), True)
        elif kind in ("turn.completed", "token_count"):
            self._pay(event, "usage" if kind == "turn.completed" else "msg.info.last_token_usage|msg")
        elif kind in ("turn.failed", "turn_aborted"):
            self.close()
            if self.stored and (call := self.stored[-1].call):
                self.stored[-1] = self.stored[-1]._replace(
                    call=replace(call, stop="error", error=event.text("error.message"))
                )
        self.name = event.text("thread_id|msg.session_id") or self.name
        self._model = event.text("model|msg.model") or self._model

    def _item(self, item: Fields, kind: str, is_done: bool) -> None:
        name = item.text("id|call_id")
        if kind in _SAID:
            if is_done:
                if self._results:
                    self.close()
                said = _SAID[kind]
                self._content.append({"type": said, said: item.typed("text|message", str) or ""})
        elif kind in (*_TOOLS, "mcp_tool_call", "collab_tool_call"):
            if name not in self._begun or not is_done:
                if self._results:
                    self.close()
                tool = _TOOLS.get(kind) or "__".join(filter(None, (item.text("server"), item.text("tool"))))
                told = {key: item.at(key) for key in _ARGUMENTS if item.at(key) is not None}
                told = told["arguments"] if isinstance(told.get("arguments"), dict) else told
                self._content.append({"type": "tool_use", "id": name, "name": tool, "input": told})
                self._begun.add(name)
            if is_done:
                self._results.append({"type": "tool_result", "tool_use_id": name, "content": item.get(_OUTPUTS)})
        elif kind not in ("error", "web_search"):
            self.problems.unknown(f"codex_exec: item of type {kind!r}", item.place)

    def conversations(self, path: Path) -> Recordings:
        """Yield the thread, if a model answered in it."""
        self.close()
        if any(stored.call for stored in self.stored):
            messages = stored_messages(self.stored, Place(str(path)), self.problems, "codex_exec")
            yield Place(str(path)), Conversation(self.name or UNNAMED, messages, meta=self.told)

    def close(self) -> None:
        """Store the answer so far, and the results of its tools."""
        if self._content:
            if not self.stored:
                self.stored.append(Stored("", {"role": "user", "content": ""}))
            call = Call(self._model, "codex")
            self.stored.append(Stored("", {"role": "assistant", "content": self._content}, call))
        if self._results:
            self.stored.append(Stored("", {"role": "user", "content": self._results}))
        self._content, self._results = [], []

    def _pay(self, event: Fields, at: str) -> None:
        """Give the usage of a turn, or of a call of the older events, to its call; or to the whole."""
        self.close()
        used = usage(event.get(at), event.below(at), self.problems)
        unpaid = [
            n for n, stored in enumerate(self.stored[self._turn :], self._turn) if stored.call and not stored.call.usage
        ]
        if used and (len(unpaid) == 1 or (unpaid and at != "usage")):
            stored = self.stored[unpaid[-1]]
            self.stored[unpaid[-1]] = stored._replace(call=replace(stored.call or Call(), usage=used))
        elif used and at == "usage":
            counts = {"input_tokens": used.input, "cached_input_tokens": used.cache_read, "output_tokens": used.output}
            self.told |= {name: _count(self.told, name) + (count or 0) for name, count in counts.items()}
