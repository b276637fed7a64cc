"""Requests to model APIs as plain files: OpenAI's Responses, Gemini's contents, Bedrock's Converse, Ollama's chats.

    {input: text | [{role, content} · {type: "function_call"} …], instructions, model, tools}
    {contents: [{role, parts: [{text} · {functionCall} · {functionResponse}]}], systemInstruction, tools}
    {messages: [{role, content: [{text} · {toolUse} · {toolResult}]}], system: [{text}], toolConfig: {tools}, modelId}
    {model, messages: [{role, content, images, tool_calls, tool_name}], tools, stream, options}

Sources: platform.openai.com/docs/api-reference/responses, ai.google.dev/api/caching#Content,
docs.aws.amazon.com/bedrock (API_runtime_Converse), github.com/ollama/ollama `docs/api.md`; tested on written examples
alone. A file is one request, an array of them, or one on each line; those that extend each other are one conversation.
Gemini's and Bedrock's lists of messages are read alone too. No usage and no times: requests with their responses are
read by `api_calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ..errors import Place
from ..source import Problems
from . import Recordings
from .prompts import LoggedCall, as_object, exchange
from .stored_chats import around, growing_chats

_LISTS = ("contents", "messages", "input")


@dataclass(frozen=True, slots=True)
class ProviderRequests:
    """Requests to OpenAI, Gemini, Bedrock and Ollama."""

    about: ClassVar[str] = "requests to OpenAI Responses, Gemini, Bedrock Converse and Ollama (plain JSON)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        *around(".role", ".parts", ".parts[].text", list_name="contents"),
        *(
            shape
            for part in ("toolUse.toolUseId", "toolResult.toolUseId")
            for shape in around(".role", ".content", f".content[].{part}")
        ),
        *(
            frozenset(f"{outer}{key}" for key in keys)
            for outer in ("", "[]")
            for keys in (
                (".model", ".input", ".instructions"),
                (".model", ".input", ".previous_response_id"),
                (".model", ".input", ".input[].role", ".tools"),
                (".model", ".input", ".input[].call_id"),
                (".messages", ".messages[].role", ".messages[].content[].text", ".modelId"),
                (".messages", ".messages[].role", ".messages[].content[].text", ".inferenceConfig"),
                (".messages", ".messages[].role", ".model", ".options", ".stream"),
                (".messages", ".messages[].role", ".messages[].images"),
                (".messages", ".messages[].role", ".messages[].tool_name"),
            )
        ),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        yield from growing_chats(files, problems, partial(_read, problems=problems), _LISTS)


def _read(record: Any, place: Place, problems: Problems) -> LoggedCall:
    request = {"contents": record} if isinstance(record, list) else record
    tools = as_object(request.get("toolConfig")).get("tools")
    return exchange(request, None, place, problems, "provider_requests", tools=tools, names=("", ""))
