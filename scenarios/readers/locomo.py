"""LoCoMo: ten long two-person conversations in dated sessions, with 1 986 questions. CC BY-NC 4.0.

    [{sample_id, conversation: {speaker_a, speaker_b, session_1_date_time, session_1: [{speaker, dia_id, text,
      blip_caption?}], …}, qa: [{question, answer | adversarial_answer, evidence: ["D1:3"], category}],
      observation?: {session_1_observation: {SPEAKER: [[text, "D1:3"]]}}}]

Source: github.com/snap-research/locomo, `data/locomo10.json` (Maharana et al. 2024, arXiv 2402.17753). Speaker A is
read as the user, B as the assistant; all messages of a session have the session's time, taken as UTC. Questions are
asked at the end. Not read: the wrong answer of category 5 (`adversarial_answer`), event summaries, the pictures
themselves. Observations become the conversation's facts.

A few evidence strings are damaged. A string with only one reading is repaired ("D8:6; D9:17", "D:11:26", "D30:05"), a
reference to no message is dropped; meta counts both. `corrections` is the path of an audit's `errors.json`
(`[{question_id: "locomo_<conversation>_qa<question>", correct_answer, correct_evidence}]`, both counted from 0):
its answers and evidence replace the published ones.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ..errors import Place, RecordingError
from ..model import Conversation, Fact, Media, Message, Probe, Scalar
from ..packed import is_file
from ..source import Problems, convert, decode, records, whole_file
from . import Recordings
from .messages import forward, seconds

CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "unanswerable"}

_SESSION = re.compile(r"session_(\d{1,9})")
_EVIDENCE = re.compile(r"D:?(\d{1,9}):(\d{1,9})")


class _Turn(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    img_url: list[str] | None = None
    blip_caption: str | None = None


class _Question(msgspec.Struct):
    question: str
    category: int
    answer: str | int | float | None = None
    evidence: list[str] = []


class _Sample(msgspec.Struct):
    sample_id: str
    conversation: dict[str, Any]
    qa: list[_Question] = []
    observation: dict[str, dict[str, list[tuple[str, str | list[str]]]]] = {}


class _Correction(msgspec.Struct):
    question_id: str
    question: str
    correct_answer: str
    correct_evidence: list[str]


@dataclass(frozen=True, slots=True)
class Locomo:
    """LoCoMo, as published or with an audit's corrections."""

    about: ClassVar[str] = "LoCoMo's conversations with questions (locomo10.json)"
    shapes: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"[].conversation.speaker_a", "[].conversation.session_1[].dia_id"}),
        frozenset({"[].qa[].question", "[].qa[].evidence", "[].qa[].category"}),
    )
    folder: ClassVar[bool] = False

    corrections: str = ""

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        corrections = _corrections(Path(self.corrections), problems) if self.corrections else {}
        for path in files:
            for at, (place, raw) in enumerate(records(path, problems)):
                with problems.collect():
                    sample = decode(raw, _Sample, place)
                    corrected = _corrections_of(sample.qa, at, corrections, self.corrections)
                    yield place, _conversation(sample, corrected, place)


def _corrections(path: Path, problems: Problems) -> dict[str, _Correction]:
    place = Place(str(path))
    if not is_file(path):
        raise RecordingError(place, "there is no such file of corrections", "give the path of the audit's errors.json")
    return {
        correction.question_id: correction
        for correction in decode(whole_file(path, problems), list[_Correction], place)
    }


def _corrections_of(
    questions: Sequence[_Question], at: int, corrections: Mapping[str, _Correction], file: str
) -> dict[int, _Correction]:
    """Return the corrections of conversation `at` by the index of their question.

    Raises RecordingError if the audit is of another file.
    """
    by_question = {}
    for name, correction in corrections.items():
        match = re.fullmatch(rf"locomo_{at}_qa(\d+)", name)
        if match is None:
            continue
        index = int(match[1])
        if index >= len(questions) or questions[index].question != correction.question:
            what = f"{name} corrects a question that conversation {at} does not have there"
            raise RecordingError(Place(file), what, "use the corrections with the file that was audited")
        by_question[index] = correction
    return by_question


