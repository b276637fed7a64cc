"""C15, C26, C27, C31: how often search and facts bring the evidence of an answer, and how long a search takes."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from importlib.util import find_spec
from time import perf_counter, process_time, thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.language import words
from ctxbench.metrics.probes import Latency, recall
from ctxbench.metrics.probes import latency as percentiles
from ctxbench.metrics.statistics.intervals import Floats, of_seeds, share_interval
from ctxbench.metrics.tfidf import TfIdf
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.model import Conversation, Fact, Message
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Recalled
from ctxbench.strategies.tiers.rag import RETRIEVERS, RagRules
from ctxbench.strategies.tiers.rag.vectors import Graph, Index, Vectors

from ..models import Models
from ..replay import ConversationIndex, RecordedContext, replay
from ..tier_bench import rag
from .claim import Measured, exact, interval
from .inputs import ClaimInputs

ALL = "vector + bm25 + graph, rrf"
FEW, MANY = 100_000, 1_000_000
QUERIES, BATCHES = 300, 5
"""Questions, and the batches that they are split into: the interval is over the p95 of each batch."""


def accuracy(inputs: ClaimInputs) -> Iterator[Measured | dict[str, float | str]]:
    """Measure C26: each retriever alone, every two, all three; all three fused by ranks decide.

    "Accuracy" has two readings: the share of the evidence among the first five (recall@5), which decides, and the share
    of the questions with any of their evidence there (hit@5).
    """
    recorded = [conversation for conversation in inputs.recorded if conversation.probes]
    models = Models(inputs.settings.models.checked())
    try:
        outcomes, _ = rag.searched(recorded or inputs.conversations, RagRules(), models)
    except SetupError as error:
        inputs.failures.append(str(error))
        raise
    conversations = len({outcome.conversation for outcome in outcomes})
    hit: object = Missing("undefined", "")
    for row in rag.rows(outcomes, RETRIEVERS):
        of_way = [outcome for outcome in outcomes if outcome.way == row.name]
        of = f"{len(of_way)} probes of {conversations} conversations"
        has_any = [float(outcome.recalls[0] > 0) for outcome in of_way]
        hit = share_interval(has_any, [outcome.unit for outcome in of_way])
        yield Measured("recall", row.name, row.recall, of)
        yield Measured("hit", row.name, hit, of)
        if row.name == ALL:
            yield {"hit": "not measured" if isinstance(hit, Missing) else interval(hit, "share")}
    yield {"embedder": inputs.settings.models.embedder}


def latency(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C27: by default over 100,000 vectors, which say nothing of a million; with `--effort slow` over both."""
    # A search among 100,000 is faster than among a million, so it can never show that the claim holds.
    if not inputs.settings.slow:
        why = Missing("unsupported", "building it takes a quarter of an hour and 3 GiB: --effort slow does")
        yield Measured("million", f"hnsw, {MANY:,} vectors", why)
    yield from _searched(FEW, "hnsw")
    yield from _searched(FEW, "exact")
    if inputs.settings.slow:
        yield from _searched(MANY, "hnsw")


def _searched(size: int, kind: Index) -> Iterator[Measured]:
    """Yield the p95 of a search, the share of the nearest that it finds, and the time to build the index."""
    setting, of, p95 = f"{kind}, {size:,} vectors", f"{QUERIES} questions", "million" if size == MANY else "p95"
    if kind == "hnsw" and find_spec("hnswlib") is None:
        yield Measured(p95, setting, Missing("unsupported", "needs the extra `hnswlib`"), of)
        return
    index, began = Vectors(DIMENSION, kind, Graph(threads=2)), process_time()
    for numbers, vectors in blocks(size):
        index.add(numbers, vectors)
    seconds = process_time() - began
    queries = block(size, ASKED, QUERIES)
    exact = nearest(size, queries)
    batches = [
        searched(index, queries[batch], [exact[at] for at in batch.tolist()])
        for batch in np.array_split(np.arange(len(queries)), BATCHES)
    ]
    yield Measured(p95, setting, of_seeds([batch.wall.p95 for batch in batches]), of)
    yield Measured("nearest", setting, of_seeds([batch.recall for batch in batches]), of)
    yield Measured("build", setting, of_seeds([1000 * seconds]), of)
    if kind == "hnsw":
        gibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        yield Measured("memory", setting, of_seeds([gibibytes]), of)


DIMENSION, LATENT, SPREAD, EACH = 384, 48, np.float32(1.5), 1000
BLOCK = 50_000
ASKED = -1
"""The block that queries are taken from."""


