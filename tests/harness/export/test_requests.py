"""Bodies of the requests that a strategy sends: worked by hand, and read back as the context that was sent."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export.convert import Request, anthropic, openai
from ctxbench.harness.folder.run import Run, load
from ctxbench.scenarios.model import Call, Conversation, Message, Tool, ToolCall
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.archive.record import load_tool
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording

STRATEGIES = (
    "none",
    "window(max_tokens=3000)",
    "facts | summary(every=2) | cache_marks(min_tokens=1)",
    "archive(threshold=500) | cache_marks(min_tokens=1, rolling=1)",
)

SENT = Request(
    (
        Message("s", "system", "You read files."),
        Message("n", "system", "So far: nothing."),
        Message("u", "user", "Compare a and b."),
        Message("a", "assistant", "Both.", (ToolCall("1", "read", '{"path": "a"}'), ToolCall("2", "read", "b")), "x"),
        Message("r", "tool", "one", answers="1"),
        Message("t", "tool", "two", answers="2"),
        Message("w", "system", "Be brief."),
        Message("v", "user", "Well?"),
    ),
    (Tool("read", "Read a file", '{"type":"object"}'),),
    (1, 7),
    "claude-sonnet-5",
)


def test_anthropic_by_hand() -> None:
    """The opening system messages are `system`, a later one is the user's; results of parallel calls are one turn.

    Marks stand on the last block of their message. Arguments that are no object are wrapped.
    """
    marked = {"cache_control": {"type": "ephemeral"}}
    assert json.loads(encoded(anthropic(SENT))) == {
        "model": "claude-sonnet-5",
        "system": [{"type": "text", "text": "You read files."}, {"type": "text", "text": "So far: nothing.", **marked}],
        "tools": [{"name": "read", "description": "Read a file", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Compare a and b."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Both."},
                    {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "2", "name": "read", "input": {"INVALID_JSON": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "2", "content": "two"},
                    {"type": "text", "text": "Be brief."},
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "Well?", **marked}]},
        ],
    }


def test_openai_by_hand() -> None:
    """Messages stay as they are, with arguments as text; prefixes are cached without marks."""
    body = openai(SENT)
    assert [message["role"] for message in body["messages"]] == [message.role for message in SENT.messages]
    assert body["messages"][3]["tool_calls"][1]["function"] == {"name": "read", "arguments": "b"}
    assert body["messages"][5] == {"role": "tool", "content": "two", "tool_call_id": "2"}
    assert body["tools"][0]["function"]["name"] == "read"
    assert "cache_control" not in encoded(body)


def encoded(body: dict[str, Any]) -> str:
    return msgspec.json.encode(body).decode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two conversations with tool calls and a named model."""
    folder = tmp_path_factory.mktemp("requests")
    path = recording(folder, conversations=2, turns=5, size=400)
    said = [*read(find([path], Problems()), Problems())]
    with path.open("wb") as file:
        for conversation in said:
            messages = tuple(
                replace(message, call=Call("claude-sonnet-5")) if message.role == "assistant" else message
                for message in conversation.messages
            )
            tools = (Tool("tool", "Do it", '{"type":"object"}'),)
            file.write(replace(conversation, messages=messages, tools=tools).to_json() + b"\n")
    execute(plan(path, strategies=STRATEGIES), folder / "run")
    return load(folder / "run")


def requests(run: Run, strategy: str, form: str) -> list[dict[str, Any]]:
    """The bodies that `export requests` writes."""
    words = ("export", "requests", run.folder, "--strategy", strategy, "--as", form)
    return [json.loads(line) for line in ctxbench(*words, cwd=run.folder).stdout.splitlines()]


def read_back(body: dict[str, Any], folder: Path) -> Conversation:
    """A body as our reader of its form reads it, which is found by its content."""
    (folder / "one.jsonl").write_text(json.dumps(body) + "\n")
    problems = Problems(strict=True)
    [conversation] = read(find([folder / "one.jsonl"], problems), problems)
    return conversation


def as_read(sent: Sequence[Message], form: str) -> Sequence[Message]:
    """A context as a form has it: Anthropic's joins the opening system messages, and a later one is the user's."""
    if form == "openai":
        return sent
    opening = next(at for at, message in enumerate(sent) if message.role != "system")
    first = replace(sent[0], text="\n".join(message.text for message in sent[:opening]))
    later = [replace(each, role="user") if each.role == "system" else each for each in sent[opening:]]
    return [first, *later] if opening else later


def outline(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """Return the text, the calls and the answered call of each message."""
    return [
        (
            message.role,
            message.text,
            [(call.id, call.name, json.loads(call.arguments)) for call in message.calls],
            message.answers,
        )
        for message in messages
    ]


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_was_sent_is_read_back(run: Run, strategy: str, form: str, tmp_path: Path) -> None:
    """One request for each step, with the messages of its context, calls with their results, tools, marks, model."""
    bodies = iter(requests(run, strategy, form))
    offered = set[Tool]()
    for conversation in run.conversations():
        contexts, rows = run.contexts(conversation, strategy), run.rows("steps", conversation.id, strategy)
        for context, row in zip(contexts, rows, strict=True):
            body = next(bodies)
            again = read_back(body, tmp_path)
            assert outline(again.messages) == outline(as_read(context, form))
            calls = {call.id for message in again.messages for call in message.calls}
            assert {message.answers for message in again.messages if message.answers} <= calls
            assert body["model"] == "claude-sonnet-5"
            assert again.tools[0].name == "tool"
            offered |= {*again.tools}
            assert json.dumps(body).count("cache_control") == (len(row["marks"]) if form == "anthropic" else 0)
    assert next(bodies, None) is None
    added = {tool.name: tool.description for tool in offered if tool.name != "tool"}
    own = load_tool("en")
    assert added == ({own.name: own.description} if strategy.startswith("archive") else {})


def test_show_prints_one(run: Run) -> None:
    """`show --as` is the request of a step, of the last by default."""
    strategy = STRATEGIES[2]
    shown = ctxbench("show", run.folder, "1", "--strategy", strategy, "--as", "anthropic", cwd=run.folder)
    steps = len(run.rows("steps", "c0", strategy))
    assert json.loads(shown.stdout) == requests(run, strategy, "anthropic")[steps - 1]
