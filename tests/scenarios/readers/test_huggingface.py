import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Conversation, Tool
from ctxbench.scenarios.read import Batch, detect, find, is_remote, parse_format, read, remote
from ctxbench.scenarios.readers.huggingface import HuggingFace
from ctxbench.scenarios.source import Problems

OPENAI = [
    {"role": "user", "content": "hello", "tool_calls": None, "tool_call_id": None},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        "tool_call_id": None,
    },
    {"role": "tool", "content": "found", "tool_calls": None, "tool_call_id": "c1"},
]
SIMPLE = [{"role": "user", "content": 'hello, "you"'}, {"role": "assistant", "content": "hi\nthere"}]
SHAREGPT = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]


def load(*files: Path, reader: HuggingFace | None = None) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(reader or HuggingFace(), files)], problems)), problems.errors


def jsonl(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rows.jsonl"


def table(file: Path, *rows: dict[str, Any]) -> Path:
    """Write rows as a Parquet file, or as an Arrow file or stream."""
    made = pa.Table.from_pylist(list(rows))
    if file.suffix == ".parquet":
        pq.write_table(made, file)
        return file
    new = pa.ipc.new_file if file.suffix == ".feather" else pa.ipc.new_stream
    with new(str(file), made.schema) as writer:
        writer.write_table(made)
    return file


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of the hub is left out, and the reason names the extra that brings it; tables are read."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    conversations, [problem] = load(reader=HuggingFace("org/data"))
    assert not conversations
    assert "datasets is not installed (pip install 'ctxbench[datasets]')" in str(problem)
    table(tmp_path / "rows.parquet", {"messages": OPENAI})
    problems = Problems()
    assert [each.id for each in read(find([tmp_path], problems), problems)] == ["rows/0"]
    assert not problems.errors


def test_json_lines_are_told_by_their_own_form(tmp_path: Path) -> None:
    """They are other readers' too; this one is named for them, with its options."""
    assert not isinstance(detect(jsonl(tmp_path, {"messages": OPENAI})), HuggingFace)
    assert parse_format("huggingface(name='org/data', split='test')") == HuggingFace("org/data", split="test")


@pytest.mark.parametrize("name", ["a.parquet", "b.arrow", "c.feather", "no_ending.parquet"])
def test_tables_are_known_by_their_content(tmp_path: Path, name: str) -> None:
    """Whatever the ending says: a column of messages, of either form, or of JSON text."""
    for number, row in enumerate(({"messages": OPENAI}, {"conversations": SHAREGPT}, {"messages": json.dumps(OPENAI)})):
        file = table(tmp_path / f"{number}{name}", row)
        assert isinstance(detect(file.rename(tmp_path / str(number))), HuggingFace)


def test_other_tables_are_no_recordings(tmp_path: Path) -> None:
    """A run folder of ours has tables with a number of messages, and people have tables of anything."""
    table(tmp_path / "conversations.parquet", {"conversation": "a", "messages": 5})
    table(tmp_path / "prices.arrow", {"price": 1.5})
    (tmp_path / "prices.csv").write_text("conversations,price\n7,1.5\n")
    (tmp_path / "dataset_info.json").write_text('{"features": {}}')
    problems = Problems()
    assert not find([tmp_path], problems)
    assert len(problems.ignored) == 4
    assert not problems.errors
    assert detect(tmp_path / "conversations.parquet") is None


def test_csv_is_known_by_its_columns(tmp_path: Path) -> None:
    """A column of messages whose first cell is a list, in any place of the head."""
    file = tmp_path / "rows.csv"
    file.write_text('id,messages\nx,"[{""role"": ""user""}]"\n')
    assert isinstance(detect(file), HuggingFace)
    for text in ("id,messages\n", "", "id,message\nx,[]\n", '"\0'):
        file.write_text(text)
        assert not isinstance(detect(file), HuggingFace)


@pytest.mark.parametrize(
    ("address", "reader"),
    [
        ("hf://org/data", HuggingFace("org/data")),
        ("hf://datasets/org/data", HuggingFace("org/data")),
        ("hf://org/data@v1?split=test&config=main", HuggingFace("org/data", "main", "test", revision="v1")),
        ("hf://org/data/part/*.parquet?column=chosen", HuggingFace("org/data", column="chosen", file="part/*.parquet")),
    ],
)
def test_an_address(address: str, reader: HuggingFace) -> None:
    """It names the data set and its parts, and is no path."""
    assert is_remote(address)
    assert remote(address) == Batch(reader, ())
    assert remote(address, "huggingface(streaming=False)").reader == replace(reader, streaming=False)


@pytest.mark.parametrize(
    "address",
    ["hf://org/data/", "hf://org/data@v1/logs", "hf://datasets/org/data/a.jsonl", "hf://org/data/part/*.parquet"],
)
def test_an_address_of_files(address: str) -> None:
    """It is a path, whose files may be of any format."""
    assert not is_remote(address)
    assert is_remote(f"{address}?column=chosen")


@pytest.mark.parametrize("address", ["hf://", "hf://data", "hf://../..", "hf://org/../data", "hf://org/data?splt=test"])
def test_a_bad_address_is_a_problem(address: str, tmp_path: Path) -> None:
    """It says how an address is written, or which options there are; the other inputs are read."""
    problems = Problems()
    inputs = RunInputs((address, str(jsonl(tmp_path, {"messages": OPENAI}))))
    assert len(list(inputs.read(problems))) == 1
    (error,) = problems.errors
    assert error.place.file == address
    assert "hf://owner/data" in error.remedy or "split" in error.remedy


class TestWithTheLibrary:
    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("datasets")

    def test_what_the_library_writes_reads_back(self, tmp_path: Path) -> None:
        """Parquet, CSV with JSON text or by pandas, and `save_to_disk`, without a word about the format."""
        datasets = pytest.importorskip("datasets")
        made = datasets.Dataset.from_list([{"id": "x", "messages": SIMPLE}, {"id": "y", "messages": SIMPLE}])
        made.to_parquet(str(tmp_path / "parquet" / "rows.parquet"))
        made.map(lambda row: {"text": json.dumps(row["messages"])}).remove_columns("messages").rename_column(
            "text", "messages"
        ).to_csv(str(tmp_path / "csv" / "rows.csv"))
        (tmp_path / "pandas").mkdir()
        pd.DataFrame({"id": ["x", "y"], "messages": [SIMPLE, SIMPLE]}).to_csv(tmp_path / "pandas" / "rows.csv")
        made.save_to_disk(str(tmp_path / "saved"))
        for name in ("parquet", "csv", "pandas", "saved"):
            problems = Problems()
            conversations = list(read(find([tmp_path / name], problems), problems))
            assert not problems.errors
            assert not problems.ignored
            assert [each.id.partition("/")[2] for each in conversations] == ["x", "y"]
            assert [(each.role, each.text) for each in conversations[0].messages] == [
                (each["role"], each["content"]) for each in SIMPLE
            ]

    def test_a_column_without_a_value(self, tmp_path: Path) -> None:
        """It is named, and the other rows are read."""
        conversations, [problem] = load(jsonl(tmp_path, {"conversations": SHAREGPT}, {"conversations": None}))
        assert (len(conversations), problem.place.line, problem.place.field) == (1, 2, "conversations")

    def test_a_named_column(self, tmp_path: Path) -> None:
        """Either form may stand in another column, which is named."""
        file = jsonl(tmp_path, {"chosen": SHAREGPT, "rejected": OPENAI[:1]})
        [first], _ = load(file, reader=HuggingFace(column="chosen"))
        [second], _ = load(file, reader=HuggingFace(column="rejected"))
        assert (len(first.messages), len(second.messages)) == (2, 1)

    def test_tools_and_what_a_table_fills_in(self, tmp_path: Path) -> None:
        """Schemas are read as records or as text, and nulls that stand for nothing in arguments are left out."""
        called = {"id": "c1", "function": {"name": "f", "arguments": {"q": 1, "other": None}}}
        rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": [called]}]
        schema = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "other": None}}}
        for n, tools in enumerate(([schema], json.dumps([schema["function"]]).replace(', "other": null', ""))):
            (tmp_path / str(n)).mkdir()
            [conversation], problems = load(jsonl(tmp_path / str(n), {"messages": rows, "tools": tools}))
            assert not problems
            assert conversation.tools == (Tool("f", "", '{"type":"object"}'),)
            assert conversation.messages[1].calls[0].arguments == '{"q":1}'

    def test_what_was_saved_to_disk(self, tmp_path: Path) -> None:
        """The folders that `save_to_disk` writes are read as they stand, for a data set and for several splits."""
        datasets = pytest.importorskip("datasets")
        split = datasets.Dataset.from_list([{"messages": OPENAI}])
        datasets.DatasetDict({"train": split, "test": split}).save_to_disk(str(tmp_path / "saved"))
        problems = Problems()
        conversations = list(read(find([tmp_path / "saved"], problems), problems))
        assert not problems.errors
        assert [conversation.id for conversation in conversations] == ["test/0", "train/0"]

    def test_files_that_are_no_data_sets(self, tmp_path: Path) -> None:
        """A damaged table and a file of another kind are a problem each, and the file after them is read."""
        (tmp_path / "a.parquet").write_bytes(b"PAR1 no table")
        (tmp_path / "b.txt").write_text("text")
        conversations, problems = load(
            tmp_path / "a.parquet", tmp_path / "b.txt", jsonl(tmp_path, {"messages": OPENAI[:1]})
        )
        assert len(conversations) == 1
        assert [Path(problem.place.file).name for problem in problems] == ["a.parquet", "b.txt"]

    def test_a_name_of_the_hub_needs_no_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The options go to `load_dataset` as they are, and nothing is opened before it is asked for."""
        datasets = pytest.importorskip("datasets")
        asked = []

        def load_dataset(*args: Any, **options: Any) -> list[dict[str, Any]]:
            asked.append((args, options))
            return [{"messages": OPENAI[:1]}]

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        reader = HuggingFace("org/data", config="main", split="test", revision="v1")
        [conversation], problems = load(reader=reader)
        assert not problems
        assert conversation.id == "org/data/0"
        assert asked == [(("org/data", "main"), {"split": "test", "streaming": True, "revision": "v1"})]

    def test_a_name_that_the_hub_does_not_have(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the library raises is a problem that says what to check."""
        datasets = pytest.importorskip("datasets")

        def load_dataset(*args: Any, **options: Any) -> None:
            raise datasets.exceptions.DatasetNotFoundError("Dataset 'org/none' doesn't exist on the Hub")

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        conversations, [problem] = load(reader=HuggingFace("org/none"))
        assert not conversations
        assert "doesn't exist on the Hub" in problem.what
        assert "split" in problem.remedy
