"""Inspect logs: every model event is a call with its request, in an archive or in JSON."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Call, Conversation, ToolCall, Usage, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.inspect import Inspect
from ctxbench.scenarios.source import Problems
from tests.examples import examples

START = 1_700_000_000
TOOLS = [{"name": "bash", "description": "attachment://t", "parameters": {"type": "object"}}]
SYSTEM = {"id": "a", "role": "system", "content": "attachment://s"}
ASKED = {"id": "b", "role": "user", "content": [{"type": "text", "text": "List."}, {"type": "image", "image": "x"}]}
USED = {
    "id": "c",
    "role": "assistant",
    "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Listing."}],
    "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}],
}
RESULT = {"id": "d", "role": "tool", "tool_call_id": "c1", "function": "bash", "content": "a\nb"}
DONE = {"id": "e", "role": "assistant", "content": "a and b"}
ATTACHMENTS = {"s": "Be short.", "t": "Runs a command."}


def stamp(second: int) -> str:
    return f"2023-11-14T22:13:{20 + second}.000000+00:00"


def usage(prompt: int, output: int, total: int, read: int = 0, written: int = 0) -> dict[str, Any]:
    counts = {"input_tokens": prompt, "output_tokens": output, "total_tokens": total}
    return counts | {"input_tokens_cache_read": read, "input_tokens_cache_write": written}


def model(second: int, answer: Any, *sent: Any, counts: Any = None, **fields: Any) -> dict[str, Any]:
    output = {
        "model": "gpt-4o-2024",
        "choices": [{"message": answer, "stop_reason": "stop"}],
        "usage": counts,
        "time": 0.5,
    }
    times = {"timestamp": stamp(second), "completed": stamp(second + 1)}
    event = {"event": "model", "model": "openai/gpt-4o", "input": sent, "tools": TOOLS, "config": {}, "output": output}
    return {**event, **times, **fields}


def sample(*events: Any, **fields: Any) -> dict[str, Any]:
    score = {"scores": {"match": {"value": "C"}}, "attachments": ATTACHMENTS}
    return {"id": "s1", "epoch": 1, "input": "List.", "messages": [SYSTEM, ASKED], "events": events, **score, **fields}


def load(path: Path, *samples: Any) -> tuple[list[Conversation], Problems]:
    """What is read of a log of these samples, as an archive if the path ends so."""
    header = {"version": 2, "status": "success", "eval": {"task": "files", "model": "openai/gpt-4o"}}
    if path.suffix == ".eval":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("_journal/start.json", "{}")
            for at, one in enumerate(samples):
                archive.writestr(f"samples/{at}_epoch_1.json", one if isinstance(one, str) else json.dumps(one))
            archive.writestr("header.json", json.dumps(header))
    else:
        path.write_text(json.dumps({**header, "samples": samples}))
    assert isinstance(detect(path), Inspect)
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


@pytest.mark.parametrize("name", ["some.eval", "some.json"])
def test_requests_of_a_sample_are_a_conversation(tmp_path: Path, name: str) -> None:
    """Two calls, the second with the first one's answer: one conversation, with what each call reported."""
    [told], problems = load(
        tmp_path / name,
        sample(
            {"event": "sample_init"},
            model(1, USED, SYSTEM, ASKED, counts=usage(1124, 23, 1147), config={"reasoning_effort": "low"}),
            model(3, DONE, SYSTEM, ASKED, USED, RESULT, counts=usage(1568, 17, 1585, read=1024)),
        ),
    )
    assert not problems.errors
    assert not problems.notes
    assert (told.id, told.meta) == ("files/s1", {"task": "files", "score match": "C"})
    assert [(m.role, m.text, len(m.media), m.time) for m in told.messages] == [
        ("system", "Be short.", 0, None),
        ("user", "List.", 1, None),
        ("assistant", "Listing.", 0, START + 2),
        ("tool", "a\nb", 0, None),
        ("assistant", "a and b", 0, START + 4),
    ]
    first, last = told.messages[2], told.messages[4]
    assert (first.calls, first.thinking) == ((ToolCall("c1", "bash", '{"cmd":"ls"}'),), "hm")
    counts = Usage(1124, 23, 0, 0)
    assert first.call == Call("gpt-4o-2024", "openai", counts, START + 1, effort="low", stop="stop", requested="gpt-4o")
    assert last.call is not None
    assert last.call.usage == Usage(1568, 17, 1024, 0)
    assert told.tools[0].description == "Runs a command."


