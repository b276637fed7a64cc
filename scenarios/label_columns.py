"""Labelled answers in tables of any shape: CSV, TSV, JSON or JSON Lines, by the names of their columns.

    columns = Columns.parse(["question=Question,gold=answers", "answer=prediction", "label=rater_1,label=rater_2"])

A gold answer or a label may stand in several columns. Several gold answers in one cell are a list, as JSON or as Python
writes it. Each label column is one rater's. Of several labels the majority counts; where they are split in halves, the
answer counts as wrong, and a note says how many are. A rater who left a cell empty did not label that answer.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .errors import Place, RecordingError, SpecError
from .labelled import Kind, Labelled, language_of, with_unique_id
from .source import Problems, decode, files_of, records, whole_file

_REQUIRED = ("question", "gold", "answer", "label")
_SINGLE = ("question", "answer", "id", "system", "kind")
_NAMES = (*_REQUIRED, "id", "system", "kind")
_EXAMPLE = "question=Q,gold=GOLD,answer=ANSWER,label=RATER_1,label=RATER_2"
_KINDS: tuple[Kind, ...] = ("plain", "temporal", "preference", "update", "unanswerable")
_RIGHT = frozenset(["true", "yes", "y", "t", "1", "1.0", "correct", "right", "pass", "是", "对", "正确"])
_WRONG = frozenset(["false", "no", "n", "f", "0", "0.0", "incorrect", "wrong", "fail", "否", "错", "不正确", "错误"])
_TABLES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_LONGEST_CELL = 1 << 24


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns that a table of labelled answers is read from."""

    question: str
    answer: str
    gold: tuple[str, ...]
    label: tuple[str, ...]
    id: str = ""
    system: str = ""
    kind: str = ""

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Columns:
        """Read `name=column,name=column`, in one text or several. Raises SpecError."""
        named: dict[str, list[str]] = {}
        for part in ",".join(texts).split(","):
            name, equals, column = (piece.strip() for piece in part.partition("="))
            if not equals or not column or name not in _NAMES:
                raise SpecError(f"--columns {part.strip()!r}: write NAME=COLUMN, with NAME of {', '.join(_NAMES)}")
            if name in _SINGLE and name in named:
                raise SpecError(f"--columns names {name} twice; only gold and label may have several columns")
            named.setdefault(name, []).append(column)
        if lost := [name for name in _REQUIRED if name not in named]:
            raise SpecError(f"--columns lacks {', '.join(lost)}: write {_EXAMPLE}")
        single = {name: named[name][0] for name in _SINGLE if name in named}
        return cls(gold=tuple(named["gold"]), label=tuple(named["label"]), **single)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of their use."""
        own = (self.question, *self.gold, self.answer, *self.label, self.id, self.system, self.kind)
        return tuple(filter(None, own))


def read_tables(paths: Iterable[Path], columns: Columns, problems: Problems) -> Iterator[Labelled]:
    """Yield the labelled answers of the tables, and of the tables in folders, in the order of the paths."""
    seen: dict[tuple[str, str], int] = {}
    for _, files in files_of(paths, problems):
        for file in files:
            try:
                for answer in _read_table(file, columns, problems):
                    yield with_unique_id(answer, seen)
            except RecordingError as error:
                problems.add(error)


def _read_table(path: Path, columns: Columns, problems: Problems) -> Iterator[Labelled]:
    """Yield the labelled answers of one table. Raises RecordingError if it cannot be read or lacks a column."""
    ties = unlabelled = 0
    for number, (place, row) in enumerate(_rows(path, columns, problems), 1):
        try:
            votes = tuple(vote for name in columns.label if (vote := _vote(row.get(name), place.at(name))) is not None)
            if not votes:
                unlabelled += 1
                continue
            ties += 2 * sum(votes) == len(votes)
            yield _labelled(row, columns, votes, place, path.stem, number)
        except RecordingError as error:
            problems.add(error)
    if ties:
        problems.notes.append(f"{path}: {ties} answers whose labels are split in halves, which count as wrong")
    if unlabelled:
        problems.notes.append(f"{path}: {unlabelled} answers without a label left out")


def _labelled(
    row: Mapping[str, Any], columns: Columns, votes: tuple[int, ...], place: Place, name: str, number: int
) -> Labelled:
    question = _text(row.get(columns.question))
    kind = _text(row.get(columns.kind)) or "plain" if columns.kind else "plain"
    if kind not in _KINDS:
        raise RecordingError(place.at(columns.kind), f"no kind {kind!r}", f"known are {', '.join(_KINDS)}")
    golds = tuple(text for column in columns.gold for text in _golds(row.get(column)))
    if not golds and kind != "unanswerable":
        raise RecordingError(place.at(columns.gold[0]), "no gold answer", "give one, or the kind unanswerable")
    if not question:
        raise RecordingError(place.at(columns.question), "no question", "give one, or leave this row out")
    return Labelled(
        id=_text(row.get(columns.id)) or f"r{number}" if columns.id else f"r{number}",
        set=name,
        question=question,
        accepted=golds,
        candidate=_text(row.get(columns.answer)),
        correct=2 * sum(votes) > len(votes),
        group=question,
        system=_text(row.get(columns.system)) if columns.system else "",
        language=language_of(question),
        kind=kind,
        rating=sum(votes) / len(votes),
        votes=votes if len(columns.label) > 1 else (),
    )


def _rows(path: Path, columns: Columns, problems: Problems) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the rows of a table with their places. Raises RecordingError if the first one lacks a column.

    A key that a later JSON object lacks is an empty cell.
    """
    if path.suffix.lower() in _TABLES:
        yield from _table_rows(path, columns, problems)
        return
    is_first = True
    for place, raw in records(path, problems):
        try:
            row = decode(raw, dict[str, Any], place)
        except RecordingError as error:
            problems.add(error)
            continue
        if is_first:
            _check(columns, row, place)
            is_first = False
        yield place, row