def _conversation(sample: _Sample, corrections: Mapping[int, _Correction], place: Place) -> Conversation:
    messages, meta = _messages(sample.conversation, place)
    ids = {message.id: at for at, message in enumerate(messages)}
    facts, facts_dropped = _facts(sample.observation, ids)
    probes, repaired, dropped = [], 0, 0
    for at, question in enumerate(sample.qa):
        correction = corrections.get(at)
        cited = correction.correct_evidence if correction else question.evidence
        evidence, mends, drops = _evidence(cited, ids)
        repaired, dropped = repaired + mends, dropped + drops
        answer = correction.correct_answer if correction else question.answer
        probes.append(_probe(f"qa{at}", question, answer, evidence, place.at(f"qa[{at}].category")))
    counts: dict[str, Scalar] = {
        "evidence_repaired": repaired,
        "evidence_dropped": dropped,
        "facts_dropped": facts_dropped,
    }
    return Conversation(
        id=sample.sample_id,
        messages=messages,
        probes=tuple(probes),
        facts=facts,
        licence="CC BY-NC 4.0",
        language="en",
        meta=meta | counts | {"corrections_applied": len(corrections)},
    )


def _messages(spoken: Mapping[str, Any], place: Place) -> tuple[tuple[Message, ...], dict[str, Scalar]]:
    user, assistant = (
        convert(spoken.get(key), str, place.at(f"conversation.{key}")) for key in ("speaker_a", "speaker_b")
    )
    sessions = sorted((int(match[1]), key) for key in spoken if (match := _SESSION.fullmatch(key)))
    times, dropped = forward(_time(spoken, f"{key}_date_time", place) for _, key in sessions)
    messages = []
    for (_, key), time in zip(sessions, times, strict=True):
        where = place.at(f"conversation.{key}")
        for at, turn in enumerate(convert(spoken[key], list[_Turn], where)):
            if turn.speaker not in (user, assistant):
                field = where.at(f"{where.field}[{at}].speaker")
                raise RecordingError(field, f"unknown speaker {turn.speaker!r}", f"use {user!r} or {assistant!r}")
            shared = turn.img_url is not None or turn.blip_caption is not None
            photo = f"[shares a photo: {turn.blip_caption}]" if turn.blip_caption else "[shares a photo]"
            messages.append(
                Message(
                    id=turn.dia_id,
                    role="user" if turn.speaker == user else "assistant",
                    text=f"{turn.text}\n{photo}" if shared else turn.text,
                    name=turn.speaker,
                    time=time,
                    media=(Media("image"),) if shared else (),
                )
            )
    return tuple(messages), {
        "speaker_a": user,
        "speaker_b": assistant,
        "sessions": len(sessions),
        "session_times_dropped": dropped,
    }


def _time(spoken: Mapping[str, Any], key: str, place: Place) -> float | None:
    if key not in spoken:
        return None
    where = place.at(f"conversation.{key}")
    return seconds(convert(spoken[key], str, where), "%I:%M %p on %d %B, %Y", where, "1:56 pm on 8 May, 2023")


def _probe(
    name: str, question: _Question, answer: str | int | float | None, evidence: tuple[str, ...], place: Place
) -> Probe:
    if question.category not in CATEGORIES:
        raise RecordingError(place, f"unknown category {question.category}", "use 1 to 5")
    answerable = question.category != 5
    return Probe(
        id=name,
        question=question.question,
        answers=(str(answer),) if answerable and answer is not None else (),
        evidence=evidence,
        category=CATEGORIES[question.category],
        answerable=answerable,
    )


def _facts(
    observed: Mapping[str, Mapping[str, Sequence[tuple[str, str | list[str]]]]], ids: Mapping[str, int]
) -> tuple[tuple[Fact, ...], int]:
    """Return the observations of messages that exist, in the order of those messages, and the number of the others."""
    facts, dropped = [], 0
    for text, cited in (pair for speakers in observed.values() for pairs in speakers.values() for pair in pairs):
        names, _, _ = _evidence([cited] if isinstance(cited, str) else cited, ids)
        if names:
            facts.append(Fact(text, max(names, key=ids.__getitem__)))
        else:
            dropped += 1
    return tuple(sorted(facts, key=lambda fact: ids[fact.source])), dropped


def _evidence(cited: Iterable[str], ids: Container[str]) -> tuple[tuple[str, ...], int, int]:
    """Return evidence as message ids, the number of repaired strings, and the number of dropped references."""
    evidence: list[str] = []
    repaired = dropped = 0
    for text in cited:
        if text in ids:
            evidence.append(text)
            continue
        # a string may hold several references, with stray colons and leading zeros
        parts = [_EVIDENCE.fullmatch(part) for part in re.split(r"[;,\s]+", text.strip())]
        names = [f"D{int(part[1])}:{int(part[2])}" if part else "" for part in parts]
        known = [name for name in names if name in ids]
        evidence += known
        repaired += bool(known)
        dropped += len(names) - len(known)
    return tuple(dict.fromkeys(evidence)), repaired, dropped
