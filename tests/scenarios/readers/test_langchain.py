"""LangChain's messages and LangGraph's checkpoints."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.stored_chats import LangChain, LangGraph
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import SAMPLES

MESSAGES = SAMPLES["langchain"].make("x")["messages"]
CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}


def load(path: Path) -> tuple[list[Conversation], Problems]:
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def constructor(message: dict[str, Any]) -> dict[str, Any]:
    """The message as dumpd writes it."""
    kind = message["type"]
    fields = {key: value for key, value in message["data"].items() if key != "additional_kwargs"}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", CLASSES[kind]], "kwargs": fields}


@pytest.mark.parametrize(
    "messages",
    [
        MESSAGES,
        [constructor(message) for message in MESSAGES],
        [{"response_metadata": {}, **message["data"]} for message in MESSAGES],
    ],
    ids=["messages_to_dict", "dumpd", "model_dump"],
)
def test_all_forms_of_langchain_read_the_same(tmp_path: Path, messages: object) -> None:
    """Whichever way a history was written, calls, results, usage and model are those of the history."""
    path = tmp_path / "h.json"
    path.write_text(json.dumps(messages, indent=1))
    assert isinstance(detect(path), LangChain)
    [chat], problems = load(path)
    assert not problems.errors
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "assistant"]
    call = chat.messages[1].call
    assert call is not None
    assert (call.model, call.usage, call.stop) == ("m", Usage(input=100, output=5, cache_read=60), "tool_calls")
    assert chat.messages[2].answers == chat.messages[1].calls[0].id == "c1"


def database(path: Path, *checkpoints: tuple[str, str, str | None, list[Any]]) -> None:
    """A database with checkpoints (thread, id, parent, messages), as SqliteSaver writes them."""
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA journal_mode=WAL")
        keys = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT"
        base.execute(f"CREATE TABLE checkpoints ({keys}, checkpoint BLOB, metadata BLOB)")
        base.execute("CREATE TABLE writes (thread_id TEXT)")
        for thread, name, parent, messages in checkpoints:
            held = {"v": 4, "channel_values": {"messages": [stored(message) for message in messages]}}
            row = (thread, "", name, parent, "msgpack", msgspec.msgpack.encode(held), b"{}")
            base.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        base.commit()


def stored(message: dict[str, Any]) -> msgspec.msgpack.Ext:
    """The message as a model of Pydantic is stored: module, class, fields, constructor."""
    fields = ["langchain_core.messages", CLASSES[message["type"]], message["data"], "model_validate_json"]
    return msgspec.msgpack.Ext(5, msgspec.msgpack.encode(fields))


def test_the_ends_of_a_threads_branches_are_conversations(tmp_path: Path) -> None:
    """Of a thread that was forked both ends are read, and no state that another goes on from."""
    fork = [{"type": "human", "data": {"type": "human", "content": "Other?"}}]
    path = tmp_path / "state.db"
    database(
        path, ("t", "1", None, MESSAGES[:1]), ("t", "2", "1", MESSAGES), ("t", "3", None, fork), ("u", "4", None, fork)
    )
    assert isinstance(detect(path), LangGraph)
    chats, problems = load(path)
    assert not problems.errors
    assert [(chat.id, len(chat.messages)) for chat in chats] == [("t", 4), ("t.2", 1), ("u", 1)]
    assert chats[0].messages[1].calls[0].name == "look"


def test_a_checkpoint_that_is_cut_off_costs_only_its_thread(tmp_path: Path) -> None:
    """A row that is no msgpack is one error with its row, and other threads are read."""
    path = tmp_path / "state.db"
    database(path, ("t", "1", None, MESSAGES), ("u", "2", None, MESSAGES))
    with closing(sqlite3.connect(path)) as base:
        base.execute("UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 40) WHERE thread_id = 't'")
        base.commit()
    [chat], problems = load(path)
    [error] = problems.errors
    assert (chat.id, error.place.line, error.place.field) == ("u", 1, "checkpoint")


def test_a_database_that_is_cut_off_is_one_error(tmp_path: Path) -> None:
    """Half of a database is an error that names the file."""
    path = tmp_path / "state.db"
    database(path, *((f"t{at}", str(at), None, MESSAGES) for at in range(60)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _, problems = load(path)
    assert any("cannot be read as SQLite" in error.what for error in problems.errors)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_rows_that_are_in_the_log_alone(tmp_path: Path, is_damaged: bool) -> None:
    """Reading a database takes what its write-ahead log has committed; a log that is none is named."""
    path, copy = tmp_path / "live" / "state.db", tmp_path / "state.db"
    path.parent.mkdir()
    database(path, ("t", "1", None, MESSAGES))
    with closing(sqlite3.connect(path)) as base:
        base.execute("UPDATE checkpoints SET thread_id = 'u'")
        base.commit()
        log = path.with_name("state.db-wal").read_bytes()
        copy.write_bytes(path.read_bytes())
        copy.with_name("state.db-wal").write_bytes(b"rows" if is_damaged else log)
    [chat], problems = load(copy)
    assert chat.id == ("t" if is_damaged else "u")
    assert [Path(error.place.file).name for error in problems.errors] == ["state.db-wal"] * is_damaged


def test_a_database_in_an_archive_is_read(tmp_path: Path) -> None:
    """A zip of a database is as good as the database."""
    database(tmp_path / "state.db", ("t", "1", None, MESSAGES))
    with ZipFile(tmp_path / "state.zip", "w") as archive:
        archive.write(tmp_path / "state.db", "state.db")
    [chat], problems = load(tmp_path / "state.zip")
    assert not problems.errors
    assert (chat.id, len(chat.messages)) == ("t", 4)
