"""C26, C27: how often the RAG tier finds what an answer rests on, and how long a search takes (design document 004)."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from importlib.util import find_spec
from time import perf_counter, process_time, thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.probes import Latency, recall
from ...metrics.probes import latency as percentiles
from ...metrics.statistics.bootstrap import Floats
from ...metrics.statistics.intervals import Interval, of_seeds
from ...metrics.value import Missing
from ...strategies.tiers.rag import Retriever
from ...strategies.tiers.rag.hnsw import Graph
from ...strategies.tiers.rag.vector_store import Kind, VectorStore
from ...strategies.tiers.rag.vectors import VectorIndex
from ..models import Models, Settings
from ..tier_bench.rag import measured, rows, together, ways
from .claim import Claim, Claimed, ClaimRow, Measurement, Unit
from .inputs import ClaimInputs
from .rows import of_sums, paired

BY: tuple[Retriever, ...] = ("vector", "bm25", "graph")
ALL = "vector + bm25 + graph, rrf"
FEW, MANY = 100_000, 1_000_000
QUERIES, BATCHES = 300, 5
"""Questions, in so many batches: the interval is over the p95 of each."""


def accuracy(inputs: ClaimInputs) -> Measurement:
    """C26. Each retriever alone, every two, all three; what decides is all three, fused by ranks."""
    recorded = [each for each in inputs.recorded if each.probes]
    found, _ = together(measured(recorded or inputs.said, BY, Models(Settings().checked())))
    conversations = len({each.conversation for each in found})
    made = [
        ClaimRow(
            setting=each.way.name,
            figure="evidence recall at 5",
            unit="share",
            found=each.recalls[0],
            claimed=Claimed(least=0.85, above=True),
            of=f"{len(found) // len(ways(BY))} probes of {conversations} conversations",
            decides=each.way.name == ALL,
        )
        for each in rows(found, ways(BY))
    ]
    return Measurement(
        tuple(made),
        "All three look for words (the embedder is `offline`), and fail together where the question has other words.",
        "Embeddings of meaning, and more than five messages for questions that rest on several.",
    )


def latency(inputs: ClaimInputs) -> Measurement:
    """C27. By default over 100,000 vectors, which says nothing of a million; with `--slow` over both."""
    made = [*_searched(FEW, "hnsw", False), *_searched(FEW, "exact", False)]
    if inputs.slow:
        made += _searched(MANY, "hnsw", True)
    else:
        made.insert(
            0,
            ClaimRow(
                setting=f"hnsw, {MANY:,} vectors",
                figure="p95 of a search",
                unit="ms",
                found=Missing("unsupported", "building it takes a quarter of an hour and 3 GiB: --slow does"),
                claimed=Claimed(most=300.0),
                timed=True,
            ),
        )
    return Measurement(
        tuple(made),
        "Vectors are made with a seed, as hard to search as real ones; one search at a time, one thread.",
        "`ctxbench claims --only C27 --slow`.",
    )


def _searched(size: int, kind: Kind, decides: bool) -> list[ClaimRow]:
    """The p95 of a search, what of the nearest it finds, and what building took."""
    if kind == "hnsw" and find_spec("faiss") is None:
        missing = Missing("unsupported", "faiss is not installed: pip install 'ctxbench[tiers]'")
        return [_row(size, kind, "p95 of a search", "ms", missing, decides)]
    index, began = VectorStore(DIMENSION, kind, Graph(threads=2)), process_time()
    for numbers, vectors in blocks(size):
        index.add(numbers, vectors)
    seconds = process_time() - began
    queries = block(size, ASKED, QUERIES)
    exact = nearest(size, queries)
    each = [
        searched(index, queries[some], [exact[at] for at in some.tolist()])
        for some in np.array_split(np.arange(len(queries)), BATCHES)
    ]
    p95 = of_seeds([found.wall.p95 for found in each])
    recall = of_seeds([found.recall for found in each])
    made = [
        _row(size, kind, "p95 of a search", "ms", p95, decides, Claimed(most=300.0)),
        _row(size, kind, "of the exact nearest 10 found", "share", recall, False, timed=False),
        _row(size, kind, "processor time to build the index", "ms", of_seeds([1000 * seconds]), False),
    ]
    if kind == "hnsw":
        made.append(_row(size, kind, "most memory of this process, GiB", "count", of_seeds([gibibytes()]), False))
    return made


def _row(
    size: int,
    kind: str,
    figure: str,
    unit: Unit,
    found: Interval | Missing,
    decides: bool,
    claimed: Claimed | None = None,
    *,
    timed: bool = True,
) -> ClaimRow:
    return ClaimRow(
        setting=f"{kind}, {size:,} vectors",
        figure=figure,
        unit=unit,
        found=found,
        claimed=claimed,
        of=f"{QUERIES} questions",
        decides=decides,
        timed=timed,
    )


CLAIMS = (
    Claim(
        "C26",
        "Top-5 accuracy is above 85 %",
        "004 §2.4",
        "evidence recall at 5 on annotated probes: vectors, BM25, graph, each pair, all three",
        accuracy,
    ),
    Claim(
        "C27",
        "A search takes less than 300 ms at p95 among a million vectors",
        "004 §2.4",
        "benchmark, with the time to build the index and its memory",
        latency,
        slow=True,
    ),
)

DIMENSION, LATENT, SPREAD, EACH = 384, 48, np.float32(1.5), 1000
BLOCK = 50_000
ASKED = -1
"""The block that queries are taken from."""


def block(size: int, at: int, count: int = BLOCK, seed: int = 1) -> NDArray[np.float32]:
    """`count` unit vectors of the set of `size`: block number `at`."""
    rng = np.random.default_rng([seed, 0])
    centres = rng.standard_normal((size // EACH, LATENT)).astype(np.float32)
    turn = rng.standard_normal((LATENT, DIMENSION)).astype(np.float32)
    rng = np.random.default_rng([seed, 1, at + 1])
    made = centres[rng.integers(0, len(centres), count)]
    made += SPREAD * rng.standard_normal(made.shape, dtype=np.float32)
    vectors: NDArray[np.float32] = made @ turn
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def blocks(size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """All vectors of a set with their numbers, in blocks."""
    for at in range(size // BLOCK):
        yield np.arange(at * BLOCK, (at + 1) * BLOCK), block(size, at)


def nearest(size: int, queries: NDArray[np.float32], k: int = 10) -> list[set[int]]:
    """The exact answer, block by block."""
    cosines = np.full((len(queries), k), -2.0, np.float32)
    numbers = np.zeros((len(queries), k), np.int64)
    for where, vectors in blocks(size):
        every = np.concatenate((cosines, queries @ vectors.T), axis=1)
        names = np.concatenate((numbers, np.broadcast_to(where, (len(queries), len(where)))), axis=1)
        best = np.argpartition(-every, k, axis=1)[:, :k]
        cosines, numbers = np.take_along_axis(every, best, 1), np.take_along_axis(names, best, 1)
    return [set(row.tolist()) for row in numbers]


class Searched(NamedTuple):
    """What searching took and found."""

    recall: float
    wall: Latency
    cpu: Latency
    """Of the thread: what a quiet machine takes."""


def searched(
    index: VectorIndex | VectorStore, queries: NDArray[np.float32], exact: list[set[int]], k: int = 10
) -> Searched:
    """Every query on its own."""
    wall, cpu, hits = [], [], 0
    for query, wanted in zip(queries, exact, strict=True):
        began, busy = perf_counter(), thread_time()
        found = index.search(query, k)
        cpu.append((thread_time() - busy) * 1000)
        wall.append((perf_counter() - began) * 1000)
        hits += len(wanted.intersection(found.numbers.tolist()))
    walls, cpus = percentiles(wall), percentiles(cpu)
    assert isinstance(walls, Latency)
    assert isinstance(cpus, Latency)
    return Searched(hits / (k * len(queries)), walls, cpus)


def gibibytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


LIMIT = 15
"""Facts that are injected, in both: 002's number before the change."""
OURS = f"facts(limit={LIMIT})"
SURE = f"facts(similarity=0.0, confidence=1.0, limit={LIMIT})"
SIMILAR = f"facts(similarity=1.0, confidence=0.0, limit={LIMIT})"
WEIGHTS = {OURS: "0.6 similarity + 0.4 confidence", SURE: "confidence alone", SIMILAR: "similarity alone"}


