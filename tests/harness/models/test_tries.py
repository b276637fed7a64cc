"""One try is one request to one host; quota that is used up, too many requests, and waits that cannot be."""

import json
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


OPENAI, ANTHROPIC, GEMINI = "openai/m", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"


def provider(server: Server, retries: int = 2, backoff: float = 0.01) -> Provider:
    return Provider(ModelAccess(server.url, timeout=5.0, retries=retries, backoff=backoff))


def error(http: int, message: str, **more: object) -> str:
    """An error as most providers send it."""
    return f"error {http} {json.dumps({'error': {'message': message, **more}})}"


def gemini(period: str) -> str:
    """An error of Gemini, whose violated quota is of a day or of a minute."""
    quota = f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier"
    violations = [{"quotaMetric": "generate_content_free_tier_requests", "quotaId": quota, "quotaValue": "20"}]
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}]
    exceeded = "You exceeded your current quota, please check your plan and billing details."
    return error(429, exceeded, code=429, status="RESOURCE_EXHAUSTED", details=details)


@pytest.mark.parametrize(
    ("model", "act"),
    [
        (OPENAI, error(429, "You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota")),
        (OPENAI, error(400, "Billing hard limit has been reached", type="x", code="billing_hard_limit_reached")),
        (OPENAI, error(402, "Insufficient Balance", type="unknown_error", code="invalid_request_error")),
        (OPENAI, error(403, "Your team has either used all available credits or reached its monthly spending limit.")),
        (ANTHROPIC, error(400, "Your credit balance is too low to access the Anthropic API.", type="invalid_request")),
        (GEMINI, gemini("Day")),
    ],
)
def test_quota_that_is_used_up(server: Server, model: str, act: str) -> None:
    """It is known by status, code or body, said in one line, not tried again, and nor is any other call."""
    server.acts, asked = [act] * 9, provider(server)
    for _ in range(3):
        with pytest.raises(
            ModelError, match=rf"^{model}: the provider's account has no credit or quota left \(\d+\): "
        ):
            asked.chat(ModelRequest(model, "x", 0.0, 5))
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("model", "act"),
    [
        (OPENAI, error(429, "Rate limit reached for requests", type="requests", code="rate_limit_exceeded")),
        (ANTHROPIC, error(429, "This request would exceed your rate limit", type="rate_limit_error")),
        (GEMINI, gemini("Minute")),
        (OPENAI, error(500, "insufficient_quota", code="insufficient_quota")),
    ],
)
def test_quota_that_comes_back(server: Server, model: str, act: str) -> None:
    """Too many requests in a minute, and a server's own failure, are tried again."""
    server.acts = [act] * 3
    with pytest.raises(ModelError, match=r"\(3 tries\)$"):
        provider(server).chat(ModelRequest(model, "x", 0.0, 5))
    assert len(server.seen) == 3


@pytest.mark.parametrize("wait", ["nan", "inf", "-5", "soon", "", "Mon, 01 Jan 2035 00:00:00 GMT"])
def test_a_wait_that_cannot_be(server: Server, wait: str) -> None:
    """The provider is asked again after the back-off, as if it had said nothing."""
    server.acts = [f"wait {wait}"]
    assert provider(server, backoff=0.3).chat(ModelRequest(OPENAI, "x", 0.0, 5)).text == "a summary"
    first, second = (seen["at"] for seen in server.seen)
    assert 0.3 <= second - first < 3
