"""Labelled answers of your own, as JSON Lines or a JSON array.

    {"question": "When?", "accepted": ["8 May"], "candidate": "On May 8th.", "correct": true}

Also taken: `id`, `group` (the question's id; else the question itself), `system`, `set` (else the file's name), `kind`,
`language` (else by the question's characters), `labelled_by` ("people" or "model"), `rating` (0 to 1), `votes` (what
each rater said, in whole numbers; those from `passing` on, else from 1, say right), `rubric`, `evidence`. `accepted` is
a text or a number, or a list of them; it may be empty for the kind `unanswerable`, or if there is a rubric. What is not
here is an error: a field's name is easily misspelt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..errors import RecordingError
from ..source import Problems
from .labelled import Format, Kind, Labelled, Language, language_of, rows

EXAMPLE = '{"question": "…", "accepted": ["…"], "candidate": "…", "correct": true}'

_KEYS = ("question", "accepted", "candidate", "correct")
_Texts = str | list[str]


class _Row(msgspec.Struct, forbid_unknown_fields=True):
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
    rubric: _Texts = ()  # type: ignore[assignment]
    evidence: _Texts = ()  # type: ignore[assignment]


def _read(path: Path, problems: Problems, _: object) -> Iterator[Labelled]:
    for at, place, row in rows(path, _Row, problems):
        accepted = _accepted(row.accepted)
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
            rubric=_accepted(row.rubric),
            evidence=_accepted(row.evidence),
        )


def _accepted(given: object) -> tuple[str, ...]:
    """One text, or several, without the empty ones."""
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(text for each in several if each is not None and (text := str(each).strip()))


FORMAT = Format(
    "labelled answers of your own, JSON Lines",
    (frozenset(f".{key}" for key in _KEYS), frozenset(f"[].{key}" for key in _KEYS)),
    _read,
)
