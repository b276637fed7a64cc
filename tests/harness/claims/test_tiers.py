"""Claims on caches, archives, retrieval and latencies of the tiers, on figures made by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from ctxbench.harness.claims import compression, search, tiers
from ctxbench.harness.claims.claim import Verdict, verdict_of
from ctxbench.harness.claims.registry import chosen
from ctxbench.harness.claims.search import Searched
from ctxbench.harness.models import Settings
from ctxbench.harness.tier_bench.archive import BlockSummary, Coded, Lossy
from ctxbench.harness.tier_bench.rag import SearchOutcome
from ctxbench.metrics.probes import Latency
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation, Message
from tests.harness.claims.builders import MANY, SIZES, WORDS, inputs


def test_the_document_evicts_what_it_protects() -> None:
    """A A B C with room for two: B has been used once, is said to be protected, and is what leaves."""
    assert tiers.evicted_protected() == 1


def test_hit_rates_are_compared_by_seed() -> None:
    """Seeds differ more than policies do; a seed without a figure leaves none."""
    ours, base = [0.50, 0.62, 0.71], [0.48, 0.60, 0.68]
    found = tiers.paired(ours, base)
    assert found.low > 0  # type: ignore[union-attr,operator]
    lost = Missing("undefined", "no access counts")
    assert tiers.paired([lost, *ours[1:]], base) == lost


def _hits(monkeypatch: pytest.MonkeyPatch, by: Callable[[str, int], float]) -> None:
    """Policies that have these hit rates, whatever the trace."""

    def timed(samples: list[object], policy: str, size: int) -> tuple[list[float], list[float]]:
        return [by(policy, at) for at in range(len(samples))], [0.1 + at / 1000 for at in range(len(samples))]

    monkeypatch.setattr(tiers, "_timed", timed)
    monkeypatch.setattr(tiers, "TRACES", {name: lambda seed: seed for name in tiers.TRACES})
    for name in ("zipf", "scan"):
        monkeypatch.setattr(tiers, name, lambda seed, length: seed)


@pytest.mark.parametrize(("more", "word"), [(0.1, "holds"), (-0.1, "fails"), (0.0, "cannot tell")])
def test_the_hybrid_score(monkeypatch: pytest.MonkeyPatch, more: float, word: Verdict) -> None:
    """It must beat LRU-K on all four loads; what differs by chance only cannot be told."""
    _hits(monkeypatch, lambda policy, at: 0.5 + 0.01 * (at * (policy == "lru_k") % 3) + more * ("hybrid" in policy))
    assert verdict_of(tiers.hybrid(inputs()).rows) == word


@pytest.mark.parametrize(("more", "last"), [(0.1, "holds"), (-0.1, "fails")])
def test_lru_k_as_written(monkeypatch: pytest.MonkeyPatch, more: float, last: Verdict) -> None:
    """Whatever its hit rates, it evicts what it protects, and fails."""
    _hits(monkeypatch, lambda policy, at: 0.5 + 0.01 * (at % 3) + more * (policy == tiers.DOCUMENT))
    rows = tiers.as_written(inputs()).rows
    assert [row.verdict for row in rows if row.decides] == ["fails", last, last]
    assert verdict_of(rows) == "fails"


@pytest.mark.parametrize(("rate", "word"), [(0.95, "holds"), (0.2, "fails")])
def test_the_working_tiers_hit_rate(monkeypatch: pytest.MonkeyPatch, rate: float, word: Verdict) -> None:
    """LRU-K on the first reading of the load decides; the other readings and policies stand beside it."""
    real = tiers.TRACES["mem_002"]
    monkeypatch.setattr(tiers, "TRACES", dict.fromkeys(("mem_002", *tiers.READINGS), real))
    found = tiers.of_seeds([rate, rate + 0.001, rate - 0.001])
    bound = type("Bound", (), {"hits": 0.99, "expected": 0.5})()
    monkeypatch.setattr(tiers, "bounds", lambda load, size: bound)
    row = type("Row", (), {"hits": found})()
    monkeypatch.setattr(tiers, "measured", lambda load, size, recipes: [row])
    rows = tiers.hit_rate(inputs(quick=True)).rows
    assert verdict_of(rows) == word
    assert [row.setting for row in rows if row.decides] == ["lru_k, mem_002"]


def _archive(monkeypatch: pytest.MonkeyPatch, size: int, share: float, lost: float, speed: float) -> None:
    """Archives that save so much, and quantised vectors that lose so much."""
    sizes = [int(1000 * (1 - share)) + at % 2 for at in range(size)]
    written = [compression.ArchivedConversation(1000, stored, speed * 1e6, 2 * speed * 1e6) for stored in sizes]
    monkeypatch.setattr(compression, "_samples", lambda inputs: [Conversation(str(at), ()) for at in range(size)])
    monkeypatch.setattr(compression, "_archives", lambda inputs, name: written)
    beside = compression.ClaimRow(setting="a model", figure="saved", unit="share", found=Missing("undefined"))
    beside = replace(beside, decides=False)
    monkeypatch.setattr(compression, "_modelled", lambda inputs: beside)
    monkeypatch.setattr(compression, "summarised", lambda items, coding, counter: Lossy(1000, 100, 4000, 200, 0.5))
    tenth = BlockSummary([], 1000, "word" + 99 * " word")
    monkeypatch.setattr(compression, "summaries", lambda items, coding, counter: iter([tenth]))
    quantised = [Coded(800, 40, 2048, 512, 4096, ((0, 1 - lost), (100, 1.0), (200, 1.0)))] * size
    monkeypatch.setattr(compression, "_quantised", lambda inputs: quantised)


def test_compression_and_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lossless rows decide by bytes, the row without a dictionary by MB/s; one archive cannot tell."""
    for share, speed, size, word in zip((0.95, 0.5, 0.95), (900, 90, 900), SIZES, WORDS, strict=True):
        _archive(monkeypatch, size, share, 0.0, speed)
        rows = compression.compression(inputs()).rows
        assert verdict_of(rows) == word
        assert {row.figure for row in rows if row.decides} == {compression.SAVED}
        assert verdict_of(compression.speed(inputs()).rows) == word


