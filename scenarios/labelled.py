"""Labelled answers: answers to questions, each with a label that says if it is right. Graders are compared with them.

There are four published formats, one for labels of your own, and `--columns` for tables of any shape. A format is
recognised by the keys in the file, never by its name. A bad row is a RecordingError in `Problems`; the rest is read.

    problems = Problems()
    for answer in read([Path("NQ.json")], problems):
        answer.question, answer.accepted, answer.candidate, answer.correct
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal, get_args

import msgspec

from .errors import Place, RecordingError, SpecError
from .readers import LIST, OBJECT, Fields
from .source import Problems, convert, decode, file_head, files_of, key_paths, records, unique_name

Kind = Literal["plain", "temporal", "preference", "update", "unanswerable"]
"""Kind of question, in the words of `metrics.grading.Kind`, which this package may not import."""
Language = Literal["en", "zh"]
LabelledBy = Literal["people", "model"]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


class Labelled(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer to one question, and whether it is right."""

    id: str  # unique within its set
    set: str
    question: str
    accepted: tuple[str, ...]  # empty only where `kind` is unanswerable, or where `rubric` says what is right
    candidate: str
    correct: bool
    group: str  # id of the question: answers to one question are not independent, so a bootstrap draws groups
    system: str = ""  # name of the model or system that answered
    language: Language = "en"  # language of the question
    kind: Kind = "plain"
    labelled_by: LabelledBy = "people"
    """Source of the label. A model's label is no human label: agreement with it is agreement between two graders."""
    rating: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """Score from 0 to 1 behind the label, where the label comes from votes or ratings."""
    votes: tuple[int, ...] = ()
    """One vote per rater, on one scale: the higher, the better. The raters' identities are not known."""
    passing: int = 1  # lowest vote that says right
    rubric: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    exact_dates: bool = False
    """Whether the question is about a conversation, where a date less exact than the accepted one is wrong."""


def language_of(question: str) -> Language:
    """Return "zh" if there is a Chinese character in the question, else "en"."""
    return "zh" if _HAN.search(question) else "en"


@dataclass(slots=True)
class LabelFile:
    """A file of labelled answers that is being read."""

    path: Path
    problems: Problems
    corrections: dict[str, tuple[str, str]]  # LoCoMo's published answer and the right one, by question id
    number: int = 0  # number of the present record, from 1
    left_out: Counter[str] = field(default_factory=Counter)
    """Answers that are not read, or not as they stand, by what there is to say of them."""
    groups: dict[str, str] = field(default_factory=dict)  # ids of the questions so far by their texts


ReadRow = Callable[[Fields, LabelFile], Iterator[Labelled]]
"""Function of a record and its file, which yields the record's answers. Raises RecordingError."""


def read(paths: Iterable[Path], problems: Problems, columns: Columns | None = None) -> Iterator[Labelled]:
    """Yield the labelled answers of the files, and of the folders' files, in the order of the paths.

    A named file of no known format is a problem; inside a folder it is only listed in `problems.ignored`. With
    `columns` every file is a table that has them. LoCoMo's answers are read with the corrections among the files. A
    repeated id of a set gets the suffix `~2`, `~3` …
    """
    seen: dict[str, dict[str, int]] = defaultdict(dict)
    corrections: dict[str, tuple[str, str]] = {}
    known: list[tuple[ReadRow, Path]] = []
    for path, file in ((path, file) for path, files in files_of(paths, problems) for file in files):
        with problems.collect():
            if read_row := _row_reader(file, columns):
                known.append((read_row, file))
            elif file != path:
                problems.ignored.append(str(file))
            elif not file_head(file).strip():
                raise RecordingError(Place(str(file)), "the file is empty", "leave it out")
            else:
                form = '{"question": "…", "accepted": ["…"], "candidate": "…", "correct": true}'
                others = f"or write JSON Lines of {form}, or name the columns by --columns"
                remedy = f"known are {', '.join(FORMATS)}; {others}"
                raise RecordingError(Place(str(file)), "no known format of labelled answers fits", remedy)
    # Corrections come before the answers that they correct.
    for read_row, file in sorted(known, key=lambda each: each[0] is not _correction):
        with problems.collect():
            source = LabelFile(file, problems, corrections)
            for source.number, (place, raw) in enumerate(records(file, problems), 1):
                with problems.collect():
                    for answer in read_row(Fields(decode(raw, OBJECT, place), place), source):
                        name = unique_name(answer.id, seen[answer.set])
                        yield answer if name == answer.id else msgspec.structs.replace(answer, id=name)
            problems.notes += [f"{file}: {count} answers {what}" for what, count in source.left_out.items()]


