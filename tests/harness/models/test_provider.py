"""Calling a provider: against a real OpenAI-compatible server that misbehaves."""

import json
import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from msgspec.structs import replace

from ctxbench.harness.models.provider import Provider
from ctxbench.harness.models.recorded import ModelAnswer, ModelRequest
from ctxbench.harness.models.settings import ModelAccess
from ctxbench.metrics.prices import TokenUsage
from ctxbench.strategies.base import ModelError
from tests.harness.models.server import UNCLOSED, Server

pytestmark = UNCLOSED
ASK = ModelRequest("openai/m", "Summarise this.", 0.3, 50)


def provider(server: Server, **given: float) -> Provider:
    """A client of the server that does not wait long."""
    return Provider(ModelAccess(server.url, **{"timeout": 5.0, "retries": 2, "backoff": 0.01, **given}))  # type: ignore[arg-type]


def test_an_answer(server: Server) -> None:
    """The request has the model's bare name, the text and both parameters; the answer has text, usage and its end."""
    assert provider(server).chat(ASK) == ModelAnswer("a summary", TokenUsage(1000, 100), "stop")
    (seen,) = server.seen
    assert seen["path"] == "/v1/chat/completions"
    assert {key: seen[key] for key in ("model", "messages", "temperature", "max_tokens")} == {
        "model": "m",
        "messages": [{"role": "user", "content": "Summarise this."}],
        "temperature": 0.3,
        "max_tokens": 50,
    }


def test_a_server_of_ones_own_is_sent_the_schema(server: Server) -> None:
    """llama.cpp, vLLM and Ollama hold a reply to it, whatever the model is called; litellm's map knows none of them."""
    schema = {"type": "object", "properties": {"verdict": {"type": "string"}}}
    provider(server).chat(replace(ASK, schema=schema))
    (seen,) = server.seen
    assert seen["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("status 500 on fire", r"openai/m: on fire \(500\) \(3 tries\)"),
        ("wait 0", r"openai/m: too many requests for the provider \(429\), which asks to wait 0 s \(3 tries\)"),
        ("cut", r"openai/m: the connection failed or broke off: .* \(3 tries\)"),
        ("truncated", r"openai/m: .*Unterminated string.* \(3 tries\)"),
        ("choices", r"openai/m: answered with no choices \(3 tries\)"),
        ("html", r"openai/m: .*invalid response.*<html>.* \(3 tries\)"),
    ],
)
def test_what_never_passes_is_one_clear_error(server: Server, act: str, says: str) -> None:
    """After all tries the error names the model, what happened and how often, in one line."""
    server.acts, asked = [act] * 5, provider(server)
    with pytest.raises(ModelError, match=says) as caught:
        asked.chat(ASK)
    assert "\n" not in str(caught.value)
    assert asked.chat(ASK).text == "a summary"  # what fails twice and then passes has answered


def test_retry_after_is_kept(server: Server) -> None:
    """A provider that says how many seconds to wait is not asked before that."""
    server.acts = ["wait 0.4"]
    provider(server).chat(ASK)
    assert server.seen[1]["at"] - server.seen[0]["at"] >= 0.4


def test_a_long_wait_is_given_up(server: Server) -> None:
    """A provider that asks for more than the patience is not waited for."""
    server.acts = ["wait 3600"]
    with pytest.raises(ModelError, match=r"too many requests .* asks to wait 3600 s$"):
        provider(server).chat(ASK)
    assert len(server.seen) == 1


@pytest.mark.parametrize("act", ["hang", "drip", "headers"])
def test_the_time_out_is_of_the_whole_call(server: Server, act: str) -> None:
    """A server that says nothing, or a byte now and then, is given up after the time-out, and tried again."""
    server.acts = [act, act]
    began = time.monotonic()
    with pytest.raises(ModelError, match=r"openai/m: no answer within 0.4 s \(2 tries\)"):
        provider(server, timeout=0.4, retries=1).chat(ASK)
    assert 0.8 <= time.monotonic() - began < 3
    while any(thread.name == "ctxbench model call" for thread in threading.enumerate()):
        assert time.monotonic() - began < 4, "a thread is left"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("act", "why"), [("flood", "answered with over 0 MiB"), ("packed", "answers compressed (gzip)")]
)
def test_a_reply_without_end(server: Server, monkeypatch: pytest.MonkeyPatch, act: str, why: str) -> None:
    """A reply that is too large, or that could unpack to anything, ends the call, and may have been charged."""
    monkeypatch.setattr("ctxbench.harness.models.provider.LARGEST_REPLY", 100_000)
    server.acts = [act]
    with pytest.raises(ModelError, match=re.escape(why)):
        provider(server, retries=0).chat(ASK)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """A refused key is said without the key, which was not sent to this host; no other call is made with it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret123")
    server.acts = [f"status {status} Incorrect API key provided: sk-verysecret123"] * 9
    asked = provider(server)
    for _ in range(3):
        with pytest.raises(ModelError) as caught:
            asked.chat(ASK)
        assert str(caught.value) == (
            f"openai/m: the provider refused the key ({status}): {server.url} is sent the key of a variable that is "
            "named for it: MODEL(api_key_env='NAME')"
        )
    assert len(server.seen) == 1
    assert "sk-verysecret123" not in str(server.seen)


def test_a_request_that_the_provider_refuses(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 400 is not tried again, and is told in the provider's words, without anything secret; the next call is."""
    monkeypatch.setenv("SOME_API_KEY", "hush-hush-hush")
    server.acts = ["status 400 context too long for Bearer abc123 and hush-hush-hush at http://me:pw@host/"]
    asked = provider(server)
    with pytest.raises(
        ModelError, match=r"^openai/m: context too long for \*\*\* and \*\*\* at http://\*\*\*host/ \(400\)$"
    ):
        asked.chat(ASK)
    assert asked.chat(ASK).text == "a summary"


