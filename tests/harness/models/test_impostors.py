"""One try is one request to one host: no redirect, no retry by a client below."""

from __future__ import annotations

import re

import pytest

from ctxbench.harness.models.provider import Provider
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.harness.models.settings import ModelAccess
from ctxbench.strategies.base import ModelError
from tests.harness.models.server import UNCLOSED, Server, serving

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


def ask(asked: Provider, model: str) -> None:
    if model in EMBEDDERS:
        asked.embed(model, ["secret words"])
    else:
        asked.chat(ModelRequest(model, "secret words", 0.0, 5))


@pytest.mark.parametrize("model", [*MODELS, *EMBEDDERS])
def test_a_redirect_is_not_followed(server: Server, other: Server, model: str) -> None:
    """A redirect of any provider and any kind leads nowhere: the other host hears nothing, and is not asked again."""
    for code in (302, 307):
        server.acts = [f"redirect {code} {other.url}/stolen?key=1"]
        asked = Provider(ModelAccess(server.url, retries=2, backoff=0.01))
        said = re.escape(f"{model}: the provider redirects ({code}) to {other.url}/stolen, which is not followed")
        for _ in range(2):
            with pytest.raises(ModelError, match=f"^{said}"):
                ask(asked, model)
    assert not other.seen
    assert len(server.seen) == 2


@pytest.mark.parametrize("model", [*MODELS, *EMBEDDERS])
def test_a_try_is_one_request(server: Server, model: str) -> None:
    """litellm and the clients below it try nothing again by themselves: such calls would be paid for unseen."""
    server.acts = ["status 500"] * 9
    with pytest.raises(ModelError):
        ask(Provider(ModelAccess(server.url, retries=0)), model)
    assert len(server.seen) == 1
