"""What `ctxbench lab calibrate` prints, from graders that are known to the last answer."""

import msgspec
import pytest

from ctxbench.harness.graders.calibration import Calibrated, calibrated, sets_of
from ctxbench.metrics.grading.agreement import Estimate
from ctxbench.metrics.value import Missing
from ctxbench.reports.calibration import interval, tables
from ctxbench.reports.render import Table
from ctxbench.scenarios.labelled import Labelled
from tests.harness.graders.stub_graders import Stub, labelled, unsure


def found(*graders: Stub, answers: list[Labelled] | None = None) -> Calibrated:
    [labels] = sets_of(answers or labelled())
    return calibrated(labels, graders, lambda _: None, resamples=200)


def shown(*calibrations: Calibrated) -> dict[str, Table]:
    made = list(tables(calibrations))
    assert len({each.title for each in made}) == len(made)
    for each in made:
        assert all(len(row) == len(each.heads) for row in each.rows)
    return {each.title.partition(": ")[2]: each for each in made}


def rows(table: Table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}


def test_the_main_table() -> None:
    """A row for each grader, and for the raters; the title says who labelled."""
    answers = [msgspec.structs.replace(each, votes=(2, 2 + each.correct), passing=3) for each in labelled()]
    made = shown(found(Stub(unsure), answers=answers))
    [main] = [each for title, each in made.items() if title.startswith("240 answers to 80 questions")]
    assert main.title.endswith("right, as labelled by people")
    by = rows(main)
    assert list(by) == ["stub(1)", "people among themselves"]
    assert by["stub(1)"]["kappa"].startswith("0.")
    assert by["people among themselves"]["AUC"] == "–"
    assert any("labelled 2 times" in note for note in main.notes)


def test_groups_and_what_is_missing() -> None:
    """Figures by language and system; answers without a grade with the reason and their share."""
    made = shown(found(Stub(unsure)))
    assert [row[1] for row in made["by system"].rows] == ["a", "b", "c"]
    assert [row[1] for row in made["by language"].rows] == ["en", "zh"]
    assert "by kind" not in made
    [row] = made["without a grade"].rows
    lost = sum(each.candidate.endswith("0") for each in labelled())
    assert row == ("stub(1)", f"{lost} of 240 ({100 * lost / 240:.1f} %)", "failed: no reply in 0 s")


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.7156, (0.6991, 0.7324)), "0.716 (0.699 to 0.732)"),
        (Estimate(-0.02, (-0.1, 0.06)), "−0.020 (−0.100 to 0.060)"),
        (Estimate(0.00117, (0.00035, 0.00294)), "0.0012 (0.0003 to 0.0029)"),
        (Estimate(1.0, Missing("undefined", "too few")), "1.000 (–)"),
        (Estimate(Missing("undefined", "one class"), Missing("undefined", "one class")), "(undefined)"),
    ],
)
def test_intervals_in_words(estimate: Estimate, text: str) -> None:
    """A figure with its interval, or why there is none."""
    assert interval(estimate) == text
