"""Differences of pairs, and the word for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ctxbench.metrics.statistics.comparison import Margin, Pairs, Verdict, difference, judge
from ctxbench.metrics.statistics.intervals import BY_CONSTRUCTION
from ctxbench.metrics.value import Missing


def totals(before: object, after: object) -> Pairs:
    both = [np.column_stack([each, np.ones(len(each))]) for each in map(np.asarray, (before, after))]
    return Pairs("total", *both)


def test_by_hand() -> None:
    """Kept 8 of 10 and 1 of 2, then 9 of 10 and 1 of 4: 9/12 before, 10/14 after; a saving is the other way round."""
    before, after = np.array([[8, 10], [1, 2]]), np.array([[9, 10], [1, 4]])
    found = difference(Pairs("ratio", before, after))
    assert (found.before, found.after) == (9 / 12, 10 / 14)
    assert found.value == pytest.approx(10 / 14 - 9 / 12)
    assert difference(Pairs("saving", before, after)).value == pytest.approx(9 / 12 - 10 / 14)
    assert difference(Pairs("ratio", before, after), relative=True).value == pytest.approx(10 / 14 * 12 / 9 - 1)
    assert difference(Pairs("total", before, after)).value == 1
    assert Pairs("ratio", before, after).contributions() == pytest.approx([9 / 14 - 8 / 12, 1 / 14 - 1 / 12])


lopsided = st.sampled_from([1.0, 1.5, 2, 7, 1e3, 1e6])


@given(st.lists(st.tuples(lopsided, lopsided, lopsided, lopsided), min_size=10, max_size=17), st.booleans())
def test_no_difference_leaves_what_a_resample_can_reach(rows: list[tuple[float, ...]], relative: bool) -> None:
    """A relative change of a total lies within those of its conversations, and that of a cost per call, before or
    after, within what they cost; the typical change lies within those too."""
    table = np.array(rows)
    found = difference(Pairs("total", table[:, :2], table[:, 2:]), relative=True, draws=100)
    ratios = table[:, 2] / table[:, 0] - 1
    assert found.across == pytest.approx((ratios.min(), ratios.max()))
    few = len(rows) < 15 or table[:, 0].max() > table[:, 0].sum() / 3 + 1e-6
    assert isinstance(found.shown, Missing) == few
    ends = [] if isinstance(found.shown, Missing) else [found.shown]
    ends += [found.typical.shown] if found.typical else []
    for low, high in ends:
        assert ratios.min() - 1e-9 <= low <= high <= ratios.max() * (1 + 1e-9) + 1e-9
    found = difference(Pairs("ratio", table[:, :2], table[:, 2:] + [1e6, 0]), relative, draws=100)
    if not isinstance(found.shown, Missing):
        before, after = table[:, 0] / table[:, 1], (table[:, 2] + 1e6) / table[:, 3]
        least, most = after.min() - before.max(), after.max() - before.min()
        if relative:
            least, most = after.min() / before.max() - 1, after.max() / before.min() - 1
        assert least - 1e-9 * most <= found.shown.low <= found.shown.high <= most * (1 + 1e-9)


sums = st.tuples(*[st.integers(0, 50)] * 2).map(lambda each: (each[0] if each[1] else 0, each[1]))
"""Nothing is got where nothing is wanted: as of any figure."""
pairs = st.lists(st.tuples(sums, sums).map(lambda each: (*each[0], *each[1])), min_size=1, max_size=12)


@given(pairs, st.sampled_from(["total", "ratio", "saving"]))
def test_laws(rows: list[tuple[int, int, int, int]], form: str) -> None:
    """Contributions add up to the difference; a sample against itself has none; the other way round has the other sign;
    the interval holds the difference and stays within what a resample can reach, or of shares and events what can be;
    below eight units, or where one weighs more than a third, there is none."""
    table = np.array(rows, float)
    made = Pairs(form, table[:, :2], table[:, 2:])  # type: ignore[arg-type]
    found = difference(made, draws=200)
    back = difference(Pairs(made.form, made.after, made.before), draws=200)
    same = difference(Pairs(made.form, made.before, made.before))
    if not isinstance(found.value, Missing):
        assert made.contributions().sum() == pytest.approx(found.value, abs=1e-9)
        assert back.value == pytest.approx(-found.value, abs=1e-12)
    if not isinstance(found.shown, Missing):
        assert found.shown.low - 1e-9 <= found.value <= found.shown.high + 1e-9
        assert found.units >= 8
    if form != "total" and not isinstance(found.shown, Missing):
        if (table[:, ::2] <= table[:, 1::2]).all():
            assert -1 <= found.shown.low <= found.shown.high <= 1
        wanted = table[:, 1::2] / table[:, 1::2].sum(axis=0)
        assert wanted.max() <= 1 / 3 + 1e-6
    if not isinstance(same.value, Missing):
        assert same.nothing
        assert judge(same, Margin(0), "lower").word == "cannot tell"


def test_the_p_value_is_that_of_the_paired_test() -> None:
    """Of totals, scipy's."""
    random = np.random.default_rng(8)
    before = random.normal(5, 2, 20)
    after = before + random.normal(0.3, 0.6, 20)
    assert difference(totals(before, after), relative=False).p == pytest.approx(stats.ttest_rel(after, before).pvalue)


