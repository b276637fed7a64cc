"""Sessions of the pi coding agent, and what OpenClaw, which is built on it, writes of its own agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Compaction, Conversation, Media, Message, Role, Scalar, Tool, ToolCall
from ..source import Problems, decode, objects
from . import Reader, Recordings, as_object
from .messages import History, Moment, joined, moment_seconds
from .requests import dollars, numbered, other_than, usage

# Entries that are not sent: settings, titles, what extensions keep for themselves.
_NOT_SENT = (
    *("thinking_level_change", "model_change", "custom", "label", "session_info", "title", "credential_pin"),
    *("ttsr_injection", "mode_change", "service_tier_change", "mcp_tool_selection"),
)
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "bashExecution", "custom", "hookMessage"), "user"),  # version 2 has hooks for custom
    "developer": "system",
    "assistant": "assistant",
    "toolResult": "tool",
}


# What a part of each type and a message of each role has to have.
_NEEDED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("thinking", "image", "compactionSummary"), ()),
    "text": ("text",),
    "toolCall": ("id", "name", "arguments"),
    "toolResult": ("tool_call_id", "content"),
    "bashExecution": ("command",),
}


def _check(held: _Part | _Message, kind: str) -> None:
    for name in _NEEDED.get(kind, ("content",)):
        if getattr(held, name) in (None, msgspec.UNSET):
            raise ValueError(f"object missing required field {name}")


class _Part(msgspec.Struct):
    type: Literal["text", "thinking", "image", "toolCall"]
    text: str | None = None
    thinking: str = ""
    data: str = ""
    id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        _check(self, self.type)
        try:
            bytes(self.arguments or b"").decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8 ({error.reason})") from None


_Content = str | list[_Part]


class _Message(msgspec.Struct, rename="camel"):
    """A message of any role, as pi holds it in memory."""

    role: str
    content: _Content | None = None
    timestamp: float | None = None
    provider: str = ""
    model: str = ""
    usage: Any = None
    stop_reason: str = ""
    response_id: str | None = None
    response_model: str | None = None
    ttft: float | None = None
    error_message: str | None = None
    tool_call_id: str | None = None
    tool_name: str = ""
    custom_type: str = ""
    summary: str = ""
    command: str | None = None
    output: str = ""
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False

    def __post_init__(self) -> None:
        _check(self, self.role)


class _Entry(msgspec.Struct, rename="camel"):
    type: str
    id: str | None = None
    parent_id: str | None = None
    timestamp: Moment | None = None
    message: _Message | None = None
    content: _Content = ""
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
            raise ValueError("object missing required field message")


class _Line(NamedTuple):
    """An entry of the file, its place, and the number of its line, from 0."""

    number: int
    place: Place
    entry: _Entry

    @property
    def name(self) -> str:
        return self.entry.id or f"e{self.number}"

    @property
    def time(self) -> float | None:
        return moment_seconds(self.entry.timestamp)


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
            header = _Entry("session")
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
    compactions, tools = list[Compaction](), list[str]()
    for line in branch:
        entry, place = line.entry, line.place
        if entry.message is not None and entry.message.role == "user":
            effort = level  # a level that is set while the model works counts from here on
        with problems.collect():
            if entry.type == "thinking_level_change":
                level = entry.thinking_level
            elif entry.type == "compaction" and history.messages:
                compactions.append(_compaction(line, branch, history))
            elif entry.type == "session_init":
                tools, told = entry.tools, entry.system_prompt
                prompt = told if isinstance(told, str) else "\n\n".join(told)
                if prompt and not any(message.text == prompt for message in history.messages):
                    history.add(Message(line.name, "system", prompt, time=line.time), place)
            elif entry.type != "compaction" and (message := _message(line, effort, problems)) is not None:
                history.add(message, place.at("message"))
    meta: dict[str, Scalar] = {"off_branch": len(entries) - len(branch)}
    if parent := header.branched_from or header.parent_session:
        meta["parent"] = Path(parent).stem.rpartition("_")[2]
    offered = tuple(map(Tool, tools))
    name, messages = header.id or path.stem, history.in_order()
    return Conversation(name, messages, tools=offered, compactions=tuple(compactions), meta=meta)


def _branch(entries: list[_Line]) -> list[_Line]:
    """Return the entries from the first to the last along `parentId`; all entries in files without parents."""
    position = {line.entry.id: at for at, line in enumerate(entries)}
    branch = []
    at = len(entries) - 1
    while at >= 0:
        entry = entries[at].entry
        branch.append(entries[at])
        if entry.id and entry.parent_id is None:
            break
        parent = position.get(entry.parent_id, at) if entry.id else at
        # Upwards always, so that a circle of parents ends.
        at = parent if parent < at else at - 1
    return branch[::-1]


def _compaction(line: _Line, branch: list[_Line], history: History) -> Compaction:
    entry = line.entry
    lowest, first = entry.first_kept_entry_index, entry.first_kept_entry_id
    if first is not None:
        lowest = next((other.number for other in branch if other.entry.id == first), None)
    names = {message.id for message in history.messages}
    kept = (later.name for later in branch if lowest is not None and later.number >= lowest and later.name in names)
    return Compaction(history.last, entry.summary, next(kept, None), entry.tokens_before, line.time)


def _message(line: _Line, effort: str, problems: Problems) -> Message | None:
    """Return the entry as a message; None if the model never saw it."""
    entry, kind = line.entry, line.entry.type
    if kind == "message" and entry.message is not None:
        return _agent_message(entry.message, line.name, line.time, effort, line.place.below("message"), problems)
    if kind == "custom_message":
        text, _, _, media = _parts(entry.content)
        return Message(line.name, "user", text, name=entry.custom_type, time=line.time, media=media)
    if kind == "branch_summary" and entry.summary:
        return Message(line.name, "user", entry.summary, name=kind, time=line.time)
    if kind not in (*_NOT_SENT, "branch_summary"):
        problems.unknown(f"pi: entry of type {kind!r}", line.place)
    return None


def _agent_message(
    message: _Message, name: str, time: float | None, effort: str, place: Place, problems: Problems
) -> Message | None:
    """Return a message as pi holds it in memory in our form, with the id `name`; None if the model never saw it."""
    kind = message.role
    if kind not in _ROLES:
        raise RecordingError(place.below("role"), f"unknown role {kind!r}", f"use {', '.join(_ROLES)}")
    if kind == "bashExecution":
        return None if message.exclude_from_context else Message(name, "user", _bash_text(message), time=time)
    text, thinking, calls, media = _parts(message.content or "")
    answers = message.tool_call_id if kind == "toolResult" else None
    speaker, call = message.tool_name or message.custom_type, None
    if kind == "assistant":
        call = _call(message, effort, place, problems)
    else:
        calls, thinking = (), ""
    return Message(name, _ROLES[kind], text, calls, answers, speaker, time, thinking, media=media, call=call)


def _parts(content: _Content) -> tuple[str, str, tuple[ToolCall, ...], tuple[Media, ...]]:
    """Return content as text, thinking, tool calls and media."""
    if isinstance(content, str):
        return content, "", (), ()
    text = "\n".join(part.text or "" for part in content if part.type == "text")
    thinking = joined(part.thinking for part in content if part.type == "thinking")
    made = (part for part in content if part.type == "toolCall")
    calls = tuple(ToolCall(part.id or "", part.name or "", bytes(part.arguments or b"{}").decode()) for part in made)
    media = tuple(sized("image", {"data": part.data}) for part in content if part.type == "image")
    return text, thinking, calls, media


def _call(message: _Message, effort: str, place: Place, problems: Problems) -> Call:
    started = None if message.timestamp is None else message.timestamp / 1000
    total = as_object(as_object(message.usage).get("cost")).get("total")
    cost = dollars(total, place.below("usage.cost.total"), problems)
    model, ttft = message.response_model or message.model, message.ttft
    return Call(
        model,
        message.provider,
        usage(message.usage, place.below("usage"), problems, cost),
        started,
        effort=effort,
        stop=message.stop_reason,
        request_id=message.response_id or "",
        requested=other_than(model, message.model),
        first_token=None if started is None or ttft is None else started + ttft / 1000,
        error=message.error_message or "",
    )


def _bash_text(bash: _Message) -> str:
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
            said = decode(raw, _Message, where)
            time = None if said.timestamp is None or said.role == "assistant" else said.timestamp / 1000
            if said.role == _SUMMARY:
                history.add(Message(name, "user", said.summary, name=_SUMMARY, time=time), where)
            elif (message := _agent_message(said, name, time, "", where, problems)) is not None:
                history.add(message, where)
    return history.in_order()
