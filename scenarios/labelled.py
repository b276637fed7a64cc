"""Labelled answers: answers to questions, each with a label that says if it is right. Graders are compared with them.

There are four published formats, and one for labels of your own.

A format is recognised by the keys in the file, never by its name. A bad row is a RecordingError in `Problems`; the rest
is read.

    problems = Problems()
    for answer in read([Path("NQ.json")], problems):
        answer.question, answer.accepted, answer.candidate, answer.correct
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from .errors import Place, RecordingError
from .source import Problems, convert, decode, file_head, files_of, key_paths, records

Kind = Literal["plain", "temporal", "preference", "update", "unanswerable"]
"""Kind of question, in the words of `metrics.grading.Kind`, which this package may not import."""
Language = Literal["en", "zh"]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


class Labelled(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer to one question, and whether it is right."""

    id: str
    """Unique within its set."""
    set: str
    question: str
    accepted: tuple[str, ...]
    """Empty only where `kind` is unanswerable, or where `rubric` says what is right."""
    candidate: str
    correct: bool
    group: str
    """Id of the question: answers to one question are not independent, so a bootstrap draws groups."""
    system: str = ""
    """Name of the model or system that answered."""
    language: Language = "en"
    """Language of the question."""
    kind: Kind = "plain"
    labelled_by: Literal["people", "model"] = "people"
    """Source of the label. A model's label is no human label: agreement with it is agreement between two graders."""
    rating: float | None = None
    """Score from 0 to 1 behind the label, where the label comes from votes or ratings."""
    votes: tuple[int, ...] = ()
    """One vote per rater, on one scale: the higher, the better. The raters' identities are not known."""
    passing: int = 1
    """Lowest vote that says right."""
    rubric: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    exact_dates: bool = False
    """Whether the question is about a conversation, where a date less exact than the accepted one is wrong."""


def language_of(question: str) -> Language:
    """Return "zh" if there is a Chinese character in the question, else "en"."""
    return "zh" if _HAN.search(question) else "en"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read."""

    about: str
    shapes: tuple[frozenset[str], ...]
    """Sets of key paths (`source.key_paths`). A file is of this format if it has all paths of one set."""
    read: Callable[[Path, Problems, Any], Iterator[Labelled]]
    """Function of a file, the problems, and LoCoMo's corrections."""


