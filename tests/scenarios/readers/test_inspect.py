"""Inspect logs: every model event is a call with its request, in an archive or in JSON."""

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
from ctxbench.scenarios.model import Conversation, Usage, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers.trials import Inspect
from ctxbench.scenarios.source import Problems
from tests.examples import examples

TOOLS = [{"name": "bash", "description": "attachment://t", "parameters": {"type": "object"}}]
SYSTEM = {"id": "a", "role": "system", "content": "attachment://s"}
ASKED = {"id": "b", "role": "user", "content": [{"type": "text", "text": "List."}, {"type": "image", "image": "x"}]}
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


def test_a_log_that_was_cut_off_is_one_problem(tmp_path: Path) -> None:
    """Its header and its samples stand in one value."""
    load(tmp_path / "log.json", sample(model(1, DONE, SYSTEM, ASKED)))
    (path := tmp_path / "log.json").write_bytes(path.read_bytes()[:-20])
    problems = Problems()
    assert list(read(find([path], problems), problems)) == []
    [error] = problems.errors
    assert (error.place.line, error.what) == (1, "the JSON ends in the middle")
