"""What can be paired is compared, what cannot is said: lost, new, incomparable."""

from dataclasses import replace

import pytest

from ctxbench.harness.compare.compare import Comparison, RunComparison, Unpaired, compare, usual_rules
from ctxbench.harness.compare.figures import About, MeasuredRun
from ctxbench.metrics.statistics.comparison import Verdict
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION, Ends
from ctxbench.reports.compare import as_json, between, moved, tables
from ctxbench.scenarios.errors import RunError
from tests.harness.compare.builders import ABOUT, made

TOKENS = [100.0, 250, 80, 400, 120, 90]


def compared(before: MeasuredRun, after: MeasuredRun) -> RunComparison:
    return compare(before, after, [(name, name) for name in before.sums if name in after.sums], usual_rules())


def only(found: RunComparison) -> Comparison:
    (each,) = found.comparisons
    return each


def test_what_is_so_by_construction_has_no_interval() -> None:
    """The whole history has every value in both runs: the same, without an interval, and no test is corrected for it.
    A fault that loses some has its interval, as any other figure."""
    whole, lossy = (
        made({"none": {"grounding": [(4, 4)] * 8}}),
        made({"none": {"grounding": [(4, 4)] * 4 + [(2, 4)] * 4}}),
    )
    same = compared(whole, whole)
    found = only(same).found
    assert found is not None
    assert (found.shown, found.value) == (BY_CONSTRUCTION, 0.0)
    assert only(same).verdict == Verdict("same", "by construction", True)
    assert same.family == 0
    lost = only(compared(whole, lossy)).found
    assert lost is not None
    assert isinstance(lost.shown, Ends)


def test_twins_count_once() -> None:
    """A run that knows its units is compared by them, with a baseline that does not; both numbers are said."""
    after = replace(made({"a": {"tokens_sent": [2 * each for each in TOKENS]}}), units={"c0": "k", "c1": "k"})
    found = compared(made({"a": {"tokens_sent": TOKENS}}), after)
    assert (found.conversations, found.units) == (6, 5)
    assert only(found).found is not None
    assert (only(found).found.conversations, only(found).found.units) == (6, 5)  # type: ignore[union-attr]
    assert next(iter(tables(found))).title == "run against run, in 6 pairs of conversations, 5 independent units"
    assert as_json(found)["independent_units"] == 5


def test_the_library_stands_in_the_row_of_its_strategy() -> None:
    """A strategy of another package has its version in the table and in the JSON: both, where the runs had different
    ones."""
    sides = [made({"a": {"tokens_sent": [size * each for each in TOKENS]}}) for size in (1, 2)]
    before, after = (replace(side, libraries={"a": f"langchain 1.5.{at}"}) for at, side in enumerate(sides, 1))
    found = compared(before, after)
    assert "a: langchain 1.5.1, then langchain 1.5.2." in next(iter(tables(found))).notes
    assert as_json(found)["comparisons"][0]["library"] == "langchain 1.5.1, then langchain 1.5.2"
    assert as_json(compared(*sides))["comparisons"][0]["library"] is None


def test_what_moved_most() -> None:
    """The conversations that got worse come first, the one that weighs most at the head; then those that got better."""
    found = only(
        compared(made({"a": {"tokens_sent": TOKENS}}), made({"a": {"tokens_sent": [100, 260, 85, 390, 120, 90]}}))
    )
    assert [(each.conversation, each.before, each.after, each.gain) for each in found.moved] == [
        ("c1", 250, 260, -10),
        ("c2", 80, 85, -5),
        ("c3", 400, 390, 10),
    ]


def test_conversations_are_paired_by_name_and_content() -> None:
    """In any order. One that is gone is lost, one that was not there is new, one of other content is incomparable."""
    before = made({"a": {"tokens_sent": [1, 2, 3, 4]}}, ["x", "y", "gone", "changed"])
    after = made({"a": {"tokens_sent": [4, 9, 2, 1]}}, ["changed", "fresh", "y", "x"])
    after = replace(after, digests={**after.digests, "changed": "of something else"})
    found = compared(before, after)
    assert found.conversations == 2
    assert only(found).verdict.word == "cannot tell"
    assert {(each.word, each.names) for each in found.unpaired} == {
        ("lost", ("gone",)),
        ("new", ("fresh",)),
        ("incomparable", ("changed",)),
    }


def test_a_strategy_that_fails_in_a_conversation() -> None:
    """There it has no figure at all: the conversation is lost under it, and it says why. The rest is compared."""
    before = made({"a": {"tokens_sent": TOKENS}})
    after = made({"a": {"tokens_sent": [*TOKENS[:5], None]}}, failed={"a": {"c5": "IndexError"}})
    found = compared(before, after)
    assert found.unpaired == (Unpaired("lost", "conversation", ("c5",), "a failed in run: IndexError", "a"),)
    assert only(found).found is not None
    assert only(found).verdict.word == "cannot tell"
    assert compared(after, before).unpaired[0].word == "new"


def test_metrics_that_are_gone_new_or_others() -> None:
    """Lost, new, and incomparable if the formula has another version; neither of them is a number."""
    both = made({"a": {"tokens_sent": TOKENS, "grounding": [(1, 2)] * 6}})
    one = made({"a": {"tokens_sent": TOKENS}})
    assert [each.verdict.word for each in compared(both, one).comparisons] == ["cannot tell", "lost"]
    assert [each.verdict.word for each in compared(one, both).comparisons] == ["cannot tell", "new"]
    other = replace(both, metrics={**both.metrics, "grounding": About("share", "higher", "ratio", "2")})
    verdict = compared(both, other).comparisons[1].verdict
    assert verdict == Verdict("incomparable", "was version 1, is version 2")


def test_nothing_to_pair() -> None:
    """Other recordings, and tokens of another encoding, are errors that say what to do."""
    run = made({"a": {"tokens_sent": TOKENS}})
    with pytest.raises(RunError, match="of other recordings: none of its 6 conversations is in run"):
        compared(run, made({"a": {"tokens_sent": TOKENS}}, list("uvwxyz")))
    with pytest.raises(RunError, match="run again with --encoding o200k_base"):
        compared(run, replace(run, encoding="cl100k_base"))


def test_figures_without_a_direction_are_not_compared() -> None:
    """Nor those that restate others: only by name."""
    about = {**ABOUT, "steps": About("steps", "", "total", "1"), "saving": About("share", "higher", "saving", "1")}
    run = made({"a": {"steps": TOKENS, "saving": [(1, 2)] * 6, "tokens_sent": TOKENS}}, about=about)
    assert [each.metric for each in compared(run, run).comparisons] == ["tokens_sent"]


def test_rounding_is_no_difference() -> None:
    """A rounding error prints as 0, a small change keeps its digits, and two ends that print alike are printed once."""
    assert moved(4e-17, "tokens", True) == "0.0 %"
    assert moved(0.00004, "share", False) == "+0.004 points"
    assert between(Ends(0.431, 0.4311), "tokens", True) == "+43.1 %"
    assert between(Ends(-0.01, 0.031), "share", False) == "−1.0 to +3.1 points"