def test_twins_are_one_unit() -> None:
    """Each conversation twice says no more than once: the same interval, error and p-value, of totals and of ratios."""
    random = np.random.default_rng(9)
    before, after = random.uniform(5, 9, (2, 15, 2))
    for form, relative in (("total", True), ("total", False), ("ratio", False)):
        alone = difference(Pairs(form, before, after), relative)  # type: ignore[arg-type]
        both = [np.vstack([side / 2, side / 2]) for side in (before, after)]
        twins = difference(Pairs(form, *both, units=[*range(15)] * 2), relative)  # type: ignore[arg-type, misc]
        assert (twins.conversations, twins.units, alone.units) == (30, 15, 15)
        assert twins.shown == pytest.approx(alone.shown)
        assert (twins.error, twins.p) == pytest.approx((alone.error, alone.p))
    single = difference(Pairs("ratio", before, after, units=["one"] * 15))
    assert isinstance(single.shown, Missing)
    assert single.shown.why == "few"


def test_a_uniform_change_is_certain() -> None:
    """Two per cent more everywhere, in conversations of any size: no spread in what is relative."""
    before = np.array([10.0, 2000, 37, 500, 800, 1500, 1300, 60, 70, 80, 90, 99, 110, 120, 130])
    found = difference(totals(before, before * 1.02), relative=True)
    assert found.value == pytest.approx(0.02)
    assert found.shown == pytest.approx((0.02, 0.02))
    assert judge(found, Margin(0.01, relative=True), "lower").word == "worse"
    assert judge(found, Margin(0.01, relative=True), "higher").word == "better"
    assert judge(found, Margin(0.03, relative=True), "lower").word == "same"


def test_one_conversation_cannot_tell() -> None:
    """Nothing is known of others, whether it moved or not."""
    for after in (5.0, 9.0):
        verdict = judge(difference(totals([5.0], [after])), Margin(0), "lower")
        assert verdict == Verdict("cannot tell", "one conversation is too few")


def test_nothing_moved() -> None:
    """0 of 8 right answers changed: up to 31 points may be lost (one-sided, at 95 %), so it takes 59 conversations to
    call them the same within 5; of events up to 3.7 more are possible, and of costs as many conversations have to be
    seen; what can be no other way is the same at once."""
    for size, word in ((2, "cannot tell"), (8, "cannot tell"), (58, "cannot tell"), (59, "same")):
        one = np.ones((size, 2))
        shares, costs = difference(Pairs("ratio", one, one)), difference(Pairs("total", one, one), relative=True)
        assert shares.nothing
        assert judge(shares, Margin(0.05), "higher").word == word
        assert judge(costs, Margin(0.05, relative=True), "lower").word == word
    eight = difference(Pairs("ratio", np.ones((8, 2)), np.ones((8, 2))))
    assert eight.tested == pytest.approx((-0.3123, 0), abs=1e-4)
    assert judge(eight, Margin(0.05), "higher").why == "nothing moved here; of others up to 31 % may"
    events = difference(totals([3.0] * 8, [3.0] * 8))
    assert events.shown == pytest.approx((-3.689, 3.689), abs=1e-3)
    assert judge(events, Margin(0), "lower").word == "cannot tell"
    assert difference(totals([0.0] * 8, [0.0] * 8)).shown == pytest.approx((0, 3.689), abs=1e-3)
    fixed = eight._replace(shown=BY_CONSTRUCTION, tested=BY_CONSTRUCTION)
    assert judge(fixed, Margin(0.05), "higher") == Verdict("same", "by construction", True)


def test_shares_are_the_same_only_where_no_conversation_may_be_lost_whole() -> None:
    """Noise in every conversation, within a point: in 58 of them 5 % of others may be lost whole; in 59 fewer."""
    for size, word in ((58, "cannot tell"), (59, "same")):
        before = np.column_stack([np.full(size, 70.0), np.full(size, 100.0)])
        after = before + np.column_stack([np.resize([1.0, -1.0], size), np.zeros(size)])
        verdict = judge(difference(Pairs("ratio", before, after)), Margin(0.05), "higher")
        assert (verdict.word, verdict.no_worse) == (word, word == "same")
    assert verdict.why == ""


