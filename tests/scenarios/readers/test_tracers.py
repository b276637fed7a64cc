"""Tracers without a recorded sample at hand: miniatures after their published schemas, each the same two calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Usage
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, load, shown, usages

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def time(second: int) -> str:
    return f"1970-01-01T00:00:0{second}.000000+00:00"


def braintrust(name: str, start: int, prompt: Any, answer: Any, kind: str = "llm") -> dict[str, Any]:
    metrics = {"start": start, "end": start + 1, "prompt_tokens": 100, "completion_tokens": 5, "tokens": 105}
    return {
        "id": f"row {name}",
        "span_id": name,
        "root_span_id": "T",
        "span_parents": None if name == "a" else ["a"],
        "span_attributes": {"name": "cats", "type": kind},
        "input": prompt,
        "output": [{"finish_reason": "stop", "message": answer}] if isinstance(answer, dict) else answer,
        "metadata": {"model": "m", "provider": "openai", "session_id": "s1", "tools": TOOLS},
        "metrics": {**metrics, "prompt_cached_tokens": 60},
    }


def weave(name: str, start: int, prompt: Any, answer: Any, kind: str = "llm") -> dict[str, Any]:
    used = {"requests": 1, "prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    output = {"model": "m", "choices": [{"finish_reason": "stop", "message": answer}]}
    return {
        "id": name,
        "trace_id": "T",
        "parent_id": None if name == "a" else "a",
        "op_name": "weave:///team/project/op/openai.chat.completions.create:v1",
        "started_at": time(start),
        "ended_at": time(start + 1),
        "inputs": {"model": "asked", "messages": prompt, "tools": TOOLS} if kind == "llm" else {"at": 1},
        "output": output if kind == "llm" else answer,
        "thread_id": "s1",
        "summary": {"usage": {"m": used}}
        if kind == "llm"
        else {"usage": {"m": {"requests": 2}} if name == "a" else {}},
    }


def openai_agents(name: str, start: int, prompt: Any, answer: Any, kind: str = "llm") -> dict[str, Any]:
    used = {"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 60}}
    settings = {"model": "m", "model_config": {"tools": TOOLS}, "usage": used}
    data = {"type": {"agent": "agent", "tool": "function"}.get(kind, "generation"), "name": "cats"}
    return {
        "object": "trace.span",
        "id": name,
        "trace_id": "T",
        "parent_id": None if name == "a" else "a",
        "started_at": time(start),
        "ended_at": time(start + 1),
        "error": None,
        "span_data": {**data, "input": prompt, "output": [{**answer, "finish_reason": "stop"}], **settings}
        if kind == "llm"
        else {**data, "input": "{}", "output": "a cat"},
    }


def datadog(name: str, start: int, prompt: Any, answer: Any, kind: str = "llm") -> dict[str, Any]:
    def message(said: dict[str, Any]) -> dict[str, Any]:
        if said["role"] == "tool":
            return {
                "role": "tool",
                "tool_results": [{"result": said["content"], "tool_id": "t1", "type": "tool_result"}],
            }
        calls = [{"name": "look", "arguments": {"at": 1}, "tool_id": "t1"}] * ("tool_calls" in said)
        return {"role": said["role"], "content": said["content"], **({"tool_calls": calls} if calls else {})}

    messages = {
        "input": {"messages": [message(one) for one in prompt]} if kind == "llm" else {"value": "?"},
        "output": {"messages": [message(answer)]} if kind == "llm" else {"value": "!"},
    }
    model = {
        "model_name": "m",
        "model_provider": "openai",
        "tool_definitions": [{"name": "look", "schema": {"type": "object"}}],
    }
    used = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "cache_read_input_tokens": 60}
    return {
        "name": "cats",
        "span_id": name,
        "trace_id": "T",
        "parent_id": "undefined" if name == "a" else "a",
        "session_id": "s1",
        "start_ns": start * 10**9,
        "duration": 10**9,
        "status": "ok",
        "meta": {"kind": kind, **messages, **model},
        "metrics": used if kind == "llm" else {},
    }  # fmt: skip


def spans(make: Any) -> list[Any]:
    """An agent with two calls and a tool between them, the later call first."""
    return [
        make("c", 5, LATER, SAID),
        make("a", 1, None, None, "agent"),
        make("b", 2, PROMPT, CALLED),
        make("t", 4, None, "a cat", "tool"),
    ]


def exported(span: dict[str, Any]) -> dict[str, Any]:
    """A span of Datadog's Export API: the fields of `meta` stand beside the others."""
    fields = {**span, **span["meta"], "span_kind": span["meta"]["kind"]}
    return {
        "id": "x",
        "type": "span",
        "attributes": {key: fields[key] for key in fields if key not in ("meta", "kind")},
    }


GROUP = {"object": "trace", "id": "T", "workflow_name": "w", "group_id": "s1"}


