"""HTTP recordings: whole prompts of four APIs, what requests refer to instead of repeating it, and streams."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, ToolCall, Usage, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.http import HttpRecordings
from ctxbench.scenarios.source import Problems
from tests.examples import examples

CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
MESSAGES = "https://api.anthropic.com/v1/messages?beta=true"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"


def interaction(url: str, asked: Any, replied: Any, status: Any = 200, **reply: Any) -> dict[str, Any]:
    """A request and its response as newer cassettes hold them."""
    response = {"status": {"code": status}, "headers": {"Date": ["Tue, 14 Nov 2023 22:13:20 GMT"]}}
    response |= reply or {"parsed_body": replied}
    return {"request": {"method": "POST", "uri": url, "parsed_body": asked}, "response": response}


def load(path: Path, *interactions: Any) -> tuple[list[Conversation], Problems]:
    text = {"version": 1, "interactions": interactions}
    path.write_text(json.dumps(text) if path.suffix == ".json" else yaml.safe_dump(text, allow_unicode=True))
    assert isinstance(detect(path), HttpRecordings)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def shown(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


def chat(messages: list[Any], answer: Any, name: str, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    counts = {"prompt_tokens": 2000, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1024}}
    choice = {"finish_reason": "stop", "index": 0, "message": message}
    replied = {"id": name, "model": "gpt-4o-2024", "created": 1_700_000_000, "choices": [choice], "usage": counts}
    return interaction(CHAT, {"model": "gpt-4o", "messages": messages, **fields}, replied)


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


USE = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}


def test_gemini_with_stored_content(tmp_path: Path) -> None:
    """`cachedContent` brings what was stored in front; a result answers the call of its name; thoughts are output."""
    made = f"{GEMINI}/models/gemini-2.5-flash:generateContent"
    stored = {
        "contents": [{"role": "user", "parts": [{"text": "Long."}]}],
        "systemInstruction": {"parts": [{"text": "S"}]},
    }
    asked = {"role": "user", "parts": [{"text": "Look."}]}
    use = {
        "role": "model",
        "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "look", "args": {"at": 1}}}],
    }
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "a cat"}}}]}
    counts = {
        "promptTokenCount": 3520,
        "cachedContentTokenCount": 3512,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 42,
    }

    def replied(name: str, content: Any) -> dict[str, Any]:
        candidate = {"content": content, "finishReason": "STOP"}
        return {"candidates": [candidate], "modelVersion": "gemini-2.5", "responseId": name, "usageMetadata": counts}

    answer = {"role": "model", "parts": [{"text": "A cat."}]}
    [told], problems = load(
        tmp_path / "some.yaml",
        interaction(f"{GEMINI}/cachedContents", stored, {"name": "cachedContents/1"}),
        interaction(made, {"cachedContent": "cachedContents/1", "contents": [asked]}, replied("a", use)),
        interaction(
            made, {"cachedContent": "cachedContents/1", "contents": [asked, use, result]}, replied("b", answer)
        ),
    )
    assert not problems.errors
    assert shown(told) == [
        *(("system", "S"), ("user", "Long."), ("user", "Look."), ("assistant", "")),
        *(("tool", "a cat"), ("assistant", "A cat.")),
    ]
    assert told.messages[3].calls == (ToolCall("m3c0", "look", '{"at":1}'),)
    assert (told.messages[3].thinking, told.messages[4].answers) == ("hm", "m3c0")
    assert [m.call.usage for m in told.messages if m.call] == [Usage(3520, 44, 3512, reasoning=42)] * 2


BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0"


def framed(kind: str, payload: Any) -> bytes:
    """One event in AWS's frames; the checksums are not looked at."""
    name, value, data = b":event-type", kind.encode(), json.dumps(payload).encode()
    headers = bytes([len(name)]) + name + b"\x07" + len(value).to_bytes(2, "big") + value
    size = 12 + len(headers) + len(data) + 4
    return size.to_bytes(4, "big") + len(headers).to_bytes(4, "big") + b"\0" * 4 + headers + data + b"\0" * 4


def binary(*parts: bytes) -> dict[str, Any]:
    return {"body": {"base64_string": base64.b64encode(b"".join(parts)).decode()}}


@pytest.mark.parametrize(("cut", "answers"), [(20, []), (150, ["Lo"]), (400, ["LoLo"])])
def test_frames_may_be_cut_off(tmp_path: Path, cut: int, answers: list[str]) -> None:
    """What a stream of Bedrock's holds until then is the answer so far; without a whole frame there is an error."""
    delta = framed("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Lo"}})
    assert 75 < len(delta) <= 150
    request = {"messages": [{"role": "user", "content": [{"text": "Go"}]}]}
    asked = interaction(f"{BEDROCK}/converse-stream", request, None, **binary((delta + delta)[:cut]))
    told, problems = load(tmp_path / "some.yaml", asked)
    assert [one.messages[-1].text for one in told] == answers
    assert len(problems.errors) == (not answers)