def _row_reader(path: Path, columns: Columns | None) -> ReadRow | None:
    """Return the reader of a table with these columns, or of the format that the start of the file fits, or None.

    If several formats fit, it is the one with most keys. Raises RecordingError if the file cannot be read, or lacks a
    column.
    """
    if columns is None:
        keys = key_paths(file_head(path))
        shapes = ((shape.split(", "), name) for name, (_, *shapes) in FORMATS.items() for shape in shapes)
        fits = [(len(shape), name) for shape, name in shapes if keys.issuperset(shape)]
        return FORMATS[max(fits)[1]][0] if fits else None
    # An empty cell is no key of its row, so the columns are those of all rows together.
    present: dict[str, None] = {}
    for place, raw in records(path, Problems()):
        present.update(dict.fromkeys(decode(raw, dict[str, msgspec.Raw], place)))
    if lost := [repr(name) for names in columns.values() for name in names if name not in present]:
        remedy = f"it has {', '.join(map(repr, present))}; name them by --columns"
        raise RecordingError(Place(str(path), 1), f"no column {', '.join(lost)}", remedy)
    return partial(_table_row, columns)


def _texts(values: object) -> tuple[str, ...]:
    """Return one value or a list of values as texts, without the empty ones."""
    several = values if isinstance(values, list | tuple) else [values]
    return tuple(text for value in several if value is not None and (text := str(value).strip()))


# EVOUNA: five systems' answers to questions of Natural Questions and TriviaQA, each judged by people. Apache-2.0.
#
#     [{question, golden_answer: "a/b", improper, answer_fid, judge_fid: true | false | null, …}]
#
# Source: github.com/wangcunxiang/QA-Eval, `EVOUNA/NQ.json`, `TQ.json` (Wang et al. 2023, arXiv 2305.12421). Accepted
# answers are the parts between the slashes. Left out, and counted in a note: questions that people marked as improper,
# answers without a label, answers that are null. Empty answers are read: they were judged.


def _evouna(row: Fields, file: LabelFile) -> Iterator[Labelled]:
    question, accepted = row.needed("question", str), _texts((row.typed("golden_answer", str) or "").split("/"))
    # A question that stands twice is one group: its answers are not independent.
    group = file.groups.setdefault(question, f"q{file.number - 1}")
    systems = [key.removeprefix("judge_") for key in row.record if key.startswith("judge_")]
    if row.needed("improper", bool):
        file.left_out["to improper questions left out"] += len(systems)
        return
    if not accepted:
        raise RecordingError(row.place.at("golden_answer"), "no accepted answer", "give one, or mark the row improper")
    for system in systems:
        # Names of models have dots, which no path may have.
        verdict, answer = row.record[f"judge_{system}"], row.record.get(f"answer_{system}")
        if verdict is None or answer is None:
            file.left_out["without text or label left out"] += 1
            continue
        correct = convert(verdict, bool, row.place.below(f"judge_{system}"))
        candidate = convert(answer, str, row.place.below(f"answer_{system}"))
        name, of = f"q{file.number - 1}-{system}", f"evouna-{file.path.stem.lower()}"
        language = language_of(question)
        yield Labelled(name, of, question, accepted, candidate, correct, group, system, language)


