"""Anthropic's Messages API: a line per model call, `{"request": {system, tools, messages}, "response": {…}}`.

Source: docs.anthropic.com/en/api/messages. Each request repeats the messages before it, as requests do, and the
response has model, usage and stop reason of its call; cache marks stand on the blocks of the request. Answers of which
nothing was recorded have no line: where the last lines leave something out, a line with the whole conversation as one
request ends it. So a conversation without recorded calls is one line.

The form has a system prompt at the start alone: a later system message is written as a user's. It has no conversation
id, names, times or costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ctxbench.scenarios.chat import arguments_object, schema_object
from ctxbench.scenarios.model import Call, Conversation, Message, Tool, Usage

# Settings as the reader joins them: `enabled 2048`, `adaptive high`, `high`.
_EFFORT = re.compile(r"(?:(enabled|disabled|adaptive)(?: ([1-9]\d{0,8}))?(?: |$))?(.*)", re.DOTALL)


def lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield a line per model call of which something was recorded, and one for what these leave out."""
    messages = conversation.messages
    turns = _Turns(messages)
    tools: tuple[Tool, ...] | None = None
    written = 0
    for at, message in enumerate(messages):
        if not at or message.role != "assistant" or message.call is None:
            continue
        call = message.call
        tools = conversation.tools if call.tools is None else call.tools
        marks = {mark.after: mark.ttl for mark in call.marks}
        request = turns.request(at, tools, marks) | _effort(call.effort)
        if call.model:
            request["model"] = call.model
        yield msgspec.json.encode({"request": request, "response": _response(message, call)})
        written = at + 1
    if written < len(messages) or tools != conversation.tools:
        yield msgspec.json.encode(turns.request(len(messages), conversation.tools, {}))


class _Turns:
    """The turns of a conversation: tool results and the user's message behind them are one turn."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._system = messages[0] if messages[0].role == "system" and messages[0].text else None
        self._turns: list[list[Message]] = []
        self._stops: list[int] = []
        for at, message in enumerate(messages):
            if message is self._system:
                continue
            if message.role != "assistant" and self._turns and self._turns[-1][-1].role == "tool":
                self._turns[-1].append(message)
                self._stops[-1] = at + 1
            else:
                self._turns.append([message])
                self._stops.append(at + 1)
        # Requests repeat each other: a turn without a cache mark is encoded once.
        self._encoded = [msgspec.Raw(msgspec.json.encode(_turn(turn, {}))) for turn in self._turns]

    def request(self, stop: int, tools: Sequence[Tool], marks: Mapping[str | None, str]) -> dict[str, Any]:
        """Return the request with the messages before `stop`. `marks` has the lifetimes of its cache breakpoints."""
        request: dict[str, Any] = {}
        if self._system is not None:
            marked = self._system.id in marks
            block = _text(self._system.text) | _control(self._system.id, marks)
            request["system"] = [block] if marked else self._system.text
        if tools:
            schemas = [
                {"name": tool.name, "description": tool.description, "input_schema": schema_object(tool)}
                for tool in tools
            ]
            schemas[-1] |= _control(None, marks)
            request["tools"] = schemas
        request["messages"] = [
            _turn(turn, marks) if any(message.id in marks for message in turn) else encoded
            for turn, encoded, end in zip(self._turns, self._encoded, self._stops, strict=True)
            if end <= stop
        ]
        return request


def _turn(messages: Sequence[Message], marks: Mapping[str | None, str]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    for message in messages:
        blocks = _blocks(message)
        if blocks or message.id in marks:
            # A mark stands on a block, so a message without any is given an empty one to carry it.
            blocks = blocks or [_text("")]
            blocks[-1] |= _control(message.id, marks)
        content += blocks
    return {"role": "assistant" if messages[0].role == "assistant" else "user", "content": content}


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    if message.role != "assistant":
        return [_text(message.text)]
    blocks: list[dict[str, Any]] = []
    if message.thinking:
        blocks.append({"type": "thinking", "thinking": message.thinking, "signature": ""})
    if message.text:
        blocks.append(_text(message.text))
    for call in message.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call.arguments)}
        blocks.append(block)
    return blocks


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _control(after: str | None, marks: Mapping[str | None, str]) -> dict[str, Any]:
    """Return the `cache_control` of a block, if a breakpoint stands behind it."""
    if after not in marks:
        return {}
    lifetime = {} if marks[after] == "5m" else {"ttl": marks[after]}
    return {"cache_control": {"type": "ephemeral"} | lifetime}


def _effort(effort: str) -> dict[str, Any]:
    """Return the settings of the request that stand for a recorded reasoning effort."""
    match = _EFFORT.fullmatch(effort)
    # "enabled 2048" is thinking with a budget, "adaptive high" thinking with an effort, "high" an effort alone.
    kind, budget, word = match.groups() if match else (None, None, effort)
    settings: dict[str, Any] = {}
    if kind:
        settings["thinking"] = {"type": kind} | ({"budget_tokens": int(budget)} if budget else {})
    if word:
        settings["output_config"] = {"effort": word}
    return settings


def _response(message: Message, call: Call) -> dict[str, Any]:
    response: dict[str, Any] = {"type": "message", "role": "assistant", "content": _blocks(message)}
    if call.model:
        response["model"] = call.model
    if call.stop:
        response["stop_reason"] = call.stop
    if call.usage is not None:
        response["usage"] = _usage(call.usage)
        if len(call.iterations) > 1:
            response["usage"]["iterations"] = [
                {"type": "message"} | _usage(iteration.usage)
                if not iteration.model
                else {"type": "advisor_message", "model": iteration.model} | _usage(iteration.usage)
                for iteration in call.iterations
            ]
    return response


def _usage(usage: Usage) -> dict[str, Any]:
    """Return token counts under Anthropic's names: `input_tokens` are those that were neither read nor written."""
    counts: dict[str, Any] = {
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
    }
    if usage.input is not None:
        counts["input_tokens"] = usage.input - (usage.cache_read or 0) - (usage.cache_write or 0)
    if usage.cache_write_1h is not None:
        counts["cache_creation"] = {"ephemeral_1h_input_tokens": usage.cache_write_1h}
    return {name: count for name, count in counts.items() if count is not None}
