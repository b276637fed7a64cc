"""Tests of calls that stand in several recordings: each is billed once."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.metrics.validation.comparison import CacheReplay, Counters
from ctxbench.scenarios.model import Call, Conversation, Message, Usage, independent_units
from ctxbench.scenarios.source import Problems

from .readers.samples import SAMPLES
from .readers.test_claude_code import said, text, user

ORIGIN = [
    user(0, "u1", None, "Where?"),
    said(4, "a1", "u1", "1", text("In etc."), 9),
    user(60, "u2", "a1", "Which?"),
    said(63, "a2", "u2", "2", text("8080."), 5),
]
FORK = [*ORIGIN, user(70, "u3", "a2", "Change it."), said(73, "a3", "u3", "3", text("Done."), 12)]
PARENT, CHILD = "0197aaaa-parent", "0197bbbb-child"


def read(folder: Path) -> tuple[list[Conversation], list[str]]:
    problems = Problems()
    found = list(RunInputs((str(folder),)).read(problems))
    assert not problems.errors
    return found, problems.notes


def written(path: Path, lines: list[dict[str, Any]], **fields: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({**line, **fields}) + "\n" for line in lines))


def outputs(conversations: list[Conversation]) -> list[int | None]:
    """Output tokens of the calls that are billed."""
    return [
        used.output for each in conversations for message in each.messages if message.call
        for _, used in message.call.billed
    ]  # fmt: skip


def units(conversations: list[Conversation]) -> int:
    return len(set(independent_units({each.id: each.meta for each in conversations}).values()))


BRANCHED, OF_ANOTHER = {"forkedFrom": {"sessionId": "s1"}}, {"forkedFrom": {"sessionId": "gone"}}


@pytest.mark.parametrize(
    ("fork", "fields", "own", "parents"),
    [
        ("s2", {}, [2, 1], [None, "s1"]),
        ("s2", OF_ANOTHER, [2, 1], [None, "gone"]),
        ("s0", {}, [3, 0], [None, "s0"]),
        ("s0", BRANCHED, [3, 0], ["s1", None]),
    ],
)
def test_a_session_that_was_forked_into_another_file(
    tmp_path: Path, fork: str, fields: dict[str, Any], own: list[int], parents: list[str | None]
) -> None:
    """9 + 5 + 12 tokens of three calls, whichever file is read first. The second one that is read names the first as
    its parent, but for a branch, which names its own."""
    written(tmp_path / "s1.jsonl", ORIGIN)
    written(tmp_path / f"{fork}.jsonl", FORK, sessionId=fork, **fields)
    found, notes = read(tmp_path)
    assert sorted(filter(None, outputs(found))) == [5, 9, 12]
    assert [sum(1 for _ in each.calls()) for each in found] == own
    assert [each.meta.get("parent") for each in found] == parents
    assert units(found) == 1
    assert len(notes) == 1
    assert notes[0].startswith(f"2 model calls are copies of others in the recordings (2 in {found[1].id}): each")


def test_a_copy_of_a_session_that_was_cut_short(tmp_path: Path) -> None:
    """The whole session goes on where its copy ends, which is no fork; read the other way round, it is all there is."""
    written(tmp_path / "a" / "s1.jsonl", ORIGIN[:-1])
    written(tmp_path / "b" / "s1.jsonl", ORIGIN)
    found, notes = read(tmp_path)
    assert [each.id for each in found] == ["s1", "s1~2"]
    assert units(found) == 1
    assert notes[0].startswith("1 recording goes on where an earlier copy of the same session ends (s1~2): one ")
    written(tmp_path / "a" / "s1.jsonl", ORIGIN)
    written(tmp_path / "b" / "s1.jsonl", ORIGIN[:-1])
    assert [each.id for each in read(tmp_path)[0]] == ["s1"]


@pytest.mark.parametrize("named", [{"agentId": "x"}, {"agentId": None}])
def test_an_agent_in_the_file_of_its_session_and_in_its_own(tmp_path: Path, named: dict[str, Any]) -> None:
    """It is one conversation, whether its session names it or not, and the note counts its calls."""
    agent = [{**line, "isSidechain": True, "agentId": "x", "uuid": f"x{line['uuid']}"} for line in ORIGIN]
    agent = [{**line, "parentUuid": line["parentUuid"] and f"x{line['parentUuid']}"} for line in agent]
    listed = [{**line, **named} for line in agent]
    written(tmp_path / "s1.jsonl", [*listed, user(80, "u9", None, "Hi"), said(81, "a9", "u9", "9", text("Hello"), 7)])
    written(tmp_path / "s1" / "subagents" / "agent-x.jsonl", agent)
    found, notes = read(tmp_path)
    assert {each.id for each in found} == {"s1", "s1/x"}
    assert sorted(filter(None, outputs(found))) == [5, 7, 9]
    assert "2 model calls are copies of others in the recordings (2 in s1/x" in notes[0]


def rollout(name: str, replies: list[tuple[int, str, int]], forked: str = "") -> list[dict[str, Any]]:
    """A Codex session of replies (second, text, output tokens); a fork's copies have the time of the fork."""

    def row(second: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000Z", "type": kind, "payload": payload}

    first = {"id": name, "cli_version": "1"} | ({"forked_from_id": forked} if forked else {})
    rows = [row(replies[0][0], "session_meta", first), row(replies[0][0], "turn_context", {"model": "gpt-5.5"})]
    for second, words, output in replies:
        for role, told in (("user", f"{words}?"), ("assistant", words)):
            content = [{"type": "output_text" if role == "assistant" else "input_text", "text": told}]
            rows.append(row(second, "response_item", {"type": "message", "role": role, "content": content}))
        total = {"input_tokens": 100 + output, "output_tokens": output}
        counted = {"last_token_usage": total, "total_token_usage": {**total, "total_tokens": len(rows)}}
        rows.append(row(second, "event_msg", {"type": "token_count", "info": counted}))
    return rows


@pytest.mark.parametrize("names", ["abc", "bca", "cba"])
def test_forks_whose_copies_have_lost_their_times(tmp_path: Path, names: str) -> None:
    """They are known by answer and usage: 1 and 2 of the parent, 3 and 4 of its two forks, in any order of the files.

    A session that is alike but no fork of it is billed for itself.
    """
    start = [(0, "One", 1), (20, "Two", 2)]
    written(tmp_path / f"{names[0]}.jsonl", rollout(PARENT, start))
    for at, name in ((1, CHILD), (2, "other")):
        copied = [(60, words, output) for _, words, output in start]
        written(tmp_path / f"{names[at]}.jsonl", rollout(name, [*copied, (90, "Own", 2 + at)], PARENT))
    found, _ = read(tmp_path)
    assert sorted(filter(None, outputs(found))) == [1, 2, 3, 4]
    assert units(found) == 1
    written(tmp_path / "z.jsonl", rollout("alike", [(100, "One", 1)]))
    assert sorted(filter(None, outputs(read(tmp_path)[0]))) == [1, 1, 2, 3, 4]


WITHOUT_TIME_OR_ID = {"anthropic_messages", "api_calls", "codex_exec", "langchain", "langgraph"}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_copy_of_a_recording_is_billed_once(tmp_path: Path, name: str) -> None:
    """Reading the same files once more changes no sum, for every format that records ids or times."""
    sample = SAMPLES[name]
    (tmp_path / "a").mkdir()
    sample.write(tmp_path / "a", sample.text(sample.records(1)))
    once = outputs(read(tmp_path)[0])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert outputs(read(tmp_path)[0]) == once * (1 + (name in WITHOUT_TIME_OR_ID))


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_trajectories_of_one_run_are_one_unit(tmp_path: Path, names: str) -> None:
    """A continuation in ATIF may have the session of its origin, whose steps it copies: 7 and 9 tokens in two calls."""
    first, second = (
        {"step_id": at, "source": "agent", "message": "x", "metrics": {"completion_tokens": at}} for at in (7, 9)
    )
    for name, steps in zip(names, ([first], [{**first, "is_copied_context": True}, second]), strict=True):
        run = {"schema_version": "ATIF-v1.7", "session_id": "run", "trajectory_id": name, "agent": {"name": "a"}}
        (tmp_path / f"{name}.json").write_text(json.dumps({**run, "steps": steps}))
    found, _ = read(tmp_path)
    assert (sorted(filter(None, outputs(found))), units(found)) == ([7, 9], 1)


def answered(name: str, request: str, answer: str, output: int, time: float | None = None) -> str:
    call = Call("m", usage=Usage(10, output), request_id=request)
    said = Message("u", "user", name), Message("a", "assistant", answer, time=time, call=call)
    return Conversation(name, said).to_json().decode()


def test_calls_that_may_be_two_are_billed_each(tmp_path: Path) -> None:
    """A short id that may be made up is no proof where answer and usage differ, nor are answer and usage alone.

    Calls of one file that are alike even in time ran side by side.
    """
    calls = (("req_1", "yes", 5), ("req_1", "no", 6), ("", "yes", 5), ("", "no", 7, 60.0))
    for at, call in enumerate((*calls, calls[0])):
        both = (answered(f"{at} {name}", *call) for name in "ab"[: 1 + (len(call) > 3)])
        (tmp_path / f"{at}.jsonl").write_text("\n".join(both))
    assert outputs(read(tmp_path)[0]) == [5, 6, 5, 7, 7]


def test_a_copy_in_the_cache_of_its_origin(tmp_path: Path) -> None:
    """A fork's first own call reads what the origin's last one wrote: the copies are not sent again."""
    fork = [json.loads(json.dumps(line)) for line in FORK]
    for line, (whole, read_) in zip(
        [line for line in fork if line["type"] == "assistant"], [(5000, 0), (5020, 5000), (5060, 5020)], strict=True
    ):
        written_ = {"cache_creation_input_tokens": whole - read_, "cache_read_input_tokens": read_, "input_tokens": 0}
        line["message"]["usage"] = {**written_, "output_tokens": 5}
        line["message"]["model"] = "claude-sonnet-4-5"
    written(tmp_path / "s1.jsonl", fork[:4])
    written(tmp_path / "s2.jsonl", fork, sessionId="s2")
    rows = list(CacheReplay(Counters()).compare(read(tmp_path)[0]))
    assert [(row.predicted.read, row.read) for row in rows] == [(0, 0), (5000, 5000), (5020, 5020)]
