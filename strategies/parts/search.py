"""Texts that are searched: by vectors, and by the words they share with a question. Each is prepared once.

Every text has a row, which it keeps; scores are by row. A text that is asked for again costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...metrics.language import words
from ...metrics.rows import Rows
from ...metrics.tfidf import Scores, TfIdf
from ..base import StrategyContext
from .memories import Memory

Where = NDArray[np.int64]


class MemoryIndex(Protocol):
    """What texts are searched by."""

    def rows(self, texts: Sequence[str]) -> Where:
        """The row of each text; new ones are taken in."""
        ...

    def scores(self, query: str) -> Scores:
        """How well each row matches."""
        ...


class VectorSearch:
    """Unit vectors of texts, in one matrix that grows. A search is one product: exact."""

    __slots__ = ("_desk", "_matrix", "_query", "_rows")

    def __init__(self, desk: StrategyContext) -> None:
        self._desk = desk
        self._rows: dict[str, int] = {}
        self._matrix: Rows[np.float32] | None = None
        self._query: tuple[str, NDArray[np.float32]] | None = None

    def rows(self, texts: Sequence[str]) -> Where:
        """The row of each text. What is new is embedded, in one batch, or (ModelError) not at all."""
        return _rows(self._rows, texts, self._embed)

    def scores(self, query: str) -> Scores:
        """The cosine of the query with each row. Raises ModelError.

        Rounded to 6 decimals: what differs beyond them differs between machines, and must not change an order.
        """
        if self._matrix is None:
            return np.zeros(0)
        if self._query is None or self._query[0] != query:
            self._query = query, self._desk.embed([query], query=True)[0]
        cosines: Scores = (self._matrix.all @ self._query[1]).astype(np.float64).round(6)
        return cosines

    def _embed(self, texts: list[str]) -> None:
        made = self._desk.embed(texts)
        if self._matrix is None:
            self._matrix = Rows(np.float32, made.shape[1])
        self._matrix.add(made)


class WordSearch:
    """Texts as bags of words."""

    __slots__ = ("_index", "_rows")

    def __init__(self) -> None:
        self._index = TfIdf()
        self._rows: dict[str, int] = {}

    def rows(self, texts: Sequence[str]) -> Where:
        """The row of each text. What is new is indexed."""
        return _rows(self._rows, texts, lambda new: self._index.add(map(words, new)))

    def scores(self, query: str) -> Scores:
        """The share of the query's words that each row has, rare words weighing more: 0 to 1."""
        return self._index.overlap(words(query))


class Listed:
    """The rows of memories in a list that grows at its end, and now and then is cut."""

    __slots__ = ("_index", "_rows")

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index
        self._rows: Rows[np.int64] = Rows(np.int64)

    def cut(self, size: int) -> None:
        """The memories from there on are others now."""
        self._rows.size = min(size, self._rows.size)

    def scores(self, memories: Sequence[Memory], query: str) -> Scores:
        """How well each of the memories matches. Raises ModelError."""
        self._rows.add(self._index.rows([memory.text for memory in memories[self._rows.size :]]))
        return self._index.scores(query)[self._rows.all]


def _rows(known: dict[str, int], texts: Sequence[str], take: Callable[[list[str]], None]) -> Where:
    """The rows of texts, after those that are not known have been taken in."""
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        take(new)
        known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
    return np.fromiter((known[text] for text in texts), np.int64, len(texts))