@pytest.mark.parametrize(
    ("counts", "whole"),
    [
        (usage(1568, 17, 1585, read=1024), Usage(1568, 17, 1024, 0)),
        (usage(10, 17, 1151, read=1024, written=100), Usage(1134, 17, 1024, 100)),
        (usage(1568, 17, 1585), Usage(1568, 17, 0, 0)),
        ({"input_tokens": 9, "output_tokens": 2}, Usage(9, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "total_cost": 0.5}, Usage(9, 2, cost=0.5)),
    ],
)
def test_the_total_tells_whether_the_prompt_is_whole(tmp_path: Path, counts: Any, whole: Usage) -> None:
    """`input_tokens` includes what was read, or does not: the prompt is whole either way."""
    [told], problems = load(tmp_path / "some.json", sample(model(1, DONE, ASKED, counts=counts)))
    assert not problems.errors
    assert [m.call.usage for m in told.messages if m.call] == [whole]


def test_scorers_and_agents_are_conversations_of_their_own(tmp_path: Path) -> None:
    """The innermost agent or scorer around a call names its conversation; steps of older logs do as well."""

    def span(name: str, kind: str, parent: str | None = None) -> dict[str, Any]:
        return {"event": "span_begin", "id": f"span {name}", "parent_id": parent, "type": kind, "name": name}

    [main, helper, grader, older], problems = load(
        tmp_path / "some.json",
        sample(
            span("react", "agent"),
            model(1, USED, ASKED, span_id="span react"),
            span("bash", "tool", "span react"),
            span("helper", "agent", "span bash"),
            model(2, DONE, {"role": "user", "content": "Help."}, span_id="span helper"),
            model(3, DONE, ASKED, USED, RESULT, span_id="span bash"),
            span("match", "scorer"),
            model(5, DONE, {"role": "user", "content": "Right?"}, span_id="span match"),
            {"event": "step", "action": "begin", "type": "scorer", "name": "old"},
            model(7, DONE, {"role": "user", "content": "Sure?"}),
            {"event": "step", "action": "end", "type": "scorer", "name": "old"},
        ),
    )
    assert not problems.errors
    assert [one.id for one in (main, helper, grader, older)] == [
        *("files/s1", "files/s1/helper", "files/s1/match", "files/s1/old"),
    ]
    assert [len(one.messages) for one in (main, helper, grader, older)] == [4, 2, 2, 2]
    assert "parent" not in main.meta
    assert helper.meta["parent"] == "files/s1"


def test_messages_in_a_pool(tmp_path: Path) -> None:
    """A request may name its messages by ranges of a pool; a range outside of it costs only that call."""
    first = model(1, USED, input_refs=[[0, 2]])
    wrong = model(2, DONE, input_refs=[[3, 9]])
    last = model(3, DONE, input_refs=[[0, 2], [2, 4]])
    [told], problems = load(
        tmp_path / "some.json", sample(first, wrong, last, message_pool=[SYSTEM, ASKED, USED, RESULT])
    )
    assert [m.role for m in told.messages] == ["system", "user", "assistant", "tool", "assistant"]
    [error] = problems.errors
    assert (error.place.field, error.what) == ("samples[0].events[1].input_refs", "messages 3 to 9 of a pool of 4")


def test_errors_of_tools_and_calls(tmp_path: Path) -> None:
    """A tool's error is sent in the place of its result; a call without an answer is none."""
    failed = {**RESULT, "content": "", "error": {"type": "timeout", "message": "Timed out."}}
    unanswered = {**model(5, DONE, ASKED), "output": {"model": "m", "choices": []}, "error": "overloaded"}
    [told], problems = load(
        tmp_path / "some.json", sample(model(1, USED, ASKED), unanswered, model(3, DONE, ASKED, USED, failed))
    )
    assert not problems.errors
    assert [m.text for m in told.messages] == ["List.", "Listing.", "Timed out.", "a and b"]


def test_a_sample_without_events(tmp_path: Path) -> None:
    """Its last messages are the conversation, without calls; epochs have names of their own."""
    [told], problems = load(tmp_path / "some.json", sample(messages=[ASKED, USED, RESULT, DONE], epoch=2))
    assert not problems.errors
    assert told.id == "files/s1.2"
    assert [m.role for m in told.messages] == ["user", "assistant", "tool", "assistant"]
    assert all(message.call is None for message in told.messages)


def test_an_archive_in_zstd(tmp_path: Path) -> None:
    """Newer archives are compressed by zstd, which Python's zipfile does not unpack."""
    path = tmp_path / "some.eval"
    load(path, sample(model(1, DONE, ASKED)))
    with zipfile.ZipFile(path) as archive:
        texts = {info.filename: archive.read(info) for info in archive.infolist()}
    files, entries = b"", b""
    for name, text in texts.items():
        packed = zstandard.compress(text)
        sizes = (zipfile.crc32(text), len(packed), len(text), len(name))
        entries += b"PK\1\2" + struct.pack("<6H3I5H2I", 63, 63, 0, 93, 0, 33, *sizes, *[0] * 5, len(files))
        entries += name.encode()
        files += b"PK\3\4" + struct.pack("<5H3I2H", 63, 0, 93, 0, 33, *sizes, 0) + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(texts), len(texts), len(entries), len(files), 0)
    path.write_bytes(files + entries + b"PK\5\6" + end)
    problems = Problems()
    [told] = read(find([path], problems), problems)
    assert not problems.errors
    assert [m.text for m in told.messages] == ["List.", "a and b"]


