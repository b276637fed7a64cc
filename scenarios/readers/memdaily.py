"""MemDaily: what a user tells an assistant over days, in Chinese, and multiple-choice questions on it.

    memdaily.json       {type: {scenario: [{tid, message_list: [{mid, message, time, place}], QA}]}}
    memdaily_<n>.json   the same with messages as texts, n times as much noise among them
    <type>_<scenario>   [{tid, message_list, question_list: [QA]}]
    QA                  {qid, question, answer, target_step_id, choices: {"A": text}, ground_truth, time}

Source: github.com/nuster1128/MemSim (arXiv:2409.20163), by its code; tested on written examples alone.

- A user speaks, and nobody answers. Time and place of a message stand behind its text, as the benchmark's own agents
  see it. The times (`2024年04月01日 周一 08:30`) are taken as UTC.
- Accepted is the answer, and the text of the right choice. The choices are not part of the question.
- Questions that the generator could not make (`[ERRORQ]`, `[ERRORA]`) are left out, as the benchmark does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from ..errors import Place
from ..model import Conversation, Message, Probe
from ..source import Problems, decode, elements, file_head, whole_file
from . import Recordings
from .messages import in_order, seconds

_WEEKDAY = re.compile(r"\s*(?:周|星期)\S\s*")
_FAILED = ("[ERRORQ]", "[ERRORA]")


class _Message(msgspec.Struct):
    message: str
    time: str = ""
    place: str = ""


class _Question(msgspec.Struct):
    question: str
    answer: str | list[str]
    target_step_id: list[int] = []
    choices: dict[str, str] = {}
    ground_truth: str = ""
    time: str = ""
    qid: int = 0


class _Trajectory(msgspec.Struct):
    tid: int
    message_list: list[_Message | str]
    question_list: list[_Question] = []
    question: _Question | None = msgspec.field(default=None, name="QA")


_Kinds = dict[str, dict[str, list[msgspec.Raw] | None]]


@dataclass(frozen=True, slots=True)
class MemDaily:
    """Trajectories of MemDaily."""

    about: ClassVar[str] = "MemDaily trajectories with questions (Chinese)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"[].tid", "[].message_list", "[].question_list"}),
        frozenset({".*.*[].tid", ".*.*[].message_list", ".*.*[].QA"}),
    )
    folder: ClassVar[bool] = False

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw, name, kind in _records(path, problems):
                with problems.collect():
                    yield place, _conversation(decode(raw, _Trajectory, place), name, kind, place)


def _records(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes, str, str]]:
    """Yield every trajectory with its place, the name of its set, and the kind of its questions."""
    start = file_head(path, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        for place, raw in elements(path, problems):
            yield place, raw, path.stem, re.sub(r"^\d+_|_[a-z]+$", "", path.stem)
        return
    place = Place(str(path), 1)
    for kind, sets in decode(whole_file(path, problems), _Kinds, place).items():
        for scenario, trajectories in sets.items():
            for at, raw in enumerate(trajectories or ()):
                where = place.at(f"{kind}.{scenario}[{at}]")
                yield where, bytes(raw), f"{path.stem}/{kind}/{scenario}", kind


def _conversation(trajectory: _Trajectory, name: str, kind: str, place: Place) -> Conversation:
    messages = []
    for at, said in enumerate(trajectory.message_list):
        if isinstance(said, str):
            messages.append(Message(f"m{at}", "user", said))
            continue
        told = [f"消息地点 {said.place}"] * bool(said.place) + [f"消息时间 {said.time}"] * bool(said.time)
        text = said.message + (f" ({', '.join(told)})" if told else "")
        time = _seconds(said.time, place.below(f"message_list[{at}].time")) if said.time else None
        messages.append(Message(f"m{at}", "user", text, time=time))
    questions = trajectory.question_list or ([] if trajectory.question is None else [trajectory.question])
    probes = tuple(
        _probe(question, at, kind, place.below(f"question_list[{at}]"))
        for at, question in enumerate(questions)
        if question.question not in _FAILED and question.answer not in _FAILED
    )
    return Conversation(f"{name}/{trajectory.tid}", in_order(messages), probes=probes, language="zh")


def _probe(question: _Question, at: int, kind: str, place: Place) -> Probe:
    given = [question.answer] if isinstance(question.answer, str) else question.answer
    chosen = question.choices.get(question.ground_truth)
    return Probe(
        f"q{at}",
        question.question,
        tuple(dict.fromkeys([*given, *([chosen] if chosen else [])])),
        tuple(f"m{step}" for step in question.target_step_id),
        kind,
        time=_seconds(question.time, place.below("time")) if question.time else None,
    )


def _seconds(text: str, place: Place) -> float:
    """Return the seconds of a time without its weekday, which `strptime` reads in the machine's language alone."""
    return seconds(_WEEKDAY.sub(" ", text), "%Y年%m月%d日 %H:%M", place, "2024年04月01日 周一 08:30")
