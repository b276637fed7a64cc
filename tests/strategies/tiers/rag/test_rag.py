"""The tier as a whole: passages in and out, filters that never leak, and questions that it has nothing for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.strategies.tiers.rag import RETRIEVERS, Fusion, Passage, Rag, RagRules, passage
from tests.examples import examples
from tests.strategies.tiers.rag.builders import embed, tier

WAYS = [Fusion(), Fusion(by="weighted"), Fusion(rerank=3, recency=0.2, half_life=100.0)]


def ids(rag: Rag, query: str, **how: object) -> list[str]:
    return [hit.passage.id for hit in rag.search(query, now=600.0, **how)]  # type: ignore[arg-type]


@pytest.mark.parametrize("fusing", WAYS)
def test_finds_by_each_way(fusing: Fusion) -> None:
    """A name, an identifier, a Chinese word: what has it comes first, and says which retrievers found it."""
    rag = tier()
    assert ids(rag, "Where is Anna's cabin?", fusing=fusing)[0] == "m1"
    assert ids(rag, "When is AB-1234 due?", fusing=fusing)[0] == "m3"
    assert ids(rag, "北京的办公室", fusing=fusing)[0] == "m5"
    hit = rag.search("When is AB-1234 due?", 1, now=600.0, fusing=fusing)[0]
    assert set(hit.by) == set(RETRIEVERS)
    assert hit.passage.text.startswith("The quarterly report")


def test_each_retriever_alone() -> None:
    """`by` asks some of the retrievers; what the others would have said is not there."""
    rag = tier()
    for name in RETRIEVERS:
        hits = rag.search("the quarterly report", 2, now=600.0, by=[name])
        assert hits[0].passage.id == "m3"
        assert set(hits[0].by) == {name}


@given(
    user=st.sampled_from([None, "ann", "bob", "nobody"]),
    since=st.none() | st.floats(0, 600),
    until=st.none() | st.floats(0, 600),
    gone=st.sets(st.sampled_from(["m1", "m2", "m3", "m4", "m5"])),
)
@examples(60)
def test_filters_never_leak(user: str | None, since: float | None, until: float | None, gone: set[str]) -> None:
    """Whatever is filtered and deleted, what is found passes; and every passage that passes is found by vector."""
    rag = tier()
    rag.delete(gone)
    passing = {
        each.id
        for each in filter(None, rag.passages)
        if (user is None or each.user == user)
        and (since is None or each.time >= since)
        and (until is None or each.time < until)
    }
    question = "Where is the office and the cabin, and when is the report due? 办公室"
    assert set(ids(rag, question, user=user, since=since, until=until)) <= passing
    everything = Fusion(floor=-2.0)
    assert set(ids(rag, question, user=user, since=since, until=until, by=["vector"], fusing=everything)) == passing


def test_recency_decides_between_equals() -> None:
    """Of two passages that say the same the newer leads once recency counts, and the clock is the caller's."""
    rag = Rag(RagRules(retrievers=("bm25",)))
    rag.add([Passage("new", "the price is 50", time=900.0), Passage("old", "the price is 40", time=100.0)], now=0.0)
    rag.add([Passage("other", "the weather", time=950.0)], now=0.0)
    plain = [hit.passage.id for hit in rag.search("price", 2, now=1000.0)]
    newest = [hit.passage.id for hit in rag.search("price", 2, now=1000.0, fusing=Fusion(rerank=5, recency=1.0))]
    assert plain == ["old", "new"]
    assert newest == ["new", "old"]


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_empty_question(query: str) -> None:
    """An empty question finds nothing, in a full tier and in an empty one."""
    assert tier().search(query, now=0.0) == []
    assert Rag(RagRules(), embed).search("Anna", now=0.0) == []


def test_question_in_another_script() -> None:
    """Words and entities have nothing for a script that nobody wrote in: an empty answer, no error."""
    rag = tier()
    assert rag.search("Где находится хижина?", now=0.0, by=["bm25", "graph"]) == []


def test_the_same_id_twice() -> None:
    """A second passage of an id is refused by name, with all that came with it; deleted, the id is free again."""
    rag = tier()
    with pytest.raises(ValueError, match="there is a passage 'm1' already: delete it first"):
        rag.add([Passage("m9", "new"), Passage("m1", "again")], now=0.0)
    with pytest.raises(ValueError, match="there is a passage 'm9' already"):
        rag.add([Passage("m9", "new"), Passage("m9", "again")], now=0.0)
    assert len(rag) == 5
    assert "m9" not in rag
    rag.delete(["m1"])
    rag.add([Passage("m1", "Anna Berg sold the cabin")], now=700.0)
    assert ids(rag, "Anna")[0] == "m1"
    assert rag.get("m1").time == 700.0  # type: ignore[union-attr]


