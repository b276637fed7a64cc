"""Stored items of OpenAI's Responses API, sessions of the Agents SDK, and batches."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers import stored_chats
from ctxbench.scenarios.readers.stored_chats import OpenAIItems
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import SAMPLES

ITEMS = SAMPLES["openai_items"].make("x")["data"]


def load(path: Path) -> tuple[list[Conversation], Problems]:
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def test_sessions_of_a_database_are_conversations(tmp_path: Path) -> None:
    """Each session is a conversation in the order of its rows; a row that is no JSON costs only itself."""
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY)")
        base.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT)")
        for item in ITEMS:
            for session in ("one", "two"):
                row = (session, json.dumps(item))
                base.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", row)
        base.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('one', '{')")
        base.commit()
    assert isinstance(detect(path), OpenAIItems)
    chats, problems = load(path)
    assert [(chat.id, len(chat.messages)) for chat in chats] == [("one", 4), ("two", 4)]
    [error] = problems.errors
    assert (error.place.line, error.place.field) == (6, "message_data")


WAITS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i AS id, 's' AS session_id"


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        (
            f"VIEW agent_messages AS /* CREATE TABLE agent_messages */ {WAITS}, '{{}}' AS message_data FROM r",
            "a view stands in the place of a table",
        ),
        (
            "TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data AS (zeroblob(2000000)));"
            "INSERT INTO agent_messages (session_id) VALUES ('s')",
            "string or blob too big",
        ),
        (
            "TABLE agent_messages (id INTEGER, session_id TEXT, message_data TEXT);"
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000)"
            "INSERT INTO agent_messages SELECT 1, 's', 'x' FROM r",
            "to read it takes far longer than its size explains",
        ),
    ],
)
def test_a_hostile_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: str, what: str) -> None:
    """Views and functions of the file are not run, and a cell or a query has an end."""
    monkeypatch.setattr(stored_chats, "LONGEST", 1_000_000)
    monkeypatch.setattr(stored_chats, "_MOST_STEPS", 2_000)
    monkeypatch.setattr(stored_chats, "_STEPS", 1_000)
    path = tmp_path / "hostile.db"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(f"CREATE TABLE agent_sessions (a); CREATE {messages};")
    problems = Problems()
    assert not list(read(find([path], problems, "openai_items"), problems))
    assert what in problems.errors[0].what
