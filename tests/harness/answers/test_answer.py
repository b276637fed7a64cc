"""Answers as a part of every run: whatever the workers, wherever it is stopped, and what a run without them is."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.answers.answer import Offline, RunProbes, answer
from ctxbench.harness.answers.store import answered
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.models import Models, Settings
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.reports.results import summarise
from ctxbench.scenarios.errors import Stopped
from ctxbench.strategies.window import Window
from tests.harness.answers.builders import plan, talks
from tests.harness.command import ctxbench
from tests.harness.runs import bytes_of, fail, recording
from tests.harness.runs import plan as plan_of

PLACES = ("answers", "grades")


def test_a_run_is_answered_and_graded(tmp_path: Path, small_shards: None) -> None:
    """By the embedded reader and by rules: all probes of all strategies and of the bounds, in two shards."""
    execute(plan(talks(tmp_path)), tmp_path / "run")
    [found] = answered(load(tmp_path / "run")).whole
    assert (found.answerer, found.grader.startswith("rules")) == ("offline", True)
    assert len(found.answers) == len(found.grades) == 5 * 4 * 4
    [figures] = summarise(load(tmp_path / "run")).answers.figures  # type: ignore[union-attr]
    correct = {each.strategy: each.correct for each in figures.strategies}
    assert correct["none"] == pytest.approx(1.0)
    assert correct["last_turn"] == 0.0 or correct["last_turn"] < correct["none"]  # type: ignore[operator]


def test_a_run_that_is_stopped_ends_with_the_same_answers(
    tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped while any conversation is answered, it goes on where it was."""
    path = talks(tmp_path)
    execute(plan(path), tmp_path / "whole")
    usual = Offline.answers
    for stop in range(0, 20, 3):
        times = 0

        def stopped(self: Offline, questions: Any, stop: int = stop) -> Any:
            nonlocal times
            times += 1
            if times > stop:
                raise Stopped("stopped")
            return usual(self, questions)

        monkeypatch.setattr(Offline, "answers", stopped)
        with pytest.raises(Stopped):
            execute(plan(path), tmp_path / f"stopped{stop}")
        monkeypatch.setattr(Offline, "answers", usual)
        execute(plan(path), tmp_path / f"stopped{stop}")
        assert bytes_of(tmp_path / f"stopped{stop}") == bytes_of(tmp_path / "whole")


def test_a_run_without_answers_is_the_same_but_for_them(tmp_path: Path) -> None:
    """And the same command with answers adds them, without measuring anything again."""
    path = talks(tmp_path)
    execute(plan(path), tmp_path / "with")
    execute(plan(path, answers=False), tmp_path / "without")
    others = {name: of for name, of in bytes_of(tmp_path / "with").items() if not name.startswith(PLACES)}
    assert bytes_of(tmp_path / "without") == others
    assert summarise(load(tmp_path / "without")).answers is None
    execute(plan(path), tmp_path / "without")
    assert bytes_of(tmp_path / "without") == bytes_of(tmp_path / "with")


def test_no_questions_no_answers(tmp_path: Path) -> None:
    """Recordings without questions, and a run that asks none, have no folder of answers."""
    execute(plan_of(recording(tmp_path, conversations=2, turns=2)), tmp_path / "plain")
    execute(plan(talks(tmp_path), probes=False), tmp_path / "unasked")
    assert not [name for run in ("plain", "unasked") for name in PLACES if (tmp_path / run / name).exists()]


def test_a_cell_that_failed_has_no_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it a wrong one: strategies are compared over the conversations that all finished."""
    fail(monkeypatch, Window, "I noted")
    execute(plan(talks(tmp_path, 3)), tmp_path / "run")
    run = load(tmp_path / "run")
    [found] = answered(run).whole
    assert set(found.answers.strategy.astype(str)) == {"none", "last_turn", "evidence_only"}
    [figures] = summarise(run).answers.figures  # type: ignore[union-attr]
    assert [each.strategy for each in figures.strategies] == ["none", "last_turn", "evidence_only"]


def test_the_command_makes_the_same_answers(tmp_path: Path) -> None:
    """`ctxbench lab answer` finds those of the run, and makes those that are gone with the same bytes."""
    execute(plan(talks(tmp_path)), tmp_path / "run")
    before = bytes_of(tmp_path / "run")
    for name in PLACES:
        shutil.rmtree(tmp_path / "run" / name)
    ctxbench("lab", "answer", "run", cwd=tmp_path)
    assert bytes_of(tmp_path / "run") == before


def test_answers_that_are_not_whole_or_stale_are_left_out_and_said(tmp_path: Path, small_shards: None) -> None:
    """One of two parts is gone, then belongs to other contexts: no figure is made of the half, and a note says why."""
    execute(plan(talks(tmp_path)), tmp_path / "run")
    part = max((tmp_path / "run" / "answers" / "offline").iterdir())
    part.unlink()
    found = answered(load(tmp_path / "run"))
    assert found.whole == ()
    assert "are of 1 of 2 parts" in found.left_out[0]
    shown = ctxbench("report", "run", "--print-only", "--all", cwd=tmp_path).stdout
    assert "Answers that are left out" in shown
    execute(plan(talks(tmp_path)), tmp_path / "run")
    assert len(answered(load(tmp_path / "run")).whole) == 1
    other = tmp_path / "run" / "probes" / "00001.parquet"
    execute(plan(talks(tmp_path), ("none",)), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "probes" / "00001.parquet", other)
    shutil.copy(tmp_path / "run" / "probes" / "00000.parquet", other)
    assert answered(Run(tmp_path / "run")).whole == ()


class Kind:
    """A grader that takes everything for right."""

    name = "kind(1)"

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        return [Grade(True, 1.0) for _ in items]


def test_no_grader_takes_unknown_for_an_answer(tmp_path: Path) -> None:
    """Where there is an answer it is wrong, by rules; where there is none, the grader is asked as of any other."""
    execute(plan(talks(tmp_path, 2)), tmp_path / "run")
    run = load(tmp_path / "run")
    rows = answer(run, Offline(TokenCounter("o200k_base")), Kind(), RunProbes(run, Models(Settings()))).rows
    unknown = rows.answer == "UNKNOWN"
    assert not rows.correct[unknown & rows.answerable].any()
    assert rows.correct[~(unknown & rows.answerable)].all()
    assert unknown[rows.answerable].any()
    assert unknown[~rows.answerable].any()
