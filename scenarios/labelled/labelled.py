"""An answer with a label: what a grader is compared with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ..errors import Place, RecordingError
from ..source import Problems, convert, decode, records

Kind = Literal["plain", "temporal", "preference", "update", "unanswerable"]
"""What the question asks for; the words are those of `metrics.grading.Kind`, which this room may not import."""
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
    """The question that it answers: answers to one question are not independent, so a bootstrap draws groups."""
    system: str = ""
    """Whose answer it is."""
    language: Language = "en"
    """Of the question."""
    kind: Kind = "plain"
    labelled_by: Literal["people", "model"] = "people"
    """Who says so. What a model says is no human label: a grader's agreement with it is with another grader."""
    rating: float | None = None
    """What the label was made from, from 0 to 1, where it was not yes or no: votes, ratings."""
    votes: tuple[int, ...] = ()
    """What each rater said, on one scale: the higher, the better. Who they are is not known."""
    passing: int = 1
    """The least vote that says right."""
    rubric: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def language_of(question: str) -> Language:
    """Chinese if there is a Chinese character in it."""
    return "zh" if _HAN.search(question) else "en"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read."""

    about: str
    shapes: tuple[frozenset[str], ...]
    """Key paths (`source.key_paths`) of which all must be in a file; any one set is enough."""
    read: Callable[[Path, Problems, Any], Iterator[Labelled]]
    """From a file, the problems, and LoCoMo's corrections."""


def rows(path: Path, kind: type[T], problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """The records of a file as `kind`, each with its number from 0 and its place. A bad one is a problem."""
    for at, (place, raw) in enumerate(records(path, problems)):
        try:
            yield at, place, decode(raw, kind, place)
        except RecordingError as error:
            problems.add(error)


def parts(values: list[Any], kind: type[T], place: Place, problems: Problems) -> Iterator[tuple[int, Place, T]]:
    """The same for the elements of a list that stands at `place`."""
    for at, value in enumerate(values):
        where = place.at(f"{place.field}[{at}]")
        try:
            yield at, where, convert(value, kind, where)
        except RecordingError as error:
            problems.add(error)
