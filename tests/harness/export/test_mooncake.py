"""Traces for benchmarks of servers: times, lengths and shared blocks, worked by hand and as a user writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.export.mooncake import BlockHashes, trace
from ctxbench.harness.folder.run import load
from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.model import Call, Conversation, Message
from tests.harness.command import ctxbench
from tests.harness.runs import plan, recording


def test_blocks_share_a_number_while_prompts_are_the_same() -> None:
    """A B C D, then A B C E: the first block is shared, the second is not. C D after nothing is another one."""
    hashes = BlockHashes(2)
    assert hashes.of(np.array([1, 2, 3, 4], np.int32)) == (0, 1)
    assert hashes.of(np.array([1, 2, 3, 5], np.int32)) == (0, 2)
    assert hashes.of(np.array([3, 4, 9], np.int32)) == (3, 4)
    assert hashes.of(np.array([], np.int32)) == ()


def test_times_are_the_recorded_ones(tmp_path: Path) -> None:
    """Calls begin when they were recorded, those of two conversations among each other, and the first at 0."""

    def conversation(name: str, start: float) -> Conversation:
        messages = [
            Message("u0", "user", "hello there", time=start),
            Message("a0", "assistant", "hi", time=start + 2, call=Call("gpt-4o", started=start)),
            Message("u1", "user", "and now?", time=start + 10),
            Message("a1", "assistant", "bye", time=start + 11, call=Call("gpt-4o", started=start + 10)),
        ]
        return Conversation(name, tuple(messages))

    lines = [conversation("one", 1_000_000).to_json(), conversation("two", 1_000_003).to_json()]
    (tmp_path / "c.jsonl").write_bytes(b"\n".join(lines))
    execute(plan(tmp_path / "c.jsonl", strategies=("none", "last_turn")), tmp_path / "run")
    calls = trace(load(tmp_path / "run"), "none", 4)
    assert [call.timestamp for call in calls] == [0, 3000, 10_000, 13_000]
    assert [len(call.hash_ids) for call in calls] == [-(-call.input_length // 4) for call in calls]
    assert calls[0].hash_ids == calls[1].hash_ids, "the same prompt in another conversation"
    assert calls[2].hash_ids[0] == calls[0].hash_ids[0], "the history is sent again"
    assert trace(load(tmp_path / "run"), "last_turn", 4)[2].input_length < calls[2].input_length
    with pytest.raises(SpecError, match="holds nothing"):
        trace(load(tmp_path / "run"), "none", 0)


def test_the_command(tmp_path: Path) -> None:
    """A line of JSON for each call, in the order of their times; the same run gives the same bytes."""
    ctxbench("run", recording(tmp_path), "-s", "none", "-s", "last_turn", "-o", "r", cwd=tmp_path)
    done = ctxbench("export", "mooncake", "r", "--strategy", "none", "--to", "t.jsonl", cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert done.stderr.splitlines()[-1] == f"{len(lines)} calls under none"
    assert all(set(line) == {"timestamp", "input_length", "output_length", "hash_ids"} for line in lines)
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)
    printed = ctxbench("export", "mooncake", "r", "--strategy", "none", cwd=tmp_path).stdout
    assert printed == (tmp_path / "t.jsonl").read_text()
    assert "was not run here" in ctxbench("export", "mooncake", "r", "-s", "focus", cwd=tmp_path, code=2).stderr
