"""OpenAI Agents SDK: `ToolOutputTrimmer`, `OpenAIResponsesCompactionSession`; items of the Responses API.

The items need no library. Those of a message carry its id, which tells them from those of the next message.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from ..base import Prompt, texts
from ..functions import ChatDict, Step
from ..services import ChatServices
from . import adapter, chat_call, chat_dict, imported, of_all, system_apart

# Longest summary in place of what OpenAI writes, whose length is not documented.
_MAX_TOKENS = 1024


def to_items(messages: Iterable[ChatDict]) -> list[dict[str, Any]]:
    """Return message dicts as input items: messages, function calls and their outputs."""
    items: list[dict[str, Any]] = []
    for message in messages:
        named = {key: message[key] for key in ("id", "name") if key in message}
        if message["role"] == "tool":
            output = {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            items.append(named | output)
            continue
        calls = message.get("tool_calls", ())
        # An assistant's name has a place in its text's item alone.
        if message["content"] or "name" in message or not calls:
            items.append(named | {"role": message["role"], "content": message["content"]})
        for call in calls:
            identity = {"id": message["id"]} if "id" in message else {}
            items.append(identity | {"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def from_items(items: Iterable[dict[str, Any]]) -> list[ChatDict]:
    """Return input items as message dicts: an assistant's text and the calls behind it are one message.

    A compaction item is an assistant's message.
    """
    messages: list[ChatDict] = []
    for item in items:
        named = {"id": item.get("id")}
        match item.get("type", "message"):
            case "function_call_output":
                named |= {"name": item.get("name"), "tool_call_id": item["call_id"]}
                messages.append(chat_dict("tool", item["output"], **named))
            case "function_call":
                goes_on = messages and messages[-1]["role"] == "assistant" and messages[-1].get("id") == item.get("id")
                if not goes_on:
                    messages.append(chat_dict("assistant", "", **named))
                call = chat_call(item["name"], item["call_id"], item["arguments"])
                messages[-1].setdefault("tool_calls", []).append(call)
            case "compaction":
                messages.append(chat_dict("assistant", item["encrypted_content"]))
            case _:
                messages.append(chat_dict(item["role"], item["content"], name=item.get("name"), **named))
    return messages


@adapter()
def tool_output_trimmer(
    services: ChatServices, recent_turns: int = 2, max_output_chars: int = 500, preview_chars: int = 200
) -> Step:
    """Cut long tool results before the last `recent_turns` user messages to a preview (`ToolOutputTrimmer`)."""
    trimmer = imported("agents.extensions.tool_output_trimmer")
    config = imported("agents.run_config")
    trim = trimmer.ToolOutputTrimmer(recent_turns, max_output_chars, preview_chars)

    def trimmed(items: list[Any]) -> list[ChatDict]:
        data = config.ModelInputData(input=list(items), instructions=None)
        return from_items(trim(config.CallModelData(model_data=data, agent=None, context=None)).input)

    return of_all(trimmed, to_items)


@adapter()
def compaction_session(services: ChatServices, threshold: int = 10) -> Step:
    """Compact all but the user's messages (`OpenAIResponsesCompactionSession`).

    As in the SDK's runs: after an answer, once there are `threshold` others, of which calls, texts and results are one
    each. What OpenAI writes is encrypted: the run's summariser writes in its place.
    """
    agents = imported("agents")
    memory = imported("agents.memory")
    session = memory.OpenAIResponsesCompactionSession(
        "session",
        agents.SQLiteSession("session"),
        client=_compact_client(services),
        should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= threshold,
    )

    async def step(new: list[ChatDict]) -> list[ChatDict]:
        for message in new:
            await session.add_items(to_items([message]))
            if message["role"] == "assistant" and "tool_calls" not in message:
                await session.run_compaction()
        return from_items(await session.get_items())

    return system_apart(step)


def _compact_client(services: ChatServices) -> Any:
    """Return a client that has `responses.compact`: all user messages, and one item by the run's summariser."""

    async def compact(model: str, input: list[dict[str, Any]]) -> Any:
        instruction = texts("summary_prompt")["en"].replace("{limit}", str(_MAX_TOKENS))
        lines = list[str]()
        for item in input:
            call = (item.get(key) for key in ("name", "arguments", "content", "output", "encrypted_content"))
            lines.append(f"{item.get('role', item.get('type'))}: {' '.join(text for text in call if text)}")
        text = services.context.complete(Prompt(instruction, tuple(lines), _MAX_TOKENS))
        users = [item for item in input if item.get("role") == "user"]
        return SimpleNamespace(output=[*users, {"type": "compaction", "encrypted_content": text}])

    return SimpleNamespace(responses=SimpleNamespace(compact=compact))
