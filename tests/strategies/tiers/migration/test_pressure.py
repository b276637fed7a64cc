"""Who moves, and when: pressure, cool-down, predictions, decay, policies."""

from collections.abc import Iterator

from ctxbench.strategies.events import LimitReached
from ctxbench.strategies.tiers.heat import Replacement
from ctxbench.strategies.tiers.jobs import MoveReason, Trigger
from ctxbench.strategies.tiers.migration import Migration, Tier
from ctxbench.strategies.tiers.quota import Quota, Quotas
from ctxbench.strategies.tiers.tiered.tiers import DictStore

from .bench import WORDS, Bench


def test_hard_pressure_sends_the_coldest_down_at_once() -> None:
    """Working holds 60: for a third item of 25 the coldest leaves, until the soft limit of 57 is kept."""
    bench = Bench()
    for now, id in enumerate("ab"):
        bench.migration.put(id, WORDS, 25, "working", now)
    bench.migration.get("a", 2)
    assert bench.migration.put("c", WORDS, 25, "working", 3) == "working"
    assert bench.moved() == [("b", "working", "archive")]
    assert bench.migration.tokens("working") == 50


def test_pressure_goes_down_the_tiers() -> None:
    """Working pushes into a full Archive, which pushes into RAG. What is moving is not pushed out itself."""
    bench = Bench()
    for now, (id, tier) in enumerate([("a", "archive"), ("b", "archive"), ("c", "working")]):
        bench.migration.put(id, WORDS, 55, tier, now)
    bench.migration.promote("a", "working", Trigger.EXPLICIT_ACCESS, 4)
    assert [outcome.why for outcome in bench.migration.run(4) if outcome.job.id == "a"] == [None]
    assert bench.migration.tier("a") == "working"
    assert bench.moved() == [("b", "archive", "rag"), ("c", "working", "archive"), ("a", "archive", "working")]


def test_medium_pressure_frees_to_the_warning_and_soft_pressure_frees_what_is_cold() -> None:
    """58 of 60: the coldest leave until less than 48 are held. 50 of 60: nobody is cold yet, and an hour later all."""
    bench = Bench()
    for now in range(29):
        bench.migration.put(f"m{now}", WORDS, 2, "working", now)
    outcomes = bench.migration.run(29)
    assert {each.job.trigger for each in outcomes} == {Trigger.MEDIUM_PRESSURE}
    assert [each.job.id for each in outcomes] == [f"m{number}" for number in range(6)]
    assert bench.migration.tokens("working") == 46
    for now in (30, 31):
        bench.migration.put(f"n{now}", WORDS, 2, "working", now)
    assert bench.migration.run(40) == ()
    (cold, other) = bench.migration.run(3_000)
    assert (cold.job.trigger, cold.job.id, other.job.id) == (Trigger.SOFT_PRESSURE, "m6", "m7")


def test_what_came_just_now_does_not_go_back() -> None:
    """For 30 seconds, unless there is no room or it must be sent."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    bench.migration.collect("working", 10, 0)
    bench.migration.run(0)
    for now, trigger in enumerate([Trigger.EXPLICIT_ACCESS, Trigger.CACHE_MISS], 1):
        bench.migration.promote("a", "working", trigger, now)
        assert [each.why for each in bench.migration.run(now)] == [MoveReason.COOLING]
    bench.migration.promote("a", "working", Trigger.FOCUS_REFERENCE, 3)
    assert [each.why for each in bench.migration.run(3)] == [None]
    assert bench.migration.collect("working", 10, 32.9) == 0
    assert bench.migration.collect("working", 10, 33) == 10


def test_what_is_predicted_has_to_be_hot() -> None:
    """0.65 after one use with the default weights, 0.70 after two at once: the threshold of 0.7."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "archive", 0)
    assert bench.migration.promote("a", "working", Trigger.PREDICTED_USE, 0) is MoveReason.COLD
    bench.migration.get("a", 0)
    assert bench.migration.promote("a", "working", Trigger.PREDICTED_USE, 0) is None
    assert [each.why for each in bench.migration.run(0)] == [None]


def test_decay_sends_down_what_nobody_uses() -> None:
    """0.65 at once, below 0.1 after three half-lives of ten minutes."""
    bench = Bench()
    bench.migration.put("a", WORDS, 10, "working", 0)
    assert bench.migration.decay(600) == 0
    assert bench.migration.decay(1_900) == 10
    bench.migration.run(1_900)
    assert bench.migration.tier("a") == "archive"


def test_the_policy_of_a_tier_says_who_leaves() -> None:
    """A tier that brings its own order is asked for it, and told of all that comes, is used and goes."""

    class Named(Replacement):
        """Names whom it was given, one by one; what is not there is passed over."""

        def __init__(self) -> None:
            self.told: list[object] = []

        def come(self, id: str, tokens: int, now: float, used: bool) -> None:
            self.told.append((id, tokens, now, used))

        def use(self, id: str, now: float) -> None:
            self.told.append((id, now))

        def gone(self, id: str) -> None:
            self.told.append(id)

        def leaving(self, now: float, cold: bool) -> Iterator[str]:
            for id in "zba":
                self.told.append(f"ask {id}")
                yield id

    named = Named()
    upper = Tier("upper", DictStore(), Quota(20), replacement=named)
    lower = Tier("lower", DictStore(), Quota(100))
    migration = Migration([upper, lower], lambda event: None)
    for id in "abc":
        migration.put(id, WORDS, 9, "upper", 0)
    migration.get("a", 1)
    assert migration.ids("lower") == ["b"]
    assert named.told == [("a", 9, 0, True), ("b", 9, 0, True), "ask z", "ask b", "b", ("c", 9, 0, True), ("a", 1)]


def test_each_limit_is_crossed_once_on_the_way_up_and_once_on_the_way_down() -> None:
    """80, 95 and over 100 of 100 tokens; nothing is recorded between."""
    found: list[LimitReached] = []
    quotas = Quotas({"focus": Quota(100)}, found.append)
    for tokens in (79, 80, 94, 95, 100, 101, 150, 100, 90, 10):
        quotas.want("focus", tokens)
    assert found == [
        LimitReached("focus", "warning", 80, 80),
        LimitReached("focus", "soft", 95, 95),
        LimitReached("focus", "hard", 101, 100),
        LimitReached("focus", "hard", 100, 100, up=False),
        LimitReached("focus", "soft", 90, 95, up=False),
        LimitReached("focus", "warning", 10, 80, up=False),
    ]
