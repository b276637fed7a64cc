"""The RAG tier beside its bounds and peers (`make perf`): docs/decisions/0017-search.md explains the figures.

Vectors: exact search beside faiss (`ctxbench lab claims` has hnswlib beside it). Words: ours beside bm25s, whose
weights are fixed when its index is made. Searches are timed one by one on one thread.
"""

from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ctxbench.metrics.language import terms
from ctxbench.metrics.probes import Latency, latency
from ctxbench.strategies.tiers.rag.postings import Bm25
from ctxbench.strategies.tiers.rag.vectors import Vectors

pytestmark = [pytest.mark.perf, pytest.mark.filterwarnings("ignore")]  # what other libraries warn of is theirs
DOCUMENTS = 100_000


@pytest.mark.parametrize("dimension", [384, 2048])
def test_four_thousand_exactly(dimension: int) -> None:
    """Our exact search finds what faiss's flat index finds, in turn with it; the ratio of their times is printed."""
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((4_000, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ours, flat = Vectors(dimension, "exact"), faiss.IndexFlatIP(dimension)
    ours.add(np.arange(4_000), vectors)
    flat.add(vectors)
    faiss.omp_set_num_threads(1)
    took: dict[str, list[float]] = {"ours": [], "faiss": []}
    with threadpool_limits(1):
        for query in np.tile(vectors[:100], (5, 1)):
            began = thread_time()
            found = ours.search(query, 10)
            between = thread_time()
            _, theirs = flat.search(query[None], 10)
            took["faiss"].append(thread_time() - between)
            took["ours"].append(between - began)
            assert found.numbers[0] == theirs[0][0]
    mine, peer = (float(np.median(took[side])) * 1e6 for side in ("ours", "faiss"))
    print(f"\n4,000 × {dimension}: ours {mine:.0f} µs, faiss flat {peer:.0f} µs, {mine / peer:.2f}×")


def texts() -> list[str]:
    """Documents of about 13 words by Zipf's law, the most frequent hundred left out, as stop words are."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 200_001) ** 1.05
    lengths = np.clip(rng.lognormal(3, 0.7, DOCUMENTS).astype(int), 3, 200)
    words = rng.choice(len(share), lengths.sum(), p=share / share.sum())
    parts = np.split(words, np.cumsum(lengths)[:-1])
    return [" ".join(f"t{word}" for word in part if word >= 100) for part in parts]


@pytest.fixture(scope="module")
def documents() -> list[str]:
    return texts()


@pytest.fixture(scope="module")
def questions(documents: list[str]) -> list[str]:
    """Up to eight words of a document each."""
    rng = np.random.default_rng(1)
    picked = [documents[at].split() for at in rng.integers(0, DOCUMENTS, 1000)]
    return [" ".join(dict.fromkeys(rng.permutation(words)[:8])) for words in picked if words]


def timed(search: Callable[[str], Any], questions: list[str]) -> tuple[Latency, Latency]:
    """Each question on its own: wall, and CPU of the thread."""
    search(questions[0])
    wall, cpu = [], []
    for question in questions:
        began, busy = perf_counter(), thread_time()
        search(question)
        cpu.append((thread_time() - busy) * 1000)
        wall.append((perf_counter() - began) * 1000)
    both = latency(wall), latency(cpu)
    assert isinstance(both[0], Latency)
    assert isinstance(both[1], Latency)
    return both


def test_words(documents: list[str], questions: list[str]) -> None:
    """100 000 documents, 2 ms asked for at p95; one more costs microseconds, where bm25s makes its index anew."""
    import bm25s

    ours, began = Bm25(), process_time()
    for text in documents:
        ours.add(text)
    took = process_time() - began
    wall, cpu = timed(lambda question: ours.search(question, 100), questions)
    began = process_time()
    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    peer.index([terms(text) for text in documents], show_progress=False)
    again = process_time() - began

    def asked(question: str, backend: str = "numpy") -> Any:
        return peer.retrieve([terms(question)], k=100, show_progress=False, backend_selection=backend)

    peers = {"numpy": timed(asked, questions)}
    if find_spec("numba") is not None:
        peer.backend = "numba"
        peers["numba"] = timed(lambda question: asked(question, "numba"), questions)
    began = process_time()
    for text in documents[:1000]:
        ours.add(text)
    one = (process_time() - began) / 1000
    print(f"\nours: {took:.1f} s to add, {one * 1e6:.0f} µs one more; search wall {wall}, CPU {cpu}")
    for backend, (wall_of, cpu_of) in peers.items():
        print(f"bm25s, {backend}: {again:.1f} s to index; search wall {wall_of}, CPU {cpu_of}")
