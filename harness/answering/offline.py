"""The `offline` answerer: an extractive reader. No key, no network, no download, and no understanding."""

from __future__ import annotations

from collections.abc import Sequence

from ...metrics.reading import VERSION, Reader
from ...metrics.tokens import TokenCounter
from .answerer import Answer, Question


class Offline:
    """Answers with a span of the context, or UNKNOWN. It reads a conversation's messages once, whoever sends them."""

    name = "offline"
    identity = f"offline {VERSION}"

    def __init__(self, counter: TokenCounter) -> None:
        self._counter, self._conversation, self._reader = counter, "", Reader()

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """An answer each."""
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        if question.conversation != self._conversation:
            self._conversation, self._reader = question.conversation, Reader()
        found = self._reader.answer(question.context, question.text)
        return Answer(found.text, found.support, 1, question.tokens, self._counter.text(found.text))
