"""Requests to providers: any messages as OpenAI's chat completions or Anthropic's Messages API take them.

    {"model", "messages": [{"role", "content", "tool_calls", "tool_call_id"}], "tools"}
    {"model", "system": [{"type": "text", "text", "cache_control"}], "tools", "messages": [{"role", "content": […]}]}

Sources: platform.openai.com/docs/api-reference/chat, docs.anthropic.com/en/api/messages. OpenAI, DeepSeek and others of
that form cache prefixes by themselves, so cache marks stand in Anthropic's requests alone. These have system messages
at the start only: a later one is written as a user's. Tool results and the user's message behind them are one turn.
What was not recorded (`max_tokens`, which Anthropic requires, and the temperature) is left to whoever sends a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ctxbench.scenarios.chat import arguments_object, chat_message, chat_tool, schema_object
from ctxbench.scenarios.model import Conversation, Message, Tool

from ..folder.run import Run

NO_MARKS: Mapping[int, str] = {}


class Request(NamedTuple):
    """Request of a strategy at one step."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    marks: Sequence[int]
    """Places in `messages` that have a cache breakpoint after them."""
    model: str
    """The recorded model; empty where the recording does not say."""


def openai(request: Request) -> dict[str, Any]:
    """Return a request as the body of a chat completion."""
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = [chat_message(message) for message in request.messages]
    if request.tools:
        body["tools"] = [chat_tool(tool) for tool in request.tools]
    return body


def anthropic(request: Request) -> dict[str, Any]:
    """Return a request as the body of Anthropic's Messages API. It has no thinking: that takes the API's signatures."""
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    return body | anthropic_prompt(request.messages, request.tools, dict.fromkeys(request.marks, "5m"))


BODIES: Mapping[str, Callable[[Request], dict[str, Any]]] = {"openai": openai, "anthropic": anthropic}
"""Bodies of requests by the name of their form."""


def step_requests(run: Run, conversation: Conversation, strategy: str) -> Iterator[Request]:
    """Yield what a strategy sent at each step of a conversation."""
    contexts = run.contexts(conversation, strategy)
    for messages, row in zip(contexts, run.steps(conversation.id, strategy), strict=True):
        yield Request(
            messages, offered(conversation, row["tools_added"]), row["marks"], asked_model(conversation, row["at"])
        )


def offered(conversation: Conversation, added: Sequence[str]) -> tuple[Tool, ...]:
    """Return the recorded tools and those that a strategy added, given as JSON."""
    return (*conversation.tools, *(msgspec.json.decode(text, type=Tool) for text in added))


def asked_model(conversation: Conversation, said: int) -> str:
    """Return the model of the first recorded call after so many messages; empty if none is known."""
    calls = (message.call for message in conversation.messages[said:] if message.call is not None)
    return next((call.requested or call.model for call in calls), "")


AFTER_TOOLS = -1
"""Place of a cache mark that stands after the tools."""


def anthropic_prompt(
    messages: Sequence[Message], tools: Sequence[Tool], marks: Mapping[int, str] = NO_MARKS, *, thinking: bool = False
) -> dict[str, Any]:
    """Return `system`, `tools` and `messages`. `marks` has the lifetime of each cache breakpoint by its place."""

    def marked(at: int) -> list[dict[str, Any]]:
        blocks = anthropic_blocks(messages[at], thinking=thinking)
        if at in marks:
            # A mark stands on a block, so a message without any is given an empty one to carry it.
            blocks = blocks or [_text("")]
            blocks[-1] |= _control(marks[at])
        return blocks

    prompt: dict[str, Any] = {}
    opening = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    if system := [block for at in range(opening) for block in marked(at)]:
        prompt["system"] = system if len(system) > 1 or "cache_control" in system[0] else system[0]["text"]
    if tools:
        schemas = [
            {"name": tool.name, "description": tool.description, "input_schema": schema_object(tool)} for tool in tools
        ]
        if AFTER_TOOLS in marks:
            schemas[-1] |= _control(marks[AFTER_TOOLS])
        prompt["tools"] = schemas
    turns: list[dict[str, Any]] = []
    for at in range(opening, len(messages)):
        if turns and messages[at].role != "assistant" and messages[at - 1].role == "tool":
            turns[-1]["content"] += marked(at)
        else:
            role = "assistant" if messages[at].role == "assistant" else "user"
            turns.append({"role": role, "content": marked(at)})
    return prompt | {"messages": turns}


def anthropic_blocks(message: Message, *, thinking: bool) -> list[dict[str, Any]]:
    """Return the content blocks of a message."""
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    if message.role != "assistant":
        return [_text(message.text)]
    blocks: list[dict[str, Any]] = []
    if message.thinking and thinking:
        blocks.append({"type": "thinking", "thinking": message.thinking, "signature": ""})
    if message.text:
        blocks.append(_text(message.text))
    for call in message.calls:
        arguments = arguments_object(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return blocks


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _control(lifetime: str) -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral"} | ({} if lifetime == "5m" else {"ttl": lifetime})}
