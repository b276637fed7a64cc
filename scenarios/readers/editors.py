"""Chats that editors keep: Cursor's transcripts and exports, VS Code's chat sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import Place, RecordingError
from ..model import Call, Scalar
from ..source import Problems, as_text, decode, objects, records, whole_file
from . import LIST, OBJECT, UNNAMED, Fields, Reader, Recordings, as_object, text_of
from .messages import History, milliseconds
from .prompts import recorded_messages
from .requests import usage

_EXPORT = re.compile(rb"\A#[^\n]*\n(?:#[^\n]*\n)*_Exported on [^\n]* from Cursor \(([\d.]+)\)_\r?\n")
_SPEAKER = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n", re.MULTILINE)


class Cursor(Reader):
    """Cursor's agent transcripts, and chats that were exported as Markdown.

        {role, message: {content: [{type: "text", text} · {type: "tool_use", name, input}]}}     each line
        _Exported on … from Cursor (2.4.31)_, then behind each --- **User** or **Cursor**, and what it says

    Source: public programs that read `~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl` (undocumented),
    and public exports; tested on written examples alone. No results of tools, no usage, no models, no times. A line of
    the assistant is a call. An agent's file stands in `<id>/subagents/`: it has `meta["parent"]`.
    """

    about = "Cursor's agent transcripts (JSON Lines), exported chats (Markdown)"
    checked = "Cursor 3.15"
    shapes = (frozenset({".role", ".message", ".message.content", ".message.content[].type"}),)

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is an exported chat."""
        return path.suffix == ".md" and _EXPORT.match(head) is not None

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            history, meta = History(problems), dict[str, Scalar]()
            if path.parent.name == "subagents":
                meta["parent"] = path.resolve().parent.parent.name
            for logged, place in (_exported if path.suffix == ".md" else _transcript)(path, problems):
                _add(history, logged, place, "cursor", Call())
            if history.messages:
                yield Place(str(path)), history.conversation(UNNAMED, meta=meta)


def _add(
    history: History,
    logged: dict[str, Any],
    place: Place,
    form: str,
    call: Call | None = None,
    time: float | None = None,
) -> None:
    """Add a message in Anthropic's form, its tool results apart; an answer has the call."""
    with history.problems.collect():
        for message in recorded_messages(logged, place, history.problems, form, time, call):
            history.add(message, place)


