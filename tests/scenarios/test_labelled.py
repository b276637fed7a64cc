"""Sets of labelled answers: what is read of each format, and what is said of what cannot be read."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.labelled import Labelled, parse_columns, read
from ctxbench.scenarios.source import Problems

ROW: dict[str, Any] = {"question": "Who?", "accepted": ["Ann"], "candidate": "Ann Lee", "correct": True}
NQ: dict[str, Any] = {"question": "who", "golden_answer": "Ann/Ann Lee", "improper": False}
NQ |= {"answer_fid": "Ann", "judge_fid": True, "answer_gpt4": None, "judge_gpt4": False}
HALLU: dict[str, Any] = {
    "question_id": 7,
    "Question": "谁？",
    "Best Answer1": "甲",
    "Best Answer2": "乙",
    "Wrong_Answer1": "丙",
}
ASKED: dict[str, Any] = {
    "task_id": "c<::>2",
    "input": [{"speaker": "user", "text": "Cash?"}],
    "targets": [{"text": "No."}],
}
RATED: dict[str, Any] = {"task_id": "c<::>2", "model_id": "m", "model_response": "Never."}
RUN: dict[str, Any] = {"question_id": "q0", "question": "When?", "golden_answer": "7 May", "generated_answer": "May 7"}
RUN |= {"llm_judgments": {"a": True, "b": True, "c": False}, "category": "2"}
AUDIT: dict[str, Any] = {"question_id": "q0", "golden_answer": "7 May", "correct_answer": "8 May", "error_type": "X"}


def written(path: Path, *lines: object) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def ratings(*values: int, low: int | None = None) -> dict[str, Any]:
    given = {
        name: {f"r{at}": {"value": str(v)} for at, v in enumerate(values)} for name in ("faithfulness", "completeness")
    }
    return given | {"appropriateness": {f"r{at}": {"value": str(low or v)} for at, v in enumerate(values)}}


def subset(*rated: dict[str, Any], **task: object) -> dict[str, Any]:
    return {
        "models": [{"model_id": "m"}],
        "metrics": [{"aggregator": "median"}],
        "documents": [{"document_id": "d", "text": "Banks."}],
    } | {"tasks": [ASKED | task], "evaluations": list(rated)}


def run(*answers: dict[str, Any]) -> dict[str, Any]:
    return {"total_questions": 1, "correct": 1, "accuracy": 1.0, "detailed_results": {"user": list(answers)}}


def found(*paths: Path) -> tuple[list[Labelled], Problems]:
    problems = Problems()
    return list(read(paths, problems)), problems


def test_answers_of_your_own(tmp_path: Path) -> None:
    """Lines of JSON or an array; accepted answers may be a text, a number or a list; ids and groups are made up."""
    rows = [
        ROW,
        ROW | {"accepted": 7, "candidate": "7", "question": "几个？"},
        ROW | {"accepted": ["", 2.5], "correct": False},
    ]
    answers, problems = found(written(tmp_path / "mine.jsonl", *rows))
    assert not problems.errors
    assert answers[0] == Labelled("r1", "mine", "Who?", ("Ann",), "Ann Lee", True, "Who?")
    assert [(each.id, each.accepted, each.language, each.correct) for each in answers[1:]] == [
        ("r2", ("7",), "zh", True),
        ("r3", ("2.5",), "en", False),
    ]
    array = written(tmp_path / "array.json", rows)
    assert [each.candidate for each in found(array)[0]] == [each.candidate for each in answers]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"correct": 1}, "correct: expected bool, got int"),
        ({"corect": True}, "corect"),
        ({"accepted": []}, "accepted: no accepted answer (give one, or a rubric, or the kind unanswerable)"),
        ({"accepted": {"a": 1}}, "accepted: expected"),
        ({"kind": "hard"}, "kind: invalid enum value 'hard'"),
        ({"rating": 3}, "rating: expected"),
        ({"candidate": None}, "candidate: expected str, got null"),
        ("not JSON", "not JSON"),
    ],
)
def test_a_bad_row_is_named_and_the_rest_is_read(tmp_path: Path, change: dict[str, Any] | str, said: str) -> None:
    """The file, the line, the field and what is wrong with it; the rows around it come out."""
    path = written(tmp_path / "mine.jsonl", ROW, change if isinstance(change, str) else ROW | change, ROW)
    answers, problems = found(path)
    assert [each.id for each in answers] == ["r1", "r3"]
    [problem] = problems.errors
    assert str(problem).startswith(f"{path}:2: ")
    assert said in str(problem)


def test_no_accepted_answer_is_fine_where_none_is_wanted(tmp_path: Path) -> None:
    """An unanswerable question, or a rubric, needs none."""
    rows = [ROW | {"accepted": [], "kind": "unanswerable"}, ROW | {"accepted": None, "rubric": "short"}]
    answers, problems = found(written(tmp_path / "mine.jsonl", *rows))
    assert not problems.errors
    assert [(each.kind, each.rubric) for each in answers] == [("unanswerable", ()), ("plain", ("short",))]


def test_evouna(tmp_path: Path) -> None:
    """Alternatives between slashes; improper questions, null answers and null labels are counted, not read."""
    rows = [
        NQ,
        NQ | {"improper": True},
        NQ | {"judge_fid": None},
        NQ | {"golden_answer": None},
        NQ | {"judge_fid": "yes"},
    ]
    answers, problems = found(written(tmp_path / "NQ.json", rows))
    assert answers == [Labelled("q0-fid", "evouna-nq", "who", ("Ann", "Ann Lee"), "Ann", True, "q0", "fid")]
    assert sorted(note.partition(": ")[2] for note in problems.notes) == [
        "2 answers to improper questions left out",
        "3 answers without text or label left out",
    ]
    assert ["golden_answer: no accepted answer" in str(each) for each in problems.errors] == [True, False]
    assert "judge_fid: expected bool, got str" in str(problems.errors[1])


def test_the_name_of_a_model_may_have_a_dot(tmp_path: Path) -> None:
    """So may that of a user in LoCoMo."""
    [first, _], problems = found(written(tmp_path / "NQ.json", [NQ | {"answer_gpt3.5": "A", "judge_gpt3.5": True}]))
    assert first.system == "fid"
    users = run() | {"detailed_results": {"u.1": [RUN]}}
    [answer], _ = found(written(tmp_path / "gpt" / "eval.json", users))
    assert (answer.id, problems.errors) == ("q0-gpt", [])


@pytest.mark.parametrize(
    "content",
    [
        run(RUN | {"generated_answer": ""}),
        subset(RATED | {"model_response": "", "annotations": ratings(1)}, targets=[{"text": ""}]),
    ],
)
def test_an_empty_answer_was_judged(tmp_path: Path, content: object) -> None:
    """It is read as every answer is."""
    [answer], problems = found(written(tmp_path / "some.json", content))
    assert (answer.candidate, problems.errors) == ("", [])


@pytest.mark.parametrize("part", ["tasks", "evaluations"])
def test_a_file_without_its_parts(tmp_path: Path, part: str) -> None:
    """An error names the field that MT-RAG's file lacks."""
    whole = subset(RATED | {"annotations": ratings(3)})
    answers, problems = found(written(tmp_path / "a.json", {key: each for key, each in whole.items() if key != part}))
    assert not answers
    assert [error.what for error in problems.errors] == [f"object missing required field {part}"]


