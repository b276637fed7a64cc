"""Codex rollouts: a reply is one message, its usage stands behind its tools' outputs, a fork has its parent."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.model import Call, Conversation, ToolCall, Usage
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.codex import Codex
from ctxbench.scenarios.source import Problems

START = 1_700_000_000


def row(second: float, kind: str, **payload: Any) -> dict[str, Any]:
    """A row written at 22:13:20 plus so many seconds."""
    minutes, rest = divmod(20 + second, 60)
    return {
        "timestamp": f"2023-11-14T22:{13 + int(minutes):02}:{rest:06.3f}Z",
        "type": kind,
        "payload": {key.rstrip("_"): value for key, value in payload.items()},
    }


def session(second: float = 0, name: str = "s1", **fields: Any) -> dict[str, Any]:
    base = {"text": "You are Codex."}
    return row(second, "session_meta", id=name, cwd="/home/someone", cli_version="1", base_instructions=base, **fields)


def turn(second: float, model: str = "gpt", effort: str | None = "high") -> dict[str, Any]:
    return row(second, "turn_context", model=model, effort=effort)


def item(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return row(second, "response_item", type=kind, **fields)


def said(second: float, role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, "message", role=role, content=[{"type": kind, "text": text}])


def use(second: float, name: str, arguments: str = '{"cmd": "ls"}') -> dict[str, Any]:
    return item(second, "function_call", call_id=name, name="exec", arguments=arguments)


def output(second: float, name: str, text: Any = "R") -> dict[str, Any]:
    return item(second, "function_call_output", call_id=name, output=text)


def event(second: float, kind: str, **fields: Any) -> dict[str, Any]:
    return row(second, "event_msg", type=kind, **fields)


sums = count(1000)


def tokens(second: float, prompt: int = 100, read: int = 60, total: int | None = None) -> dict[str, Any]:
    """A token_count row with a sum of its own, or with the one that is given."""
    last = {"input_tokens": prompt, "cached_input_tokens": read, "output_tokens": 5, "reasoning_output_tokens": 3}
    whole = {"total_tokens": next(sums) if total is None else total}
    return event(second, "token_count", info={"last_token_usage": last, "total_token_usage": whole})


def load(path: Path, *rows: object) -> tuple[Conversation, Problems]:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows))
    assert isinstance(detect(path), Codex)
    problems = Problems()
    [conversation] = read(find([path], problems), problems)
    return conversation, problems


def test_the_items_of_a_reply_are_one_message(tmp_path: Path) -> None:
    """Reasoning, texts and calls up to the tools' outputs are one message, with the usage that comes after these."""
    thought = item(3, "reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="x")
    patch = item(6, "custom_tool_call", call_id="t2", name="apply_patch", input="*** Begin")
    picture = [{"type": "input_text", "text": "A"}, {"type": "input_image", "image_url": "data:"}]
    chat, problems = load(
        tmp_path / "s.jsonl",
        session(),
        said(1, "developer", "Rules."),
        turn(1),
        said(2, "user", "Go"),
        event(2, "user_message", message="Go"),
        thought,
        event(4, "agent_message", message="Looking."),
        said(4, "assistant", "Looking."),
        use(5, "t1"),
        patch,
        output(7, "t1"),
        item(8, "custom_tool_call_output", call_id="t2", output=picture),
        tokens(8),
        said(9, "assistant", "Done."),
        tokens(9, prompt=200),
    )
    assert not problems.errors
    assert not problems.notes
    assert [(m.role, m.text, m.time) for m in chat.messages] == [
        ("system", "You are Codex.", None),
        ("system", "Rules.", START + 1),
        ("user", "Go", START + 2),
        ("assistant", "Looking.", START + 6),
        ("tool", "R", START + 7),
        ("tool", "A", START + 8),
        ("assistant", "Done.", START + 9),
    ]
    reply = chat.messages[3]
    assert reply.thinking == "hm"
    assert reply.calls == (ToolCall("t1", "exec", '{"cmd": "ls"}'), ToolCall("t2", "apply_patch", "*** Begin"))
    assert reply.call == Call("gpt", "codex", Usage(100, 5, 60, reasoning=3), effort="high")
    assert len(chat.messages[5].media) == 1
    assert chat.meta == {"off_branch": 0, "hosted_tool_calls": 0, "version": "1"}
    assert b"/home/someone" not in chat.to_json().replace(str(tmp_path).encode(), b"")


# File: calls with usage, tokens in, read from the cache, out, tool calls, compactions.
ROLLOUTS = {
    "gpt-5.5_compaction": (87, 10_289_034, 9_283_200, 31_317, 144, 1),
    "gpt-5.5_two-session-ids": (145, 19_667_453, 19_277_184, 56_196, 222, 0),
    "gpt-5.6-sol_compaction": (169, 24_435_061, 24_002_304, 21_952, 167, 1),
    "gpt-5.6-sol_compaction2": (234, 29_835_686, 29_153_792, 40_763, 231, 1),
    "gpt-5.6-sol_short_unredacted": (8, 229_336, 185_344, 2_077, 7, 0),
    "gpt-5.6-sol_unredacted": (75, 4_636_630, 4_499_712, 19_941, 72, 0),
    "hk_gpt-5.6-sol_unredacted": (28, 1_348_378, 1_240_064, 5_724, 28, 0),
}


@pytest.mark.parametrize("name", ROLLOUTS)
def test_recorded_rollouts(recordings: Path, name: str) -> None:
    """Seven recorded sessions, to the token: the sums are those of their last token_count rows."""
    problems = Problems()
    [chat] = read(find([recordings / "codex" / f"rollout-{name}.jsonl"], problems), problems)
    assert not problems.errors
    assert not problems.notes
    used = [m.call.usage for m in chat.messages if m.call and m.call.usage]
    assert (
        len(used),
        sum(one.input or 0 for one in used),
        sum(one.cache_read or 0 for one in used),
        sum(one.output or 0 for one in used),
        sum(len(m.calls) for m in chat.messages),
        len(chat.compactions),
    ) == ROLLOUTS[name]
    # the one session that was saved while it ran ends with a reply whose counts had not come
    assert len(list(chat.calls())) - len(used) == (name == "hk_gpt-5.6-sol_unredacted")
    assert {m.call.model for m in chat.messages if m.call} == {name.removeprefix("hk_").partition("_")[0]}
