"""Probes asked of the RAG tier, and `ctxbench lab tiers rag` as a user runs it."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from ctxbench.harness.models import OFFLINE
from ctxbench.harness.tier_bench.rag import Built, RagMeasurement, against, rows, searched, ways
from ctxbench.metrics.value import Missing
from ctxbench.reports.tiers import as_json, tables
from ctxbench.scenarios.model import Conversation, Message, Probe
from ctxbench.scenarios.readers.question_sets import Locomo
from ctxbench.scenarios.source import Problems
from ctxbench.strategies.tiers.rag import RETRIEVERS, RagRules, Retriever
from tests.harness.command import ctxbench

RECALLS = ["recall", "recall_at_twice"]
NEEDS_HNSWLIB = pytest.mark.skipif(find_spec("hnswlib") is None, reason="needs hnswlib")


def found_in(*conversations: Conversation, by: tuple[Retriever, ...]) -> tuple[pd.DataFrame, list[Built]]:
    """Search for all probes of some conversations."""
    return searched(conversations, RagRules(retrievers=by), OFFLINE)


def conversation(name: str = "c") -> Conversation:
    said = (
        ("s", "system", "Anna's rules: the cabin is hers."),
        ("m1", "user", "Anna Berg rents a cabin in Lofoten."),
        ("m2", "assistant", "Noted."),
        ("m3", "user", "The report AB-1234 is due in March."),
        ("m4", "assistant", "Anna Berg moved to the other cabin, in Bergen."),
    )
    probes = (
        Probe("late", "Where is Anna's cabin in Bergen?", ("Bergen",), ("m4",), "updated"),
        Probe("early", "Where is Anna's cabin?", ("Lofoten",), ("m1", "s"), "single", after="m3"),
        Probe("rules", "Whose is the cabin?", ("Anna",), ("s",), "single"),
        Probe("none", "What is the price?", (), (), "none", answerable=False),
    )
    return Conversation(name, tuple(Message(at, role, text) for at, role, text in said), probes=probes)  # type: ignore[arg-type]


@NEEDS_HNSWLIB
def test_an_index_beside_an_exact_search() -> None:
    """So few vectors are all found."""
    exact, graph = (RagRules(retrievers=("vector",), index=index) for index in ("exact", "hnsw"))
    for rules in (exact, graph):
        assert searched([conversation()], rules, OFFLINE)[0][RECALLS].to_numpy().tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize("after", ["s", "m1"])
def test_evidence_that_comes_later_is_not_asked(after: str) -> None:
    """As in the tier: a probe counts for the evidence before it, and not at all where there is none."""
    probes = (
        Probe("too early", "Where is Anna's cabin in Bergen?", ("Bergen",), ("m4",), "updated", after=after),
        Probe("both", "Where is Anna's cabin?", ("Lofoten",), ("m1", "m4"), "single", after="m3"),
    )
    asked = Conversation("c", conversation().messages, probes=probes)
    outcomes, _ = found_in(asked, by=("vector",))
    assert outcomes[["category", *RECALLS]].to_numpy().tolist() == [["single", 1.0, 1.0]]


def test_only_what_was_said_before_a_probe_is_searched() -> None:
    """A probe is asked after its message: what comes later is not found. What rests on system messages is not asked."""
    found, built = found_in(conversation(), by=("bm25",))
    assert found[["category", *RECALLS]].to_numpy().tolist() == [["single", 1.0, 1.0], ["updated", 1.0, 1.0]]
    assert [each.passages for each in built] == [4]
    unasked = Conversation("x", conversation().messages)
    assert list(map(len, found_in(unasked, by=("bm25",)))) == [0, 0]


def test_ways() -> None:
    """Each retriever, each two and all three, these in two ways; one alone has nothing to be fused with."""
    assert len(ways(RETRIEVERS)) == 3 + 4 * 2
    found, _ = found_in(conversation("a"), conversation("b"), by=RETRIEVERS)
    made = rows(found, RETRIEVERS)
    assert all(row.recall_at_twice.mean == 1.0 for row in made)
    assert against(found, made).difference.mean == 0  # type: ignore[union-attr]
    alone, _ = found_in(conversation(), by=("bm25",))
    assert against(alone, rows(alone, ("bm25",))) is None


def test_searches_that_are_not_timed_find_the_same() -> None:
    """They keep a question's vector and scores from way to way, and from a tier that has grown they take none."""
    both = (searched([conversation()], RagRules(), OFFLINE, 1, timed=timed)[0] for timed in (True, False))
    timed, kept = (outcomes.drop(columns="milliseconds") for outcomes in both)
    pd.testing.assert_frame_equal(timed, kept)


def test_recall_by_category_has_its_interval() -> None:
    """Over independent units, as the recall of all: two conversations have their range, and no interval."""
    found, built = found_in(conversation("a"), conversation("b"), by=("bm25",))
    found.loc[found.conversation == "b", RECALLS] = 0.0
    (row,) = rows(found[(found.category == "single") | (found.conversation == "a")], ("bm25",))
    assert row.categories["single"].mean == 0.5  # type: ignore[union-attr]
    assert row.categories["single"].low.across == (0.0, 1.0)  # type: ignore[union-attr]
    assert row.categories["updated"].mean == 1  # type: ignore[union-attr]
    assert isinstance(row.categories["updated"].low, Missing)  # type: ignore[union-attr]
    measured = RagMeasurement(5, 3, [row], None, built)
    table = next(table for table in tables(measured) if "category" in table.title)
    assert (table.heads, table.rows) == (
        ("retrievers", "single", "updated"), (("bm25", "50.0 % [0.0 to 100.0 %]", "100.0 % [100.0 %]"),)
    )  # fmt: skip
    assert as_json(measured)["ways"][0]["categories"]["single"]["mean"] == 0.5


@pytest.mark.slow
def test_locomo(recordings: Path) -> None:
    """On LoCoMo with audited evidence words find half of it among five, and fusion no less (decision 17)."""
    folder = recordings / "locomo"
    reader = Locomo(corrections=str(folder / "errors.json"))
    _, talk = next(iter(reader.read([folder / "data" / "locomo10.json"], Problems())))
    found, _ = found_in(talk, by=RETRIEVERS)
    made = {row.name: row.recall.mean for row in rows(found, RETRIEVERS)}
    assert made["bm25"] > 0.5  # type: ignore[operator]
    assert made["vector + bm25 + graph, rrf"] > made["bm25"] - 0.02  # type: ignore[operator]


def test_the_command(tmp_path: Path) -> None:
    """Tables on a terminal."""
    shown = ctxbench("lab", "tiers", "rag(recordings='smoke')", cwd=tmp_path).stdout
    assert "Recall of the evidence of" in shown
    assert "vector + bm25 + graph, reranked" in shown
    assert "the best single retriever" in shown


def test_recordings_without_probes(tmp_path: Path) -> None:
    """There is nothing to look for."""
    (tmp_path / "c.jsonl").write_bytes(Conversation("c", conversation().messages).to_json() + b"\n")
    said = ctxbench("lab", "tiers", "rag(recordings='c.jsonl')", cwd=tmp_path, code=2).stderr
    assert "no conversation has a probe with evidence" in said