def test_halluqa(tmp_path: Path) -> None:
    """A wrong answer beside all right ones; a right one beside the other right ones; none if it is the only one."""
    rows = [HALLU, HALLU | {"question_id": 8, "Best Answer2": "", "Wrong_Answer2": "丁"}]
    answers, problems = found(written(tmp_path / "a.json", rows))
    assert not problems.errors
    assert [(each.id, each.accepted, each.candidate, each.correct) for each in answers] == [
        ("q7-right0", ("乙",), "甲", True),
        ("q7-right1", ("甲",), "乙", True),
        ("q7-wrong0", ("甲", "乙"), "丙", False),
        ("q8-wrong0", ("甲",), "丙", False),
        ("q8-wrong1", ("甲",), "丁", False),
    ]
    assert {(each.language, each.labelled_by, each.set) for each in answers} == {("zh", "people", "halluqa-zh")}


def test_ratings_become_labels(tmp_path: Path) -> None:
    """Right is a median of 3 or more in faithfulness, appropriateness and completeness; the mean is kept, 0 to 1."""
    rated = [
        RATED | {"annotations": ratings(4, 4, 1)},
        RATED | {"model_id": "n", "annotations": ratings(4, 4, 4, low=2)},
    ]
    skipped = RATED | {"model_id": "reference", "annotations": ratings(4)}
    answers, problems = found(written(tmp_path / "a.json", subset(*rated, skipped, contexts=[{"document_id": "d"}])))
    assert not problems.errors
    assert [(each.system, each.correct, each.accepted, each.evidence) for each in answers] == [
        ("m", True, ("No.",), ("Banks.",)),
        ("n", False, ("No.",), ("Banks.",)),
    ]
    assert [each.rating for each in answers] == [pytest.approx(2 / 3), pytest.approx(7 / 9)]
    [unanswerable], _ = found(written(tmp_path / "b.json", subset(rated[0], Answerability=["UNANSWERABLE"])))
    assert (unanswerable.kind, unanswerable.accepted) == ("unanswerable", ())


