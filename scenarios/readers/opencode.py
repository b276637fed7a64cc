"""Sessions of OpenCode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from ..errors import Place, RecordingError
from ..media import media_of
from ..model import Call, Message, Scalar, ToolCall, Usage
from ..source import Problems, as_text, decode, file_head, records, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings
from .messages import History, joined, milliseconds
from .requests import dollars, usage
from .stored_chats import has_tables, rows

_BESIDE = ("-wal", "-shm")  # files beside a database, which are read with it
_READ = ("text", "reasoning", "file", "tool", "step-finish")
_SCREEN = ("step-start", "snapshot", "patch", "retry", "agent", "compaction", "subtask")


@dataclass(slots=True)
class _Recorded:
    """A message as it was stored: its id, info and parts."""

    name: str
    info: Fields
    parts: list[Fields] = field(default_factory=list)


class OpenCode(Reader):
    """OpenCode sessions: its database (from version 1.2 on), `opencode export`, a dump of tables, its storage folder.

        database  ~/.local/share/opencode/opencode.db, SQLite: session, message, part with the JSON text `data`
        export    {info: session, messages: [{info: message, parts: [part]}]}
        tables    sessions.json, messages.json and parts.json in one folder, arrays of rows with the JSON text `data`
        storage   session/<project>/<session>.json · message/<session>/<message>.json · part/<message>/<part>.json

    Source: github.com/sst/opencode, `packages/opencode/src/session`. The tables are tested on recorded ones, the
    others on written examples. No tool schemas; a system prompt only where messages hold it (`system`).

    - A part `step-finish` ends a call: its tokens are that call's. Older versions have several in a message. Tool parts
      hold call and result: the results become messages behind the answer.
    - `input` leaves out what was read or written; `reasoning` is billed as output, beside it. Tokens that are all zero
      are no usage: the provider sent none.
    - An answer with tools is complete when the last of them starts; the message's end is that of its tools.
    - An answer with `summary` is a compaction: it stands for all messages before the request for it, which is no
      message, or for those before its `tail_start_id`.
    - A fork stands in the store of its origin, without its name: calls alike in time, answer and usage count once.
    - A session started by another has `meta["parent"]`. Parts of the screen (snapshots, patches, retries) are not sent,
      nor are texts that are `ignored`.
    """

    about = "OpenCode sessions (database, export, tables, storage folder)"
    checked = "OpenCode 1.17"
    shapes = (
        frozenset({".info", ".info.id", ".messages", ".messages[].info", ".messages[].parts"}),
        frozenset({".id", ".projectID", ".directory", ".time", ".time.created"}),
        frozenset({"[].id", "[].project_id", "[].directory", "[].time_created"}),
        frozenset({"[].id", "[].session_id", "[].data", "[].time_created"}),
    )
    folder = True

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Return whether a file is a database, or a message or part in the storage folder, read with its session."""
        if has_tables(head):  # the tables of a large one may be anywhere in it
            return has_tables(head, "session", "message", "part") or path.name.startswith("opencode")
        if path.name.startswith("opencode") and path.name.endswith(_BESIDE):
            return True
        stored = path.parent.parent.name in ("message", "part") and path.name.startswith(("msg_", "prt_"))
        return stored and head.lstrip().startswith(b"{")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        tables = _Tables(problems)
        for path in files:
            if path.parent.parent.name in ("message", "part") or path.name.endswith(_BESIDE):
                continue
            with problems.collect():
                if has_tables(file_head(path, 16)):
                    yield from _database(path, problems)
                    continue
                for place, raw in records(path, problems):
                    with problems.collect():
                        record = Fields(decode(raw, OBJECT, place), place)
                        if record.at("messages") is not None:
                            session = Fields(record.needed("info", OBJECT), place.at("info"))
                            yield from _conversation(session, _exported(record, problems), place, problems)
                        elif record.at("projectID") is not None:
                            yield from _conversation(record, _stored(record, path, problems), place, problems)
                        else:
                            tables.add(record)
        yield from tables.conversations()


def _exported(record: Fields, problems: Problems) -> Iterator[_Recorded]:
    record.needed("messages", LIST)
    for message in record.each("messages"):
        with problems.collect():
            info = Fields(message.needed("info", OBJECT), message.below("info"))
            yield _Recorded(info.text("id"), info, list(message.each("parts")))


_QUERY = """SELECT message.session_id, session.parent_id, session.version, message.id, message.data, part.data
FROM message LEFT JOIN part ON part.message_id = message.id LEFT JOIN session ON session.id = message.session_id
ORDER BY message.session_id, message.time_created, message.id, part.id"""


