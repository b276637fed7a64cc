"""S4, `retrieval`: earlier messages are memories, the best of them are sent (design document 000 §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..metrics.tfidf import Scores, best
from .base import Context, Desk, ModelError, View
from .events import Failed, Recalled
from .parts.memories import Memory, Note, Past, Place
from .parts.searching import Listed, Vectors, Words

FORM = {"zh": "[相关记忆]\n{lines}", "en": "[Relevant memories]\n{lines}"}
"""Ours, in the manner of the document's `[之前对话摘要]`: it gives no wording for memories."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """System messages, the memories that the newest user message calls up, and the last `recent` turns.

    As the document has it: the `limit * search` memories most similar to the newest user message are found (by
    embedding, exact search), ordered by score and importance, and the best `limit` are sent as one system message, best
    first. One conversation is one user, so there is nobody to filter out.

    Where the document is silent:

    * `recent` = 3 turns, as much as 002 takes for recent context and 000 §2.2 protects (6 messages). A history with no
      more is sent as it is: for agents that work long for one user message give `max_tokens`.
    * score = (1 - `importance`) · cosine + `importance` · importance / 10. Cosines of the best candidates mostly lie
      within 0.1 of each other, so 0.1 decides between close ones and no more. Importance: `kinds.importance_of`.
    * Any message but the system's becomes memories when it leaves the recent turns: passages of at most
      `max_memory_tokens`, the first `passages` of them. What a longer message says after that cannot be found.
    * Of a question longer than `query_characters` its two ends are searched for. If no user spoke, the newest message
      is.
    * `place` "start" puts the memories after the system messages of what is not sent, "end" before the newest turn.
      Either way each new turn drops an old one, so no more than the system prompt stays a prefix that a cache can keep
      (measured). With `slack` turns are dropped `slack + 1` at a time; between, "end" keeps the older ones a prefix.

    Without `max_tokens` nothing is promised. With it all that is sent takes at most that: memories at most
    `memory_share` of it (000 §2.2), and the recent turns what is left. What of them does not fit becomes memories too.
    The newest message (with its results) comes before memories. If it does not fit, system messages and memories are
    sent, and if the system's alone are over the budget, nothing else is (both Refused).

    If the embedder fails, memories are ranked by the words that they share with the question, rare ones first (Failed),
    and it is tried again at the next call.
    """

    limit: int = 10
    recent: int = 3
    slack: int = 0
    search: int = 2
    importance: float = 0.1
    max_memory_tokens: int = 200
    passages: int = 8
    query_characters: int = 2000
    place: Place = "start"
    max_tokens: int | None = None
    memory_share: float = 0.2
    language: Literal["zh", "en"] = "zh"

    source: ClassVar[str] = "000 §2.1"
    fails: ClassVar[str] = "the question shares nothing with what it needs, as in 'and the other one?'"

    def __post_init__(self) -> None:
        counts = (self.limit, self.recent, self.search, self.max_memory_tokens, self.passages, self.query_characters)
        if min(*counts, 1 if self.max_tokens is None else self.max_tokens) < 1:
            raise ValueError(
                "limit, recent, search, max_memory_tokens, passages, query_characters and max_tokens must be at least 1"
            )
        if self.slack < 0:
            raise ValueError("slack must not be negative")
        if not (0 <= self.importance <= 1 and 0 <= self.memory_share <= 1):
            raise ValueError("importance and memory_share must be from 0 to 1")

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent may take."""
        return self.max_tokens

    def start(self, desk: Desk) -> View:
        past = Past(desk, self.recent, self.slack, self.max_memory_tokens, self.passages)
        by_vectors, by_words = Listed(Vectors(desk)), Listed(Words())
        note = Note(desk, "retrieval", FORM[self.language])
        found: list[tuple[Memory, float]] = []
        last: str | None = None

        def similar(query: str) -> tuple[Scores, bool]:
            try:
                return by_vectors.scores(past.memories, query), True
            except ModelError as error:
                desk.record(Failed("embedding", str(error), "ranked by words in common"))
                return by_words.scores(past.memories, query), False

        def view(context: Context) -> Context:
            nonlocal found, last
            known = len(past.memories)
            past.read(context.messages, self.max_tokens, self.memory_share)
            by_vectors.cut(past.changed)
            by_words.cut(past.changed)
            query = past.question(self.query_characters)
            if query != last or not known == past.changed == len(past.memories):
                found, last = [], query
                if past.memories and query:
                    scores, embedded = similar(query)
                    found, last = self._chosen(past.memories, scores), query if embedded else None
            lines = [f"- {memory.line}" for memory, _ in found]
            message, kept = note.of(lines, past.room, context.messages)
            if message is not None:
                sources, scored = zip(*((found[at][0].source, found[at][1]) for at in kept), strict=True)
                desk.record(Recalled(sources, scored))
            return past.sending(context, message, self.place)

        return view

    def _chosen(self, memories: list[Memory], similarity: Scores) -> list[tuple[Memory, float]]:
        """The best, best first, with their scores; of equal ones the later first."""
        places = sorted(best(similarity, self.limit * self.search))
        weights = np.array([memories[place].importance for place in places]) / 10
        scores = (1 - self.importance) * similarity[places] + self.importance * weights
        return [(memories[places[at]], round(float(scores[at]), 4)) for at in best(scores, self.limit)]
