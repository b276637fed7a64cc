"""Answering a run: each probe's context to the answerer, each answer to the grader, shard by shard into the folder.

A shard that is answered already, from the same contexts by the same answerer, is not answered again. So are grades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...metrics.grading import Grade, GradedItem, Grader, Kind
from ...metrics.grading.rules import RulesGrader
from ...metrics.grounding import said
from ...metrics.reading import VERSION, ExtractiveReader
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation, Message, Probe
from ..folder.run import Run
from ..folder.store import read_conversations
from ..models import Models
from .questions import UNKNOWN, Answer, Answerer, ProbeContext, Question, RunProbes
from .store import Answered, answered_by, contexts_of, folder_of, graded_of, read, shards, was_asked, write

Rows = list[dict[str, Any]]
NO_GOLD = "the recording has no answer to compare with"
NO_ANSWER = "there is no answer to be graded"


def answer(
    run: Run,
    answerer: Answerer,
    grader: Grader,
    probes: RunProbes,
    *,
    again: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> Answered:
    """Have all probes of a run answered and the answers graded.

    `again`: whatever is there is made anew. `done` is called with how many conversations are. Raises RunError for a run
    in which no probe was asked.
    """
    for shard in shards(run.folder):
        answer_shard(run, shard, answerer, grader, probes, again=again, done=done)
    found = answered_by(run, answerer.name, grader.name)
    if found is None:
        raise RunError(f"{run.folder}: no probe was asked in this run: its recordings have no questions")
    return found


def answer_shard(
    run: Run,
    shard: str,
    answerer: Answerer,
    grader: Grader,
    probes: RunProbes,
    *,
    again: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """The same for one shard, which has to be there whole."""
    part = _Part(run, shard, answerer, grader, probes)
    part.grade(part.answers(again, done), again)


class _Part:
    """One shard, answered by one answerer and graded by one grader."""

    def __init__(self, run: Run, shard: str, answerer: Answerer, grader: Grader, probes: RunProbes) -> None:
        self._answerer, self._grader, self._probes = answerer, grader, probes
        self._recordings = run.folder / "recordings" / f"{shard}.jsonl.zst"
        by = folder_of(answerer.name)
        self._answers = run.folder / "answers" / by / f"{shard}.parquet"
        self._grades = run.folder / "grades" / by / folder_of(grader.name) / f"{shard}.parquet"
        self._made = {"by": answerer.name, "as": answerer.identity, "of": contexts_of(run.folder, shard)}

    def answers(self, again: bool, done: Callable[[int], None]) -> Rows:
        """What was answered."""
        found = None if again else read(self._answers, "answers", self._made)
        if found is not None:
            done(sum(1 for _ in self._conversations()))
            there: Rows = found.to_pylist()
            return there
        rows: Rows = []
        for each in self._conversations():
            rows += self._answered(each)
            done(1)
        write(self._answers, "answers", rows, self._made)
        return rows

    def grade(self, answers: Rows, again: bool) -> None:
        """Have them graded."""
        made = graded_of(self._grader.name, self._answers)
        if again or read(self._grades, "grades", made) is None:
            write(self._grades, "grades", list(self._graded(answers)), made)

    def _conversations(self) -> Iterator[Conversation]:
        return read_conversations(self._recordings)

    def _answered(self, conversation: Conversation) -> Iterator[dict[str, Any]]:
        for strategy, probed in self._probes.of(conversation):
            asked = [each.question for each in probed if each.question is not None]
            given = iter(self._answerer.answers(asked))
            for each in probed:
                made = next(given) if each.question is not None else Answer(Missing("failed", each.failed))
                yield _row(conversation, strategy, each, made)

    def _graded(self, answers: Rows) -> Iterator[dict[str, Any]]:
        """A row for each answer. All that can be graded is put to the grader at once.

        But for UNKNOWN where there is an answer, which is no matter of judgement, and which small models take for
        right: rules grade it, whoever grades the rest.
        """
        known = {each.id: each for each in self._conversations()}
        said = {name: {message.id: message for message in each.messages} for name, each in known.items()}
        items = [
            item_of(
                known[row["conversation"]].probes[row["number"]],
                said[row["conversation"]],
                row["answer"],
                f"{row['conversation']} {row['strategy']} {row['probe']}",
            )
            for row in answers
            if row["gold"] and row["answer"] is not None
        ]
        given = iter(self._judged(items))
        for row in answers:
            if row["answer"] is None:
                grade: Grade | Missing = Missing("failed", NO_ANSWER)
            else:
                grade = next(given) if row["gold"] else Missing("undefined", NO_GOLD)
            yield {name: row[name] for name in ("conversation", "strategy", "number")} | _grade(grade)

    def _judged(self, items: list[GradedItem]) -> list[Grade | Missing]:
        declined = [each.candidate == UNKNOWN and each.kind != "unanswerable" for each in items]
        shares = {
            by: iter(grader.grade([each for each, no in zip(items, declined, strict=True) if no is by]))
            for by, grader in ((True, RulesGrader()), (False, self._grader))
        }
        return [next(shares[no]) for no in declined]


def _row(conversation: Conversation, strategy: str, probed: ProbeContext, answer: Answer) -> dict[str, Any]:
    probe = conversation.probes[probed.number]
    missing = answer.text if isinstance(answer.text, Missing) else None
    return {
        "conversation": conversation.id,
        "strategy": strategy,
        "number": probed.number,
        "probe": probe.id,
        "category": probe.category,
        "answerable": probe.answerable,
        "gold": has_gold(probe),
        "answer": None if missing is not None else answer.text,
        "missing": missing.detail if missing is not None else None,
        "support": answer.support,
        "rounds": answer.rounds,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cost": answer.cost,
        "called": list(answer.called),
        "events": [msgspec.json.encode(event).decode() for event in answer.events],
    }


def _grade(grade: Grade | Missing) -> dict[str, Any]:
    if isinstance(grade, Missing):
        return {"correct": None, "score": None, "reason": None, "raw": None, "missing": grade.detail}
    return {
        "correct": grade.correct,
        "score": grade.score,
        "reason": grade.reason,
        "raw": grade.raw,
        "missing": None,
    }


KINDS: Mapping[str, Kind] = {
    "temporal": "temporal",
    "temporal-reasoning": "temporal",
    "temporal_reasoning": "temporal",
    "event_ordering": "temporal",
    "preference": "preference",
    "single-session-preference": "preference",
    "preference_following": "preference",
    "updated_fact": "update",
    "knowledge-update": "update",
    "knowledge_update": "update",
}
"""What recordings call the kinds of questions that are graded in their own way."""


def has_gold(probe: Probe) -> bool:
    """Whether an answer to it can be graded."""
    return bool(any(map(str.strip, probe.answers)) or probe.rubric or not probe.answerable)


def item_of(probe: Probe, said_by: Mapping[str, Message], answer: str, name: str) -> GradedItem:
    """The answer to a probe, to be graded. `said_by`: the conversation's messages by their ids."""
    texts = [said(said_by[each]) for each in probe.evidence if each in said_by]
    kind: Kind = KINDS.get(probe.category, "plain") if probe.answerable else "unanswerable"
    return GradedItem(
        name, probe.question, probe.answers, answer, kind, probe.rubric, tuple(filter(None, [*texts, *probe.passages]))
    )


def answer_usually(folder: Path, shard: int, counter: TokenCounter, models: Models) -> None:
    """Answer and grade a shard whose other parts are all there; what is there already is left as it is."""
    run, name = Run(folder, shard=shard), f"{shard:05d}"
    if was_asked(folder, name):
        answer_shard(run, name, Offline(counter), RulesGrader(), RunProbes(run, models))


class Offline:
    """Answers with a span of the context, or UNKNOWN. It reads a conversation's messages once, whoever sends them."""

    name = "offline"
    identity = f"offline {VERSION}"

    def __init__(self, counter: TokenCounter) -> None:
        self._counter, self._conversation, self._reader = counter, "", ExtractiveReader()

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer each."""
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        if question.conversation != self._conversation:
            self._conversation, self._reader = question.conversation, ExtractiveReader()
        found = self._reader.answer(question.context, question.text)
        return Answer(found.text, found.support, 1, question.tokens, self._counter.text(found.text))