# HalluQA: Chinese questions that invite false answers, with right and wrong answers by people. Apache-2.0.
#
#     [{question_id, Question, "Best Answer1".."4", Wrong_Answer1.., Category}]
#
# Source: github.com/OpenMOSS/HalluQA, `HalluQA.json` (Cheng et al. 2023, arXiv 2310.03368). Every wrong answer is an
# item, with all right ones accepted. Every right answer is one as well, with the *other* right ones accepted, if there
# are any: any grader would call it right beside itself.

_BEST, _WRONG = re.compile(r"Best[ _]Answer\d*"), re.compile(r"Wrong[ _]Answer\d*")


def _halluqa(row: Fields, _: LabelFile) -> Iterator[Labelled]:
    group, question = f"q{row.needed('question_id', int)}", row.needed("Question", str)
    best, wrong = (
        _texts([row.typed(name, str) for name in row.record if key.fullmatch(name)]) for key in (_BEST, _WRONG)
    )
    if not best:
        raise RecordingError(row.place.at("Best Answer1"), "no right answer", "give one, or leave the row out")
    for side, candidates in (("right", best), ("wrong", wrong)):
        for at, candidate in enumerate(candidates):
            accepted = tuple(text for other, text in enumerate(best) if side == "wrong" or other != at)
            if accepted:
                name, right = f"{group}-{side}{at}", side == "right"
                yield Labelled(name, "halluqa-zh", question, accepted, candidate, right, group, language="zh")


# LoCoMo: four recorded runs of models' answers, each voted on three times by a model. CC BY-NC 4.0.
#
#     {total_questions, correct, accuracy, detailed_results: {USER: [{question_id, question, golden_answer,
#       generated_answer, category, llm_judgments: {judgment_1: true, …}}]}}
#     [{question_id, question, golden_answer, correct_answer, error_type, …}]                        # corrections
#
# Source: github.com/dial481/locomo-audit, `fc-baseline/results/` and `errors.json`. The labels are a *model's* votes,
# and are marked so; `correct` is the majority, `rating` the share of the votes.
#
# `readers/question_sets.py` applies the same corrections. They name golden answers that are wrong. The votes compare
# with the published golden answer and say nothing about another one. So an answer is left out, and counted in a note,
# if the correction changes the golden answer; if it changes the evidence only, the answer stays.

_LOCOMO_KINDS: dict[str, Kind] = {"2": "temporal", "5": "unanswerable"}


def _correction(row: Fields, file: LabelFile) -> Iterator[Labelled]:
    golds = [str(row.needed(key, str | int | float)).strip() for key in ("golden_answer", "correct_answer")]  # type: ignore[arg-type]
    file.corrections[row.needed("question_id", str)] = (golds[0], golds[1])
    yield from ()


def _locomo(run: Fields, file: LabelFile) -> Iterator[Labelled]:
    for user, answers in run.needed("detailed_results", OBJECT).items():
        place = run.place.below(f"detailed_results.{user}")
        for at, answer in enumerate(convert(answers, LIST, place)):
            with file.problems.collect():
                row = Fields(answer, run.place.below(f"detailed_results.{user}[{at}]"))
                name, question = row.needed("question_id", str), row.needed("question", str)
                candidate = row.needed("generated_answer", str, blank=True)
                votes = row.needed("llm_judgments", dict[str, bool])
                published, right = file.corrections.get(name, ("", ""))
                if published != right:
                    file.left_out["left out: the audit corrects the golden answer of their votes"] += 1
                    continue
                kind, gold = _LOCOMO_KINDS.get(str(row.at("category")), "plain"), _texts(row.at("golden_answer"))
                if not votes or not (gold or kind == "unanswerable"):
                    what, key = ("no golden answer", "golden_answer") if votes else ("no votes", "llm_judgments")
                    raise RecordingError(row.place.below(key), what, "give it, or leave this out")
                system, share = file.path.parent.name, sum(votes.values()) / len(votes)
                yield Labelled(
                    id=f"{name}-{system}",
                    set="locomo",
                    question=question,
                    accepted=() if kind == "unanswerable" else gold,
                    candidate=candidate,
                    correct=share > 0.5,
                    group=name,
                    system=system,
                    kind=kind,
                    labelled_by="model",
                    rating=share,
                    votes=tuple(map(int, votes.values())),
                    exact_dates=True,
                )