@pytest.mark.parametrize(
    ("content", "meta"),
    [
        (spans(braintrust), {}),
        ({"events": spans(braintrust)}, {}),
        ({"data": spans(braintrust)}, {}),
        (spans(weave), {}),
        (json.dumps(spans(weave)), {}),
        ([*spans(openai_agents), GROUP], {"agent": "cats"}),
        ({"data": [GROUP, *spans(openai_agents)]}, {"agent": "cats"}),
        (spans(datadog), {"agent": "cats"}),
        ({"data": {"type": "span", "attributes": {"ml_app": "x", "spans": spans(datadog)}}}, {"agent": "cats"}),
        (json.dumps([{"_dd.stage": "raw", "spans": spans(datadog)}]), {"agent": "cats"}),
        ({"data": [exported(span) for span in spans(datadog)], "meta": {}}, {"agent": "cats"}),
    ],
)
def test_every_form(content: Any, meta: Any, tmp_path: Path) -> None:
    """Two calls are one conversation with the session's id, usage, times and tools, each call counted once."""
    [chat], problems = load(tmp_path, content)
    assert not problems.errors
    assert (chat.id, chat.meta, shown(chat)) == ("s1", meta, SHOWN)
    assert usages(chat) == [Usage(100, 5, 60)] * 2
    last = chat.messages[-1].call
    assert last is not None
    assert (last.model, last.started, chat.messages[-1].time) == ("m", 5, 6)
    assert [tool.name for tool in chat.tools] == ["look"]
    assert not problems.notes


@pytest.mark.parametrize(
    ("make", "field", "what"),
    [
        (braintrust, "span_id", ".span_id: expected str, got object"),
        (weave, "started_at", ".started_at: expected str | null, got object"),
        (openai_agents, "id", ".id: expected str, got object"),
        (datadog, "start_ns", ".start_ns: {} is no time"),
    ],
)
def test_a_bad_span_costs_only_itself(make: Any, field: str, what: str, tmp_path: Path) -> None:
    """Its error has file, line and field."""
    listed = spans(make)
    lines = [GROUP, *listed] if make is openai_agents else listed
    name = {braintrust: "events", weave: "calls", openai_agents: "data", datadog: "spans"}[make]
    [chat], problems = load(tmp_path, {name: [*lines, {**make("x", 8, PROMPT, SAID), field: {}}]})
    assert shown(chat) == SHOWN
    [error] = problems.errors
    assert str(error).startswith(f"{tmp_path / 'trace0.json'}:1: {name}[{len(lines)}]{what}")


def test_braintrust_counts_anthropics_cache_beside_the_input(tmp_path: Path) -> None:
    """Its wrapper of Anthropic leaves the cached tokens out of `prompt_tokens` and `tokens`."""
    row = braintrust("b", 1, PROMPT, SAID)
    row["metrics"] |= {"prompt_tokens": 40, "tokens": 45, "prompt_cache_creation_tokens": 10}
    [chat], _ = load(tmp_path, [row])
    assert usages(chat) == [Usage(110, 5, 60, 10)]


def test_weave_reads_the_usage_of_the_response_first(tmp_path: Path) -> None:
    """The summary adds up what it knows, without what was read from caches; the provider's own block has it."""
    call = weave("b", 1, PROMPT, SAID)
    call["output"]["usage"] = {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 5}
    call["summary"] = {"usage": {"m": {"requests": 1, "prompt_tokens": 10, "completion_tokens": 5}}}
    [chat], problems = load(tmp_path, [call])
    assert not problems.errors
    assert usages(chat) == [Usage(10, 5, 9)]


def test_weave_sums_usage_over_several_models(tmp_path: Path) -> None:
    """A call around calls of two models is none; alone, its sum is of no call."""
    call = weave("b", 1, PROMPT, SAID)
    call["summary"]["usage"]["n"] = {"requests": 1}
    [chat], _ = load(tmp_path, [call])
    assert usages(chat) == [None]


def test_responses_of_the_agents_sdk(tmp_path: Path) -> None:
    """Its own exporter leaves prompts of responses out, which the notes count; one that adds them is read."""
    span = openai_agents("b", 1, PROMPT, SAID)
    used = {"input_tokens": 100, "output_tokens": 5}
    span["span_data"] = {"type": "response", "response_id": "r1", "usage": used}
    found, problems = load(tmp_path, [span])
    assert not found
    assert problems.notes[0].startswith("openai_agents: model call without its prompt: 1 not read")
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]}]
    span["span_data"] |= {
        "input": PROMPT[1:],
        "response": {"model": "m", "instructions": "Be short.", "output": output},
    }
    [chat], _ = load(tmp_path, [span])
    assert shown(chat) == [*SHOWN[:2], SHOWN[-1]]
    assert usages(chat) == [Usage(100, 5)]