def test_what_was_nothing_has_no_relative_difference() -> None:
    """From 0 it is the plain one, and any is beyond a relative margin."""
    found = difference(totals([0.0] * 30, [3.0] * 30), relative=True)
    assert not found.relative
    assert found.value == 90
    assert judge(found, Margin(0.5, relative=True), "lower").word == "worse"


def test_conversations_that_say_nothing_do_not_count() -> None:
    """Of four, two have something to keep: the sample is of two."""
    before = np.array([[1, 2], [0, 0], [3, 4], [0, 0]])
    assert difference(Pairs("ratio", before, before)).conversations == 2
    nothing = difference(Pairs("ratio", before * 0, before * 0))
    assert nothing.value == Missing("undefined", "nothing to measure")
    assert judge(nothing, Margin(0), "lower").word == "cannot tell"


def test_no_pairs() -> None:
    """What is no number is refused by name and place; what has no partner too."""
    with pytest.raises(ValueError, match=r"after\[1, 0\] is nan"):
        totals([1.0, 2.0], [1.0, float("nan")])
    with pytest.raises(ValueError, match="before has 1 conversations, after has 2"):
        totals([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("moved", "word", "why"),
    [
        (np.full(20, 3.0), "worse", ""),
        (np.full(20, -3.0), "better", ""),
        (np.linspace(-1, 1, 20), "same", ""),
        (np.linspace(-40, 40, 20), "cannot tell", "the interval has both signs"),
        (np.linspace(-2, 5, 20), "cannot tell", "worse, but by less than the margin as far as is known"),
    ],
)
def test_words(moved: np.ndarray, word: str, why: str) -> None:
    """Over 20 conversations, where two more in each are as good as none."""
    verdict = judge(difference(totals(np.full(20, 100.0), 100 + moved)), Margin(40), "lower")
    assert (verdict.word, verdict.why) == (word, why)


def test_among_many_comparisons() -> None:
    """What would be worse alone is not certain among others."""
    found = difference(totals(np.full(20, 9.0), np.linspace(8, 12.5, 20)))
    assert judge(found, Margin(0), "lower").word == "worse"
    verdict = judge(found, Margin(0), "lower", p=0.2)
    assert verdict.word == "cannot tell"
    assert verdict.why.startswith("worse if it were the only comparison")


def test_a_difference_of_shares_is_one_that_can_be() -> None:
    """Within −1 and 1, also where no draw differs; a saving is no share, and can fall below −1."""
    some = np.repeat([[1.0, 1], [0, 1]], [6, 3], axis=0)
    for before, after in ((some, some * [0, 1]), (np.ones((9, 2)), np.ones((9, 2)) * [0, 1])):
        found = difference(Pairs("ratio", before, after))
        assert not isinstance(found.shown, Missing)
        assert -1 <= found.shown.low < found.value + 1e-9 < found.shown.high < 0
    still = difference(Pairs("ratio", np.ones((9, 2)), np.ones((9, 2))))
    assert still.shown == pytest.approx((-(1 - 0.025 ** (1 / 9)), 0))
    some = np.repeat([[1.0, 1], [0, 1]], [10, 5], axis=0)
    saving = difference(Pairs("saving", some, some + [[3, 0]]))
    assert not isinstance(saving.shown, Missing)
    assert saving.shown.low < -1


def test_a_total_is_judged_by_the_typical_conversation() -> None:
    """Twelve of fifteen conversations grow by 5 %, give or take; the others are far longer and hardly moved: their
    weight hides the growth from the total, not from the typical conversation."""
    before = np.column_stack([[100.0] * 12 + [10_000.0] * 3, np.zeros(15)])
    grew = np.array([1.04, 1.05, 1.06] * 4 + [1.001] * 3)
    after = before * grew[:, None]
    change = difference(Pairs("total", before, after), relative=True)
    assert change.typical is not None
    assert change.typical.value == pytest.approx(np.exp(np.log(grew).mean()) - 1)
    t = stats.ttest_1samp(np.log(grew), 0)
    assert change.p == pytest.approx(t.pvalue)
    assert change.typical.shown == pytest.approx(np.expm1([*t.confidence_interval(0.95)]))
    assert judge(change, Margin(0.001, relative=True), "lower").word == "worse"


def test_a_total_that_moved_the_other_way_than_its_conversations() -> None:
    """Nothing can be told: most conversations shrank by 10 %, and the longest grew so much that the total did."""
    before = np.column_stack([[100.0] * 12 + [10_000.0] * 3, np.zeros(15)])
    after = before * np.array([*np.linspace(0.89, 0.91, 12), 1.05, 1.05, 1.05])[:, None]
    verdict = judge(difference(Pairs("total", before, after), relative=True), Margin(0.01, relative=True), "lower")
    assert verdict.word == "cannot tell"
    assert "the other" in verdict.why
