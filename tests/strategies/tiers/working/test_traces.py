"""The traces are what they say they are, and a replay does what the policy does."""

import numpy as np
import pytest

from ctxbench.metrics.hit_rates import rates
from ctxbench.scenarios.model import Conversation, Message, Probe, ToolCall
from ctxbench.strategies.tiers.working.policies import parse
from ctxbench.strategies.tiers.working.policy import Successors
from ctxbench.strategies.tiers.working.traces import TRACES, Trace, recorded, replay


@pytest.mark.parametrize("name", TRACES)
def test_the_same_seed_makes_the_same_trace(name: str) -> None:
    """And another seed another; items are numbered without gaps that matter."""
    one, again, other = TRACES[name](3), TRACES[name](3), TRACES[name](4)
    assert (one.ids == again.ids).all()
    assert (one.sizes == again.sizes).all()
    assert not np.array_equal(one.tokens, other.tokens)
    assert one.name == name
    assert 0 <= one.ids.min() <= one.ids.max() < len(one.sizes)
    assert one.counted.any()
    assert 180 < one.sizes.mean() < 220


def test_lru_k_needs_repetitions() -> None:
    """Of the document's 1000 look-ups 871 are the first of their message: LRU-K cannot be told from LRU. Of ten times
    as many most are repetitions, and what is asked twice stays: it is ahead.
    """
    short, long = TRACES["mem_002"](0), TRACES["mem_002"](0, 10_000)
    assert len(set(short.ids[-1_000:].tolist())) == 871
    policies = parse("lru_k"), parse("lru")
    ahead = [
        np.subtract(*(replay(trace, policy, 131_072).hits[10_000:].mean() for policy in policies))
        for trace in (short, long)
    ]
    assert abs(ahead[0]) < 0.005
    assert ahead[1] > 0.02


@pytest.mark.parametrize("name", ["mem_002", "mem_002_recent", "mem_002_pareto"])
def test_eighty_of_a_hundred_look_ups_go_to_a_fifth(name: str) -> None:
    """1000 look-ups after 10 000 messages; the fifth is by popularity."""
    trace = TRACES[name](0)
    assert trace.counted.sum() == 1_000
    assert trace.popularity is not None
    hot = np.argsort(-trace.popularity, kind="stable")[:2_000]
    assert abs(np.isin(trace.ids[trace.counted], hot).mean() - 0.8) < 0.04
    assert trace.popularity.sum() == pytest.approx(1)


def plain(said: str, likeness: object = None) -> Trace:
    ids = np.array([ord(each) - ord("a") for each in said])
    every = np.ones(len(ids), bool)
    return Trace("by hand", ids, np.ones(26, np.int64), every, likeness)  # type: ignore[arg-type]


def test_a_replay_reports_hits_evictions_and_what_was_loaded() -> None:
    """a b a c a b in two places under LRU: two hits; b, then c leave; four tokens are loaded."""
    found = replay(plain("abacab"), parse("lru"), 2)
    assert found.hits.tolist() == [False, False, True, False, True, False]
    assert (found.evictions, found.loaded) == (2, 4)


def test_the_hybrid_score_sees_what_is_like_the_context() -> None:
    """b is like everything, a like nothing: with half of the weight on likeness, a leaves though it was used last."""
    likeness = np.array([0.0, 1.0, *[0.5] * 24])
    assert replay(plain("bacb", lambda at: likeness), parse("hybrid(profile='context')"), 2).hits[-1]
    assert not replay(plain("bacb"), parse("hybrid(profile='context')"), 2).hits[-1]


def test_the_accesses_of_a_recording() -> None:
    """Messages arrive; the call goes back to who said the order's number, the probe to its evidence."""
    talk = Conversation(
        "talk",
        (
            Message("s", "system", "You help."),
            Message("u1", "user", "My order is A-7712.", time=10.0),
            Message("a1", "assistant", "Noted.", time=11.0),
            Message("u2", "user", "Where is it?", time=12.0),
            Message("a2", "assistant", "", calls=(ToolCall("c", "find", '{"order": "A-7712"}'),), time=13.0),
            Message("t", "tool", "It is in Leeds.", answers="c"),
        ),
        probes=(Probe("p", "Where?", ("Leeds",), evidence=("t",)),),
    )
    trace = recorded(talk, lambda message: len(message.text) + 1)
    assert trace.ids.tolist() == [1, 2, 3, 1, 4, 5, 5]
    assert trace.counted.tolist() == [False, False, False, True, False, False, True]
    assert trace.tokens.tolist() == [20, 7, 13, 20, 1, 16, 16]
    assert trace.likeness is not None
    like = trace.likeness(0)
    assert like[1] == pytest.approx(1)
    assert rates(replay(trace, parse("lru_k"), 100).hits, trace.tokens, trace.counted).hits == 1.0


def test_what_usually_follows_is_predicted() -> None:
    """b followed a twice: after a, b is needed; one occurrence alone says nothing."""
    chain = Successors()
    for id in "abab":
        chain.learn(id)
    assert (chain.after("a"), chain.after("b"), chain.after("c")) == (["b"], [], [])
