"""Answers in a run's report: what counts as quality, the sections, and corrected shares."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from ctxbench.harness.answers.answer import Answer, Question, RunProbes, answer
from ctxbench.harness.answers.figures import figures
from ctxbench.harness.answers.store import answered
from ctxbench.harness.compare.figures import measured
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.graders.profiles import SHIPPED, Profiles, corrected_by
from ctxbench.harness.models import Models, Settings
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.metrics.value import Missing
from ctxbench.reports.answers import answers_of, run_tables, uncalibrated
from ctxbench.reports.calibration import corrected_of, corrected_table
from ctxbench.reports.html.sections import sections
from ctxbench.reports.verdict import quality
from tests.harness.answers.builders import plan, talks
from tests.reports.html.builders import results

STRATEGIES = ("none", "window(max_tokens=60)", "last_turn")


class Parrot:
    """A model that says what it is told to, whatever it is asked."""

    calls_tools = False

    def __init__(self, says: str, name: str = "openai/parrot") -> None:
        self.name, self.identity, self._says = name, f"{name} {says}", says

    def answers(self, questions: list[Question]) -> list[Answer]:
        return [Answer(self._says, rounds=1, input_tokens=10, output_tokens=1) for _ in questions]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Six conversations under three strategies, answered."""
    folder = tmp_path_factory.mktemp("answered")
    execute(plan(talks(folder, 6), STRATEGIES), folder / "run")
    return load(folder / "run")


def test_without_a_model_the_ceiling_is_the_quality(run: Run) -> None:
    """The frontier is of what can be found; the baseline stands beside it, as a share of the whole history."""
    found = quality(results(run))
    assert (found.metric, found.values["none"]) == ("answer_in_context", 1.0)
    assert set(found.found) == {*STRATEGIES, "evidence_only"}
    assert found.reader is not None
    assert found.reader.of("none").of_whole == 1.0  # type: ignore[union-attr]
    sums = found.sums.groupby("strategy")[["got", "wanted"]].sum()
    for name, value in found.values.items():
        assert value == pytest.approx(sums.got[name] / sums.wanted[name])


def test_a_model_stands_beside_the_reader(tmp_path: Path) -> None:
    """What a model answered goes first, all are in one table, and each is a metric of its own."""
    execute(plan(talks(tmp_path, 3), STRATEGIES), tmp_path / "run")
    found = load(tmp_path / "run")
    answer(found, Parrot("9000"), RulesGrader(), RunProbes(found, Models(Settings())))
    assert [each.answerer for each in answered(found).whole] == ["openai/parrot", "offline"]
    assert "openai/parrot answered right, " in quality(results(found)).about
    section = next(each for each in sections(results(found)) if each.name == "answers")
    titles = [part.title for part in section.parts]
    table = section.parts[titles.index("Correct, by answer model / grader")]
    pairs = [f"{who} / {RulesGrader().name}" for who in ("openai/parrot", "offline")]
    assert table.heads == ("strategy", pairs[0], "95 % interval", pairs[1], "95 % interval")
    assert [note.partition(": ")[0] for note in table.notes[:2]] == pairs
    assert all("agrees with people" in note for note in table.notes[:2])
    names = measured(found).metrics
    assert {"answer_quality", f"answer_quality(openai/parrot, {RulesGrader().name})"} <= names.keys()


class Lenient:
    """A grader that nobody has compared with people."""

    name = "lenient"

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        return [Grade(True, 1.0, "why not") for _ in items]


def test_graders_stand_side_by_side(tmp_path: Path) -> None:
    """Each has a column; one whose agreement with people is not known is said to be not calibrated."""
    execute(plan(talks(tmp_path, 3), STRATEGIES), tmp_path / "run")
    found = load(tmp_path / "run")
    for by in (RulesGrader(), Lenient()):
        answer(found, Parrot("9000"), by, RunProbes(found, Models(Settings())))
    answers = answers_of(found)
    assert answers is not None
    [table] = [table for table in run_tables(answers) if table.title == "Correct, by answer model / grader"]
    assert [head for head in table.heads if "parrot" in head] == [
        f"openai/parrot / {RulesGrader().name}",
        f"openai/parrot / {Lenient.name}",
    ]
    [note] = [note for note in table.notes if "Not calibrated" in note]
    assert note.startswith(
        f"Not calibrated: openai/parrot / {Lenient.name}: how far it agrees with people is not known"
    )


def test_a_grader_is_calibrated_by_language() -> None:
    """`logit` agrees with people in English and not in Chinese, `rules` in both."""
    profiles = Profiles([SHIPPED])
    logit = next(profile.grader for profile in profiles.all if profile.grader.startswith("logit"))
    assert uncalibrated(logit, profiles) == "kappa with people: Chinese 0.343, and it takes 0.6"
    assert not uncalibrated(RulesGrader().name, profiles)


def by_hand(right: int, wrong: int, unknown: int) -> pd.DataFrame:
    """So many answers in each of four conversations, two fewer right in the first."""
    rows = []
    for name in "abcd":
        verdicts = [True] * (right - 2 * (name == "a")) + [False] * (wrong + 2 * (name == "a")) + [None] * unknown
        rows += [
            {"conversation": name, "number": at, "correct": bool(each), "answer": "UNKNOWN" if each is None else "x"}
            for at, each in enumerate(verdicts)
        ]
    usual = {"strategy": "s", "probe": "q", "category": "", "answerable": True, "gold": True, "missing": None}
    rest = {"support": "", "rounds": 1, "input_tokens": 1, "output_tokens": 1, "cost": 0.0, "called": [], "events": []}
    return pd.DataFrame([{**usual, **row, "called": [], "events": []} | rest for row in rows])


def test_corrected_by_hand() -> None:
    """What is not UNKNOWN is corrected by the profile, and counts by its part; UNKNOWN stays wrong."""
    rows = by_hand(right=6, wrong=2, unknown=8)
    grades = pd.DataFrame({"correct": rows.correct, "missing": None, "reason": ""})
    found = figures(rows, grades, "offline", RulesGrader().name, {})
    profiles = Profiles([SHIPPED]).of(RulesGrader().name)
    [one] = corrected_of(found, profiles)
    [strategy] = found.strategies
    assert (strategy.given, strategy.paired) == (32, 64)
    assert strategy.correct == pytest.approx(22 / 64)
    profile = profiles[0].profile
    assert not isinstance(strategy.worth, Missing)
    assert 4 <= strategy.worth <= 64
    given = corrected_by(profile, 22 / 32, strategy.worth / 2)
    assert not isinstance(given.value, Missing)
    assert one.by[profile.set].value == pytest.approx(given.value / 2)
    assert "by evouna-nq" in corrected_table([one]).heads
    assert "not calibrated" in corrected_table(corrected_of(found, [])).notes[0]
