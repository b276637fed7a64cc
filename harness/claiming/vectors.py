"""Vectors that are made with a seed, as hard to search as real ones, and the measuring of an index over them.

384 coordinates, unit length: 1 000 around each of the centres, spread in 48 dimensions. So chosen that 100 000 of them
are searched as well as the same number of real embeddings (static MiniLM, M = 16, efConstruction = 200): recall@10 of
.93, .97 and .99 at efSearch 64, 128 and 256, where real ones gave .94, .98 and .99. A million are harder than 615 209
real ones: .83 at 128, where those gave .95.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from time import perf_counter, thread_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...metrics.retrieval import Latency, latency
from ...strategies.tiers.rag.switching import Vectors
from ...strategies.tiers.rag.vectors import Index

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


def searched(index: Index | Vectors, queries: NDArray[np.float32], exact: list[set[int]], k: int = 10) -> Searched:
    """Every query on its own."""
    wall, cpu, hits = [], [], 0
    for query, wanted in zip(queries, exact, strict=True):
        began, busy = perf_counter(), thread_time()
        found = index.search(query, k)
        cpu.append((thread_time() - busy) * 1000)
        wall.append((perf_counter() - began) * 1000)
        hits += len(wanted.intersection(found.numbers.tolist()))
    walls, cpus = latency(wall), latency(cpu)
    assert isinstance(walls, Latency)
    assert isinstance(cpus, Latency)
    return Searched(hits / (k * len(queries)), walls, cpus)


def gibibytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
