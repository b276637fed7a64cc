"""Strategies of the OpenAI Agents SDK send what the SDK, called natively, would send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.adapters import openai_agents
from tests.strategies.adapters.native import Native, Seen, check_conversion, check_native, check_version, library


def test_a_conversion_loses_nothing() -> None:
    """Messages come back from items to the letter: ids, names, calls, arguments as they were written."""
    check_conversion(openai_agents.to_items, openai_agents.from_items)


def native_trimmer(conversation: Conversation) -> Callable[[int, int], Seen]:
    trimmer, config = library("agents.extensions.tool_output_trimmer"), library("agents.run_config")
    trim = trimmer.ToolOutputTrimmer(recent_turns=3, max_output_chars=100, preview_chars=20)

    def step(start: int, stop: int) -> Seen:
        items: list[Any] = []
        for message in conversation.messages[:stop]:
            if message.answers:
                items.append({"type": "function_call_output", "call_id": message.answers, "output": message.text})
            elif message.calls:
                (call,) = message.calls
                function = {"name": call.name, "arguments": call.arguments}
                items.append({"type": "function_call", "call_id": call.id, **function})
            else:
                items.append({"role": message.role, "content": message.text})
        data = config.ModelInputData(input=items, instructions=None)
        trimmed = trim(config.CallModelData(model_data=data, agent=None, context=None)).input
        return [
            ("assistant", "", (item["call_id"],), None)
            if item.get("type") == "function_call"
            else (item.get("role", "tool"), item.get("content", item.get("output")), (), item.get("call_id"))
            for item in trimmed
        ]

    return step


NATIVE: dict[str, Native] = {
    "openai_agents.tool_output_trimmer(recent_turns=3, max_output_chars=100, preview_chars=20)": native_trimmer,
}


@pytest.mark.parametrize("text", NATIVE)
def test_it_sends_what_the_library_would(text: str) -> None:
    """At every call the messages are those of the SDK that is called natively, and some call differs from all."""
    library("agents")
    check_native(text, NATIVE[text])


@pytest.mark.parametrize("text", NATIVE)
def test_a_run_notes_the_library_s_version(text: str) -> None:
    """The library stands beside the strategy with its version; without it there is one line that names the extra."""
    check_version(text)
