"""Sessions of Cline and Roo Code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Compaction, Conversation, Message, Scalar, Usage
from ..source import Problems, convert, decode, records
from . import OBJECT, Fields, Reader, Recordings
from .messages import Block, History, assistant_message, user_messages
from .requests import dollars, usage

_HISTORY, _SCREEN = "api_conversation_history.json", "ui_messages.json"
_MAIN = "lead"


class _Turn(msgspec.Struct, rename="camel"):
    role: str
    content: str | list[dict[str, Any]]
    ts: float | None = None
    model_info: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    is_summary: bool | None = None
    reasoning_content: str | None = msgspec.field(default=None, name="reasoning_content")


class _Session(msgspec.Struct, rename="camel"):
    session_id: str
    messages: list[Any]
    agent: str = ""
    system_prompt: str = msgspec.field(default="", name="system_prompt")


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
                    yield from _task(path, screen, problems)
                elif path.name != _SCREEN:
                    yield from _sessions(path, problems)


def _sessions(path: Path, problems: Problems) -> Recordings:
    for place, raw in records(path, problems):
        try:
            session = decode(raw, _Session, place)
        except RecordingError as error:
            problems.add(error)
            continue
        name, meta = session.session_id, dict[str, Scalar]()
        if session.agent not in ("", _MAIN):
            meta["parent"], name = name, f"{name}/{session.agent}"
        system = (Message("system", "system", session.system_prompt),) if session.system_prompt else ()
        messages, compactions = _messages(session.messages, place.at("messages"), [], problems)
        if messages:
            yield place, Conversation(name, (*system, *messages), compactions=compactions, meta=meta)


def _task(path: Path, screen: Path | None, problems: Problems) -> Recordings:
    turns, place = list[Any](), Place(str(path), 1)
    for _, raw in records(path, problems):
        with problems.collect():
            turns.append(decode(raw, OBJECT, place.at(f"[{len(turns)}]")))
    requests = [] if screen is None else list(_requests(screen, problems))
    messages, compactions = _messages(turns, place, requests, problems)
    if messages:
        yield place, Conversation(path.resolve().parent.name, messages, compactions=compactions)


def _requests(path: Path, problems: Problems) -> Iterator[tuple[float | None, Usage | None]]:
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


def _messages(
    recorded: Sequence[Any], place: Place, requests: Sequence[tuple[float | None, Usage | None]], problems: Problems
) -> tuple[tuple[Message, ...], tuple[Compaction, ...]]:
    """Return the messages of a session and its compactions. `place` is the place of the list, for errors."""
    history, compactions = History(problems), list[Compaction]()
    notice: Compaction | None = None
    turns = []
    for at, one in enumerate(recorded):
        where = place.at(f"{place.field}[{at}]")
        with problems.collect():
            turns.append((convert(one, _Turn, where), where))
    reported = _reported([turn for turn, _ in turns if turn.role == "assistant"], requests)
    for turn, where in turns:
        with problems.collect():
            metadata = Fields(turn.metadata, where.below("metadata"))
            used = reported.pop(0) if turn.role == "assistant" else None
            first = len(history.messages)
            for message in _converted(turn, used, where, problems):
                history.add(message, where)
            added = history.messages[first:]
            if (turn.is_summary or metadata.at("kind") == "compaction_summary") and first and added:
                del history.messages[first:]
                summary, time = "\n".join(message.text for message in added), added[0].time
                compactions.append(Compaction(history.last, summary, None, metadata.typed("tokensBefore", int), time))
            elif metadata.at("kind") == "compaction" and added:
                notice = Compaction(added[-1].id, _notice(turn), added[0].id)
            elif metadata.at("compaction") == "preserved" and notice is not None:
                notice = msgspec.structs.replace(notice, after=history.last)
    if notice is not None:
        compactions.append(notice)
    return history.in_order(), tuple(compactions)


def _reported(answers: Sequence[_Turn], requests: Sequence[tuple[float | None, Usage | None]]) -> list[Usage | None]:
    """Return the usage of each answer, of the requests that a screen shows."""
    if any(turn.ts is None for turn in answers):
        same = len(answers) == len(requests)
        return [used for _, used in requests] if same else [None] * len(answers)
    rest, given = list(requests), list[Usage | None]()
    for turn in answers:
        before = [used for began, used in rest if began is not None and began <= (turn.ts or 0)]
        given.append(before[-1] if before else None)
        del rest[: len(before)]
    return given


def _notice(turn: _Turn) -> str:
    """Return the last text of a message: what a compaction says of itself."""
    content = turn.content if isinstance(turn.content, list) else [{"type": "text", "text": turn.content}]
    return next((str(block.get("text") or "") for block in reversed(content) if block.get("type") == "text"), "")


def _converted(turn: _Turn, reported: Usage | None, place: Place, problems: Problems) -> Iterator[Message]:
    """Yield a message of Cline's in our form, its tool results apart."""
    where = place.below("content")
    time = turn.ts / 1000 if turn.ts else None
    content: str | list[Block] = turn.content if isinstance(turn.content, str) else _blocks(turn.content, where)
    if turn.role == "user":
        yield from user_messages(content, repeat(""), where, problems, time)
    elif turn.role == "assistant":
        info, used = Fields(turn.model_info, place), reported
        if turn.metrics is not None:
            cost = dollars(turn.metrics.get("cost"), place.below("metrics.cost"), problems)
            used = usage(turn.metrics, place.below("metrics"), problems, cost, whole_prompt=True)
        call = Call(info.text("id|modelId"), info.text("provider|providerId"), used)  # names differ by version
        parts = content if isinstance(content, list) else [Block("text", content)]
        message = assistant_message(parts, "", where, problems, time, call)
        thinking = message.thinking or turn.reasoning_content or ""
        yield msgspec.structs.replace(message, thinking=thinking)
    else:
        raise RecordingError(place.below("role"), f"unknown role {turn.role!r}", "use user, assistant")


def _blocks(content: list[dict[str, Any]], place: Place) -> list[Block]:
    """Return content blocks in Anthropic's form: files as texts, results of several parts as JSON."""
    adapted = []
    for block in content:
        inner = block.get("content")
        if block.get("type") == "file":
            block = {"type": "text", "text": f"{block.get('path', '')}\n{inner if isinstance(inner, str) else ''}"}
        elif isinstance(inner, list) and any(isinstance(part, dict) and "type" not in part for part in inner):
            block = {**block, "content": msgspec.json.encode(inner).decode()}
        adapted.append(block)
    return decode(msgspec.json.encode(adapted), list[Block], place)