def _database(path: Path, problems: Problems) -> Recordings:
    for name, stored in groupby(rows(path, _QUERY, problems), key=lambda row: row[1][0]):
        session, recorded, latest = Fields({"id": name}, Place(str(path))), list[_Recorded](), None
        for place, (_, parent, version, message, data, part) in stored:
            with problems.collect():
                if message != latest:
                    latest, parts = message, list[Fields]()
                    session = Fields({"id": name, "parent_id": parent, "version": version}, session.place)
                    recorded.append(_Recorded(message, _data(data, place.at("message.data")), parts))
                if part is not None:
                    parts.append(_data(part, place.at("part.data")))
        yield from _conversation(session, recorded, session.place, problems)


def _data(text: Any, place: Place) -> Fields:
    return Fields(decode(text.encode(), Any, place) if isinstance(text, str) else text, place)


def _stored(session: Fields, path: Path, problems: Problems) -> Iterator[_Recorded]:
    storage = path.parent.parent.parent
    for file in sorted((storage / "message" / Path(session.needed("id", str)).name).glob("*.json")):
        for info in _whole(file, problems):
            parts = sorted((storage / "part" / file.stem).glob("*.json"))
            yield _Recorded(info.text("id"), info, [part for one in parts for part in _whole(one, problems)])


def _whole(path: Path, problems: Problems) -> Iterator[Fields]:
    """Yield the value of a file; nothing if it cannot be read."""
    with problems.collect():
        place = Place(str(path), 1)
        yield Fields(decode(whole_file(path, problems), Any, place), place)


@dataclass(slots=True)
class _Tables:
    """Rows of OpenCode's tables."""

    problems: Problems
    _sessions: dict[str, Fields] = field(default_factory=dict)
    _messages: dict[str, dict[str, _Recorded]] = field(default_factory=dict)
    _parts: list[tuple[str, str, str, Fields]] = field(default_factory=list)

    def add(self, row: Fields) -> None:
        """Add a row of any table. Raises RecordingError for data that is no JSON."""
        name, session, message = row.needed("id", str), row.typed("session_id", str), row.typed("message_id", str)
        if row.at("project_id") is not None:
            self._sessions[name] = row
        elif row.at("seq") is None and session is not None:  # rows with a number are what the screen shows
            data = _data(row.at("data"), row.place.at("data"))
            if message is not None:
                self._parts.append((name, session, message, data))
            else:
                self._messages.setdefault(session, {})[name] = _Recorded(name, data)

    def conversations(self) -> Recordings:
        """Yield the sessions, in the order of their ids."""
        for _, session, name, data in sorted(self._parts, key=lambda part: part[0]):
            message = self._messages.get(session, {}).get(name)
            if message is None:
                what = f"a part of {name!r}, which is not among the messages"
                self.problems.add(RecordingError(data.place, what, "restore messages.json"))
            else:
                message.parts.append(data)
        for session, messages in sorted(self._messages.items()):
            first = next(iter(messages.values())).info.place
            row = self._sessions.get(session) or Fields({"id": session}, Place(first.file, first.line))
            yield from _conversation(row, (messages[key] for key in sorted(messages)), row.place, self.problems)


def _conversation(session: Fields, recorded: Iterable[_Recorded], place: Place, problems: Problems) -> Recordings:
    history, first_of, system, tail = History(problems), dict[str, str](), "", ""
    for one in recorded:
        with problems.collect():
            info, role, before = one.info, one.info.needed("role", str), len(history.messages)
            parts = list(_parts(one.parts, problems))
            tail = next((part.text("tail_start_id") for part in parts if part.at("type") == "compaction"), tail)
            if role == "user":
                if not any(part.at("type") == "compaction" for part in parts):  # else it asks for the summary behind it
                    shared = (part for part in parts if part.at("type") == "file")
                    files = ({"type": "file", "mime": part.text("mime"), "url": part.text("url")} for part in shared)
                    media, time = tuple(filter(None, map(media_of, files))), milliseconds(info, "time.created")
                    history.add(Message("", "user", _text(parts), time=time, media=media), info.place)
            elif role in ("system", "developer"):
                history.add(Message("", "system", _text(parts), time=milliseconds(info, "time.created")), info.place)
            elif role != "assistant":
                raise RecordingError(info.place.below("role"), f"unknown role {role!r}", "use user, assistant")
            elif info.at("summary") is True:
                told = (_usage(part, problems) for part in parts if part.at("tokens") is not None)
                used = next(filter(None, told), None)
                if history.messages:  # its call is no message
                    time, started = (
                        milliseconds(info, "time.completed|time.created"),
                        milliseconds(info, "time.created"),
                    )
                    call = Call(info.text("modelID"), info.text("providerID"), used, started)
                    tokens, kept = None if used is None else used.input, first_of.get(tail)
                    history.compact(_text(parts), kept, tokens_before=tokens, time=time, call=call)
            else:
                prompt = info.typed("system", str | list[str]) or ""  # type: ignore[arg-type]
                system = system or (prompt if isinstance(prompt, str) else "\n".join(prompt))
                for message in _answers(info, parts, history, problems):
                    history.add(message, info.place)
            if one.name and len(history.messages) > before:
                first_of[one.name] = history.messages[before].id
    if not history.messages:
        return
    problems.written_by(version := session.text("version"), OpenCode.checked)
    meta: dict[str, Scalar] = {"version": version} if version else {}
    meta |= {"parent": parent} if (parent := session.text("parentID|parent_id")) else {}
    yield place, history.conversation(session.needed("id", str), system, meta=meta)