@pytest.mark.parametrize("name", ["some.eval", "some.json"])
@pytest.mark.parametrize(
    ("bad", "field", "what"),
    [
        ({"id": "s2", "messages": 5}, ".messages", "expected array"),
        (sample({"event": 5}), ".events[0].event", "expected str"),
        (
            sample(model(1, {"role": "oracle"}, ASKED)),
            ".events[0].output.choices[0].message.role",
            "unknown role 'oracle'",
        ),
        (sample({**model(1, DONE, ASKED), "timestamp": "noon"}), ".events[0].timestamp", "'noon' is no time"),
        (sample(messages=[RESULT]), ".messages[0]", "tool result for 'c1'"),
    ],
)
def test_a_bad_sample_is_one_clear_error(tmp_path: Path, name: str, bad: Any, field: str, what: str) -> None:
    """It is named by its file in the archive, or its place in the list, and by its field; the other is read."""
    told, problems = load(tmp_path / name, bad, sample(model(1, DONE, ASKED), id="s9"))
    assert [m.text for m in told[-1].messages] == ["List.", "a and b"]
    [error] = problems.errors
    assert error.place.field == ("samples/0_epoch_1.json" if name == "some.eval" else "samples[0]") + field
    assert what in error.what


def test_an_archive_that_was_cut_off(tmp_path: Path) -> None:
    """It is one error; a damaged file in it costs only itself."""
    path = tmp_path / "some.eval"
    load(path, sample(model(1, DONE, ASKED)), sample(model(1, DONE, ASKED), id="s2"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    [error] = problems.errors
    assert "no zip archive" in error.what
    at = whole.index(b"samples/1_epoch_1.json") + 60
    path.write_bytes(whole[:at] + b"\0\0\0\0" + whole[at + 4 :])
    problems = Problems()
    [told] = read(find([path], problems), problems)
    assert told.id == "files/s1"
    [error] = problems.errors
    assert error.place.field == "samples/1_epoch_1.json"
    assert "cannot be unpacked" in error.what


@examples(300, ignored=HealthCheck)
@given(st.data())
def test_any_damage_of_an_archive(data: st.DataObject) -> None:
    """Whatever bytes of an archive are others: only problems with its place, and sound conversations."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.eval"
        load(path, sample(model(1, DONE, ASKED)), sample(model(1, DONE, ASKED), id="s2"))
        damaged = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(2, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(damaged)
        problems = Problems()
        for conversation in read(find([path], problems), problems):
            check(conversation, Place(str(path)))
        assert all(error.place.file == str(path) for error in problems.errors)


# File: conversations, those of scorers among them, messages of the others, calls, tokens in, read, tool calls.
LOGS = {
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (10, 0, 30, 10, 620, 0, 0),
    "2025-05-12T20-27-36-04-00_browser.json": (1, 0, 10, 5, 15_235, 9_088, 4),
    "2025-05-12T20-28-26-04-00_security-guide.json": (6, 3, 9, 6, 959, 0, 0),
    "log_message_deduplication.eval": (1, 0, 12, 6, 0, 0, 5),
    "log_read_sample.eval": (1, 0, 3, 1, 66, 0, 0),
}


@pytest.mark.parametrize("name", LOGS)
def test_recorded_logs(recordings: Path, name: str) -> None:
    """Five recorded logs, to the token."""
    problems = Problems()
    told = list(read(find([recordings / "inspect" / name], problems), problems))
    assert not problems.errors
    assert not problems.notes
    messages = [message for one in told for message in one.messages]
    used = [message.call.usage for message in messages if message.call and message.call.usage]
    assert (
        len(told),
        sum("parent" in one.meta for one in told),
        sum(len(one.messages) for one in told if "parent" not in one.meta),
        sum(message.call is not None for message in messages),
        sum(one.input or 0 for one in used),
        sum(one.cache_read or 0 for one in used),
        sum(len(message.calls) for message in messages),
    ) == LOGS[name]


def test_a_recorded_log_without_texts(recordings: Path) -> None:
    """Of eleven results of tools whose calls are not in it, each is named and left out."""
    problems = Problems()
    assert not list(read(find([recordings / "inspect" / "log_tool_call_error.json"], problems), problems))
    assert {error.what.partition(" for ")[0] for error in problems.errors} == {"tool result"}
