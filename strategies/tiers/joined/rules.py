"""What the tiers below Focus may hold, and how they are searched."""

from __future__ import annotations

from dataclasses import dataclass

from ....scenarios.errors import SpecError
from ...parts.bounds import at_least
from ..rag import Retriever
from ..rag.rules import Rules as RagRules
from ..working.belady import Belady
from ..working.policies import POLICIES, parse

WORKING, ARCHIVE = 131_072, 1_048_576
POLICY = "lru_k(correlated=100)"
BLOCKS = 16
"""Of the Archive, when it is full: 64K tokens each at the document's size."""
KEPT = 2 * BLOCKS
"""Blocks that stay decompressed: up to half of each may be messages that have left."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The tiers below Focus. Their parameters are those of `Tiered`, which says what they mean."""

    working: int = WORKING
    archive: int = ARCHIVE
    policy: str = POLICY
    retrievers: tuple[Retriever, ...] = ("bm25",)
    preload: bool = False
    tune: bool = False

    def __post_init__(self) -> None:
        at_least(1, working=self.working, archive=self.archive)
        try:
            recipe = parse(self.policy)
        except SpecError as error:
            raise ValueError(f"policy: {error}") from None
        recipe.sized(self.working)
        if issubclass(POLICIES[recipe.name], Belady):
            raise ValueError(f"policy={self.policy!r} must know the future: a strategy does not")
        RagRules(retrievers=self.retrievers)

    @property
    def block(self) -> int:
        """Tokens of a block of the Archive."""
        return max(1, self.archive // BLOCKS)
