"""Sets, their parts and samples of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.graders.calibration import LabelledSet, LabelSample, graded, sample_of, sets_of
from ctxbench.metrics.grading import GradedItem
from tests.harness.graders.stub_graders import Stub, labelled, says_yes


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
