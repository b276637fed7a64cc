"""S9, `tiered`: Focus, Working, Archive and RAG joined (design document 004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....metrics.language import Language
from ...base import StrategyContext, View
from ...parts.units import at_least
from ..focus import Focus
from ..focus.strategy import Truncating
from ..rag import Retriever
from .session import TieredSession
from .stores import ARCHIVE, POLICY, WORKING, TierRules
from .tiers import Tiers

RESERVE = 8
"""System messages and tool schemas have 1 / RESERVE of the limit each reserved: the document's 1K of 8K."""


@dataclass(frozen=True, slots=True)
class Tiered:
    """What is sent takes at most `limit` tokens, and what does not fit goes down, is found again, and comes back.

    - *Focus* is `focus(limit)` with its truncations. As long as all that was said fits, it is sent as it is. Over that,
      `recall` tokens of the limit are kept for what is called back.
    - *Working* holds `working` tokens of what Focus leaves out; the cache policy `policy` says who has to leave
      (`ctxbench bench-tier working` compares them).
    - *Archive* holds `archive` tokens of what Working lets go, in compressed blocks; *RAG* the rest.

    At each new user message, the `k` messages below that fit it best are searched for (`retrievers`: bm25, graph, and
    vector, which needs an embedder), and those that it quotes. At each call, what the user and the arguments of tool
    calls name (identifiers, numbers, dates, paths) is looked for as well: the latest message that says it, if few do.
    What is found is read in the tier where it is, and sent as it was said in its old place, calls with their results:
    what was named or quoted first, then by score, while it fits in `recall`. It stays until the turn is over. What was
    named is promoted to Working, what was found by search only if it is hot.

    Every message is in exactly one tier; what Focus sends of those below is a loan. Moves, crossed quotas, alarms and
    look-ups with the tier that answered them are events (Moved, LimitReached, Alarmed, Recalled).

    `preload` asks for what usually comes next, `tune` lets the document's tuner change weights, threshold and level.
    Neither is worth it (decisions 15 and 20).

    Time is the recorded one; where it goes back it stands still, and a call without a time is a second after the last.
    """

    limit: int = 8192
    working: int = WORKING
    archive: int = ARCHIVE
    policy: str = POLICY
    truncation: Truncating = "tail_cutoff"
    recall: int = 2048
    k: int = 20
    retrievers: tuple[Retriever, ...] = ("bm25",)
    preload: bool = False
    tune: bool = False
    language: Language = "zh"

    source: ClassVar[str] = "004"
    fails: ClassVar[str] = "the question shares no words with what it needs, and names nothing that it says"
    copyable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(1, limit=self.limit, k=self.k)
        at_least(0, below=self.limit, recall=self.recall)
        self._rules()
        try:
            self._focus(self.limit - self.recall)
        except ValueError as error:
            raise ValueError(f"without the {self.recall} tokens of recall, {error}") from None

    @property
    def budget(self) -> int:
        """Tokens that what is sent never exceeds."""
        return self.limit

    def start(self, desk: StrategyContext) -> View:
        return self.open(desk).view

    def open(self, desk: StrategyContext, tiers: Tiers | None = None) -> TieredSession:
        """One conversation; with `tiers` that were restored, one that goes on."""
        if tiers is None:
            tiers = Tiers(self._rules(), desk.record, desk.embed)
        return TieredSession(self._focus(self.limit).open(desk), tiers, desk, self.limit, self.recall, self.k)

    def _rules(self) -> TierRules:
        return TierRules(self.working, self.archive, self.policy, self.retrievers, self.preload, self.tune)

    def _focus(self, limit: int) -> Focus:
        share = self.limit // RESERVE
        return Focus(limit, self.truncation, share, share, language=self.language)
