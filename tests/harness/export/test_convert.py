"""Conversations as OpenAI's chats and Anthropic's requests and responses: what is read back, and the command."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxbench.harness.export.convert import LINES, convert
from ctxbench.scenarios.chat import decoded_object
from ctxbench.scenarios.model import Call, Conversation, Iteration, Mark, Message, Tool, ToolCall, Usage
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.builders import messages
from tests.examples import examples
from tests.harness.command import ctxbench

READERS = {"openai": "openai_chat", "anthropic": "anthropic_messages"}
ARGUMENTS = [
    '{"a":1}',
    '{"path": "/srv/a.csv", "n": 1.50}',
    "{}",
    "*** Begin Patch",
    "[1, 2]",
    '{\n  "a": 1\n}',
    '{"a":',
]


def converted(conversations: list[Conversation], name: str, reader: str | None = None) -> list[Conversation]:
    """Write conversations in a format and read them again, by their content or by a named reader."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        assert convert(conversations, name, path) == len(conversations)
        problems = Problems(strict=True)
        return [*read(find([path], problems, reader), problems)]


def links(conversation: Conversation) -> list[tuple[int, int] | None]:
    """The call that each message answers: the place of its message, and its number there."""
    calls = {call.id: (at, n) for at, said in enumerate(conversation.messages) for n, call in enumerate(said.calls)}
    return [calls.get(message.answers or "") for message in conversation.messages]


@st.composite
def recorded(draw: st.DrawFn) -> Conversation:
    """A conversation with tools, thinking, and arguments that are no JSON object."""
    said = list[Message]()
    for message in draw(messages(12)):
        if message.role == "assistant":
            calls = tuple(replace(call, arguments=draw(st.sampled_from(ARGUMENTS))) for call in message.calls)
            call = draw(st.sampled_from([None, Call("claude-sonnet-5", "anthropic", Usage(9, 3), stop="end_turn")]))
            message = replace(message, calls=calls, thinking=draw(st.sampled_from(["", "Hm.\nWell."])), call=call)
        said.append(message)
    tools = draw(st.sampled_from([(), (Tool("read", "Read a file", '{"type":"object"}'), Tool("write"))]))
    return Conversation("any", tuple(said), tools=tools)


@pytest.mark.parametrize("name", READERS)
@examples(40, ignored=[HealthCheck.too_slow])
@given(conversation=recorded())
def test_what_was_said_comes_back(name: str, conversation: Conversation) -> None:
    """Roles, texts, thinking, calls with their arguments, results with their calls, and tools are read back."""
    if name == "anthropic":  # a system message is at the start, and the first request stands before the first answer
        conversation = replace(
            conversation,
            messages=tuple(
                replace(message, role="user") if at and message.role == "system" else message
                for at, message in enumerate(conversation.messages)
            ),
        )
        if conversation.messages[0].role == "assistant" or not conversation.messages[0].text:
            return
    [again] = converted([conversation], name, READERS[name])
    assert again.tools == conversation.tools
    assert links(again) == links(conversation)
    for message, copy in zip(conversation.messages, again.messages, strict=True):
        assert (copy.role, copy.text, copy.thinking) == (message.role, message.text, message.thinking)
        for call, copied in zip(message.calls, copy.calls, strict=True):
            wrapped = {"INVALID_JSON": call.arguments}
            arguments = decoded_object(call.arguments) or (wrapped if call.arguments != "{}" else {})
            assert copied.name == call.name
            assert copied.arguments == call.arguments or decoded_object(copied.arguments) == arguments


def agent() -> Conversation:
    """A conversation with a prompt, parallel calls, thinking, usage and a cache mark, worked out by hand."""
    usage = Usage(input=1000, output=20, cache_read=600, cache_write=300, cache_write_1h=100)
    calls = (ToolCall("call_1", "read", '{"path": "a"}'), ToolCall("call_2", "read", '{"path": "b"}'))
    asked = Call("claude-sonnet-5", "anthropic", usage, 1.7e9 + 2, (Mark("s"),), stop="tool_use", effort="high")
    said = (
        Message("s", "system", "You read files.", time=1.7e9),
        Message("u", "user", "Compare a and b.", time=1.7e9 + 1),
        Message("a", "assistant", "", calls, time=1.7e9 + 3, thinking="Both at once.", call=asked),
        Message("r1", "tool", "1", answers="call_1"),
        Message("r2", "tool", "2", answers="call_2"),
        Message("b", "assistant", "They differ.", call=Call("claude-sonnet-5", "anthropic", Usage(1400, 9))),
        Message("v", "user", "Thanks."),
    )
    return Conversation("agent", said, tools=(Tool("read", "Read a file", '{"type":"object"}'),))


