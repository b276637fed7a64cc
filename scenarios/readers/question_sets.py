"""Question sets over long chats: benchmarks of memory, whose questions are probes."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Place, RecordingError
from ..model import Call, Conversation, Fact, Media, Message, Probe, Role, Scalar
from ..packed import is_file
from ..source import Problems, convert, decode, elements, file_head, lines, records, unique_name, whole_file
from . import LIST, OBJECT, Fields, Reader, Recordings, anywhere
from .messages import forward, in_order, role_of, seconds


class KdConv(Reader):
    """KdConv: Chinese conversations between two people about films, music and travel. `[{name, messages: [{message}]}]`

    Source: github.com/thu-coai/KdConv, `data/{film,music,travel}/*.json` (Zhou et al. 2020, arXiv 2004.04100),
    Apache-2.0. The two take turns: the first speaker becomes the user, the other the assistant. The knowledge triples
    of a turn (`attrs`) are annotations and are not read; there are no times.
    """

    about = "KdConv's Chinese dialogues"
    shapes = (frozenset({"[].messages[].message", "[].name"}),)

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            domain = path.resolve().parent.name
            for at, (place, raw) in enumerate(records(path, problems)):
                with problems.collect():
                    dialogue = Fields(decode(raw, OBJECT, place), place)
                    dialogue.needed("messages", LIST)
                    said = (turn.needed("message", str, blank=True) for turn in dialogue.each("messages"))
                    roles: tuple[Role, Role] = ("user", "assistant")
                    messages = tuple(Message(f"m{n}", roles[n % 2], text) for n, text in enumerate(said))
                    meta: dict[str, Scalar] = {"topic": dialogue.typed("name", str) or "", "domain": domain}
                    name = f"{domain}/{path.stem}/{at}"
                    yield place, Conversation(name, messages, licence="Apache-2.0", language="zh", meta=meta)


_NOON = 12 * 3600  # the hour is not recorded; noon is the same day in most time zones


class _Exchange(msgspec.Struct):
    query: str
    response: str


class MemoryBank(Reader):
    """MemoryBank: ten days of chat a person, from ChatGPT playing both sides, and questions about them without gold.

        memory_bank_<language>.json         {user: {name, history: {"2023-04-27": [{query, response}]}}}
        probing_questions_<language>.jsonl  {user: [question, …]} on each line, beside it

    Source: github.com/zhongwanjun/MemoryBank-SiliconFriend, `eval_data/{cn,en}` (Zhong et al. 2023, arXiv 2305.10250),
    MIT. A user is a conversation. The hour is not recorded: all messages of a day have its noon, UTC. The questions
    have no answers (category `no_gold`) and are asked at the end. Personality and hobbies, from which ChatGPT played
    the user, are stored in meta; summaries are not read (they are empty). The questions' file has no shape of its own:
    it is found by its name beside the other one.
    """

    about = "MemoryBank's users (memory_bank_*.json and the questions beside it)"
    shapes = (frozenset({".*.history", ".*.history.*[].query", ".*.history.*[].response"}),)
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            if path.name.startswith("probing_questions"):
                continue
            place = Place(str(path))
            with problems.collect():
                bank = decode(whole_file(path, problems), OBJECT, place)
                questions = _questions(path, {name.strip() for name in bank}, problems)
                for name, record in bank.items():
                    with problems.collect():
                        user = Fields(convert(record, OBJECT, place.at(name)), place.at(name))
                        yield user.place, _bank_conversation(name.strip(), user, questions, path)


def _questions(path: Path, users: set[str], problems: Problems) -> dict[str, list[str]]:
    """Return the questions by user. Four users have blanks around their names in only one of the two files."""
    beside = path.with_name(path.name.replace("memory_bank", "probing_questions")).with_suffix(".jsonl")
    by_user: dict[str, list[str]] = {}
    if beside == path or not is_file(beside):
        return by_user
    # No format fits its content, so `read.find` has listed it there, with a reason if it is damaged.
    problems.ignored[:] = [file for file in problems.ignored if file.partition(": ")[0] != str(beside)]
    with problems.collect():  # the file is empty
        for place, line in lines(beside, problems):
            with problems.collect():
                for name, questions in decode(line, dict[str, list[str] | None], place).items():
                    if name.strip() not in users:
                        raise RecordingError(place.at(name), "questions about nobody", f"name a user of {path.name}")
                    by_user.setdefault(name.strip(), []).extend(questions or ())
    return by_user


def _bank_conversation(name: str, user: Fields, questions: Mapping[str, list[str]], path: Path) -> Conversation:
    messages, history = [], user.needed("history", dict[str, list[_Exchange]])
    for day, exchanges in sorted(history.items()):
        time = seconds(day, "%Y-%m-%d", user.below(f"history.{day}"), "2023-04-27") + _NOON
        for n, exchange in enumerate(exchanges):
            messages.append(Message(id=f"{day}:{2 * n}", role="user", text=exchange.query, name=name, time=time))
            messages.append(Message(id=f"{day}:{2 * n + 1}", role="assistant", text=exchange.response, time=time))
    about = (user.typed("meta_information", OBJECT) or {}).items()
    return Conversation(
        f"{path.stem}/{name}",
        tuple(messages),
        probes=tuple(Probe(f"q{n}", text, category="no_gold") for n, text in enumerate(questions.get(name, ()))),
        licence="MIT",
        language={"cn": "zh", "en": "en"}.get(path.stem.rpartition("_")[2], ""),
        meta={**{key: value for key, value in about if isinstance(value, str)}, "days": len(history)},
    )


class Mtrag(Reader):
    """MT-RAG: questions to a document-grounded assistant, each with the turns before it and a reference answer.

        {documents: [{document_id, text}], tasks: [{task_id, input: [{speaker, text}], contexts, targets}]}
        {task_id, input: [{speaker, text, metadata}], contexts: [{document_id, text}], targets: [{text}]}, on each line

    Source: github.com/IBM/mt-rag-benchmark (Katsis et al. 2025, arXiv 2501.03468), Apache-2.0: the first is
    `mtrag-human/evaluations/reference_subset_with_human_evaluations.json`, the second `mtragun-human/generation_tasks/
    reference.jsonl`. A task is a conversation: its input, then the reference answer as the last message. Its one probe
    is the last question, asked right after it: the references are the accepted answers, the documents the passages.

    `UNANSWERABLE` tasks have no accepted answer; partial, underspecified and conversational ones have (meta says
    which). The category is the kinds of question. Tasks of one original conversation repeat its start, and share
    `conversation` in meta. A time that runs behind an earlier one is dropped and counted. Not read: the models' answers
    and their human ratings (`scenarios/labelled.py` reads these), and the documents' titles.
    """

    about = "MT-RAG tasks (the human evaluations' subset, or JSON Lines of tasks)"
    shapes = (
        frozenset({".task_id", ".input[].speaker", ".targets[].text"}),
        frozenset({".models[].model_id", ".metrics[].aggregator", ".documents[].document_id"}),
        frozenset({".documents[].document_id", ".tasks[].task_id", ".tasks[].input[].speaker"}),
    )

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        if record.at("tasks") is None:
            yield record.place, _mtrag_conversation(record, {})
            return
        record.needed("documents", LIST)
        documents = record.each("documents")
        texts = {each.needed("document_id", str, blank=True): each.typed("text", str) or "" for each in documents}
        for task in record.each("tasks"):
            with problems.collect():
                yield task.place, _mtrag_conversation(task, texts)


def _mtrag_conversation(task: Fields, documents: Mapping[str, str]) -> Conversation:
    place, name = task.place, task.needed("task_id", str)
    task.needed("targets", LIST)
    task.needed("input", LIST)
    targets = list(task.each("targets"))
    if not targets:
        raise RecordingError(place.below("targets"), "there is no reference answer", "give one, or drop the task")
    turns = [*((turn, turn.needed("speaker", str)) for turn in task.each("input")), (targets[0], "agent")]
    times, dropped = forward(turn.typed("metadata.created_at", float) for turn, _ in turns)
    messages = []
    for at, ((turn, speaker), time) in enumerate(zip(turns, times, strict=True)):
        if speaker not in ("user", "agent"):
            raise RecordingError(turn.below("speaker"), f"unknown speaker {speaker!r}", "use user or agent")
        is_model = (speaker, turn.typed("metadata.author_type", str)) == ("agent", "model")
        call = Call(turn.typed("metadata.author_id", str) or "") if is_model else None
        role: Role = "assistant" if speaker == "agent" else "user"
        messages.append(Message(f"m{at}", role, turn.needed("text", str, blank=True), time=time, call=call))
    questions = [message for message in messages if message.role == "user"]
    if not questions:
        raise RecordingError(place.below("input"), "nobody asks anything", "let the last turn be the user's")
    passages = []
    for context in task.each("contexts"):
        document, own = context.needed("document_id", str, blank=True), context.typed("text", str)
        if own is None and document not in documents:
            raise RecordingError(context.below("document_id"), f"{document!r} names no document", "add it to documents")
        passages.append(documents[document] if own is None else own)
    keys = ("answerability|Answerability", "Question Type", "Multi-Turn")
    labels, kinds, several = (", ".join(task.typed(key, list[str]) or ()) for key in keys)
    answerable, collection = "UNANSWERABLE" not in labels.split(", "), task.text("Collection")
    probe = Probe(
        id="q",
        question=questions[-1].text,
        answers=tuple(target.needed("text", str, blank=True) for target in targets) if answerable else (),
        category=kinds,
        after=questions[-1].id,
        answerable=answerable,
        passages=tuple(passages),
    )
    meta: dict[str, Scalar] = {
        "conversation": name.partition("<::>")[0],
        "collection": collection,
        "domain": collection.removeprefix("mt-rag-").partition("-")[0],
        "answerability": labels,
        "multi_turn": several,
        "times_dropped": dropped,
    }
    return Conversation(name, tuple(messages), probes=(probe,), licence="Apache-2.0", language="en", meta=meta)


class _HaystackTurn(msgspec.Struct):
    role: str
    content: str
    has_answer: bool | None = None


class LongMemEval(Reader):
    """LongMemEval: a question a record, each with its own haystack of dated chat sessions.

        [{question_id, question_type, question, answer, question_date, haystack_dates[], haystack_session_ids[],
          haystack_sessions: [[{role, content, has_answer?}]], answer_session_ids[]}]

    Also read: several questions to one haystack, `questions: [{question_id, question, answer, …}]` in place of the
    fields of the one. Source: github.com/xiaowu0162/LongMemEval (Wu et al. 2024, arXiv 2410.10813),
    `longmemeval_{oracle,s,m}.json`. A record is a conversation whose questions are probes, asked at the end. All
    messages of a session have the session's time, taken as UTC. Sessions stay in the recorded order; if their dates run
    backwards, all sessions are sorted by date instead, and meta says so. Message ids are `<session>:<n>`; a session id
    that stands twice becomes `<session>~2`. Evidence is the messages with `has_answer`; of several questions, those in
    the sessions that a question names. A question whose id ends in `_abs` cannot be answered: the recorded refusal is
    its rubric.
    """

    about = "LongMemEval (questions over a haystack of sessions)"
    shapes = anywhere(
        (".question_id", ".haystack_dates", ".haystack_sessions"),
        (".questions", ".questions[].question", ".haystack_dates", ".haystack_sessions"),
    )

    def conversations(self, record: Fields, problems: Problems) -> Recordings:
        recorded = record.needed("haystack_sessions", list[list[_HaystackTurn]])
        dates, ids = (record.needed(name, list[str]) for name in ("haystack_dates", "haystack_session_ids"))
        for name, listed in (("haystack_dates", dates), ("haystack_session_ids", ids)):
            if len(listed) != len(recorded):
                what = f"{len(listed)} of them for {len(recorded)} sessions"
                raise RecordingError(record.below(name), what, "give one for each session")
        order = [(_time(text, record.below(f"haystack_dates[{at}]")), at) for at, text in enumerate(dates)]
        # the recorded order is part of the data set, so it changes only where it contradicts the dates
        backwards = any(after < before for (before, _), (after, _) in pairwise(order))
        messages, evidence, seen = list[Message](), list[tuple[str, str]](), dict[str, int]()
        for time, at in sorted(order) if backwards else order:
            session = unique_name(ids[at], seen)
            for n, turn in enumerate(recorded[at]):
                role = role_of(turn.role, record.below(f"haystack_sessions[{at}][{n}]"))
                messages.append(Message(id=f"{session}:{n}", role=role, text=turn.content, time=time))
                if turn.has_answer:
                    evidence.append((ids[at], messages[-1].id))
        several = record.at("questions") is not None
        questions = list(record.each("questions")) if several else [record]
        if not questions:
            problems.add(RecordingError(record.below("questions"), "no question is in it", "leave it out"))
        probes, answered = list[Probe](), dict[str, None]()
        for question in questions:
            with problems.collect():
                name, date = question.needed("question_id", str, blank=True), question.typed("question_date", str)
                answer = (str(question.needed("answer", str | int | float, blank=True)),)  # type: ignore[arg-type]
                sessions = question.typed("answer_session_ids", list[str]) or []
                answerable = not name.endswith("_abs")
                probes.append(
                    Probe(
                        id=name,
                        question=question.needed("question", str, blank=True),
                        answers=answer if answerable else (),
                        rubric=() if answerable else answer,
                        evidence=tuple(name for session, name in evidence if not several or session in sessions),
                        category=question.typed("question_type", str) or "",
                        answerable=answerable,
                        time=_time(date, question.below("question_date")) if date else None,
                    )
                )
                answered |= dict.fromkeys(sessions)
        if probes:
            meta: dict[str, Scalar] = {"sessions": len(dates)}
            meta |= {"answer_sessions": " ".join(answered), "sessions_reordered": backwards}
            said = tuple(messages)
            yield record.place, Conversation(probes[0].id, said, probes=tuple(probes), language="en", meta=meta)


def _time(text: str, place: Place) -> float:
    """Return the seconds of a time such as `2023/05/20 (Sat) 02:21`; the weekday is redundant."""
    return seconds(re.sub(r"\s{0,99}\(\w+\)", "", text), "%Y/%m/%d %H:%M", place, "2023/05/20 (Sat) 02:21")


_WEEKDAY = re.compile(r"\s{0,99}(?:周|星期)\S\s*")
_FAILED = ("[ERRORQ]", "[ERRORA]")


class MemDaily(Reader):
    """MemDaily: what a user tells an assistant over days, in Chinese, and multiple-choice questions on it.

        memdaily.json       {type: {scenario: [{tid, message_list: [{mid, message, time, place}], QA}]}}
        memdaily_<n>.json   the same with messages as texts, n times as much noise among them
        <type>_<scenario>   [{tid, message_list, question_list: [QA]}]
        QA                  {qid, question, answer, target_step_id, choices: {"A": text}, ground_truth, time}

    Source: github.com/nuster1128/MemSim (arXiv:2409.20163), by its code; tested on written examples alone.

    - A user speaks, and nobody answers. Time and place of a message stand behind its text, as the benchmark's own
      agents see it. The times (`2024年04月01日 周一 08:30`) are taken as UTC.
    - Accepted is the answer, and the text of the right choice. The choices are not part of the question.
    - Questions that the generator could not make (`[ERRORQ]`, `[ERRORA]`) are left out, as the benchmark does.
    """

    about = "MemDaily trajectories with questions (Chinese)"
    shapes = (
        frozenset({"[].tid", "[].message_list", "[].question_list"}),
        frozenset({".*.*[].tid", ".*.*[].message_list", ".*.*[].QA"}),
    )

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        for path in files:
            for place, raw, name, kind in _records(path, problems):
                with problems.collect():
                    yield place, _daily_conversation(Fields(decode(raw, OBJECT, place), place), name, kind)


def _records(path: Path, problems: Problems) -> Iterator[tuple[Place, bytes, str, str]]:
    """Yield every trajectory with its place, the name of its set, and the kind of its questions."""
    start = file_head(path, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        for place, raw in elements(path, problems):
            yield place, raw, path.stem, re.sub(r"^\d+_|_[a-z]+$", "", path.stem)
        return
    place = Place(str(path), 1)
    kinds = decode(whole_file(path, problems), dict[str, dict[str, list[msgspec.Raw] | None]], place)
    for kind, sets in kinds.items():
        for scenario, trajectories in sets.items():
            for at, raw in enumerate(trajectories or ()):
                where = place.at(f"{kind}.{scenario}[{at}]")
                yield where, bytes(raw), f"{path.stem}/{kind}/{scenario}", kind


def _daily_conversation(trajectory: Fields, name: str, kind: str) -> Conversation:
    trajectory.needed("message_list", LIST)
    messages = []
    for at, said in enumerate(trajectory.each("message_list")):
        if isinstance(said.record, str):
            messages.append(Message(f"m{at}", "user", said.record))
            continue
        text, where, when = said.needed("message", str, blank=True), said.text("place"), said.text("time")
        told = [f"消息地点 {where}"] * bool(where) + [f"消息时间 {when}"] * bool(when)
        text += f" ({', '.join(told)})" if told else ""
        messages.append(Message(f"m{at}", "user", text, time=_seconds(when, said.below("time")) if when else None))
    alone = [Fields(trajectory.at("QA"), trajectory.below("QA"))] if trajectory.at("QA") is not None else []
    questions = list(trajectory.each("question_list")) or alone
    probes = []
    for at, question in enumerate(questions):
        text = question.needed("question", str, blank=True)
        answer = question.needed("answer", str | list[str], blank=True)  # type: ignore[arg-type]
        if text in _FAILED or answer in _FAILED:
            continue
        chosen, when = question.text(f"choices.{question.text('ground_truth')}"), question.text("time")
        answers = dict.fromkeys([*([answer] if isinstance(answer, str) else answer), *filter(None, [chosen])])
        steps = tuple(f"m{step}" for step in question.typed("target_step_id", list[int]) or ())
        time = _seconds(when, question.below("time")) if when else None
        probes.append(Probe(f"q{at}", text, tuple(answers), steps, kind, time=time))
    tid = trajectory.needed("tid", int)
    return Conversation(f"{name}/{tid}", in_order(messages), probes=tuple(probes), language="zh")


def _seconds(text: str, place: Place) -> float:
    """Return the seconds of a time without its weekday, which `strptime` reads in the machine's language alone."""
    return seconds(_WEEKDAY.sub(" ", text), "%Y年%m月%d日 %H:%M", place, "2024年04月01日 周一 08:30")


CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "unanswerable"}

_SESSION = re.compile(r"session_(\d{1,9})")
_EVIDENCE = re.compile(r"D:?(\d{1,9}):(\d{1,9})")
_Observations = dict[str, dict[str, list[tuple[str, str | list[str]]]] | None]


class _LocomoTurn(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    img_url: list[str] | None = None
    blip_caption: str | None = None


class _LocomoQuestion(msgspec.Struct):
    question: str
    category: int
    answer: str | int | float | None = None
    evidence: list[str] | None = None


class _Correction(msgspec.Struct):
    question_id: str
    question: str
    correct_answer: str
    correct_evidence: list[str]


@dataclass(frozen=True)
class Locomo(Reader):
    """LoCoMo: ten long two-person conversations in dated sessions, with 1 986 questions. CC BY-NC 4.0.

        [{sample_id, conversation: {speaker_a, speaker_b, session_1_date_time, session_1: [{speaker, dia_id, text,
          blip_caption?}], …}, qa: [{question, answer | adversarial_answer, evidence: ["D1:3"], category}],
          observation?: {session_1_observation: {SPEAKER: [[text, "D1:3"]]}}}]

    Source: github.com/snap-research/locomo, `data/locomo10.json` (Maharana et al. 2024, arXiv 2402.17753). Speaker A is
    read as the user, B as the assistant; all messages of a session have the session's time, taken as UTC. Questions are
    asked at the end. Not read: the wrong answer of category 5 (`adversarial_answer`), event summaries, the pictures
    themselves. Observations become the conversation's facts.

    A few evidence strings are damaged. A string with only one reading is repaired ("D8:6; D9:17", "D:11:26", "D30:05"),
    a reference to no message is dropped; meta counts both. `corrections` is the path of an audit's `errors.json`
    (`[{question_id: "locomo_<conversation>_qa<question>", correct_answer, correct_evidence}]`, both counted from 0):
    its answers and evidence replace the published ones.
    """

    about = "LoCoMo's conversations with questions (locomo10.json)"
    shapes = (
        frozenset({"[].conversation.speaker_a", "[].conversation.session_1[].dia_id"}),
        frozenset({"[].qa[].question", "[].qa[].evidence", "[].qa[].category"}),
    )

    corrections: str = ""

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        corrections, place = list[_Correction](), Place(self.corrections)
        if self.corrections and not is_file(Path(self.corrections)):
            remedy = "give the path of the audit's errors.json"
            raise RecordingError(place, "there is no such file of corrections", remedy)
        if self.corrections:
            corrections = decode(whole_file(Path(self.corrections), problems), list[_Correction], place)
        by_question = {correction.question_id: correction for correction in corrections}
        for path in files:
            for at, (place, raw) in enumerate(records(path, problems)):
                with problems.collect():
                    sample = Fields(decode(raw, OBJECT, place), place)
                    yield place, _locomo_conversation(sample, f"locomo_{at}_qa", by_question, self.corrections)


def _locomo_conversation(
    sample: Fields, prefix: str, corrections: Mapping[str, _Correction], file: str
) -> Conversation:
    """Return a sample with its questions, whose ids in the audit begin with the prefix. Raises RecordingError."""
    messages, meta = _messages(sample)
    ids = {message.id: at for at, message in enumerate(messages)}
    facts, facts_dropped = list[Fact](), 0
    observed = (sample.typed("observation", _Observations) or {}).values()
    for text, told in (one for speakers in observed for pairs in (speakers or {}).values() for one in pairs):
        names, _, _ = _evidence([told] if isinstance(told, str) else told, ids)
        facts += [Fact(text, max(names, key=ids.__getitem__))] if names else []
        facts_dropped += not names
    questions = {f"{prefix}{at}": one for at, one in enumerate(sample.typed("qa", list[_LocomoQuestion]) or [])}
    corrected = {name: correction for name, correction in corrections.items() if name.startswith(prefix)}
    for name, correction in corrected.items():
        if name not in questions or questions[name].question != correction.question:
            what = f"{name} corrects a question that its conversation does not have there"
            raise RecordingError(Place(file), what, "use the corrections with the file that was audited")
    probes, repaired, dropped = [], 0, 0
    for at, (name, question) in enumerate(questions.items()):
        if question.category not in CATEGORIES:
            what = f"unknown category {question.category}"
            raise RecordingError(sample.below(f"qa[{at}].category"), what, "use 1 to 5")
        cited, answer, answerable = question.evidence or [], question.answer, question.category != 5
        if name in corrected:
            cited, answer = corrected[name].correct_evidence, corrected[name].correct_answer
        evidence, mends, drops = _evidence(cited, ids)
        repaired, dropped = repaired + mends, dropped + drops
        answers = (str(answer),) if answerable and answer is not None else ()
        category = CATEGORIES[question.category]
        probes.append(Probe(f"qa{at}", question.question, answers, evidence, category, answerable=answerable))
    meta |= {"evidence_repaired": repaired, "evidence_dropped": dropped, "facts_dropped": facts_dropped}
    return Conversation(
        id=sample.needed("sample_id", str, blank=True),
        messages=messages,
        probes=tuple(probes),
        facts=tuple(sorted(facts, key=lambda fact: ids[fact.source])),
        licence="CC BY-NC 4.0",
        language="en",
        meta=meta | {"corrections_applied": len(corrected)},
    )


def _messages(sample: Fields) -> tuple[tuple[Message, ...], dict[str, Scalar]]:
    spoken = sample.needed("conversation", OBJECT)
    user, assistant = (sample.needed(f"conversation.speaker_{side}", str, blank=True) for side in "ab")
    told = (key for key, session in spoken.items() if session is not None)
    sessions = sorted((int(match[1]), key) for key in told if (match := _SESSION.fullmatch(key)))
    form, example = "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023"
    paths = (f"conversation.{key}_date_time" for _, key in sessions)
    dates = ((path, sample.typed(path, str)) for path in paths)
    times, dropped = forward(
        None if at is None else seconds(at, form, sample.below(path), example) for path, at in dates
    )
    messages = []
    for (_, key), time in zip(sessions, times, strict=True):
        where = sample.below(f"conversation.{key}")
        for at, turn in enumerate(convert(spoken[key], list[_LocomoTurn], where)):
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
    meta: dict[str, Scalar] = {"speaker_a": user, "speaker_b": assistant, "sessions": len(sessions)}
    return tuple(messages), meta | {"session_times_dropped": dropped}


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


_QUESTIONS = "probing_questions"
_GOLDS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


class _BeamTurn(msgspec.Struct):
    role: str
    id: int | str
    content: str
    time_anchor: str | None = None


class _Batch(msgspec.Struct):
    turns: list[list[_BeamTurn]]
    time_anchor: str | None = None


class Beam(Reader):
    """BEAM: conversations of 100 000 tokens and more with an assistant, and questions on ten memory abilities.

        chat.json               [{batch_number, time_anchor?, turns: [[{role, id, content, time_anchor?}]]}]
        probing_questions.json  {ability: [{question, answer | ideal_response | …, rubric[], source_chat_ids}]}

    Source: github.com/mohammadtavakoli78/BEAM, `chats/<size>/<n>/` (Tavakoli et al. 2025, arXiv 2510.27246). The
    questions stand beside the chat or in the folder `probing_questions` below it, and may be missing. A folder is a
    conversation, its id `<size>/<n>`; where a folder has `chat.json`, other chats in it (`chat_trunecated.json`, a
    shorter copy) are ignored, and so is `user_messages.json`, the user's half, which would else pass for an OpenAI
    chat.

    Evidence is `source_chat_ids`: message ids in a list, or in lists under names. An id that names no message, or more
    than one, is dropped and counted in meta; messages with the same id become `5`, `5~2`. `abstention` questions cannot
    be answered. An ability without answers (following an instruction) is judged by the rubric. A time anchor is a day:
    the messages after it have its noon, UTC. The marks that the generator left at the end of user messages (`->-> 1,2`)
    are not removed. The 10M files, plans of batches, are not read.
    """

    about = "BEAM's chats with probing questions"
    shapes = (
        frozenset({"[].batch_number", "[].turns", "[].turns[][].role"}),
        frozenset({".*[].question", ".*[].rubric"}),
        frozenset({"[].batch", "[].time_anchor", "[].messages", "[].messages[].role"}),  # user_messages.json
    )
    folder = True

    def read(self, files: Sequence[Path], problems: Problems) -> Recordings:
        others = [path for path in files if not path.stem.startswith(_QUESTIONS)]
        chats = [path for path in others if path.name == "chat.json"]
        chats = chats or [path for path in others if path.name != "user_messages.json"]
        problems.ignored += [str(path) for path in others if path not in chats]
        for path in chats:
            place = Place(str(path))
            with problems.collect():
                batches = decode(whole_file(path, problems), list[_Batch], place)
                messages, seen, times_dropped = _beam_messages(batches, place)
                probes, dropped = _probes(path, seen, problems)
                parent = path.resolve().parent
                name = f"{parent.parent.name}/{parent.name}"
                meta = {"batches": len(batches), "evidence_dropped": dropped, "times_dropped": times_dropped}
                yield place, Conversation(name, messages, probes=probes, language="en", meta={**meta})


def _beam_messages(batches: Sequence[_Batch], place: Place) -> tuple[tuple[Message, ...], dict[str, int], int]:
    """Return the messages, how often each id stands, and the number of times dropped because they run backwards."""
    messages, seen = list[Message](), dict[str, int]()
    for b, batch in enumerate(batches):
        time = _day(batch.time_anchor, place.at(f"[{b}].time_anchor"))
        for t, turn in enumerate(batch.turns):
            for m, said in enumerate(turn):
                where = place.at(f"[{b}].turns[{t}][{m}]")
                if said.time_anchor:
                    time = _day(said.time_anchor, where.below("time_anchor"))
                name = unique_name(str(said.id), seen)
                messages.append(Message(name, role_of(said.role, where), said.content, time=time))
    times, dropped = forward(message.time for message in messages)
    timed = (msgspec.structs.replace(said, time=time) for said, time in zip(messages, times, strict=True))
    return tuple(timed), seen, dropped


def _day(anchor: str | None, place: Place) -> float | None:
    return seconds(anchor, "%B-%d-%Y", place, "March-15-2024") + _NOON if anchor else None


def _probes(chat: Path, seen: Mapping[str, int], problems: Problems) -> tuple[tuple[Probe, ...], int]:
    """Return the probes of the file beside a chat, and the number of evidence ids dropped: none, or several messages'.

    A damaged question is a problem.
    """
    probes, dropped = list[Probe](), 0
    beside = (chat.with_name(f"{_QUESTIONS}.json"), chat.parent / _QUESTIONS / f"{_QUESTIONS}.json")
    path = next(filter(is_file, beside), None)
    if path is None:
        return (), 0
    with problems.collect():
        place = Place(str(path))
        by_ability = decode(whole_file(path, problems), dict[str, list[Any]], place)
        asked = ((key, n, one) for key, several in by_ability.items() for n, one in enumerate(several))
        for ability, n, record in asked:
            where = place.at(f"{ability}[{n}]")
            with problems.collect():
                question = Fields(convert(record, OBJECT, where), where)
                cited = list(dict.fromkeys(_ids(question.at("source_chat_ids"), where.below("source_chat_ids"))))
                evidence = tuple(name for name in cited if seen.get(name) == 1)
                told = (question.typed(name, str | int | float) for name in _GOLDS)  # type: ignore[arg-type]
                answers = tuple(str(answer) for answer in told if answer is not None)
                probes.append(
                    Probe(
                        f"{ability}:{n}",
                        question.needed("question", str),
                        answers if ability != "abstention" else (),
                        evidence,
                        ability,
                        answerable=ability != "abstention",
                        rubric=tuple(question.typed("rubric", list[str]) or ()),
                    )
                )
                dropped += len(cited) - len(evidence)
    return tuple(probes), dropped


def _ids(cited: object, place: Place) -> Iterator[str]:
    """Yield the message ids of a list, or of lists nested in lists and objects."""
    if isinstance(cited, dict | list):
        for inner in cited.values() if isinstance(cited, dict) else cited:
            yield from _ids(inner, place)
    elif isinstance(cited, int | str) and not isinstance(cited, bool):
        yield str(cited)
    elif cited is not None:
        raise RecordingError(place, f"{cited!r} is no message id", "give a list of message ids, or lists under names")
