"""LangGraph's checkpoints: the SQLite database of `SqliteSaver`, rows of other savers, and states of threads as JSON.

    checkpoints(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type: "msgpack" | "json", checkpoint)
    checkpoint: {ts, channel_values: {messages: [message]}}
    {thread_id, checkpoint_ns, checkpoint_id, checkpoint}    rows of the same table, on lines, in a list or a table
    {config: {configurable: {thread_id}}, checkpoint}        what `list` gives; a checkpoint may stand alone
    {values: {messages: [message]}, next, created_at, checkpoint: {thread_id, checkpoint_ns}}   state, or a list of them
    {thread_id, status, values: {messages: [message]}}       threads, as the platform's API gives them

Source: github.com/langchain-ai/langgraph, `libs/checkpoint-sqlite` and `langgraph/checkpoint/serde/jsonplus.py`; the
database is tested on what langgraph-checkpoint-sqlite 3.1 writes, rows in JSON on written examples. Messages are
LangChain's, with usage; no tool schemas.

- Of each thread the last states are read, one for each branch. A state whose messages begin another one is its past.
- Messages that a graph removed before its last state are not there. Writes that are pending are not read.
- A subgraph's thread is `<thread>/<name>`, with `meta["parent"]`.
- Objects of Python stand as the values they are made of; nothing is imported to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message
from ..source import Problems, decode, record_head, records
from . import Recordings
from .langchain import history
from .prompts import as_object, text_of
from .requests import numbered
from .sqlite_tables import has_tables, rows

# Ends of branches alone: each checkpoint repeats the messages of its parent.
_LEAVES = """SELECT thread_id, checkpoint_ns, type, checkpoint FROM checkpoints AS one WHERE NOT EXISTS (SELECT 1 FROM
checkpoints AS two WHERE two.thread_id = one.thread_id AND two.checkpoint_ns = one.checkpoint_ns
AND two.parent_checkpoint_id = one.checkpoint_id) ORDER BY thread_id, checkpoint_ns, checkpoint_id"""
_ARRAY, _SNAPSHOT = 6, 7


class _State(msgspec.Struct):
    values: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    channel_values: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    thread_id: str | None = None
    checkpoint_ns: str | None = None


@dataclass(frozen=True, slots=True)
class LangGraph:
    """Threads of LangGraph."""

    about: ClassVar[str] = "LangGraph checkpoints (SQLite) and states of threads (JSON)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = tuple(
        frozenset(f"{outer}{key}" for key in (values, f"{values}.messages", f"{values}.messages[].{kind}", beside))
        for outer in ("", "[]")
        for kind in ("type", "lc")
        for values, beside in (
            *((".values", name) for name in (".next", ".thread_id")),
            (".checkpoint.channel_values", ".checkpoint"),
            (".channel_values", ".channel_versions"),
        )
    )
    folder: ClassVar[bool] = False

    @staticmethod
    def recognises(_path: Path, head: bytes) -> bool:
        """Return whether a file is a database of checkpoints."""
        return has_tables(head, "checkpoints", "writes")

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            if self.recognises(path, record_head(path)):
                by_thread = groupby(_checkpoints(path, problems), key=lambda state: state.thread)
                for thread, states in by_thread:
                    yield from _branches(thread, list(states))
            else:
                threads: dict[tuple[str, str], list[_Thread]] = {}
                for state in _states(path, problems):
                    threads.setdefault(state.thread, []).append(state)
                for thread, listed in threads.items():
                    yield from _branches(thread, listed)


@dataclass(frozen=True, slots=True)
class _Thread:
    """State of a thread, named by its id and its namespace."""

    thread: tuple[str, str]
    place: Place
    messages: tuple[Message, ...] = field(repr=False)


def _checkpoints(path: Path, problems: Problems) -> Iterator[_Thread]:
    for place, (thread, namespace, kind, checkpoint) in rows(path, _LEAVES, problems):
        with problems.collect():
            held = _loaded(kind, checkpoint, place.at("checkpoint"))
            values = as_object(as_object(held).get("channel_values"))
            yield from _state((str(thread), str(namespace or "")), values, place, problems, "checkpoint.channel_values")


def _states(path: Path, problems: Problems) -> Iterator[_Thread]:
    for place, raw in records(path, problems):
        with problems.collect():
            state = decode(raw, _State, place)
            checkpoint = state.checkpoint or {}
            named = {**as_object((state.config or {}).get("configurable")), **checkpoint}
            thread = state.thread_id or text_of(named.get("thread_id")) or path.stem
            namespace = state.checkpoint_ns or text_of(named.get("checkpoint_ns"))
            held = {
                "values": state.values,
                "channel_values": state.channel_values,
                "checkpoint.channel_values": as_object(checkpoint.get("channel_values")),
            }
            name, values = next(((name, values) for name, values in held.items() if values), ("values", {}))
            yield from _state((thread, namespace), values, place, problems, name)


def _state(
    thread: tuple[str, str], values: dict[str, Any], place: Place, problems: Problems, name: str
) -> Iterator[_Thread]:
    messages = values.get("messages")
    if isinstance(messages, list) and messages:
        yield _Thread(thread, place, history(messages, f"{name}.messages", place, problems, "langgraph"))
    else:
        problems.unknown("langgraph: state without messages", place)


def _branches(thread: tuple[str, str], states: list[_Thread]) -> Recordings:
    """Yield the states of a thread that no other one goes on from."""
    last: list[_Thread] = []
    # The longest first, so that every state which another one begins with comes after that.
    for state in sorted(states, key=lambda state: len(state.messages), reverse=True):
        if not any(longer.messages[: len(state.messages)] == state.messages for longer in last):
            last.append(state)
    name, agent = thread[0], thread[1].split("|")[-1].partition(":")[0]
    for number, state in enumerate(last, 1):
        whole = numbered(f"{name}/{agent}" if agent else name, number)
        yield state.place, Conversation(whole, state.messages, meta={"parent": name} if agent else {})


def _loaded(kind: Any, stored: Any, place: Place) -> Any:
    data = stored.encode() if isinstance(stored, str) else stored
    if kind not in ("msgpack", "json") or not isinstance(data, bytes):
        raise RecordingError(place, f"stored as {kind!r}", "only msgpack and json are read; is it encrypted?")
    if kind == "json":
        return decode(data, Any, place)
    try:
        return msgspec.msgpack.decode(data, ext_hook=_extension)
    except (msgspec.MsgspecError, RecursionError, ValueError, TypeError) as error:
        raise RecordingError(place, f"not msgpack: {error}", "the row was cut off or changed") from None


def _extension(code: int, data: memoryview) -> Any:
    """Return the values of an object of Python: the fields of a model, the first argument of anything else."""
    held = None if code == _ARRAY else msgspec.msgpack.decode(data, ext_hook=_extension)
    if code == _SNAPSHOT:
        return held
    return held[2] if isinstance(held, list) and len(held) > 2 else None