def test_delete_what_is_not_there() -> None:
    """An unknown id is refused, and nothing is deleted."""
    rag = tier()
    with pytest.raises(KeyError, match="m9"):
        rag.delete(["m1", "m9"])
    assert len(rag) == 5
    assert rag.get("m9") is None


def test_clock_going_backwards() -> None:
    """Times may come in any order: filters look at the time, not at the order."""
    rag = Rag(RagRules(retrievers=("bm25",)))
    for name, time in (("a", 300.0), ("b", 100.0), ("c", 200.0)):
        rag.add([Passage(name, "the same words")], now=time)
    assert {hit.passage.id for hit in rag.search("words", now=50.0, since=150.0)} == {"a", "c"}


@pytest.mark.parametrize(
    ("each", "why"),
    [
        (Passage("x", "text", time=float("nan")), "time nan"),
        (Passage("x", "half \ud800"), "half of a surrogate pair"),
    ],
)
def test_bad_passage(each: Passage, why: str) -> None:
    """A passage that could not be found or stored is refused by name."""
    rag = tier()
    with pytest.raises(ValueError, match=f"'x' (has|contains) .*{why}"):
        rag.add([Passage("fine", "fine"), each], now=0.0)
    assert len(rag) == 5


def test_bad_rules() -> None:
    """Rules and searches that cannot be name what to give."""
    with pytest.raises(ValueError, match="give some of vector, bm25, graph"):
        RagRules(retrievers=("bm25", "bm25"))
    with pytest.raises(ValueError, match="needs an embedder"):
        Rag()
    with pytest.raises(ValueError, match="give 0 or more for each"):
        Fusion(weights=(1.0, -1.0, 1.0))
    with pytest.raises(ValueError, match="half_life above 0"):
        Fusion(half_life=0)
    with pytest.raises(ValueError, match="the retrievers of this tier are vector, bm25, graph"):
        tier().search("x", now=0.0, by=["bm52"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="k=0"):
        tier().search("x", 0, now=0.0)


def test_an_embedder_that_fails() -> None:
    """Adding needs no embedder. A search that does raises what it raises, and the next one catches up."""
    broken = True

    def failing(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        if broken:
            raise RuntimeError("no embedder today")
        return embed(texts, query)

    rag = Rag(RagRules(), failing)
    rag.add([Passage("a", "the quarterly report"), Passage("b", "the weather")], now=0.0)
    with pytest.raises(RuntimeError, match="no embedder today"):
        rag.search("report", now=0.0)
    assert [hit.passage.id for hit in rag.search("report", now=0.0, by=["bm25", "graph"])] == ["a"]
    broken = False
    assert "vector" in rag.search("report", now=0.0)[0].by


@pytest.mark.parametrize("fusing", WAYS)
def test_identical_messages(fusing: Fusion) -> None:
    """Many of the same message: it is found, newest first, and what else there is is found too."""
    rag = Rag(RagRules(), embed)
    rag.add([Passage("odd", "Anna Berg rents a cabin")], now=0.0)
    rag.add([Passage(f"s{at}", "the server answers again") for at in range(1500)], now=1.0)
    assert [hit.passage.id for hit in rag.search("server", 3, now=2.0, fusing=fusing)] == ["s1499", "s1498", "s1497"]
    assert rag.search("cabin", 3, now=2.0, fusing=fusing)[0].passage.id == "odd"
    assert rag.vectors is not None
    assert rag.vectors.different == 2
    rag.delete([f"s{at}" for at in range(1499)])
    assert [hit.passage.id for hit in rag.search("server", 3, now=2.0, by=["bm25", "graph"])] == ["s1499"]


def test_message_as_a_passage() -> None:
    """A message is searched by who said it, what, and its tool calls, and can be had back."""
    said = Message("m", "assistant", "Booked. ", (ToolCall("c", "book", '{"seat": "12A"}'),), name="Anna", time=5.0)
    made = passage(said, user="ann", tokens=9)
    assert made.text == 'Anna: Booked.\nbook {"seat": "12A"}'
    assert (made.id, made.user, made.time, made.tokens, made.message) == ("m", "ann", 5.0, 9, said)
    assert passage(Message("t", "tool", "ok", answers="c", name="book")).text == "ok"
