"""Stored items of OpenAI's Responses API, sessions of the Agents SDK, and batches."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.call_logs import OpenAIBatch
from ctxbench.scenarios.readers.stored_chats import OpenAIItems
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.samples import openai_batch, openai_items

ITEMS = openai_items("x")["data"]


def load(path: Path) -> tuple[list[Conversation], Problems]:
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "newest first"])
def test_items_between_inputs_are_one_answer(tmp_path: Path, order: int) -> None:
    """Reasoning and call are one answer, whichever end of the list the API began with."""
    path = tmp_path / "items.json"
    path.write_text(json.dumps(ITEMS[::order], indent=1))
    assert isinstance(detect(path), OpenAIItems)
    [chat], problems = load(path)
    assert not problems.errors
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "assistant"]
    call = chat.messages[1]
    assert (call.thinking, call.calls[0].name, chat.messages[2].answers) == ("hm", "look", "c1")


def test_what_the_provider_ran_is_counted(tmp_path: Path) -> None:
    """A web search has no result among the items: it is in the notes, and the answer stays whole."""
    path = tmp_path / "items.json"
    search = {"type": "web_search_call", "id": "w", "status": "completed"}
    path.write_text(json.dumps([*ITEMS[:-1], search, ITEMS[-1]]))
    [chat], problems = load(path)
    assert len(chat.messages) == 4
    assert any("web_search_call" in note for note in problems.notes)


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


def test_requests_of_a_batch_find_their_responses(tmp_path: Path) -> None:
    """Input and output in two files are one conversation each, with usage; what is left alone is in the notes."""
    (one_in, one_out), (two_in, _), (_, three_out) = map(openai_batch, ("one", "two", "three"))
    (tmp_path / "input.jsonl").write_text("\n".join(map(json.dumps, (one_in, two_in))))
    (tmp_path / "output.jsonl").write_text("\n".join(map(json.dumps, (three_out, one_out))))
    assert isinstance(detect(tmp_path / "input.jsonl"), OpenAIBatch)
    [chat], problems = load(tmp_path)
    assert not problems.errors
    call = chat.messages[-1].call
    assert (chat.id, chat.tools[0].name) == ("one", "look")
    assert call is not None
    assert (call.model, call.usage) == ("m", Usage(input=100, output=5, cache_read=60))
    assert len(problems.notes) == 2


def test_a_batch_of_the_responses_api_is_read(tmp_path: Path) -> None:
    """A request to /v1/responses is read with its items, its instructions and its usage."""
    asked = {"model": "m", "instructions": "Be short.", "input": ITEMS[:4]}
    used = {"input_tokens": 50, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 20}}
    body = {"id": "r1", "object": "response", "model": "m", "status": "completed", "output": ITEMS[4:], "usage": used}
    path = tmp_path / "batch.jsonl"
    lines = (
        {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": asked},
        {"custom_id": "a", "response": {"status_code": 200, "body": body}},
    )
    path.write_text("\n".join(map(json.dumps, lines)))
    [chat], problems = load(path)
    assert not problems.errors
    assert [message.role for message in chat.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert chat.messages[-1].call is not None
    assert chat.messages[-1].call.usage == Usage(input=50, output=5, cache_read=20)
