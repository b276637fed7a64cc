"""The profiles in the wheel: figures of the sample recordings, made by the graders as they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.graders.calibration import calibrated, sets_of
from ctxbench.harness.graders.profiles import SHIPPED, Profiles
from ctxbench.harness.graders.registry import grader
from ctxbench.harness.models import Models, Settings
from ctxbench.harness.models.cassette import Cassette
from ctxbench.harness.models.local import NAME
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.scenarios.labelled import read
from ctxbench.scenarios.source import Problems

AGAIN = """make them again, where the sample recordings are:
    ctxbench lab calibrate {evouna,halluqa-zh/HalluQA.json,mtrag} -o CHECKOUT/harness/graders/shipped
    ctxbench lab calibrate evouna -g logit --sample 150 --seed 33 --by-system -o CHECKOUT/harness/graders/shipped
    ctxbench lab calibrate halluqa-zh -g logit --sample 100 --seed 33 --by-system -o CHECKOUT/harness/graders/shipped"""
FILES = {
    "evouna-nq": "evouna/NQ.json",
    "halluqa-zh": "halluqa-zh/HalluQA.json",
    "mtrag": "mtrag/reference_subset_with_human_evaluations.json",
}


def leaves(tree: object, path: str = "") -> dict[str, object]:
    """What stands at the ends of a tree of dictionaries and lists, by path."""
    match tree:
        case dict():
            parts = [leaves(each, f"{path}/{name}") for name, each in tree.items()]
        case list() | tuple():
            parts = [leaves(each, f"{path}/{at}") for at, each in enumerate(tree)]
        case _:
            return {path: tree}
    return {name: value for part in parts for name, value in part.items()}


def test_they_are_of_the_grader_as_it_is() -> None:
    """The embedded grader has a profile of its own version on each set, in English and Chinese, labelled by people."""
    found = {each.profile.set: each for each in Profiles([SHIPPED]).of(RulesGrader().name)}
    assert found.keys() == FILES.keys(), AGAIN
    assert not [each.stale for each in found.values() if each.stale], AGAIN
    assert {each.profile.labelled_by for each in found.values()} == {"people"}
    assert found["evouna-nq"].profile.held_out is not None


def test_the_local_model_that_grades_has_its_own(tmp_path: Path) -> None:
    """How far the small model agrees with people as a grader is known, in both languages."""
    Cassette(tmp_path / "c").close()
    models = Models(Settings(cassette=str(tmp_path / "c"), replay=True))
    found = Profiles([SHIPPED]).of(grader(f"logit(model={NAME!r})", models=models).name)
    assert {each.profile.set for each in found} == {"evouna-nq", "halluqa-zh"}, AGAIN
    assert not [each.stale for each in found if each.stale], AGAIN


@pytest.mark.parametrize("name", ["halluqa-zh", "mtrag"])
def test_their_counts(recordings: Path, name: str) -> None:
    """Grading the sample recordings again gives the same confusion matrix and the same gaps."""
    [labels] = sets_of(read([recordings / FILES[name]], Problems(strict=True)))
    [found] = calibrated(labels, [RulesGrader()], lambda _: None, resamples=2).profiles
    [shipped] = [each.profile for each in Profiles([SHIPPED]).of(RulesGrader().name) if each.profile.set == name]
    assert shipped.digest == labels.digest, AGAIN
    assert (shipped.asked, shipped.whole.confusion) == (found.asked, found.whole.confusion), AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_all_of_it(recordings: Path, name: str) -> None:
    """Every figure, and interval is what the command finds today, but for what floats do elsewhere."""
    [labels] = sets_of(read([recordings / FILES[name]], Problems(strict=True)))
    [found] = calibrated(labels, [RulesGrader()], lambda _: None).profiles
    [shipped] = [each.profile for each in Profiles([SHIPPED]).of(RulesGrader().name) if each.profile.set == name]
    now, then = leaves(msgspec.to_builtins(found)), leaves(msgspec.to_builtins(shipped))
    assert now.keys() == then.keys(), AGAIN
    numbers = {path for path, value in then.items() if isinstance(value, float)}
    assert {path: now[path] for path in numbers} == pytest.approx({path: then[path] for path in numbers}, 1e-9), AGAIN
    assert {path: now[path] for path in now.keys() - numbers} == {path: then[path] for path in then.keys() - numbers}, (
        AGAIN
    )
