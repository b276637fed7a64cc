"""Logged prompts and answers: one conversation, in the form of every framework."""

import json
from typing import Any

import pytest

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Mark, Message
from ctxbench.scenarios.readers.prompts import exchange
from ctxbench.scenarios.readers.requests import LoggedCall
from ctxbench.scenarios.source import Problems
from tests.scenarios.readers.traces import CALLED, LATER, SAID


def read(prompt: Any, answer: Any = None, **more: Any) -> tuple[LoggedCall, list[str]]:
    problems = Problems()
    made = exchange(prompt, answer, Place("f", 1, "span"), problems, "test", **more)
    problems.note_unknown()
    return made, problems.notes


CHAT = {"messages": LATER}
PARTS = [
    {"role": "system", "parts": [{"type": "text", "content": "Be short."}]},
    {"role": "user", "parts": [{"type": "text", "content": "What is it?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "t1", "name": "look", "arguments": {"at": 1}}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "t1", "result": "a cat"}]},
]
BLOCKS = {
    "system": [{"type": "text", "text": "Be short."}],
    "messages": [
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a cat"}]},
    ],
}
ITEMS = {
    "instructions": "Be short.",
    "input": [
        {"role": "user", "content": "What is it?"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "t1", "id": "fc", "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call_output", "call_id": "t1", "output": "a cat"},
    ],
}
CONTENTS = {
    "config": {"system_instruction": "Be short."},
    "contents": [
        {"role": "user", "parts": [{"text": "What is it?"}]},
        {"role": "model", "parts": [{"function_call": {"id": "t1", "name": "look", "args": {"at": 1}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "t1", "response": {"output": "a cat"}}}]},
    ],
}
LANGCHAIN = [
    [
        {"lc": 1, "id": ["langchain", "SystemMessage"], "kwargs": {"content": "Be short.", "type": "system"}},
        {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "What is it?"}},
        {
            "lc": 1,
            "id": ["langchain", "AIMessage"],
            "kwargs": {"content": "", "tool_calls": [{"id": "t1", "name": "look", "args": {"at": 1}}]},
        },
        {"lc": 1, "id": ["langchain", "ToolMessage"], "kwargs": {"content": "a cat", "tool_call_id": "t1"}},
    ]
]
TYPED = [
    {"type": "system", "data": {"content": "Be short."}},
    {"type": "human", "content": "What is it?"},
    {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": CALLED["tool_calls"]}},
    {"type": "tool", "content": "a cat", "tool_call_id": "t1"},
]
VERCEL = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "t1", "toolName": "look", "input": {"at": 1}}],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "t1", "output": {"type": "text", "value": "a cat"}}],
    },
]
BEDROCK = {
    "system": [{"text": "Be short."}],
    "messages": [
        {"role": "user", "content": [{"text": "What is it?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "a cat"}]}}]},
    ],
}
NESTED = [
    {"message": {"role": "system", "content": "Be short."}},
    {"message": {"role": "user", "contents": [{"message_content": {"type": "text", "text": "What is it?"}}]}},
    {"message": {"role": "assistant", "tool_calls": [{"tool_call": CALLED["tool_calls"][0]}]}},  # type: ignore[index]
    {"message": {"role": "tool", "tool_call_id": "t1", "content": "a cat"}},
]


@pytest.mark.parametrize(
    "prompt", [CHAT, LATER, json.dumps(CHAT), PARTS, BLOCKS, ITEMS, CONTENTS, LANGCHAIN, TYPED, VERCEL, BEDROCK, NESTED]
)
def test_every_form_of_a_prompt(prompt: Any) -> None:
    """The same four messages come out of each: system, user, a tool call, its result."""
    made, notes = read(prompt)
    assert not notes
    assert [(message.role, message.text) for message in made.messages] == [
        ("system", "Be short."),
        ("user", "What is it?"),
        ("assistant", ""),
        ("tool", "a cat"),
    ]
    assert [message.id for message in made.messages] == ["m0", "m1", "m2", "m3"]
    [call] = made.messages[2].calls
    assert (call.id, call.name, call.arguments, made.messages[3].answers) == ("t1", "look", '{"at":1}', "t1")


@pytest.mark.parametrize(
    "answer",
    [
        SAID,
        [SAID, {"role": "assistant", "content": "another choice"}],
        "A cat.",
        {"choices": [{"finish_reason": "stop", "message": SAID}]},
        {"output": [{"type": "reasoning"}, {"type": "message", "role": "assistant", "content": [{"text": "A cat."}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "A cat."}]}}]},
        {"generations": [[{"text": "", "message": {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "A cat."}}}]]},
        {"content": {"parts": [{"text": "A cat."}], "role": "model"}, "finish_reason": "STOP"},
        [{"message": {"role": "assistant", "content": "A cat."}}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "A cat."}], "finish_reason": "stop"}],
    ],
)  # fmt: skip
def test_every_form_of_an_answer(answer: Any) -> None:
    """The first choice of a response is the answer, with the next id."""
    made, notes = read("What is it?", answer)
    assert not notes
    assert made.answer == Message("m1", "assistant", "A cat.")


