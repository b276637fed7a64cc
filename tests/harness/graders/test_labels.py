"""Sets, their parts and samples of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.graders.labels import LabelledSet, Sample, as_item, part_of, sample_of, sets_of
from ctxbench.scenarios.errors import UserError
from tests.harness.graders.stub_graders import labelled


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


def test_a_part() -> None:
    """Only the answers asked for, under the digest of the whole; a part that nothing has is empty."""
    part = part_of(made(), {"language": "zh", "system": "b"})
    assert {(each.language, each.system) for each in part.answers} == {("zh", "b")}
    assert part.only == (("language", "zh"), ("system", "b"))
    assert part.digest == made().digest
    assert not part_of(made(), {"kind": "temporal"}).answers


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
    assert found.sample == (Sample(size, 240, seed, by_system) if size < 240 else None)


def test_what_a_sample_depends_on() -> None:
    """Not on the order of the file; a larger one has the smaller one in it; another seed draws others."""
    whole = made()
    backwards = LabelledSet(whole.name, whole.digest, whole.answers[::-1])
    ids = {each.id for each in sample_of(whole, 50).answers}
    assert {each.id for each in sample_of(backwards, 50).answers} == ids
    assert ids < {each.id for each in sample_of(whole, 90).answers}
    assert ids != {each.id for each in sample_of(whole, 50, seed=1).answers}


def test_a_system_with_few_answers() -> None:
    """Where one has too few, the others fill the sample."""
    answers = [each for each in labelled() if each.system != "c" or each.group in ("q1", "q2")]
    [whole] = sets_of(answers)
    systems = Counter(each.system for each in sample_of(whole, 60, by_system=True).answers)
    assert systems == {"c": 2, "a": 29, "b": 29}


def test_no_sample() -> None:
    """Of nothing there is no sample."""
    with pytest.raises(UserError, match="give 1 or more"):
        sample_of(made(), 0)


def test_the_grader_is_not_told_the_label() -> None:
    """An item has the question, what is accepted and the answer: nothing else of the label."""
    answer = labelled(1)[0]
    item = as_item(answer)
    assert (item.id, item.question, item.accepted, item.candidate) == ("q0-a", "is 0?", ("yes",), answer.candidate)
    assert not hasattr(item, "correct")
