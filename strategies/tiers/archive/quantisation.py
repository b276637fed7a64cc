"""Embeddings by product quantisation: 16 times smaller than 32-bit floats, reranked in half precision.

A vector is cut into pieces, and each piece becomes the number of the nearest of 16 centroids. A search ranks
by the codes alone, or takes more candidates from them and ranks those by their vectors in half precision (`rerank`).
The codes are searched in memory; the originals may stay on disk.

faiss runs on one thread here: the same vectors then give the same codes, and idle threads do not stall a shared
machine.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ctxbench.scenarios.errors import MissingExtra

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]

RATIO = 16
"""Compression ratio of the document (004 §2.3)."""
BITS = 4
"""Bits of the number of a centroid. 4 are searched in registers; 8 are a little better, and far slower."""
LEAST = 39 << BITS
"""Fewest vectors for quantisation: faiss wants 39 for each centroid."""


def pieces_of(width: int) -> int:
    """Return the number of pieces of a vector of `width` 32-bit coordinates: a divisor of it."""
    wanted = max(1, width * 32 // (RATIO * BITS))
    return max(number for number in range(1, min(wanted, width) + 1) if width % number == 0)


class Quantised:
    """Quantised vectors. Places count from 0 in the order of the vectors."""

    def __init__(self, vectors: Vectors) -> None:
        """Train centroids on these vectors, one per row and at least LEAST of them, and code them."""
        faiss, width = _faiss(), vectors.shape[1]
        pieces = pieces_of(width)
        self.bytes_each = (pieces * BITS + 7) // 8
        """Bytes of a vector's code."""
        self._codes: Any = faiss.IndexPQFastScan(width, pieces, BITS, faiss.METRIC_INNER_PRODUCT)
        self._originals: Any = faiss.IndexScalarQuantizer(
            width, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self.kept_bytes_each = int(self._originals.code_size)
        """Bytes of a vector in half precision, for reranking."""
        for index in (self._codes, self._originals):
            index.train(vectors)
            index.add(vectors)

    def search(self, questions: Vectors, most: int, rerank: int = 0) -> Places:
        """Return the places of the nearest vectors to each query by inner product, best first, padded with -1.

        `rerank` candidates of the codes are ranked by their vectors in half precision; 0 = by the codes alone.
        """
        places: Places = self._codes.search(questions, max(most, rerank))[1]
        if rerank > most:
            for row, question in zip(places, questions, strict=True):
                known = row[row >= 0]  # faiss pads with -1 where it found fewer than were asked for
                scores = self._originals.reconstruct_batch(known) @ question
                row[: len(known)] = known[np.argsort(-scores, kind="stable")]
        return places[:, :most]


def exact(vectors: Vectors, questions: Vectors, most: int) -> Places:
    """Return the exact places of the nearest vectors to each query by inner product, to measure recall against."""
    scores = questions @ vectors.T
    return np.argsort(-scores, axis=1, kind="stable")[:, :most]


@cache
def _faiss() -> Any:
    try:
        faiss = import_module("faiss")
    except ModuleNotFoundError:
        raise MissingExtra("faiss-cpu", "tiers") from None
    faiss.omp_set_num_threads(1)
    return faiss