def test_bad_ratings_are_named(tmp_path: Path) -> None:
    """A rating that is none, and an evaluation of no task."""
    bad = [RATED | {"annotations": ratings(5)}, RATED | {"task_id": "x", "annotations": ratings(4)}]
    answers, problems = found(written(tmp_path / "a.json", subset(*bad, RATED | {"annotations": ratings(3)})))
    assert len(answers) == 1
    assert [str(each).partition(": ")[2].split(" (")[0] for each in problems.errors] == [
        "evaluations[0].annotations.faithfulness: no ratings from 1 to 4",
        "evaluations[1].task_id: 'x' names no task with a question and a reference",
    ]


def test_locomo_and_its_corrections(tmp_path: Path) -> None:
    """The label is the votes' majority; a vote beside a golden answer that is wrong says nothing and is left out."""
    path = written(tmp_path / "gpt" / "eval.json", run(RUN, RUN | {"question_id": "q1", "golden_answer": 5}))
    answers, problems = found(path)
    assert [(each.id, each.accepted, each.correct, each.kind, each.labelled_by) for each in answers] == [
        ("q0-gpt", ("7 May",), True, "temporal", "model"),
        ("q1-gpt", ("5",), True, "temporal", "model"),
    ]
    audit = written(tmp_path / "errors.json", [AUDIT, AUDIT | {"question_id": "q1", "correct_answer": "7 May"}])
    answers, problems = found(path, audit)
    assert [each.id for each in answers] == ["q1-gpt"]
    assert problems.notes == [f"{path}: 1 answers left out: the audit corrects the golden answer of their votes"]


NAMES = ("Question", "gold answers", "prediction", "rater 1", "rater 2")
SPEC = "question=Question,gold=gold answers,answer=prediction,label=rater 1,label=rater 2"
ROWS = (
    ("Who wrote it?", "Ann Lee", 'It was "Ann", of course.', "1", "yes"),
    ("Which?", '["kiwi", "fig"]', "fig", "true", "false"),
    ("谁？", "['王芳', '小王']", "王芳", "对", ""),
    ("When?", "8 May", "9 May", "no", "Incorrect"),
    ("Where?", "Oslo", "Oslo", "", ""),
)


def table(folder: Path, form: str) -> Path:
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


