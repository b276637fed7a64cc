"""OpenCode sessions: `opencode export`, a dump of its tables, or its storage folder (up to version 1.1).

    export    {info: session, messages: [{info: message, parts: [part]}]}
    tables    sessions.json, messages.json and parts.json in one folder, arrays of rows with the JSON text `data`
    storage   session/<project>/<session>.json · message/<session>/<message>.json · part/<message>/<part>.json

Source: github.com/sst/opencode, `packages/opencode/src/session`. The tables are tested on recorded ones, export and
storage on written examples. No tool schemas; a system prompt only where messages hold it (`system`).

- A part `step-finish` ends a call: its tokens are that call's. Older versions have several in a message. Tool parts
  hold call and result: the results become messages behind the answer.
- `input` leaves out what was read or written; `reasoning` is billed as output, beside it. Tokens that are all zero are
  no usage: the provider sent none.
- An answer with tools is complete when the last of them starts; the message's end is that of its tools.
- An answer with `summary` is a compaction: it stands for all messages before the request for it, which is no message.
- A session started by another has `meta["parent"]`. Parts of the screen (snapshots, patches, retries) are not sent, nor
  are texts that are `ignored`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Compaction, Conversation, Message, Scalar, ToolCall, Usage
from ..source import Problems, as_text, convert, decode, records, whole_file
from . import Reader, Recordings
from .fields import as_object
from .messages import History
from .requests import dollars, usage

_READ = ("text", "reasoning", "file", "tool", "step-finish")
_SCREEN = ("step-start", "snapshot", "patch", "retry", "agent", "compaction")


class _Span(msgspec.Struct):
    created: float | None = None
    completed: float | None = None
    start: float | None = None
    end: float | None = None


class _Session(msgspec.Struct):
    id: str
    parent_id: str | None = msgspec.field(default=None, name="parentID")
    version: str = ""


class _Info(msgspec.Struct):
    role: str
    time: _Span = msgspec.field(default_factory=_Span)
    model_id: str = msgspec.field(default="", name="modelID")
    provider_id: str = msgspec.field(default="", name="providerID")
    summary: Any = None
    finish: str | None = None
    system: list[str] | str | None = None
    error: dict[str, Any] | None = None


class _State(msgspec.Struct):
    status: str = ""
    input: Any = None
    output: str | None = None
    error: str | None = None
    time: _Span = msgspec.field(default_factory=_Span)


class _Part(msgspec.Struct):
    type: str
    text: str = ""
    ignored: bool = False
    mime: str = ""
    url: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    tool: str = ""
    state: _State | None = None
    tokens: dict[str, Any] | None = None
    cost: Any = None
    reason: str | None = None


class _Row(msgspec.Struct):
    id: str
    session_id: str | None = None
    message_id: str | None = None
    project_id: str | None = None
    parent_id: str | None = None
    version: str = ""
    seq: int | None = None
    data: str | dict[str, Any] | None = None


class _Exported(msgspec.Struct):
    info: Any
    parts: list[Any] = []


class _Export(msgspec.Struct):
    info: _Session
    messages: list[Any]


@dataclass(slots=True)
class _Recorded:
    """A message as it was stored: its info and parts, each with its place."""

    info: Any
    place: Place
    parts: list[tuple[Any, Place]] = field(default_factory=list)


class OpenCode(Reader):
    """Sessions of OpenCode."""

    about = "OpenCode sessions (export, tables, storage folder)"
    shapes = (
        frozenset({".info", ".info.id", ".messages", ".messages[].info", ".messages[].parts"}),
        frozenset({".id", ".projectID", ".directory", ".time", ".time.created"}),
        frozenset({"[].id", "[].project_id", "[].directory", "[].time_created"}),
        frozenset({"[].id", "[].session_id", "[].data", "[].time_created"}),
    )
    folder = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a message or a part in the storage folder: they are read with their session."""
        stored = path.parent.parent.name in ("message", "part") and path.name.startswith(("msg_", "prt_"))
        return stored and head.lstrip().startswith(b"{")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        tables = _Tables(problems)
        for path in files:
            if path.parent.parent.name in ("message", "part"):
                continue
            with problems.collect():
                for place, raw in records(path, problems):
                    with problems.collect():
                        keys = decode(raw, dict[str, msgspec.Raw], place).keys()
                        if "messages" in keys:
                            yield from _exported(decode(raw, _Export, place), place, problems)
                        elif "projectID" in keys:
                            yield from _stored(decode(raw, _Session, place), path, place, problems)
                        else:
                            tables.add(decode(raw, _Row, place), place)
        yield from tables.conversations()