def block(size: int, at: int, count: int = BLOCK, seed: int = 1) -> NDArray[np.float32]:
    """Return `count` unit vectors of the set of `size`: block number `at`."""
    # Centres and turn are drawn anew for each block, by the same
    # numbers: a million vectors need not be in memory at once.
    rng = np.random.default_rng([seed, 0])
    centres = rng.standard_normal((size // EACH, LATENT)).astype(np.float32)
    turn = rng.standard_normal((LATENT, DIMENSION)).astype(np.float32)
    # The + 1: a seed may not be negative, and the questions' block is -1.
    rng = np.random.default_rng([seed, 1, at + 1])
    points = centres[rng.integers(0, len(centres), count)]
    points += SPREAD * rng.standard_normal(points.shape, dtype=np.float32)
    vectors: NDArray[np.float32] = points @ turn
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def blocks(size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield all vectors of a set with their numbers, in blocks."""
    for at in range(size // BLOCK):
        yield np.arange(at * BLOCK, (at + 1) * BLOCK), block(size, at)


def nearest(size: int, queries: NDArray[np.float32], k: int = 10) -> list[set[int]]:
    """Return the exact nearest neighbours of each query, block by block."""
    # Below every cosine, so that the first block's vectors take
    # all places. Rows are queries; columns are the best k so far.
    cosines = np.full((len(queries), k), -2.0, np.float32)
    numbers = np.zeros((len(queries), k), np.int64)
    for where, vectors in blocks(size):
        every = np.concatenate((cosines, queries @ vectors.T), axis=1)
        names = np.concatenate((numbers, np.broadcast_to(where, (len(queries), len(where)))), axis=1)
        best = np.argpartition(-every, k, axis=1)[:, :k]
        cosines, numbers = np.take_along_axis(every, best, 1), np.take_along_axis(names, best, 1)
    return [set(row.tolist()) for row in numbers]


class Searched(NamedTuple):
    """Recall and time of searches."""

    recall: float
    wall: Latency
    cpu: Latency
    """Processor time of the thread: the time that a quiet machine takes."""


def searched(index: Vectors, queries: NDArray[np.float32], exact: list[set[int]], k: int = 10) -> Searched:
    """Search for every query by itself."""
    wall, cpu, hits = [], [], 0
    for query, neighbours in zip(queries, exact, strict=True):
        began, busy = perf_counter(), thread_time()
        answer = index.search(query, k)
        cpu.append((thread_time() - busy) * 1000)
        wall.append((perf_counter() - began) * 1000)
        hits += len(neighbours.intersection(answer.numbers.tolist()))
    walls, cpus = percentiles(wall), percentiles(cpu)
    assert isinstance(walls, Latency)
    assert isinstance(cpus, Latency)
    return Searched(hits / (k * len(queries)), walls, cpus)


def recalls(inputs: ClaimInputs, strategy: str, limit: int) -> Floats:
    """Return by conversation the sum of the recalls of its probes with evidence, and their number.

    The recall is the share of an answer's evidence that one of the first facts which were injected was taken from.
    """
    row_of = {name: place for place, name in enumerate(inputs.figures.digests)}
    sums = np.zeros((len(row_of), 2))
    rows = inputs.run_of(strategy).probes(strategy)
    for conversation, evidence, recalled in zip(rows.conversation, rows.evidence, rows.recalled, strict=True):
        share = recall([] if recalled is None else list(recalled), list(evidence), limit)
        if not isinstance(share, Missing):
            sums[row_of[str(conversation)]] += share, 1
    return sums


TURNS = ("I'm working on a Python project", "It uses FastAPI and SQLAlchemy", "How do I write tests?")
NEAR = ("Prefers pytest for testing", "Likes type hints in Python", "Expert in Python and FastAPI")
FAR = "Uses Docker for containerization"
"""002's example, verbatim: the three turns, the facts that are to score high, the one that is to score low."""


def example(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C31 by similarity alone: the example says nothing of confidences, so all facts are equally sure."""
    facts = (*NEAR, FAR)
    said = [Message(f"fact {at}", "user", fact) for at, fact in enumerate(facts)]
    said += [Message(f"turn {at}", "user", turn) for at, turn in enumerate(TURNS)]
    stated = tuple(Fact(fact, message.id) for fact, message in zip(facts, said, strict=False))
    conversation = Conversation("002", (*said, Message("reply", "assistant", "Like this.")), facts=stated)
    services = RecordedContext(ConversationIndex(conversation, inputs.counter))
    *_, step = replay(conversation, parse("facts(similarity=1.0, confidence=0.0)"), services)
    recalled = next(event for event in step.events if isinstance(event, Recalled))
    score_of = dict(zip(recalled.sources, recalled.scores, strict=True))
    whole = TfIdf()
    whole.add(map(words, facts))
    scores = {
        "nearer": [score_of[message.id] for message in said[: len(facts)]],
        "whole": whole.cosine(words(". ".join(TURNS))).tolist(),
    }
    for figure, of_facts in scores.items():
        for fact, score in zip(NEAR, of_facts, strict=False):
            setting = f"{fact!r}{', whole words' if figure == 'whole' else ''}"
            yield Measured(figure, setting, exact(round(score - of_facts[-1], 4)), "4 facts, 3 turns")
