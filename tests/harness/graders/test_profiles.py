"""A grader is quoted by the right profile, and those in the wheel are figures of the sample recordings."""

import re
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.graders.calibration import calibrated, sample_of, sets_of
from ctxbench.harness.graders.profiles import SHIPPED, Profile, Profiles, keep
from ctxbench.harness.graders.registry import grader
from ctxbench.harness.models import Models, Settings
from ctxbench.harness.models.cassette import Cassette
from ctxbench.harness.models.local import NAME
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.metrics.value import Missing
from ctxbench.reports.calibration import quoted
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.labelled import read
from ctxbench.scenarios.source import Problems
from tests.harness.graders.stub_graders import Stub, labelled, says_yes


def profile(name: str = "stub(1)", questions: int = 40, **changed: object) -> Profile:
    [labels] = sets_of(labelled(questions))
    [found] = calibrated(labels, [Stub(says_yes, name)], lambda _: None, resamples=10).profiles
    return msgspec.structs.replace(found, **changed)


def test_the_exact_name(tmp_path: Path) -> None:
    """A grader's own profile is quoted, and one of another version of it is not, while there is that."""
    keep(profile("stub(1)"), tmp_path)
    keep(profile("stub(2)"), tmp_path)
    [found] = Profiles([tmp_path]).of("stub(2)")
    assert (found.profile.grader, found.stale) == ("stub(2)", "")


def test_another_version(tmp_path: Path) -> None:
    """One of the same grader with other prompts is given, and said to be stale; one of another model is not given."""
    keep(profile("llm(model='m', prompt='abc123')"), tmp_path)
    [found] = Profiles([tmp_path]).of("llm(model='m', prompt='def456')")
    assert "measured on llm(model='m', prompt='abc123')" in found.stale
    [said] = quoted("llm(model='m', prompt='def456')", [found])
    assert "This is out of date" in said
    assert Profiles([tmp_path]).of("llm(model='n', prompt='abc123')") == []


def test_which_of_several(tmp_path: Path) -> None:
    """Labels by people go first, then more answers."""
    for each in (
        profile(set="by a model", labelled_by="model", questions=90),
        profile(set="small"),
        profile(set="large", questions=60),
    ):
        keep(each, tmp_path)
    found = Profiles([tmp_path]).of("stub(1)")
    assert [each.profile.set for each in found] == ["large", "small", "by a model"]
    said = quoted("stub(1)", found)
    assert said[0].startswith("stub(1) agrees with people on large: kappa 1.000")
    assert said[2].startswith("stub(1) agrees with labels by a model on by a model")
    [nothing] = quoted("other", [])
    assert nothing.startswith("How far other agrees with people is not known")


def test_no_text_of_the_set(tmp_path: Path) -> None:
    """Neither a profile that is made nor one that is shipped holds text that a grader quoted from the set."""

    def quotes(item: GradedItem) -> Grade | Missing:
        return (
            Missing("unsupported", f"rules cannot tell: “{item.candidate}”")
            if "1" in item.candidate
            else says_yes(item)
        )

    [made] = calibrated(sets_of(labelled())[0], [Stub(quotes)], lambda _: None, resamples=10).profiles
    assert list(made.missing) == ["unsupported: rules cannot tell: “…”"]
    assert not any(re.search("“[^…]", path.read_text("utf-8")) for path in SHIPPED.iterdir())


def test_calibrated_again(tmp_path: Path) -> None:
    """The same grader and set takes the place of what was there; another set stands beside it."""
    first = keep(profile(), tmp_path)
    assert keep(profile(labelled_by="model"), tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    assert keep(profile(set="other"), tmp_path) != first
    assert {each.profile.labelled_by for each in Profiles([tmp_path]).of("stub(1)")} == {"model", "people"}


def test_a_sample_hides_nothing(tmp_path: Path) -> None:
    """A quick look at a few answers does not take the place of the profile of all, nor of the one that is shipped."""
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    [whole] = sets_of(labelled(40))
    few = profile(questions=5, sample=sample_of(whole, 5).sample)
    keep(few, mine)
    assert [each.profile.sample for each in Profiles([mine]).of("stub(1)")] == [few.sample]
    for folder in (shipped, mine):
        keep(profile(), folder)
        assert [each.profile.sample for each in Profiles([mine, shipped]).of("stub(1)")] == [None]
    keep(few, mine)
    assert [each.profile.sample for each in Profiles([mine]).of("stub(1)")] == [None]


def test_files(tmp_path: Path) -> None:
    """Names can be read, hold no sign of a path, and differ where two graders differ; no text of the set is inside."""
    one, other = (keep(profile(f"llm(model='openai/../x', prompt='{prompt}')"), tmp_path) for prompt in ("ab", "cd"))
    assert one.name.startswith("llm-model-openai-x-made-")
    assert one.parent == other.parent == tmp_path
    assert one != other
    assert b"is 0?" not in one.read_bytes()
    assert b"yes " not in one.read_bytes()


def test_damaged_and_foreign(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A profile of another ctxbench is passed over and named; a damaged one is an error."""
    path = keep(profile(), tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"whole"', b'"figures"'))
    assert Profiles([tmp_path]).of("stub(1)") == []
    assert caplog.messages[0].startswith(f"{path}: left out, as another version")
    for text in (b"{", b"\xff"):
        path.write_bytes(text)
        with pytest.raises(RunError, match="is no profile of a grader"):
            Profiles([tmp_path])


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
    """Return the leaves of a tree of dictionaries and lists, by path."""
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
