"""C26, C27: how often the RAG tier finds what an answer rests on, and how long a search takes (design document 004)."""

from __future__ import annotations

from importlib.util import find_spec
from time import process_time

import numpy as np

from ...metrics.statistics.interval import Interval
from ...metrics.statistics.student import of_seeds
from ...metrics.value import Missing
from ...strategies.tiers.rag import Retriever
from ...strategies.tiers.rag.hnsw import Graph
from ...strategies.tiers.rag.switching import Kind, Vectors
from ..models import Models, Settings
from ..retrieving import measured, rows, together, ways
from .claim import Claim, Claimed, Measured, Row, Unit
from .inputs import Inputs
from .vectors import ASKED, DIMENSION, block, blocks, gibibytes, nearest, searched

BY: tuple[Retriever, ...] = ("vector", "bm25", "graph")
ALL = "vector + bm25 + graph, rrf"
FEW, MANY = 100_000, 1_000_000
QUERIES, BATCHES = 300, 5
"""Questions, in so many batches: the interval is over the p95 of each."""


def accuracy(inputs: Inputs) -> Measured:
    """C26. Each retriever alone, every two, all three; what decides is all three, fused by ranks."""
    recorded = [each for each in inputs.recorded if each.probes]
    found, _ = together(measured(recorded or inputs.said, BY, Models(Settings().checked())))
    conversations = len({each.conversation for each in found})
    made = [
        Row(
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
    return Measured(
        tuple(made),
        "All three look for words (the embedder is `offline`), and fail together where the question has other words.",
        "Embeddings of meaning, and more than five messages for questions that rest on several.",
    )


def latency(inputs: Inputs) -> Measured:
    """C27. By default over 100,000 vectors, which says nothing of a million; with `--slow` over both."""
    made = [*_searched(FEW, "hnsw", False), *_searched(FEW, "exact", False)]
    if inputs.slow:
        made += _searched(MANY, "hnsw", True)
    else:
        made.insert(
            0,
            Row(
                setting=f"hnsw, {MANY:,} vectors",
                figure="p95 of a search",
                unit="ms",
                found=Missing("unsupported", "building it takes a quarter of an hour and 3 GiB: --slow does"),
                claimed=Claimed(most=300.0),
                timed=True,
            ),
        )
    return Measured(
        tuple(made),
        "Vectors are made with a seed, as hard to search as real ones; one search at a time, one thread.",
        "`ctxbench claims --only C27 --slow`.",
    )


def _searched(size: int, kind: Kind, decides: bool) -> list[Row]:
    """The p95 of a search, what of the nearest it finds, and what building took."""
    if kind == "hnsw" and find_spec("faiss") is None:
        missing = Missing("unsupported", "faiss is not installed: pip install 'ctxbench[tiers]'")
        return [_row(size, kind, "p95 of a search", "ms", missing, decides)]
    index, began = Vectors(DIMENSION, kind, Graph(threads=2)), process_time()
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
) -> Row:
    return Row(
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