def stream(*chunks: Any) -> dict[str, Any]:
    """A response's body as a stream of events."""
    lines = [f"event: {chunk.get('type')}\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return {"body": {"string": "".join(lines) + "data: [DONE]\n\n"}}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


STREAMS: dict[str, tuple[str, Any, list[Any]]] = {
    "chat": (
        CHAT,
        {"messages": [{"role": "user", "content": "Go"}]},
        [
            delta(role="assistant", content="Lo"),
            delta(content="ok"),
            delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a'}}]),
            delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": 't":1}'}}]),
            {"id": "r", "model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        ],
    ),
    "responses": (
        RESPONSES,
        {"input": "Go"},
        [
            {"type": "response.created", "response": {"id": "r"}},
            {
                "type": "response.completed",
                "response": {
                    "id": "r",
                    "model": "m",
                    "output": [said("Look"), {**USE, "arguments": '{"at":1}'}],
                    "usage": {"input_tokens": 9, "input_tokens_details": {}, "output_tokens": 3},
                },
            },
        ],
    ),
    "anthropic": (
        MESSAGES,
        {"messages": [{"role": "user", "content": "Go"}]},
        [
            {"type": "message_start", "message": {"id": "r", "model": "m", "usage": {"input_tokens": 9}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Lo"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"at'}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '":1}'}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        ],
    ),
    "gemini": (
        f"{GEMINI}/models/m:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Go"}]}]},
        [
            {"candidates": [{"content": {"parts": [{"text": "Look"}]}}], "modelVersion": "m"},
            {
                "candidates": [
                    {"content": {"parts": [{"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}}]}}
                ],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
            },
        ],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(tmp_path: Path, name: str) -> None:
    """A streamed response of each API is the response that it would have been."""
    url, asked, chunks = STREAMS[name]
    [told], problems = load(tmp_path / "some.yaml", interaction(url, asked, None, **stream(*chunks)))
    assert not problems.errors
    answer = told.messages[-1]
    assert (answer.text, answer.calls) == ("Look", (ToolCall("c1", "look", '{"at":1}'),))
    assert answer.call is not None
    assert (answer.call.model, answer.call.usage) == ("m", Usage(9, 3))


def bodies() -> Iterable[Any]:
    text = json.dumps({"model": "m", "choices": [{"message": {"role": "assistant", "content": "Yes"}}]})
    yield {"body": {"string": text}}
    yield {"body": {"string": gzip.compress(text.encode(), mtime=0)}}
    yield {"body": {"base64_string": base64.b64encode(text.encode()).decode()}}
    yield {"content": {"data": base64.b64encode(text.encode()).decode()}}
    yield {"parsed_body": json.loads(text)}


@pytest.mark.parametrize("body", list(bodies()))
def test_bodies(tmp_path: Path, body: dict[str, Any]) -> None:
    """A body may be text, compressed, base64, or parsed already."""
    asked = {"messages": [{"role": "user", "content": "Go"}]}
    [told], problems = load(tmp_path / "some.yml", interaction(CHAT, asked, None, **body))
    assert not problems.errors
    assert told.messages[-1].text == "Yes"


BOMB = "- [&a0 [x], " + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)) + "]\n"


@pytest.mark.parametrize(
    ("tail", "what"),
    [
        ("- request: {uri: [\n", "not YAML"),
        ("- request: !!int ''\n", "not YAML"),
        ("- &a [*a]\n", "over 20,000,000 values"),
        (BOMB, "over 20,000,000 values"),
    ],
)
def test_damaged_yaml(tmp_path: Path, tail: str, what: str) -> None:
    """What is no YAML, refers to itself, or stands for far more than its text is one clear error."""
    path = tmp_path / "some.yaml"
    path.write_text(f"interactions:\n- request: {{uri: 'x'}}\n  response: {{}}\n{tail}")
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    [error] = problems.errors
    assert what in error.what
    assert "looks for" not in error.what, "it is of this format"


WHOLE = yaml.safe_dump({"interactions": [chat([{"role": "user", "content": "é: One"}], "1", "r1")]}, allow_unicode=True)


@examples(200, ignored=HealthCheck)
@given(
    st.integers(0, len(WHOLE)), st.integers(0, 30), st.text(max_size=8) | st.sampled_from(["!!binary x", "? ", "&a *a"])
)
def test_any_change_of_a_cassette(at: int, cut: int, put: str) -> None:
    """Whatever stands in a cassette in YAML: only problems with its place, and sound conversations."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.yaml"
        path.write_text(WHOLE[:at] + put + WHOLE[at + cut :], encoding="utf-8", errors="surrogatepass")
        problems = Problems()
        for one in read(find([path], problems, "http"), problems):
            check(one, Place(str(path)))
        for error in problems.errors:
            assert error.place.file == str(path)
            str(error).encode()
