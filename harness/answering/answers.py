"""Answering a run: each probe's context to the answerer, each answer to the grader, shard by shard into the folder.

A shard that is answered already, from the same contexts by the same answerer, is not answered again. So are grades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pandas as pd

from ...metrics.grading import Grade, Grader
from ...metrics.value import Missing
from ...scenarios.errors import RunError
from ...scenarios.model import Conversation
from ..load import Run
from ..store import read_conversations
from .answerer import Answer, Answerer
from .graded import has_gold, item_of
from .parts import digest_of, folder_of, read, write
from .questions import Probed, Probes

Rows = list[dict[str, Any]]
NO_GOLD = "the recording has no answer to compare with"
NO_ANSWER = "there is no answer to be graded"


def answer(
    run: Run,
    answerer: Answerer,
    grader: Grader,
    probes: Probes,
    *,
    again: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `answers` and `grades` of a run, their rows in the same order.

    `again`: whatever is there is made anew. `done` is called with how many conversations are. Raises RunError for a run
    in which no probe was asked.
    """
    answers: Rows = []
    grades: Rows = []
    for shard in shards(run):
        part = _Part(run, shard, answerer, grader, probes)
        found = part.answers(again, done)
        answers += found
        grades += part.grades(found, again)
    if not answers:
        raise RunError(f"{run.folder}: no probe was asked in this run: its recordings have no questions")
    return pd.DataFrame(answers), pd.DataFrame(grades)


def shards(run: Run) -> list[str]:
    """The names of the shards of a run."""
    return [path.name.partition(".")[0] for path in sorted((run.folder / "recordings").glob("*.jsonl.zst"))]


class _Part:
    """One shard, answered by one answerer and graded by one grader."""

    def __init__(self, run: Run, shard: str, answerer: Answerer, grader: Grader, probes: Probes) -> None:
        self._answerer, self._grader, self._probes = answerer, grader, probes
        self._recordings = run.folder / "recordings" / f"{shard}.jsonl.zst"
        by = folder_of(answerer.name)
        self._answers = run.folder / "answers" / by / f"{shard}.parquet"
        self._grades = run.folder / "grades" / by / folder_of(grader.name) / f"{shard}.parquet"
        asked = sorted((run.folder / "probes").glob(f"{shard}*.parquet"))
        self._asked = digest_of(*(path.read_bytes() for path in asked), answerer.identity)

    def answers(self, again: bool, done: Callable[[int], None]) -> Rows:
        """What was answered."""
        rows = None if again else read(self._answers, "answers", self._asked)
        if rows is None:
            rows = []
            for each in self._conversations():
                rows += self._answered(each)
                done(1)
            write(self._answers, "answers", rows, self._asked)
        else:
            done(sum(1 for _ in self._conversations()))
        return rows

    def grades(self, answers: Rows, again: bool) -> Rows:
        """How that was graded."""
        of = digest_of(self._answers.read_bytes(), self._grader.name)
        rows = None if again else read(self._grades, "grades", of)
        if rows is None:
            rows = list(self._graded(answers))
            write(self._grades, "grades", rows, of)
        return rows

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
        """A row for each answer. All that can be graded is put to the grader at once."""
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
        given = iter(self._grader.grade(items))
        for row in answers:
            if row["answer"] is None:
                grade: Grade | Missing = Missing("failed", NO_ANSWER)
            else:
                grade = next(given) if row["gold"] else Missing("undefined", NO_GOLD)
            yield {name: row[name] for name in ("conversation", "strategy", "number")} | _grade(grade)


def _row(conversation: Conversation, strategy: str, probed: Probed, answer: Answer) -> dict[str, Any]:
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
