"""Sessions of the pi coding agent, and what OpenClaw, which is built on it, writes of its own agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Message, Role, Scalar, Tool
from ..source import Problems, decode, objects
from . import OBJECT, UNNAMED, Fields, Reader, Recordings
from .messages import History, Moment, decoded_body, milliseconds, moment_seconds, texts, tool_call
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
_CONTENT: Any = str | list[dict[str, Any] | str]
_PROMPT: Any = str | list[str]


class _Entry(Fields):
    """An entry of a file, whose lines are numbered from 0."""

    def __init__(self, number: int, raw: bytes, place: Place) -> None:
        super().__init__(decoded_body(raw, place), place)
        self.number, self.kind = number, self.needed("type", str)
        self.id, self.parent = self.typed("id", str), self.typed("parentId", str)
        self.name, self.time = self.id or f"e{number}", moment_seconds(self.typed("timestamp", Moment))
        if self.kind == "message":
            self.needed("message", OBJECT)


class Pi(Reader):
    """Sessions of the pi coding agent: JSON Lines, one entry a line.

    Source: github.com/badlogic/pi-mono, `packages/coding-agent` (session versions 1 to 3), and
    github.com/can1357/oh-my-pi, which goes on from it. Entries are `session` (the header), `message`, `compaction`,
    `branch_summary`, `custom_message` and settings. The sessions have no tool schemas or cache marks; pi's have no
    system prompt. Entries of another type are counted in the notes of the run.

    - oh-my-pi has the system prompt and the names of the tools (`session_init`), messages of the role `developer`,
      which count as the system's, and in `usage.cttl` what was written to the cache for an hour.
    - An entry's time is when a message was complete: `Message.time`. The message's own is when it began, of an answer
      the start of its request: `Call.started`.
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
            header, entries = Fields({}, Place(str(path))), list[_Entry]()
            for number, (place, raw) in enumerate(objects(path, problems)):
                with problems.collect():
                    entry = _Entry(number, raw, place)
                    if entry.kind == "session":
                        header = entry
                    elif entry.kind != "title":
                        entries.append(entry)
            if entries:
                yield Place(str(path)), _conversation(header, entries, problems)


def _conversation(header: Fields, entries: list[_Entry], problems: Problems) -> Conversation:
    branch, history, tools = _branch(entries), History(problems), list[str]()
    level = effort = header.text("thinkingLevel")
    for entry in branch:
        if entry.at("message.role") == "user":
            effort = level  # a level that is set while the model works counts from here on
        with problems.collect():
            if entry.kind == "thinking_level_change":
                level = entry.typed("thinkingLevel", str) or ""
            elif entry.kind == "compaction" and history.messages:
                lowest, first = entry.typed("firstKeptEntryIndex", int), entry.typed("firstKeptEntryId", str)
                if first is not None:
                    lowest = next((other.number for other in branch if other.id == first), None)
                names = {message.id for message in history.messages}
                later = (each.name for each in branch if lowest is not None and each.number >= lowest)
                kept, tokens = next(filter(names.__contains__, later), None), entry.typed("tokensBefore", int)
                history.compact(entry.typed("summary", str) or "", kept, tokens_before=tokens, time=entry.time)
            elif entry.kind == "session_init":
                tools, told = entry.typed("tools", list[str]) or [], entry.typed("systemPrompt", _PROMPT) or ""
                prompt = told if isinstance(told, str) else "\n\n".join(told)
                if prompt and not any(message.text == prompt for message in history.messages):
                    history.add(Message(entry.name, "system", prompt, time=entry.time), entry.place)
            elif entry.kind != "compaction" and (message := _message(entry, effort, problems)) is not None:
                history.add(message, entry.below("message"))
    meta: dict[str, Scalar] = {"off_branch": len(entries) - len(branch)}
    if parent := header.text("branchedFrom|parentSession"):
        meta["parent"] = Path(parent).stem.rpartition("_")[2]
    return history.conversation(header.text("id") or UNNAMED, tools=tuple(map(Tool, tools)), meta=meta)


def _branch(entries: list[_Entry]) -> list[_Entry]:
    """Return the entries from the first to the last along `parentId`; all entries in files without parents."""
    position, branch, at = {entry.id: at for at, entry in enumerate(entries)}, [], len(entries) - 1
    while at >= 0:
        entry = entries[at]
        branch.append(entry)
        if entry.id and entry.parent is None:
            break
        parent = position.get(entry.parent, at) if entry.id else at
        # Upwards always, so that a circle of parents ends.
        at = parent if parent < at else at - 1
    return branch[::-1]


