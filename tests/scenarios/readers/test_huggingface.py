from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import MissingExtra, RecordingError
from ctxbench.scenarios.model import Conversation, Tool
from ctxbench.scenarios.read import Batch, detect, find, parse_format, read
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
SHAREGPT = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]


def load(*files: Path, reader: HuggingFace | None = None) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(reader or HuggingFace(), files)], problems)), problems.errors


def jsonl(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rows.jsonl"


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra that brings it."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"ctxbench\[datasets\]"):
        load(jsonl(tmp_path, {"messages": OPENAI}))


def test_it_is_never_chosen_by_content(tmp_path: Path) -> None:
    """Files are told by their own form; this reader is named."""
    assert not isinstance(detect(jsonl(tmp_path, {"messages": OPENAI})), HuggingFace)
    assert parse_format("huggingface(name='org/data', split='test')") == HuggingFace("org/data", split="test")


class TestWithTheLibrary:
    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("datasets")

    def test_a_parquet_file(self, tmp_path: Path) -> None:
        """Rows of OpenAI messages are read with their tool calls, though a table fills what is absent with nulls."""
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        rows = [{"id": "x", "messages": OPENAI}, {"id": "y", "messages": OPENAI}]
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
        conversations, problems = load(tmp_path / "rows.parquet")
        assert not problems
        assert [conversation.id for conversation in conversations] == ["rows/x", "rows/y"]
        assert [message.role for message in conversations[0].messages] == ["user", "assistant", "tool"]
        assert conversations[0].messages[2].answers == conversations[0].messages[1].calls[0].id == "c1"

    def test_json_lines_of_sharegpt(self, tmp_path: Path) -> None:
        """Rows of ShareGPT turns are read under `conversations`, and named by their number."""
        conversations, problems = load(jsonl(tmp_path, {"conversations": SHAREGPT}, {"conversations": SHAREGPT}))
        assert not problems
        assert [conversation.id for conversation in conversations] == ["rows/0", "rows/1"]
        assert [message.text for message in conversations[0].messages] == ["hello", "hi"]

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

    def test_no_such_column(self, tmp_path: Path) -> None:
        """One problem, not one a row, and it names the columns that are there."""
        conversations, [problem] = load(jsonl(tmp_path, {"prompt": "a"}, {"prompt": "b"}))
        assert not conversations
        assert "prompt" in problem.what

    def test_what_was_saved_to_disk(self, tmp_path: Path) -> None:
        """The folders that `save_to_disk` writes are read as they stand, for a data set and for several splits."""
        datasets = pytest.importorskip("datasets")
        table = datasets.Dataset.from_list([{"messages": OPENAI}])
        datasets.DatasetDict({"train": table, "test": table}).save_to_disk(str(tmp_path / "saved"))
        problems = Problems()
        conversations = list(read(find([tmp_path / "saved"], problems, "huggingface"), problems))
        assert not problems.errors
        assert [conversation.id for conversation in conversations] == ["test/0", "train/0"]

    def test_damaged_rows_cost_only_themselves(self, tmp_path: Path) -> None:
        """The problem names row, message and field; the rest of the table is read."""
        wrong = [{"role": "robot", "content": "a"}]
        unknown = [{"from": "robot", "value": "a"}]
        file = jsonl(tmp_path, {"messages": wrong}, {"messages": OPENAI[:1]})
        conversations, [problem] = load(file)
        assert [conversation.id for conversation in conversations] == ["rows/1"]
        assert (problem.place.line, problem.place.field) == (1, "messages[0].role")
        _, [problem] = load(jsonl(tmp_path, {"conversations": SHAREGPT}, {"conversations": unknown}))
        assert (problem.place.line, problem.place.field) == (2, "conversations[0].from")

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