def _exported(export: _Export, place: Place, problems: Problems) -> Recordings:
    messages = []
    for at, recorded in enumerate(export.messages):
        where = place.at(f"messages[{at}]")
        with problems.collect():
            message = convert(recorded, _Exported, where)
            parts = [(part, where.below(f"parts[{number}]")) for number, part in enumerate(message.parts)]
            messages.append(_Recorded(message.info, where.below("info"), parts))
    yield from _conversation(export.info, messages, place, problems)


def _stored(session: _Session, path: Path, place: Place, problems: Problems) -> Recordings:
    storage = path.parent.parent.parent
    messages = []
    for file in sorted((storage / "message" / Path(session.id).name).glob("*.json")):
        parts = sorted((storage / "part" / file.stem).glob("*.json"))
        for info in _whole(file, problems):
            given = [(part, Place(str(one), 1)) for one in parts for part in _whole(one, problems)]
            messages.append(_Recorded(info, Place(str(file), 1), given))
    yield from _conversation(session, messages, place, problems)


def _whole(path: Path, problems: Problems) -> Iterator[Any]:
    """Yield the value of a file; nothing if it cannot be read."""
    with problems.collect():
        yield decode(whole_file(path, problems), Any, Place(str(path), 1))


@dataclass(slots=True)
class _Tables:
    """Rows of OpenCode's tables."""

    problems: Problems
    _sessions: dict[str, tuple[_Session, Place]] = field(default_factory=dict)
    _messages: dict[str, dict[str, _Recorded]] = field(default_factory=dict)
    _parts: list[tuple[_Row, Any, Place]] = field(default_factory=list)

    def add(self, row: _Row, place: Place) -> None:
        """Add a row of any table. Raises RecordingError for data that is no JSON."""
        if row.project_id is not None:
            self._sessions[row.id] = _Session(row.id, row.parent_id, version=row.version), place
        elif row.seq is None and row.session_id is not None:  # rows with a number are what the screen shows
            data = decode(row.data.encode(), Any, place.at("data")) if isinstance(row.data, str) else row.data
            if row.message_id is not None:
                self._parts.append((row, data, place.at("data")))
            else:
                self._messages.setdefault(row.session_id, {})[row.id] = _Recorded(data, place.at("data"))

    def conversations(self) -> Recordings:
        """Yield the sessions, in the order of their ids."""
        for row, data, place in sorted(self._parts, key=lambda part: part[0].id):
            message = self._messages.get(row.session_id or "", {}).get(row.message_id or "")
            if message is None:
                what = f"a part of {row.message_id!r}, which is not among the messages"
                self.problems.add(RecordingError(place, what, "restore messages.json"))
            else:
                message.parts.append((data, place))
        for name, messages in sorted(self._messages.items()):
            first = next(iter(messages.values())).place
            session, place = self._sessions.get(name, (_Session(name), Place(first.file, first.line)))
            yield from _conversation(session, [messages[key] for key in sorted(messages)], place, self.problems)


def _conversation(session: _Session, recorded: Iterable[_Recorded], place: Place, problems: Problems) -> Recordings:
    history, compactions, system = History(problems), list[Compaction](), ""
    names = (f"m{number}" for number in count())
    for one in recorded:
        with problems.collect():
            info = convert(one.info, _Info, one.place)
            parts = list(_parts(one.parts, problems))
            if info.role == "user":
                if not any(part.type == "compaction" for part, _ in parts):  # else it asks for the summary behind it
                    history.add(_user(info, parts, next(names)), one.place)
            elif info.role != "assistant":
                raise RecordingError(one.place.below("role"), f"unknown role {info.role!r}", "use user, assistant")
            elif info.summary is True:
                compactions += _compaction(info, parts, history, problems)
            else:
                system = system or "\n".join([info.system] if isinstance(info.system, str) else info.system or ())
                for message in _answers(info, parts, names, problems):
                    history.add(message, one.place)
    if not history.messages:
        return
    meta: dict[str, Scalar] = {"version": session.version} if session.version else {}
    if session.parent_id:
        meta["parent"] = session.parent_id
    prompt = (Message("system", "system", system),) if system else ()
    messages = (*prompt, *history.in_order())
    yield place, Conversation(session.id, messages, compactions=tuple(compactions), meta=meta)


