"""A run's recordings as a Hugging Face data set: what is in the folder, and that it reads back without loss."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ctxbench.scenarios.model import Conversation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.harness.command import ctxbench


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of the scenario `questions`, and its data set in `dataset`."""
    made = tmp_path_factory.mktemp("dataset")
    ctxbench("run", "questions", "-s", "none", "-o", "r", "--answerer", "none", cwd=made)
    done = ctxbench("export", "dataset", "r", "--out", "dataset", cwd=made)
    assert "written: dataset (10 conversations)" in done.stderr
    assert "run dataset --format huggingface" in done.stdout
    return made


def test_what_is_in_the_folder(folder: Path) -> None:
    """Parquet with the messages in OpenAI's form, its columns in dataset_info.json, and a card whose header is YAML."""
    yaml = pytest.importorskip("yaml")
    rows = pq.read_table(folder / "dataset/data/train-00000-of-00001.parquet").to_pylist()
    assert len(rows) == 10
    assert rows[0]["messages"][0]["role"] == "system"
    info = json.loads((folder / "dataset/dataset_info.json").read_text())
    assert list(info["features"]) == list(rows[0])
    assert info["splits"]["train"]["num_examples"] == 10
    _, header, text = (folder / "dataset/README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(header)
    assert (card["language"], card["size_categories"]) == (["en", "zh"], ["n<1K"])
    assert card["configs"][0]["data_files"] == [{"split": "train", "path": "data/train-00000-of-00001.parquet"}]
    assert "10 conversations with " in text
    assert "{" not in text


def test_it_reads_back_the_same(folder: Path) -> None:
    """The reader `huggingface` gives the conversations of the run, with probes, and the library loads the folder."""
    datasets = pytest.importorskip("datasets")

    def conversations(path: str, form: str | None = None) -> list[Conversation]:
        problems = Problems(strict=True)
        return list(read(find([folder / path], problems, form), problems, iter(())))

    ctxbench("convert", "questions", "--to", "same.jsonl", cwd=folder)
    kept, again = conversations("same.jsonl"), conversations("dataset", "huggingface")
    assert [each.digest() for each in again] == [each.digest() for each in kept]
    loaded = datasets.load_dataset(str(folder / "dataset"), split="train", cache_dir=str(folder / "cache"))
    assert loaded.num_rows == 10
