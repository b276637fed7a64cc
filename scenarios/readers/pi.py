"""Sessions of the pi coding agent, and what OpenClaw, which is built on it, writes of its own agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import Place
from ..media import sized
from ..model import Call, Compaction, Conversation, Media, Message, Scalar, Tool, ToolCall
from ..source import Problems, decode, json_text, objects
from . import Reader, Recordings
from .messages import History, Moment, moment_seconds
from .requests import dollars, numbered, other_than, usage


class _Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class _Thinking(msgspec.Struct, tag_field="type", tag="thinking"):
    thinking: str = ""


class _Image(msgspec.Struct, tag_field="type", tag="image"):
    data: str = ""


class _ToolCall(msgspec.Struct, tag_field="type", tag="toolCall"):
    id: str
    name: str
    arguments: msgspec.Raw

    def __post_init__(self) -> None:
        json_text(self.arguments)


# Entries that are not sent: settings, titles, what extensions keep for themselves.
_NOT_SENT = (
    *("thinking_level_change", "model_change", "custom", "label", "session_info", "title", "credential_pin"),
    *("ttsr_injection", "mode_change", "service_tier_change", "mcp_tool_selection"),
)
_Content = str | list[_Text | _Thinking | _Image | _ToolCall]


class _User(msgspec.Struct, tag_field="role", tag="user"):
    content: _Content


class _Developer(msgspec.Struct, tag_field="role", tag="developer"):
    content: _Content


class _Assistant(msgspec.Struct, tag_field="role", tag="assistant", rename="camel"):
    content: _Content
    timestamp: float | None = None
    provider: str = ""
    model: str = ""
    usage: Any = None
    stop_reason: str = ""
    response_id: str | None = None
    response_model: str | None = None
    ttft: float | None = None
    error_message: str | None = None


class _ToolResult(msgspec.Struct, tag_field="role", tag="toolResult", rename="camel"):
    tool_call_id: str
    content: _Content
    tool_name: str = ""


class _Bash(msgspec.Struct, tag_field="role", tag="bashExecution", rename="camel"):
    command: str
    output: str = ""
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False


class _Custom(msgspec.Struct, tag_field="role", tag="custom", rename="camel"):
    content: _Content
    custom_type: str = ""


class _Hook(_Custom, tag_field="role", tag="hookMessage", rename="camel"):
    """Message that version 3 calls `custom`, under its name in version 2."""


AgentMessage = _User | _Developer | _Assistant | _ToolResult | _Bash | _Custom | _Hook
"""A message as pi holds it in memory; programs built on pi record it elsewhere as well."""


class _Entry(msgspec.Struct, rename="camel"):
    type: str
    timestamp: Moment | None = None
    id: str | None = None
    parent_id: str | None = None
    message: AgentMessage | None = None
    content: _Content | None = None
    custom_type: str = ""
    summary: str = ""
    first_kept_entry_index: int | None = None
    first_kept_entry_id: str | None = None
    tokens_before: int | None = None
    thinking_level: str = ""
    branched_from: str | None = None
    parent_session: str | None = None
    system_prompt: str | list[str] = ""
    tools: list[str] = []

    def __post_init__(self) -> None:
        if self.type == "message" and self.message is None:
            raise ValueError("an entry of type message needs a message")


class _Line(NamedTuple):
    """An entry and its place. `number` counts the file's lines from 0."""

    number: int
    place: Place
    entry: _Entry

    @property
    def name(self) -> str:
        return self.entry.id or f"e{self.number}"