def in_columns(path: Path, spec: str = SPEC) -> tuple[list[Labelled], Problems]:
    problems = Problems()
    return list(read([path], problems, parse_columns(spec))), problems


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl"])
def test_every_form_reads_the_same(tmp_path: Path, form: str) -> None:
    """CSV, TSV, a JSON array and JSON Lines: several golds, quoted cells, Chinese, two labels, ties and gaps."""
    answers, problems = in_columns(table(tmp_path, form))
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
    answers, problems = in_columns(path, "question=q,gold=g,answer=a,label=l,id=i,system=s,kind=k")
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
        ("question=q,gold=g", "--columns lacks answer, label: write question="),
        ("question=q,answer=a,answer=b,gold=g,label=l", "--columns names answer twice"),
        ("questions=q", "--columns 'questions=q': write NAME=COLUMN"),
        ("question", "--columns 'question': write NAME=COLUMN"),
    ],
)
def test_columns_that_cannot_be(spec: str, said: str) -> None:
    """A misspelt name, one that is missing or there twice: the error says what to write."""
    with pytest.raises(SpecError) as error:
        parse_columns(spec)
    assert said in str(error.value)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_column_that_is_not_there(tmp_path: Path, form: str) -> None:
    """One error, with the columns that are."""
    answers, problems = in_columns(
        table(tmp_path, form), "question=Question,gold=golden,answer=prediction,label=rater 1"
    )
    assert not answers
    [error] = problems.errors
    assert "no column 'golden' (it has 'Question', 'gold answers', 'prediction'" in str(error)


def test_bad_rows_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """A label that is none, no gold: each with its row; bytes that are no text."""
    path = tmp_path / "bad.csv"
    path.write_text("q,g,a,l\nWho?,Ann,Bob,perhaps\nWho?,,Bob,0\nWho?,Ann,Bob,0\n")
    answers, problems = in_columns(path, "question=q,gold=g,answer=a,label=l")
    assert [each.correct for each in answers] == [False]
    texts = [str(error) for error in problems.errors]
    assert "bad.csv:1: l: no label: 'perhaps'" in texts[0]
    assert "bad.csv:2: g: no gold answer" in texts[1]
    path.write_bytes("q,g,a,l\nWo?,Köln,K\xf6ln,1\n".encode("latin-1"))
    answers, problems = in_columns(path, "question=q,gold=g,answer=a,label=l")
    assert not answers
    assert "cannot be read as a table: 'utf-8' codec can't decode" in str(problems.errors[0])


def test_unknown_files_are_named(tmp_path: Path) -> None:
    """A named file of no format says what is known; in a folder it is passed over, by name; an empty one says so."""
    other, empty = written(tmp_path / "in" / "other.json", {"a": 1}), written(tmp_path / "in" / "empty.json", "")
    answers, problems = found(other, empty)
    assert not answers
    assert "no known format of labelled answers fits (known are evouna, halluqa" in str(problems.errors[0])
    assert "the file is empty" in str(problems.errors[1])
    answers, problems = found(tmp_path / "in")
    assert not problems.errors
    assert len(problems.ignored) == 2


def test_an_id_that_was_there_gets_another(tmp_path: Path) -> None:
    """Ids are unique within a set, whatever the files say."""
    answers, _ = found(written(tmp_path / "mine.jsonl", *[ROW | {"id": "a"}] * 3, ROW | {"id": "a~2"}))
    assert [each.id for each in answers] == ["a", "a~2", "a~3", "a~2~2"]


def test_the_sample_sets(recordings: Path) -> None:
    """What is in them, as counted by hand: EVOUNA-NQ has 15 098 answers, of which people found 73.2 % right."""
    folders = [recordings / name for name in ("evouna", "halluqa-zh", "mtrag", "locomo")]
    answers, problems = found(*folders)
    assert not problems.errors
    assert Counter((each.set, each.labelled_by) for each in answers) == {
        ("evouna-nq", "people"): 15_098,
        ("halluqa-zh", "people"): 2_773,
        ("mtrag", "people"): 318,
        ("locomo", "model"): 5_680,
    }
    right = [each.correct for each in answers if each.set == "evouna-nq"]
    assert sum(right) / len(right) == pytest.approx(0.732, abs=5e-4)
    systems = Counter(each.system for each in answers if each.set == "evouna-nq")
    assert systems == {"fid": 3019, "gpt35": 3020, "chatgpt": 3020, "gpt4": 3020, "newbing": 3019}