def weighed(inputs: ClaimInputs) -> Measurement:
    """Evidence recall: of the messages that an answer rests on, those that an injected fact was taken from."""
    found = {name: _recalls(inputs, name) for name in WEIGHTS}
    rows = []
    for other, decides in ((SURE, True), (SIMILAR, False)):
        rows.append(
            ClaimRow(
                setting=f"{WEIGHTS[OURS]} − {WEIGHTS[other]}",
                figure=f"difference in evidence recall of {LIMIT} facts",
                unit="points",
                found=paired(found[other], found[OURS], "ratio"),
                claimed=Claimed(least=0.0, above=True),
                of=inputs.of,
                decides=decides,
            )
        )
    for name, sums in found.items():
        rows.append(_plain(name, of_sums(sums, "ratio"), inputs))
    return Measurement(
        tuple(rows),
        f"At most {LIMIT} facts and 2,000 tokens in all three. Facts are taken from what users and final answers say, "
        "so evidence in tool results is found by none.",
        "More conversations with probes about what was said, not about what tools returned.",
    )


def _plain(name: str, found: Interval | Missing, inputs: ClaimInputs) -> ClaimRow:
    return ClaimRow(
        setting=WEIGHTS[name],
        figure=f"evidence recall of {LIMIT} facts",
        unit="share",
        found=found,
        of=inputs.of,
        decides=False,
    )


def _recalls(inputs: ClaimInputs, strategy: str) -> Floats:
    """By conversation of the run: the recalls of its probes with evidence, summed, and how many these are."""
    run = inputs.run_of(strategy)
    at = {name: place for place, name in enumerate(inputs.figures.digests)}
    sums = np.zeros((len(at), 2))
    rows = run.probes(strategy)
    for conversation, evidence, recalled in zip(rows.conversation, rows.evidence, rows.recalled, strict=True):
        found = recall([] if recalled is None else list(recalled), list(evidence), LIMIT)
        if not isinstance(found, Missing):
            sums[at[str(conversation)]] += found, 1
    return sums


FACT_CLAIMS = (
    Claim(
        "C15",
        "Similarity and confidence pick more relevant facts than confidence alone",
        "002",
        "evidence recall of the facts injected for each probe, at the same number of facts and tokens",
        weighed,
        (OURS, SURE, SIMILAR),
    ),
)
