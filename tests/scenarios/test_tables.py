"""Tables: a row is a record of whatever format it holds, in Parquet, Arrow and CSV alike."""

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxbench.scenarios import packed, source
from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.goldens.formats import CASES
from tests.scenarios.readers.samples import SAMPLES
from tests.scenarios.readers.test_fuzz import contents
from tests.scenarios.readers.traces import CALLED, LATER, PROMPT, SAID, SHOWN, shown

Rows = list[dict[str, Any]]


def parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1)


def arrow_file(path: Path, rows: Rows) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def arrow_stream(path: Path, rows: Rows) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def comma_separated(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "rows.parquet": parquet,
    "rows.arrow": arrow_file,
    "stream.arrow": arrow_stream,
    "rows.csv": comma_separated,
}


def flat(rows: Any) -> Rows:
    """Rows of a table in which all that is nested is JSON text, as exports have it."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [
        {name: json.dumps(value) if isinstance(value := row.get(name), dict | list) else value for name in names}
        for row in rows
    ]


def load(path: Path) -> tuple[list[Conversation], Problems]:
    problems = Problems()
    return list(read(find([path], problems), problems)), problems


def run(name: str, second: int, kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    """A run of LangSmith."""
    times = {"start_time": f"2025-01-01T00:00:0{second}+00:00", "end_time": f"2025-01-01T00:00:0{second + 1}+00:00"}
    ids = {"id": name, "trace_id": "T", "parent_run_id": None if name == "a" else "a"}
    extra = {"metadata": {"ls_model_name": "asked", "thread_id": "s1"}}
    return {**ids, "run_type": kind, **times, "inputs": inputs, "outputs": outputs, "extra": extra}


RUNS = [
    run("c", 5, "llm", {"messages": LATER}, {"choices": [{"message": SAID, "finish_reason": "stop"}]}),
    run("b", 2, "llm", {"messages": PROMPT}, {"choices": [{"message": CALLED, "finish_reason": "stop"}]}),
    run("a", 1, "chain", {"input": "?"}, None),
    run("t", 4, "tool", {"input": "1"}, {"output": "a cat"}),
]
TRACERS = ("braintrust", "helicone", "langsmith", "litellm_proxy", "openai_agents", "weave")
FORMATS: dict[str, Any] = {
    **{name: SAMPLES[name].records(1) for name in TRACERS},
    "logfire": [
        json.loads(line) for line in (CASES / "otel" / "the_container_logfire" / "trace0.json").read_text().splitlines()
    ],
    "mlflow": [{"trace_id": "T", "trace": json.dumps(SAMPLES["mlflow_traces"].make("T")), "trace_metadata": "{}"}],
}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_records(file: str, name: str, tmp_path: Path) -> None:
    """A table of spans, with JSON in its cells, reads like the same spans as JSON Lines."""
    WRITERS[file](tmp_path / file, flat(FORMATS[name]))
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in FORMATS[name]))
    (rows, problems), (records, _) = load(tmp_path / file), load(lines)
    assert not problems.errors
    assert records
    assert contents(rows) == contents(records)


def test_nested_columns(tmp_path: Path) -> None:
    """Structs and lists of a table are objects and lists, without the nulls that other rows bring."""
    path = tmp_path / "runs.parquet"
    parquet(path, RUNS)
    [chat], problems = load(path)
    assert not problems.errors
    assert (chat.id, shown(chat)) == ("s1", SHOWN)


def test_a_table_of_chats_within_an_archive(tmp_path: Path) -> None:
    """A column of messages makes a chat of each row; in an archive its library is not needed."""
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    parquet(tmp_path / "chats.parquet", [{"id": name, "messages": messages} for name in "ab"])
    path = tmp_path / "chats.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "chats.parquet", "chats.parquet")
    found, problems = load(path)
    assert [each.id for each in found] == ["a", "b"]
    assert [each.source for each in found] == [f"{path}/chats.parquet:{row}" for row in (1, 2)]
    assert not problems.errors


def test_a_bad_row_costs_only_itself(tmp_path: Path) -> None:
    """Its error has the number of the row, from 1."""
    path = tmp_path / "runs.csv"
    rows = flat(RUNS)
    comma_separated(path, [*rows, {**rows[0], "id": "x", "start_time": "soon"}])
    [chat], problems = load(path)
    assert shown(chat) == SHOWN
    assert [str(error) for error in problems.errors] == [
        f"{path}:5: start_time: 'soon' is no time (write it like '2025-06-15T12:00:00')"
    ]


def test_a_damaged_table_is_one_problem(tmp_path: Path) -> None:
    """A table that was cut off is named, and so is what is wrong with it, if its format is given."""
    path = tmp_path / "runs.parquet"
    parquet(path, flat(RUNS))
    path.write_bytes(path.read_bytes()[:-40])
    problems = Problems()
    assert not list(read(find([path], problems, "langsmith"), problems))
    [error] = problems.errors
    assert error.what.startswith("cannot be read as a table: ")
    assert error.place.file == str(path)


def test_long_cells(tmp_path: Path) -> None:
    """A prompt is longer than the cells that Python's CSV library takes by itself, and may hold line ends."""
    path = tmp_path / "runs.csv"
    long = run("b", 1, "llm", {"messages": [{"role": "user", "content": "x\n" * 200_000}]}, {"content": "y"})
    comma_separated(path, flat([long]))
    [chat], problems = load(path)
    assert not problems.errors
    assert len(chat.messages[0].text) == 400_000


def test_tables_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row, a line or a table that is far larger than its file is one problem, and the others are read."""
    monkeypatch.setattr(source, "LONGEST", 100_000)
    monkeypatch.setattr(source, "_BATCH_BYTES", 100_000)
    monkeypatch.setattr(packed, "FREE", 1 << 20)
    monkeypatch.setattr(packed, "RATIO", 10)
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    good = {"messages": chat, "other": ""}
    for name, rows in (
        ("row", [good, {**good, "other": "x" * 200_000}, good]),
        ("table", [good, *[{**good, "other": "x" * 90_000}] * 20]),
    ):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet", compression="zstd")
    (tmp_path / "line.csv").write_bytes(b"messages\n" + b"x" * 200_000)
    for name, count, what in (
        ("row.parquet", 2, "a row of over 0 MiB"),
        ("table.parquet", 12, "unpacks to over 1 MiB, 10 times its size"),
        ("line.csv", 0, "cannot be read as a table: a line of over 0 MiB"),
    ):
        problems = Problems()
        found = list(read(find([tmp_path / name], problems), problems))
        assert (len(found), [error.what for error in problems.errors]) == (count, [what])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_size_that_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that says it unpacks to more than memory may hold is a problem, not the end of the process."""
    monkeypatch.setattr(source, "_MEMORY", 1 << 28)
    path, text = tmp_path / "a.arrow", json.dumps([{"role": "user", "content": "x" * 5000}])
    table, options = pa.table({"messages": [text] * 100}), pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    data = path.read_bytes()
    size = len(text) * 100
    at = data.index(size.to_bytes(8, "little") + b"\x28\xb5\x2f\xfd")
    path.write_bytes(data[:at] + (1 << 40).to_bytes(8, "little") + data[at + 8 :])
    problems = Problems()
    assert not list(read(find([path], problems), problems))
    assert problems.errors[0].what.startswith("cannot be read as a table: ")
