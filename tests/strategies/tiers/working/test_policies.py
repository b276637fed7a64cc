"""Each policy on accesses worked out by hand."""

import pytest

from ctxbench.strategies.tiers.working.hybrid import Hybrid
from ctxbench.strategies.tiers.working.policies import POLICIES, parse, text_of
from ctxbench.strategies.tiers.working.segmented import Segmented
from tests.strategies.tiers.working.loads import hits, opened, victims


def test_fifo_evicts_who_came_first_though_it_was_used() -> None:
    """a is used again, and leaves all the same."""
    assert victims("fifo", "abac", 2) == "a"


def test_lru_evicts_who_was_not_used_for_longest() -> None:
    """The same accesses: now b leaves."""
    assert victims("lru", "abac", 2) == "b"


def test_lfu_evicts_who_was_used_least() -> None:
    """b once, a twice; then c once, which is the next to go: newcomers chase each other."""
    assert victims("lfu", "aabcd", 2) == "bc"


def test_arc_gives_more_to_what_returns_from_its_ghosts() -> None:
    """a is used twice (T2). c pushes b out into B1. b returns: T1 should have 1, c, so a leaves from T2."""
    policy = opened("arc", 2)
    for at, id in enumerate("aabc"):
        policy.access(id, 1, at)
    assert policy.access("b", 1, 4).evicted == ("a",)
    assert policy.target == 1.0  # type: ignore[attr-defined]


def test_s3_fifo_lets_one_time_items_through_its_small_queue() -> None:
    """a is used three times and moves to M; what is used once leaves S first."""
    assert hits("s3_fifo(small=0.5)", "aaabcdefga", 4)[-1] == "+"


def test_s3_fifo_has_a_victim_where_its_small_queue_is_all_promoted() -> None:
    """a and b were used three times: both move to M, and a, the oldest there, leaves at once."""
    policy = opened("s3_fifo", 4)
    for at, id in enumerate("aaabbb"):
        policy.access(id, 1, at)
    assert [policy.expel(6) for _ in range(3)] == [("a",), ("b",), ()]


def test_w_tiny_lfu_turns_away_who_was_used_less_than_the_victim() -> None:
    """At 3 tokens the window has 1. a and b were used twice, so c, d and e fall out of the window into nothing."""
    assert hits("w_tiny_lfu", "aabbcdeab", 3) == "-+-+---++"


def test_segmented_promotes_on_a_hit_and_demotes_what_is_over() -> None:
    """At 4 tokens hot has 1: a is hot after two hits, and b, hit twice after it, takes its place."""
    policy = opened("segmented", 4)
    assert isinstance(policy, Segmented)
    for at, id in enumerate("aaa"):
        policy.access(id, 1, at)
    assert [len(queue) for queue in policy.queues] == [0, 0, 1]
    for at, id in enumerate("bbb"):
        policy.access(id, 1, 3 + at)
    assert [len(queue) for queue in policy.queues] == [0, 1, 1]
    assert policy.at == {"a": 1, "b": 2}


def test_belady_evicts_who_is_needed_last() -> None:
    """At c, a is needed next and b later: b leaves. Then a and c are never needed again, and a came first."""
    assert victims("belady", "abcab", 2) == "ba"
    assert hits("belady", "abcab", 2) == "---+-"


@pytest.mark.parametrize("name", ["belady", "belady_size"])
def test_belady_evicts_the_oldest_of_equals_whatever_its_id(name: str) -> None:
    """None of the three is needed again, and b came first."""
    assert victims(name, "bac", 2) == "b"


def test_belady_by_size_gives_up_one_large_item_for_many_small() -> None:
    """x fills half; needed sooner than the others, it still costs more room for longer."""
    said = [("x", 6), ("a", 1), ("b", 1), ("c", 1), ("x", 6), ("a", 1), ("b", 1)]
    plain, by_size = (opened(name, 8, [id for id, _ in said]) for name in ("belady", "belady_size"))
    left = [
        [policy.access(id, tokens, at).evicted for at, (id, tokens) in enumerate(said)] for policy in (plain, by_size)
    ]
    assert left[0][3] == ("b",)
    assert left[1][3] == ("x",)