def test_each_kind_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four ratios and the loss must hold: vectors that are searched by their codes alone lose too much."""
    for ratio, lost, size, word in zip((12.0, 12.0, 12.0), (0.01, 0.2, 0.01), SIZES, WORDS, strict=True):
        _archive(monkeypatch, size, 0.9, lost, 900)
        monkeypatch.setattr(compression, "_coded", lambda items, level, ratio=ratio: (1000.0 * ratio, 1000.0))
        said = [Conversation(str(at), (Message("m", "user", "?"),)) for at in range(size)]
        assert verdict_of(compression.kinds(inputs(conversations=said)).rows) == word


def test_top_five(monkeypatch: pytest.MonkeyPatch) -> None:
    """All three retrievers, fused by ranks, decide."""
    for recall, size, word in zip((0.95, 0.6, 0.95), SIZES, WORDS, strict=True):
        found = [
            SearchOutcome(way.name, f"c{at}", f"c{at}", f"p{at}", "single", (recall + at % 2 / 100, 1.0), 0.001)
            for at in range(size)
            for way in search.ways(search.BY)
        ]
        monkeypatch.setattr(search, "measured", lambda *_, timed, found=found: [(found, None)])
        rows = search.accuracy(inputs()).rows
        assert verdict_of(rows) == word
        assert [(row.setting, row.figure) for row in rows if row.decides] == [(search.ALL, "evidence recall at 5")]


def test_top_five_has_two_readings_and_an_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the evidence of every question is a recall of 50 % and a hit of 100 %; the remark names the embedder."""
    found = [
        SearchOutcome(way.name, f"c{at}", f"c{at}", f"p{at}", "single", (0.5, 1.0), 0.001)
        for at in range(MANY)
        for way in search.ways(search.BY)
    ]
    asked = []
    monkeypatch.setattr(
        search, "measured", lambda *words, timed: asked.append(words[2].settings.embedder) or [(found, None)]
    )
    made = inputs()
    made.models = Settings(embedder="text-embedding-3-small")
    (claim,) = chosen(["C26"])
    finding = claim.finding(made)
    by = {row.figure: row for row in finding.rows if row.setting == search.ALL}
    assert asked == ["text-embedding-3-small"]
    assert (by["evidence recall at 5"].found.mean, by["hit at 5"].found.mean) == (0.5, 1.0)  # type: ignore[union-attr]
    assert (by["evidence recall at 5"].verdict, by["hit at 5"].decides) == ("fails", False)
    assert "(hit@5) for 100.0 %" in finding.why
    assert "The embedder is `text-embedding-3-small`" in finding.why