def test_a_response_repeats_what_its_request_had() -> None:
    """The instructions and tools of OpenAI's responses count where the prompt has none; schemas have many forms."""
    tool = {"name": "look", "type": "function", "parameters": {"type": "object"}}
    made, _ = read([{"role": "user", "content": "Hi"}], {"output": [], "instructions": "Be short.", "tools": [tool]})
    assert [message.text for message in made.messages] == ["Be short.", "Hi"]
    forms = [
        {"function": tool},
        json.dumps(tool),
        {"tool": {"json_schema": json.dumps(tool)}},
        {"function_declarations": [tool]},
        {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}},
    ]
    assert all(read("Hi", tools=[form])[0].tools == made.tools for form in forms)


def test_calls_without_an_id_are_answered_in_their_order() -> None:
    """A call gets an id of its place, and a result without one answers the oldest call that is still open."""
    calls = [{"function_call": {"name": "a", "args": {}}}, {"function_call": {"name": "b", "args": {}}}]
    results = [{"function_response": {"name": name, "response": {"output": name}}} for name in "ab"]
    made, _ = read({"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]})
    assert [call.id for call in made.messages[0].calls] == ["m0c0", "m0c1"]
    assert [(message.text, message.answers) for message in made.messages[1:]] == [("a", "m0c0"), ("b", "m0c1")]


def test_an_answer_of_another_role_is_noted() -> None:
    """Only what the assistant says is an answer: a note counts any other message in its place."""
    made, notes = read(CHAT, {"choices": [{"message": {"role": "user", "content": "Hi"}}]})
    assert (made.answer, notes) == (None, ["test: answer of role 'user': 1 not read (f:1: span.answer)"])


def test_thinking_images_and_unknown_parts() -> None:
    """Thinking stands apart, so do images, and a part that has no text is named in the notes."""
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "image"}, {"type": "smell", "url": "x"}, {"text": "ok"}]
    made, notes = read([{"role": "assistant", "content": parts}])
    [message] = made.messages
    assert (message.text, message.thinking, len(message.media)) == ("ok", "hm", 1)
    assert notes == ["test: part of type 'smell': 1 not read (f:1: span.prompt[0].content[2])"]


def test_cache_marks() -> None:
    """A breakpoint stands after its message, or the result of a tool; one of the tools stands before all messages."""
    control = {"type": "ephemeral", "ttl": "1h"}
    text = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "b", "cache_control": control}
    prompt = {
        "system": [text],
        "tools": [{"name": "look", "cache_control": control}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, {"type": "text", "text": "c"}]},
        ],
    }
    made, _ = read(prompt)
    assert [message.role for message in made.messages] == ["system", "user", "assistant", "tool", "user"]
    assert made.marks == (Mark(None, "1h"), Mark("m0"), Mark("m3", "1h"))


def test_the_items_of_a_reply_are_one_message() -> None:
    """Reasoning, text and calls between two inputs were one answer; chat messages stay apart."""
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]}
    call = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"}
    made, _ = read([{"role": "user", "content": "Hi"}, text, call])
    assert [(message.role, message.text, len(message.calls)) for message in made.messages] == [
        ("user", "Hi", 0),
        ("assistant", "Looking.", 1),
    ]
    made, _ = read([SAID, SAID])
    assert len(made.messages) == 2


@pytest.mark.parametrize(
    ("prompt", "what"),
    [
        ([{"role": 7, "content": "x"}], "f:1: span.prompt[0].role: unknown role '7'"),
        (
            [{"role": "user", "tool_calls": [{"name": "x"}]}],
            "f:1: span.prompt[0]: a message of role 'user' calls tools",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "x"}]}],
            "f:1: span.prompt[0].tool_calls[0]: a tool call without",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": 7}]}]}],
            "f:1: span.prompt[0].content[0].content[0].text: expected str, got int",
        ),
    ],
)
def test_what_is_no_prompt(prompt: Any, what: str) -> None:
    """An error names file, line and field."""
    with pytest.raises(RecordingError) as error:
        read(prompt)
    assert str(error.value).startswith(what)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "redacted_thinking", "data": "x"},
        {"type": "thinking", "thinking": "", "signature": "x"},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
    ],
)
def test_reasoning_without_a_text_is_noted(part: dict[str, Any]) -> None:
    """Redacted and encrypted reasoning leaves a trace on its answer."""
    made, notes = read("What is it?", {"role": "assistant", "content": [part, {"type": "text", "text": "A cat."}]})
    assert not notes
    assert made.answer == Message("m1", "assistant", "A cat.", thinking_hidden=True)
