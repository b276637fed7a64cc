"""The tier as a whole: passages in and out, and questions that it has nothing for."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ctxbench.scenarios.model import Message, ToolCall
from ctxbench.strategies.tiers.rag import (
    RETRIEVERS,
    Passage,
    Rag,
    RagRules,
    passage,
    reciprocal_rank,
    relative,
)
from ctxbench.strategies.tiers.rag.postings import NOTHING, Ranked
from tests.examples import examples
from tests.strategies.tiers.rag.builders import embed, tier

WAYS = [0, 3]
"""Passages that are ranked again."""


def ids(rag: Rag, query: str, **how: object) -> list[str]:
    return [id for id, _ in rag.search(query, **how)]  # type: ignore[arg-type]


@pytest.mark.parametrize("rerank", WAYS)
def test_finds_by_each_way(rerank: int) -> None:
    """A name, an identifier, a Chinese word: what has it comes first."""
    rag = tier()
    assert ids(rag, "Where is Anna's cabin?", rerank=rerank)[0] == "m1"
    assert ids(rag, "When is AB-1234 due?", rerank=rerank)[0] == "m3"
    assert ids(rag, "北京的办公室", rerank=rerank)[0] == "m5"


def test_each_retriever_alone() -> None:
    """`by` asks some of the retrievers."""
    rag = tier()
    for name in RETRIEVERS:
        assert ids(rag, "the quarterly report", k=2, by=[name])[0] == "m3"


@given(gone=st.sets(st.sampled_from(["m1", "m2", "m3", "m4", "m5"])))
@examples(30)
def test_deleted_passages_are_not_found(gone: set[str]) -> None:
    """What is left is found by vector, whatever it says; what is gone by nothing."""
    rag = tier()
    rag.embed()
    rag.delete(gone)
    left = {each.id for each in filter(None, rag.passages)}
    question = "Where is the office and the cabin, and when is the report due? 办公室"
    assert set(ids(rag, question)) <= left
    assert rag.vectors is not None
    found = rag.vectors.search(embed([question], True)[0], 9).numbers.tolist()
    assert {rag.at(number).id for number in found} == left


def test_the_same_id_twice() -> None:
    """A second passage of an id is refused by name, with all that came with it; deleted, the id is free again."""
    rag = tier()
    with pytest.raises(ValueError, match=r"delete it first: .*m1"):
        rag.add([Passage("m9", "new"), Passage("m1", "again")])
    with pytest.raises(ValueError, match=r"delete it first: .*m9"):
        rag.add([Passage("m9", "new"), Passage("m9", "again")])
    assert len(rag) == 5
    assert "m9" not in rag
    rag.delete(["m1"])
    rag.add([Passage("m1", "Anna Berg sold the cabin")])
    assert ids(rag, "Anna")[0] == "m1"


def test_an_embedder_that_fails() -> None:
    """Adding needs no embedder. A search that does raises what it raises, and the next one catches up."""
    broken = True

    def failing(texts: Sequence[str], query: bool) -> NDArray[np.float32]:
        if broken:
            raise RuntimeError("no embedder today")
        return embed(texts, query)

    rag = Rag(RagRules(), failing)
    rag.add([Passage("a", "the quarterly report"), Passage("b", "the weather")])
    with pytest.raises(RuntimeError, match="no embedder today"):
        rag.search("report")
    assert ids(rag, "report", by=["bm25", "graph"]) == ["a"]
    broken = False
    assert ids(rag, "report", by=["vector"])[0] == "a"


@pytest.mark.parametrize("rerank", WAYS)
def test_identical_messages(rerank: int) -> None:
    """Many of the same message: it is found, newest first, and what else there is is found too."""
    rag = Rag(RagRules(), embed)
    rag.add([Passage("odd", "Anna Berg rents a cabin")])
    rag.add([Passage(f"s{at}", "the server answers again") for at in range(1500)])
    assert ids(rag, "server", k=3, rerank=rerank) == ["s1499", "s1498", "s1497"]
    assert ids(rag, "cabin", k=3, rerank=rerank)[0] == "odd"
    assert rag.vectors is not None
    assert rag.vectors.different == 2
    rag.delete([f"s{at}" for at in range(1499)])
    assert ids(rag, "server", k=3, by=["bm25", "graph"]) == ["s1499"]


def test_message_as_a_passage() -> None:
    """A message is searched by who said it, what, and its tool calls."""
    said = Message("m", "assistant", "Booked. ", (ToolCall("c", "book", '{"seat": "12A"}'),), name="Anna")
    assert passage(said) == ("m", 'Anna: Booked.\nbook {"seat": "12A"}')
    assert passage(Message("t", "tool", "ok", answers="c", name="book")).text == "ok"


def ranking(*pairs: tuple[int, float]) -> Ranked:
    return Ranked(np.array([number for number, _ in pairs]), np.array([score for _, score in pairs]))


ONE, OTHER = ranking((7, 4.0), (3, 2.0)), ranking((3, 0.9), (5, 0.3))


def test_reciprocal_rank() -> None:
    """3 is second and first, 1/62 + 1/61; 7 is first, 1/61; 5 is second, 1/62."""
    found = reciprocal_rank([ONE, OTHER], 5)
    assert found.numbers.tolist() == [3, 7, 5]
    assert found.scores == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_nothing_to_fuse() -> None:
    """Empty rankings count for nothing, and scores that are not above 0 neither."""
    assert tier().search("cabin", by=[]) == []
    assert reciprocal_rank([NOTHING, OTHER], 5).numbers.tolist() == [3, 5]
    assert relative(np.array([-1.0, 0.0])).tolist() == [0, 0]


def test_of_equal_ones_the_later() -> None:
    """Two that are first once each are equal: the later one leads."""
    assert reciprocal_rank([ranking((1, 1.0)), ranking((2, 1.0))], 5).numbers.tolist() == [2, 1]
