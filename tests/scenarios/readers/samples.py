"""A small sound recording of every format, as Python objects, for tests that damage them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
BLOCK_USAGE = {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 7}
FUNCTION = {"name": "look", "description": "Looks", "parameters": {"type": "object"}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "What is this? 🐈 \\ \n"}, {"type": "image_url"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"at": 1}}}],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a cat"},
    {"role": "assistant", "content": "A cat.", "reasoning_content": "hm"},
]
BLOCKS: list[dict[str, Any]] = [
    {"role": "user", "content": "Read a."},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Reading."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "A"}]},
            {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ],
    },
]


def stamp(second: int) -> str:
    return f"2023-11-14T22:13:{20 + second}.000Z"


def ctxbench(name: str) -> dict[str, Any]:
    call = {"model": "m", "usage": {"input": 9, "cost": 0.5}, "started": 1.0, "marks": [{"after": "a"}]}
    return {
        "ctxbench": "1",
        "id": name,
        "messages": [
            {"id": "a", "role": "user", "text": "hello", "time": 1.5},
            {"id": "b", "role": "assistant", "calls": [{"id": "c", "name": "f"}], "call": call, "time": 2},
            {"id": "c", "role": "tool", "answers": "c", "text": "42", "media": [{"kind": "image"}]},
        ],
        "tools": [{"name": "f", "parameters": "{}"}],
        "probes": [{"id": "p", "question": "?", "answers": ["42"], "evidence": ["c"], "after": "c"}],
        "compactions": [{"after": "b", "summary": "s", "first_kept": "b", "tokens_before": 7}],
        "meta": {"reward": 0.5, "task": "t"},
    }


def openai_chat(name: str) -> dict[str, Any]:
    called = {"role": "assistant", "content": None, "reasoning_details": [{"type": "reasoning.text", "text": "Why."}]}
    called |= {"tool_calls": [{"id": "c9", "type": "custom", "custom": {"name": "run", "input": "1 + 1"}}]}
    refused = {"role": "assistant", "content": None, "refusal": "No.", "audio": {"transcript": "No."}}
    messages = [*CHAT, called, {"role": "run", "content": {"sum": 2}}, refused]
    return {"id": name, "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}


def anthropic_messages(name: str) -> dict[str, Any]:
    tools = [{"name": "read", "description": "Reads", "input_schema": {"type": "object"}, "cache_control": {}}]
    request = {"system": [{"type": "text", "text": f"You are {name}."}], "tools": tools, "messages": BLOCKS}
    content = [
        {"type": "text", "text": "Done."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "document", "source": {"type": "text", "data": "plain"}, "title": "D"},
    ]
    return {
        "request": request,
        "response": {"content": content, "model": "x", "stop_reason": "end_turn", "usage": BLOCK_USAGE},
    }


def litellm_log(name: str) -> dict[str, Any]:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}
    return {
        "messages": [{"role": "user", "content": name}, *CHAT, {"role": "user", "content": "And this?"}],
        "response": {"model": "m", "created": 10, "choices": [choice], "usage": USAGE},
        "kwargs": {"tools": [{"type": "function", "function": FUNCTION}]},
        "timestamp": 10.5,
        "cost": 0.5,
    }


def mini_swe(name: str) -> dict[str, Any]:
    response = {"model": "m", "created": 10, "usage": USAGE, "choices": [{"finish_reason": "tool_calls"}]}
    extra = {"response": response, "cost": 0.25, "timestamp": 12.5}
    said = [{**each, "extra": extra} if each["role"] == "assistant" else each for each in CHAT]
    info = {"exit_status": "Submitted", "mini_version": "2", "config": {"model": {"model_name": "a/b"}}}
    last = {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}}
    return {"info": info, "messages": [*said, last], "instance_id": name}


def sharegpt(name: str) -> dict[str, Any]:
    said = [
        ("human", "Weather?"),
        ("function_call", '{"name": "weather", "arguments": {"city": "Oslo"}}'),
        ("observation", "rain"),
        ("gpt", 'Again: <tool_call>{"name": "weather", "arguments": "{}"}</tool_call>'),
        ("tool", "snow"),
    ]
    turns = [{"from": speaker, "value": value} for speaker, value in said]
    return {"id": name, "conversations": turns, "system": "S", "tools": json.dumps([FUNCTION])}


def swe_agent(name: str) -> dict[str, Any]:
    said = [
        {**turn, "agent": "main", "thought": "hm", "action": "ls", "is_demo": at == 1} for at, turn in enumerate(CHAT)
    ]
    result = {"role": "tool", "content": "a", "agent": "main", "tool_call_ids": ["c1", "c1"]}
    stats = {"instance_cost": 0.5, "tokens_sent": 9, "api_calls": 2}
    config = {"agent": {"model": {"name": "m"}}}
    return {
        "environment": name,
        "trajectory": [],
        "history": [*said, result, {"role": "user", "content": "b", "agent": "x"}],
        "info": {"exit_status": "submitted", "model_stats": stats},
        "replay_config": config,
    }


def tau_bench(name: str) -> dict[str, Any]:
    return {"task_id": name, "trial": 1, "reward": 1.0, "info": {"task": {}}, "traj": CHAT}


def tau2_run(name: str) -> dict[str, Any]:
    called = {"id": "c1", "name": "get_line", "arguments": {"n": 7}}
    messages = [
        {"role": "assistant", "content": "Hi!", "timestamp": stamp(0)},
        {"role": "user", "content": "My phone is offline", "timestamp": stamp(1)},
        {"role": "assistant", "tool_calls": [called], "timestamp": stamp(2), "cost": 0.002, "usage": USAGE},
        {"role": "tool", "id": "c1", "content": "active", "requestor": "assistant", "timestamp": stamp(3)},
        {"role": "user", "tool_calls": [{"id": "u1", "name": "reboot"}], "timestamp": stamp(4)},
        {"role": "tool", "tool_messages": [{"id": "u1", "role": "tool", "content": "ok", "requestor": "user"}]},
        {"role": "user", "content": "It works", "timestamp": stamp(7)},
    ]
    reward = {"reward": 1.0}
    return {
        "id": name,
        "task_id": name,
        "trial": 0,
        "start_time": stamp(0),
        "reward_info": reward,
        "messages": messages,
    }


def tau2(name: str) -> dict[str, Any]:
    environment = {"domain_name": "telecom", "policy": "Be kind."}
    info = {"user_info": {}, "agent_info": {"llm": "gpt"}, "environment_info": environment}
    return {"info": info, "tasks": [], "simulations": [tau2_run(f"{name}1"), tau2_run(f"{name}2")]}


def kdconv(name: str) -> dict[str, Any]:
    return {"name": name, "messages": [{"message": "看过吗？"}, {"message": "看过。", "attrs": []}]}


def locomo(name: str) -> dict[str, Any]:
    spoken = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Look!", "img_url": ["u"], "blip_caption": "a dog"},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Nice"},
        ],
        "session_2_date_time": "12:09 am on 13 September, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Hi"}],
    }
    asked = {"question": "Whose dog?", "answer": "Ann's", "evidence": ["D1:1; D02:01", "D9:9"], "category": 4}
    return {"sample_id": name, "conversation": spoken, "qa": [asked]}


def longmemeval(name: str) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": "Which degree?",
        "answer": "Business",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/19 (Fri) 02:57"],
        "haystack_session_ids": ["s1", "s1"],
        "haystack_sessions": [
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            [{"role": "user", "content": "My degree", "has_answer": True}],
        ],
        "answer_session_ids": ["s1"],
    }


def mtrag(name: str) -> dict[str, Any]:
    human, model = {"author_type": "human", "created_at": 1.0}, {"author_type": "model", "author_id": "mixtral"}
    return {
        "task_id": name,
        "input": [
            {"speaker": "user", "text": "Cash?", "metadata": human},
            {"speaker": "agent", "text": "A check.", "metadata": model},
            {"speaker": "user", "text": "Which bank?", "metadata": human},
        ],
        "contexts": [{"document_id": "d1", "text": "Banks."}],
        "targets": [{"text": "Any.", "metadata": model}],
        "answerability": ["ANSWERABLE"],
        "Question Type": ["Factoid"],
        "Collection": "fiqa",
    }


def beam(name: str) -> list[dict[str, Any]]:
    turns = [{"role": "user", "id": 0, "content": name}, {"role": "assistant", "id": 1, "content": "b"}]
    more = [{"role": "user", "id": 1, "content": "c", "time_anchor": "March-16-2024"}]
    return [{"batch_number": 1, "time_anchor": "March-15-2024", "turns": [turns, more]}]


QUESTIONS = {
    "abstention": [{"question": "My cat?", "ideal_response": "Not said.", "rubric": ["not said"]}],
    "contradiction": [{"question": "Flask?", "answer": 2, "source_chat_ids": {"a": [0], "b": [[0], 9]}, "rubric": []}],
}


def memdaily(name: str) -> dict[str, Any]:
    said = {"mid": 0, "message": f"我叫{name}。", "time": "2024年04月01日 周一 08:30", "place": "上海"}
    asked = {
        "qid": 0,
        "question": "我叫什么？",
        "answer": name,
        "target_step_id": [0],
        "time": "2024年04月02日 周二 08:30",
    }
    choices = {"choices": {"A": name, "B": "x"}, "ground_truth": "A"}
    return {"tid": 0, "message_list": [said, "下雨了。"], "question_list": [{**asked, **choices}]}


def memorybank(name: str) -> dict[str, Any]:
    history = {"2023-04-27": [{"query": "Hi", "response": "Hello"}], "2023-04-28": [{"query": "Back", "response": "!"}]}
    return {name: {"name": name, "history": history, "meta_information": {"hobbies": "painting"}}}


def claude_code(name: str) -> list[dict[str, Any]]:
    def line(second: int, kind: str, parent: int | None, message: object = None, **more: object) -> dict[str, Any]:
        ids = {"uuid": f"u{second}", "parentUuid": None if parent is None else f"u{parent}", "sessionId": name}
        said = {} if message is None else {"message": message}
        return {"type": kind, **ids, "timestamp": stamp(second), **said, **more}

    def answer(*content: object) -> dict[str, Any]:
        return {"role": "assistant", "id": "r", "model": "opus", "content": content, "usage": BLOCK_USAGE}

    asked, _, results = BLOCKS
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
    side = {"isSidechain": True, "agentId": "x"}
    return [
        line(0, "user", None, asked),
        line(1, "assistant", 0, answer({"type": "text", "text": "Reading."}), requestId="q"),
        line(2, "assistant", 1, answer(use), requestId="q"),
        line(3, "user", None, {"role": "user", "content": "Help."}, **side),
        line(4, "assistant", 3, answer({"type": "text", "text": "Yes."}), **side),
        line(5, "user", 2, results),
        line(6, "system", None, subtype="compact_boundary", logicalParentUuid="u5", compactMetadata={"preTokens": 9}),
        line(7, "user", 6, {"role": "user", "content": "summary"}, isCompactSummary=True),
        line(8, "user", 7, {"role": "user", "content": "Thanks."}),
    ]


def cline(name: str) -> dict[str, Any]:
    metrics = {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 60, "cacheWriteTokens": 7, "cost": 0.5}
    asked, answer, results = ({**turn, "ts": 1_700_000_000_000 + at} for at, turn in enumerate(BLOCKS))
    parts = [{"type": "tool_result", "tool_use_id": "t1", "content": [{"query": "a", "result": "A"}]}]
    file = [{"type": "file", "path": "/b", "content": "B"}]
    notice = {"role": "user", "content": file, "metadata": {"kind": "compaction"}}
    summary = {"role": "user", "content": "In short", "metadata": {"kind": "compaction_summary", "tokensBefore": 9}}
    called = {**answer, "modelInfo": {"id": "m", "provider": "p"}, "metrics": metrics}
    messages = [asked, called, results, {"role": "user", "content": parts}, notice, summary, {**called, "metadata": {}}]
    return {"sessionId": name, "agent": "a", "system_prompt": "S", "messages": messages}


def codex(name: str) -> list[dict[str, Any]]:
    def row(second: int, kind: str, **payload: object) -> dict[str, Any]:
        return {"timestamp": stamp(second), "type": kind, "payload": payload}

    def item(second: int, kind: str, **fields: object) -> dict[str, Any]:
        return row(second, "response_item", type=kind, **fields)

    def text(kind: str, words: str) -> list[dict[str, Any]]:
        return [{"type": kind, "text": words}]

    used = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 5}
    info = {"total_token_usage": {"total_tokens": 105}, "last_token_usage": used}
    asked = {"type": "message", "role": "user", "content": text("input_text", "Go")}
    left = [asked, {"type": "compaction", "encrypted_content": "x"}]
    tools = [{"type": "namespace", "name": "app", "tools": [{"name": "look", "inputSchema": {"type": "object"}}]}]
    base = {"text": "You are Codex."}
    return [
        row(0, "session_meta", id=name, cli_version="1", base_instructions=base, dynamic_tools=tools),
        row(1, "turn_context", model="gpt", effort="high"),
        row(2, "response_item", **asked),
        row(2, "event_msg", type="user_message", message="Go"),
        item(3, "reasoning", summary=text("summary_text", "hm")),
        item(3, "message", role="assistant", content=text("output_text", "Looking.")),
        item(4, "function_call", call_id="t1", name="exec", arguments='{"cmd": "ls"}'),
        item(4, "custom_tool_call", call_id="t2", name="patch", input="***"),
        item(5, "function_call_output", call_id="t1", output="a"),
        item(5, "custom_tool_call_output", call_id="t2", output=text("input_text", "b")),
        row(5, "event_msg", type="token_count", info=info),
        row(6, "compacted", message="", replacement_history=left),
        item(7, "message", role="assistant", content=text("output_text", "Done.")),
        row(8, "event_msg", type="thread_rolled_back", num_turns=0),
    ]


def copilot_cli(name: str) -> list[dict[str, Any]]:
    def row(second: int, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": f"i{second}", "parentId": None, "timestamp": stamp(second)}

    call = {"toolCallId": "t1", "name": "task", "arguments": {"prompt": "Find"}}
    done = {"toolCallId": "t1", "success": True, "result": {"content": "A"}}
    inner = {"parentToolCallId": "t1", "model": "m"}
    return [
        row(0, "session.start", sessionId=name, copilotVersion="1"),
        row(1, "system.message", role="system", content="S"),
        row(2, "user.message", content="Go", transformedContent="Go!"),
        row(3, "assistant.turn_start", turnId="0"),
        row(4, "assistant.message", content="a", model="m", apiCallId="x", turnId="0", reasoningText="hm"),
        row(4, "assistant.message", content="b", model="m", apiCallId="x", toolRequests=[call], outputTokens=5),
        row(5, "subagent.started", toolCallId="t1", agentName="explore"),
        row(6, "assistant.message", content="c", apiCallId="y", **inner),
        row(7, "tool.execution_complete", **done),
        row(8, "session.compaction_complete", success=True, summaryContent="s", preCompactionTokens=9),
        row(9, "hook.end", success=True),
    ]


def gemini_cli(name: str) -> list[dict[str, Any]]:
    result = [{"functionResponse": {"id": "t1", "response": {"output": "a"}}}]
    call = {"id": "t1", "name": "read_file", "args": {"path": "a"}, "result": result, "timestamp": stamp(2)}
    thought = {"subject": "Read", "description": "it"}
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}
    answer = {"model": "gemini", "tokens": tokens, "thoughts": [thought], "toolCalls": [call]}

    def said(name: str, second: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": name, "timestamp": stamp(second), "type": kind, "content": content, **more}

    summary = [said("x", 4, "user", "In short"), said("y", 1, "gemini", [{"text": "OK"}])]
    return [
        {"sessionId": name, "projectHash": "p", "startTime": stamp(0), "lastUpdated": stamp(0), "kind": "main"},
        said("a", 0, "user", [{"text": "Go"}, {"inlineData": {}}]),
        said("b", 1, "gemini", "", tokens=None),
        said("b", 1, "gemini", "", **answer),
        said("c", 3, "info", "Update"),
        said("d", 3, "gemini", "Done", tokens=tokens),
        {"$set": {"messages": summary, "lastUpdated": stamp(4)}},
        said("e", 5, "user", "Wrong"),
        {"$rewindTo": "e"},
    ]


def claude_stream(name: str) -> list[dict[str, Any]]:
    def event(kind: str, number: int, agent: str | None = None, **fields: Any) -> dict[str, Any]:
        return {"type": kind, **fields, "parent_tool_use_id": agent, "session_id": name, "uuid": f"x{number}"}

    def said(number: int, part: dict[str, Any], name: str, agent: str | None = None) -> dict[str, Any]:
        usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 1}
        message = {"id": name, "role": "assistant", "model": "m", "content": [part], "usage": usage}
        return event("assistant", number, agent, message=message)

    def told(number: int, called: str) -> dict[str, Any]:
        part = {"type": "tool_result", "tool_use_id": called, "content": "a"}
        return event("user", number, message={"role": "user", "content": [part]})

    delta = {"type": "message_delta", "usage": {"output_tokens": 6}}
    total = {"input_tokens": 6, "cache_read_input_tokens": 180, "output_tokens": 60}
    synthetic = {"role": "user", "content": "In short"}
    return [
        event("system", 0, subtype="init", claude_code_version="2.1.0", tools=["Task"]),
        said(1, {"type": "thinking", "thinking": "hm"}, "m1"),
        said(2, {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Look"}}, "m1"),
        said(3, {"type": "text", "text": "Seen"}, "m2", "t1"),
        told(4, "t1"),
        said(5, {"type": "text", "text": "Done. 🐈"}, "m3"),
        event("result", 6, subtype="success", usage=total, total_cost_usd=0.5),
        event("system", 7, subtype="compact_boundary", compact_metadata={"pre_tokens": 9}),
        event("user", 8, message=synthetic, isSynthetic=True),
        event("stream_event", 9, event={"type": "message_start", "message": {"id": "m4"}}),
        said(10, {"type": "text", "text": "More"}, "m4"),
        event("stream_event", 11, event=delta),
    ]


def codex_exec(name: str) -> list[dict[str, Any]]:
    def item(number: int, kind: str, phase: str = "completed", **fields: Any) -> dict[str, Any]:
        return {"type": f"item.{phase}", "item": {"id": f"item_{number}", "type": kind, **fields}}

    usage = {"input_tokens": 900, "cached_input_tokens": 800, "output_tokens": 60}
    return [
        {"type": "thread.started", "thread_id": name},
        {"type": "turn.started", "turn_id": "the first one of this thread"},
        item(0, "reasoning", text="**Looking**"),
        item(1, "command_execution", "started", command="ls", status="in_progress"),
        item(2, "mcp_tool_call", "started", server="s", tool="look", arguments={"at": 1}),
        item(1, "command_execution", command="ls", aggregated_output="a.txt", exit_code=0),
        item(2, "mcp_tool_call", server="s", tool="look", result={"content": [{"type": "text", "text": "B"}]}),
        item(3, "file_change", changes=[{"path": "a", "kind": "add"}], status="completed"),
        item(4, "todo_list", "started", items=[{"text": "go", "completed": False}]),
        item(5, "agent_message", text="One file."),
        {"type": "turn.completed", "usage": usage},
        {"type": "turn.started"},
        item(6, "agent_message", text="Once more."),
        {"type": "turn.completed", "usage": usage},
        {"type": "turn.started"},
        item(7, "agent_message", text="And"),
        {"type": "turn.failed", "error": {"message": "no more"}},
    ]


def cursor(name: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "name": "Read", "input": {"path": "a"}}
    text = [{"type": "text", "text": f"<user_query>\nRead a of {name}.\n</user_query>"}]
    return [
        {"role": "user", "message": {"content": text}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Reading."}, use, use]}},
        {"role": "assistant", "message": {"content": "Done."}},
        {"type": "turn_ended", "status": "success", "note": "a line of the program"},
    ]


def vscode_chat(name: str) -> list[dict[str, Any]]:
    def request(number: int, **fields: Any) -> dict[str, Any]:
        asked = {"message": {"text": f"Ask {number}"}, "timestamp": 1_700_000_000_000 + number, "response": []}
        return {"requestId": f"q{number}", "modelId": "copilot/m", **asked, **fields}

    state = {"version": 3, "sessionId": name, "creationDate": 1, "requests": []}
    tool = {
        "kind": "toolInvocationSerialized",
        "toolCallId": "t1",
        "toolId": "read",
        "pastTenseMessage": {"value": "A"},
    }
    calls = [{"id": "t2", "name": "look", "arguments": "{}"}]
    rounds = [{"response": "", "toolCalls": calls, "thinking": {"text": "hm"}}, {"response": "B", "modelId": "n"}]
    tree = {"node": {"children": [{"text": "b"}, {"children": [{"text": "c"}]}]}}
    metadata = {"toolCallRounds": rounds, "toolCallResults": {"t2": {"content": [{"value": tree}]}}}
    return [
        {"kind": 0, "v": state},
        {"kind": 2, "k": ["requests"], "v": [request(0, promptTokens=9, completionTokens=2)]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Wrong"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "i": 0, "v": [{"value": "He"}, {"value": "llo"}]},
        {"kind": 2, "k": ["requests"], "v": [request(1), request(2)]},
        {"kind": 2, "k": ["requests", 1, "response"], "v": [{"kind": "thinking", "value": "hm"}, tool]},
        {"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": "Done"}, {"kind": "undoStop"}]},
        {"kind": 1, "k": ["requests", 2, "result"], "v": {"metadata": metadata}},
        {"kind": 3, "k": ["requests", 2, "agent"]},
    ]


def opencode(name: str) -> dict[str, Any]:
    tokens = {"input": 100, "output": 5, "reasoning": 2, "cache": {"read": 60, "write": 7}}
    finish = {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.5}
    times = {"start": 1_700_000_000_000, "end": 1_700_000_001_000}
    state = {"status": "completed", "input": {"path": "a"}, "output": "A", "time": times}
    tool = {"type": "tool", "callID": "t1", "tool": "read", "state": state}
    parts = [{"type": "step-start"}, {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Reading."}, tool]
    answer = {"role": "assistant", "modelID": "m", "providerID": "p", "time": {"created": 1_700_000_000_000}}
    asked = {"info": {"role": "user", "time": {"created": 1}}, "parts": [{"type": "text", "text": "Go"}]}
    messages = [
        asked,
        {"info": {**answer, "system": ["S"]}, "parts": [*parts, finish, {"type": "text", "text": "Done"}, finish]},
        {"info": {"role": "user"}, "parts": [{"type": "compaction"}, {"type": "file", "mime": "image/png"}]},
        {"info": {**answer, "summary": True}, "parts": [{"type": "text", "text": "In short"}, finish]},
    ]
    return {"info": {"id": name, "parentID": "x", "version": "1"}, "messages": messages}


def openhands(name: str) -> list[dict[str, Any]]:
    def event(second: int, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": f"{name}{second}", "timestamp": stamp(second), "source": "agent", "kind": kind, **fields}

    text = [{"type": "text", "text": "hm"}]
    call = {"id": "t1", "name": "look", "arguments": "{}"}
    tools = [{"kind": "LookTool", "title": "look", "description": "Looks"}]
    said = {"role": "user", "content": text}
    return [
        event(0, "SystemPromptEvent", system_prompt={"text": "S"}, dynamic_context={"text": "D"}, tools=tools),
        event(1, "MessageEvent", llm_message=said, extended_content=text),
        event(2, "ActionEvent", thought=text, tool_call=call, tool_call_id="t1", llm_response_id="r"),
        event(3, "ActionEvent", tool_call={**call, "id": "t2"}, tool_call_id="t2", llm_response_id="r"),
        event(4, "ObservationEvent", tool_call_id="t1", tool_name="look", observation={"content": text}),
        event(5, "AgentErrorEvent", tool_call_id="t2", tool_name="look", error="no"),
        event(6, "Condensation", forgotten_event_ids=[f"{name}1"], summary="s"),
        event(7, "MessageEvent", llm_message={**said, "role": "assistant"}, llm_response_id="q"),
        event(8, "PauseEvent"),
    ]


def pi(name: str) -> list[dict[str, Any]]:
    def entry(second: int, kind: str = "message", **fields: object) -> dict[str, Any]:
        tree = {"id": f"n{second}", "parentId": f"n{second - 1}" if second > 1 else None}
        return {"type": kind, "timestamp": stamp(second), **tree, **fields}

    usage = {"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 400, "cost": {"total": 0.5}}
    use = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Reading."}, use]
    answer = {"role": "assistant", "content": content, "provider": "p", "model": "m", "usage": usage}
    result = {"role": "toolResult", "toolCallId": "t1", "toolName": "read", "content": [{"type": "image"}]}
    bash = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 1}
    return [
        {"type": "session", "id": name, "timestamp": stamp(0), "parentSession": "/a/b_c.jsonl"},
        entry(1, message={"role": "user", "content": "read a", "timestamp": 1_700_000_000_000}),
        entry(2, message={**answer, "stopReason": "toolUse", "timestamp": 1_700_000_001_000}),
        entry(3, message=result),
        entry(4, message=bash),
        entry(5, "compaction", summary="s", firstKeptEntryId="n3", tokensBefore=9),
        entry(6, "custom_message", customType="note", content=[{"type": "text", "text": "Mind."}]),
        entry(7, "branch_summary", summary="left"),
    ]


def otel(name: str) -> list[dict[str, Any]]:
    def typed(value: object) -> dict[str, Any]:
        if isinstance(value, int):
            return {"intValue": str(value)}
        return {"stringValue": value if isinstance(value, str) else json.dumps(value)}

    def line(number: int, parent: int, **attributes: object) -> dict[str, Any]:
        span = {
            "traceId": name,
            "spanId": f"s{number}",
            "parentSpanId": f"s{parent}" if parent else "",
            "name": "span",
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + number * 10**9),
            "endTimeUnixNano": str(1_700_000_000_500_000_000 + number * 10**9),
            "attributes": [{"key": f"gen_ai.{key}", "value": typed(value)} for key, value in attributes.items()],
        }
        return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}

    def part(kind: str, **fields: object) -> dict[str, Any]:
        return {"type": kind, **fields}

    asked = {"role": "user", "parts": [part("text", content="What is this?"), part("blob", modality="image")]}
    called = {"role": "assistant", "parts": [part("tool_call", id="t1", name="look", arguments={"at": 1})]}
    result = {"role": "tool", "parts": [part("tool_call_response", id="t1", response="a cat")]}
    said = {"role": "assistant", "parts": [part("reasoning", content="hm"), part("text", content="A cat.")]}
    chat = {"operation.name": "chat", "request.model": "m", "tool.definitions": [FUNCTION]}
    chat |= {"usage.input_tokens": 100, "usage.output_tokens": 5, "usage.cache_read.input_tokens": 60}
    chat["system_instructions"] = [part("text", content="Be short.")]
    return [
        line(1, 0, **{"operation.name": "invoke_agent", "agent.name": "cats", "conversation.id": name}),
        line(2, 1, **chat, **{"input.messages": [asked], "output.messages": [called]}),
        line(3, 2, **{"operation.name": "execute_tool"}),
        line(4, 1, **chat, **{"input.messages": [asked, called, result], "output.messages": [said]}),
    ]


def openclaw_telemetry(name: str) -> list[dict[str, Any]]:
    used = {"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 400}
    use = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "read a", "timestamp": 1_700_000_000_000},
        {"role": "assistant", "content": [use], "model": "m", "usage": used, "timestamp": 1_700_000_001_000},
        {"role": "toolResult", "toolCallId": "t1", "toolName": "read", "content": [{"type": "text", "text": "A"}]},
        {"role": "compactionSummary", "summary": "s"},
    ]
    agent = {"sessionKey": name, "agentId": "main"}
    return [
        {"type": "message.in", "channel": "c", "content": "read a"},
        {"type": "agent.start", **agent, "prompt": "read a"},
        {"type": "agent.start", **agent, "prompt": "Go on.", "messages": history[:2]},
        {"type": "tool.start", **agent, "toolName": "read"},
        {"type": "agent.end", **agent, "messages": history},
    ]


def langfuse(name: str) -> dict[str, Any]:
    def observation(number: int, kind: str, **fields: object) -> dict[str, Any]:
        ids = {"id": f"o{number}", "traceId": name, "parentObservationId": "o1" if number > 1 else None}
        return {**ids, "type": kind, "name": "n", "startTime": stamp(number), "endTime": stamp(number + 1), **fields}

    details = {"input": 40, "input_cache_read": 60, "output": 5, "total": 105}
    used = {"model": "m", "usageDetails": details, "costDetails": {"total": 0.5}, "level": "DEFAULT"}
    attributes = {"model_request_parameters": {"function_tools": [FUNCTION]}, "agent_name": "cats"}
    return {
        "trace": {"id": name, "sessionId": f"session {name}", "timestamp": stamp(0)},
        "observations": [
            observation(1, "AGENT", metadata='{"thread_id": 5}'),
            observation(
                4, "GENERATION", input={"messages": CHAT[:4]}, output={"choices": [{"message": CHAT[4]}]}, **used
            ),
            observation(2, "GENERATION", input=CHAT[:2], output=CHAT[2], metadata={"attributes": attributes}, **used),
            observation(3, "TOOL", input="{}", output="a cat"),
        ],
    }


def langsmith(name: str) -> list[dict[str, Any]]:
    def run(number: int, parent: int, kind: str, **fields: object) -> dict[str, Any]:
        ids = {"id": f"r{number}", "trace_id": name, "parent_run_id": f"r{parent}" if parent else None}
        return {**ids, "run_type": kind, "start_time": stamp(number), "end_time": stamp(number + 1), **fields}

    def dumped(kind: str, **fields: object) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": fields}

    used = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_token_details": {"cache_read": 60}}
    asked = [
        dumped("SystemMessage", content="Be short."),
        dumped("HumanMessage", content=[{"type": "text", "text": "?"}]),
    ]
    called = dumped("AIMessage", content="", tool_calls=[{"id": "t1", "name": "look", "args": {"at": 1}}])
    first = {
        "generations": [[{"text": "", "message": called}]],
        "llm_output": {"token_usage": USAGE, "model_name": "m"},
    }
    result = dumped("ToolMessage", content="a cat", tool_call_id="t1")
    said = dumped("AIMessage", content="A cat.", usage_metadata=used, response_metadata={"finish_reason": "stop"})
    extra = {"metadata": {"ls_provider": "p", "thread_id": name}, "invocation_params": {"tools": [FUNCTION]}}
    last = {"generations": [[{"text": "A cat.", "message": said}]]}
    return [
        run(1, 0, "chain", inputs={}, outputs={}, extra=extra),
        run(2, 1, "llm", inputs={"messages": [asked]}, outputs=first, extra=extra, total_cost=0.5),
        run(3, 1, "tool", inputs={"input": "1"}, outputs={"output": "a cat"}),
        run(4, 1, "llm", inputs={"messages": [[*asked, called, result]]}, outputs=last, extra=extra),
    ]


def mlflow_traces(name: str) -> dict[str, Any]:
    def span(number: int, kind: str, **attributes: object) -> dict[str, Any]:
        own = {"mlflow.spanType": kind, **{f"mlflow.{key}": value for key, value in attributes.items()}}
        return {
            "trace_id": name,
            "span_id": f"s{number}",
            "parent_span_id": "s1" if number > 1 else None,
            "name": "cats",
            "start_time_unix_nano": 1_700_000_000_000_000_000 + number * 10**9,
            "end_time_unix_nano": 1_700_000_000_500_000_000 + number * 10**9,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": {key: json.dumps(value) for key, value in own.items()},
        }

    used = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "cache_read_input_tokens": 60}
    model = {"chat.tokenUsage": used, "llm.model": "m", "llm.provider": "p", "llm.cost": {"total_cost": 0.5}}
    first = {
        "spanInputs": {"messages": CHAT[:2], "tools": [FUNCTION]},
        "spanOutputs": {"choices": [{"message": CHAT[2]}]},
    }
    last = {"spanInputs": {"messages": CHAT[:4]}, "spanOutputs": CHAT[4]}
    metadata = {"mlflow.trace.session": f"session {name}"}
    spans = [
        span(1, "AGENT", spanInputs={"q": "?"}),
        span(2, "CHAT_MODEL", **first, **model),
        span(3, "TOOL", spanInputs={"at": 1}),
        span(4, "CHAT_MODEL", **last, **model),
    ]
    return {"info": {"trace_id": name, "trace_metadata": metadata}, "data": {"spans": spans}}


def braintrust(name: str) -> list[dict[str, Any]]:
    def row(number: int, kind: str, **fields: object) -> dict[str, Any]:
        ids = {"id": f"id{number}", "span_id": f"s{number}", "root_span_id": name}
        parents = ["s1"] if number > 1 else None
        return {
            **ids,
            "span_parents": parents,
            "span_attributes": {"type": kind},
            "input": None,
            "output": None,
            **fields,
        }

    metrics = {"start": 10.5, "end": 11.5, "prompt_tokens": 100, "completion_tokens": 5, "tokens": 105}
    metrics |= {"prompt_cached_tokens": 60, "estimated_cost": 0.5}
    metadata = {
        "model": "m",
        "provider": "p",
        "session_id": name,
        "tools": [{"type": "function", "function": FUNCTION}],
    }
    used = {"metrics": metrics, "metadata": metadata}
    return [
        row(1, "task", metadata={}),
        row(2, "llm", input=CHAT[:2], output=[{"message": CHAT[2], "finish_reason": "tool_calls"}], **used),
        row(3, "tool", input={"at": 1}, output="a cat"),
        row(4, "llm", input=CHAT[:4], output=CHAT[4], **used),
    ]


def weave(name: str) -> list[dict[str, Any]]:
    def call(number: int, **fields: object) -> dict[str, Any]:
        ids = {
            "id": f"c{number}",
            "trace_id": name,
            "parent_id": "c1" if number > 1 else None,
            "op_name": "weave:///op",
        }
        return {
            **ids,
            "started_at": stamp(number),
            "ended_at": stamp(number + 1),
            "inputs": {},
            "output": None,
            **fields,
        }

    summary = {"usage": {"m": {"requests": 1, **USAGE}}}
    tools = [{"type": "function", "function": FUNCTION}]
    first = {
        "inputs": {"model": "m", "messages": CHAT[:2], "tools": tools},
        "output": {"choices": [{"message": CHAT[2]}]},
    }
    return [
        call(1, summary={"usage": {"m": {"requests": 2}}}, thread_id=name),
        call(2, **first, summary=summary),
        call(3, inputs={"at": 1}, output="a cat"),
        call(4, inputs={"model": "m", "messages": CHAT[:4]}, output=CHAT[4], summary=summary),
    ]


def openai_agents(name: str) -> list[dict[str, Any]]:
    def span(number: int, **data: object) -> dict[str, Any]:
        ids = {"object": "trace.span", "id": f"s{number}", "trace_id": name, "parent_id": "s1" if number > 1 else None}
        return {**ids, "started_at": stamp(number), "ended_at": stamp(number + 1), "error": None, "span_data": data}

    used = {"model": "m", "usage": {"input_tokens": 100, "output_tokens": 5}, "model_config": {"tools": [FUNCTION]}}
    return [
        {"object": "trace", "id": name, "workflow_name": "w", "group_id": name},
        span(1, type="agent", name="cats"),
        span(2, type="generation", input=CHAT[:2], output=[CHAT[2]], **used),
        span(3, type="function", name="look", input="{}", output="a cat"),
        span(4, type="generation", input=CHAT[:4], output=[CHAT[4]], **used),
    ]


def datadog_llm(name: str) -> list[dict[str, Any]]:
    def span(number: int, kind: str, **meta: object) -> dict[str, Any]:
        ids = {"span_id": f"s{number}", "trace_id": name, "parent_id": "s1" if number > 1 else "undefined"}
        metrics = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "cache_read_input_tokens": 60}
        times = {"start_ns": 1_700_000_000_000_000_000 + number * 10**9, "duration": 5 * 10**8}
        return {**ids, "name": "cats", **times, "status": "ok", "metrics": metrics, "meta": {"kind": kind, **meta}}

    call = {"name": "look", "arguments": {"at": 1}, "tool_id": "t1", "type": "function"}
    asked = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is this?"}]
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "user", "tool_results": [{"name": "look", "result": "a cat", "tool_id": "t1"}]}
    said = {"role": "assistant", "content": "A cat."}
    model = {"model_name": "m", "model_provider": "p", "tool_definitions": [{"name": "look", "schema": {}}]}
    return [
        span(1, "agent", input={"value": "?"}),
        span(2, "llm", input={"messages": asked}, output={"messages": [called]}, **model),
        span(3, "tool", input={"value": "1"}),
        span(4, "llm", input={"messages": [*asked, called, result]}, output={"messages": [said]}, **model),
    ]


def goose(name: str) -> dict[str, Any]:
    def message(second: int, role: str, *parts: object, agent: bool = True, user: bool = True) -> dict[str, Any]:
        seen = {"userVisible": user, "agentVisible": agent}
        return {"role": role, "created": 1_700_000_000 + second, "content": parts, "metadata": seen}

    text = {"type": "text", "text": "a"}
    call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}
    use = {"type": "toolRequest", "id": "t1", "toolCall": call}
    result = {"type": "toolResponse", "id": "t1", "toolResult": {"status": "success", "value": {"content": [text]}}}
    failed = {**result, "toolResult": {"status": "error", "error": "no"}}
    messages = [
        message(0, "user", text, {"type": "image"}, agent=False),
        message(1, "assistant", {"type": "thinking", "thinking": "hm"}, text, use),
        message(2, "user", result, failed),
        message(3, "user", text, user=False),
    ]
    return {"id": name, "working_dir": "/a", "accumulated_input_tokens": 9, "conversation": messages}


def http(name: str) -> dict[str, Any]:
    def interaction(url: str, asked: object, replied: object) -> dict[str, Any]:
        headers = {"date": ["Tue, 14 Nov 2023 22:13:20 GMT"]}
        response = {"status": {"code": 200}, "headers": headers, "parsed_body": replied}
        return {
            "request": {"method": "POST", "uri": f"https://api.x.org{url}", "parsed_body": asked},
            "response": response,
        }

    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}
    chat = {"model": "m", "messages": CHAT[:2], "tools": [{"type": "function", "function": FUNCTION}]}
    responses = {"input": [{"role": "user", "content": [{"type": "input_text", "text": name}]}], "instructions": "S"}
    used = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 5}
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    cut = {"type": "compaction", "id": "k"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "a"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]}
    text = f"data: {json.dumps({'type': 'response.completed', 'response': {'id': 'r2', 'output': [said]}})}\n\n"
    streamed = interaction("/v1/responses", {"input": [result], "previous_response_id": "r1"}, None)
    streamed["response"]["body"] = {"string": text}
    blocks = {"id": "a", "model": "x", "content": [{"type": "text", "text": "Done."}], "usage": BLOCK_USAGE}
    parts = [{"functionCall": {"name": "look", "args": {"at": 1}}}, {"text": "hm", "thought": True}]
    asked = [{"role": "user", "parts": [{"text": "Go"}, {"inlineData": {}}]}, {"role": "model", "parts": parts}]
    back = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "a"}}}]}
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [{"text": "A"}]}, "finishReason": "STOP"}
    gemini = {"contents": [*asked, back], "systemInstruction": {"parts": [{"text": "S"}]}, "cachedContent": "c/1"}
    return {
        "interactions": [
            interaction("/v1/telemetry", {}, {}),
            interaction("/v1/chat/completions", chat, {"id": name, "choices": [choice], "created": 10, "usage": USAGE}),
            interaction(
                "/v1/responses", responses, {"id": "r1", "output": [call, cut], "usage": used, "created_at": 11}
            ),
            streamed,
            interaction(
                "/v1/responses", {"input": [cut, {"role": "user", "content": "B"}]}, {"id": "r3", "output": [said]}
            ),
            interaction("/v1/messages", {"system": "S", "messages": BLOCKS, "cache_control": {}}, blocks),
            interaction("/v1/cachedContents", {"contents": asked[:1]}, {"name": "c/1"}),
            interaction("/v1/models/g:generateContent", gemini, {"candidates": [candidate], "usageMetadata": counts}),
        ]
    }


def inspect(name: str) -> dict[str, Any]:
    used = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_tokens_cache_read": 60}
    call = {"id": "c1", "function": "look", "arguments": {"at": 1}}
    asked = {"id": "a", "role": "user", "content": "attachment://x"}
    answer = {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}], "tool_calls": [call]}
    failed = {"role": "tool", "tool_call_id": "c1", "function": "look", "content": "", "error": {"message": "no"}}
    span = {"event": "span_begin", "id": "s", "parent_id": "r", "type": "scorer", "name": "match"}

    def event(second: int, answered: object, **fields: Any) -> dict[str, Any]:
        choices = [{"message": answered, "stop_reason": "stop"}]
        output = {"model": "m", "choices": choices, "usage": used, "time": 0.5}
        asks = {"model": "p/m", "tools": [FUNCTION], "config": {"reasoning_effort": "low"}}
        return {"event": "model", **asks, "output": output, "timestamp": stamp(second), **fields}

    done = {"role": "assistant", "content": "Done"}
    events = [event(0, answer, input=[asked]), event(1, done, input_refs=[[0, 3]]), span]
    events.append(event(2, done, input=[asked], span_id="s", completed=stamp(3)))
    sample = {"id": name, "epoch": 2, "messages": [asked, answer, failed], "events": events}
    pool = {"attachments": {"x": "Go"}, "message_pool": [asked, answer, failed]}
    return {
        "eval": {"task": "t", "created": stamp(0)},
        "samples": [{**sample, **pool, "scores": {"match": {"value": "C"}}}, {"id": 2, "messages": [asked]}],
    }


def atif(name: str) -> dict[str, Any]:
    def step(second: int, source: str, message: object, **fields: Any) -> dict[str, Any]:
        return {"step_id": second, "source": source, "message": message, "timestamp": stamp(second), **fields}

    calls = [{"tool_call_id": "c1", "function_name": "look", "arguments": {"at": 1}}]
    metrics = {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 60, "cost_usd": 0.5, "extra": {}}
    seen = {"results": [{"source_call_id": "c1", "content": [{"type": "text", "text": "a"}]}, {"content": "b"}]}
    left = {"results": [{"subagent_trajectory_ref": [{"session_id": "x"}]}]}
    agent = {"name": "a", "model_name": "p/m", "tool_definitions": [{"function": FUNCTION}]}
    steps = [
        step(0, "system", "S"),
        step(1, "user", "Go"),
        step(2, "agent", "Looking.", tool_calls=calls, observation=seen, metrics=metrics, reasoning_content="hm"),
        step(3, "system", "Summarised.", observation=left),
        step(4, "agent", "Done", is_copied_context=True),
    ]
    helper = {"schema_version": "ATIF-v1.6", "agent": {"name": "h"}, "steps": steps[1:2]}
    started = {"subagent_trajectories": [helper], "continued_trajectory_ref": "x.json"}
    return {"schema_version": "ATIF-v1.6", "session_id": name, "agent": agent, "steps": steps, **started}


def terminal_bench(name: str) -> dict[str, Any]:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}
    response = json.dumps({"id": name, "model": "m", "choices": [choice], "usage": USAGE})
    options = {"tools": [{"type": "function", "function": FUNCTION}], "thinking": {"budget_tokens": 9}}
    about = {"model": "p/m", "custom_llm_provider": "p", "start_time": "2023-11-14 22:13:20"}
    return {**about, "messages": CHAT[:2], "original_response": response, "optional_params": options}


def chatgpt(name: str) -> dict[str, Any]:
    def node(parent: str | None, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        message = {"author": {"role": role, "name": None}, "content": content, "recipient": "all", **more}
        return {"parent": parent, "children": [], "message": message}

    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file://a"}
    question = {"content_type": "multimodal_text", "parts": [picture, "How many?"]}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Count."}]}
    model = {"model_slug": "m"}
    mapping = {
        "root": {"parent": None, "children": ["a"], "message": None},
        "a": node("root", "user", question, create_time=1.5),
        "b": node("a", "assistant", thoughts, metadata=model, create_time=2),
        "c": node("b", "assistant", {"content_type": "code", "text": "1+1"}, recipient="python", metadata=model),
        "d": node("c", "tool", {"content_type": "execution_output", "text": "2"}),
        "e": node("d", "assistant", {"content_type": "text", "parts": ["Two."]}, create_time=4, metadata=model),
        "x": node("d", "assistant", {"content_type": "text", "parts": ["Three."]}),
    }
    return {"title": "t", "create_time": 1.5, "mapping": mapping, "current_node": "e", "conversation_id": name}


def claude_ai(name: str) -> dict[str, Any]:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "search", "input": {"q": "rain"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "dry"}]},
        {"type": "text", "text": "It is dry."},
    ]
    attached = [{"file_name": "a.txt", "extracted_content": "Oslo"}]
    asked = {"uuid": "a", "sender": "human", "text": "Rain?", "created_at": stamp(0), "attachments": attached}
    answered = {"uuid": "b", "sender": "assistant", "text": "", "content": parts, "created_at": stamp(1), "files": []}
    return {"uuid": name, "name": "t", "created_at": stamp(0), "chat_messages": [asked, answered]}


def langchain(name: str) -> dict[str, Any]:
    used = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_token_details": {"cache_read": 60}}
    told = {"model_name": "m", "finish_reason": "tool_calls", "model_provider": "p"}
    calls = [{"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}]
    said = [
        ("human", {"content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]}),
        ("ai", {"content": "", "tool_calls": calls, "usage_metadata": used, "response_metadata": told}),
        ("tool", {"content": "a cat", "tool_call_id": "c1", "name": "look"}),
        ("ai", {"content": "A cat."}),
    ]
    messages = [{"type": kind, "data": {"type": kind, "additional_kwargs": {}, **data}} for kind, data in said]
    return {"session_id": name, "messages": messages}


def langgraph(name: str) -> dict[str, Any]:
    messages = [message["data"] for message in langchain(name)["messages"]]
    return {"values": {"messages": messages}, "next": [], "checkpoint": {"thread_id": name, "checkpoint_ns": ""}}


def ai_sdk(name: str) -> dict[str, Any]:
    picture = {"type": "file", "mediaType": "image/png", "url": "data:"}
    called = {"type": "tool-look", "toolCallId": "c1", "state": "output-available", "input": {"at": 1}}
    steps = [
        *({"type": "step-start"}, {"type": "reasoning", "text": "hm"}, {**called, "output": {"seen": "a cat"}}),
        *({"type": "step-start"}, {"type": "text", "text": "A cat.", "state": "done"}),
    ]
    asked = {"id": "a", "role": "user", "parts": [{"type": "text", "text": "What is this?"}, picture]}
    return {"id": name, "messages": [asked, {"id": "b", "role": "assistant", "parts": steps}]}


def openai_items(name: str) -> dict[str, Any]:
    called = {"type": "function_call", "id": "f", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'}
    text = {"type": "output_text", "text": "A cat.", "annotations": []}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        called,
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
        {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [text]},
    ]
    return {"id": name, "object": "list", "data": items}


def openai_batch(name: str) -> list[Any]:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "A cat."}}
    body = {"id": f"{name}-1", "model": "m", "created": 10, "choices": [choice], "usage": USAGE}
    asked = {"model": "m", "messages": CHAT[:2], "tools": [{"type": "function", "function": FUNCTION}]}
    return [
        {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": asked},
        {"id": "b1", "custom_id": name, "response": {"status_code": 200, "body": body}, "error": None},
    ]


def provider_requests(name: str) -> dict[str, Any]:
    called = {"functionCall": {"name": "look", "args": {"at": 1}}}
    answered = {"functionResponse": {"name": "look", "response": {"output": "a cat"}}}
    contents = [
        {"role": "user", "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": ""}}]},
        {"role": "model", "parts": [called]},
        {"role": "user", "parts": [answered]},
        {"role": "model", "parts": [{"text": "A cat."}]},
    ]
    tools = [{"functionDeclarations": [FUNCTION]}]
    return {"id": name, "contents": contents, "systemInstruction": {"parts": [{"text": "Be short."}]}, "tools": tools}


def api_calls(name: str) -> dict[str, Any]:
    asked = [*CHAT[:4], {"role": "user", "content": name}]
    choice = {"message": CHAT[4], "finish_reason": "stop"}
    request = {"model": "m", "messages": asked, "tools": [{"function": FUNCTION}]}
    return {"request": request, "response": {"model": "m", "choices": [choice], "usage": USAGE}}


def litellm_proxy(name: str) -> list[dict[str, Any]]:
    rows = []
    for at, (asked, answered) in enumerate(((CHAT[:2], CHAT[2]), (CHAT[:4], CHAT[4]))):
        request = {"model": "a", "messages": asked, "tools": [{"type": "function", "function": FUNCTION}]}
        told = {"id": f"{name}-{at}", "choices": [{"finish_reason": "stop", "message": answered}], "usage": USAGE}
        row = {"request_id": f"{name}-{at}", "call_type": "acompletion", "session_id": name, "spend": 0.5, "model": "m"}
        times = {"startTime": stamp(2 * at), "endTime": stamp(2 * at + 1)}
        counts = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
        held = {"proxy_server_request": request, "messages": {}, "response": told, "metadata": {"usage_object": USAGE}}
        rows.append({**row, **times, **counts, **held, "cache_hit": "False", "custom_llm_provider": "p"})
    return rows


def helicone(name: str) -> list[dict[str, Any]]:
    rows = []
    for at, row in enumerate(litellm_proxy(name)):
        held = {"request_body": row["proxy_server_request"], "response_body": row["response"]}
        times = {"request_created_at": stamp(2 * at), "response_created_at": stamp(2 * at + 1)}
        session = {"Helicone-Session-Id": name}
        more = {"request_id": f"{name}-{at}", "provider": "P", "response_model": "m", "response_status": 200}
        rows.append({**more, **times, **held, "request_properties": session, "costUSD": 0.5})
    return rows


@dataclass(frozen=True, slots=True)
class Sample:
    """How a format's records stand in files. `beside` are further files of the recording, by their path."""

    make: Any
    form: Literal["lines", "array", "object", "session"]
    """Records on lines or in an array, one in a file, or a file of lines that make one conversation."""
    file: str = "some.json"
    beside: tuple[tuple[str, Any], ...] = ()

    def records(self, count: int) -> list[Any]:
        """So many records, each another conversation; of a session, its lines."""
        return [self.make(f"r{at}") for at in range(count)] if self.form in ("lines", "array") else self.make("r0")

    def text(self, records: Any) -> bytes:
        """A file of these records."""
        if self.form in ("lines", "session") and isinstance(records, list):
            return b"".join(json.dumps(record).encode() + b"\n" for record in records)
        return json.dumps(records, indent=1 if self.form == "array" else None, ensure_ascii=False).encode()

    def write(self, folder: Path, text: bytes) -> Path:
        """The file with that text, and what stands beside it."""
        path = folder / self.file
        path.write_bytes(text)
        for name, more in self.beside:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(more))
        return path


