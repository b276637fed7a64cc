"""S4, `retrieval`: earlier messages are memories, the best of them are sent (design document 000 §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..metrics.tfidf import Scores, best
from .base import Context, ModelError, StrategyContext, View
from .events import Failed, Recalled
from .parts.memories import FORM, Memory, Note, Past, Recalling
from .parts.search import Listed, VectorSearch, WordSearch
from .parts.units import at_least


@dataclass(frozen=True, slots=True)
class Retrieval(Recalling):
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
    sent, and if the system's alone are over the budget, nothing else is (both OverBudget).

    If the embedder fails, memories are ranked by the words that they share with the question, rare ones first (Failed),
    and it is tried again at the next call.
    """

    search: int = 2
    importance: float = 0.1

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "000 §2.1"
    fails: ClassVar[str] = "the question shares nothing with what it needs, as in 'and the other one?'"

    def __post_init__(self) -> None:
        Recalling.__post_init__(self)
        at_least(1, search=self.search)
        at_least(0, at_most=1, importance=self.importance)

    def start(self, desk: StrategyContext) -> View:
        past = Past(desk, self)
        by_vectors, by_words = Listed(VectorSearch(desk)), Listed(WordSearch())
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
            past.read(context.messages)
            by_vectors.cut(past.changed)
            by_words.cut(past.changed)
            query = past.question()
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
            return past.sending(context, message)

        return view

    def _chosen(self, memories: list[Memory], similarity: Scores) -> list[tuple[Memory, float]]:
        """The best, best first, with their scores; of equal ones the later first."""
        places = sorted(best(similarity, self.limit * self.search))
        weights = np.array([memories[place].importance for place in places]) / 10
        scores = (1 - self.importance) * similarity[places] + self.importance * weights
        return [(memories[places[at]], round(float(scores[at]), 4)) for at in best(scores, self.limit)]
