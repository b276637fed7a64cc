"""Redirects to other hosts, and replies that name another model than was asked."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ctxbench.harness.models.cassette import Cassette
from ctxbench.harness.models.provider import Provider, is_same_model
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.strategies.base import ModelError
from tests.harness.command import ctxbench, said
from tests.harness.models.server import UNCLOSED, Server, serving
from tests.harness.runs import recording

pytestmark = UNCLOSED

MODELS = (
    "openai/m",
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-flash",
    "ollama/m",
    "ollama_chat/m",
    "azure/m",
    "mistral/m",
    "deepseek/m",
    "groq/m",
    "openrouter/m",
    "cohere/command-r",
    "text-completion-openai/m",
    "hosted_vllm/m",
    "huggingface/m",
)
"""Model names for each way that litellm has to a server: OpenAI's client, Azure's, and its own handlers."""
EMBEDDERS = ("openai/e", "azure/e", "ollama/e", "cohere/embed-v4.0", "mistral/e", "hosted_vllm/e")


@pytest.fixture
def other() -> object:
    """Another server, on another port."""
    with serving() as found:
        yield found


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "AZURE", "MISTRAL", "DEEPSEEK", "GROQ", "OPENROUTER", "COHERE"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-verysecret123")
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")


@pytest.mark.parametrize("model", MODELS)
def test_a_redirect_is_not_followed(server: Server, other: Server, model: str) -> None:
    """A redirect of any provider and any kind leads nowhere: the other host hears nothing, and is not asked again."""
    for code in (301, 302, 303, 307, 308):
        server.acts, asked = (
            [f"redirect {code} {other.url}/stolen?key=1"],
            Provider(server.url, retries=2, backoff=0.01),
        )
        said = re.escape(f"{model}: the provider redirects ({code}) to {other.url}/stolen, which is not followed")
        for _ in range(2):
            with pytest.raises(ModelError, match=f"^{said}"):
                asked.chat(ModelRequest(model, "secret words", 0.0, 5))
    assert not other.seen
    assert len(server.seen) == 5


@pytest.mark.parametrize("model", EMBEDDERS)
def test_a_redirect_of_embeddings_is_not_followed(server: Server, other: Server, model: str) -> None:
    """The same holds of embedding models."""
    for code in (302, 307):
        server.acts = [f"redirect {code} {other.url}/stolen"]
        with pytest.raises(ModelError, match="which is not followed"):
            Provider(server.url, retries=0).embed(model, ["secret words"])
    assert not other.seen
    assert len(server.seen) == 2


@pytest.mark.parametrize("model", [*MODELS, *EMBEDDERS])
def test_a_try_is_one_request(server: Server, model: str) -> None:
    """litellm and the clients below it try nothing again by themselves: such calls would be paid for unseen."""
    server.acts, asked = ["status 500"] * 9, Provider(server.url, retries=0)
    with pytest.raises(ModelError):
        asked.embed(model, ["x"]) if model in EMBEDDERS else asked.chat(ModelRequest(model, "x", 0.0, 5))
    assert len(server.seen) == 1


def test_a_redirect_on_the_same_host(server: Server) -> None:
    """A redirect within a server is an error as well, which names the address to give."""
    server.acts = ["redirect 308 /v2/chat/completions"]
    with pytest.raises(
        ModelError, match=r"redirects \(308\) to http://127.0.0.1:\d+/v2/chat/completions, .*--api-base"
    ):
        Provider(server.url, retries=0).chat(ModelRequest("openai/m", "x", 0.0, 5))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4", "gpt-4-0613"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("vertex_ai/claude-sonnet-4@20250514", "claude-sonnet-4-20250514"),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514"),
        ("mistral/mistral-large-latest", "mistral-large-2411"),
        ("gemini/gemini-2.0-flash", "gemini-2.0-flash-001"),
        ("openrouter/openai/gpt-4o:free", "openai/gpt-4o"),
        ("ollama/qwen3", "qwen3:latest"),
        ("azure/my-deployment", "gpt-4o-2024-08-06"),
        ("openai/m", ""),
    ],
)
def test_names_of_the_same_model(asked: str, named: str) -> None:
    """A provider's prefix, a date or a version make no other model; a deployment's name says nothing."""
    assert is_same_model(asked, named)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("openai/gpt-4o", "gpt-4o-mini"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
        ("openai/gpt-4.1", "gpt-4"),
        ("anthropic/claude-opus-4", "claude-opus-4-1-20250805"),
        ("ollama/qwen3:8b", "qwen3:0.6b"),
        ("deepseek/deepseek-v3", "deepseek-v2"),
        ("openrouter/auto", "openai/gpt-4o"),
    ],
)
def test_names_of_other_models(asked: str, named: str) -> None:
    """Another size, number or date is another model."""
    assert not is_same_model(asked, named)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_a_reply_by_another_model(server: Server, caplog: pytest.LogCaptureFixture, model: str) -> None:
    """The answer has the name of a model that was not asked, and it is logged once; of the model asked it has none."""
    asked, request = Provider(server.url), ModelRequest(model, "x", 0.0, 5)
    assert asked.chat(request).model == ""
    server.model = "evil-1\n"
    with caplog.at_level(logging.WARNING):
        assert [asked.chat(request).model for _ in range(2)] == ["evil-1"] * 2
    assert [record.getMessage() for record in caplog.records] == [f"{model}: its reply names another model: evil-1"]


def test_an_embedding_by_another_model(server: Server) -> None:
    """Vectors of a model that was not asked are marked."""
    assert not Provider(server.url).embed("openai/e", ["x"]).substituted
    server.model = "other"
    assert Provider(server.url).embed("openai/e", ["x"]).substituted


def test_a_run_with_replies_of_another_model(server: Server, tmp_path: Path) -> None:
    """The run counts them on its last line and in its manifest, and the cassette has the name."""
    path, server.model = recording(tmp_path, conversations=1), "other-model"
    words = ("run", path, "-s", "summary(threshold=8, every=8)", "--summariser", "openai/gpt-4o-mini")
    done = ctxbench(*words, "--cassette", "c", "--api-base", server.url, "-o", "r", cwd=tmp_path)
    times = len(server.seen)
    assert said(done.stderr)[-1].endswith(f"; {times} replies named another model than was asked")
    assert f'"substituted": {times}' in (tmp_path / "r" / "manifest.json").read_text()
    with Cassette(tmp_path / "c", read_only=True) as cassette:
        assert all(b'"model":"other-model"' in entry.reply for entry in cassette.entries())
