"""Logged calls of model APIs: requests with their responses, on lines, in an array, or one in a file.

    {request, response}   OpenAI's chats and Responses, Gemini's contents, Bedrock's Converse, Ollama's chats; those of
                          one file that extend each other are one conversation
    {schemaType: "ModelInvocationLog", timestamp, requestId, modelId, operation,
      input: {inputBodyJson: request}, output: {outputBodyJson: response}}
                          Bedrock's log of invocations, which it writes to S3 and CloudWatch

Sources: the APIs' references, docs.aws.amazon.com/bedrock (model-invocation-logging), github.com/ollama/ollama
`docs/api.md`; tested on written examples alone. Requests and responses are read as those of `http.py`. Pairs of
Anthropic's are read by `anthropic_messages`, requests alone by `provider_requests`.

- The provider of a chat is not recorded: whoever speaks OpenAI's form may have answered.
- Bodies over 100 KB are objects of their own in S3 (`inputBodyS3Path`): such calls are counted in the notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from ..errors import Place
from ..source import Problems, decode, records
from . import Recordings, anywhere
from .exchanges import Exchange, anthropic_response
from .http import HttpExchanges
from .messages import iso_seconds
from .prompts import as_object
from .requests import LoggedRequest, conversations

_BEDROCK = "https://bedrock-runtime.amazonaws.com/model"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/models"


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """Requests to model APIs with their responses."""

    about: ClassVar[str] = "{request, response} logs of OpenAI, Gemini, Bedrock and Ollama; Bedrock's invocation log"
    shapes: ClassVar[tuple[frozenset[str], ...]] = anywhere(
        (".request", ".response", ".request.messages[].role", ".response.choices"),
        (".request", ".response", ".request.messages[].role", ".response.output.message.role", ".response.stopReason"),
        (".request", ".response", ".request.messages[].role", ".response.message.role", ".response.done"),
        (".request", ".response", ".request.contents", ".response.candidates"),
        (".request", ".response", ".request.input", ".response.output"),
        (".schemaType", ".modelId", ".input", ".output"),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            yield from conversations(_requests(path, problems), path.stem)


def _requests(path: Path, problems: Problems) -> Iterator[LoggedRequest]:
    recording = HttpExchanges(problems)
    for place, raw in records(path, problems):
        with problems.collect():
            record = decode(raw, dict[str, Any], place)
            exchange = _invocation(record, place) if "modelId" in record else _pair(record, place)
            if exchange is None:
                problems.unknown("api_calls: call without its request or its response", place)
            else:
                yield from recording.logged(exchange)


def _pair(record: dict[str, Any], place: Place) -> Exchange | None:
    request, response = as_object(record.get("request")), as_object(record.get("response"))
    names = place.below("request"), place.below("response")
    if not request or not response:
        return None
    model = quote(str(request.get("modelId") or request.get("model") or response.get("modelVersion") or ""))
    if "contents" in request:
        return _exchange(f"{_GEMINI}/{model}:generateContent", "generate", request, response, *names)
    if "input" in request:
        return _exchange("https://api.openai.com/v1/responses", "responses", request, response, *names)
    if "done" in response:
        asked = request.get("messages")
        request = {**request, "messages": [*map(_chat_message, asked)] if isinstance(asked, list) else asked}
        response = _chat_response(response)
    elif "choices" not in response:
        return _exchange(f"{_BEDROCK}/{model}/converse", "converse", request, response, *names)
    return _exchange("", "chat", request, response, *names)


def _invocation(record: dict[str, Any], place: Place) -> Exchange | None:
    """Return a call of Bedrock's log. The events of a streamed response are those of Anthropic's API."""
    request = as_object(as_object(record.get("input")).get("inputBodyJson"))
    names = place.below("input.inputBodyJson"), place.below("output.outputBodyJson")
    response = as_object(record.get("output")).get("outputBodyJson")
    if isinstance(response, list):
        response = anthropic_response([msgspec.json.encode(event) for event in response], names[1])
    if not request or not isinstance(response, dict):
        return None
    endpoint = "converse" if str(record.get("operation")).startswith("Converse") else "invoke"
    url, time = f"{_BEDROCK}/{quote(str(record['modelId']))}/{endpoint}", record.get("timestamp")
    started = iso_seconds(time, place.below("timestamp")) if isinstance(time, str) else None
    return _exchange(url, endpoint, request, response, *names, started)


def _exchange(
    url: str, endpoint: str, request: Any, response: Any, asked: Place, answered: Place, started: float | None = None
) -> Exchange:
    bodies = msgspec.json.encode(request), msgspec.json.encode(response)
    return Exchange(url, endpoint, *bodies, asked, answered, started, None)


def _chat_response(response: dict[str, Any]) -> dict[str, Any]:
    """Return Ollama's response in OpenAI's form."""
    counts = {"prompt_tokens": response.get("prompt_eval_count"), "completion_tokens": response.get("eval_count")}
    choice = {"message": _chat_message(response.get("message")), "finish_reason": response.get("done_reason")}
    return {"choices": [choice], "model": response.get("model") or "", "usage": counts}


def _chat_message(message: Any) -> Any:
    """Return a message of Ollama's in OpenAI's form: its images stand beside the text, its reasoning is `thinking`."""
    if not isinstance(message, dict):
        return message
    content, images = message.get("content"), message.get("images")
    if isinstance(images, list):
        shown = ({"type": "image_url", "image_url": {"url": f"data:;base64,{data}"}} for data in images)
        content = [{"type": "text", "text": content or ""}, *shown]
    return {**message, "content": content, "reasoning_content": message.get("thinking")}
