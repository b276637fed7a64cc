"""The RAG tier (S9, design document 004 §2.4): passages searched by vectors, words and entities together.

    rag = Rag(RagRules(), services.embed)
    rag.add([passage(message)])
    hits = rag.search("Where is the cabin?", k=5)

Three retrievers rank the passages: `vector` (cosine of embeddings), `bm25` and `graph` (a walk from the query's
entities). Their rankings are fused, and the best passages may be reranked by the exact scores of all three. A retriever
without a match returns nothing. A passage is embedded when a search first needs its vector, in one batch with all
others added since, so adding never waits for a model.

The number of a passage is never reused; a deleted one leaves about 50 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ctxbench.metrics.tfidf import Scores
from ctxbench.scenarios.model import Message

from .graph import EntityGraph
from .postings import NOTHING, Bm25, Ranked, TextIndex, top_k
from .vectors import Index, Vectors

Retriever = Literal["vector", "bm25", "graph"]

RETRIEVERS: tuple[Retriever, ...] = get_args(Retriever)


class Passage(NamedTuple):
    """A text that is stored and retrieved."""

    id: str
    text: str


def passage(message: Message) -> Passage:
    """Return a message as a passage: its text and its tool calls, a line each.

    The name of the speaker is part of the text, so that a query about a person finds that person's messages.
    """
    text = "\n".join((message.text.strip(), *(f"{call.name} {call.arguments}" for call in message.calls))).strip()
    if message.name and message.role in ("user", "assistant"):
        text = f"{message.name}: {text}"
    return Passage(message.id, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RagRules:
    """How passages are stored."""

    retrievers: tuple[Retriever, ...] = RETRIEVERS
    index: Index = "exact"
    entries: int | None = None
    """Most texts that the query words of BM25 occur in together, the rarest words first. None = no limit."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.retrievers if name not in RETRIEVERS]
        if unknown or not self.retrievers or len(set(self.retrievers)) < len(self.retrievers):
            raise ValueError(f"retrievers={self.retrievers!r}: give some of {', '.join(RETRIEVERS)}, each once")


CANDIDATES = 100  # passages that each retriever ranks, at least

Embed = Callable[[Sequence[str], bool], NDArray[np.float32]]
"""Texts to unit vectors, one row per text, as queries (True) or as passages. `StrategyContext.embed` is one."""
_BATCH = 2048  # passages embedded at once


CONSTANT = 60  # k of the original paper


def reciprocal_rank(rankings: Sequence[Ranked], k: int) -> Ranked:
    """Return the `k` best documents by the sum of 1 / (60 + rank); the first rank is 1.

    RRF, Cormack, Clarke & Büttcher 2009: scores do not matter. A document has no part from a ranking without it.
    """
    parts = [1 / (CONSTANT + np.arange(1.0, len(ranking.numbers) + 1)) for ranking in rankings]
    numbers, places = np.unique(np.concatenate([ranking.numbers for ranking in rankings]), return_inverse=True)
    sums: Scores = np.bincount(places, np.concatenate(parts), minlength=len(numbers))  # type: ignore[assignment]
    return top_k(numbers, sums, k)


def relative(scores: Scores) -> Scores:
    """Return scores divided by the best of them, negative ones as 0; all 0 if none is above 0."""
    best = scores.max(initial=0.0)
    return np.maximum(scores, 0) / best if best > 0 else np.zeros(len(scores))


