"""Claude Code sessions of many agents are read in linear time; a compaction on demand counts its only iteration."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Conversation, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.claude_code import ClaudeCode
from ctxbench.scenarios.readers.requests import response_usage
from ctxbench.scenarios.source import Problems

START = 1_700_000_000


def line(second: int, kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """A line written at 22:13:20 plus so many seconds."""
    minutes, rest = divmod(20 + second, 60)
    stamp = f"2023-11-14T22:{13 + minutes:02}:{rest:02}.000Z"
    ids = {"uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False, "cwd": "/home/someone"}
    return {"type": kind, **ids, "timestamp": stamp, **fields}


def user(second: int, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line(second, "user", uuid, parent, message={"role": "user", "content": content}, **fields)


def said(
    second: int, uuid: str, parent: str, response: str, block: Any, output: int = 1, **fields: Any
) -> dict[str, Any]:
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
        "output_tokens": output,
    }
    message = {"id": f"msg_{response}", "role": "assistant", "model": "opus", "content": [block], "usage": usage}
    return line(second, "assistant", uuid, parent, requestId=f"req_{response}", message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def load(path: Path, *lines: object) -> tuple[list[Conversation], list[RecordingError]]:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    assert isinstance(detect(path), ClaudeCode)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems.errors


@pytest.mark.parametrize("shape", ["one root each", "agents", "lost parents", "one chain"])
def test_many_lines_of_agents(tmp_path: Path, shape: str) -> None:
    """20,000 lines of agents are read in time that grows with their number, however they hang together."""
    side: dict[str, Any] = {"isSidechain": True}
    number = 20_000
    parents = {"one root each": None, "agents": None, "lost parents": "nowhere", "one chain": ""}
    lines = [user(1, "u1", None, "Go"), said(2, "a1", "u1", "1", text("ok"))]
    for at in range(number):
        parent = parents[shape] if shape != "one chain" or not at else f"x{at - 1}"
        named = {"agentId": f"g{at % 5_000}"} if shape == "agents" else {}
        lines.append(user(3, f"x{at}", parent or None, "Look", **side, **named))
    chats, found = load(tmp_path / "s.jsonl", *lines)
    assert not found
    conversations = {"one root each": number, "agents": 5_000, "lost parents": 1, "one chain": 1}
    assert len(chats) == 1 + conversations[shape]
    # an agent's lines without parents are branches of which the last one counts
    assert sum(len(chat.messages) for chat in chats[1:]) == (5_000 if shape == "agents" else number)


def test_a_compaction_names_the_first_line_that_it_keeps(tmp_path: Path) -> None:
    """The boundary names it, and counts the tokens before; its summary stands behind it."""
    about = {"preTokens": 9, "preservedSegment": {"headUuid": "a1"}}
    boundary = line(3, "system", "b", None, subtype="compact_boundary", logicalParentUuid="a1", compactMetadata=about)
    summary = user(4, "s", "b", "In short", isCompactSummary=True)
    asked, answered = user(1, "u1", None, "Go"), said(2, "a1", "u1", "1", text("ok"))
    [chat], found = load(tmp_path / "s.jsonl", asked, answered, boundary, summary)
    [compaction] = chat.compactions
    assert not found
    assert (compaction.after, compaction.first_kept, compaction.summary) == ("a1", "a1", "In short")
    assert (compaction.tokens_before, compaction.hidden) == (9, "")


def test_a_compaction_on_demand() -> None:
    """The provider's example (D1): zeros for the response, and one iteration of 144 tokens read and 276 written."""
    part = {"type": "compaction", "input_tokens": 144, "output_tokens": 276}
    used, iterations = response_usage(
        {"input_tokens": 0, "output_tokens": 0, "iterations": [part]}, Place("answer.json"), Problems()
    )
    assert (used, iterations) == (Usage(144, 276), ())
