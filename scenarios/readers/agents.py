"""Sessions of coding agents that keep them as they go: Gemini CLI, Cline and Roo Code, goose, GitHub Copilot CLI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Compaction, Conversation, Media, Message, Scalar, ToolCall, Usage
from ..source import Problems, as_text, convert, decode, objects, records
from . import LIST, OBJECT, UNNAMED, Fields, Reader, Recordings, Session, SessionReader, as_object
from .messages import History, Moment, joined, moment_seconds, tool_call
from .prompts import recorded_messages
from .requests import dollars, usage


class GeminiCli(Reader):
    """Gemini CLI sessions, `~/.gemini/tmp/<project>/chats/session-<time>-<id>`: JSON Lines, up to 0.38 a JSON object.

        {sessionId, projectHash, kind: "main" | "subagent"} · message · {$set: {messages …}} · {$rewindTo: id}    .jsonl
        {sessionId, messages: [message]}                                                                          .json
        message: {id, timestamp, type, content, model, thoughts: [{subject, description}], tokens: {input, output,
          cached, thoughts, tool, total}, toolCalls: [{id, name, args, result, timestamp}]}

    Source: github.com/google-gemini/gemini-cli, `packages/core/src/services/chatRecordingService.ts`. The sessions have
    no system prompt, tool schemas or start times of calls.

    - A message of type `gemini` with tokens is a call. Its tool calls and their results stand in it; the results become
      messages of their own behind it.
    - `input` includes what was read from the cache; tokens of `tool` prompts come on top of it. Thoughts are billed as
      output, so our output is `output` + `thoughts`. Tokens that are all zero are no usage.
    - Messages of type `info`, `warning` and `error` are what the screen shows, and are not sent.
    - On lines, the last record of an id counts, in the place of the first. `$rewindTo` takes back a message and all
      behind it. `$set.messages` is the context that the model has from then on: where a summary stands there for
      answers, it is a compaction, and the history stays; else it is the history.
    - A subagent has its own file, `chats/<session>/<id>.jsonl`: it is `<session>/<id>`, with `meta["parent"]`.
    """

    about = "Gemini CLI sessions (JSON Lines, or one JSON object)"
    checked = "Gemini CLI 0.61"
    shapes = (
        frozenset({".sessionId", ".messages", ".messages[].type", ".messages[].timestamp", ".messages[].content"}),
        frozenset({".sessionId", ".projectHash", ".startTime", ".lastUpdated"}),
        frozenset({".id", ".timestamp", ".type", ".content", ".thoughts", ".tokens"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            sessions = list[_GeminiSession]()
            for place, raw in (objects if path.suffix == ".jsonl" else records)(path, problems):
                with problems.collect():
                    record = Fields(decode(raw, OBJECT, place), place)
                    name = record.text("sessionId")
                    if not sessions or record.at("messages") is not None or (name and name != sessions[-1].name):
                        sessions.append(_GeminiSession(problems, record, name))
                    sessions[-1].add(record)
            for session in sessions:
                with problems.collect():
                    if conversation := session.conversation(path):
                        yield session.head.place, conversation
                    else:
                        problems.ignored.append(f"{session.head.place}: a session without messages")


@dataclass(slots=True)
class _GeminiSession:
    """A session, to which the records of its file are added one by one."""

    problems: Problems
    head: Fields
    name: str
    messages: dict[str, Fields] = field(default_factory=dict)
    # By the message that it stands behind: the summary of a compaction, the first message kept, its time, its context.
    compactions: dict[str, tuple[str, str, float | None, set[str]]] = field(default_factory=dict)

    def add(self, record: Fields) -> None:
        """Add the next record. Raises RecordingError if it cannot be read."""
        if (target := record.typed("$rewindTo", str)) is not None:
            names = list(self.messages)
            for name in names[names.index(target) if target in names else 0 :]:  # as Gemini CLI itself does
                del self.messages[name]
        elif record.typed("$set", OBJECT) is not None:
            self._replace(record)
        elif record.at("sessionId") is None:
            self.messages[record.text("id") or f"#{len(self.messages)}"] = record
        elif record.at("messages") is not None:
            self.messages = {f"#{at}": message for at, message in enumerate(record.each("messages"))}

    def _replace(self, record: Fields) -> None:
        """Take the messages of `$set` for the history; for a compaction, if a summary stands there for answers."""
        context = {
            message.text("id"): message
            for message in record.each("$set.messages")
            if '"functionResponse"' not in as_text([message.at("content")])  # results stand in their calls
        }
        new = [message for name, message in context.items() if name not in self.messages]
        gone = any(self.messages[name].at("type") == "gemini" for name in self.messages.keys() - context.keys())
        if context and (not gone or any(message.get("tokens") for message in new)):
            self.messages = context
        elif new and all(new[0].text("id") not in told for *_, told in self.compactions.values()):
            kept = next((name for name in context if name in self.messages), "")
            summary = _gemini_text(new[0], "content", self.problems)[0]
            time = moment_seconds(record.typed("$set.lastUpdated", Moment))
            self.compactions[next(reversed(self.messages))] = summary, kept, time, set(context)

    def conversation(self, path: Path) -> Conversation | None:
        """Return the session; None if nothing was said in it."""
        history, first_of = History(self.problems), dict[str, str]()
        for name, message in self.messages.items():
            before = len(history.messages)
            with self.problems.collect():
                for one in _gemini_messages(message, self.problems):
                    history.add(one, message.place)
            if len(history.messages) > before:
                first_of[name] = history.messages[before].id
            if name in self.compactions and history.messages:
                summary, kept, time, _ = self.compactions[name]
                history.compact(summary, first_of.get(kept), time=time)
        if not history.messages:
            return None
        name, meta = self.name or path.stem, dict[str, Scalar]()
        if self.head.at("kind") == "subagent" and path.resolve().parent.name != "chats":
            meta["parent"] = path.resolve().parent.name
            name = f"{meta['parent']}/{name}"
        return history.conversation(name, meta=meta)


def _gemini_messages(message: Fields, problems: Problems) -> Iterator[Message]:
    """Yield the message, and the results of its tool calls; nothing for what only the screen shows."""
    kind, place, time = message.needed("type", str), message.place, moment_seconds(message.typed("timestamp", Moment))
    text, media = _gemini_text(message, "content", problems)
    if kind == "user":
        yield Message("", "user", text, time=time, media=media)
    elif kind == "gemini":
        tools = list(message.each("toolCalls"))
        calls = (tool_call(tool, "id", "name", "args") for tool in tools)
        told = message.typed("thoughts", list[dict[str, str]]) or ()
        thinking = "\n".join(f"{thought.get('subject', '')}\n{thought.get('description', '')}" for thought in told)
        call = Call(message.typed("model", str) or "", usage=_gemini_usage(message, problems))
        yield Message("", "assistant", text, tuple(calls), time=time, thinking=thinking, media=media, call=call)
        for tool in tools:
            if tool.at("result") is not None:
                text, media = _gemini_text(tool, "result", problems)
                time = moment_seconds(tool.typed("timestamp", Moment))
                yield Message("", "tool", text, (), tool.at("id"), tool.at("name"), time, media=media)
    elif kind not in ("info", "warning", "error"):  # what only the screen shows
        problems.unknown(f"gemini_cli: message of type {kind!r}", place)


def _gemini_text(holder: Fields, name: str, problems: Problems) -> tuple[str, tuple[Media, ...]]:
    """Return contents of Google's API (ai.google.dev/api/caching#Content) as text and media, without thoughts.

    {"text"} · {"text", "thought": true} · {"inlineData"} · {"fileData"} · {"functionCall": {"name", "args", "id"}} ·
    {"functionResponse": {"name", "response", "id"}}
    """
    content, said, media = holder.at(name), list[str](), list[Media]()
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict):
            said += [convert(part, str, holder.below(name))] if part else []
            continue
        fields = Fields(part, holder.below(name))
        if (text := fields.typed("text", str)) is not None:
            said += [] if fields.at("thought") is True else [text]
        elif fields.typed("functionResponse", OBJECT) is not None:
            response = fields.typed("functionResponse.response", OBJECT) or {}
            shown = response.get("output", response.get("error"))
            said.append(shown if isinstance(shown, str) else as_text(response))
        elif (medium := media_of(part)) is not None:
            media.append(medium)
        elif fields.at("functionCall") is None and fields.at("thoughtSignature") is None:
            problems.unknown("gemini: part without a text, a call, a result or a file", fields.place)
    return "\n".join(said), tuple(media)


def _gemini_usage(message: Fields, problems: Problems) -> Usage | None:
    with problems.collect():
        fields = Fields(message.typed("tokens", OBJECT), message.below("tokens"))
        counts = (fields.typed(name, int) for name in ("input", "output", "cached", "thoughts", "tool"))
        prompt, output, cached, thoughts, tool = counts
        # `input` includes what was cached, but not the prompts of Gemini's own tools, nor `output` the thoughts.
        used = Usage((prompt or 0) + (tool or 0), (output or 0) + (thoughts or 0), cached or 0, reasoning=thoughts)
        return used if any((used.input, used.output, used.cache_read)) else None
    return None


_HISTORY, _SCREEN = "api_conversation_history.json", "ui_messages.json"
_MAIN = "lead"


class Cline(Reader):
    """Cline sessions, and the task folders of Cline and Roo Code.

    A session of Cline's SDK (2026), `<session>.messages.json`:

        {sessionId, agent, system_prompt, messages: [{id, role, content: text | [blocks], ts, modelInfo: {id, provider},
          metrics: {inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cost}, metadata: {kind}}]}

    A task's folder, `tasks/<id>/`: `api_conversation_history.json`, a list of such messages without metrics, and
    `ui_messages.json`, the screen, with a row `say: "api_req_started"` for each request: a JSON text with tokensIn,
    tokensOut, cacheWrites, cacheReads, cost.

    Sources: github.com/cline/cline, `sdk/packages/core`; github.com/RooCodeInc/Roo-Code, `src/core/task-persistence`
    (the folders are read by its code, on written examples: no recorded one was at hand). Blocks are those of Anthropic,
    and `file`, which is read with its path. No tool schemas and no starts of calls; the folders have no system prompt,
    and no model where messages have no `modelInfo`. Times are milliseconds.

    - `inputTokens` is the whole prompt. `tokensIn` is it only where a row says `apiProtocol: "openai"`; else what was
      read and written comes on top.
    - The rows of a folder belong to the answers that follow them in time, the last one to each. Where messages have no
      times, they are counted off from the last, if there are as many.
    - A compaction of the SDK leaves a notice in the first message it keeps, `metadata.kind: "compaction"`, and takes
      the metrics of those it keeps. A summary in the middle (`compaction_summary`, Roo's `isSummary`) is a compaction;
      at the start of a file it is a message.
    """

    about = "Cline sessions, and task folders of Cline and Roo Code"
    shapes = (frozenset({".sessionId", ".messages", ".messages[].role", ".messages[].content", ".system_prompt"}),)
    folder = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is one of a task's folder."""
        return path.name in (_HISTORY, _SCREEN) and head.lstrip().startswith(b"[")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        screen = next((path for path in files if path.name == _SCREEN), None)
        for path in files:
            with problems.collect():
                if path.name == _HISTORY:
                    yield from _cline_task(path, screen, problems)
                elif path.name != _SCREEN:
                    yield from _cline_sessions(path, problems)


def _cline_sessions(path: Path, problems: Problems) -> Recordings:
    for place, raw in records(path, problems):
        with problems.collect():
            session = Fields(decode(raw, OBJECT, place), place)
            session.needed("messages", LIST)
            name, meta = session.needed("sessionId", str), dict[str, Scalar]()
            if (agent := session.typed("agent", str) or "") not in ("", _MAIN):
                meta["parent"], name = name, f"{name}/{agent}"
            prompt = session.typed("system_prompt", str) or ""
            history = _cline_history(session.each("messages"), [], problems)
            if history.messages:
                yield place, history.conversation(name, prompt, meta=meta)


def _cline_task(path: Path, screen: Path | None, problems: Problems) -> Recordings:
    turns, place = list[Fields](), Place(str(path), 1)
    for _, raw in records(path, problems):
        with problems.collect():
            where = place.at(f"[{len(turns)}]")
            turns.append(Fields(decode(raw, OBJECT, where), where))
    requests = [] if screen is None else list(_cline_requests(screen, problems))
    history = _cline_history(turns, requests, problems)
    if history.messages:
        yield place, history.conversation(path.resolve().parent.name)


def _cline_requests(path: Path, problems: Problems) -> Iterator[tuple[float | None, Usage | None]]:
    """Yield the time and usage of every request that the screen of a task shows."""
    with problems.collect():  # the messages are read without it
        for place, raw in records(path, problems):
            with problems.collect():
                row = Fields(decode(raw, OBJECT, place), place)
                time = row.typed("ts", float)
                if row.at("say") != "api_req_started" or not row.text("text"):
                    continue
                where = place.below("text")
                request = Fields(decode(row.text("text").encode(), OBJECT, where), where)
                if request.at("cancelReason") is None:
                    cost = dollars(request.at("cost"), where.below("cost"), problems)
                    counts = {name: request.at(name) for name in ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")}
                    whole = request.at("apiProtocol") == "openai"
                    yield time, usage(counts, where, problems, cost, whole_prompt=whole)


def _cline_history(
    turns: Iterable[Fields], requests: Sequence[tuple[float | None, Usage | None]], problems: Problems
) -> History:
    """Return the messages of a session and its compactions."""
    history, sound = History(problems), list[Fields]()
    notice: Compaction | None = None
    for turn in turns:
        with problems.collect():
            turn.needed("role", str)
            turn.typed("ts", float)
            if turn.at("content") != "":
                turn.needed("content", str | list[dict[str, Any]])  # type: ignore[arg-type]
            sound.append(turn)
    reported = _reported([turn.at("ts") for turn in sound if turn.at("role") == "assistant"], requests)
    for turn in sound:
        with problems.collect():
            used = reported.pop(0) if turn.at("role") == "assistant" else None
            first, kind = len(history.messages), turn.at("metadata.kind")
            for message in _cline_converted(turn, used, problems):
                history.add(message, turn.place)
            added = history.messages[first:]
            if (turn.at("isSummary") or kind == "compaction_summary") and first and added:
                del history.messages[first:]
                summary, before = "\n".join(message.text for message in added), turn.typed("metadata.tokensBefore", int)
                history.compact(summary, tokens_before=before, time=added[0].time)
            elif kind == "compaction" and added:
                said = turn.at("content")
                blocks = [{"type": "text", "text": said}] if isinstance(said, str) else said
                told = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
                notice = Compaction(added[-1].id, (told or [""])[-1], added[0].id)
            elif turn.at("metadata.compaction") == "preserved" and notice is not None:
                notice = replace(notice, after=history.last)
    history.compactions += [] if notice is None else [notice]
    return history


def _reported(
    times: Sequence[float | None], requests: Sequence[tuple[float | None, Usage | None]]
) -> list[Usage | None]:
    """Return the usage of each answer, of the requests that a screen shows."""
    if None in times:
        same = len(times) == len(requests)
        return [used for _, used in requests] if same else [None] * len(times)
    rest, given = list(requests), list[Usage | None]()
    for time in times:
        before = [used for began, used in rest if began is not None and began <= (time or 0)]
        given.append(before[-1] if before else None)
        del rest[: len(before)]
    return given


def _cline_converted(turn: Fields, used: Usage | None, problems: Problems) -> Iterator[Message]:
    """Yield a message of Cline's in our form, its tool results apart."""
    milliseconds, content = turn.at("ts"), turn.at("content")
    time = milliseconds / 1000 if milliseconds else None
    blocks = content if isinstance(content, str) else list(map(_cline_block, content))
    if (role := turn.at("role")) in ("user", "system", "developer"):
        yield from recorded_messages({"role": role, "content": blocks}, turn.place, problems, "cline", time)
    elif turn.at("role") == "assistant":
        if (metrics := turn.typed("metrics", OBJECT)) is not None:
            cost = dollars(metrics.get("cost"), turn.below("metrics.cost"), problems)
            used = usage(metrics, turn.below("metrics"), problems, cost, whole_prompt=True)
        model = turn.text("modelInfo.id|modelInfo.modelId")
        provider = turn.text("modelInfo.provider|modelInfo.providerId")
        logged, call = {"role": "assistant", "content": blocks}, Call(model, provider, used)
        message, *results = recorded_messages(logged, turn.place, problems, "cline", time, call)
        yield from (replace(message, thinking=message.thinking or turn.text("reasoning_content")), *results)
    else:
        raise RecordingError(turn.below("role"), f"unknown role {turn.at('role')!r}", "use user, assistant")


def _cline_block(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block in Anthropic's form: a file as text, a result of several parts as JSON."""
    inner = block.get("content")
    if block.get("type") == "file":
        return {"type": "text", "text": f"{block.get('path', '')}\n{inner if isinstance(inner, str) else ''}"}
    if isinstance(inner, list) and any(isinstance(part, dict) and "type" not in part for part in inner):
        return {**block, "content": as_text(inner)}
    return block


_UNSENT_GOOSE = (
    *("toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted", "redactedThinking"),
    *("summarizationRequested", "contextLengthExceeded"),
)


class Goose(SessionReader):
    """goose sessions: JSON Lines (`~/.local/share/goose/sessions/<id>.jsonl`, up to version 1.9), or an export as JSON.

        {working_dir, description, accumulated_input_tokens …}   the first line, then a message a line
        {id, name, working_dir, conversation: [messages]}        `goose session export --format json`

        message: {role, created, content: [{type: "text" | "image" | "thinking"} ·
          {type: "toolRequest", id, toolCall: {status, value: {name, arguments}}} ·
          {type: "toolResponse", id, toolResult: {status, value: [blocks] | {content: [blocks]}, error}}],
          metadata: {userVisible, agentVisible}}

    Source: github.com/block/goose, `crates/goose/src/conversation/message.rs`, by its code; tested on written examples
    alone. There are no models, no tool schemas, no system prompt and no usage of single calls: totals are in `meta`.
    Times are whole seconds.

    - Messages that the agent alone sees, behind some that it sees no more, are the summary of a compaction; the
      messages before them stay in the history.
    - A tool's error is its result. Requests for confirmation and notices are not sent.
    """

    checked = "goose 1.9"
    about = "goose sessions (JSON Lines, exported JSON)"
    shapes = (frozenset({".working_dir", ".conversation", ".conversation[].role", ".conversation[].content[].type"}),)

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is JSON Lines with goose's first line, which no message resembles."""
        first, _, rest = head.partition(b"\n")
        about = first.startswith(b"{") and b'"working_dir"' in first and b'"role"' not in first
        return path.suffix == ".jsonl" and about and b'"created"' in rest and b'"role"' in rest

    each_record = staticmethod(records)

    def session(self, problems: Problems) -> Session:
        return _GooseSession(History(problems))


@dataclass(slots=True)
class _GooseSession:
    """A session, to which its messages are added one by one."""

    history: History
    _name: str = UNNAMED
    _meta: dict[str, Scalar] = field(default_factory=dict)
    _names: count[int] = field(default_factory=count)
    _hidden: bool = False
    _ended: bool = True  # whether the next message for the agent alone begins another compaction

    def add(self, record: Fields) -> None:
        """Add the next message, or the head of the session, which may hold all messages."""
        if record.at("role") is not None:
            self._say(record)
            return
        self._name = record.text("id") or self._name
        for total in ("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_total_tokens"):
            if isinstance(record.at(total), int) and record.at(total):
                self._meta[total] = record.at(total)
        for message in record.each("conversation"):
            with self.history.problems.collect():
                self._say(message)

    def _say(self, recorded: Fields) -> None:
        role, time, messages = recorded.needed("role", str), recorded.typed("created", float), list[Message]()
        if role not in ("user", "assistant", "system", "developer"):
            raise RecordingError(recorded.place.below("role"), f"unknown role {role!r}", "use user, assistant, system")
        recorded.needed("content", LIST)
        if parts := list(_goose_parts(recorded, self.history.problems)):
            logged = {"role": role, "content": parts}
            for one in recorded_messages(logged, recorded.place, self.history.problems, "goose", time, Call()):
                messages.append(replace(one, id=f"m{next(self._names)}"))
        agent_sees, user_sees = (recorded.at(f"metadata.{who}Visible") is not False for who in ("agent", "user"))
        if agent_sees and not user_sees and self._hidden:
            summary, compactions = joined(one.text for one in messages), self.history.compactions
            if self._ended and self.history.messages:
                self.history.compact(summary, time=time)
            elif compactions and summary:
                compactions[-1] = replace(compactions[-1], summary=joined((compactions[-1].summary, summary)))
            self._ended = False
            return
        self._hidden, self._ended = self._hidden or not agent_sees, True
        for one in messages:
            self.history.add(one, recorded.place)

    def conversations(self, path: Path) -> Recordings:
        """Yield the session, if anything was said in it."""
        if self.history.messages:
            yield Place(str(path)), self.history.conversation(self._name, meta=self._meta)


def _goose_parts(message: Fields, problems: Problems) -> Iterator[dict[str, Any]]:
    """Yield the parts of a message in Anthropic's form."""
    for part in message.each("content"):
        match part.needed("type", str):
            case "text" | "thinking" | "image":
                yield part.record
            case "toolRequest" | "frontendToolRequest":
                if part.at("toolCall.status") == "success":
                    name, arguments = part.needed("toolCall.value.name", str), part.at("toolCall.value.arguments")
                    yield {"type": "tool_use", "id": part.text("id"), "name": name, "input": arguments or {}}
            case "toolResponse":
                told = part.typed("toolResult.error", str) or part.get("toolResult.value.content|toolResult.value")
                yield {"type": "tool_result", "tool_use_id": part.text("id"), "content": told}
            case kind if kind not in _UNSENT_GOOSE:
                problems.unknown(f"goose: content of type {kind!r}", part.place)


_UNSENT_COPILOT = ("hook.", "permission.", "session.", "assistant.", "tool.", "subagent.", "skill.")


class _Row(msgspec.Struct):
    type: str
    data: dict[str, Any]
    timestamp: Moment


class CopilotCli(SessionReader):
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
    checked = "GitHub Copilot CLI 1.0"
    shapes = (frozenset({".type", ".data", ".id", ".parentId", ".timestamp"}),)

    record_type = _Row

    def session(self, problems: Problems) -> Session:
        return _Events(problems)


@dataclass(slots=True)
class _Events:
    """A session, to which its rows are added one by one."""

    problems: Problems
    name: str = ""
    version: str = ""
    effort: str = ""
    # By the tool call that started the agent; "" = the session's own.
    _histories: dict[str, History] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)
    _prompts: dict[str, str] = field(default_factory=dict)
    # Place of each call's message in its history.
    _answers: dict[tuple[str, str], int] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _number: int = 0

    def add(self, record: Fields) -> None:
        """Add the next row. Raises RecordingError if it cannot be read."""
        kind, time = record.record.type, record.record.timestamp.timestamp()
        data = Fields(record.record.data, record.place.at("data"))
        match kind:
            case "session.start" | "session.resume":
                self.name, self.version = data.text("sessionId"), data.text("copilotVersion")
                self.problems.written_by(self.version, CopilotCli.checked)
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
            case _ if not kind.startswith(_UNSENT_COPILOT):
                self.problems.unknown(f"copilot_cli: row of type {kind!r}", record.place)

    def conversations(self, path: Path) -> Recordings:
        """Yield the session's conversation, and those of the agents that it started."""
        name = self.name or (path.parent.name if path.stem == "events" else path.stem)
        meta: dict[str, Scalar] = {"version": self.version} if self.version else {}
        for agent, history in self._histories.items():
            full = f"{name}/{self._agents.get(agent) or agent}" if agent else name
            if history.messages:
                yield Place(str(path)), history.conversation(full, meta=meta | ({"parent": name} if agent else {}))

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
        for request in data.each("toolRequests"):
            called, arguments = request.needed("toolCallId", str), request.at("arguments") or {}
            calls.append(ToolCall(called, request.needed("name", str), as_text(arguments)))
            if isinstance(arguments, dict) and isinstance(arguments.get("prompt"), str):
                self._prompts[called] = arguments["prompt"]
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
        hidden, before = "" if summary else "it is not recorded", data.typed("preCompactionTokens", int)
        history.compact(summary, tokens_before=before, time=time, hidden=hidden, call=call if counts else None)
