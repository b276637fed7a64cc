"""ATIF, the trajectory format of Harbor: a line per conversation. The file of one conversation is a trajectory.json.

Source: github.com/laude-institute/harbor, docs/rfcs/0001-trajectory-format.md (version 1.6). A step is a system prompt,
a user's message, or an answer together with the results of its tool calls; a result that stands elsewhere is written as
a user's message, for results belong to calls of their own step. So is a system message behind the first answer, which
would be an event of the system. Arguments are objects. Stop reasons stand in `extra`. The form has no times of
results, no starts of calls, names or cache marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ctxbench.scenarios.chat import arguments_object, chat_tool
from ctxbench.scenarios.model import Call, Conversation, Message, Usage

_VERSION = "ATIF-v1.6"
_UNKNOWN = "unknown"


def lines(conversation: Conversation) -> Iterator[bytes]:
    """Yield the conversation as one line."""
    agent: dict[str, Any] = {"name": _meta(conversation, "agent") or _UNKNOWN, "version": _UNKNOWN}
    if conversation.tools:
        agent["tool_definitions"] = [chat_tool(tool) for tool in conversation.tools]
    if parent := _meta(conversation, "parent"):
        agent["extra"] = {"parent_session_id": parent}
    record: dict[str, Any] = {"schema_version": _VERSION, "session_id": conversation.id, "agent": agent}
    record["steps"] = _steps(conversation.messages)
    if continued := _meta(conversation, "continued_in"):
        record["continued_trajectory_ref"] = continued
    if totals := _totals(conversation):
        record["final_metrics"] = totals
    yield msgspec.json.encode(record)


def _meta(conversation: Conversation, name: str) -> str:
    value = conversation.meta.get(name)
    return value if isinstance(value, str) else ""


def _steps(messages: Sequence[Message]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    answered, open_calls = False, set[str]()
    for message in messages:
        if message.role == "tool" and message.answers in open_calls:
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": message.answers, "content": message.text})
            continue
        answered = answered or message.role == "assistant"
        # Only of this step: a result that comes after another message belongs to no step any more.
        open_calls = {call.id for call in message.calls}
        step: dict[str, Any] = {"step_id": len(steps) + 1}
        if timestamp := _timestamp(message.time):
            step["timestamp"] = timestamp
        if message.role == "assistant":
            step |= {"source": "agent", "message": message.text, **_answer(message)}
        else:
            is_prompt = message.role == "system" and not answered
            step |= {"source": "system" if is_prompt else "user", "message": message.text}
        steps.append(step)
    return steps


def _answer(message: Message) -> dict[str, Any]:
    """Return what the step of an answer has beside its text."""
    call = message.call or Call()
    calls = [
        {"tool_call_id": made.id, "function_name": made.name, "arguments": arguments_object(made.arguments)}
        for made in message.calls
    ]
    fields = {
        "model_name": f"{call.provider}/{call.model}" if call.provider else call.model,
        "reasoning_effort": call.effort,
        "reasoning_content": message.thinking,
        "tool_calls": calls,
        "metrics": _metrics(call.usage or Usage()),
        "extra": {"stop_reason": call.stop} if call.stop else {},
    }
    return {name: value for name, value in fields.items() if value}


def _metrics(usage: Usage) -> dict[str, Any]:
    """Return a call's usage. `prompt_tokens` include those that were read from and written to a cache."""
    counts: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "cost_usd": usage.cost,
    }
    written: dict[str, Any] = {}  # under Anthropic's names
    if usage.cache_write is not None:
        written["cache_creation_input_tokens"] = usage.cache_write
    if usage.cache_write_1h is not None:
        written["cache_creation"] = {"ephemeral_1h_input_tokens": usage.cache_write_1h}
    if written:
        counts["extra"] = written
    return {name: count for name, count in counts.items() if count is not None}


def _totals(conversation: Conversation) -> dict[str, Any]:
    """Return `final_metrics`: the sums over all calls that report a count."""
    usages = [message.call.usage for message in conversation.messages if message.call and message.call.usage]
    sums: dict[str, list[int] | list[float]] = {
        "total_prompt_tokens": [usage.input for usage in usages if usage.input is not None],
        "total_completion_tokens": [usage.output for usage in usages if usage.output is not None],
        "total_cached_tokens": [usage.cache_read for usage in usages if usage.cache_read is not None],
        "total_cost_usd": [usage.cost for usage in usages if usage.cost is not None],
    }
    return {name: sum(counts) for name, counts in sums.items() if counts}


def _timestamp(time: float | None) -> str:
    """Return a time in ISO 8601, to the microsecond; empty if there is none, or none that a calendar has."""
    try:
        moment = None if time is None else datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return "" if moment is None else moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
