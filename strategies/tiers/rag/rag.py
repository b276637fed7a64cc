"""The RAG tier (S9, design document 004 §2.4): passages without limit, found by vectors, words and entities together.

    rag = Rag(Rules(), desk.embed)
    rag.add([passage(message, user="ann")], now=desk.now)
    hits = rag.search("Where is the cabin?", k=5, now=desk.now, user="ann")

Three retrievers each rank the passages: `vector` (cosine of embeddings), `bm25` and `graph` (a walk from the question's
entities). Their rankings are fused, and the first of them may be ranked again by the exact scores of all three. Each
retriever answers for itself what is honest for a question that it has nothing for: nothing. A passage is embedded
when a search first needs its vector, in one batch with all that came since, so adding never waits for a model.

The number of a document is never given again; what stays of a deleted one is about 50 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ....metrics.rows import Rows
from .bm25 import Bm25
from .fusion import NOTHING, Numbers, Ranked, Scores, ranked, reciprocal_rank, relative, weighted
from .graph import EntityGraph
from .rules import RETRIEVERS, RULES, Fusing, Passage, RagRules, Retriever
from .vector_store import VectorStore

Embed = Callable[[Sequence[str], bool], NDArray[np.float32]]
"""Texts to unit vectors, one row a text, as what is searched for (True) or what is found. `Desk.embed` is one."""
_BATCH = 2048
"""Passages that are embedded at once."""


class Hit(NamedTuple):
    """A passage that was found."""

    passage: Passage
    score: float
    """By which hits are ordered."""
    by: dict[Retriever, float]
    """The score by each retriever that found it."""


class _Question(NamedTuple):
    text: str
    vector: NDArray[np.float32] | None
    """None = it is not asked for."""


class Rag:
    """Passages under their ids. Time is what the caller says it is."""

    def __init__(self, rules: RagRules = RULES, embed: Embed | None = None) -> None:
        if "vector" in rules.retrievers and embed is None:
            raise ValueError("the retriever `vector` needs an embedder: give one, or leave it out of Rules.retrievers")
        self.rules, self._embed = rules, embed
        self.passages: list[Passage | None] = []
        """By number; None where one was deleted."""
        self.numbers: dict[str, int] = {}
        self.times, self.alive = Rows(np.float64), Rows(np.bool_)
        self.users: dict[str, Rows[np.int64]] = {}
        self.waiting: list[int] = []
        """Those that are not embedded yet."""
        self.vectors: VectorStore | None = None
        self.bm25 = Bm25(most=rules.entries)
        self.graph = EntityGraph(with_words=rules.words)

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def get(self, name: str) -> Passage | None:
        """The passage with this id."""
        number = self.numbers.get(name)
        return None if number is None else self.passages[number]

    def add(self, passages: Iterable[Passage], now: float) -> None:
        """Add passages. Raises ValueError, and then none is added, for an id that is there, and a time that is none."""
        new = [each if each.time is not None else msgspec.structs.replace(each, time=now) for each in passages]
        seen: set[str] = set()
        for each in new:
            if each.id in self.numbers or each.id in seen:
                raise ValueError(f"passage {each.id!r} is there already: delete it first")
            if not _writable(each):
                raise ValueError(f"passage {each.id!r} has half of a surrogate pair in it, which is no character")
            if not math.isfinite(each.time or 0.0):
                raise ValueError(f"passage {each.id!r} has the time {each.time}: give seconds, a finite number")
            seen.add(each.id)
        for each in new:
            self._add(each)

    def _add(self, each: Passage) -> None:
        number = len(self.passages)
        self.passages.append(each)
        self.numbers[each.id] = number
        self.times.add(np.array([each.time], np.float64))
        self.alive.add(np.ones(1, np.bool_))
        self.users.setdefault(each.user, Rows(np.int64)).add(np.array([number]))
        if "vector" in self.rules.retrievers:
            self.waiting.append(number)
        if "bm25" in self.rules.retrievers:
            self.bm25.add(each.text)
        if "graph" in self.rules.retrievers:
            self.graph.add(each.text)

    def delete(self, names: Iterable[str]) -> None:
        """Take passages out. Raises KeyError, and then none is, for an id that is not there."""
        each = list(dict.fromkeys(names))
        gone = np.sort(np.array([self.numbers[name] for name in each], np.int64))
        for name in each:
            del self.numbers[name]
        self.alive.all[gone] = False
        dead = set(gone.tolist())
        self.waiting = [number for number in self.waiting if number not in dead]
        if self.vectors is not None:
            self.vectors.delete(gone)
        for number in gone.tolist():
            self.passages[number] = None
            if "bm25" in self.rules.retrievers:
                self.bm25.delete(number)
            if "graph" in self.rules.retrievers:
                self.graph.delete(number)

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        now: float,
        user: str | None = None,
        since: float | None = None,
        until: float | None = None,
        by: Collection[Retriever] | None = None,
        fusing: Fusing | None = None,
    ) -> list[Hit]:
        """The best `k` passages, best first: of this `user`, said from `since` on and before `until`.

        `by` are the retrievers to ask, all if None. Raises what the embedder raises; then ask again without `vector`.
        """
        if k < 1:
            raise ValueError(f"k={k}: ask for 1 or more")
        if not query.strip() or not self.numbers:
            return []
        how = fusing or self.rules.fusing
        unknown = sorted(set(by or ()) - set(self.rules.retrievers))
        if unknown:
            raise ValueError(f"by={unknown}: this tier has the retrievers {', '.join(self.rules.retrievers)}")
        asked = [each for each in self.rules.retrievers if by is None or each in by]
        question = _Question(query, self._query(query) if "vector" in asked else None)
        among = self._among(user, since, until)
        most = max(k, how.candidates, how.rerank)
        rankings = {each: self._ranking(each, question, most, among, how.floor) for each in asked}
        weights = [how.weights[RETRIEVERS.index(each)] for each in asked]
        fuse = reciprocal_rank if how.by == "rrf" else weighted
        fused = fuse(list(rankings.values()), weights, max(k, how.rerank))
        if how.rerank:
            fused = self._reranked(fused, dict(zip(asked, weights, strict=True)), question, now, how)
        return self._hits(fused, rankings, k)

    def forget(self) -> None:
        """Forget what is remembered of the last question, for those who time searches."""
        self.bm25.forget()
        self.graph.forget()

    def embed(self) -> None:
        """Embed every passage that is not embedded yet, as a search would."""
        if self._embed is None or "vector" not in self.rules.retrievers:
            return
        while self.waiting:
            some = self.waiting[:_BATCH]
            made = self._embed([self._at(number).text for number in some], False)
            if self.vectors is None:
                self.vectors = VectorStore(made.shape[1], self.rules.index, self.rules.graph)
            self.vectors.add(np.array(some, np.int64), made)
            self.waiting = self.waiting[_BATCH:]

    def _at(self, number: int) -> Passage:
        found = self.passages[number]
        assert found is not None
        return found

    def _among(self, user: str | None, since: float | None, until: float | None) -> Numbers | None:
        """The numbers of the passages that pass, sorted; None = all pass."""
        if user is None and since is None and until is None:
            return None
        if user is None:
            numbers = np.flatnonzero(self.alive.all)
        else:
            rows = self.users.get(user)
            numbers = np.zeros(0, np.int64) if rows is None else rows.all[self.alive.all[rows.all]]
        times = self.times.all[numbers]
        keep = np.ones(len(numbers), np.bool_)
        if since is not None:
            keep &= times >= since
        if until is not None:
            keep &= times < until
        return numbers[keep]

    def _query(self, query: str) -> NDArray[np.float32]:
        """The question's vector, after every passage has one."""
        assert self._embed is not None
        self.embed()
        found: NDArray[np.float32] = self._embed([query], True)[0]
        return found

    def _ranking(self, name: Retriever, question: _Question, most: int, among: Numbers | None, floor: float) -> Ranked:
        if name == "bm25":
            return self.bm25.search(question.text, most, among)
        if name == "graph":
            return self.graph.search(question.text, most, among)
        if self.vectors is None or question.vector is None:
            return NOTHING
        numbers, cosines = self.vectors.search(question.vector, most, among)
        above = cosines > floor
        return Ranked(numbers[above], cosines[above])

    def _reranked(
        self, fused: Ranked, weights: dict[Retriever, float], question: _Question, now: float, how: Fusing
    ) -> Ranked:
        """The fused ones by the exact scores of all retrievers, each divided by its best, and by how new they are."""
        numbers = fused.numbers
        age = np.maximum(now - self.times.all[numbers], 0)
        scores: Scores = how.recency * np.exp2(-age / how.half_life)
        for name, weight in weights.items():
            scores = scores + weight * relative(self._exact(name, question, numbers))
        return ranked(numbers, scores, len(numbers))

    def _exact(self, name: Retriever, question: _Question, numbers: Numbers) -> Scores:
        """The score of each of these passages by one retriever."""
        if name == "bm25":
            return self.bm25.score(question.text, numbers)
        if name == "graph":
            return self.graph.score(question.text, numbers)
        if self.vectors is None or question.vector is None:
            return np.zeros(len(numbers))
        return self.vectors.score(question.vector, numbers)

    def _hits(self, fused: Ranked, rankings: dict[Retriever, Ranked], k: int) -> list[Hit]:
        """The first `k`, each with the scores by which it was found."""
        numbers = fused.numbers[:k].tolist()
        wanted = set(numbers)
        where = {
            name: {
                number: score
                for number, score in zip(found.numbers.tolist(), found.scores.tolist(), strict=True)
                if number in wanted
            }
            for name, found in rankings.items()
        }
        best = zip(numbers, fused.scores[:k].tolist(), strict=True)
        return [
            Hit(self._at(number), score, {name: found[number] for name, found in where.items() if number in found})
            for number, score in best
        ]


def _writable(each: Passage) -> bool:
    """Whether a snapshot can hold it."""
    try:
        msgspec.json.encode(each)
    except UnicodeEncodeError:
        return False
    return True
