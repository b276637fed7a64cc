"""Figures of a grader beside people, against a case worked by hand, scikit-learn and an obvious bootstrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grading.agreement import FIGURES, Confusion, Verdicts, agreement, figures
from ctxbench.metrics.value import Missing
from tests.examples import examples

Answers = list[tuple[bool, bool, int, int]]
ANSWERS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=40
)
"""What people say, what the grader says, its score, the question."""


def verdicts(answers: Answers) -> Verdicts:
    people, grader, score, question = zip(*answers, strict=True)
    return Verdicts.of(people, grader, score, [f"q{each}" for each in question])


def correlated(questions: int, systems: int, seed: int = 0) -> Verdicts:
    """Answers of several systems, of which all find the same questions hard."""
    random = np.random.default_rng(seed)
    ease = random.normal(0, 1, (questions, 1))
    people = ease + random.normal(0, 1, (questions, systems)) > -0.5
    score = np.where(people, 1.2, -1.2) + ease / 2 + random.normal(0, 1, (questions, systems))
    return Verdicts(
        people.ravel(), score.ravel() > 0, score.ravel(), np.repeat(np.arange(questions), systems).astype(np.intp)
    )


def test_by_hand() -> None:
    """50 answers: 20 + 15 agreed on, 5 + 10 not. Cohen's own example: accuracy 0.7, by chance 0.5, kappa 0.4."""
    found = dict(zip(FIGURES, figures(np.array([20.0, 5.0, 10.0, 15.0])), strict=True))
    assert found == pytest.approx(
        {"accuracy": 0.7, "kappa": 0.4, "precision": 0.8, "recall": 2 / 3, "specificity": 0.75, "f1": 40 / 55}
    )


@examples(40)
@given(ANSWERS)
def test_as_scikit_learn_has_it(answers: Answers) -> None:
    """Every figure is that of scikit-learn, and undefined where that divides by nothing."""
    metrics = pytest.importorskip("sklearn.metrics")
    found = verdicts(answers)
    said, graded, rejected = found.people, found.grader, ~found.people
    ours = agreement(found, resamples=1)
    score = metrics.precision_score, metrics.recall_score, metrics.f1_score
    precision, recall, f1 = (each(said, graded, zero_division=np.nan) for each in score)
    theirs = {
        "accuracy": metrics.accuracy_score(said, graded),
        "precision": precision,
        "recall": recall,
        "specificity": metrics.recall_score(rejected, ~graded, zero_division=np.nan),
        "f1": f1,
    }
    if said.all() != graded.all() or (~said).all() != (~graded).all() or not (said.all() or rejected.all()):
        theirs["kappa"] = metrics.cohen_kappa_score(said, graded)
    if said.any() and rejected.any():
        theirs["auc"] = metrics.roc_auc_score(said, found.score)
    for name in (*FIGURES, "auc"):
        value = getattr(ours, name).value
        if isinstance(value, Missing):
            assert np.isnan(theirs.get(name, np.nan))
            assert value.why == "undefined"
        else:
            assert value == pytest.approx(theirs[name])
    negative, false, missed, positive = metrics.confusion_matrix(said, graded, labels=[False, True]).ravel()
    assert ours.confusion == Confusion(positive, false, missed, negative)


def test_one_class_only() -> None:
    """All right, for people and the grader: kappa, specificity and the AUC are missing and say why, accuracy is 1."""
    found = agreement(Verdicts.of([True] * 40, [True] * 40, [1.0] * 40, [str(at) for at in range(40)]))
    for name in ("kappa", "specificity", "auc"):
        assert isinstance(getattr(found, name).value, Missing)
        assert isinstance(getattr(found, name).interval, Missing)
    assert found.kappa.value == Missing("undefined", "all answers are of one class, by people and by the grader")
    assert found.accuracy.value == 1.0
    assert found.accuracy.interval == pytest.approx((0.9119, 1.0), abs=1e-4)  # Clopper and Pearson's, of 40 questions


def test_few_questions() -> None:
    """A hundred answers to five questions have figures and no intervals: there is too little to draw from."""
    found = agreement(correlated(5, 20))
    assert isinstance(found.kappa.value, float)
    assert isinstance(found.kappa.interval, Missing)
    assert "5 questions are too few" in found.kappa.interval.detail


def test_answers_to_one_question_belong_together() -> None:
    """The same answers with a question each look surer than they are: figures are equal, intervals shorter."""
    together = correlated(80, 5)
    apart = Verdicts(together.people, together.grader, together.score, np.arange(400, dtype=np.intp))
    first, second = agreement(together), agreement(apart)
    for name in ("recall", "f1"):
        assert getattr(first, name).value == getattr(second, name).value
        lengths = [getattr(each, name).interval.high - getattr(each, name).interval.low for each in (first, second)]
        assert lengths[0] > 1.05 * lengths[1]
    assert first.design_right > 1.2
    assert second.design_right == pytest.approx(1.0, abs=0.02)
