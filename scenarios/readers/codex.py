"""Sessions of Codex."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place
from ..model import Call, Media, Message, Scalar, Tool, ToolCall
from ..source import Problems, as_text
from . import OBJECT, UNNAMED, Fields, Recordings, Session, SessionReader
from .messages import (
    COMPACTIONS,
    ENCRYPTED,
    HOSTED,
    IS_ENCRYPTED,
    OUTPUTS,
    TOOL_CALLS,
    History,
    Moment,
    joined,
    role_of,
    texts,
    tool,
)
from .requests import usage

# Items and rows without anything that the model is sent: snapshots for undoing, settings, what other programs show.
_IGNORED_ITEMS = ("ghost_snapshot", "compaction_trigger")
_IGNORED_ROWS = ("world_state", "inter_agent_communication_metadata")
# Rows that a fork copies are written at once; the first reply of its own takes longer than that.
_COPYING = 1.0
_STARTED_BY = "source.subagent.thread_spawn.parent_thread_id"
_CONTENT: Any = str | list[dict[str, Any] | str]


class _Row(msgspec.Struct):
    type: str
    timestamp: Moment
    payload: dict[str, Any]


class Codex(SessionReader):
    """Codex rollouts: JSON Lines of `{timestamp, type, payload}`, `~/.codex/sessions/<date>/rollout-<time>-<id>.jsonl`.

    Source: github.com/openai/codex, `codex-rs/protocol` and `codex-rs/rollout` (checked up to version 0.144). The
    rollouts have no schemas of the built-in tools, no start times of calls and no cache marks. Reasoning is there as
    far as it was summarised; the rest is encrypted.

    - `response_item` rows are what the model was sent and what it answered. `event_msg` rows show the same on the
      screen and are not read, but for `token_count` and where a turn begins, is aborted or taken back.
    - A reply is several items: reasoning, messages, tool calls. They become one assistant message. It ends before the
      tools' outputs, which stand before its `token_count` row. A row that repeats the sum of the row before it is no
      call, and neither is one of zero tokens, which follows a compaction. The last reply of a session may lack its row.
    - `input_tokens` includes what was read from the cache; `reasoning_output_tokens` are part of the output.
    - The system prompt is `base_instructions` of the first `session_meta` row; a resumed session repeats the row. A
      forked session begins with its parent's rows, token counts included: they are read, but they all have the time of
      the fork, so their messages have no time. Where the parent or another of its forks is read too, these calls count
      once.
    - `dynamic_tools` are offered to the model, but for those that it has to search for (`deferLoading`).
    - A compaction replaces the history by its users' messages and an encrypted summary, which is shown by a
      placeholder. The compacting call has no usage.
    - What OpenAI ran itself (`web_search_call`) has no result in the rollout: `meta["hosted_tool_calls"]` counts it.
    - Rows and items of another type are counted in the notes of the run.
    """

    about = "Codex rollouts (JSON Lines)"
    checked = "Codex 0.144"
    shapes = (
        frozenset({".timestamp", ".type", ".payload", ".payload.cli_version"}),
        frozenset({".timestamp", ".type", ".payload", ".payload.type", ".payload.role", ".payload.content"}),
    )

    record_type = _Row

    def session(self, problems: Problems) -> Session:
        return _Rollout(problems, History(problems))


@dataclass(slots=True)
class _Rollout:
    """A session, to which its rows are added one by one."""

    problems: Problems
    history: History
    head: Fields | None = None  # the first `session_meta` row
    parent: str = ""
    model: str = ""
    effort: str = ""
    tools: tuple[Tool, ...] = ()
    hosted: int = 0
    rolled_back: int = 0
    _began: float = 0.0
    # Items of the reply so far, each with its text, media and summary.
    _reply: list[tuple[Fields, str, tuple[Media, ...], str]] = field(default_factory=list)
    # Time of its last item.
    _replied: float | None = None
    # Place in the history of the reply whose token_count row is still to come.
    _unpaid: int | None = None
    _total: Any = None
    # Start of the turn, and place in the history of its first reply, whose first token the turn's end tells.
    _turn_began: float | None = None
    _turn_reply: int | None = None
    _tier: str = ""
    # Places in the history at which the user's turns begin.
    _turns: list[int] = field(default_factory=list)

    def add(self, record: Fields) -> None:
        """Add the next row. Raises RecordingError if it cannot be read."""
        row: _Row = record.record
        payload, written = Fields(row.payload, record.place.at("payload")), row.timestamp.timestamp()
        # A fork writes its parent's rows anew when it begins: their times say nothing about when they were said.
        time = None if self.parent and written - self._began < _COPYING else written
        match row.type:
            case "session_meta":
                tools, name = tuple(_offered(payload.each("dynamic_tools"))), payload.typed("id", str) or ""
                if self.head is None:
                    self.head, self.tools, self._began = payload, tools, written
                    self.parent = payload.text(f"forked_from_id|{_STARTED_BY}")
                elif name != self.head.text("id"):
                    self.parent = self.parent or name
            case "turn_context":
                self.model, self.effort = (payload.typed(name, str) or "" for name in ("model", "effort"))
            case "response_item":
                self._item(payload, time)
            case "event_msg":
                self._event(payload, time)
            case "compacted":
                self._compact(payload, time)
            case _ if row.type not in _IGNORED_ROWS:
                self.problems.unknown(f"codex: row of type {row.type!r}", record.place)

    def conversations(self, path: Path) -> Recordings:
        """Yield the session, if anything was said in it."""
        if not self.history.messages:
            return
        self._close()
        head = self.head or Fields({}, Place(""))
        if prompt := head.text("base_instructions.text"):
            self.history.messages.insert(0, Message("instructions", "system", prompt))
        told = {"parent": self.parent, "version": head.text("cli_version"), "provider": head.text("model_provider")}
        meta: dict[str, Scalar] = {"off_branch": self.rolled_back, "hosted_tool_calls": self.hosted}
        meta |= {name: value for name, value in told.items() if value}
        self.problems.written_by(told["version"], Codex.checked)
        yield Place(str(path)), self.history.conversation(head.text("id") or UNNAMED, tools=self.tools, meta=meta)

    def _item(self, item: Fields, time: float | None) -> None:
        kind = item.typed("type", str) or "message"
        role = role_of(item.typed("role", str) or "", item.place) if kind == "message" else None
        if kind in OUTPUTS or (kind == "message" and role != "assistant"):
            self._close()
            at = "content" if role else "output.content|output"  # older versions wrote outputs as objects
            text, media = self._said(item, at)
            answers = None if role else item.text("call_id")
            self.history.add(Message("", role or "tool", text, answers=answers, time=time, media=media), item.place)
        elif kind in ("message", "reasoning", *TOOL_CALLS, *HOSTED):
            if kind in TOOL_CALLS[:2]:
                item.needed("call_id", str)
                item.needed("name", str)
            self._reply.append((item, *self._said(item, "content"), self._said(item, "summary")[0]))
            self._unpaid = None
            self._replied = time
        elif kind not in (*_IGNORED_ITEMS, *COMPACTIONS):
            self.problems.unknown(f"codex: item of type {kind!r}", item.place)

    def _said(self, item: Fields, at: str) -> tuple[str, tuple[Media, ...]]:
        """Return content as text and media."""
        text, media, _ = texts(item.typed(at, _CONTENT), item.below(at.rpartition("|")[2]), self.problems)
        return text, media

    def _close(self) -> None:
        """Turn the items of the reply, if there are any, into its message."""
        if not self._reply:
            return
        text, thinking, calls, media, hidden = [], [], list[ToolCall](), list[Media](), False
        for item, said, shown, summary in self._reply:
            kind = item.text("type") or "message"
            if kind == "message":
                text.append(said)
                media += shown
            elif kind == "reasoning":
                thinking += [summary, said]
                hidden = hidden or not (summary or said)
            elif kind in HOSTED:
                self.hosted += 1
            else:  # the input of a custom tool is a text, that of a local shell its action
                name = item.text("call_id") or f"{self.history.next}c{len(calls)}"
                is_text, told = kind == "custom_tool_call", item.get("arguments|action") or {}
                arguments = item.text("input") if is_text else as_text(told)
                calls.append(ToolCall(name, item.text("name") or kind.removesuffix("_call"), arguments))
        # A fork may copy what was said without its token counts: the reply is its parent's, and counts there.
        is_copied = bool(self.parent) and self._replied is None
        call = Call(self.model, "codex", effort=self.effort, tier=self._tier, copied=is_copied)
        message = Message(self.history.next, "assistant", joined(text), tuple(calls), time=self._replied, call=call)
        place, self._reply = self._reply[-1][0].place, []
        thought = joined(thinking)
        self.history.add(replace(message, thinking=thought, thinking_hidden=hidden, media=tuple(media)), place)
        self._unpaid = len(self.history.messages) - 1
        self._turn_reply = self._unpaid if self._turn_reply is None else self._turn_reply

    def _event(self, event: Fields, time: float | None) -> None:
        first_token, turns = event.typed("time_to_first_token_ms", float), event.typed("num_turns", int) or 0
        match event.needed("type", str):
            case "token_count" if event.typed("info", OBJECT) is not None:
                self._close()
                self._count(event)
            case "task_started":
                self._close()
                self._unpaid = self._turn_reply = None
                self._turn_began = time
            case "task_complete" if first_token is not None:
                self._close()
                if self._turn_began is not None and self._turn_reply is not None:
                    self._change_call(self._turn_reply, first_token=self._turn_began + first_token / 1000)
            case "thread_settings_applied" if event.typed("thread_settings", OBJECT) is not None:
                self._tier = event.text("thread_settings.service_tier")
            case "user_message":
                # The row with the message stands before this one: the turn begins with the last message, not behind it.
                self._turns.append(max(len(self.history.messages) - 1, 0))
            case "thread_rolled_back" if turns > 0:
                self._roll_back(turns)
            case "turn_aborted":
                self._close()
                if self._unpaid is not None:
                    self._change_call(self._unpaid, stop="aborted")
            case _:
                pass  # what the screen shows; new types come with every version, and are never sent

    def _count(self, event: Fields) -> None:
        """Give the usage of a `token_count` row to its reply."""
        # Equal sums: the row repeats the one before it, and nothing was called in between.
        if (total := event.at("info.total_token_usage")) == self._total and total is not None:
            return
        self._total = total
        at = "info.last_token_usage"
        used = usage(event.at(at), event.below(at), self.problems)
        if used is None:
            return
        if self._unpaid is None:
            self.problems.unknown("codex: token_count row without a reply", event.place)
        else:
            self._change_call(self._unpaid, usage=used, copied=False)
            self._unpaid = None

    def _change_call(self, at: int, **fields: Any) -> None:
        message = self.history.messages[at]
        self.history.messages[at] = replace(message, call=replace(message.call or Call(), **fields))

    def _roll_back(self, turns: int) -> None:
        """Take back the last turns, as the user did: the model does not see them any more."""
        self._close()
        start = self._turns[-min(turns, len(self._turns))] if self._turns else len(self.history.messages)
        dropped = {message.id for message in self.history.messages[start:]}
        del self.history.messages[start:], self._turns[-turns:]
        kept = [compaction for compaction in self.history.compactions if compaction.after not in dropped]
        self.history.compactions = kept
        self.rolled_back += len(dropped)
        self._unpaid = self._turn_reply = self._turn_began = None

    def _compact(self, compacted: Fields, time: float | None) -> None:
        self._close()
        self._unpaid = None
        parts, hidden = [compacted.typed("message", str) or ""], ""
        for item in compacted.each("replacement_history"):
            if item.at("type") in COMPACTIONS:
                parts.append(ENCRYPTED)
                hidden = IS_ENCRYPTED
            elif item.at("role") not in ("developer", "system"):  # these are messages of the history, and stay
                parts.append(self._said(item, "content")[0])
        summary = "\n\n".join(part for part in parts if part)
        if self.history.messages:
            self.history.compact(summary, time=time, hidden=hidden)
        else:
            self.history.add(Message("", "user", summary, time=time), compacted.place)


def _offered(tools: Iterable[Fields]) -> Iterator[Tool]:
    """Yield the tools that stand in the prompt, those of a namespace one by one."""
    for each in tools:
        name, description = each.needed("name", str), each.typed("description", str)
        if each.at("tools"):
            yield from _offered(each.each("tools"))
        elif not each.at("deferLoading"):
            schema = each.typed("inputSchema", OBJECT)
            yield tool({"name": name, "description": description, "parameters": schema})
