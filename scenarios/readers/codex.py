"""Sessions of Codex."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place
from ..model import Call, Compaction, Conversation, Message, Scalar, Tool
from ..source import Problems, decode, objects
from . import Reader, Recordings, text_of
from .messages import (
    COMPACTIONS,
    ENCRYPTED,
    IS_ENCRYPTED,
    OUTPUTS,
    History,
    Item,
    Moment,
    RecordedItem,
    is_answer,
    item_text,
    reply,
    role_of,
    tool,
)
from .requests import usage

# Items and rows without anything that the model is sent: snapshots for undoing, settings, what other programs show.
_IGNORED_ITEMS = ("ghost_snapshot", "compaction_trigger")
_IGNORED_ROWS = ("world_state", "inter_agent_communication_metadata")
# Rows that a fork copies are written at once; the first reply of its own takes longer than that.
_COPYING = 1.0


class _Row(msgspec.Struct):
    type: str
    timestamp: Moment
    payload: msgspec.Raw


class _Instructions(msgspec.Struct):
    text: str = ""


class _DynamicTool(msgspec.Struct, rename="camel"):
    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    defer_loading: bool = False
    tools: list[_DynamicTool] = []
    """Tools of a namespace."""


class _Session(msgspec.Struct):
    id: str = ""
    forked_from_id: str | None = None
    cli_version: str = ""
    model_provider: str | None = None
    base_instructions: _Instructions | None = None
    dynamic_tools: list[_DynamicTool] | None = None


class _Turn(msgspec.Struct):
    model: str = ""
    effort: str | None = None


class _Compacted(msgspec.Struct):
    message: str = ""
    replacement_history: list[Item] | None = None


class _Event(msgspec.Struct):
    type: str
    info: dict[str, Any] | None = None
    num_turns: int = 0
    time_to_first_token_ms: float | None = None
    thread_settings: dict[str, Any] | None = None


class Codex(Reader):
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
      the fork, so their messages have no time. Where the parent is read too, these calls are counted in both.
    - `dynamic_tools` are offered to the model, but for those that it has to search for (`deferLoading`).
    - A compaction replaces the history by its users' messages and an encrypted summary, which is shown by a
      placeholder. The compacting call has no usage.
    - What OpenAI ran itself (`web_search_call`) has no result in the rollout: `meta["hosted_tool_calls"]` counts it.
    - Rows and items of another type are counted in the notes of the run.
    """

    about = "Codex rollouts (JSON Lines)"
    shapes = (
        frozenset({".timestamp", ".type", ".payload", ".payload.cli_version"}),
        frozenset({".timestamp", ".type", ".payload", ".payload.type", ".payload.role", ".payload.content"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            session = _Rollout(problems, History(problems))
            for place, raw in objects(path, problems):
                with problems.collect():
                    session.add(decode(raw, _Row, place), place)
            if session.history.messages:
                yield Place(str(path)), session.conversation(path.stem)


@dataclass(slots=True)
class _Rollout:
    """A session, to which its rows are added one by one."""

    problems: Problems
    history: History
    session: _Session | None = None
    parent: str | None = None
    turn: _Turn = field(default_factory=_Turn)
    compactions: list[Compaction] = field(default_factory=list)
    hosted: int = 0
    rolled_back: int = 0
    _began: float = 0.0
    _reply: list[RecordedItem] = field(default_factory=list)
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

    def add(self, row: _Row, place: Place) -> None:
        """Add the next row. Raises RecordingError if it cannot be read."""
        where, written = place.at("payload"), row.timestamp.timestamp()
        # A fork writes its parent's rows anew when it begins: their times say nothing about when they were said.
        time = None if self.parent and written - self._began < _COPYING else written
        match row.type:
            case "session_meta":
                session = decode(row.payload, _Session, where)
                if self.session is None:
                    self.session, self.parent, self._began = session, session.forked_from_id, written
                elif session.id != self.session.id:
                    self.parent = self.parent or session.id
            case "turn_context":
                self.turn = decode(row.payload, _Turn, where)
            case "response_item":
                self._item(decode(row.payload, Item, where), time, where)
            case "event_msg":
                self._event(decode(row.payload, _Event, where), time, where)
            case "compacted":
                self._compact(decode(row.payload, _Compacted, where), time, where)
            case _ if row.type not in _IGNORED_ROWS:
                self.problems.unknown(f"codex: row of type {row.type!r}", place)

    def conversation(self, stem: str) -> Conversation:
        """Return the session; a session without a `session_meta` row has the file's name as its id."""
        self._close()
        session = self.session or _Session()
        prompt = session.base_instructions.text if session.base_instructions is not None else ""
        system = (Message("instructions", "system", prompt),) if prompt else ()
        told = {"parent": self.parent, "version": session.cli_version, "provider": session.model_provider}
        meta: dict[str, Scalar] = {"off_branch": self.rolled_back, "hosted_tool_calls": self.hosted}
        meta |= {name: value for name, value in told.items() if value}
        return Conversation(
            session.id or stem,
            (*system, *self.history.in_order()),
            tools=tuple(_offered(session.dynamic_tools or ())),
            compactions=tuple(self.compactions),
            meta=meta,
        )

    def _item(self, item: Item, time: float | None, place: Place) -> None:
        if item.type in OUTPUTS:
            self._close()
            text, media = item_text(item.output, place.at("payload.output"), self.problems)
            self.history.add(Message("", "tool", text, answers=item.call_id or "", time=time, media=media), place)
        elif item.type == "message" and role_of(item.role, place) != "assistant":
            self._close()
            text, media = item_text(item.content, place.at("payload.content"), self.problems)
            self.history.add(Message("", role_of(item.role, place), text, time=time, media=media), place)
        elif is_answer(item):
            self._unpaid = None
            self._reply.append(RecordedItem(item, place))
            self._replied = time
        elif item.type not in (*_IGNORED_ITEMS, *COMPACTIONS):
            self.problems.unknown(f"codex: item of type {item.type!r}", place)

    def _close(self) -> None:
        """Turn the items of the reply, if there are any, into its message."""
        if not self._reply:
            return
        call = Call(self.turn.model, "codex", effort=self.turn.effort or "", tier=self._tier)
        message, hosted = reply(self._reply, self.history.next, self.problems, self._replied, call)
        place = self._reply[-1].place
        self._reply = []
        self.hosted += hosted
        self.history.add(message, place)
        self._unpaid = len(self.history.messages) - 1
        self._turn_reply = self._unpaid if self._turn_reply is None else self._turn_reply

    def _event(self, event: _Event, time: float | None, place: Place) -> None:
        match event.type:
            case "token_count" if event.info is not None:
                self._close()
                self._count(event.info, place)
            case "task_started":
                self._close()
                self._unpaid = self._turn_reply = None
                self._turn_began = time
            case "task_complete" if event.time_to_first_token_ms is not None:
                self._close()
                if self._turn_began is not None and self._turn_reply is not None:
                    first_token = self._turn_began + event.time_to_first_token_ms / 1000
                    self._change_call(self._turn_reply, first_token=first_token)
            case "thread_settings_applied" if event.thread_settings is not None:
                self._tier = text_of(event.thread_settings.get("service_tier"))
            case "user_message":
                # The row with the message stands before this one: the turn begins with the last message, not behind it.
                self._turns.append(max(len(self.history.messages) - 1, 0))
            case "thread_rolled_back" if event.num_turns > 0:
                self._roll_back(event.num_turns)
            case "turn_aborted":
                self._close()
                if self._unpaid is not None:
                    self._change_call(self._unpaid, stop="aborted")
            case _:
                pass  # what the screen shows; new types come with every version, and are never sent

    def _count(self, info: dict[str, Any], place: Place) -> None:
        """Give the usage of a `token_count` row to its reply."""
        # Equal sums: the row repeats the one before it, and nothing was called in between.
        if (total := info.get("total_token_usage")) == self._total and total is not None:
            return
        self._total = total
        used = usage(info.get("last_token_usage"), place.at("payload.info.last_token_usage"), self.problems)
        if used is None:
            return
        if self._unpaid is None:
            self.problems.unknown("codex: token_count row without a reply", place)
        else:
            self._change_call(self._unpaid, usage=used)
            self._unpaid = None

    def _change_call(self, at: int, **fields: Any) -> None:
        message = self.history.messages[at]
        call = msgspec.structs.replace(message.call or Call(), **fields)
        self.history.messages[at] = msgspec.structs.replace(message, call=call)

    def _roll_back(self, turns: int) -> None:
        """Take back the last turns, as the user did: the model does not see them any more."""
        self._close()
        start = self._turns[-min(turns, len(self._turns))] if self._turns else len(self.history.messages)
        dropped = {message.id for message in self.history.messages[start:]}
        del self.history.messages[start:], self._turns[-turns:]
        self.compactions = [compaction for compaction in self.compactions if compaction.after not in dropped]
        self.rolled_back += len(dropped)
        self._unpaid = self._turn_reply = self._turn_began = None

    def _compact(self, compacted: _Compacted, time: float | None, place: Place) -> None:
        self._close()
        self._unpaid = None
        parts, hidden = [compacted.message], ""
        for at, item in enumerate(compacted.replacement_history or ()):
            if item.type in COMPACTIONS:
                parts.append(ENCRYPTED)
                hidden = IS_ENCRYPTED
            elif item.role not in ("developer", "system"):  # these are messages of the history, and stay
                parts.append(
                    item_text(item.content, place.at(f"payload.replacement_history[{at}].content"), self.problems)[0]
                )
        summary = "\n\n".join(part for part in parts if part)
        if self.history.messages:
            self.compactions.append(Compaction(self.history.last, summary, time=time, hidden=hidden))
        else:
            self.history.add(Message("", "user", summary, time=time), place)


def _offered(tools: Iterable[_DynamicTool]) -> Iterator[Tool]:
    """Yield the tools that stand in the prompt, those of a namespace one by one."""
    for each in tools:
        if each.tools:
            yield from _offered(each.tools)
        elif not each.defer_loading:
            yield tool({"name": each.name, "description": each.description, "parameters": each.input_schema})
