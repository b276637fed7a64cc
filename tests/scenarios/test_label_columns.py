"""Labelled answers in tables of any shape, by the names of their columns."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.label_columns import Columns, read_tables
from ctxbench.scenarios.labelled import Labelled
from ctxbench.scenarios.source import Problems

NAMES = ("Question", "gold answers", "prediction", "rater 1", "rater 2")
SPEC = ["question=Question,gold=gold answers", "answer=prediction,label=rater 1,label=rater 2"]
ROWS = (
    ("Who wrote it?", "Ann Lee", 'It was "Ann", of course.', "1", "yes"),
    ("Which?", '["kiwi", "fig"]', "fig", "true", "false"),
    ("谁？", "['王芳', '小王']", "王芳", "对", ""),
    ("When?", "8 May", "9 May", "no", "Incorrect"),
    ("Where?", "Oslo", "Oslo", "", ""),
)


def written(folder: Path, form: str) -> Path:
    """The rows as a table of one form."""
    path = folder / f"mine.{form}"
    objects = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    if form in ("csv", "tsv"):
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file, delimiter="," if form == "csv" else "\t").writerows([NAMES, *ROWS])
    elif form == "json":
        path.write_text(json.dumps(objects))
    else:
        path.write_text("\n".join(map(json.dumps, objects)))
    return path


def read(path: Path, spec: list[str] = SPEC) -> tuple[list[Labelled], Problems]:
    problems = Problems()
    return list(read_tables([path], Columns.parse(spec), problems)), problems


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl"])
def test_every_form_reads_the_same(tmp_path: Path, form: str) -> None:
    """CSV, TSV, a JSON array and JSON Lines: several golds, quoted cells, Chinese, two labels, ties and gaps."""
    answers, problems = read(written(tmp_path, form))
    assert [each.accepted for each in answers] == [("Ann Lee",), ("kiwi", "fig"), ("王芳", "小王"), ("8 May",)]
    assert [each.votes for each in answers] == [(1, 1), (1, 0), (1,), (0, 0)]
    assert [each.correct for each in answers] == [True, False, True, False]
    assert [each.language for each in answers] == ["en", "en", "zh", "en"]
    assert (answers[0].candidate, answers[0].set) == ('It was "Ann", of course.', "mine")
    assert not problems.errors
    assert [note.partition(": ")[2] for note in problems.notes] == [
        "1 answers whose labels are split in halves, which count as wrong",
        "1 answers without a label left out",
    ]


def test_json_values_need_no_quotes(tmp_path: Path) -> None:
    """Lists, numbers and true or false as JSON has them; other columns may name id, system and kind."""
    path = tmp_path / "own.json"
    row = {"q": "How many?", "g": ["six", 6], "a": "6", "l": True, "i": 7, "s": "m1", "k": "temporal"}
    path.write_text(json.dumps([row, {**row, "i": 7, "l": 0}]))
    answers, problems = read(path, ["question=q,gold=g,answer=a,label=l,id=i,system=s,kind=k"])
    assert [(each.id, each.system, each.kind) for each in answers] == [
        ("7", "m1", "temporal"),
        ("7~2", "m1", "temporal"),
    ]
    assert answers[0].accepted == ("six", "6")
    assert [(each.correct, each.votes) for each in answers] == [(True, ()), (False, ())]
    assert not problems.errors


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (["question=q,gold=g"], "--columns lacks answer, label: write question="),
        (["question=q,answer=a,answer=b,gold=g,label=l"], "--columns names answer twice"),
        (["questions=q"], "--columns 'questions=q': write NAME=COLUMN"),
        (["question"], "--columns 'question': write NAME=COLUMN"),
    ],
)
def test_columns_that_cannot_be(spec: list[str], said: str) -> None:
    """A misspelt name, one that is missing or there twice: the error says what to write."""
    with pytest.raises(SpecError) as error:
        Columns.parse(spec)
    assert said in str(error.value)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_column_that_is_not_there(tmp_path: Path, form: str) -> None:
    """One error, with the columns that are."""
    answers, problems = read(written(tmp_path, form), ["question=Question,gold=golden,answer=prediction,label=rater 1"])
    assert not answers
    [error] = problems.errors
    assert "no column 'golden' (it has 'Question', 'gold answers', 'prediction'" in str(error)


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """A label that is none, too few cells, no gold: each with its line."""
    path = tmp_path / "bad.csv"
    path.write_text("q,g,a,l\nWho?,Ann,Bob,perhaps\nWho?,Ann\nWho?,,Bob,0\nWho?,Ann,Bob,0\n")
    answers, problems = read(path, ["question=q,gold=g,answer=a,label=l"])
    assert [each.correct for each in answers] == [False]
    texts = [str(error) for error in problems.errors]
    assert "bad.csv:2: l: no label: 'perhaps'" in texts[0]
    assert "bad.csv:3: fewer cells than the 4 columns" in texts[1]
    assert "bad.csv:4: g: no gold answer" in texts[2]


def test_what_is_no_table(tmp_path: Path) -> None:
    """Bytes that are no text, a quote that never ends: one error each, no traceback."""
    latin, open_quote = tmp_path / "latin.csv", tmp_path / "open.csv"
    latin.write_bytes("q,g,a,l\nWo?,Köln,K\xf6ln,1\n".encode("latin-1"))
    open_quote.write_text('q,g,a,l\nWho?,"Ann,Bob,1\n')
    for path, said in ((latin, "not UTF-8"), (open_quote, "not a table")):
        answers, problems = read(path, ["question=q,gold=g,answer=a,label=l"])
        assert not answers
        assert said in str(problems.errors[0])
