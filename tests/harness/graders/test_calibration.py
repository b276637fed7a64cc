"""Sets of labelled answers, samples of them, and profiles of graders that are known to the last answer."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.graders.calibration import (
    Calibrated,
    LabelledSet,
    LabelSample,
    calibrated,
    graded,
    sample_of,
    sets_of,
)
from ctxbench.harness.graders.profiles import corrected_by
from ctxbench.metrics.grading import Grade, GradedItem
from tests.harness.graders.stub_graders import Paid, Stub, labelled, says_yes, unsure


def measured(*graders: Stub, **given: object) -> Calibrated:
    [labels] = sets_of(labelled(**given))  # type: ignore[arg-type]
    return calibrated(labels, graders, lambda _: None, resamples=200)


def test_a_perfect_grader() -> None:
    """It agrees with every label, in every group."""
    [found] = measured(Stub(says_yes)).profiles
    assert found.whole.kappa.value == 1.0
    assert (found.asked, found.graded, found.missing) == (240, 240, {})
    assert list(found.by) == ["language", "system"]
    assert {name: each.answers for name, each in found.by["language"].items()} == {"en": 120, "zh": 120}
    assert all(each.accuracy.value == 1.0 for each in found.by["system"].values())
    assert found.cost is None


def test_what_is_not_graded() -> None:
    """It is counted by reason and is in no figure; errors show in the confusion matrix."""
    answers = labelled()
    [found] = measured(Stub(unsure)).profiles
    lost = sum(each.candidate.endswith("0") for each in answers)
    wrong = sum(each.candidate.endswith("1") for each in answers)
    assert found.missing == {"failed: no reply in 0 s": lost}
    assert (found.asked, found.graded) == (240, 240 - lost)
    assert found.whole.confusion.false_positive + found.whole.confusion.false_negative == wrong
    assert found.whole.accuracy.value == pytest.approx(1 - wrong / (240 - lost))


def test_costs_are_of_the_labelled_answers() -> None:
    """A profile charges the calls for its own labelled set, and none for another set."""
    grader = Paid(says_yes)
    [first] = measured(grader).profiles
    [second] = measured(grader, questions=40).profiles
    assert first.cost is not None
    assert second.cost is not None
    assert (first.cost.calls, first.cost.input_tokens, first.cost.output_tokens) == (240, 24_000, 2_400)
    assert first.cost.dollars == pytest.approx(2.4)
    assert second.cost.calls == 120


def test_scores_that_are_no_numbers() -> None:
    """Such a grade is none: it could not be ranked among the others."""
    [found] = measured(Stub(lambda item: Grade(True, float("nan") if item.id == "q3-a" else 1.0))).profiles
    assert found.missing == {"failed: its score is not a number": 1}


def test_answers_that_it_was_fitted_on() -> None:
    """They are in the whole, not among the held-out ones, and those alone are quoted and corrected by."""

    class Fitted(Stub):
        def fitted_on(self, labelled: str, question: str) -> bool:
            return labelled == "made" and question.endswith("2?")

    [found] = measured(Fitted(says_yes)).profiles
    assert found.whole.answers == 240
    assert found.quoted.answers == 240 - 3 * sum(str(at).endswith("2") for at in range(80))
    [other] = measured(Fitted(says_yes), name="other").profiles
    assert other.held_out is None
    assert other.quoted is other.whole


def test_corrected_by_a_profile() -> None:
    """A grader that takes one of ten right answers for wrong and one of ten wrong for right: 74 % seen is 80 %."""

    def errs(item: GradedItem) -> Grade:
        right = item.candidate.startswith("yes") != item.candidate.endswith("1")
        return Grade(right, float(right))

    [found] = measured(Stub(errs), questions=400).profiles
    recall, specificity = found.whole.recall.value, found.whole.specificity.value
    assert isinstance(recall, float)
    assert isinstance(specificity, float)
    seen = 0.8 * recall + 0.2 * (1 - specificity)
    corrected = corrected_by(found, seen, 500)
    assert corrected.value == pytest.approx(0.8)
    low, high = corrected.interval  # type: ignore[misc]
    assert 0.7 < low < 0.8 < high < 0.9


def test_raters() -> None:
    """Raters are compared among themselves where there are several."""
    answers = [msgspec.structs.replace(each, votes=(4, 4 if each.correct else 1), passing=3) for each in labelled()]
    found = calibrated(sets_of(answers)[0], [], lambda _: None, resamples=200)
    assert found.raters is not None
    assert found.raters.same == pytest.approx(found.right)
    assert measured().raters is None


def made(questions: int = 80) -> LabelledSet:
    [found] = sets_of(labelled(questions))
    return found


def test_sets_by_name() -> None:
    """Answers of several sets are told apart, whatever their order; the digest is of what the set says."""
    first, second = labelled(name="b"), labelled(name="a", seed=1)
    mixed = sets_of([*first, *second])
    assert [each.name for each in mixed] == ["a", "b"]
    assert sets_of([*second, *first]) == mixed
    assert sets_of(first[::-1])[0].digest == mixed[1].digest
    assert sets_of(first[1:])[0].digest != mixed[1].digest


@given(st.integers(1, 260), st.integers(0, 3), st.booleans())
def test_a_sample(size: int, seed: int, by_system: bool) -> None:
    """It has its size, no question has a second answer while another has none, and says how it was drawn."""
    found = sample_of(made(), size, seed, by_system)
    assert len(found.answers) == min(size, 240)
    times = Counter(found.questions)
    if not by_system:
        assert max(times.values()) - (min(times.values()) if len(times) == 80 else 0) <= 1
    else:
        systems = Counter(each.system for each in found.answers)
        assert max(systems.values()) - min(systems.values(), default=0) <= 1 or size < 3
        assert size > 80 or max(times.values()) == 1
    assert found.sample == (LabelSample(size, 240, seed, by_system) if size < 240 else None)


def test_what_a_sample_depends_on() -> None:
    """Not on the order of the file; a larger one has the smaller one in it; another seed draws others."""
    whole = made()
    backwards = LabelledSet(whole.name, whole.digest, whole.answers[::-1])
    ids = {each.id for each in sample_of(whole, 50).answers}
    assert {each.id for each in sample_of(backwards, 50).answers} == ids
    assert ids < {each.id for each in sample_of(whole, 90).answers}
    assert ids != {each.id for each in sample_of(whole, 50, seed=1).answers}


def test_the_grader_is_not_told_the_label() -> None:
    """An item has the question, what is accepted and the answer: nothing else of the label."""
    answer, items = labelled(1)[0], list[GradedItem]()
    graded(Stub(lambda item: items.append(item) or says_yes(item)), [answer], lambda _: None)  # type: ignore[func-returns-value]
    [item] = items
    assert (item.id, item.question, item.accepted, item.candidate) == ("q0-a", "is 0?", ("yes",), answer.candidate)
    assert not hasattr(item, "correct")