# MT-RAG's human ratings: two models' answers to questions to a document-grounded assistant. Apache-2.0.
#
#     {documents: [{document_id, text}], tasks: [{task_id, input: [{speaker, text}], contexts, targets: [{text}]}],
#      evaluations: [{task_id, model_id, model_response, annotations: {faithfulness: {RATER: {value: "4"}}, …}}]}
#
# Source: github.com/IBM/mt-rag-benchmark, `reference_subset_with_human_evaluations.json` (Katsis et al. 2025, arXiv
# 2501.03468). Two or three people rated each answer from 1 ("no") to 4 ("yes"). **Right** is an answer whose median
# rating is at least 3 ("mostly yes") in all of `DECISIVE`: it is faithful to the documents, complete, and answers the
# question. Naturalness is style and is left out. `rating` is the mean of these ratings, 1 to 4 taken as 0 to 1; a
# rater's vote is the lowest of the three.
#
# The question is the last one of its conversation, the reference the accepted answer, the documents the evidence. Left
# out: the model `reference`, whose answers are the accepted ones. Questions that cannot be answered have none.

DECISIVE = ("faithfulness", "appropriateness", "completeness")
LEAST = 3


class _MtragRating(msgspec.Struct):
    value: Literal["1", "2", "3", "4"]


def _mtrag(content: Fields, file: LabelFile) -> Iterator[Labelled]:
    content.needed("tasks", LIST)
    content.needed("evaluations", LIST)
    documents = {document.text("document_id"): document.text("text") for document in content.each("documents")}
    tasks = {task.text("task_id"): task for task in content.each("tasks")}
    for rated in content.each("evaluations"):
        if rated.at("model_id") != "reference":
            with file.problems.collect():
                yield _mtrag_answer(rated, tasks.get(rated.needed("task_id", str)), documents)


def _mtrag_answer(rated: Fields, task: Fields | None, documents: Mapping[str, str]) -> Labelled:
    group, system = rated.needed("task_id", str), rated.needed("model_id", str)
    if task is None or not task.at("input") or not task.at("targets"):
        what = f"{group!r} names no task with a question and a reference"
        raise RecordingError(rated.place.below("task_id"), what, "add it to tasks, or leave this record out")
    ratings = [_mtrag_ratings(rated, f"annotations.{name}") for name in DECISIVE]
    question = [turn.needed("text", str, blank=True) for turn in task.each("input")][-1]
    unanswerable = "UNANSWERABLE" in (task.typed("Answerability", list[str]) or ())
    # A rater's vote is the lowest of the three ratings, so only who gave all three has one.
    complete = [rater for rater in ratings[0] if all(rater in by_rater for by_rater in ratings)]
    contexts, targets = task.each("contexts"), task.each("targets")
    return Labelled(
        id=f"{group}-{system}",
        set="mtrag",
        question=question,
        accepted=() if unanswerable else tuple(target.needed("text", str, blank=True) for target in targets),
        candidate=rated.needed("model_response", str, blank=True),
        correct=all(median(by_rater.values()) >= LEAST for by_rater in ratings),
        group=group,
        system=system,
        language=language_of(question),
        kind="unanswerable" if unanswerable else "plain",
        rating=(fmean(value for by_rater in ratings for value in by_rater.values()) - 1) / 3,
        votes=tuple(min(by_rater[rater] for by_rater in ratings) for rater in complete),
        passing=LEAST,
        evidence=tuple(documents.get(each.text("document_id")) or each.text("text") for each in contexts),
    )


