"""LongMemEval: a question a record, each with its own haystack of dated chat sessions.

    [{question_id, question_type, question, answer, question_date, haystack_dates[], haystack_session_ids[],
      haystack_sessions: [[{role, content, has_answer?}]], answer_session_ids[]}]

Also read: several questions to one haystack, `questions: [{question_id, question, answer, …}]` in place of the fields
of the one. Source: github.com/xiaowu0162/LongMemEval (Wu et al. 2024, arXiv 2410.10813),
`longmemeval_{oracle,s,m}.json`. A record is a conversation whose questions are probes, asked at the end. All messages
of a session have the session's time, taken as UTC. Sessions stay in the recorded order; if their dates run backwards,
all sessions are sorted by date instead, and meta says so. Message ids are `<session>:<n>`; a session id that stands
twice becomes `<session>~2`. Evidence is the messages with `has_answer`; of several questions, those in the sessions
that a question names. A question whose id ends in `_abs` cannot be answered: the recorded refusal is its rubric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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


class _Haystack(msgspec.Struct):
    haystack_sessions: list[list[_Turn]]
    haystack_session_ids: list[str]
    haystack_dates: list[str]
    questions: list[msgspec.Raw] | None = None


class _Question(msgspec.Struct):
    question_id: str
    question: str
    answer: str | int | float
    question_type: str = ""
    question_date: str | None = None
    answer_session_ids: list[str] = []


@dataclass(frozen=True, slots=True)
class LongMemEval:
    """LongMemEval's questions, each over its haystack."""

    about: ClassVar[str] = "LongMemEval (questions over a haystack of sessions)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"[].question_id", "[].haystack_dates", "[].haystack_sessions"}),
        frozenset({".question_id", ".haystack_dates", ".haystack_sessions"}),
        frozenset({"[].questions", "[].questions[].question", "[].haystack_dates", "[].haystack_sessions"}),
        frozenset({".questions", ".questions[].question", ".haystack_dates", ".haystack_sessions"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw in records(path, problems):
                with problems.collect():
                    haystack = decode(raw, _Haystack, place)
                    if haystack.questions is None:
                        questions = [_question(raw, place)]
                    else:
                        questions = list(_questions(haystack.questions, place, problems))
                    if questions:
                        yield place, _conversation(haystack, questions, place)


def _question(raw: bytes | msgspec.Raw, place: Place) -> tuple[_Question, float | None]:
    """Return a question and the time at which it is asked."""
    question = decode(raw, _Question, place)
    date = place.at(f"{place.field}.question_date".removeprefix("."))
    return question, _time(question.question_date, date) if question.question_date else None


def _questions(
    recorded: list[msgspec.Raw], place: Place, problems: Problems
) -> Iterator[tuple[_Question, float | None]]:
    """Yield the questions to one haystack with their times; a damaged one is a problem."""
    if not recorded:
        problems.add(RecordingError(place.at("questions"), "no question is in it", "leave it out"))
    for at, raw in enumerate(recorded):
        where = place.at(f"questions[{at}]")
        with problems.collect():
            yield _question(raw, where)


def _conversation(record: _Haystack, questions: Sequence[tuple[_Question, float | None]], place: Place) -> Conversation:
    sessions, reordered = _sessions(record, place)
    messages, evidence = [], list[tuple[str, str]]()
    used: dict[str, int] = {}
    for time, at in sessions:
        session = record.haystack_session_ids[at]
        used[session] = used.get(session, 0) + 1
        name = session if used[session] == 1 else f"{session}~{used[session]}"
        for n, turn in enumerate(record.haystack_sessions[at]):
            role = role_of(turn.role, place.at(f"haystack_sessions[{at}][{n}]"))
            messages.append(Message(id=f"{name}:{n}", role=role, text=turn.content, time=time))
            if turn.has_answer:
                evidence.append((session, messages[-1].id))
    alone = record.questions is None
    return Conversation(
        id=questions[0][0].question_id,
        messages=tuple(messages),
        probes=tuple(
            _probe(
                question,
                tuple(name for session, name in evidence if alone or session in question.answer_session_ids),
                time,
            )
            for question, time in questions
        ),
        language="en",
        meta={
            "sessions": len(sessions),
            "answer_sessions": " ".join(dict.fromkeys(name for q, _ in questions for name in q.answer_session_ids)),
            "sessions_reordered": reordered,
        },
    )


def _probe(question: _Question, evidence: tuple[str, ...], time: float | None) -> Probe:
    answerable = not question.question_id.endswith("_abs")
    return Probe(
        id=question.question_id,
        question=question.question,
        answers=(str(question.answer),) if answerable else (),
        rubric=() if answerable else (str(question.answer),),
        evidence=evidence,
        category=question.question_type,
        answerable=answerable,
        time=time,
    )


def _sessions(record: _Haystack, place: Place) -> tuple[list[tuple[float, int]], bool]:
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
