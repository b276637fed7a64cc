"""The settings of the strategy `archive`, and what must be true of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..parts.units import at_least
from .placeholders import Language

_MEMORY = "sqlite://"

Trigger = Literal["model", "keyword", "semantic", "hybrid"]

KEYWORDS = ("之前", "刚才", "上次", "earlier", "previously", "you said", "last time")
"""001 §4.2's three, and what they are in English."""


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The parameters of `archive`; the strategy itself says what each means."""

    threshold: int = 10_000
    fresh: bool = True
    trigger: Trigger = "model"
    keywords: tuple[str, ...] = KEYWORDS
    similarity: float = 0.15
    limit: int = 1
    load_tokens: int | None = None
    summariser: str = "offline"
    summary_chars: int = 200
    stored_chars: int = 500
    query_chars: int = 500
    sources: int = 3
    read_chars: int = 200_000
    store: str = _MEMORY
    wait: float = 1.0
    scope: Literal["conversation", "thread", "all"] = "conversation"
    thread: str = ""
    reach: int = 1000
    keep_days: float | None = None
    language: Language = "zh"

    def __post_init__(self) -> None:
        at_least(1, threshold=self.threshold, limit=self.limit, load_tokens=self.load_tokens, reach=self.reach)
        at_least(1, summary_chars=self.summary_chars, read_chars=self.read_chars)
        if self.stored_chars < self.summary_chars:
            raise ValueError(f"stored_chars={self.stored_chars} is less than summary_chars={self.summary_chars}")
        at_least(1, at_most=500, query_chars=self.query_chars)
        at_least(0, sources=self.sources)
        at_least(-1, at_most=1, similarity=self.similarity)
        if not self.summariser:
            raise ValueError("summariser is 'offline', 'run' (the run's own) or a model's name")
        if not all(self.keywords) or (self.trigger in ("keyword", "hybrid") and not self.keywords):
            raise ValueError(f"keywords must not be empty, nor any of them: {self.keywords}")
        at_least(0, below=3600, wait=self.wait)
        if self.keep_days is not None and not 0 < self.keep_days < 1e6:
            raise ValueError(f"keep_days must be above 0 and below 1000000, not {self.keep_days}")
        if self.scope == "thread" and not self.thread:
            raise ValueError("scope='thread' needs thread='…', a name that conversations share")
        if self._in_memory() and self.scope != "conversation":
            raise ValueError(
                f"scope={self.scope!r} needs a store that conversations share: store='sqlite:///archive.db'"
            )

    def _in_memory(self) -> bool:
        """Whether the store is a conversation's own. Raises ValueError if the store cannot be used."""
        if self.store == _MEMORY:
            return True
        from .store import fault, in_memory

        wrong = fault(self.store)
        if wrong is not None:
            raise ValueError(f"store cannot be used: {wrong}")
        return in_memory(self.store)

    @property
    def copyable(self) -> bool:
        """Whether a copy of it goes on as it would: not where what the store holds depends on when it is asked."""
        return self.scope == "conversation" and self.keep_days is None

    @property
    def offers(self) -> bool:
        """Whether the model is offered the tool."""
        return self.trigger in ("model", "hybrid")
