"""What a search found, in tables."""

from ctxbench.harness.tune.space import Numbers, SearchSpace
from ctxbench.harness.tune.tune import Setting, TrialFigures, Tried, Tuned, against
from ctxbench.metrics.statistics.intervals import Ends, Interval
from ctxbench.metrics.value import Missing
from ctxbench.reports.render import markdown
from ctxbench.reports.tune import as_json, dominated, numbers, tables
from ctxbench.scenarios.source import Problems


def of(cost: float, quality: float) -> TrialFigures:
    return TrialFigures(Interval(cost, cost - 1, cost + 1), Interval(quality, 0.0, 1.0), 5)


def setting(spec: str, train: TrialFigures, held: TrialFigures, chosen: bool = True, whole: bool = False) -> Setting:
    return Setting(spec, chosen, whole, train, held, calls=10)


def tuned(*settings: Setting, worth: bool = True, failed: tuple[tuple[str, str], ...] = ()) -> Tuned:
    space = SearchSpace({"n": Numbers(1, 9, False, True)}, {"n": "given"}, {"n": (9,)})
    tried = tuple((each.spec, each.train) for each in settings)
    return Tuned(
        "a(n=?)",
        space,
        "tokens",
        "grounding",
        "",
        7,
        3,
        4,
        False,
        failed,
        tried,
        settings,
        (("n", 9, 1),),
        worth,
        Problems(),
    )


BIG = setting("a(n=9)", of(90, 0.9), of(80, 0.6))
SMALL = setting("a(n=1)", of(10, 0.5), of(10, 0.6))
WHOLE = setting("none", of(100, 1.0), of(100, 0.9), chosen=False, whole=True)


def test_what_is_dominated_on_what_was_held_out() -> None:
    """The big one is as good there as the small one, which costs less."""
    found = tuned(BIG, SMALL, WHOLE)
    assert numbers(found) == {"a(n=9)": "1", "a(n=1)": "2", "none": "W"}
    assert dominated(found) == {"a(n=9)": "dominated by 2", "a(n=1)": "on the frontier", "none": "on the frontier"}


def test_a_setting_that_failed_on_what_was_held_out() -> None:
    """It keeps its row, with the reason beneath; the others theirs."""
    none = Missing("failed", "in c7: IndexError")
    lost = TrialFigures(none, none)
    found = tuned(Setting("a(n=9)", True, False, of(90, 0.9), lost, failed="in c7: IndexError"), SMALL, WHOLE)
    text = markdown(list(tables(found)))
    assert "(failed)" in text
    assert "a(n=9) failed on the held-out conversations: in c7: IndexError." in text
    assert as_json(found)["settings"][0]["held_out"]["cost"] == none


def test_nothing_is_worth_it() -> None:
    """Where the whole history dominates all, that is said first."""
    text = markdown(list(tables(tuned(BIG, WHOLE, worth=False))))
    assert "n is 9, an end of its range, in 1 setting of the frontier: better ones may lie beyond" in text
    assert "No setting is worth its cost: the whole history costs no more than any of them, and is no worse." in text


def test_differences_are_in_pairs() -> None:
    """Half the cost in every conversation is −50 % exactly, and no cost falls by more than all of it."""
    names, kept = [*"abcdefghijklmno"], [(1, 1), (2, 2), (9, 9)] * 5
    whole = Tried("none", names, [2.0, 4.0, 60.0] * 5, {"grounding": kept}, 0, 15)
    half = Tried("x", names, [1.0, 2.0, 30.0] * 5, {"grounding": [(1, 1), (1, 2), (9, 9)] * 5}, 0, 15)
    found = against(half, whole, "grounding", {})
    assert found is not None
    assert found.cost.value == -0.5
    assert isinstance(found.cost.shown, Ends)
    assert found.cost.shown.low >= -1
    assert round(float(str(found.quality.value)), 9) == round(-1 / 12, 9)
