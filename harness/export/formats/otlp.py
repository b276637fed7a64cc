"""OTLP as JSON Lines, as OpenTelemetry's collector writes it to files: a trace per conversation, a line per span.

A span is a model call by the GenAI semantic conventions: `gen_ai.input.messages` has the whole prompt,
`gen_ai.output.messages` the answer, `gen_ai.tool.definitions` the tools, `gen_ai.usage.*` the tokens. Sources:
opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans, github.com/open-telemetry/opentelemetry-proto. What stands
behind the last answer was never sent, and has no span. Times are those of calls and answers alone.

Beside the conventions stand what instrumentations write: `gen_ai.usage.cost` (US dollars),
`gen_ai.request.reasoning_effort`, and the provider's `cache_control` on the parts and tools that have a cache mark.
Tokens written for an hour have no name but ours, `ctxbench.usage.cache_write_1h_input_tokens`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from ctxbench.scenarios.chat import decoded_object, schema_object
from ctxbench.scenarios.model import Call, Conversation, Message, Tool, Usage

_CLIENT = 3  # SPAN_KIND_CLIENT
_UNMARKED: Mapping[str, Any] = {}


def lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield a line per model call."""
    trace = hashlib.sha256(conversation.id.encode()).hexdigest()[:32]
    agent = conversation.meta.get("agent")
    prompt: list[msgspec.Raw] = []
    starts = _starts(conversation)
    seen: set[str] = set()  # readers count a call once, by its id
    for at, message in enumerate(conversation.messages):
        if at and message.role == "assistant":
            call = message.call or Call()
            tools = conversation.tools if call.tools is None else call.tools
            marks = {mark.after: {"cache_control": {"type": "ephemeral", "ttl": mark.ttl}} for mark in call.marks}
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": call.provider,
                "gen_ai.request.model": call.requested or call.model,
                "gen_ai.response.model": call.model,
                "gen_ai.response.id": "" if call.request_id in seen else call.request_id,
                "openai.response.service_tier": call.tier,
                "gen_ai.conversation.id": conversation.id,
                "gen_ai.agent.name": agent if isinstance(agent, str) else "",
                "gen_ai.request.reasoning_effort": call.effort,
                "gen_ai.response.finish_reasons": [call.stop] if call.stop else [],
                **_usage(call.usage or Usage()),
                "gen_ai.tool.definitions": _json(_definitions(tools, marks)) if tools else "",
                "gen_ai.input.messages": _json(
                    [
                        _message(sent, marks[sent.id]) if sent.id in marks else encoded
                        for sent, encoded in zip(conversation.messages, prompt, strict=False)
                    ]
                ),
                "gen_ai.output.messages": _json([{**_message(message), "finish_reason": call.stop}]),
            }
            seen.add(call.request_id)
            span = {
                "traceId": trace,
                "spanId": hashlib.sha256(f"{trace}/{at}".encode()).hexdigest()[:16],
                "name": f"chat {call.model}".rstrip(),
                "kind": _CLIENT,
                **_nanoseconds("startTimeUnixNano", starts[at]),
                **_nanoseconds("endTimeUnixNano", message.time),
                "attributes": [
                    {"key": key, "value": _typed(value)}
                    for key, value in attributes.items()
                    if value not in ("", None, [])
                ],
            }
            scope = {"scope": {"name": "ctxbench"}, "spans": [span]}
            yield msgspec.json.encode({"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]})
        # Encoded once: every later span repeats the message in its
        # prompt, and only those with a mark are encoded again.
        prompt.append(msgspec.Raw(msgspec.json.encode(_message(message))))


def _starts(conversation: Conversation) -> list[float | None]:
    """Return the start of each message's call, or None.

    Readers put the spans of a trace in the order of their starts: one that would change that order is left out, and so
    are all if the first call has none.
    """
    starts: list[float | None] = [None] * len(conversation.messages)
    latest: float | None = None
    for at, message in enumerate(conversation.messages):
        if not at or message.role != "assistant":
            continue
        start = message.call.started if message.call is not None else None
        if start is not None and start >= (latest or 0.0):
            starts[at] = latest = start
        elif latest is None:
            break
    return starts


def _message(message: Message, control: Mapping[str, Any] = _UNMARKED) -> dict[str, Any]:
    """Return a message with its parts. `control` is added to the last of them."""
    named = {"name": message.name} if message.name else {}
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.answers, "response": message.text, **named, **control}
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = []
    if message.thinking:
        parts.append({"type": "reasoning", "content": message.thinking})
    if message.text or not message.calls:
        parts.append({"type": "text", "content": message.text})
    for call in message.calls:
        arguments = _arguments(call.arguments)
        parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    parts[-1] |= control
    return {"role": message.role, "parts": parts, **named}


def _arguments(arguments: str) -> Any:
    """Return arguments as an object where its text follows from it, else as the text that was recorded."""
    value = decoded_object(arguments)
    return arguments if value is None or msgspec.json.encode(value).decode() != arguments else value


def _definitions(tools: Sequence[Tool], marks: Mapping[str | None, Mapping[str, Any]]) -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": schema_object(tool)}
        for tool in tools
    ]
    definitions[-1] |= marks.get(None, {})
    return definitions


def _usage(usage: Usage) -> dict[str, int | float | None]:
    """Return the attributes of a call's usage. Input tokens are all of the prompt, those read and written included."""
    return {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        "ctxbench.usage.cache_write_1h_input_tokens": usage.cache_write_1h,
        "gen_ai.usage.cost": usage.cost,
    }


def _json(value: Sequence[Any]) -> str:
    return msgspec.json.encode(value).decode()


def _typed(value: Any) -> dict[str, Any]:
    """Return an attribute's value in OTLP's typed form."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(one) for one in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _nanoseconds(name: str, time: float | None) -> dict[str, str]:
    """Return a span's time as OTLP has it: the digits of the nanoseconds since 1970."""
    return {} if time is None else {name: str(round(Fraction(time) * 10**9))}
