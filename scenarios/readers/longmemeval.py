"""LongMemEval: a question a record, each with its own haystack of dated chat sessions.

    [{question_id, question_type, question, answer, question_date, haystack_dates[], haystack_session_ids[],
      haystack_sessions: [[{role, content, has_answer?}]], answer_session_ids[]}]

Source: github.com/xiaowu0162/LongMemEval (Wu et al. 2024, arXiv 2410.10813), `longmemeval_{oracle,s,m}.json`. A record
is a conversation with one probe, asked at the end. All messages of a session have the session's time, taken as UTC.
Sessions stay in the recorded order; if their dates run backwards, all sessions are sorted by date instead, and meta
says so. Message ids are `<session>:<n>`; a session id that stands twice becomes `<session>~2`. Evidence is the messages
with `has_answer`. A question whose id ends in `_abs` cannot be answered: the recorded refusal is its rubric.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message, Probe
from ..source import Problems, decode, records
from . import Recordings
from .messages import role_of, seconds


class _Turn(msgspec.Struct):
    role: str
    content: str
    has_answer: bool | None = None


class _Question(msgspec.Struct):
    question_id: str
    question: str
    answer: str | int | float
    haystack_sessions: list[list[_Turn]]
    haystack_session_ids: list[str]
    haystack_dates: list[str]
    question_type: str = ""
    question_date: str | None = None
    answer_session_ids: list[str] = []


@dataclass(frozen=True, slots=True)
class LongMemEval:
    """LongMemEval's questions, each over its haystack."""

    about: ClassVar[str] = "LongMemEval (a question over a haystack of sessions)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"[].question_id", "[].haystack_dates", "[].haystack_sessions"}),
        frozenset({".question_id", ".haystack_dates", ".haystack_sessions"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                try:
                    yield place, _conversation(decode(raw, _Question, place), place)
                except RecordingError as error:
                    problems.add(error)


def _conversation(record: _Question, place: Place) -> Conversation:
    sessions, reordered = _sessions(record, place)
    messages, evidence = [], []
    used: dict[str, int] = {}
    for time, at in sessions:
        session = record.haystack_session_ids[at]
        used[session] = used.get(session, 0) + 1
        name = session if used[session] == 1 else f"{session}~{used[session]}"
        for n, turn in enumerate(record.haystack_sessions[at]):
            role = role_of(turn.role, place.at(f"haystack_sessions[{at}][{n}]"))
            messages.append(Message(id=f"{name}:{n}", role=role, text=turn.content, time=time))
            if turn.has_answer:
                evidence.append(messages[-1].id)
    answerable = not record.question_id.endswith("_abs")
    probe = Probe(
        id=record.question_id,
        question=record.question,
        answers=(str(record.answer),) if answerable else (),
        rubric=() if answerable else (str(record.answer),),
        evidence=tuple(evidence),
        category=record.question_type,
        answerable=answerable,
        time=_time(record.question_date, place.at("question_date")) if record.question_date else None,
    )
    return Conversation(
        id=record.question_id,
        messages=tuple(messages),
        probes=(probe,),
        language="en",
        meta={
            "sessions": len(sessions),
            "answer_sessions": " ".join(record.answer_session_ids),
            "sessions_reordered": reordered,
        },
    )


def _sessions(record: _Question, place: Place) -> tuple[list[tuple[float, int]], bool]:
    """Return the sessions' times and indices in order, and whether that differs from the recorded order."""
    for field in ("haystack_dates", "haystack_session_ids"):
        if (count := len(getattr(record, field))) != len(record.haystack_sessions):
            what = f"{count} of them for {len(record.haystack_sessions)} sessions"
            raise RecordingError(place.at(field), what, "give one for each session")
    times = [_time(text, place.at(f"haystack_dates[{at}]")) for at, text in enumerate(record.haystack_dates)]
    order = [(time, at) for at, time in enumerate(times)]
    # the recorded order is part of the data set, so it changes only where it contradicts the dates
    backwards = any(after < before for before, after in pairwise(times))
    return (sorted(order) if backwards else order), backwards


def _time(text: str, place: Place) -> float:
    """Return the seconds of a time such as `2023/05/20 (Sat) 02:21`; the weekday is redundant."""
    return seconds(re.sub(r"\s*\(\w+\)", "", text), "%Y/%m/%d %H:%M", place, "2023/05/20 (Sat) 02:21")