@pytest.mark.parametrize("name", READERS)
def test_what_is_written_is_known_by_its_content(name: str) -> None:
    """A file of several conversations is read again without being told its format."""
    several = [replace(agent(), id=f"agent-{number}") for number in range(3)]
    several[1] = replace(several[1], messages=several[1].messages[:3])
    again = converted(several, name)
    assert [[message.text for message in one.messages] for one in again] == [
        [message.text for message in one.messages] for one in several
    ]


def test_ctxbench_carries_everything() -> None:
    """Our own form has the conversation back as it was."""
    [again] = converted([agent()], "ctxbench")
    assert again.digest() == agent().digest()


def lines(conversation: Conversation, name: str) -> list[dict[str, Any]]:
    """The lines of a conversation in a format."""
    return [json.loads(line) for line in LINES[name](conversation)]


def test_anthropic_has_a_line_per_call_and_results_in_one_turn() -> None:
    """Requests repeat what was said; parallel results are one turn; input tokens are what no cache has."""
    first, second, whole = lines(agent(), "anthropic")
    assert first["request"]["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert first["response"]["usage"] == {
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 300,
        "output_tokens": 20,
        "input_tokens": 100,
        "cache_creation": {"ephemeral_1h_input_tokens": 100},
    }
    assert first["response"]["content"][0]["type"] == "thinking"
    assert [block["tool_use_id"] for block in second["request"]["messages"][2]["content"]] == ["call_1", "call_2"]
    assert whole["messages"][-1] == {"role": "user", "content": [{"type": "text", "text": "Thanks."}]}


def test_anthropic_keeps_calls() -> None:
    """Model, usage, marks, effort and stop reason come back, and the inner requests of a call by `usage.iterations`."""
    [again] = converted([agent()], "anthropic")
    call, copied = agent().messages[2].call, again.messages[2].call
    assert call is not None
    assert copied is not None
    assert (copied.model, copied.usage, copied.effort, copied.stop) == (call.model, call.usage, call.effort, call.stop)
    assert copied.marks == (Mark(again.messages[0].id),)
    parts = (Iteration(Usage(100, 5)), Iteration(Usage(50, 7), "claude-opus-5"), Iteration(Usage(130, 9)))
    call = Call("claude-sonnet-5", "anthropic", Usage(130, 14), stop="end_turn", iterations=parts)
    said = (Message("u", "user", "Go."), Message("a", "assistant", "Done.", call=call))
    [again] = converted([Conversation("any", said)], "anthropic")
    assert again.messages[1].call == call


def test_convert_from_end_to_end(tmp_path: Path) -> None:
    """The same input is the same bytes, on standard output and packed too, and is read again."""
    (tmp_path / "agent.jsonl").write_bytes(agent().to_json() + b"\n")
    done = ctxbench("convert", "agent.jsonl", "--to", "o.jsonl", "--as", "openai", cwd=tmp_path)
    assert "1 conversation written to o.jsonl" in done.stderr
    plain = (tmp_path / "o.jsonl").read_bytes()
    for name in ("o.jsonl.gz", "p.jsonl.gz", "o.jsonl.zst"):
        ctxbench("convert", "agent.jsonl", "--to", name, "--as", "openai", cwd=tmp_path)
    assert gzip.decompress((tmp_path / "o.jsonl.gz").read_bytes()) == plain
    assert (tmp_path / "o.jsonl.gz").read_bytes() == (tmp_path / "p.jsonl.gz").read_bytes()
    assert zstandard.decompress((tmp_path / "o.jsonl.zst").read_bytes(), 1 << 20) == plain
    assert ctxbench("convert", "agent.jsonl", "--to", "-", "--as", "openai", cwd=tmp_path).stdout.encode() == plain
    ctxbench("convert", "o.jsonl.gz", "--to", "again.jsonl", cwd=tmp_path)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Without any conversation there is no file; a file that is read, under any name, is never written."""
    (tmp_path / "talks").mkdir()
    recorded = tmp_path / "talks" / "agent.jsonl"
    recorded.write_bytes(agent().to_json() + b"\n")
    (tmp_path / "link.jsonl").symlink_to(recorded)
    (tmp_path / "bad.jsonl").write_text('{"messages": 7}\n')
    refused = {
        ("bad.jsonl", "x.jsonl"): "left out: bad.jsonl",
        ("talks/agent.jsonl", "link.jsonl"): "is one of the recordings that are read",
        ("talks", "talks/agent.jsonl"): "is one of the recordings that are read",
    }
    for (source, target), said in refused.items():
        form = ["--format", "openai_chat"] if source == "bad.jsonl" else []
        command = ("convert", source, "--to", target, "--as", "openai", *form)
        assert said in ctxbench(*command, cwd=tmp_path, code=2).stderr
    assert not (tmp_path / "x.jsonl").exists()
    assert recorded.read_bytes() == agent().to_json() + b"\n"
