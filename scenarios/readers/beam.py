"""BEAM: conversations of 100 000 tokens and more with an assistant, and questions on ten memory abilities.

    chat.json               [{batch_number, time_anchor?, turns: [[{role, id, content, time_anchor?}]]}]
    probing_questions.json  {ability: [{question, answer | ideal_response | …, rubric[], source_chat_ids}]}

Source: github.com/mohammadtavakoli78/BEAM, `chats/<size>/<n>/` (Tavakoli et al. 2025, arXiv 2510.27246). The questions
stand beside the chat or in the folder `probing_questions` below it, and may be missing. A folder is a conversation, its
id `<size>/<n>`; where a folder has `chat.json`, other chats in it (`chat_trunecated.json`, a shorter copy) are ignored,
and so is `user_messages.json`, the user's half, which would else pass for an OpenAI chat.

Evidence is `source_chat_ids`: message ids in a list, or in lists under names. An id that names no message, or more than
one, is dropped and counted in meta; messages with the same id become `5`, `5~2`. `abstention` questions cannot be
answered. An ability without answers (following an instruction) is judged by the rubric. A time anchor is a day: the
messages after it have its noon, UTC. The marks that the generator left at the end of user messages (`->-> 1,2`) are not
removed. The 10M files, plans of batches, are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message, Probe
from ..packed import is_file
from ..source import Problems, convert, decode, whole_file
from . import Recordings
from .messages import forward, role_of, seconds

_QUESTIONS = "probing_questions"
_NOON = 12 * 3600  # the hour is not recorded; noon is the same day in most time zones


class _Turn(msgspec.Struct):
    role: str
    id: int | str
    content: str
    time_anchor: str | None = None


class _Batch(msgspec.Struct):
    turns: list[list[_Turn]]
    time_anchor: str | None = None


class _Question(msgspec.Struct):
    question: str
    answer: str | int | float | None = None
    ideal_answer: str | None = None
    ideal_response: str | None = None
    ideal_summary: str | None = None
    rubric: list[str] = []
    source_chat_ids: Any = None


@dataclass(frozen=True, slots=True)
class Beam:
    """BEAM's chats with their probing questions."""

    about: ClassVar[str] = "BEAM's chats with probing questions"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"[].batch_number", "[].turns", "[].turns[][].role"}),
        frozenset({".*[].question", ".*[].rubric"}),
        frozenset({"[].batch", "[].time_anchor", "[].messages", "[].messages[].role"}),  # user_messages.json
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        others = [path for path in files if not path.stem.startswith(_QUESTIONS)]
        chats = [path for path in others if path.name == "chat.json"]
        chats = chats or [path for path in others if path.name != "user_messages.json"]
        problems.ignored += [str(path) for path in others if path not in chats]
        for path in chats:
            place = Place(str(path))
            with problems.collect():
                batches = decode(whole_file(path, problems), list[_Batch], place)
                turns = list(_turns(batches, place))
                messages, times_dropped = _messages(turns)
                probes, dropped = _probes(path, [turn for turn, _, _ in turns], problems)
                parent = path.resolve().parent
                yield (
                    place,
                    Conversation(
                        id=f"{parent.parent.name}/{parent.name}",
                        messages=messages,
                        probes=probes,
                        language="en",
                        meta={"batches": len(batches), "evidence_dropped": dropped, "times_dropped": times_dropped},
                    ),
                )


def _turns(batches: Sequence[_Batch], place: Place) -> Iterator[tuple[_Turn, float | None, Place]]:
    """Yield every message with its time and place."""
    for b, batch in enumerate(batches):
        time = _day(batch.time_anchor, place.at(f"[{b}].time_anchor"))
        for t, turn in enumerate(batch.turns):
            for m, message in enumerate(turn):
                where = place.at(f"[{b}].turns[{t}][{m}]")
                if message.time_anchor:
                    time = _day(message.time_anchor, where.at(f"{where.field}.time_anchor"))
                yield message, time, where


def _day(anchor: str | None, place: Place) -> float | None:
    return seconds(anchor, "%B-%d-%Y", place, "March-15-2024") + _NOON if anchor else None


def _messages(turns: Sequence[tuple[_Turn, float | None, Place]]) -> tuple[tuple[Message, ...], int]:
    """Return the messages, and the number of times dropped because they run backwards."""
    times, dropped = forward(time for _, time, _ in turns)
    used: dict[str, int] = {}
    messages = []
    for (turn, _, place), time in zip(turns, times, strict=True):
        name = str(turn.id)
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name}~{used[name]}"
        messages.append(Message(id=unique, role=role_of(turn.role, place), text=turn.content, time=time))
    return tuple(messages), dropped


def _probes(chat: Path, turns: Sequence[_Turn], problems: Problems) -> tuple[tuple[Probe, ...], int]:
    """Return the probes of a chat, and the number of evidence ids dropped. A damaged question is a problem."""
    counts = Counter(str(turn.id) for turn in turns)
    probes, dropped = [], 0
    for ability, n, place, record in _questions(chat, problems):
        try:
            question = convert(record, _Question, place)
            cited = list(dict.fromkeys(_ids(question.source_chat_ids, place.at(f"{place.field}.source_chat_ids"))))
        except RecordingError as error:
            problems.add(error)
            continue
        evidence = tuple(name for name in cited if counts[name] == 1)
        dropped += len(cited) - len(evidence)
        probes.append(_probe(f"{ability}:{n}", ability, question, evidence))
    return tuple(probes), dropped


def _questions(chat: Path, problems: Problems) -> Iterator[tuple[str, int, Place, Any]]:
    """Yield the questions of the file beside a chat as (ability, number, place, record)."""
    for path in (chat.with_name(f"{_QUESTIONS}.json"), chat.parent / _QUESTIONS / f"{_QUESTIONS}.json"):
        if is_file(path):
            place = Place(str(path))
            try:
                questions = decode(whole_file(path, problems), dict[str, list[Any]], place)
            except RecordingError as error:
                problems.add(error)
                return
            for ability, records in questions.items():
                yield from ((ability, n, place.at(f"{ability}[{n}]"), record) for n, record in enumerate(records))
            return


def _probe(name: str, ability: str, question: _Question, evidence: tuple[str, ...]) -> Probe:
    recorded = (question.answer, question.ideal_answer, question.ideal_response, question.ideal_summary)
    answers = [str(answer) for answer in recorded if answer is not None]
    answerable = ability != "abstention"
    return Probe(
        id=name,
        question=question.question,
        answers=tuple(answers) if answerable else (),
        evidence=evidence,
        category=ability,
        answerable=answerable,
        rubric=tuple(question.rubric),
    )


def _ids(cited: object, place: Place) -> Iterator[str]:
    """Yield the message ids of a list, or of lists nested in lists and objects."""
    pending = [cited]
    while pending:
        match pending.pop():
            case dict() as named:
                pending += reversed(named.values())
            case list() as several:
                pending += reversed(several)
            case None:
                pass
            case int() | str() as name if not isinstance(name, bool):
                yield str(name)
            case other:
                remedy = "give a list of message ids, or lists under names"
                raise RecordingError(place, f"{other!r} is no message id", remedy)
