"""S4, `retrieval`: earlier messages are memories, the best of them are sent (design document 000 §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ctxbench.metrics.tfidf import Scores, best
from ctxbench.scenarios.spec import PositiveInt, Share

from .base import Context, ModelError, StrategyContext, View
from .events import Failed, Recalled
from .parts.language import ConversationLanguage
from .parts.memories import (
    FORM,
    ConversationMemory,
    Memory,
    MemoryRows,
    NoteMessage,
    RecallSettings,
    VectorSearch,
    WordSearch,
)


@dataclass(frozen=True, slots=True)
class Retrieval(RecallSettings):
    """System messages, the memories most relevant to the newest user message, and the last `recent` turns.

    The `limit * search` memories most similar to the newest user message are searched (by embedding, exactly), ranked
    by score and importance, and the best `limit` are sent as one system message, best first, each with who said it and
    when. One conversation is one user, so there is no filter by user.

    Where the design is silent:

    * `recent` = 3 turns. A history with no more is sent as it is: for agents that work long for one user message give
      `max_tokens`.
    * score = (1 - `importance`) · cosine + `importance` · importance / 10. Cosines of the best candidates mostly lie
      within 0.1 of each other, so 0.1 decides between close ones and no more. A memory's importance follows from its
      type (preference, decision, tool result …), from its length and from who wrote it.
    * Every message but a system message becomes memories when it leaves the recent turns: passages of at most
      `max_memory_tokens`, the first `passages` of them. The rest of a longer message cannot be recalled.
    * The search text of a question longer than `query_characters` is its two ends. Without a user message the newest
      message is the question.
    * `place` "start" puts the memories after the leading system messages, "end" before the newest turn. Either way each
      new turn drops an old one, so no more than the system prompt stays a prefix that a cache can keep (measured). With
      `slack` turns are dropped `slack + 1` at a time; between, "end" keeps the older ones a prefix.
    * Heading and speakers of the memories are in `language`; "auto" is that of most user messages when memories are
      first sent. A speaker is called by the recorded name, or else by the role. A recorded name is searched with the
      text: on LoCoMo 54.7 % of the evidence is sent with it, 47.3 % without (decision 17).

    Without `max_tokens` there is no budget. With it everything sent takes at most that: memories at most the share
    `memory_share`, and the recent turns what is left; messages that do not fit become memories too. The newest message
    (with its results) comes before memories. If it does not fit, system messages and memories are sent (OverBudget).
    System messages that alone are over the budget are an error.

    If the embedder fails, memories are ranked by the words that they share with the question, rare ones first (Failed),
    and the next call tries the embedder again.
    """

    search: PositiveInt = 2
    importance: Share = 0.1

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "the question shares nothing with its answer, as in 'and the other one?'"
    family: ClassVar[str] = "retrieval"

    def start(self, services: StrategyContext) -> View:
        past = ConversationMemory(services, self)
        by_vectors, by_words = MemoryRows(VectorSearch(services)), MemoryRows(WordSearch())
        language = ConversationLanguage(self.language)
        note = NoteMessage(services, "retrieval", FORM, language)
        recalled: list[tuple[Memory, float]] = []
        lines: list[str] = []
        last: str | None = None

        def view(context: Context) -> Context:
            nonlocal recalled, lines, last
            known = len(past.memories)
            past.read(context.messages)
            by_vectors.cut(past.changed)
            by_words.cut(past.changed)
            query = past.question()
            if query != last or not known == past.changed == len(past.memories):
                recalled, lines, last = [], [], query
                if past.memories and query:
                    try:
                        scores = by_vectors.scores(past.memories, query)
                    except ModelError as error:
                        services.record(Failed("embedding", str(error), "ranked by words in common"))
                        scores, last = by_words.scores(past.memories, query), None
                    recalled = self._best(past.memories, scores)
            language.read(context.messages)
            if not lines:
                lines = [f"- {memory.quote(language.decided)}" for memory, _ in recalled]
            message, shown = note.of(lines, past.room, context.messages)
            if message is not None:
                sources, weights = zip(*((recalled[at][0].source, recalled[at][1]) for at in shown), strict=True)
                services.record(Recalled(sources, weights))
            return past.context(context, message)

        return view

    def _best(self, memories: list[Memory], similarity: Scores) -> list[tuple[Memory, float]]:
        """Return the best memories with their scores, best first, equal ones the later first."""
        places = sorted(best(similarity, self.limit * self.search))
        weights = np.array([memories[place].importance for place in places]) / 10
        scores = (1 - self.importance) * similarity[places] + self.importance * weights
        return [(memories[places[at]], round(float(scores[at]), 4)) for at in best(scores, self.limit)]