def test_a_model_that_nobody_has(server: Server) -> None:
    """An unknown model is said once and not asked for again; a provider that litellm does not know is refused too."""
    server.acts = ["status 404 no such model"]
    asked = provider(server)
    for _ in range(2):
        with pytest.raises(ModelError, match=r"no such model at the provider, or the api base is wrong \(404\)"):
            asked.chat(ASK)
    assert len(server.seen) == 1
    with pytest.raises(ModelError, match="LLM Provider NOT provided"):
        asked.chat(ModelRequest("nobody/m", "x", 0, 1))


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"content": ""}, ModelAnswer("", None, "stop")),
        ({"content": None}, ModelAnswer("", None, "stop")),
        ({"content": None, "refusal": "I will not."}, ModelAnswer("", None, "stop", "I will not.")),
    ],
)
def test_an_empty_answer_is_an_answer(server: Server, message: dict[str, object], answer: ModelAnswer) -> None:
    """No text, and a refusal, come back as what they are: they were paid for. Unreported usage is None, not 0."""
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]}
    server.acts = [f"reply {json.dumps(body)}"]
    assert provider(server).chat(ASK) == answer
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4},
        {"prompt_tokens": 1 << 60, "completion_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6, "prompt_tokens_details": {"cached_tokens": 6}},
    ],
)
def test_a_usage_that_cannot_be(server: Server, usage: dict[str, Any]) -> None:
    """Negative or absurd counts, and more read than sent, count as not reported."""
    server.usage = usage
    assert provider(server).chat(ASK).usage is None


def test_calls_at_once(server: Server) -> None:
    """Never more calls than the limit are open, whatever the number of threads."""
    server.pause, asked = 0.05, provider(server, parallel=2)
    threads = [threading.Thread(target=asked.chat, args=(ASK,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.seen) == 8
    assert server.most_at_once == 2


def test_no_other_network(server: Server) -> None:
    """Importing litellm and calling a model looks up no name and connects to nothing but the server."""
    program = """
import socket, sys
seen, connect, look_up = [], socket.socket.connect, socket.getaddrinfo
socket.socket.connect = lambda self, to: (seen.append(to), connect(self, to))[1]
socket.getaddrinfo = lambda host, *a, **k: (seen.append((host, a[0])), look_up(host, *a, **k))[1]
from ctxbench.harness.models.provider import Provider
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.harness.models.settings import ModelAccess
print(Provider(ModelAccess(sys.argv[1])).chat(ModelRequest("openai/m", "x", 0.3, 5)).text)
print({host for host, *_ in (to for to in seen if isinstance(to, tuple))})
"""
    done = subprocess.run([sys.executable, "-c", program, server.url], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["a summary", "{'127.0.0.1'}"]
    assert done.stderr == ""


@pytest.mark.parametrize("act", ["status 500 on fire", "close"])
def test_what_fails_twice_is_given_up(server: Server, act: str) -> None:
    """After two calls in a row whose every try failed, a model is not called any more; others are."""
    server.acts = [act] * 6
    asked = provider(server)
    for _ in range(2):
        with pytest.raises(ModelError, match=r"\(3 tries\)$"):
            asked.chat(ASK)
    with pytest.raises(ModelError, match=r"^openai/m: was given up for the rest of the run: ") as caught:
        asked.chat(ASK)
    assert "tries" not in str(caught.value)
    assert len(server.seen) == 6
    assert asked.embed("openai/e", ["one"])[0] == [[3.0, 1.0]]


def test_what_is_not_there_is_given_up_at_once() -> None:
    """Where no connection can be made, the first call is the last that is tried."""
    asked = Provider(ModelAccess("http://127.0.0.1:9/v1", retries=1, backoff=0.2))
    with pytest.raises(ModelError, match=r"the connection failed .* \(2 tries\)$"):
        asked.chat(ASK)
    began = time.monotonic()
    with pytest.raises(ModelError, match="was given up for the rest of the run: the connection failed"):
        asked.chat(ASK)
    assert time.monotonic() - began < 0.1
