"""Services of a live strategy, in the shapes that chat programs expect: a model, an OpenAI client, counts, the clock.

Every request goes to the summariser of the run, whatever model it names, and is charged to the strategy. The summariser
writes text alone: a request for tools, a stream, a form or several replies is answered with status 400.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from ctxbench.scenarios.errors import MissingExtra

from .base import ModelError, Prompt, StrategyContext, StrategyTypeError
from .events import Failed

if TYPE_CHECKING:
    import httpx
    import openai

_UNSUPPORTED = ("tools", "functions", "response_format", "stream", "logprobs")
_INSTRUCTING = ("system", "developer")


class ChatServices:
    """The services of one live strategy in one conversation."""

    def __init__(self, context: StrategyContext) -> None:
        self.context = context
        """The services as strategies that are classes have them: exact tokens, embeddings, events."""

    def __getitem__(self, _: object) -> None:
        raise StrategyTypeError("@live gives a function services, and takes the step that it returns: leave it out")

    @property
    def conversation(self) -> str:
        """Id of the conversation."""
        return self.context.conversation

    @property
    def now(self) -> float | None:
        """Recorded time of this model call, in seconds since 1970; None if the recording has no times."""
        return self.context.now

    def complete(
        self, messages: str | Sequence[Mapping[str, Any]], max_tokens: int = 1024, temperature: float = 0.3
    ) -> str:
        """Return the summariser's reply to a prompt, or to message dicts. Raises ModelError.

        System messages are the instruction and the others its material, each under its role if there are several. The
        `offline` summariser extracts sentences from the material.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        systems = [content_text(message.get("content")) for message in messages if message.get("role") in _INSTRUCTING]
        others = [message for message in messages if message.get("role") not in _INSTRUCTING]
        texts = list[str]()
        for message in others:  # its text and, a line each, its tool calls
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            lines = [content_text(message.get("content")), *(f"{call['name']}({call['arguments']})" for call in calls)]
            texts.append("\n".join(filter(None, lines)))
        if len(others) > 1:
            texts = [f"{message.get('role')}: {text}" for message, text in zip(others, texts, strict=True)]
        instruction = "\n\n".join(systems)
        if "{conversation}" in instruction:  # a program's own placeholder, which is not to be filled
            texts, instruction = [instruction, *texts], ""
        material = tuple(line for text in texts for line in text.split("\n"))
        instruction = f"{instruction}\n\n{{conversation}}" if instruction else "{conversation}"
        try:
            return self.context.complete(Prompt(instruction, material, max_tokens, temperature=temperature))
        except ModelError as error:  # libraries catch it, and some send its text in place of a summary
            self.context.record(Failed("summary", str(error), "what the library does then"))
            raise

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text in the run's encoding."""
        return self.context.text_tokens(text)

    @cached_property
    def client(self) -> openai.OpenAI:
        """A client of OpenAI whose requests the summariser answers: `client.chat.completions.create(…)`."""
        client: openai.OpenAI = self._client("OpenAI", "Client")
        return client

    @cached_property
    def async_client(self) -> openai.AsyncOpenAI:
        """The same client for `await client.chat.completions.create(…)`."""
        client: openai.AsyncOpenAI = self._client("AsyncOpenAI", "AsyncClient")
        return client

    def _client(self, kind: str, transport: str) -> Any:
        """Return a client of OpenAI with a client of httpx. Raises MissingExtra."""
        if find_spec("openai") is None:
            raise MissingExtra("openai", "providers")
        import httpx
        import openai

        http_client = getattr(httpx, transport)(transport=httpx.MockTransport(self._respond))
        settings = {"api_key": "none", "base_url": "http://summariser/v1", "max_retries": 0}
        return getattr(openai, kind)(http_client=http_client, **settings)

    def _respond(self, request: httpx.Request) -> httpx.Response:
        """Return the response to a request for a chat completion, as OpenAI's API words it."""
        import httpx

        if request.url.path != "/v1/chat/completions":
            return httpx.Response(404, json=_error(f"{request.url.path}: the summariser has chat completions alone"))
        body = msgspec.json.decode(request.content)
        asked = [name for name in _UNSUPPORTED if body.get(name)] + ["n"] * (body.get("n") not in (None, 1))
        if asked:
            return httpx.Response(400, json=_error(f"the summariser has no {', '.join(asked)}: it writes text alone"))
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or 1024
        temperature = body.get("temperature")
        try:
            text = self.complete(body["messages"], limit, 0.3 if temperature is None else temperature)
        except ModelError as error:
            return httpx.Response(503, json=_error(str(error)))
        prompt_tokens = sum(self.count_tokens(content_text(message.get("content"))) for message in body["messages"])
        reply_tokens = self.count_tokens(text)
        completion = {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            # The recorded clock: the same call has the same response at every replay.
            "created": int(self.now or 0),
            "model": body.get("model", ""),
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": reply_tokens,
                "total_tokens": prompt_tokens + reply_tokens,
            },
        }
        return httpx.Response(200, json=completion)


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "summariser"}}


def content_text(content: Any) -> str:
    """Return a text, or the joined texts of content blocks; blocks of other kinds have none."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = [block if isinstance(block, str) else str(block.get("text") or "") for block in content]
    return "\n".join(text for text in texts if text)