def _parts(recorded: Iterable[Fields], problems: Problems) -> Iterator[Fields]:
    """Yield the parts of a message that are sent or tell of calls; those of another type are counted as unknown."""
    for part in recorded:
        with problems.collect():
            kind = part.needed("type", str)
            if kind not in (*_SCREEN, *_READ):
                problems.unknown(f"opencode: part of type {kind!r}", part.place)
            elif part.at("ignored") is not True:
                part.typed("text", str)  # a bad text costs the part, not its message
                yield part


def _answers(info: Fields, parts: Sequence[Fields], history: History, problems: Problems) -> Iterator[Message]:
    """Yield the answers of a message, one a step, each with the results of its tools."""
    steps: list[list[Fields]] = [[]]
    for part in parts:
        steps[-1].append(part)
        if part.at("type") == "step-finish":
            steps.append([])
    if len(steps) > 1 and not any(part.at("type") in ("text", "reasoning", "tool") for part in steps[-1]):
        del steps[-1]
    for at, step in enumerate(steps):
        name, calls, results = history.next, list[ToolCall](), list[tuple[str, Fields]]()
        for part in (part for part in step if part.at("type") == "tool"):
            called, tool = part.text("callID") or f"{name}c{len(calls)}", part.text("tool")
            calls.append(ToolCall(called, tool, as_text(part.at("state.input") or {})))
            results.append((called, part))
        finish = next((part for part in step if part.at("type") == "step-finish"), None)
        paid = info if finish is None and len(steps) == 1 and info.at("tokens") is not None else finish
        failed = finish is None and info.at("error") is not None
        starts = [milliseconds(part, "state.time.start") for _, part in results]
        yield Message(
            name,
            "assistant",
            _text(step),
            tuple(calls),
            time=max((start for start in starts if start is not None), default=None)
            if calls
            else milliseconds(info, "time.completed"),
            thinking=joined(part.typed("text", str) or "" for part in step if part.at("type") == "reasoning"),
            call=Call(
                info.text("modelID"),
                info.text("providerID"),
                None if paid is None else _usage(paid, problems),
                milliseconds(info, "time.created") if at == 0 else None,
                stop="error" if failed else "" if finish is None else finish.text("reason"),
                error=as_text(info.get("error.data.message|error.name") or "") if failed else "",
                request_id=str(milliseconds(info, "time.created") or ""),  # a fork copies it, in the same database
            ),
        )
        for called, part in results:
            if (status := part.at("state.status")) in ("completed", "error"):
                text = part.typed("state.output" if status == "completed" else "state.error", str) or ""
                time, tool = milliseconds(part, "state.time.end"), part.text("tool")
                yield Message("", "tool", text, answers=called, name=tool, time=time)


def _usage(part: Fields, problems: Problems) -> Usage | None:
    """Return the tokens and cost of a step; None if all tokens are zero: the provider sent none."""
    cost = dollars(part.at("cost"), part.below("cost"), problems)
    part.typed("tokens", OBJECT)
    output, reasoning = part.at("tokens.output"), part.at("tokens.reasoning")
    if isinstance(output, int) and isinstance(reasoning, int) and reasoning > 0:
        output += reasoning
    read, written = part.at("tokens.cache.read"), part.at("tokens.cache.write")
    counts = {"input": part.at("tokens.input"), "output": output, "cacheRead": read, "cacheWrite": written}
    counts["reasoning_tokens"] = reasoning
    return usage(counts if any(counts.values()) else None, part.below("tokens"), problems, cost or None)


def _text(parts: Iterable[Fields]) -> str:
    return joined(part.typed("text", str) or "" for part in parts if part.at("type") == "text")