def test_a_missing_extra_is_named_whatever_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without faiss the other kinds of data may decide, and the finding says that vectors are not measured, and why."""
    said = [Conversation(str(at), (Message("m", "user", "?"),)) for at in range(MANY)]

    def missing(*_: object) -> None:
        raise MissingExtra("faiss", "tiers")

    (claim,) = chosen(["C24"])
    quantised = compression._quantised
    for ratio, word in ((12.0, "cannot tell"), (1.0, "fails")):
        _archive(monkeypatch, MANY, 0.9, 0.01, 900)
        monkeypatch.setattr(compression, "_quantised", quantised)
        monkeypatch.setattr(compression, "_pairs", missing)
        monkeypatch.setattr(compression, "_coded", lambda items, level, ratio=ratio: (1000.0 * ratio, 1000.0))
        finding = claim.finding(inputs(conversations=said))
        assert finding.verdict == word
        assert finding.why.count("is not measured: needs the extra `tiers`.") == 2


def test_a_million_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 say nothing of a million; --slow builds it, and its p95 decides."""
    few, many = 100, 200
    monkeypatch.setattr(search, "FEW", few)
    monkeypatch.setattr(search, "MANY", many)
    for milliseconds, slow, word in ((10.0, False, "cannot tell"), (10.0, True, "holds"), (900.0, True, "fails")):

        def searched(*_: object, milliseconds: float = milliseconds) -> Searched:
            times = Latency(milliseconds, milliseconds, milliseconds)
            return Searched(0.95, times, times)

        monkeypatch.setattr(search, "searched", searched)
        monkeypatch.setattr(search, "blocks", lambda size: iter(()))
        monkeypatch.setattr(search, "block", lambda size, at, count: np.zeros((count, 4), np.float32))
        monkeypatch.setattr(search, "nearest", lambda size, queries: [set()] * len(queries))
        rows = search.latency(inputs(slow=slow)).rows
        assert verdict_of(rows) == word
        assert {row.setting for row in rows if row.decides} == {f"hnsw, {many:,} vectors"}


def test_percentiles_by_order_statistics() -> None:
    """Of 1..1000 the p99 is about 990, between the 984th and the 998th; of a hundred its upper end is not known."""
    found = tiers.percentile(np.arange(1, 1001, dtype=float).tolist(), 0.99)
    assert not isinstance(found, Missing)
    assert (round(found.mean), found.low, found.high) == (990, 984.0, 998.0)
    few = tiers.percentile([1.0] * 100, 0.99)
    assert isinstance(few.high, Missing)  # type: ignore[union-attr]
    assert isinstance(tiers.percentile([], 0.99), Missing)


def test_latencies_of_the_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation's p99 must be under its own limit; all of it is of the clock."""
    for times, word in (([0.5] * 2000, "holds"), ([60.0] * 2000, "fails"), ([0.5] * 50, "cannot tell")):
        monkeypatch.setattr(tiers, "_items", lambda inputs: [])
        for name in ("_focus_latencies", "_looked_up", "_read"):
            monkeypatch.setattr(tiers, name, lambda _, times=times: times)
        monkeypatch.setattr(tiers, "_moved", lambda _, times=times: (times, times))
        rows = tiers.latencies(inputs()).rows
        assert verdict_of(rows) == word
        assert all(row.timed for row in rows)


@pytest.mark.parametrize(("more", "word"), [(0.05, "holds"), (-0.05, "fails"), (0.0, "cannot tell")])
def test_the_tuner(monkeypatch: pytest.MonkeyPatch, more: float, word: Verdict) -> None:
    """It must raise the hit rate where the load shifts."""

    def followed(load: str, seed: int, tuner: bool = False) -> tuple[float, int]:
        return 0.5 + seed / 100 + tuner * (more + 0.001 * (seed % 3 - 1)), 0

    monkeypatch.setattr(tiers, "followed", followed)
    assert verdict_of(tiers.tuner(inputs()).rows) == word