def _mtrag_ratings(rated: Fields, path: str) -> dict[str, int]:
    """Return the ratings by rater. Raises RecordingError if there is none, or one that is not from 1 to 4."""
    with suppress(msgspec.ValidationError):
        if ratings := msgspec.convert(rated.at(path), dict[str, _MtragRating]):
            return {rater: int(rating.value) for rater, rating in ratings.items()}
    raise RecordingError(rated.place.below(path), "no ratings from 1 to 4", "give some, or leave this record out")


# Labels of your own, as JSON Lines or a JSON array:
#
#     {"question": "When?", "accepted": ["8 May"], "candidate": "On May 8th.", "correct": true}
#
# Optional fields: `id`, `group` (the question's id; else the question itself), `system`, `set` (else the file's name),
# `kind`, `language` (else by the question's characters), `labelled_by` ("people" or "model"), `rating` (0 to 1),
# `votes` (one whole number per rater; a vote of at least `passing`, by default 1, says right), `rubric`, `evidence`,
# `exact_dates` (true where questions are about a conversation: a date less exact than the accepted one is wrong then).
# `accepted` is a text or a number, or a list of them; it may be empty for the kind `unanswerable`, or if there is a
# rubric. Any other field is an error: a field's name is easily misspelt.

_TEXTS: Any = str | int | float | list[str | int | float] | None
_NAME: Any = str | int


def _own(record: Fields, file: LabelFile) -> Iterator[Labelled]:
    row, place = dict(record.record), record.place
    for key in ("accepted", "rubric", "evidence"):
        if key in row:
            row[key] = _texts(convert(row[key], _TEXTS, place.at(key)))
    for key in ("id", "group"):
        row[key] = str(convert(row.get(key, ""), _NAME, place.at(key)))
    question = str(row.get("question"))
    defaults = (f"r{file.number}", question, file.path.stem, language_of(question))
    for key, default in zip(("id", "group", "set", "language"), defaults, strict=True):
        row[key] = default if row.get(key) in ("", None) else row[key]
    answer = convert(row, Labelled, place)
    if not answer.accepted and not answer.rubric and answer.kind != "unanswerable":
        remedy = "give one, or a rubric, or the kind unanswerable"
        raise RecordingError(place.at("accepted"), "no accepted answer", remedy)
    yield answer


FORMATS: dict[str, tuple[ReadRow, *tuple[str, ...]]] = {
    "evouna": (_evouna, "[].question, [].golden_answer, [].improper"),
    "halluqa": (_halluqa, "[].question_id, [].Question, [].Best Answer1, [].Wrong_Answer1"),
    "locomo": (_locomo, ".total_questions, .accuracy, .detailed_results"),
    "locomo-corrections": (_correction, "[].question_id, [].golden_answer, [].correct_answer, [].error_type"),
    "mtrag": (
        _mtrag,
        ".tasks[].task_id, .evaluations[].model_response, .evaluations[].annotations",
        # The start of the published file: its evaluations come after the part that is searched.
        ".models[].model_id, .metrics[].aggregator, .documents[].document_id",
    ),
    "user": (_own, ".question, .accepted, .candidate, .correct", "[].question, [].accepted, [].candidate, [].correct"),
}
"""The formats by the names that error messages use: how a record is read, and sets of key paths (`source.key_paths`).

A file is of a format if it has all paths of one of its sets."""

# Tables of any shape: CSV, TSV, Parquet, JSON or JSON Lines, by the names of their columns.
#
#     Columns.parse("question=Question,gold=answers,answer=prediction,label=rater_1,label=rater_2")
#
# A gold answer or a label may stand in several columns. Several gold answers in one cell are a list, as JSON or as
# Python writes it. Each label column is one rater's. Of several labels the majority counts; where they are split in
# halves, the answer counts as wrong, and a note says how many are. A rater who left a cell empty did not label it.