def _message(entry: _Entry, effort: str, problems: Problems) -> Message | None:
    """Return the entry as a message; None if the model never saw it."""
    if entry.kind == "message":
        said = Fields(entry.at("message"), entry.below("message"))
        return _agent_message(said, entry.name, entry.time, effort, problems)
    if entry.kind == "custom_message":
        text, media, _ = texts(entry.typed("content", _CONTENT), entry.below("content"), problems)
        return Message(entry.name, "user", text, name=entry.text("customType"), time=entry.time, media=media)
    if entry.kind == "branch_summary" and (summary := entry.typed("summary", str)):
        return Message(entry.name, "user", summary, name=entry.kind, time=entry.time)
    if entry.kind not in (*_NOT_SENT, "branch_summary"):
        problems.unknown(f"pi: entry of type {entry.kind!r}", entry.place)
    return None


def _agent_message(said: Fields, name: str, time: float | None, effort: str, problems: Problems) -> Message | None:
    """Return a message as pi holds it in memory in our form, with the id `name`; None if the model never saw it."""
    kind = said.needed("role", str)
    if kind not in _ROLES:
        raise RecordingError(said.below("role"), f"unknown role {kind!r}", f"use {', '.join(_ROLES)}")
    if kind == "bashExecution":
        return None if said.at("excludeFromContext") is True else Message(name, "user", _bash_text(said), time=time)
    answers = said.needed("toolCallId", str) if kind == "toolResult" else None
    text, media, thinking = texts(said.needed("content", _CONTENT, blank=True), said.below("content"), problems)
    speaker = said.text("toolName|customType")
    if kind != "assistant":
        return Message(name, _ROLES[kind], text, (), answers, speaker, time, media=media)
    parts = said.each("content") if said.at("content.0") is not None else ()
    calls = (tool_call(part, "id", "name", "arguments") for part in parts if part.at("type") == "toolCall")
    cost = dollars(said.at("usage.cost.total"), said.below("usage.cost.total"), problems)
    started, ttft = milliseconds(said, "timestamp"), said.typed("ttft", float)
    call = Call(
        model := said.text("responseModel|model"),
        said.text("provider"),
        usage(said.at("usage"), said.below("usage"), problems, cost),
        started,
        effort=effort,
        stop=said.text("stopReason"),
        request_id=said.text("responseId"),
        requested=other_than(model, said.text("model")),
        first_token=None if started is None or ttft is None else started + ttft / 1000,
        error=said.text("errorMessage"),
    )
    return Message(name, "assistant", text, tuple(calls), None, speaker, time, thinking, media=media, call=call)


def _bash_text(bash: Fields) -> str:
    """Return a command and its output in the words in which pi shows them to the model."""
    command, output, code = bash.needed("command", str), bash.typed("output", str), bash.typed("exitCode", int)
    parts = [f"Ran `{command}`\n" + (f"```\n{output}\n```" if output else "(no output)")]
    if bash.at("cancelled") is True:
        parts.append("(command cancelled)")
    elif code:
        parts.append(f"Command exited with code {code}")
    if bash.at("truncated") is True and (path := bash.text("fullOutputPath")):
        parts.append(f"[Output truncated. Full output: {path}]")
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
                    history = History(problems)
                    for at, raw in enumerate(recorded):
                        with problems.collect():
                            where = place.at(f"messages[{at}]")
                            _add_said(history, Fields(decoded_body(raw, where), where), f"m{at}", problems)
                    if history.messages:
                        yield place, history.conversation(numbered(name or path.stem, number))


def _add(histories: list[tuple[Place, list[bytes]]], history: list[bytes], place: Place) -> None:
    """Add the next history of a session, which mostly goes on with the one before it."""
    if histories:
        latest = histories[-1][1]
        if latest[: len(history)] == history:
            return
        if history[: len(latest)] == latest:
            histories.pop()
    histories.append((place, history))


def _add_said(history: History, said: Fields, name: str, problems: Problems) -> None:
    """Add a message of a history. The times are when they began, so that an answer has none."""
    time = None if said.at("role") == "assistant" else milliseconds(said, "timestamp")
    if said.at("role") == _SUMMARY:
        history.add(Message(name, "user", said.text("summary"), name=_SUMMARY, time=time), said.place)
    elif (message := _agent_message(said, name, time, "", problems)) is not None:
        history.add(message, said.place)