def _table_rows(path: Path, columns: Columns, problems: Problems) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    try:
        text = whole_file(path, problems).decode()
    except UnicodeDecodeError as error:
        raise RecordingError(Place(str(path)), f"not UTF-8 ({error.reason})", "save the file as UTF-8") from None
    csv.field_size_limit(_LONGEST_CELL)
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter=_TABLES[path.suffix.lower()], strict=True)
    try:
        _check(columns, dict.fromkeys(table.fieldnames or ()), Place(str(path), 1))
        for row in table:
            place = Place(str(path), table.line_num)
            if None in row or None in row.values():
                what = f"{'more' if None in row else 'fewer'} cells than the {len(table.fieldnames or ())} columns"
                problems.add(RecordingError(place, what, "quote cells that hold the separator, or leave this row out"))
                continue
            yield place, row
    except csv.Error as error:
        raise RecordingError(Place(str(path), table.line_num), f"not a table: {error}", "repair this line") from None


def _check(columns: Columns, row: Mapping[str, Any], place: Place) -> None:
    lost = [name for name in columns.names if name not in row]
    if lost:
        names = ", ".join(map(repr, lost))
        raise RecordingError(place, f"no column {names}", f"it has {', '.join(map(repr, row))}; name them by --columns")


def _vote(value: object, place: Place) -> int | None:
    """Return 1 for right, 0 for wrong, None for an empty cell. Raises RecordingError for anything else."""
    text = _text(value).lower()
    if not text:
        return None
    if text in _RIGHT or text in _WRONG:
        return int(text in _RIGHT)
    raise RecordingError(place, f"no label: {text[:40]!r}", "write true or false, yes or no, 1 or 0, or leave it empty")


def _golds(value: object) -> tuple[str, ...]:
    """Return the gold answers of a cell: one text, or a list of them."""
    several = value if isinstance(value, list) else _list(_text(value))
    return tuple(text for each in several if (text := _text(each)))


def _list(text: str) -> list[Any]:
    """Return the list that a text is, as JSON or as Python writes it; else the text as the only element."""
    if text.startswith("["):
        for read in (msgspec.json.decode, ast.literal_eval):
            try:
                several = read(text)
            except (msgspec.DecodeError, ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(several, list):
                return several
    return [text]


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