_REQUIRED = ("question", "gold", "answer", "label")
_OPTIONAL = ("id", "system", "kind", "exact_dates")
_SEVERAL = ("gold", "label")
_VOTES = {
    **dict.fromkeys(("true", "yes", "y", "t", "1", "1.0", "correct", "right", "pass", "是", "对", "正确"), 1),
    **dict.fromkeys(
        ("false", "no", "n", "f", "0", "0.0", "incorrect", "wrong", "fail", "否", "错", "不正确", "错误"), 0
    ),
}


Columns = Mapping[str, Sequence[str]]
"""Names of the columns that a table of labelled answers is read from, by what they hold."""


def parse_columns(text: str) -> Columns:
    """Read `name=column,name=column`. Raises SpecError."""
    columns: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column or name not in (*_REQUIRED, *_OPTIONAL):
            names = ", ".join((*_REQUIRED, *_OPTIONAL))
            raise SpecError(f"--columns {part.strip()!r}: write NAME=COLUMN, with NAME of {names}")
        if name in columns and name not in _SEVERAL:
            raise SpecError(f"--columns names {name} twice; only gold and label may have several columns")
        columns.setdefault(name, []).append(column)
    if lost := [name for name in _REQUIRED if name not in columns]:
        example = "question=Q,gold=GOLD,answer=ANSWER,label=RATER_1,label=RATER_2"
        raise SpecError(f"--columns lacks {', '.join(lost)}: write {example}")
    return columns


def _table_row(columns: Columns, row: Fields, file: LabelFile) -> Iterator[Labelled]:
    cells = {name: _cell(row.record.get(names[0])) for name, names in columns.items()}
    labels = [_vote(row.record.get(name), row.place.at(name)) for name in columns["label"]]
    votes = tuple(vote for vote in labels if vote is not None)
    if not votes:
        file.left_out["without a label left out"] += 1
        return
    question, kind = cells["question"], cells.get("kind") or "plain"
    golds = _texts([gold for name in columns["gold"] for gold in _list(row.record.get(name))])
    for is_bad, name, what, remedy in (
        (kind not in get_args(Kind), "kind", f"no kind {kind!r}", f"known are {', '.join(get_args(Kind))}"),
        (not golds and kind != "unanswerable", "gold", "no gold answer", "give one, or the kind unanswerable"),
        (not question, "question", "no question", "give one, or leave this row out"),
    ):
        if is_bad:
            raise RecordingError(row.place.at(columns[name][0]), what, remedy)
    if 2 * sum(votes) == len(votes):
        file.left_out["whose labels are split in halves, which count as wrong"] += 1
    yield Labelled(
        id=cells.get("id") or f"r{file.number}",
        set=file.path.stem,
        question=question,
        accepted=golds,
        candidate=cells["answer"],
        correct=2 * sum(votes) > len(votes),
        group=question,
        system=cells.get("system", ""),
        language=language_of(question),
        kind=kind,  # type: ignore[arg-type]
        rating=sum(votes) / len(votes),
        votes=votes if len(labels) > 1 else (),
        exact_dates=_VOTES.get(cells.get("exact_dates", "").lower()) == 1,
    )


def _vote(value: object, place: Place) -> int | None:
    """Return 1 for right, 0 for wrong, None for an empty cell. Raises RecordingError for anything else."""
    text = _cell(value).lower()
    if not text or text in _VOTES:
        return _VOTES.get(text)
    raise RecordingError(place, f"no label: {text[:40]!r}", "write true or false, yes or no, 1 or 0, or leave it empty")


def _list(cell: object) -> list[Any]:
    """Return the list that a cell is, or that its text is as Python writes it; else the cell as the only element."""
    if isinstance(cell, str) and cell.startswith("["):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            cell = ast.literal_eval(cell)
    return cell if isinstance(cell, list) else [cell]


def _cell(value: object) -> str:
    return "" if value is None else str(value).strip()
