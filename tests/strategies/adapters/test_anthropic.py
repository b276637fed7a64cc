"""Message dicts as requests of Anthropic's API and back, and what all conversions share."""

from __future__ import annotations

from ctxbench.scenarios.chat import chat_message
from ctxbench.strategies import adapters
from ctxbench.strategies.adapters import anthropic
from tests.builders import answering, calling, talk
from tests.strategies.adapters.native import check_conversion, dicts


def test_a_conversion_loses_nothing() -> None:
    """Messages come back from Anthropic's blocks to the letter: ids, names, calls, arguments as they were written."""
    check_conversion(anthropic.to_anthropic, anthropic.from_anthropic)


def test_anthropic_s_requests_by_hand() -> None:
    """The first system message stands apart, calls are blocks, and a result and the user behind it are one turn."""
    said = talk(
        *(("system", "s"), ("user", "u"), calling("c", "x", text="t"), answering("r", "x", "42"), ("user", "v"))
    )
    request = anthropic.to_anthropic(dicts(said.messages))
    for block in (*request["system"], *(block for turn in request["messages"] for block in turn["content"])):
        del block["origin"]
    assert request == {
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "tool_use", "id": "x", "name": "tool", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "x", "content": "42"},
                    {"type": "text", "text": "v"},
                ],
            },
        ],
    }
    assert [message["role"] for message in anthropic.from_anthropic(request)] == [
        *("system", "user", "assistant", "tool", "user")
    ]
    assert anthropic.from_anthropic({"messages": [{"role": "user", "content": "hi"}]}) == [
        {"role": "user", "content": "hi"}
    ]


def test_a_change_of_a_library_is_seen() -> None:
    """Arguments that a library cleared come back as they are now, and not as they were recorded."""
    call = chat_message(calling("c", "x"))["tool_calls"][0]
    assert adapters.chat_call("tool", "x", {"a": 1}, [call]) == call
    assert adapters.chat_call("tool", "x", {}, [call])["function"]["arguments"] == "{}"
