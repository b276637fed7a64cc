"""Which profile is quoted for a grader, and what is wrong with those that are not."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.graders.calibration import calibrated, part_of, sample_of, sets_of
from ctxbench.harness.graders.profiles import SHIPPED, Profile, Profiles, keep
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.value import Missing
from ctxbench.reports.calibration import quoted
from ctxbench.scenarios.errors import RunError
from tests.harness.graders.stub_graders import Stub, labelled, says_yes


def profile(
    name: str = "stub(1)", questions: int = 40, only: dict[str, str] | None = None, **changed: object
) -> Profile:
    [whole] = sets_of(labelled(questions))
    labels = part_of(whole, only or {})
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
    """Labels by people go first, then whole sets, then more answers."""
    for each in (
        profile(set="by a model", labelled_by="model", questions=90),
        profile(set="a part", only={"language": "zh"}, questions=80),
        profile(set="small"),
        profile(set="large", questions=60),
    ):
        keep(each, tmp_path)
    found = Profiles([tmp_path]).of("stub(1)")
    assert [each.profile.set for each in found] == ["large", "small", "a part", "by a model"]
    said = quoted("stub(1)", found)
    assert said[0].startswith("stub(1) agrees with people on large: kappa 1.000")
    assert "on a part, language zh:" in said[2]
    assert said[3].startswith("stub(1) agrees with labels by a model on by a model")
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
    """The same grader, set and part takes the place of what was there; another part stands beside it."""
    first = keep(profile(), tmp_path)
    assert keep(profile(labelled_by="model"), tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    assert keep(profile(only={"system": "a"}), tmp_path) != first
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
