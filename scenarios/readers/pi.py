"""Sessions of the pi coding agent, and what OpenClaw, which is built on it, writes of its own agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..errors import Place, RecordingError
from ..media import sized
from ..model import Call, Compaction, Conversation, Media, Message, Role, Scalar, Tool, ToolCall
from ..source import Problems, as_text, decode, objects
from . import LIST, OBJECT, Fields, Reader, Recordings
from .messages import History, Moment, decoded_body, joined, moment_seconds
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


class _Line(NamedTuple):
    """An entry of the file, and the number of its line, from 0."""

    number: int
    entry: Fields

    @property
    def id(self) -> str | None:
        return self.entry.at("id") or None

    @property
    def name(self) -> str:
        return self.id or f"e{self.number}"

    @property
    def time(self) -> float | None:
        return moment_seconds(self.entry.typed("timestamp", Moment))


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
            header = Fields({}, Place(str(path)))
            entries: list[_Line] = []
            for number, (place, raw) in enumerate(objects(path, problems)):
                with problems.collect():
                    entry = Fields(decoded_body(raw, place), place)
                    if _kind(entry) == "session":
                        header = entry
                    elif entry.at("type") != "title":
                        entries.append(_Line(number, entry))
            if entries:
                yield Place(str(path)), _conversation(path, header, entries, problems)


def _kind(entry: Fields) -> str:
    """Return the type of an entry. Raises RecordingError for one that cannot be read."""
    kind = entry.needed("type", str)
    for name in ("id", "parentId", "parentSession", "firstKeptEntryId", "summary"):
        entry.typed(name, str)
    entry.typed("timestamp", Moment)
    if kind == "message":
        entry.needed("message", OBJECT)
    return kind


def _conversation(path: Path, header: Fields, entries: list[_Line], problems: Problems) -> Conversation:
    branch = _branch(entries)
    history, level = History(problems), header.text("thinkingLevel")
    effort, compactions, tools = level, list[Compaction](), list[str]()
    for line in branch:
        entry, kind = line.entry, line.entry.at("type")
        if entry.at("message.role") == "user":  # a level that is set while the model works counts from here on
            effort = level
        with problems.collect():
            if kind == "thinking_level_change":
                level = entry.text("thinkingLevel")
            elif kind == "compaction" and history.messages:
                compactions.append(_compaction(line, branch, history))
            elif kind == "session_init":
                tools = entry.typed("tools", list[str]) or []
                told = entry.typed("systemPrompt", str | list[str]) or ""  # type: ignore[arg-type]
                prompt = told if isinstance(told, str) else "\n\n".join(told)
                if prompt and not any(message.text == prompt for message in history.messages):
                    history.add(Message(line.name, "system", prompt, time=line.time), entry.place)
            elif kind != "compaction" and (message := _message(line, effort, problems)) is not None:
                history.add(message, entry.below("message"))
    meta: dict[str, Scalar] = {"off_branch": len(entries) - len(branch)}
    if parent := header.text("branchedFrom|parentSession"):
        meta["parent"] = Path(parent).stem.rpartition("_")[2]
    offered = tuple(map(Tool, tools))
    name, messages = header.text("id") or path.stem, history.in_order()
    return Conversation(name, messages, tools=offered, compactions=tuple(compactions), meta=meta)


def _branch(entries: list[_Line]) -> list[_Line]:
    """Return the entries from the first to the last along `parentId`; all entries in files without parents."""
    position = {line.id: at for at, line in enumerate(entries)}
    branch = []
    at = len(entries) - 1
    while at >= 0:
        line, above = entries[at], entries[at].entry.at("parentId")
        branch.append(line)
        if line.id is not None and above is None:
            break
        parent = position.get(above, at) if line.id is not None else at
        # Upwards always, so that a circle of parents ends.
        at = parent if parent < at else at - 1
    return branch[::-1]


def _compaction(line: _Line, branch: list[_Line], history: History) -> Compaction:
    entry = line.entry
    lowest, first = entry.typed("firstKeptEntryIndex", int), entry.at("firstKeptEntryId")
    if first is not None:
        lowest = next((other.number for other in branch if other.id == first), None)
    names = {message.id for message in history.messages}
    kept = (later.name for later in branch if lowest is not None and later.number >= lowest and later.name in names)
    before = entry.typed("tokensBefore", int)
    return Compaction(history.last, entry.text("summary"), next(kept, None), before, line.time)


def _message(line: _Line, effort: str, problems: Problems) -> Message | None:
    """Return the entry as a message; None if the model never saw it."""
    entry, kind = line.entry, line.entry.at("type")
    if kind == "message":
        message = Fields(entry.at("message"), entry.below("message"))
        return agent_message(message, line.name, line.time, effort, problems)
    if kind == "custom_message":
        text, _, _, media = _parts(entry)
        return Message(line.name, "user", text, name=entry.text("customType"), time=line.time, media=media)
    if kind == "branch_summary" and entry.at("summary"):
        return Message(line.name, "user", entry.text("summary"), name=kind, time=line.time)
    if kind not in (*_NOT_SENT, "branch_summary"):
        problems.unknown(f"pi: entry of type {kind!r}", entry.place)
    return None


def agent_message(message: Fields, name: str, time: float | None, effort: str, problems: Problems) -> Message | None:
    """Return a message as pi holds it in memory in our form, with the id `name`; None if the model never saw it.

    Programs built on pi record such messages elsewhere as well.
    """
    kind = message.needed("role", str)
    if kind not in _ROLES:
        raise RecordingError(message.below("role"), f"unknown role {kind!r}", f"use {', '.join(_ROLES)}")
    if kind == "bashExecution":
        shown = not message.at("excludeFromContext")
        return Message(name, "user", _bash_text(message), time=time) if shown else None
    text, thinking, calls, media = _parts(message)
    answers = message.needed("toolCallId", str, blank=True) if kind == "toolResult" else None
    speaker, call = message.typed("toolName|customType", str) or "", None
    if kind == "assistant":
        call = _call(message, effort, problems)
    else:
        calls, thinking = (), ""
    return Message(name, _ROLES[kind], text, calls, answers, speaker, time, thinking, media=media, call=call)


def _parts(message: Fields) -> tuple[str, str, tuple[ToolCall, ...], tuple[Media, ...]]:
    """Return content as text, thinking, tool calls and media."""
    if isinstance(said := message.at("content"), str):
        return said, "", (), ()
    text, thinking, calls, media = [], [], list[ToolCall](), list[Media]()
    message.needed("content", LIST)
    for part in message.each("content"):
        match part.needed("type", str):
            case "text":
                text.append(part.needed("text", str, blank=True))
            case "thinking":
                thinking.append(part.typed("thinking", str) or "")
            case "image":
                media.append(sized("image", {"data": part.typed("data", str) or ""}))
            case "toolCall":
                name, tool = (part.needed(key, str, blank=True) for key in ("id", "name"))
                calls.append(ToolCall(name, tool, as_text(part.needed("arguments", object, blank=True))))
            case kind:
                raise RecordingError(
                    part.below("type"), f"invalid value {kind!r}", "correct it, or leave this record out"
                )
    return "\n".join(text), joined(thinking), tuple(calls), tuple(media)


def _call(message: Fields, effort: str, problems: Problems) -> Call:
    began, ttft = message.typed("timestamp", float), message.typed("ttft", float)
    started = None if began is None else began / 1000
    cost = dollars(message.at("usage.cost.total"), message.below("usage.cost.total"), problems)
    used, asked = usage(message.at("usage"), message.below("usage"), problems, cost), message.text("model")
    model = message.text("responseModel") or asked
    return Call(
        model,
        message.text("provider"),
        used,
        started,
        effort=effort,
        stop=message.text("stopReason"),
        request_id=message.text("responseId"),
        requested=other_than(model, asked),
        first_token=None if started is None or ttft is None else started + ttft / 1000,
        error=message.text("errorMessage"),
    )


def _bash_text(bash: Fields) -> str:
    """Return a command and its output in the words in which pi shows them to the model."""
    command, output = bash.needed("command", str, blank=True), bash.typed("output", str)
    parts = [f"Ran `{command}`\n" + (f"```\n{output}\n```" if output else "(no output)")]
    if bash.at("cancelled"):
        parts.append("(command cancelled)")
    elif code := bash.typed("exitCode", int):
        parts.append(f"Command exited with code {code}")
    if bash.at("truncated") and (path := bash.text("fullOutputPath")):
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
            said = Fields(decoded_body(raw, where), where)
            role, began = said.needed("role", str), said.typed("timestamp", float)
            time = None if began is None or role == "assistant" else began / 1000
            if role == _SUMMARY:
                history.add(Message(name, "user", said.text("summary"), name=_SUMMARY, time=time), where)
            elif (message := agent_message(said, name, time, "", problems)) is not None:
                history.add(message, where)
    return history.in_order()