SAMPLES: dict[str, Sample] = {
    "ai_sdk": Sample(ai_sdk, "lines"),
    "anthropic_messages": Sample(anthropic_messages, "lines"),
    "api_calls": Sample(api_calls, "lines"),
    "atif": Sample(atif, "object"),
    "beam": Sample(beam, "object", "chat.json", (("probing_questions/probing_questions.json", QUESTIONS),)),
    "braintrust": Sample(braintrust, "session", "logs.jsonl"),
    "chatgpt": Sample(chatgpt, "array"),
    "claude_ai": Sample(claude_ai, "array"),
    "claude_code": Sample(claude_code, "session", "s.jsonl"),
    "claude_stream": Sample(claude_stream, "session", "stream.jsonl"),
    "cline": Sample(cline, "object"),
    "codex": Sample(codex, "session", "rollout.jsonl"),
    "codex_exec": Sample(codex_exec, "session", "exec.jsonl"),
    "copilot_cli": Sample(copilot_cli, "session", "events.jsonl"),
    "ctxbench": Sample(ctxbench, "lines"),
    "cursor": Sample(cursor, "session", "a.jsonl"),
    "datadog_llm": Sample(datadog_llm, "session", "spans.jsonl"),
    "gemini_cli": Sample(gemini_cli, "session", "session.jsonl"),
    "goose": Sample(goose, "object"),
    "helicone": Sample(helicone, "session", "requests.jsonl"),
    "http": Sample(http, "object"),
    "inspect": Sample(inspect, "object"),
    "kdconv": Sample(kdconv, "array"),
    "langchain": Sample(langchain, "lines"),
    "langgraph": Sample(langgraph, "lines"),
    "langfuse": Sample(langfuse, "object"),
    "langsmith": Sample(langsmith, "session", "runs.jsonl"),
    "litellm_log": Sample(litellm_log, "object"),
    "litellm_proxy": Sample(litellm_proxy, "session", "spend.jsonl"),
    "locomo": Sample(locomo, "array"),
    "longmemeval": Sample(longmemeval, "array"),
    "memdaily": Sample(memdaily, "array"),
    "memorybank": Sample(memorybank, "object", "memory_bank_en.json", (("probing_questions_en.jsonl", {"r0": ["?"]}),)),
    "mini_swe": Sample(mini_swe, "object", "r0.traj.json"),
    "mlflow_traces": Sample(mlflow_traces, "object"),
    "mtrag": Sample(mtrag, "lines"),
    "openai_agents": Sample(openai_agents, "session", "spans.jsonl"),
    "openai_batch": Sample(openai_batch, "session", "batch.jsonl"),
    "openai_items": Sample(openai_items, "lines"),
    "openai_chat": Sample(openai_chat, "lines"),
    "openclaw_telemetry": Sample(openclaw_telemetry, "session", "telemetry.jsonl"),
    "otel": Sample(otel, "session", "spans.jsonl"),
    "opencode": Sample(opencode, "object"),
    "openhands": Sample(openhands, "session", "s.jsonl"),
    "pi": Sample(pi, "session", "s.jsonl"),
    "provider_requests": Sample(provider_requests, "lines"),
    "sharegpt": Sample(sharegpt, "lines"),
    "swe_agent": Sample(swe_agent, "object", "r0.traj"),
    "tau2": Sample(tau2, "object"),
    "tau_bench": Sample(tau_bench, "array"),
    "vscode_chat": Sample(vscode_chat, "session", "chat.jsonl"),
    "weave": Sample(weave, "session", "calls.jsonl"),
    "terminal_bench": Sample(terminal_bench, "object", "debug.json"),
}
