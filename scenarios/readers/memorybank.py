"""MemoryBank: ten days of chat a person, from ChatGPT playing both sides, and questions about them without gold.

    memory_bank_<language>.json         {user: {name, history: {"2023-04-27": [{query, response}]}}}
    probing_questions_<language>.jsonl  {user: [question, …]} on each line, beside it

Source: github.com/zhongwanjun/MemoryBank-SiliconFriend, `eval_data/{cn,en}` (Zhong et al. 2023, arXiv 2305.10250), MIT.
A user is a conversation. The hour is not recorded: all messages of a day have its noon, UTC. The questions have no
answers (category `no_gold`) and are asked at the end. Personality and hobbies, from which ChatGPT played the user, are
stored in meta; summaries are not read (they are empty). The questions' file has no shape of its own: it is found by its
name beside the other one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Message, Probe, Scalar
from ..packed import is_file
from ..source import Problems, convert, decode, lines, whole_file
from . import Recordings
from .messages import seconds

_LANGUAGES = {"cn": "zh", "en": "en"}
_NOON = 12 * 3600  # the hour is not recorded; noon is the same day in most time zones


class _Exchange(msgspec.Struct):
    query: str
    response: str


class _User(msgspec.Struct):
    history: dict[str, list[_Exchange]]
    meta_information: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class MemoryBank:
    """MemoryBank's users, with their questions."""

    about: ClassVar[str] = "MemoryBank's users (memory_bank_*.json and the questions beside it)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({".*.history", ".*.history.*[].query", ".*.history.*[].response"}),
    )
    folder: ClassVar[bool] = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            if path.name.startswith("probing_questions"):
                continue
            place = Place(str(path))
            try:
                bank = decode(whole_file(path, problems), dict[str, Any], place)
            except RecordingError as error:
                problems.add(error)
                continue
            questions = _questions(path, {name.strip() for name in bank}, problems)
            for name, record in bank.items():
                with problems.collect():
                    where = place.at(name)
                    yield where, _conversation(name.strip(), convert(record, _User, where), questions, path, where)


def _questions(path: Path, users: set[str], problems: Problems) -> dict[str, list[str]]:
    """Return the questions by user. Four users have blanks around their names in only one of the two files."""
    beside = path.with_name(path.name.replace("memory_bank", "probing_questions")).with_suffix(".jsonl")
    by_user: dict[str, list[str]] = {}
    if beside == path or not is_file(beside):
        return by_user
    if str(beside) in problems.ignored:  # no format fits its content, so `read.find` has listed it there
        problems.ignored.remove(str(beside))
    with problems.collect():  # the file is empty
        for place, line in lines(beside, problems):
            with problems.collect():
                for name, questions in decode(line, dict[str, list[str]], place).items():
                    if name.strip() not in users:
                        raise RecordingError(place.at(name), "questions about nobody", f"name a user of {path.name}")
                    by_user.setdefault(name.strip(), []).extend(questions)
    return by_user


def _conversation(name: str, user: _User, questions: Mapping[str, list[str]], path: Path, place: Place) -> Conversation:
    messages = []
    for day, exchanges in sorted(user.history.items()):
        time = seconds(day, "%Y-%m-%d", place.at(f"{place.field}.history.{day}"), "2023-04-27") + _NOON
        for n, exchange in enumerate(exchanges):
            messages.append(Message(id=f"{day}:{2 * n}", role="user", text=exchange.query, name=name, time=time))
            messages.append(Message(id=f"{day}:{2 * n + 1}", role="assistant", text=exchange.response, time=time))
    about: dict[str, Scalar] = {key: value for key, value in user.meta_information.items() if isinstance(value, str)}
    return Conversation(
        id=f"{path.stem}/{name}",
        messages=tuple(messages),
        probes=tuple(
            Probe(id=f"q{n}", question=text, category="no_gold") for n, text in enumerate(questions.get(name, ()))
        ),
        licence="MIT",
        language=_LANGUAGES.get(path.stem.rpartition("_")[2], ""),
        meta={**about, "days": len(user.history)},
    )