def _parts(recorded: Iterable[tuple[Any, Place]], problems: Problems) -> Iterator[tuple[_Part, Place]]:
    """Yield the parts of a message that are sent or tell of calls; those of another type are counted as unknown."""
    for value, place in recorded:
        try:
            part = convert(value, _Part, place)
        except RecordingError as error:
            problems.add(error)
            continue
        if part.type not in (*_SCREEN, *_READ):
            problems.unknown(f"opencode: part of type {part.type!r}", place)
        elif not part.ignored:
            yield part, place


def _user(info: _Info, parts: Sequence[tuple[_Part, Place]], name: str) -> Message:
    files = (media_of({"type": "file", "mime": part.mime, "url": part.url}) for part, _ in parts if part.type == "file")
    media = tuple(filter(None, files))
    return Message(name, "user", _text(parts), time=_seconds(info.time.created), media=media)


def _compaction(
    info: _Info, parts: Sequence[tuple[_Part, Place]], history: History, problems: Problems
) -> Iterator[Compaction]:
    """Yield the compaction that a summary is, if there is anything before it. Its call is no message."""
    used: Usage | None = None
    for part, where in parts:
        if used is None and part.tokens is not None:
            cost = dollars(part.cost, where.below("cost"), problems)
            used = usage(_counts(part.tokens), where.below("tokens"), problems, cost or None)
    if history.messages:
        time, before = _seconds(info.time.completed or info.time.created), used.input if used is not None else None
        call = Call(info.model_id, info.provider_id, used, _seconds(info.time.created))
        yield Compaction(history.last, _text(parts), tokens_before=before, time=time, call=call)


def _answers(
    info: _Info, parts: Sequence[tuple[_Part, Place]], names: Iterator[str], problems: Problems
) -> Iterator[Message]:
    """Yield the answers of a message, one a step, each with the results of its tools."""
    steps: list[list[tuple[_Part, Place]]] = [[]]
    for part, place in parts:
        steps[-1].append((part, place))
        if part.type == "step-finish":
            steps.append([])
    if len(steps) > 1 and not any(part.type in ("text", "reasoning", "tool") for part, _ in steps[-1]):
        del steps[-1]
    for at, step in enumerate(steps):
        tools = [(part, part.state or _State()) for part, _ in step if part.type == "tool"]
        finish = next((one for one in step if one[0].type == "step-finish"), None)
        used, stop = None, ""
        if finish is not None:
            part, where = finish
            cost = dollars(part.cost, where.below("cost"), problems)
            used, stop = usage(_counts(part.tokens), where.below("tokens"), problems, cost or None), part.reason or ""
        elif info.error is not None:
            stop = "error"
        started = _seconds(info.time.created) if at == 0 else None
        failure = {} if info.error is None or finish is not None else info.error
        error = as_text(as_object(failure.get("data")).get("message") or failure.get("name") or "")
        call = Call(info.model_id, info.provider_id, used, started, stop=stop, error=error)
        starts = [state.time.start for _, state in tools if state.time.start is not None]
        name = next(names)
        yield Message(
            name,
            "assistant",
            _text(step),
            tuple(
                ToolCall(part.call_id or f"{name}c{n}", part.tool, as_text(state.input or {}))
                for n, (part, state) in enumerate(tools)
            ),
            time=_seconds(max(starts, default=None) if tools else info.time.completed),
            thinking="\n".join(part.text for part, _ in step if part.type == "reasoning" and part.text),
            call=call,
        )
        for n, (part, state) in enumerate(tools):
            if state.status in ("completed", "error"):
                text = state.output if state.status == "completed" else state.error
                answers = part.call_id or f"{name}c{n}"
                time = _seconds(state.time.end)
                yield Message(next(names), "tool", text or "", answers=answers, name=part.tool, time=time)


def _counts(tokens: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the tokens of a step under the names of `usage`; None if all are zero: the provider sent none."""
    if tokens is None:
        return None
    cache = tokens.get("cache")
    read, written = (cache.get("read"), cache.get("write")) if isinstance(cache, dict) else (None, None)
    output, reasoning = tokens.get("output"), tokens.get("reasoning")
    if isinstance(output, int) and isinstance(reasoning, int) and reasoning > 0:
        output += reasoning
    counts = {"input": tokens.get("input"), "output": output, "cacheRead": read, "cacheWrite": written}
    counts["reasoning_tokens"] = reasoning
    return counts if any(counts.values()) else None


def _text(parts: Iterable[tuple[_Part, Place]]) -> str:
    return "\n".join(part.text for part, _ in parts if part.type == "text" and part.text)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
