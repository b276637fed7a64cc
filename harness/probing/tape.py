"""What models answered while a conversation was replayed, for when it is replayed again to ask a question.

A replay that is to end where the first one did needs the same replies in the same order, failures among them, and
nobody is to be paid for them twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ...metrics.tokens import TokenCounter
from ...strategies.base import ModelError, Prompt
from ..desk import Answering
from ..models import Embedded, Reply


class Tape:
    """Models (`desk.Asked`) that remember what they answered."""

    def __init__(self, models: Answering) -> None:
        self.models = models
        self.kept: defaultdict[object, list[Any]] = defaultdict(list)

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply. Raises ModelError."""
        made: Reply = self._kept(prompt, lambda: self.models.complete(prompt, counter))
        return made

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """The vectors. Raises ModelError."""
        made: Embedded = self._kept((tuple(texts), query), lambda: self.models.embed(texts, query, counter))
        return made

    def _kept(self, asked: object, answer: Callable[[], object]) -> Any:
        try:
            found = answer()
        except ModelError as error:
            self.kept[asked].append(error)
            raise
        self.kept[asked].append(found)
        return found


class Again:
    """Models that answer as on the tape, as often as it has an answer, and then are asked."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._times = tape, Counter[object]()

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """The reply. Raises ModelError."""
        made: Reply = self._again(prompt, lambda: self._tape.models.complete(prompt, counter))
        return made

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """The vectors. Raises ModelError."""
        made: Embedded = self._again((tuple(texts), query), lambda: self._tape.models.embed(texts, query, counter))
        return made

    def _again(self, asked: object, answer: Callable[[], object]) -> Any:
        time, kept = self._times[asked], self._tape.kept.get(asked, [])
        self._times[asked] += 1
        if time >= len(kept):
            return answer()
        if isinstance(kept[time], ModelError):
            raise kept[time]
        return kept[time]