def _exported(path: Path, problems: Problems) -> Iterator[tuple[dict[str, Any], Place]]:
    data = whole_file(path, problems)
    if version := _EXPORT.match(data):
        problems.written_by(version[1].decode(), Cursor.checked)
    _, *said = _SPEAKER.split(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    for who, text in zip(said[::2], said[1::2], strict=True):
        yield {"role": "user" if who == "User" else "assistant", "content": text.strip()}, Place(str(path))


def _transcript(path: Path, problems: Problems) -> Iterator[tuple[dict[str, Any], Place]]:
    number = 0
    for place, raw in objects(path, problems):
        with problems.collect():
            line = Fields(decode(raw, OBJECT, place), place)
            if line.at("role") is None and line.at("type") == "turn_ended":
                continue
            content: Any = line.needed("message.content", str | list[dict[str, Any]])  # type: ignore[arg-type]
            parts = [{"id": f"{number}c{n}", **one} for n, one in enumerate(content) if isinstance(one, dict)]
            number += 1
            yield {"role": line.needed("role", str), "content": parts or content}, place


class VsCodeChat(Reader):
    """VS Code's chat sessions, `chatSessions/<id>` of a workspace: changes on lines, or an object; exported chats.

        {sessionId, version, requests: [request]} · {kind: 0, v: session} · {kind: 1, k: [path], v} ·
          {kind: 2, k: [path], v: [what is added], i: what is kept} · {kind: 3, k: [path]}
        request: {requestId, timestamp, message: {text}, modelId, response: [{value} · {kind: "thinking", value} ·
          {kind: "toolInvocationSerialized", toolCallId, toolId, resultDetails: {input, output}}], result: {metadata:
          {toolCallRounds: [{response, thinking: {text}, toolCalls: [{id, name, arguments}]}], toolCallResults}}}

    Source: github.com/microsoft/vscode, `chat/common/model/chatModel.ts` and `objectMutationLog.ts`; tested on written
    examples alone. No system prompt and no tool schemas. Where Copilot's rounds are recorded, each is a call, else the
    parts up to a tool's result are one. Tokens are a request's: they are read where one call made it.
    """

    about = "VS Code chat sessions (JSON Lines of changes, JSON)"
    checked = "VS Code's chat sessions 3"
    shapes = (
        frozenset({".requests", ".requests[].message", ".requests[].response", ".requests[].requestId"}),
        frozenset({".kind", ".v", ".v.sessionId", ".v.requests"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            state: Any = {}
            for place, raw in records(path, problems):
                with problems.collect():
                    entry = Fields(decode(raw, OBJECT, place), place)
                    if entry.at("kind") is None:
                        entry.needed("requests", LIST)
                    state = entry.record if entry.at("kind") is None else _changed(state, entry)
            session, history = Fields(state, Place(str(path))), History(problems)
            with problems.collect():
                problems.written_by(as_text(session.at("version") or ""), self.checked)
                for request in session.each("requests"):
                    with problems.collect():
                        _add_request(history, request)
                if history.messages:
                    yield session.place, history.conversation(session.text("sessionId") or UNNAMED)


def _changed(state: Any, entry: Fields) -> Any:
    """Return the session after a change of its log. Raises RecordingError for one of nothing that is there."""
    value, held = entry.at("v"), state
    if entry.at("kind") == 0:
        return value
    try:
        *keys, last = entry.needed("k", LIST)
        for key in keys:
            held = held[key]
        if entry.at("kind") == 2:
            listed = held.setdefault(last, []) if isinstance(held, dict) else held[last]
            if entry.at("i") is not None:
                del listed[entry.at("i") :]
            listed.extend(value or [])
        else:
            held[last] = value
    except (LookupError, TypeError, ValueError, AttributeError):
        raise RecordingError(entry.below("k"), "a change of nothing that is there", "restore the line") from None
    return state


def _add_request(history: History, request: Fields) -> None:
    time, place, model = milliseconds(request, "timestamp"), request.place, request.text("modelId")
    answers = list(_rounds(request)) or list(_answers(request))
    counts = {"input_tokens": request.get("promptTokens|result.usage.promptTokens|result.metadata.promptTokens")}
    counts["output_tokens"] = request.get("completionTokens|result.usage.completionTokens|result.metadata.outputTokens")
    used = usage(counts, place, history.problems) if len(answers) == 1 and any(counts.values()) else None
    asked = {"role": "user", "content": request.text("message.text|message")}
    _add(history, asked, place, "vscode_chat", time=time)
    for at, (content, results, own) in enumerate(answers):
        name = request.text("result.metadata.resolvedModel") or (own or model).removeprefix("copilot/")
        call = Call(name, "copilot", used, request_id=f"{request.text('requestId')}/{at}")
        _add(history, {"role": "assistant", "content": content}, place, "vscode_chat", call)
        if results:
            _add(history, {"role": "user", "content": results}, place, "vscode_chat")


_Answer = tuple[list[dict[str, Any]], list[dict[str, Any]], str]  # content, results of tools, and the model's name


def _rounds(request: Fields) -> Iterator[_Answer]:
    """Yield the calls that Copilot made for a request."""
    told = as_object(request.at("result.metadata.toolCallResults"))
    for each in request.each("result.metadata.toolCallRounds"):
        said = {"thinking": each.text("thinking.text"), "text": each.text("response")}
        content: list[dict[str, Any]] = [{"type": kind, kind: text} for kind, text in said.items() if text]
        results = list[dict[str, Any]]()
        for call in each.each("toolCalls"):
            name = call.text("id")
            content.append({"type": "tool_use", "id": name, "name": call.text("name"), "input": call.at("arguments")})
            if name in told:
                output = _shown(as_object(told[name]).get("content"))
                results.append({"type": "tool_result", "tool_use_id": name, "content": output})
        yield content, results, each.text("modelId")


def _answers(request: Fields) -> Iterator[_Answer]:
    """Yield the answers that the parts of a response are; what only the screen shows is left out."""
    content, results = list[dict[str, Any]](), list[dict[str, Any]]()
    for part in request.each("response"):
        kind, said = part.text("kind"), _shown(part.get("value|content"))
        if results and said and kind in ("", "markdownContent", "thinking"):
            yield content, results, ""
            content, results = [], []
        if kind == "toolInvocationSerialized":
            name, asked = part.text("toolCallId"), part.get("resultDetails.input|toolSpecificData")
            content.append({"type": "tool_use", "id": name, "name": part.text("toolId"), "input": asked or {}})
            output = _shown(part.get("resultDetails.output|pastTenseMessage"))
            results.append({"type": "tool_result", "tool_use_id": name, "content": output})
        elif said and kind in ("", "markdownContent", "thinking"):
            key = "thinking" if kind == "thinking" else "text"
            if not content or key not in content[-1]:
                content.append({"type": key, key: ""})
            content[-1][key] += said  # pieces as they came
    if content:
        yield content, results, ""


def _shown(value: Any, depth: int = 50) -> str:
    """Return the texts in a value: a text, Markdown (`{value}`), or the tree of a prompt (`{node: {children}}`)."""
    if isinstance(value, dict):
        value = [text_of(value.get("text")), *(value.get(key) for key in ("value", "node", "children"))]
    return "".join(_shown(one, depth - 1) for one in value if depth) if isinstance(value, list) else text_of(value)