class Rag:
    """Passages by id."""

    def __init__(self, rules: RagRules, embed: Embed | None = None) -> None:
        if "vector" in rules.retrievers and embed is None:
            raise ValueError("the retriever `vector` needs an embedder: give one, or leave `vector` out of retrievers")
        self.rules, self._embed = rules, embed
        self.passages: list[Passage | None] = []
        """Passages by number; None for a deleted one."""
        self.numbers: dict[str, int] = {}
        self.waiting: list[int] = []
        """Numbers of passages that are not embedded yet."""
        self.vectors: Vectors | None = None
        self._last: tuple[str, NDArray[np.float32]] | None = None  # the last query, and its vector
        self.bm25, self.graph = Bm25(rules.entries), EntityGraph()
        by_name: dict[Retriever, TextIndex] = {"bm25": self.bm25, "graph": self.graph}
        self._texts = {name: index for name, index in by_name.items() if name in rules.retrievers}

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages. Raises ValueError for an id that is present, and adds none."""
        new = list(passages)
        ids = {passage.id for passage in new}
        # All are checked before any is added: the three indexes number texts by themselves and must not drift apart.
        if len(ids) < len(new) or any(name in self.numbers for name in ids):
            raise ValueError(f"there is a passage of one of these ids already, delete it first: {sorted(ids)}")
        for passage in new:
            number = self.numbers[passage.id] = len(self.passages)
            self.passages.append(passage)
            if "vector" in self.rules.retrievers:
                self.waiting.append(number)
            for index in self._texts.values():
                index.add(passage.text)

    def delete(self, names: Iterable[str]) -> None:
        """Delete passages. Raises KeyError for an unknown id, and deletes none."""
        unique = list(dict.fromkeys(names))
        numbers = np.sort(np.array([self.numbers[name] for name in unique], np.int64))
        for name in unique:
            del self.numbers[name]
        dead = set(numbers.tolist())
        self.waiting = [number for number in self.waiting if number not in dead]
        if self.vectors is not None:
            self.vectors.delete(numbers)
        for number in numbers.tolist():
            self.passages[number] = None
            for index in self._texts.values():
                index.delete(number)

    def restore(self, passages: Sequence[Passage | None]) -> None:
        """Index the passages of another tier in this one, which is empty; deleted ones are None and keep their number.

        Their vectors are embedded again when a search first needs them.
        """
        self.add(passage or Passage(f"\0{at}", "") for at, passage in enumerate(passages))
        self.delete(f"\0{at}" for at, passage in enumerate(passages) if passage is None)

    def search(
        self, query: str, k: int = 5, *, by: Collection[Retriever] | None = None, rerank: int = 0
    ) -> list[tuple[str, float]]:
        """Return ids and scores of the best `k` passages, best first. `by` are the retrievers to use, all if None.

        The first `rerank` of the fused passages are ordered anew by the exact scores of all retrievers.
        Raises the errors of the embedder; then search without `vector`.
        """
        retrievers = [name for name in self.rules.retrievers if by is None or name in by]
        if not query.strip() or not self.numbers or not retrievers:
            return []
        vector = None
        if "vector" in retrievers and self._embed is not None:
            self.embed()
            if self._last is None or self._last[0] != query:
                self._last = query, self._embed([query], True)[0]
            vector = self._last[1]
        most = max(k, CANDIDATES, rerank)
        fused = reciprocal_rank([self._ranking(name, query, vector, most) for name in retrievers], max(k, rerank))
        if rerank:
            # Each retriever's exact scores are divided by the best of them.
            exact = (relative(self._exact(name, query, vector, fused.numbers)) for name in retrievers)
            scores: Scores = sum(exact, np.zeros(len(fused.numbers)))
            fused = top_k(fused.numbers, scores, len(scores))
        best = zip(fused.numbers[:k].tolist(), fused.scores[:k].tolist(), strict=True)
        return [(self.at(number).id, score) for number, score in best]

    def forget(self) -> None:
        """Forget the vector and the cached scores of the last query, for benchmarks."""
        self._last = None
        for index in self._texts.values():
            index.forget()

    def embed(self) -> None:
        """Embed every passage without a vector, as a search would."""
        if self._embed is None or "vector" not in self.rules.retrievers:
            return
        while self.waiting:
            batch = self.waiting[:_BATCH]
            vectors = self._embed([self.at(number).text for number in batch], False)
            if self.vectors is None:
                self.vectors = Vectors(vectors.shape[1], self.rules.index)
            self.vectors.add(np.array(batch, np.int64), vectors)
            # Only after the vectors are stored: an embedder that fails leaves its batch waiting for the next search.
            self.waiting = self.waiting[_BATCH:]

    def at(self, number: int) -> Passage:
        """Return the passage with a number, which must not be deleted."""
        passage = self.passages[number]
        assert passage is not None
        return passage

    def _ranking(self, name: Retriever, query: str, vector: NDArray[np.float32] | None, most: int) -> Ranked:
        if name in self._texts:
            return self._texts[name].search(query, most)
        if self.vectors is None or vector is None:
            return NOTHING
        numbers, cosines = self.vectors.search(vector, most)
        # Hashed cosines are hardly ever exactly 0, so without a floor every passage is "found" by vectors
        # (docs/decisions/0017-search.md).
        above = cosines > 0
        return Ranked(numbers[above], cosines[above])

    def _exact(
        self, name: Retriever, query: str, vector: NDArray[np.float32] | None, numbers: NDArray[np.int64]
    ) -> Scores:
        if name in self._texts:
            return self._texts[name].score(query, numbers)
        if self.vectors is None or vector is None:
            return np.zeros(len(numbers))
        return self.vectors.score(vector, numbers)