def rows(path: Path, kind: type[T], problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """Yield the records of a file as `kind`, each with its number from 0 and its place. A bad record is a problem."""
    for at, (place, raw) in enumerate(records(path, problems)):
        try:
            yield at, place, decode(raw, kind, place)
        except RecordingError as error:
            problems.add(error)


def parts(values: list[Any], kind: type[T], place: Place, problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """Yield the elements of a list at `place` as `kind`, each with its number from 0 and its place."""
    for at, value in enumerate(values):
        where = place.at(f"{place.field}[{at}]")
        try:
            yield at, where, convert(value, kind, where)
        except RecordingError as error:
            problems.add(error)


# EVOUNA: five systems' answers to questions of Natural Questions and TriviaQA, each judged by people. Apache-2.0.
#
#     [{question, golden_answer: "a/b", improper, answer_fid, judge_fid: true | false | null, …}]
#
# Source: github.com/wangcunxiang/QA-Eval, `EVOUNA/NQ.json`, `TQ.json` (Wang et al. 2023, arXiv 2305.12421). Accepted
# answers are the parts between the slashes. Left out, and counted in a note: questions that people marked as improper,
# answers without a label, answers that are null. Empty answers are read: they were judged.

_EVOUNA_SHAPE = frozenset({"[].question", "[].golden_answer", "[].improper"})


class _EvounaQuestion(msgspec.Struct):
    question: str
    improper: bool
    golden_answer: str | None = None


def _read_evouna(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    name = f"evouna-{path.stem.lower()}"
    first: dict[str, str] = {}
    improper = unlabelled = 0
    for at, place, row in rows(path, dict[str, Any], problems):
        try:
            question = convert(row, _EvounaQuestion, place)
            # A question that stands twice is one group: its answers are not independent.
            group = first.setdefault(question.question, f"q{at}")
            systems = [key.removeprefix("judge_") for key in row if key.startswith("judge_")]
            if question.improper:
                improper += len(systems)
                continue
            accepted = _evouna_answers(question, place)
            for system in systems:
                correct = convert(row[f"judge_{system}"], bool | None, place.at(f"judge_{system}"))  # type: ignore[arg-type]
                candidate = convert(row.get(f"answer_{system}"), str | None, place.at(f"answer_{system}"))  # type: ignore[arg-type]
                if correct is None or candidate is None:
                    unlabelled += 1
                    continue
                yield Labelled(
                    id=f"q{at}-{system}",
                    set=name,
                    question=question.question,
                    accepted=accepted,
                    candidate=candidate,
                    correct=correct,
                    group=group,
                    system=system,
                    language=language_of(question.question),
                )
        except RecordingError as error:
            problems.add(error)
    problems.notes.append(f"{path}: {improper} answers to improper questions, {unlabelled} without answer or label")


def _evouna_answers(question: _EvounaQuestion, place: Place) -> tuple[str, ...]:
    accepted = tuple(text for part in (question.golden_answer or "").split("/") if (text := part.strip()))
    if not accepted:
        raise RecordingError(place.at("golden_answer"), "no accepted answer", "give one, or mark the row improper")
    return accepted


_EVOUNA = Format("EVOUNA's answers with human labels (NQ.json)", (_EVOUNA_SHAPE,), _read_evouna)


# HalluQA: Chinese questions that invite false answers, with right and wrong answers by people. Apache-2.0.
#
#     [{question_id, Question, "Best Answer1".."4", Wrong_Answer1.., Category}]
#     [{question_id, question, response, Best_Answer1.., is_hallucination: true | false | "Invalid_Judge"}]    # outputs
#
# Source: github.com/OpenMOSS/HalluQA, `HalluQA.json` and `Chinese_LLMs_outputs/` (Cheng et al. 2023, arXiv 2310.03368).
# Every wrong answer is an item, with all right ones accepted. Every right answer is one as well, with the *other* right
# ones accepted, if there are any. The outputs of models were labelled by GPT-4, not by people, and are marked so.

_BEST, _WRONG = re.compile(r"Best[ _]Answer\d*"), re.compile(r"Wrong[ _]Answer\d*")
_HALLUQA_SHAPE = frozenset({"[].question_id", "[].Question", "[].Best Answer1", "[].Wrong_Answer1"})
_HALLUQA_OUTPUTS_SHAPE = frozenset({"[].question_id", "[].question", "[].response", "[].is_hallucination"})


class _HalluqaQuestion(msgspec.Struct):
    question_id: int
    Question: str


class _HalluqaOutput(msgspec.Struct):
    question_id: int
    question: str
    response: str
    is_hallucination: bool | Literal["Invalid_Judge"]


def _read_halluqa(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for _at, place, row in rows(path, dict[str, Any], problems):
        try:
            question = convert(row, _HalluqaQuestion, place)
            best, wrong = _matching_texts(row, _BEST, place), _matching_texts(row, _WRONG, place)
            if not best:
                raise RecordingError(place.at("Best Answer1"), "no right answer", "give one, or leave the row out")
        except RecordingError as error:
            problems.add(error)
            continue
        for side, candidates in (("right", best), ("wrong", wrong)):
            for at, candidate in enumerate(candidates):
                # A right answer is not compared with itself, which any grader would call right.
                accepted = tuple(text for other, text in enumerate(best) if side == "wrong" or other != at)
                if accepted:
                    yield Labelled(
                        id=f"q{question.question_id}-{side}{at}",
                        set="halluqa-zh",
                        question=question.Question,
                        accepted=accepted,
                        candidate=candidate,
                        correct=side == "right",
                        group=f"q{question.question_id}",
                        language="zh",
                    )


def _read_halluqa_outputs(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    system, invalid = path.stem.partition("_output")[0], 0
    for _at, place, row in rows(path, dict[str, Any], problems):
        try:
            output = convert(row, _HalluqaOutput, place)
            accepted = _matching_texts(row, _BEST, place)
            if not accepted:
                raise RecordingError(place.at("Best_Answer1"), "no right answer", "give one, or leave the row out")
        except RecordingError as error:
            problems.add(error)
            continue
        if output.is_hallucination == "Invalid_Judge":
            invalid += 1
            continue
        yield Labelled(
            id=f"q{output.question_id}-{system}",
            set="halluqa-zh-outputs",
            question=output.question,
            accepted=accepted,
            candidate=output.response,
            correct=not output.is_hallucination,
            group=f"q{output.question_id}",
            system=system,
            language="zh",
            labelled_by="model",
        )
    if invalid:
        problems.notes.append(f"{path}: {invalid} answers that the judge gave no verdict on")


def _matching_texts(row: Mapping[str, Any], key: re.Pattern[str], place: Place) -> tuple[str, ...]:
    """Return the texts under the keys that match, in the order of the row, without those that are null or blank."""
    values = [convert(value, str | None, place.at(name)) for name, value in row.items() if key.fullmatch(name)]  # type: ignore[arg-type]
    return tuple(text for value in values if value and (text := value.strip()))


_HALLUQA = Format("HalluQA's right and wrong answers by people (HalluQA.json)", (_HALLUQA_SHAPE,), _read_halluqa)
_HALLUQA_OUTPUTS = Format(
    "HalluQA's outputs of models, judged by GPT-4", (_HALLUQA_OUTPUTS_SHAPE,), _read_halluqa_outputs
)


# LoCoMo: four recorded runs of models' answers, each voted on three times by a model. CC BY-NC 4.0.
#
#     {total_questions, correct, accuracy, detailed_results: {USER: [{question_id, question, golden_answer,
#       generated_answer, category, llm_judgments: {judgment_1: true, …}}]}}
#     [{question_id, question, golden_answer, correct_answer, error_type, …}]                        # corrections
#
# Source: github.com/dial481/locomo-audit, `fc-baseline/results/` and `errors.json`. The labels are a *model's* votes,
# and are marked so; `correct` is the majority, `rating` the share of the votes.
#
# `readers/locomo.py` applies the same corrections. They name golden answers that are wrong. The votes compare with the
# published golden answer and say nothing about another one. So an answer is left out, and counted in a note, if the
# correction changes the golden answer; if it changes the evidence only, the answer stays.

_LOCOMO_SHAPE = frozenset({".total_questions", ".accuracy", ".detailed_results"})
_CORRECTIONS_SHAPE = frozenset({"[].question_id", "[].golden_answer", "[].correct_answer", "[].error_type"})
_LOCOMO_KINDS: dict[str, Kind] = {"2": "temporal", "5": "unanswerable"}


class _Correction(msgspec.Struct):
    question_id: str
    golden_answer: str | int | float
    correct_answer: str | int | float


class _LocomoAnswer(msgspec.Struct):
    question_id: str
    question: str
    generated_answer: str
    llm_judgments: dict[str, bool]
    golden_answer: str | int | float | None = None
    category: str | int = ""


class _LocomoRun(msgspec.Struct):
    detailed_results: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Corrections:
    """An audit of the golden answers, from files in the form of corrections."""

    files: tuple[Path, ...] = ()
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The published answer and the right one, by question id."""

    @classmethod
    def among(cls, files: Sequence[Path], problems: Problems) -> Corrections:
        """Return the corrections in any of the files. Unreadable files are skipped: `read` reports them."""
        audits = tuple(path for path in files if _is_corrections(path))
        answers: dict[str, tuple[str, str]] = {}
        for path in audits:
            for _, _, row in rows(path, _Correction, problems):
                answers[row.question_id] = str(row.golden_answer), str(row.correct_answer)
        return cls(audits, answers)

    def has(self, path: Path) -> bool:
        """Return whether the file is one of corrections."""
        return path in self.files

    def overturn(self, question: str) -> bool:
        """Return whether the corrections change the golden answer of this question."""
        published, right = self.answers.get(question, ("", ""))
        return published.strip() != right.strip()


def _is_corrections(path: Path) -> bool:
    try:
        return key_paths(file_head(path)) >= _CORRECTIONS_SHAPE
    except RecordingError:
        return False


def _read_locomo(path: Path, problems: Problems, corrections: Corrections) -> Iterator[Labelled]:
    system, overturned = path.parent.name, 0
    for _at, place, run in rows(path, _LocomoRun, problems):
        for user, answers in run.detailed_results.items():
            for _number, where, row in parts(answers, _LocomoAnswer, place.at(f"detailed_results.{user}"), problems):
                if corrections.overturn(row.question_id):
                    overturned += 1
                    continue
                kind, votes = _LOCOMO_KINDS.get(str(row.category), "plain"), list(row.llm_judgments.values())
                gold = "" if row.golden_answer is None else str(row.golden_answer).strip()
                if not votes or not (gold or kind == "unanswerable"):
                    what, key = ("no golden answer", "golden_answer") if votes else ("no votes", "llm_judgments")
                    problems.add(RecordingError(where.at(f"{where.field}.{key}"), what, "give it, or leave this out"))
                    continue
                yield Labelled(
                    id=f"{row.question_id}-{system}",
                    set="locomo",
                    question=row.question,
                    accepted=(gold,) if gold and kind != "unanswerable" else (),
                    candidate=row.generated_answer,
                    correct=2 * sum(votes) > len(votes),
                    group=row.question_id,
                    system=system,
                    kind=kind,
                    labelled_by="model",
                    rating=sum(votes) / len(votes),
                    votes=tuple(map(int, votes)),
                    exact_dates=True,
                )
    if overturned:
        problems.notes.append(
            f"{path}: {overturned} answers left out: the audit corrects the golden answer of their votes"
        )


_LOCOMO = Format("LoCoMo's recorded answers with a model's votes (eval_results.json)", (_LOCOMO_SHAPE,), _read_locomo)


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

_MTRAG_SHAPE = frozenset({".tasks[].task_id", ".evaluations[].model_response", ".evaluations[].annotations"})
# The keys at the start of the published file: its evaluations come after the part that is searched.
_MTRAG_START_SHAPE = frozenset({".models[].model_id", ".metrics[].aggregator", ".documents[].document_id"})


class _MtragText(msgspec.Struct):
    text: str


class _MtragDocument(msgspec.Struct):
    document_id: str
    text: str | None = None


class _MtragTask(msgspec.Struct, rename={"answers": "Answerability"}):
    task_id: str
    input: list[_MtragText]
    targets: list[_MtragText]
    contexts: list[_MtragDocument] = []
    answers: list[str] = []


class _MtragRating(msgspec.Struct):
    value: Literal["1", "2", "3", "4"]


class _MtragEvaluation(msgspec.Struct):
    task_id: str
    model_id: str
    model_response: str
    annotations: dict[str, Any]


class _MtragFile(msgspec.Struct):
    tasks: list[Any]
    evaluations: list[Any]
    documents: list[_MtragDocument] = []


def _read_mtrag(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for _at, place, file in rows(path, _MtragFile, problems):
        documents = {document.document_id: document.text or "" for document in file.documents}
        tasks = {task.task_id: task for _, _, task in parts(file.tasks, _MtragTask, place.at("tasks"), problems)}
        for _number, where, evaluation in parts(file.evaluations, _MtragEvaluation, place.at("evaluations"), problems):
            if evaluation.model_id == "reference":
                continue
            try:
                yield _mtrag_answer(evaluation, tasks, documents, where)
            except RecordingError as error:
                problems.add(error)


def _mtrag_answer(
    evaluation: _MtragEvaluation, tasks: Mapping[str, _MtragTask], documents: Mapping[str, str], place: Place
) -> Labelled:
    task = tasks.get(evaluation.task_id)
    if task is None or not task.input or not task.targets:
        what = f"{evaluation.task_id!r} names no task with a question and a reference"
        raise RecordingError(place.at(f"{place.field}.task_id"), what, "add it to tasks, or leave this record out")
    ratings = [_mtrag_ratings(evaluation.annotations.get(name), name, place) for name in DECISIVE]
    unanswerable = "UNANSWERABLE" in task.answers
    question = task.input[-1].text
    # A rater's vote is the lowest of the three ratings, so only who gave all three has one.
    complete = [rater for rater in ratings[0] if all(rater in by_rater for by_rater in ratings)]
    return Labelled(
        id=f"{evaluation.task_id}-{evaluation.model_id}",
        set="mtrag",
        question=question,
        accepted=() if unanswerable else tuple(target.text for target in task.targets),
        candidate=evaluation.model_response,
        correct=all(median(by_rater.values()) >= LEAST for by_rater in ratings),
        group=evaluation.task_id,
        system=evaluation.model_id,
        language=language_of(question),
        kind="unanswerable" if unanswerable else "plain",
        rating=(fmean(value for by_rater in ratings for value in by_rater.values()) - 1) / 3,
        votes=tuple(min(by_rater[rater] for by_rater in ratings) for rater in complete),
        passing=LEAST,
        evidence=tuple(documents.get(context.document_id) or context.text or "" for context in task.contexts),
    )


def _mtrag_ratings(recorded: object, name: str, place: Place) -> dict[str, int]:
    """Return the ratings by rater. Raises RecordingError if there is none, or one that is not from 1 to 4."""
    try:
        ratings = msgspec.convert(recorded, dict[str, _MtragRating])
    except msgspec.ValidationError:
        ratings = {}
    if not ratings:
        where = place.at(f"{place.field}.annotations.{name}")
        raise RecordingError(where, "no ratings from 1 to 4", "give some, or leave this record out")
    return {rater: int(rating.value) for rater, rating in ratings.items()}


_MTRAG = Format("MT-RAG's human ratings of models' answers", (_MTRAG_SHAPE, _MTRAG_START_SHAPE), _read_mtrag)


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

_OWN_EXAMPLE = '{"question": "…", "accepted": ["…"], "candidate": "…", "correct": true}'

_OWN_KEYS = ("question", "accepted", "candidate", "correct")
_TextOrList = str | list[str]


class _OwnRow(msgspec.Struct, forbid_unknown_fields=True):
    question: str
    accepted: str | int | float | list[str | int | float] | None
    candidate: str
    correct: bool
    id: str | int = ""
    group: str | int = ""
    system: str = ""
    set: str = ""
    kind: Kind = "plain"
    language: Language | None = None
    labelled_by: Literal["people", "model"] = "people"
    rating: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    votes: tuple[int, ...] = ()
    passing: int = 1
    rubric: _TextOrList = ()  # type: ignore[assignment]
    evidence: _TextOrList = ()  # type: ignore[assignment]
    exact_dates: bool = False


def _read_own(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for at, place, row in rows(path, _OwnRow, problems):
        accepted = _texts(row.accepted)
        if not accepted and not row.rubric and row.kind != "unanswerable":
            remedy = "give one, or a rubric, or the kind unanswerable"
            problems.add(RecordingError(place.at("accepted"), "no accepted answer", remedy))
            continue
        yield Labelled(
            id=str(row.id) if row.id != "" else f"r{at + 1}",
            set=row.set or path.stem,
            question=row.question,
            accepted=accepted,
            candidate=row.candidate,
            correct=row.correct,
            group=str(row.group) if row.group != "" else row.question,
            system=row.system,
            language=row.language or language_of(row.question),
            kind=row.kind,
            labelled_by=row.labelled_by,
            rating=row.rating,
            votes=row.votes,
            passing=row.passing,
            rubric=_texts(row.rubric),
            evidence=_texts(row.evidence),
            exact_dates=row.exact_dates,
        )


def _texts(values: object) -> tuple[str, ...]:
    """Return one value or a list of values as texts, without the empty ones."""
    several = values if isinstance(values, list | tuple) else [values]
    return tuple(text for value in several if value is not None and (text := str(value).strip()))


_OWN = Format(
    "labelled answers of your own, JSON Lines",
    (frozenset(f".{key}" for key in _OWN_KEYS), frozenset(f"[].{key}" for key in _OWN_KEYS)),
    _read_own,
)


FORMATS: dict[str, Format] = {
    "evouna": _EVOUNA,
    "halluqa": _HALLUQA,
    "halluqa-outputs": _HALLUQA_OUTPUTS,
    "locomo": _LOCOMO,
    "mtrag": _MTRAG,
    "user": _OWN,
}
"""The formats by the names that error messages use."""


def read(paths: Iterable[Path], problems: Problems) -> Iterator[Labelled]:
    """Yield the labelled answers of the files, and of the folders' files, in the order of the paths.

    A named file of no known format is a problem; inside a folder it is only listed in `problems.ignored`. LoCoMo's
    answers are read with the corrections among the files. A repeated id of a set gets the suffix `~2`, `~3` …
    """
    seen: dict[tuple[str, str], int] = {}
    all_files = [(path, file) for path, files in files_of(paths, problems) for file in files]
    corrections = Corrections.among([file for _, file in all_files], problems)
    for path, file in all_files:
        if corrections.has(file):
            continue
        try:
            form = detect(file)
            if form is None:
                _report_unknown(file, problems, named=file == path)
                continue
            for answer in form.read(file, problems, corrections):
                yield with_unique_id(answer, seen)
        except RecordingError as error:
            problems.add(error)


def detect(path: Path) -> Format | None:
    """Return the format that the start of the file fits, the one with most keys if several do, or None.

    Raises RecordingError if the file cannot be read.
    """
    keys = key_paths(file_head(path))
    fits = [(len(shape), name) for name, form in FORMATS.items() for shape in form.shapes if shape <= keys]
    return FORMATS[max(fits)[1]] if fits else None


def with_unique_id(answer: Labelled, seen: dict[tuple[str, str], int]) -> Labelled:
    """Return the answer with an id that `seen`, the ids so far by set, does not have."""
    name = answer.id
    while (answer.set, name) in seen:
        seen[answer.set, answer.id] += 1
        name = f"{answer.id}~{seen[answer.set, answer.id]}"
    seen[answer.set, name] = 1
    return answer if name == answer.id else msgspec.structs.replace(answer, id=name)


def _report_unknown(path: Path, problems: Problems, named: bool) -> None:
    if not named:
        problems.ignored.append(str(path))
    elif not file_head(path).strip():
        problems.add(RecordingError(Place(str(path)), "the file is empty", "leave it out"))
    else:
        formats = ", ".join(FORMATS)
        remedy = f"known are {formats}; or write JSON Lines of {_OWN_EXAMPLE}, or name the columns by --columns"
        problems.add(RecordingError(Place(str(path)), "no known format of labelled answers fits", remedy))