class Pi(Reader):
    """Sessions of the pi coding agent: JSON Lines, one entry a line.

    Source: github.com/badlogic/pi-mono, `packages/coding-agent` (session versions 1 to 3), and
    github.com/can1357/oh-my-pi, which goes on from it. Entries are `session` (the header), `message`, `compaction`,
    `branch_summary`, `custom_message` and settings. The sessions have no tool schemas or cache marks; pi's have no
    system prompt. Entries of another type are counted in the notes of the run.

    - oh-my-pi has the system prompt and the names of the tools (`session_init`), messages of the role `developer`,
      which count as the system's, and in `usage.cttl` what was written to the cache for an hour.

    - There are two times. The entry's is when a message was complete and written. The message's own is when it began;
      for an assistant's that is the start of the request (in the samples within 20 ms of the message before, but for 5
      of 937 calls; 0 to 192 s before the entry's). So `Message.time` is the entry's, `Call.started` the assistant
      message's own.
    - `usage.input` excludes cached tokens; ours is the sum. A call that was stopped before any answer has all zeros,
      which is no count: its usage is None.
    - `bashExecution` is a command that the user ran; pi shows it to the model as a user's text, and so do we, in its
      words. A command run with `!!` was hidden from the model and is left out.
    - A thinking level that is set while the model works counts from the user's next message on.
    - From version 2 on, entries are a tree (`id`, `parentId`). The conversation is the branch that ends at the last
      entry; `meta["off_branch"]` counts the entries that are not on it. An entry whose parent is lost follows the line
      before it.
    - `firstKeptEntryIndex` counts the file's lines from 0, the header included; newer files name `firstKeptEntryId`.
    """

    about = "pi coding agent sessions (JSON Lines)"
    shapes = (
        frozenset({".type", ".timestamp", ".message", ".message.role", ".message.timestamp"}),
        frozenset({".type", ".timestamp", ".message", ".message.role", ".message.stopReason"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            header = _Entry(type="session")
            entries: list[_Line] = []
            for number, (place, raw) in enumerate(objects(path, problems)):
                with problems.collect():
                    entry = decode(raw, _Entry, place)
                    if entry.type == "session":
                        header = entry
                    elif entry.type != "title":
                        entries.append(_Line(number, place, entry))
            if entries:
                yield Place(str(path)), _conversation(path, header, entries, problems)


def _conversation(path: Path, header: _Entry, entries: list[_Line], problems: Problems) -> Conversation:
    branch = _branch(entries)
    history, level, effort = History(problems), header.thinking_level, header.thinking_level
    compactions, tools = [], list[str]()
    for line in branch:
        if isinstance(line.entry.message, _User):  # a level that is set while the model works counts from here on
            effort = level
        if line.entry.type == "thinking_level_change":
            level = line.entry.thinking_level
        elif line.entry.type == "compaction":
            if history.messages:
                compactions.append(_compaction(line, branch, history))
        elif line.entry.type == "session_init":
            tools = line.entry.tools
            prompt = line.entry.system_prompt
            prompt = prompt if isinstance(prompt, str) else "\n\n".join(prompt)
            if prompt and not any(message.text == prompt for message in history.messages):
                history.add(Message(line.name, "system", prompt, time=moment_seconds(line.entry.timestamp)), line.place)
        elif (message := _message(line, effort, problems)) is not None:
            history.add(message, line.place.at("message"))
    meta: dict[str, Scalar] = {"off_branch": len(entries) - len(branch)}
    if parent := header.branched_from or header.parent_session:
        meta["parent"] = Path(parent).stem.rpartition("_")[2]
    name = header.id or path.stem
    offered = tuple(map(Tool, tools))
    return Conversation(name, history.in_order(), tools=offered, compactions=tuple(compactions), meta=meta)


def _branch(entries: list[_Line]) -> list[_Line]:
    """Return the entries from the first to the last along `parentId`; all entries in files without parents."""
    position = {line.entry.id: at for at, line in enumerate(entries)}
    branch = []
    at = len(entries) - 1
    while at >= 0:
        entry = entries[at].entry
        branch.append(entries[at])
        if entry.id is not None and entry.parent_id is None:
            break
        parent = position.get(entry.parent_id, at) if entry.id is not None else at
        # Upwards always, so that a circle of parents ends.
        at = parent if parent < at else at - 1
    return branch[::-1]


def _compaction(line: _Line, branch: list[_Line], history: History) -> Compaction:
    entry = line.entry
    lowest = entry.first_kept_entry_index
    if entry.first_kept_entry_id is not None:
        lowest = next((other.number for other in branch if other.entry.id == entry.first_kept_entry_id), None)
    names = {message.id for message in history.messages}
    kept = (later.name for later in branch if lowest is not None and later.number >= lowest and later.name in names)
    return Compaction(
        history.last, entry.summary, next(kept, None), entry.tokens_before, moment_seconds(entry.timestamp)
    )


def _message(line: _Line, effort: str, problems: Problems) -> Message | None:
    """Return the entry as a message; None if the model never saw it."""
    entry, name, time = line.entry, line.name, moment_seconds(line.entry.timestamp)
    if entry.type == "custom_message":
        text, _, media = _parts(entry.content or "")
        return Message(name, "user", text, name=entry.custom_type, time=time, media=media)
    if entry.type == "branch_summary" and entry.summary:
        return Message(name, "user", entry.summary, name=entry.type, time=time)
    if entry.type != "message":
        if entry.type not in (*_NOT_SENT, "branch_summary"):
            problems.unknown(f"pi: entry of type {entry.type!r}", line.place)
        return None
    if entry.message is None:
        return None
    return agent_message(entry.message, name, time, effort, line.place.at("message"), problems)


def agent_message(
    message: AgentMessage, name: str, time: float | None, effort: str, place: Place, problems: Problems
) -> Message | None:
    """Return a message of pi in our form, with the id `name`; None if the model never saw it."""
    if isinstance(message, _Bash):
        return None if message.exclude_from_context else Message(name, "user", _bash_text(message), time=time)
    text, thinking, media = _parts(message.content)
    match message:
        case _Assistant():
            made = (block for block in message.content if isinstance(block, _ToolCall))
            calls = tuple(ToolCall(block.id, block.name, json_text(block.arguments)) for block in made)
            call = _call(message, effort, place, problems)
            return Message(name, "assistant", text, calls, time=time, thinking=thinking, media=media, call=call)
        case _ToolResult(tool_call_id=answers, tool_name=tool):
            return Message(name, "tool", text, answers=answers, name=tool, time=time, media=media)
        case _Custom(custom_type=kind):
            return Message(name, "user", text, name=kind, time=time, media=media)
    return Message(name, "system" if isinstance(message, _Developer) else "user", text, time=time, media=media)


def _parts(content: _Content) -> tuple[str, str, tuple[Media, ...]]:
    """Return content as (text, thinking, media)."""
    if isinstance(content, str):
        return content, "", ()
    text = "\n".join(block.text for block in content if isinstance(block, _Text))
    thinking = "\n".join(block.thinking for block in content if isinstance(block, _Thinking) and block.thinking)
    media = tuple(sized("image", {"data": block.data}) for block in content if isinstance(block, _Image))
    return text, thinking, media


def _call(message: _Assistant, effort: str, place: Place, problems: Problems) -> Call:
    started = None if message.timestamp is None else message.timestamp / 1000
    costs = message.usage.get("cost") if isinstance(message.usage, dict) else None
    total = costs.get("total") if isinstance(costs, dict) else None
    cost = dollars(total, place.at(f"{place.field}.usage.cost.total"), problems)
    used = usage(message.usage, place.at(f"{place.field}.usage"), problems, cost)
    model, ttft = message.response_model or message.model, message.ttft
    return Call(
        model,
        message.provider,
        used,
        started,
        effort=effort,
        stop=message.stop_reason,
        request_id=message.response_id or "",
        requested=other_than(model, message.model),
        first_token=None if started is None or ttft is None else started + ttft / 1000,
        error=message.error_message or "",
    )


def _bash_text(bash: _Bash) -> str:
    """Return a command and its output in the words in which pi shows them to the model."""
    parts = [f"Ran `{bash.command}`\n" + (f"```\n{bash.output}\n```" if bash.output else "(no output)")]
    if bash.cancelled:
        parts.append("(command cancelled)")
    elif bash.exit_code:
        parts.append(f"Command exited with code {bash.exit_code}")
    if bash.truncated and bash.full_output_path:
        parts.append(f"[Output truncated. Full output: {bash.full_output_path}]")
    return "\n\n".join(parts)


_REPEATING = ("tool.start", "tool.end", "message.in", "message.sending", "message.out")
_SUMMARY = "compactionSummary"


class _Event(msgspec.Struct, rename="camel"):
    type: str
    session_key: str = ""
    messages: list[msgspec.Raw] | None = None


class _Stamped(msgspec.Struct):
    role: str
    timestamp: float | None = None
    summary: str = ""


class OpenClawTelemetry(Reader):
    """Telemetry of OpenClaw: JSON Lines of events, as its plug-in writes them for the agents of one machine.

        {type: "agent.start" | "agent.end", sessionKey, agentId, prompt, messages: [pi's messages, with usage]}
        {type: "tool.start" | "tool.end" | "message.in" | "message.sending" | "message.out", …}

    Source: github.com/knostic/openclaw-telemetry and github.com/schwartzadev/openclaw-telemetry-hal, whose version has
    the messages. They are no spans: at the start and the end of each run of an agent its whole history is written, in
    the form of pi (`pi.py`), on which OpenClaw is built. The longest history of a session is the conversation; one that
    does not begin with the history before it (a reset, a compaction) is the next (`<session>.2` …). What was said after
    the last of them is not in the file, and neither are system prompts and tools. The other events repeat parts of it.
    """

    about = "OpenClaw telemetry events with messages (JSON Lines)"
    shapes = (
        frozenset({".type", ".sessionKey", ".agentId", ".prompt"}),
        frozenset({".type", ".sessionKey", ".agentId", ".messages", ".messages[].role"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            # Of each session its histories: those that are over, and the current one.
            sessions: dict[str, list[tuple[Place, list[bytes]]]] = {}
            for place, raw in objects(path, problems):
                with problems.collect():
                    event = decode(raw, _Event, place)
                    if event.messages:
                        _add(sessions.setdefault(event.session_key, []), list(map(bytes, event.messages)), place)
                    elif event.type.startswith("agent."):
                        sessions.setdefault(event.session_key, [])
                    elif event.type not in _REPEATING:
                        problems.unknown(f"openclaw_telemetry: event of type {event.type!r}", place)
            for name, histories in sessions.items():
                if not histories:
                    problems.unknown("openclaw_telemetry: agent without a history", Place(str(path)))
                for number, (place, recorded) in enumerate(histories, 1):
                    if messages := _claw_messages(recorded, place, problems):
                        yield place, Conversation(numbered(name or path.stem, number), messages)


def _add(histories: list[tuple[Place, list[bytes]]], history: list[bytes], place: Place) -> None:
    """Add the next history of a session, which mostly goes on with the one before it."""
    if histories:
        latest = histories[-1][1]
        if latest[: len(history)] == history:
            return
        if history[: len(latest)] == latest:
            histories.pop()
    histories.append((place, history))


def _claw_messages(recorded: list[bytes], place: Place, problems: Problems) -> tuple[Message, ...]:
    """Return the messages of a history; their times are when they began, so that an answer has none."""
    history = History(problems)
    for at, raw in enumerate(recorded):
        name, where = f"m{at}", place.at(f"messages[{at}]")
        with problems.collect():
            stamped = decode(raw, _Stamped, where)
            time = None if stamped.timestamp is None or stamped.role == "assistant" else stamped.timestamp / 1000
            if stamped.role == _SUMMARY:
                history.add(Message(name, "user", stamped.summary, name=_SUMMARY, time=time), where)
                continue
            kind: Any = AgentMessage
            if (message := agent_message(decode(raw, kind, where), name, time, "", where, problems)) is not None:
                history.add(message, where)
    return history.in_order()