def test_hybrid_weighs_recency_frequency_and_similarity() -> None:
    """a was used often and long ago, b just now: LRU-like weights keep b, the others keep a."""
    kept = {}
    for profile in ("conversation", "knowledge", "context"):
        policy = opened(f"hybrid(profile={profile!r})", 2)
        assert isinstance(policy, Hybrid)
        policy.similarity = {"a": 1.0, "b": 0.0}.__getitem__
        for at, id in enumerate("aaab"):
            policy.access(id, 1, at)
        kept[profile] = policy.access("c", 1, 4).evicted
    assert kept == {"conversation": ("a",), "knowledge": ("b",), "context": ("b",)}


class TestLruK:
    def test_evicts_by_the_time_before_the_last(self) -> None:
        """a at 0 and 1, b at 2 and 3, then a at 4: the second last of a is 1, of b 2. LRU would evict b."""
        assert victims("lru_k", "aabbac", 2) == "a"
        assert victims("lru", "aabbac", 2) == "b"

    def test_fewer_than_k_go_first_and_of_those_the_least_recent(self) -> None:
        """b and c were used once: b leaves, though a was used longer ago."""
        assert victims("lru_k", "aabcd", 3) == "b"

    def test_remembers_what_left(self) -> None:
        """b leaves for c and returns: that is its second reference. Without memory b is next to leave again."""
        assert victims("lru_k", "aabcbcbcb", 2) == "bca"
        assert victims("lru_k(retained=0)", "aabcbcbcb", 2) == "bcbcbc"

    def test_a_burst_is_one_reference(self) -> None:
        """b is used at 1, 2 and 3, a at 0 and 8. As one reference b leaves first, as three a does."""
        left = []
        for period in (0, 2):
            policy = opened(f"lru_k(correlated={period})", 2)
            said = (("a", 0), ("b", 1), ("b", 2), ("b", 3), ("a", 8), ("c", 20))
            left.append([policy.access(id, 1, time).evicted for id, time in said][-1])
        assert left == [("a",), ("b",)]

    def test_history_moves_by_the_length_of_a_burst(self) -> None:
        """By the paper's figure: a at 0, 1 and 2 within 2 of each other, then at 9: HIST(a, 2) = 0 + (2 - 0)."""
        policy = opened("lru_k(correlated=2)", 2)
        for time in (0, 1, 2, 9):
            policy.access("a", 1, time)
        assert policy.history == {"a": (9, 2)}  # type: ignore[attr-defined]

    def test_is_not_evicted_within_its_correlated_period(self) -> None:
        """b came at 18 and has no second reference. At 20 it would leave, but for its period of 5: a leaves."""
        left = []
        for period in (0, 5):
            policy = opened(f"lru_k(correlated={period})", 2)
            said = (("a", 0), ("a", 10), ("b", 18), ("c", 20))
            left.append([policy.access(id, 1, time).evicted for id, time in said][-1])
        assert left == [("b",), ("a",)]

    def test_forgets_after_its_time(self) -> None:
        """Histories of what left are dropped in time: memory does not grow with all that was ever seen."""
        policy = opened("lru_k(retained=10)", 4)
        for at in range(5_000):
            policy.access(str(at), 1, at)
        assert len(policy.history) < 200  # type: ignore[attr-defined]


class TestLruKOfTheDocument:
    def test_evicts_what_it_says_it_protects(self) -> None:
        """c has fewer than K uses, "infinite = protected", and leaves before a and b, which have K."""
        assert victims("lru_k_document", "aabbcd", 3) == "c"

    def test_forgets_on_eviction_and_freezes(self) -> None:
        """x and y alternate and never stay, however often they are asked for: O'Neil's lets the second use count."""
        said = "aabb" + "xy" * 10
        assert hits("lru_k_document", said, 3)[5:].count("+") == 0
        assert hits("lru_k", said, 3)[5:].count("+") > 10

    def test_its_clock_ties_within_a_millisecond(self) -> None:
        """a and b have K uses in the same millisecond each: who came first leaves, though it was used last."""
        policy = opened("lru_k_document", 2)
        for id, time in (("a", 0.0), ("b", 0.0001), ("b", 0.0002), ("a", 0.0003)):
            policy.access(id, 1, time)
        assert policy.access("c", 1, 0.0004).evicted == ("a",)


def test_a_policy_as_text_names_what_differs_from_its_defaults() -> None:
    """Parameters are the identity."""
    assert text_of(parse("lru_k(k=2, correlated=20)")) == "lru_k(correlated=20)"
    assert {text_of(parse(name)) for name in POLICIES} == set(POLICIES)
